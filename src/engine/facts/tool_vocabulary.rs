//! The words of other tools on an object, and what each means here.
//!
//! Owns the one table from which words are read, off manifests and off live objects, and from which
//! `docs/reference/annotations.md` is generated.
//!
//! **Invariant:** a word by which another tool would do something else with the object, and that
//! cannot be carried over, is never passed over. It holds its object back.

use crate::engine::{PruneTiming, ReconcilePolicy};
use crate::manifest::FLUX_SUBSTITUTE;
use crate::object::annotations;

/// The map of an object's metadata that a word is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetadataMap {
    /// In a label.
    Label,
    /// In an annotation.
    Annotation,
}

/// The maps in which a tool reads its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetadataMaps {
    Annotation,
    Label,
    Either,
}

/// The way in which a tool compares the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueMatch {
    /// Letter by letter.
    Exact,
    /// In any case.
    AnyCase,
    /// Each part between commas, letter by letter.
    List,
    /// As a whole number.
    Number,
}

/// The effect of a word of another tool on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnotationEffect {
    /// The object stays when no source names it any more, or waits for a person.
    Keep(PruneTiming),
    /// The object is left alone, or only created.
    Leave(ReconcilePolicy),
    /// The object may be deleted and created again.
    Recreate,
    /// It is read elsewhere, and means this word of ours.
    Same(&'static str),
    /// It changes nothing here, for this reason.
    Ignored(&'static str),
    /// It cannot be carried over, for this reason.
    HeldBack(&'static str),
}

/// One word of another tool.
#[derive(Debug)]
pub(crate) struct ToolAnnotation {
    /// Its key; one that ends in `/` stands for all keys that begin so.
    pub key: &'static str,
    maps: MetadataMaps,
    spelling: ValueMatch,
    values: &'static [(&'static str, AnnotationEffect)],
    /// The meaning of any other value.
    otherwise: AnnotationEffect,
}

const KEEP: AnnotationEffect = AnnotationEffect::Keep(PruneTiming::Never);
const KEEP_UNTIL_CONFIRMED: AnnotationEffect = AnnotationEffect::Keep(PruneTiming::OnConfirmation);
const LEAVE_ALONE: AnnotationEffect = AnnotationEffect::Leave(ReconcilePolicy::Disabled);
const APPLY_ONCE: AnnotationEffect = AnnotationEffect::Leave(ReconcilePolicy::OnlyCreate);
const DEFAULT_BEHAVIOUR: AnnotationEffect = AnnotationEffect::Ignored("this is the default here");
const MISSING_KIND: AnnotationEffect = AnnotationEffect::Ignored("an object waits for its kind");
const ONE_SOURCE: AnnotationEffect = AnnotationEffect::Ignored("an object belongs to one source");
const NOT_UNDERSTOOD: AnnotationEffect = AnnotationEffect::HeldBack("is not understood");
const OWNER_MARK: AnnotationEffect = AnnotationEffect::Ignored("identifies the owner of a live object");
const HOOKS_ONLY: AnnotationEffect = AnnotationEffect::Ignored("only concerns hooks");
const DISPLAY_ONLY: AnnotationEffect =
    AnnotationEffect::Ignored("only affects what Argo CD shows or compares");
const OWN_BEHAVIOUR: AnnotationEffect = AnnotationEffect::Ignored("concerns Argo CD's own objects");
const HOOK_REASON: &str = "asks to run it as a hook, and rhumb runs only the hooks of charts that it renders";

/// The words of Argo CD that make an object a hook, and say when that is deleted.
pub(crate) const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
pub(crate) const ARGO_HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// The word of Argo CD that leaves a hook alone.
pub(crate) const ARGO_HOOK_SKIP: &str = "Skip";

/// All words of other tools that are known.
pub(crate) const TOOL_WORDS: &[ToolAnnotation] = &[
    list("argocd.argoproj.io/sync-options", ARGO_OPTIONS, NOT_UNDERSTOOD),
    list(ARGO_HOOK, &[(ARGO_HOOK_SKIP, LEAVE_ALONE)], AnnotationEffect::HeldBack(HOOK_REASON)),
    ToolAnnotation {
        spelling: ValueMatch::Number,
        ..exact_word("argocd.argoproj.io/sync-wave", &[], AnnotationEffect::Same(annotations::WAVE))
    },
    any_value_word(ARGO_HOOK_DELETE_POLICY, HOOKS_ONLY),
    any_value_word("argocd.argoproj.io/compare-options", DISPLAY_ONLY),
    any_value_word("argocd.argoproj.io/ignore-healthcheck", DISPLAY_ONLY),
    any_value_word("argocd.argoproj.io/ignore-resource-updates", DISPLAY_ONLY),
    any_value_word("argocd.argoproj.io/ignore-restart-policy", DISPLAY_ONLY),
    any_value_word("argocd.argoproj.io/ignore-default-links", DISPLAY_ONLY),
    any_value_word("argocd.argoproj.io/health-aggregate-overrides", DISPLAY_ONLY),
    any_value_word("argocd.argoproj.io/tracking-id", OWNER_MARK),
    any_value_word("argocd.argoproj.io/installation-id", OWNER_MARK),
    label_word("argocd.argoproj.io/instance", OWNER_MARK),
    label_word("argocd.argoproj.io/managed-by", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/managed-by-url", OWN_BEHAVIOUR),
    label_word("argocd.argoproj.io/secret-type", OWN_BEHAVIOUR),
    label_word("argocd.argoproj.io/auto-label-cluster-info", OWN_BEHAVIOUR),
    label_word("argocd.argoproj.io/kubernetes-version", OWN_BEHAVIOUR),
    label_word("argocd.argoproj.io/application-set-name", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/application-set-refresh", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/client-side-apply-migration-manager", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/deletion-approved", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/hydrate", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/hydrate-timestamp", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/manifest-generate-paths", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/refresh", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/refresh-timestamp", OWN_BEHAVIOUR),
    any_value_word("argocd.argoproj.io/skip-reconcile", OWN_BEHAVIOUR),
    flux_word("kustomize.toolkit.fluxcd.io/prune", &[("disabled", KEEP), ("enabled", DEFAULT_BEHAVIOUR)]),
    flux_word(
        "kustomize.toolkit.fluxcd.io/reconcile",
        &[("disabled", LEAVE_ALONE), ("enabled", DEFAULT_BEHAVIOUR)],
    ),
    flux_word(
        "kustomize.toolkit.fluxcd.io/ssa",
        &[
            ("Ignore", LEAVE_ALONE),
            ("IfNotPresent", APPLY_ONCE),
            ("Override", DEFAULT_BEHAVIOUR),
            ("Merge", DEFAULT_BEHAVIOUR),
        ],
    ),
    flux_word(
        "kustomize.toolkit.fluxcd.io/force",
        &[("enabled", AnnotationEffect::Recreate), ("disabled", DEFAULT_BEHAVIOUR)],
    ),
    flux_word(
        FLUX_SUBSTITUTE,
        &[
            ("disabled", AnnotationEffect::Ignored("`${VAR}` in it is meant literally")),
            ("enabled", DEFAULT_BEHAVIOUR),
        ],
    ),
    label_word("kustomize.toolkit.fluxcd.io/name", OWNER_MARK),
    label_word("kustomize.toolkit.fluxcd.io/namespace", OWNER_MARK),
    any_value_word("kustomize.toolkit.fluxcd.io/checksum", OWNER_MARK),
    label_word("helm.toolkit.fluxcd.io/name", OWNER_MARK),
    label_word("helm.toolkit.fluxcd.io/namespace", OWNER_MARK),
    flux_word("helm.toolkit.fluxcd.io/driftDetection", &[("enabled", DEFAULT_BEHAVIOUR)]),
    label_word("toolkit.fluxcd.io/tenant", AnnotationEffect::Ignored("names a tenant of Flux")),
    label_word("toolkit.fluxcd.io/role", AnnotationEffect::Ignored("only lets Flux's objects be selected")),
    any_value_word("event.toolkit.fluxcd.io/", AnnotationEffect::Ignored("only appears in Flux's events")),
    flux_word("fluxcd.controlplane.io/prune", &[("disabled", KEEP), ("enabled", DEFAULT_BEHAVIOUR)]),
    flux_word(
        "fluxcd.controlplane.io/reconcile",
        &[("disabled", LEAVE_ALONE), ("enabled", DEFAULT_BEHAVIOUR)],
    ),
    ToolAnnotation {
        maps: MetadataMaps::Annotation,
        ..flux_word("helm.sh/resource-policy", &[("keep", KEEP)])
    },
    any_value_word("helm.sh/hook", AnnotationEffect::HeldBack(HOOK_REASON)),
    any_value_word("helm.sh/hook-weight", HOOKS_ONLY),
    any_value_word("helm.sh/hook-delete-policy", HOOKS_ONLY),
    any_value_word("helm.sh/hook-output-log-policy", HOOKS_ONLY),
    exact_word("client.lifecycle.config.k8s.io/deletion", &[("detach", KEEP)], NOT_UNDERSTOOD),
    exact_word("client.lifecycle.config.k8s.io/mutation", &[("ignore", APPLY_ONCE)], NOT_UNDERSTOOD),
    exact_word("cli-utils.sigs.k8s.io/on-remove", &[("keep", KEEP)], NOT_UNDERSTOOD),
    any_value_word("config.kubernetes.io/depends-on", AnnotationEffect::Same(annotations::DEPENDS_ON)),
    exact_word("kapp.k14s.io/delete-strategy", &[("orphan", KEEP), ("", DEFAULT_BEHAVIOUR)], NOT_UNDERSTOOD),
    any_value_word("kapp.k14s.io/noop", LEAVE_ALONE),
    any_value_word("kapp.k14s.io/exists", LEAVE_ALONE),
    exact_word("kapp.k14s.io/update-strategy", &[("skip", APPLY_ONCE)], DEFAULT_BEHAVIOUR),
    any_value_word("kapp.k14s.io/create-strategy", AnnotationEffect::Ignored("use `adopt` of the source")),
    any_value_word(
        "kapp.k14s.io/owned-for-deletion",
        AnnotationEffect::Ignored("asks to delete what controllers create"),
    ),
];

const ARGO_OPTIONS: &[(&str, AnnotationEffect)] = &[
    ("Prune=false", KEEP),
    ("Prune=confirm", KEEP_UNTIL_CONFIRMED),
    ("Prune=true", DEFAULT_BEHAVIOUR),
    // It speaks of the end of the whole Application. Of a doubt about a deletion the object has the
    // benefit.
    ("Delete=false", KEEP),
    ("Delete=confirm", KEEP_UNTIL_CONFIRMED),
    ("Delete=true", DEFAULT_BEHAVIOUR),
    ("Force=true", AnnotationEffect::Recreate),
    ("Force=false", DEFAULT_BEHAVIOUR),
    ("Replace=true", AnnotationEffect::Ignored("server-side apply needs no replace")),
    ("Replace=false", DEFAULT_BEHAVIOUR),
    ("ServerSideApply=true", DEFAULT_BEHAVIOUR),
    ("ServerSideApply=false", AnnotationEffect::Ignored("everything is applied by the server")),
    ("ClientSideApplyMigration=true", DEFAULT_BEHAVIOUR),
    (
        "ClientSideApplyMigration=false",
        AnnotationEffect::Ignored("fields that kubectl set are always taken over"),
    ),
    ("Validate=true", DEFAULT_BEHAVIOUR),
    ("Validate=false", AnnotationEffect::Ignored("the API server checks everything")),
    ("SkipDryRunOnMissingResource=true", MISSING_KIND),
    ("SkipDryRunOnMissingResource=false", MISSING_KIND),
    ("ApplyOutOfSyncOnly=true", DEFAULT_BEHAVIOUR),
    ("ApplyOutOfSyncOnly=false", AnnotationEffect::Ignored("only what differs is applied")),
    ("PruneLast=true", DEFAULT_BEHAVIOUR),
    ("PruneLast=false", AnnotationEffect::Ignored("a deletion comes after the changes of its unit")),
    ("PrunePropagationPolicy=foreground", AnnotationEffect::Ignored("deletions are in the background")),
    ("PrunePropagationPolicy=background", DEFAULT_BEHAVIOUR),
    ("CreateNamespace=true", AnnotationEffect::Ignored("a namespace is created by its own manifest")),
    ("CreateNamespace=false", DEFAULT_BEHAVIOUR),
    ("FailOnSharedResource=true", ONE_SOURCE),
    ("FailOnSharedResource=false", ONE_SOURCE),
    ("RespectIgnoreDifferences=true", AnnotationEffect::Ignored("use `rhumb.dev/ignore-fields`")),
    ("RespectIgnoreDifferences=false", DEFAULT_BEHAVIOUR),
    ("", DEFAULT_BEHAVIOUR),
];

const fn exact_word(
    key: &'static str,
    values: &'static [(&'static str, AnnotationEffect)],
    otherwise: AnnotationEffect,
) -> ToolAnnotation {
    ToolAnnotation { key, maps: MetadataMaps::Annotation, spelling: ValueMatch::Exact, values, otherwise }
}

const fn list(
    key: &'static str,
    values: &'static [(&'static str, AnnotationEffect)],
    otherwise: AnnotationEffect,
) -> ToolAnnotation {
    ToolAnnotation { spelling: ValueMatch::List, ..exact_word(key, values, otherwise) }
}

/// Returns a word of which any value means the same.
const fn any_value_word(key: &'static str, meaning: AnnotationEffect) -> ToolAnnotation {
    exact_word(key, &[], meaning)
}

const fn label_word(key: &'static str, meaning: AnnotationEffect) -> ToolAnnotation {
    ToolAnnotation { maps: MetadataMaps::Label, ..any_value_word(key, meaning) }
}

/// Returns a word of Flux, which reads its words from labels too, in any case.
const fn flux_word(key: &'static str, values: &'static [(&'static str, AnnotationEffect)]) -> ToolAnnotation {
    ToolAnnotation {
        maps: MetadataMaps::Either,
        spelling: ValueMatch::AnyCase,
        ..exact_word(key, values, NOT_UNDERSTOOD)
    }
}

impl ToolAnnotation {
    /// Finds the word of a key.
    pub(crate) fn of(key: &str) -> Option<&'static Self> {
        TOOL_WORDS.iter().find(|word| word.key == key || word.key.ends_with('/') && key.starts_with(word.key))
    }

    /// Returns each part of a value with its meaning. Nothing is returned for a map that the tool
    /// does not read.
    fn read<'a>(&self, carrier: MetadataMap, value: &'a str) -> Vec<(&'a str, AnnotationEffect)> {
        let is_read = match self.maps {
            MetadataMaps::Either => true,
            MetadataMaps::Annotation => carrier == MetadataMap::Annotation,
            MetadataMaps::Label => carrier == MetadataMap::Label,
        };
        if !is_read {
            return Vec::new();
        }
        match self.spelling {
            ValueMatch::List => {
                value.split(',').map(|part| (part.trim(), self.meaning(part.trim()))).collect()
            }
            _ => vec![(value, self.meaning(value))],
        }
    }

    fn meaning(&self, value: &str) -> AnnotationEffect {
        let same = |spelled: &str| match self.spelling {
            ValueMatch::AnyCase => spelled.eq_ignore_ascii_case(value.trim()),
            _ => spelled == value,
        };
        if self.spelling == ValueMatch::Number && value.trim().parse::<i32>().is_err() {
            return AnnotationEffect::HeldBack("is no whole number");
        }
        let listed = self.values.iter().find(|(spelled, _)| same(spelled));
        listed.map_or(self.otherwise, |(_, meaning)| *meaning)
    }

    /// Returns each value that is distinguished, with its meaning; `*` for any other.
    pub(crate) fn meanings(&self) -> impl Iterator<Item = (&'static str, AnnotationEffect)> {
        self.values.iter().copied().chain([("*", self.otherwise)])
    }

    /// Returns true where it says something about the object's deletion.
    fn is_about_deletion(&self) -> bool {
        self.values.iter().any(|(_, meaning)| matches!(meaning, AnnotationEffect::Keep(_)))
    }
}

/// Returns true for a word of Argo CD or Flux, known or not.
fn is_reserved(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain == "argocd.argoproj.io" || domain == "toolkit.fluxcd.io" || domain.ends_with(".toolkit.fluxcd.io")
}

/// Returns why a label or annotation holds its object back, in words that follow the key, and a
/// hint.
pub(in crate::engine) fn hold_back_reason(
    carrier: MetadataMap,
    key: &str,
    value: &str,
) -> Option<(String, &'static str)> {
    let Some(word) = ToolAnnotation::of(key) else {
        return is_reserved(key)
            .then(|| ("is not understood".to_owned(), "remove it, or use an annotation of rhumb.dev"));
    };
    let hint = if word.key.ends_with("/hook") {
        "remove the object from the source, or remove the annotation to apply it like any other object"
    } else {
        "write it as its tool reads it, or remove it"
    };
    let parts = word.read(carrier, value);
    parts.into_iter().find_map(|(part, meaning)| match meaning {
        AnnotationEffect::HeldBack(why) => Some((format!("is {part:?}, which {why}"), hint)),
        _ => None,
    })
}

/// The requests in the words on an object, those of other tools and ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolRequests {
    /// Its fate when no source names it any more.
    pub prune_timing: PruneTiming,
    /// The treatment that it asks for while a source names it.
    pub reconcile: ReconcilePolicy,
    /// The word that asks for that.
    pub left_by: Option<&'static str>,
    /// It may be deleted and created again.
    pub recreates: bool,
}

impl ToolRequests {
    /// Reads all labels and annotations of an object.
    ///
    /// A value that cannot be read and is about deletion counts as a question to a person: nothing
    /// is deleted on doubt.
    pub(crate) fn of<'a>(marks: impl Iterator<Item = (MetadataMap, &'a str, &'a str)>) -> Self {
        let mut requests = Self::default();
        for (carrier, key, value) in marks {
            requests.read_ours(carrier, key, value);
            let Some(word) = ToolAnnotation::of(key) else { continue };
            for (_, meaning) in word.read(carrier, value) {
                match meaning {
                    AnnotationEffect::Keep(keep) => {
                        requests.prune_timing = requests.prune_timing.strictest(keep);
                    }
                    AnnotationEffect::Leave(reconcile) => requests.leave(reconcile, word.key),
                    AnnotationEffect::Recreate => requests.recreates = true,
                    AnnotationEffect::HeldBack(_) if word.is_about_deletion() => {
                        requests.prune_timing = requests.prune_timing.strictest(PruneTiming::OnConfirmation);
                    }
                    AnnotationEffect::Same(_)
                    | AnnotationEffect::Ignored(_)
                    | AnnotationEffect::HeldBack(_) => {}
                }
            }
        }
        requests
    }

    fn read_ours(&mut self, carrier: MetadataMap, key: &str, value: &str) {
        match (carrier, key, value) {
            (MetadataMap::Label, ..) => {}
            (_, annotations::PRUNE, "never") => {
                self.prune_timing = self.prune_timing.strictest(PruneTiming::Never);
            }
            (_, annotations::PRUNE, "first") => {
                self.prune_timing = self.prune_timing.strictest(PruneTiming::BeforeUnit);
            }
            (_, annotations::PRUNE, _) => {
                self.prune_timing = self.prune_timing.strictest(PruneTiming::OnConfirmation);
            }
            (_, annotations::RECONCILE, "disabled") => {
                self.leave(ReconcilePolicy::Disabled, annotations::RECONCILE);
            }
            (_, annotations::RECREATE, "true") => self.recreates = true,
            _ => {}
        }
    }

    /// Notes who is to be left alone, which is not pruned either.
    fn leave(&mut self, reconcile: ReconcilePolicy, word: &'static str) {
        if reconcile == ReconcilePolicy::Disabled {
            self.prune_timing = self.prune_timing.strictest(PruneTiming::Never);
        }
        if self.reconcile != ReconcilePolicy::Disabled {
            (self.reconcile, self.left_by) = (reconcile, Some(word));
        }
    }
}
