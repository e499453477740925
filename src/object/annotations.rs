//! Owns the keys in `rhumb.dev/`: every annotation and label that rhumb reads or writes.
//!
//! `docs/reference/annotations.md` is generated from this table. No other file spells a key out.
//!
//! **Invariant:** does no I/O, and knows no rule that a key stands for.

/// Objects of a source that must be healthy before this one is changed.
pub const DEPENDS_ON: &str = "rhumb.dev/depends-on";
/// The part of a name in that annotation which leaves the namespace to the source: it is that of
/// objects that name none.
pub(crate) const SOURCE_NAMESPACE_INFIX: &str = "/namespaces//";
/// Fields that are left to other writers.
pub const IGNORE_FIELDS: &str = "rhumb.dev/ignore-fields";
/// The time when an object is pruned, if it is.
pub const PRUNE: &str = "rhumb.dev/prune";
/// The switch that has an object reconciled or left alone.
pub const RECONCILE: &str = "rhumb.dev/reconcile";
/// The permission to delete an object and create it again.
pub const RECREATE: &str = "rhumb.dev/recreate";
/// The restart of a workload when its configuration changes.
pub const RESTART_ON_CHANGE: &str = "rhumb.dev/restart-on-change";
/// The way in which the pods of a step come beside the old ones.
pub const STEP_MODE: &str = "rhumb.dev/step-mode";
/// The nodes that a `DaemonSet` begins with.
pub const STEP_NODES: &str = "rhumb.dev/step-nodes";
/// The one who ends a step: time, or a person.
pub const STEP_PROMOTE: &str = "rhumb.dev/step-promote";
/// The time for which the pods of a step must have been ready.
pub const STEP_SOAK: &str = "rhumb.dev/step-soak";
/// The sizes of the steps of a rollout.
pub const STEPS: &str = "rhumb.dev/steps";
/// Indicates whether variables are put into an object.
pub const SUBSTITUTE: &str = "rhumb.dev/substitute";
/// The wave of an object.
pub const WAVE: &str = "rhumb.dev/wave";

/// The annotation that keeps an object as it is until a time.
pub const HOLD: &str = "rhumb.dev/hold";
/// The annotation that keeps new contents from an object, or from a source.
pub const PAUSED: &str = "rhumb.dev/paused";
/// An order as older versions read it; it is reported and not obeyed.
pub const ORDER: &str = "rhumb.dev/order";

/// The data that a workload's pods were started with.
pub const CONFIG: &str = "rhumb.dev/config";
/// The same in the pod template, so that the pods are replaced.
pub const CONFIG_HASH: &str = "rhumb.dev/config-hash";
/// The release of a chart whose made-up values an object has, and the render that made them up.
pub const GENERATED: &str = "rhumb.dev/generated";
/// The release that a hook of a chart ran for.
pub const HOOK_RELEASE: &str = "rhumb.dev/hook-release";
/// The step that a rollout is at.
pub const OVERLAY: &str = "rhumb.dev/overlay";
/// The content that was applied, with its seal.
pub const RELEASE: &str = "rhumb.dev/release";
/// The revision that an Event is about.
pub const REVISION: &str = "rhumb.dev/revision";

/// The annotation that lets a source that verifies signatures begin anew with one revision.
pub const ACCEPT: &str = "rhumb.dev/accept";
/// The label that asks the daemons of other sources to read their repositories again.
pub const OBSERVATION_REQUEST: &str = "rhumb.dev/look-request";
/// The inventory that a `ConfigMap` of orders belongs to.
pub const ORDERS_OF: &str = "rhumb.dev/orders-of";
/// The repository or folder that an inventory was made from.
pub const SOURCE: &str = "rhumb.dev/source";

/// The writer of a key, and the place where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationPlace {
    /// In a manifest: the wish of whoever writes the repository.
    Manifest,
    /// On a live object: the wish of whoever may write that object.
    LiveObject,
    /// On a live object, by rhumb itself.
    Record,
    /// On one of rhumb's own `ConfigMap`s.
    Inventory,
}

/// A key and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct AnnotationKey {
    /// The key, as [`WAVE`].
    pub key: &'static str,
    /// Its writer, and its place.
    pub place: AnnotationPlace,
    /// The values that it takes.
    pub values: &'static str,
    /// The value that counts where there is none; empty where nothing does.
    pub default: &'static str,
    /// Its effect, as Markdown in full sentences.
    pub meaning: &'static str,
}

const fn key(
    key: &'static str,
    place: AnnotationPlace,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> AnnotationKey {
    AnnotationKey { key, place, values, default, meaning }
}

/// All keys, in the order in which the reference lists them.
pub const ANNOTATIONS: [AnnotationKey; 27] = [
    key(
        WAVE,
        AnnotationPlace::Manifest,
        "a whole number, for example `\"5\"`",
        "`0`",
        "Orders the release: lower waves first. An object of a later wave is changed once those of \
         earlier waves are healthy.",
    ),
    key(
        DEPENDS_ON,
        AnnotationPlace::Manifest,
        "`Kind/name`, `group/Kind/name` or `group/namespaces/namespace/Kind/name`, separated by commas",
        "",
        "Names objects that must be healthy before this one is changed. They must be of sources that \
         the same process serves. `Deployment/web` is in the namespace of the object itself, and \
         `apps/namespaces//Deployment/web` in that of objects of the source that name none.",
    ),
    key(
        PRUNE,
        AnnotationPlace::Manifest,
        "`never`, `first`",
        "",
        "`never` keeps the object when no source names it any more. The live object and the last \
         manifest in force both count. `first` deletes it before the other changes of its unit are \
         healthy, for a rename that holds something only one object can have.",
    ),
    key(
        RECONCILE,
        AnnotationPlace::Manifest,
        "`disabled`, `enabled`",
        "`enabled`",
        "`disabled` leaves the object alone: it is neither created, changed nor repaired. It counts as \
         finished for later waves. On a live object, put there by somebody else, it means the same \
         (phase `OptedOut`) unless the source says `optOut: denied`, and always prevents pruning.",
    ),
    key(
        IGNORE_FIELDS,
        AnnotationPlace::Manifest,
        "paths (for example `.spec.replicas` or `.spec.template.spec.containers[name=web].image`) or JSON \
         pointers (`/spec/replicas`), separated by commas",
        "",
        "Leaves these fields to other writers. A new object is created with the values of its manifest; \
         after that they are neither compared nor repaired. `rhumb diff` names them.",
    ),
    key(
        RECREATE,
        AnnotationPlace::Manifest,
        "`\"true\"`, `\"false\"`",
        "`\"false\"`",
        "Allows rhumb to delete the object and create it again where an immutable field changes.",
    ),
    key(
        RESTART_ON_CHANGE,
        AnnotationPlace::Manifest,
        "`\"true\"`, `\"false\"`",
        "`\"false\"`",
        "Restarts a Deployment, StatefulSet or DaemonSet, within the budget, when data change that its \
         pods use. These are the data of ConfigMaps and Secrets, from git or elsewhere.",
    ),
    key(
        SUBSTITUTE,
        AnnotationPlace::Manifest,
        "`disabled`, `enabled`",
        "`enabled`",
        "`disabled` leaves `${NAME}` in the object unchanged: no variable is put in, without a warning.",
    ),
    key(
        STEPS,
        AnnotationPlace::Manifest,
        "counts, then percentages, each larger than the one before, for example `\"1, 25%, 50%\"`",
        "",
        "Sets how many pods (of a DaemonSet: on how many nodes) get a new template before the others. \
         Percentages are rounded up. It is an error with the strategy `Recreate` and a warning with \
         `OnDelete`.",
    ),
    key(
        STEP_SOAK,
        AnnotationPlace::Manifest,
        "a duration, for example `2m`",
        "`0s`",
        "Sets how long all new pods of a step must have been ready before the next step.",
    ),
    key(
        STEP_PROMOTE,
        AnnotationPlace::Manifest,
        "`auto`, `manual`",
        "`auto`",
        "`manual` holds each step until somebody runs `rhumb rollout promote`.",
    ),
    key(
        STEP_MODE,
        AnnotationPlace::Manifest,
        "`surge`, `in-place`",
        "`surge`",
        "Sets whether a Deployment's new pods come beside the old ones in a step, or take their place.",
    ),
    key(
        STEP_NODES,
        AnnotationPlace::Manifest,
        "a label selector of `kubectl -l`, for example `canary=true`",
        "",
        "Selects the nodes whose DaemonSet pods go first.",
    ),
    key(
        HOLD,
        AnnotationPlace::LiveObject,
        "`<token> until=<RFC 3339 time> <reason>`",
        "",
        "Keeps the object as it is until that time; what differs is shown. `rhumb hold` and `rhumb \
         release` write it. Ignored, and reported, where the source says `optOut: denied`.",
    ),
    key(
        PAUSED,
        AnnotationPlace::LiveObject,
        "`<token> <reason>`",
        "",
        "Releases nothing new of the object or, on a source's ConfigMap, of the source. Repairs and \
         rollbacks go on. `rhumb rollout pause` and `rhumb rollout resume` write it.",
    ),
    key(
        ORDER,
        AnnotationPlace::LiveObject,
        "any",
        "",
        "Is reported by an Event `OrderIgnored` and never obeyed: orders are in the ConfigMap \
         `orders.SOURCE.rhumb.dev`.",
    ),
    key(
        RELEASE,
        AnnotationPlace::Record,
        "a hash, a revision, and a seal with its number, the render and the overlay",
        "",
        "Records which content was applied, and which revision brought it. The seal is an HMAC over \
         source, kind, namespace, name, content and revision. It covers the render that made up values, \
         and the overlay of a workload too.",
    ),
    key(
        OVERLAY,
        AnnotationPlace::Record,
        "a step",
        "",
        "Records the step at which a rollout is held, as long as it is.",
    ),
    key(
        CONFIG,
        AnnotationPlace::Record,
        "an HMAC for each ConfigMap and Secret",
        "",
        "Records which data the pods of a workload with `rhumb.dev/restart-on-change` were started with.",
    ),
    key(
        CONFIG_HASH,
        AnnotationPlace::Record,
        "an HMAC",
        "",
        "Is in the pod template of such a workload, so that its own controller replaces the pods.",
    ),
    key(
        GENERATED,
        AnnotationPlace::Record,
        "a release, and a random number for the render",
        "",
        "Is on the objects of a chart with `generated: once` whose values were made up: it names the \
         render that made them. One that is missing is not created beside others of its release that \
         another render made, as their seals say.",
    ),
    key(
        HOOK_RELEASE,
        AnnotationPlace::Record,
        "a hash",
        "",
        "Is in the pod template of a Job that is a hook of a chart. It is a hash of the other objects of its \
         release, without the data of Secrets. The Job runs again when these change.",
    ),
    key(
        REVISION,
        AnnotationPlace::Record,
        "a commit",
        "",
        "Is on Events: the whole revision that an Event is about.",
    ),
    key(
        SOURCE,
        AnnotationPlace::Inventory,
        "repositories or folders",
        "",
        "Names what the inventory was made from. Another repository under the same source name prunes \
         nothing of the old one until somebody confirms it.",
    ),
    key(
        ACCEPT,
        AnnotationPlace::Inventory,
        "a whole commit id",
        "",
        "Lets a source with `verify` begin anew, once, with this revision, which must be signed itself.",
    ),
    key(
        OBSERVATION_REQUEST,
        AnnotationPlace::Inventory,
        "`true`",
        "",
        "Is a label on the inventory of a source that is about to delete what it has dropped. The \
         daemons of all other sources look at their repositories, and answer in theirs.",
    ),
    key(
        ORDERS_OF,
        AnnotationPlace::Inventory,
        "an ApplySet id",
        "",
        "Is a label on `orders.SOURCE.rhumb.dev`: it names the inventory that the orders belong to.",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_key_is_listed_once_and_has_a_meaning() {
        let keys: BTreeSet<&str> = ANNOTATIONS.iter().map(|entry| entry.key).collect();
        assert_eq!(keys.len(), ANNOTATIONS.len());
        for entry in ANNOTATIONS {
            assert!(entry.key.starts_with("rhumb.dev/"), "{}", entry.key);
            assert!(entry.meaning.ends_with('.') && !entry.values.is_empty(), "{}", entry.key);
        }
    }
}
