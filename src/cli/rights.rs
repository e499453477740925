//! The rights that a reconciler needs for what its sources hold, and no others.

mod breadth;
mod escalation;
mod namespace_scope;

use crate::object::annotations;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

pub(super) use self::namespace_scope::WatchedNamespaces;

use crate::cluster::{AccessRequest, CLUSTER_EVENTS_NAMESPACE};
use crate::config::{Config, SourceConfig, SourceMode, SubstitutionConfig, VariableHolder, VariableSecrecy};
use crate::engine::{
    CONFIG_KEY_SECRET_NAME, PrunePolicy, RecreatePolicy, has_replica_count, has_restart_on_change,
    is_workload, recreate_policy,
};
use crate::graph;
use crate::manifest::{KindScope, KindScopes};
use crate::object::{GroupKind, Object, ObjectId, annotation_text, text_at};

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const ADMISSION_GROUP: &str = "admissionregistration.k8s.io";
const CERTIFICATES_GROUP: &str = "certificates.k8s.io";

/// The verbs on each kind, wherever a source may have objects.
const WATCH_VERBS: [&str; 2] = ["list", "watch"];

/// The resources that rollout claims may name.
const CLAIMABLE_RESOURCES: [&str; 3] = ["daemonsets", "deployments", "statefulsets"];

/// The verbs on Events.
const EVENT_VERBS: [&str; 2] = ["create", "patch"];
const EVENTS_PURPOSE: &str = "Events are written";
const REMAINS_PURPOSE: &str = "a source has objects of this kind in the cluster that it no longer holds";

/// The access that a source needs to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceAccess {
    /// It only observes. A dry run takes the rights to create and patch, which are those to write,
    /// so it goes without.
    Observe,
    /// It writes, and deletes nothing but what asks to be made anew.
    Apply,
    /// It writes, and deletes what it no longer holds.
    Prune,
}

impl SourceAccess {
    /// Returns the access of a source.
    pub(super) fn of(source: &SourceConfig) -> Self {
        match (source.mode, source.prune) {
            (SourceMode::Observe, _) => Self::Observe,
            (SourceMode::Enforce, PrunePolicy::Off | PrunePolicy::Partial) => Self::Apply,
            (SourceMode::Enforce, PrunePolicy::On) => Self::Prune,
        }
    }

    /// Returns the most that any source does.
    pub(super) fn of_all(config: &Config) -> Self {
        if config.is_observe_only() { Self::Observe } else { Self::Prune }
    }

    fn is_writing(self) -> bool {
        self != Self::Observe
    }

    /// Returns the verbs on single objects.
    fn object_verbs(self, recreate: RecreatePolicy) -> &'static [&'static str] {
        match (self, recreate) {
            (Self::Observe, _) => &["get"],
            (Self::Apply, RecreatePolicy::Never) => &["get", "create", "patch"],
            (Self::Apply | Self::Prune, _) => &["get", "create", "patch", "delete"],
        }
    }
}

/// The scope of a right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RightScope {
    /// In the whole cluster.
    Cluster,
    /// In one namespace.
    Namespace(String),
}

/// The subject of a right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RightSubject {
    /// Objects.
    Objects {
        /// API group.
        group: String,
        /// As `deployments`, or `pods/eviction`.
        resource: String,
        /// The names of the objects; none for all.
        names: Option<BTreeSet<String>>,
    },
    /// A path of the server.
    Path(String),
}

/// All rights, each with the verbs of it, and what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) all: VerbsByRight,
    /// Namespaces of objects, which must be there before a Role can be.
    pub(super) namespaces: BTreeSet<String>,
    /// Bindings to policies whose parameters nobody here knows.
    pub(super) unbound: BTreeSet<String>,
    /// For the rights of a service account of sources: the rights that rhumb's own account needs
    /// for it.
    own: Option<VerbsByRight>,
}

/// The verbs of each right, and what they are for.
type VerbsByRight = BTreeMap<(RightScope, RightSubject), BTreeMap<String, &'static str>>;

/// A lookup of the name of a kind in URLs, as the server reports it.
pub(super) type PluralLookup<'a> = &'a dyn Fn(&GroupKind) -> Option<String>;

impl Rights {
    /// Returns the rights of an account as which sources act, without any yet.
    pub(super) fn of_account() -> Self {
        Self { own: Some(VerbsByRight::new()), ..Self::default() }
    }

    /// Takes over what rhumb's own account needs for sources that act as another one.
    pub(super) fn take_over(&mut self, account: &mut Self) {
        for (key, verbs) in account.own.iter_mut().flat_map(std::mem::take) {
            self.all.entry(key).or_default().extend(verbs);
        }
        self.unbound.append(&mut account.unbound);
        self.namespaces.extend(account.namespaces.iter().cloned());
    }

    /// Adds the right to act as service accounts of rhumb's own namespace.
    pub(super) fn add_accounts(&mut self, system: &str, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let names = Some(names.into_iter().collect());
        let accounts =
            RightSubject::Objects { group: String::new(), resource: "serviceaccounts".to_owned(), names };
        let why = "sources act as these service accounts";
        self.add(RightScope::Namespace(system.to_owned()), accounts, &["impersonate"], why);
    }

    /// Returns the rights of rhumb itself, for the source that needs most.
    pub(super) fn of_rhumb(system: &str, access: SourceAccess) -> Self {
        let mut rights = Self::default();
        let here = || RightScope::Namespace(system.to_owned());
        let own = "the sources' inventories and the rollout budget";
        rights.add(here(), objects("", "configmaps"), &["get", "list", "watch"], own);
        if access.is_writing() {
            rights.add(here(), objects("", "configmaps"), &["create", "patch"], own);
            rights.add(here(), objects("", "events"), &EVENT_VERBS, EVENTS_PURPOSE);
        }
        let names = Some(["kube-system".to_owned()].into());
        let identity =
            RightSubject::Objects { group: String::new(), resource: "namespaces".to_owned(), names };
        rights.add(RightScope::Cluster, identity, &["get"], "its uid names the cluster");
        let seals = "the key that seals releases and hashes of Secrets";
        rights.add(here(), key(), &["get"], seals);
        if access.is_writing() {
            // A name is not known to the server when something is created.
            rights.add(here(), objects("", "secrets"), &["create"], seals);
        }
        rights
    }

    /// Adds what replicas need that share the sources.
    pub(super) fn add_leases(&mut self, system: &str) {
        let here = RightScope::Namespace(system.to_owned());
        let why = "replicas share the sources";
        self.add(here, objects("coordination.k8s.io", "leases"), &["list", "create", "patch", "delete"], why);
    }

    /// Adds what is needed to follow the sources in the cluster, whatever they hold.
    pub(super) fn add_source_resources(&mut self, system: &str) {
        let here = || RightScope::Namespace(system.to_owned());
        let why = "sources in the cluster";
        self.add(here(), objects("rhumb.dev", "sources"), &["list"], why);
        self.add(here(), objects("rhumb.dev", "sources/status"), &["patch"], "their status is written");
        let finalizer = "one with `deletionPolicy: Delete` has a finalizer";
        self.add(here(), objects("rhumb.dev", "sources"), &["patch"], finalizer);
    }

    /// Adds what a source needs.
    pub(super) fn add_source(
        &mut self,
        access: SourceAccess,
        watched: &WatchedNamespaces,
        declared: &[Object],
        plural: PluralLookup<'_>,
    ) {
        let plural = |kind: &GroupKind| plural(kind).unwrap_or_else(|| guess_plural(&kind.kind));
        for object in declared {
            let kind = object.id.group_kind();
            self.add_watch(watched, object, &plural(&kind));
            self.add_object(access, object, &plural(&kind));
            if is_workload(&object.id) {
                self.add_workload(access, object);
            }
            if has_replica_count(&object.id, &object.body) {
                let ceded = "replicas that an autoscaler owns are left to it";
                self.add_own(
                    RightScope::Cluster,
                    objects("autoscaling", "horizontalpodautoscalers"),
                    &WATCH_VERBS,
                    ceded,
                );
            }
            if access.is_writing() {
                self.add_granted(object);
                self.add_admission(object, &plural);
            }
            self.add_proof_of(&kind);
        }
        let has = |is_such: fn(&ObjectId) -> bool| declared.iter().any(|object| is_such(&object.id));
        if access.is_writing() && has(is_workload) {
            let claimed =
                "claims of other daemons on the rollout budget count as long as their workloads roll out";
            for resource in CLAIMABLE_RESOURCES {
                self.add_own(RightScope::Cluster, objects("apps", resource), &["list"], claimed);
            }
        }
    }

    /// Adds the reading of objects that hold variables, where the source does not hold them itself.
    /// A Secret whose values are secrets is not read.
    pub(super) fn add_variables(&mut self, config: &SubstitutionConfig, declared: &[Object]) {
        let is_declared = |holder: &VariableHolder| {
            let is_it = |id: &ObjectId| {
                id.is("", holder.kind.as_str())
                    && id.name() == holder.name.as_str()
                    && id.namespace() == Some(holder.namespace.as_str())
            };
            declared.iter().any(|object| is_it(&object.id))
        };
        let requested = config.from.iter().filter(|holder| holder.secrecy == VariableSecrecy::Open);
        for holder in requested.filter(|holder| !is_declared(holder)) {
            let names = Some([holder.name.to_string()].into());
            let resource = holder.kind.resource().to_owned();
            let subject = RightSubject::Objects { group: String::new(), resource, names };
            let right_scope = RightScope::Namespace(holder.namespace.to_string());
            self.add(right_scope, subject, &["get"], "variables are taken from this object");
        }
    }

    /// Adds what is needed for a kind of which a source has objects in the cluster that it no
    /// longer holds.
    pub(super) fn add_remaining_kind(
        &mut self,
        watched: &WatchedNamespaces,
        scope: KindScope,
        kind: &GroupKind,
        resource: &str,
    ) {
        for right_scope in watched.right_scopes(scope) {
            self.add(right_scope, objects(&kind.group, resource), &WATCH_VERBS, REMAINS_PURPOSE);
        }
        self.add_proof_of(kind);
    }

    /// Adds what is needed for such objects, in a namespace or, where none is named, in the
    /// cluster. They are defended until they are deleted.
    pub(super) fn add_remaining(
        &mut self,
        access: SourceAccess,
        kind: &GroupKind,
        resource: &str,
        namespace: Option<&str>,
    ) {
        let right_scope =
            namespace.map_or(RightScope::Cluster, |name| RightScope::Namespace(name.to_owned()));
        self.add(
            right_scope,
            objects(&kind.group, resource),
            access.object_verbs(RecreatePolicy::Never),
            REMAINS_PURPOSE,
        );
        if access.is_writing() {
            let home = namespace.unwrap_or(CLUSTER_EVENTS_NAMESPACE).to_owned();
            self.add_own(RightScope::Namespace(home), objects("", "events"), &EVENT_VERBS, EVENTS_PURPOSE);
        }
    }

    /// Adds what proves that a kind is gone, unless Kubernetes brings it along.
    pub(super) fn add_proof_of(&mut self, kind: &GroupKind) {
        if is_builtin(kind) {
            return;
        }
        let proof = "the proof that a kind is gone, without which nothing is pruned";
        for (group, resource) in
            [("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")]
        {
            self.add_own(RightScope::Cluster, objects(group, resource), &["list"], proof);
        }
    }

    fn add(&mut self, right_scope: RightScope, subject: RightSubject, verbs: &[&str], why: &'static str) {
        note(&mut self.all, right_scope, subject, verbs, why);
    }

    /// Adds what rhumb does by its own account, whoever acts for the source.
    fn add_own(&mut self, right_scope: RightScope, subject: RightSubject, verbs: &[&str], why: &'static str) {
        note(self.own.as_mut().unwrap_or(&mut self.all), right_scope, subject, verbs, why);
    }

    /// Adds the watch of an object's kind, in each place where its source may have objects.
    fn add_watch(&mut self, watched: &WatchedNamespaces, object: &Object, resource: &str) {
        let (scope, why) = match (object.id.namespace(), watched) {
            (None, _) => (KindScope::Cluster, "objects of this kind are watched"),
            (Some(_), WatchedNamespaces::Cluster) => {
                (KindScope::Namespaced, "objects of this kind are watched in all namespaces")
            }
            (Some(_), WatchedNamespaces::Namespaces(names)) => {
                self.namespaces.extend(names.iter().map(ToString::to_string));
                (KindScope::Namespaced, "objects of this kind are watched in each namespace of the source")
            }
        };
        for right_scope in watched.right_scopes(scope) {
            self.add(right_scope, objects(object.id.group(), resource), &WATCH_VERBS, why);
        }
    }

    fn add_object(&mut self, access: SourceAccess, object: &Object, resource: &str) {
        let right_scope = self.right_scope(object);
        let verbs = access.object_verbs(recreate_policy(&object.body));
        self.add(
            right_scope,
            objects(object.id.group(), resource),
            verbs,
            "objects of this kind are in the source",
        );
        if access.is_writing() {
            let home = object.id.namespace().unwrap_or(CLUSTER_EVENTS_NAMESPACE).to_owned();
            self.add_own(RightScope::Namespace(home), objects("", "events"), &EVENT_VERBS, EVENTS_PURPOSE);
        }
    }

    fn right_scope(&mut self, object: &Object) -> RightScope {
        let Some(namespace) = object.id.namespace() else { return RightScope::Cluster };
        self.namespaces.insert(namespace.to_owned());
        RightScope::Namespace(namespace.to_owned())
    }

    fn add_workload(&mut self, access: SourceAccess, object: &Object) {
        let right_scope = self.right_scope(object);
        let pods = "its pods show the progress of a rollout";
        self.add(right_scope.clone(), objects("", "pods"), &WATCH_VERBS, pods);
        let (events, why) = (objects("", "events"), "Events show why pods cannot be created");
        match object.id.kind() {
            "Deployment" => {
                self.add(right_scope.clone(), events, &["list"], why);
                self.add(right_scope.clone(), objects("apps", "replicasets"), &WATCH_VERBS, pods);
            }
            kind => {
                self.add(right_scope.clone(), events, &WATCH_VERBS, why);
                self.add(right_scope.clone(), objects("apps", "controllerrevisions"), &["list"], pods);
                if kind == "StatefulSet" && access.is_writing() {
                    let stuck = "a pod that would block a StatefulSet forever is deleted";
                    self.add(right_scope.clone(), objects("", "pods"), &["get", "delete"], stuck);
                }
            }
        }
        let steps = !annotation_text(&object.body, annotations::STEPS).is_empty();
        if steps && object.id.kind() == "Deployment" && access.is_writing() {
            let shared = "a step takes back the pods that a scale gave its template";
            self.add(right_scope.clone(), objects("apps", "replicasets/scale"), &["patch"], shared);
        }
        if steps && object.id.kind() == "DaemonSet" {
            self.add_own(RightScope::Cluster, objects("", "nodes"), &WATCH_VERBS, "steps go node by node");
            if access.is_writing() {
                let evict = "steps evict pods";
                self.add(right_scope.clone(), objects("", "pods/eviction"), &["create"], evict);
                // Where the server says that something else was changed, it is looked what.
                self.add(right_scope.clone(), objects("", "pods"), &["get"], evict);
            }
        }
        if has_restart_on_change(&object.body) {
            // Only data that a pod uses are read: Secrets are the widest of all rights.
            for used in graph::configuration(&object.id, &object.body) {
                let why = "workloads are restarted when these change";
                self.add(
                    right_scope.clone(),
                    objects("", &guess_plural(used.kind())),
                    &["get", "list", "watch"],
                    why,
                );
            }
        }
    }

    /// Returns the access reviews that ask for each right, with the reason for the right.
    pub(super) fn access_reviews(&self) -> Vec<(AccessRequest, &'static str)> {
        let mut reviews = Vec::new();
        for ((right_scope, subject), verbs) in &self.all {
            for (verb, why) in verbs {
                reviews.extend(
                    access_requests(right_scope, subject, verb).into_iter().map(|access| (access, *why)),
                );
            }
        }
        reviews
    }

    /// Returns the rights among these to which a question was answered with no.
    pub(super) fn denied_rights(&self, denied: &BTreeSet<AccessRequest>) -> Self {
        let mut lacking = Self { all: BTreeMap::new(), ..self.clone() };
        for ((right_scope, subject), verbs) in &self.all {
            let is_denied = |verb: &str| {
                access_requests(right_scope, subject, verb).iter().any(|access| denied.contains(access))
            };
            let verbs: BTreeMap<String, &'static str> = verbs
                .iter()
                .filter(|(verb, _)| is_denied(verb))
                .map(|(verb, why)| (verb.clone(), *why))
                .collect();
            if !verbs.is_empty() {
                lacking.all.insert((right_scope.clone(), subject.clone()), verbs);
            }
        }
        lacking
    }
}

fn note(
    all: &mut VerbsByRight,
    right_scope: RightScope,
    subject: RightSubject,
    verbs: &[&str],
    why: &'static str,
) {
    let known = all.entry((right_scope, subject)).or_default();
    for verb in verbs {
        known.entry((*verb).to_owned()).or_insert(why);
    }
}

fn access_requests(right_scope: &RightScope, subject: &RightSubject, verb: &str) -> Vec<AccessRequest> {
    let verb = verb.to_owned();
    let namespace = match right_scope {
        RightScope::Cluster => None,
        RightScope::Namespace(namespace) => Some(namespace.clone()),
    };
    match subject {
        RightSubject::Path(path) => vec![AccessRequest::Path { verb, path: path.clone() }],
        RightSubject::Objects { group, resource, names } => {
            let access = |name: Option<&String>| AccessRequest::Objects {
                verb: verb.clone(),
                group: group.clone(),
                resource: resource.clone(),
                namespace: namespace.clone(),
                name: name.cloned(),
            };
            match names {
                None => vec![access(None)],
                Some(names) => names.iter().map(|name| access(Some(name))).collect(),
            }
        }
    }
}

static BUILTIN_SCOPES: LazyLock<KindScopes> = LazyLock::new(KindScopes::builtin);

fn is_builtin(kind: &GroupKind) -> bool {
    BUILTIN_SCOPES.get(kind).is_some()
}

/// Returns the key for seals.
fn key() -> RightSubject {
    let names = Some([CONFIG_KEY_SECRET_NAME.to_owned()].into());
    RightSubject::Objects { group: String::new(), resource: "secrets".to_owned(), names }
}

fn objects(group: &str, resource: &str) -> RightSubject {
    RightSubject::Objects { group: group.to_owned(), resource: resource.to_owned(), names: None }
}

fn named_object(group: &str, resource: &str, name: &str) -> RightSubject {
    let names = Some([name.to_owned()].into());
    RightSubject::Objects { group: group.to_owned(), resource: resource.to_owned(), names }
}

/// Returns the names of the kinds that sources themselves define.
pub(super) fn defined_plurals<'a>(declared: impl Iterator<Item = &'a Object>) -> BTreeMap<GroupKind, String> {
    let definitions = declared.filter(|object| object.id.kind() == "CustomResourceDefinition");
    let name = |object: &Object| {
        let text = |path: &[&str]| text_at(&object.body, path).to_owned();
        let kind = GroupKind::new(&text(&["spec", "group"]), &text(&["spec", "names", "kind"]));
        (kind, text(&["spec", "names", "plural"]))
    };
    // A name that no server accepts would become a right of its own: to `*`, to a subresource, to
    // another group's kind.
    let right = |(kind, plural): &(GroupKind, String)| {
        is_plain(plural)
            && is_group(&kind.group)
            && kind.group.contains('.')
            && !BUILTIN_SCOPES.has_group(&kind.group)
    };
    definitions.map(name).filter(right).collect()
}

/// Returns the name of a kind in URLs as Kubernetes itself guesses it.
pub(super) fn guess_plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.as_str() {
        "endpoints" => kind,
        _ if kind.ends_with('s') || kind.ends_with("ch") || kind.ends_with('x') => kind + "es",
        _ => match kind.strip_suffix('y') {
            Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
            _ => kind + "s",
        },
    }
}

/// Returns whether a text may be in a role as the name of a resource, or a part of one of a
/// group.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(plain)
}

fn is_group(text: &str) -> bool {
    text.is_empty() || text.split('.').all(is_plain)
}

#[cfg(test)]
mod tests;
