//! Discovery: which kinds the server serves, in which versions, and what it does not answer now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::client::{APIGroupDiscovery, APIGroupDiscoveryList, APIVersionDiscovery};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use crate::manifest;
use crate::object::{ErrorClass, GroupKind, Gvk};

/// Both forms of the aggregated document: `v2` since Kubernetes 1.30, `v2beta1` since 1.27.
const AGGREGATED_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Indicates whether a kind's objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServedScope {
    /// One object per name in the whole cluster.
    Cluster,
    /// One object per namespace and name.
    Namespaced,
}

impl From<ServedScope> for manifest::KindScope {
    fn from(scope: ServedScope) -> Self {
        match scope {
            ServedScope::Cluster => Self::Cluster,
            ServedScope::Namespaced => Self::Namespaced,
        }
    }
}

/// One kind in one version, as the server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// The name in URLs, for example `deployments`.
    pub plural: Arc<str>,
    /// The scope of its objects.
    pub scope: ServedScope,
    /// The verbs, for example `list` or `patch`.
    pub verbs: BTreeSet<Arc<str>>,
}

impl ServedKind {
    /// Returns whether the server allows this verb on the kind's objects.
    pub fn is_allowed(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }
}

/// The answer of discovery about one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindLookup {
    /// It is served.
    Served(Arc<ServedKind>),
    /// It is not served in this version.
    Unserved {
        /// The versions in which the kind is served, preferred first; empty when the kind is not
        /// known.
        versions: Vec<Arc<str>>,
    },
    /// The server did not answer: the group's own server is down.
    Unknown,
}

/// The kinds of one cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTable {
    /// The versions of each kind, preferred first.
    served: BTreeMap<GroupKind, Vec<Arc<ServedKind>>>,
    /// Group and version pairs that the aggregated document marks as stale.
    unknown: BTreeSet<(Arc<str>, Arc<str>)>,
    /// The version of the server, or the reason for which it is not known; none where it was not
    /// asked.
    server: Option<Result<Arc<str>, Arc<str>>>,
    /// The reason for which the server is not ready, and may list only some of its kinds.
    unready: Option<Arc<str>>,
}

impl KindTable {
    /// Looks up whether a kind is served in exactly this version.
    pub fn get(&self, gvk: &Gvk) -> KindLookup {
        let versions = self.served.get(&gvk.group_kind()).map_or(&[][..], Vec::as_slice);
        if let Some(kind) = versions.iter().find(|kind| kind.gvk.version == gvk.version) {
            return KindLookup::Served(kind.clone());
        }
        if self.unknown.contains(&(gvk.group.clone(), gvk.version.clone())) {
            return KindLookup::Unknown;
        }
        KindLookup::Unserved { versions: versions.iter().map(|kind| kind.gvk.version.clone()).collect() }
    }

    /// Looks up whether a kind is served at all, in the version that the server prefers.
    pub fn preferred_kind(&self, kind: &GroupKind) -> KindLookup {
        if let Some(kind) = self.served.get(kind).and_then(|versions| versions.first()) {
            return KindLookup::Served(kind.clone());
        }
        if self.unknown.iter().any(|(group, _)| *group == kind.group) {
            return KindLookup::Unknown;
        }
        KindLookup::Unserved { versions: Vec::new() }
    }

    /// Returns the version in which a kind is watched: of the wanted versions that are served, the
    /// one that the server prefers. Where none is wanted, the server's own choice. The order of
    /// `wanted` plays no part.
    pub fn watched_kind(&self, kind: &GroupKind, wanted: &BTreeSet<Gvk>) -> KindLookup {
        let versions = self.served.get(kind).map_or(&[][..], Vec::as_slice);
        match versions.iter().find(|kind| wanted.contains(&kind.gvk)) {
            Some(kind) => KindLookup::Served(kind.clone()),
            None => self.preferred_kind(kind),
        }
    }

    /// Lists the scope of every kind that is served.
    pub fn scopes(&self) -> impl Iterator<Item = (&GroupKind, ServedScope)> {
        self.served.iter().filter_map(|(kind, versions)| Some((kind, versions.first()?.scope)))
    }

    /// Lists the groups of which at least one version is unknown.
    pub fn unknown_groups(&self) -> BTreeSet<&str> {
        self.unknown.iter().map(|(group, _)| &**group).collect()
    }

    /// Lists the versions of the API and their kinds, for example `apps/v1` and
    /// `apps/v1/Deployment`.
    pub fn api_versions(&self) -> BTreeSet<String> {
        let mut versions: BTreeSet<String> =
            self.unknown.iter().map(|(group, version)| api_version(group, version)).collect();
        for kind in self.served.values().flatten() {
            let version = api_version(&kind.gvk.group, &kind.gvk.version);
            versions.insert(format!("{version}/{}", kind.gvk.kind));
            versions.insert(version);
        }
        versions
    }

    /// Lists the versions of the API whose kinds are unknown, for example `metrics.k8s.io/v1beta1`.
    pub fn unknown_versions(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|(group, version)| api_version(group, version))
    }

    /// Returns the version of the server, for example `v1.36.4`.
    ///
    /// # Errors
    /// Says why it is not known.
    pub fn server_version(&self) -> Result<Arc<str>, Arc<str>> {
        self.server.clone().unwrap_or_else(|| Err("it was not asked for".into()))
    }

    /// Returns why the server was not ready, and may have listed only some of its kinds.
    pub fn unready_reason(&self) -> Option<Arc<str>> {
        self.unready.clone()
    }

    /// Adds what one aggregated document says.
    pub(super) fn add(&mut self, document: APIGroupDiscoveryList) {
        for group in document.items {
            self.add_group(group);
        }
    }

    fn add_group(&mut self, group: APIGroupDiscovery) {
        let name: Arc<str> = group.metadata.and_then(|meta| meta.name).unwrap_or_default().into();
        for version in group.versions {
            let Some(number) = version.version.as_deref().map(Arc::<str>::from) else { continue };
            // A stale list may miss kinds that exist, so nothing follows from it.
            if version.freshness.as_deref() == Some("Stale") {
                self.unknown.insert((name.clone(), number));
            } else {
                self.add_version(&name, &number, version);
            }
        }
    }

    fn add_version(&mut self, group: &Arc<str>, number: &Arc<str>, version: APIVersionDiscovery) {
        for resource in version.resources {
            // A name like this would lead out of the path of its group.
            let is_segment = |name: &String| !matches!(&**name, "" | "." | "..");
            let Some(plural) = resource.resource.filter(is_segment) else { continue };
            let Some(kind) = resource.response_kind.and_then(|kind| kind.kind) else { continue };
            let gvk = Gvk::of_shared(group.clone(), number.clone(), kind.into());
            let scope = match resource.scope.as_deref() {
                Some("Namespaced") => ServedScope::Namespaced,
                _ => ServedScope::Cluster,
            };
            let verbs = resource.verbs.into_iter().map(Arc::from).collect();
            let kind = Arc::new(ServedKind { gvk, plural: plural.into(), scope, verbs });
            let versions = self.served.entry(kind.gvk.group_kind()).or_default();
            // Two resources of one kind: the one that can be written stands for it.
            match versions.iter_mut().find(|other| other.gvk.version == kind.gvk.version) {
                Some(other) if !other.is_allowed("patch") && kind.is_allowed("patch") => *other = kind,
                Some(_) => {}
                None => versions.push(kind),
            }
        }
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

impl Cluster {
    /// Asks the server which kinds it serves, and its version: three calls. A group whose own server
    /// does not answer makes only that group unknown.
    ///
    /// Walks the aggregated document (KEP-3352) itself. A ready-made discovery either fails
    /// completely on one broken group, or drops the mark that says so.
    ///
    /// # Errors
    ///
    /// Fails where the server does not answer, or answers in another form.
    pub async fn discover(&self) -> Result<KindTable, ClusterError> {
        // The kinds are reported also to an account that may not ask for the version.
        let version = async { Ok(self.server_version().await) };
        let (core, groups, version) =
            tokio::try_join!(self.fetch_discovery("/api"), self.fetch_discovery("/apis"), version)?;
        let server = version.map(Arc::from).map_err(|error| error.to_string().into());
        let mut kinds = KindTable { server: Some(server), ..KindTable::default() };
        kinds.add(core);
        kinds.add(groups);
        Ok(kinds)
    }

    /// Does the same as [`Cluster::discover`] for a server that may have just started.
    ///
    /// A server that has just started lists its kinds bit by bit. Until it says that it is ready,
    /// its version is not known either, so that nothing follows from what it does not list.
    ///
    /// # Errors
    ///
    /// Fails as that does.
    pub async fn discover_first(&self) -> Result<KindTable, ClusterError> {
        let ready = self.call(ApiRequest::read("/readyz".to_owned(), CallSubject::Server("readiness"))).await;
        let mut kinds = self.discover().await?;
        // An account that may not ask is told nothing.
        if let Err(error) = ready
            && error.class() == ErrorClass::Transient
        {
            let why: Arc<str> = error.to_string().into();
            (kinds.server, kinds.unready) = (Some(Err(why.clone())), Some(why));
        }
        Ok(kinds)
    }

    async fn fetch_discovery(&self, path: &str) -> Result<APIGroupDiscoveryList, ClusterError> {
        let on = CallSubject::Server("discovery");
        let answer =
            self.call(ApiRequest::read(path.to_owned(), on.clone()).accept(AGGREGATED_DISCOVERY)).await?;
        let document: APIGroupDiscoveryList = answer.decode(&on)?;
        // An older server ignores the Accept header and lists names of groups only.
        if document.items.is_empty() {
            let reason = "the server does not serve aggregated discovery: Kubernetes 1.27 or later is needed";
            return Err(ClusterError::new(on, ClusterFault::Garbled { reason: reason.to_owned() }));
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_resource_whose_name_is_no_segment_of_a_path_is_not_served() {
        for (plural, expected) in
            [("things", true), ("..things", true), ("", false), (".", false), ("..", false)]
        {
            let resource = json!({
                "resource": plural,
                "responseKind": { "group": "x.io", "version": "v1", "kind": "Thing" },
                "scope": "Namespaced",
                "verbs": ["get"],
            });
            let versions = json!([{ "version": "v1", "freshness": "Current", "resources": [resource] }]);
            let document = json!({ "items": [{ "metadata": { "name": "x.io" }, "versions": versions }] });
            let mut kinds = KindTable::default();
            kinds.add(serde_json::from_value(document).unwrap());
            let found = kinds.get(&Gvk::new("x.io", "v1", "Thing"));
            assert_eq!(matches!(found, KindLookup::Served(_)), expected, "{plural:?}");
        }
    }
}
