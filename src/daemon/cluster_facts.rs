//! The facts of the cluster that renders depend on, as discovery shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, ClusterError, KindTable};
use crate::object::{ErrorClass, ObjectId};
use crate::source::{FactUse, KnownClusterFacts, ObjectFact, ServedVersions};

/// The time for which discovery must not have listed a version before it counts as gone. A server
/// that has just started lists its kinds bit by bit, and what a chart leaves out is deleted.
pub(super) const VERSION_ABSENCE_CONFIRMATION: Duration = Duration::from_secs(30);

/// The versions and kinds that discovery does not list any more, each with the time of the first
/// answer without it. They count as served until their absence is confirmed.
#[derive(Debug, Default)]
pub(super) struct UnlistedVersions(BTreeMap<String, Instant>);

impl UnlistedVersions {
    /// Adds what a server listed until a moment ago to what it lists now.
    pub(super) fn add_recent(
        &mut self,
        versions_now: ServedVersions,
        before: Option<&ServedVersions>,
        now: Instant,
    ) -> ServedVersions {
        let listed: BTreeSet<&String> = versions_now.apis.iter().collect();
        let before = before.into_iter().flat_map(|before| before.apis.iter());
        let since = |api: &String| self.0.get(api).copied().unwrap_or(now);
        let unlisted: BTreeMap<String, Instant> = before
            .filter(|api| !listed.contains(api))
            .map(|api| (api.clone(), since(api)))
            .filter(|(_, since)| now.duration_since(*since) < VERSION_ABSENCE_CONFIRMATION)
            .collect();
        self.0 = unlisted;
        let apis: BTreeSet<String> = versions_now.apis.iter().chain(self.0.keys()).cloned().collect();
        ServedVersions { apis: apis.into_iter().collect(), ..versions_now }
    }

    /// Begins the confirmation of each absence anew. The server did not answer, or says that it is
    /// not ready: it may have just started.
    pub(super) fn restart_confirmation(&mut self) {
        self.0.clear();
    }

    /// Returns whether the absence of any is not confirmed yet.
    pub(super) fn has_any(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Returns the versions that a server reports.
///
/// A group whose own server is down is not gone: it is as it was before.
pub(super) fn served_versions(kinds: &KindTable, before: Option<&ServedVersions>) -> ServedVersions {
    let versions_now = ServedVersions {
        server: kinds.server_version(),
        apis: kinds.api_versions().into_iter().collect(),
        unready: kinds.unready_reason(),
    };
    match before {
        Some(before) => with_unknown(versions_now, before, &kinds.unknown_versions().collect()),
        None => versions_now,
    }
}

fn with_unknown(
    versions_now: ServedVersions,
    before: &ServedVersions,
    unknown: &BTreeSet<String>,
) -> ServedVersions {
    let is_unknown = |api: &&String| {
        api.rsplit_once('/').is_some_and(|(version, _)| unknown.contains(version)) || unknown.contains(*api)
    };
    let apis: BTreeSet<&String> =
        versions_now.apis.iter().chain(before.apis.iter().filter(is_unknown)).collect();
    let (server, unready) = match (versions_now.server, &before.server) {
        // Its list from when it was ready counts until its absence is confirmed.
        (Err(_), Ok(known)) => (Ok(known.clone()), None),
        (server, _) => (server, versions_now.unready),
    };
    ServedVersions { server, apis: apis.into_iter().cloned().collect(), unready }
}

/// Returns the versions of a cluster whose kinds are known.
pub(super) fn versions_of(kinds: &KindTable) -> Arc<ServedVersions> {
    served_versions(kinds, None).into()
}

/// Asks a cluster for wanted facts, and adds them to those that are known.
///
/// # Errors
/// Fails where the API server cannot be asked.
pub(crate) async fn read_cluster_facts(
    cluster: &Cluster,
    wanted: &FactUse,
    known: &mut KnownClusterFacts,
) -> Result<(), ClusterError> {
    if wanted.versions {
        known.versions = Some(served_versions(&cluster.discover_first().await?, None).into());
    }
    for id in &wanted.objects {
        let fact = read_object(cluster, id).await?;
        known.objects.insert(id.clone(), fact);
    }
    Ok(())
}

/// Reads a ConfigMap or Secret by its name, with the rights of whoever the source acts as. Renders
/// want no Secret whose values are secrets.
///
/// # Errors
/// Fails where it cannot be known whether it is there, or what it holds. An account that
/// may not read it is an answer.
async fn read_object(cluster: &Cluster, id: &ObjectId) -> Result<ObjectFact, ClusterError> {
    match cluster.read_object_data(id).await {
        Ok(Some(body)) => Ok(ObjectFact::Found(Arc::new(body))),
        Ok(None) => Ok(ObjectFact::Absent),
        Err(error) if error.class() == ErrorClass::Forbidden => {
            Ok(ObjectFact::Unreadable(error.reason().into()))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(server: Result<&str, &str>, apis: &[&str]) -> ServedVersions {
        let server = server.map(Into::into).map_err(Into::into);
        ServedVersions { server, apis: apis.iter().map(|api| (*api).to_owned()).collect(), unready: None }
    }

    #[test]
    fn what_the_server_cannot_tell_now_is_as_it_was() {
        let before = versions(Ok("v1.35.0"), &["gone/v1", "gone/v1/A", "m/v1", "m/v1/Pod", "m/v1b", "v1"]);
        let versions_now = versions(Ok("v1.36.0"), &["m/v1", "v1"]);
        let unknown = BTreeSet::from(["m/v1".to_owned()]);
        let merged = with_unknown(versions_now, &before, &unknown);
        assert_eq!(merged, versions(Ok("v1.36.0"), &["m/v1", "m/v1/Pod", "v1"]));
        let silent = with_unknown(versions(Err("refused"), &["v1"]), &before, &BTreeSet::new());
        assert_eq!(silent, versions(Ok("v1.35.0"), &["v1"]));
        let never = versions(Err("refused"), &["v1"]);
        assert_eq!(with_unknown(never.clone(), &versions(Err("no"), &[]), &BTreeSet::new()), never);
        // One that starts anew is no unknown one.
        let starting =
            ServedVersions { unready: Some("starting".into()), ..versions(Err("starting"), &["v1"]) };
        let again = with_unknown(starting.clone(), &before, &BTreeSet::new());
        assert_eq!(again, versions(Ok("v1.35.0"), &["v1"]));
        assert_eq!(with_unknown(starting.clone(), &never, &BTreeSet::new()), starting);
    }

    // A server that has just started lists its own kinds first.
    #[test]
    fn a_version_that_the_server_does_not_list_for_a_moment_is_not_gone() {
        let start = Instant::now();
        let all = versions(Ok("v1.36.0"), &["m/v1", "m/v1/Monitor", "v1"]);
        let few = versions(Ok("v1.36.0"), &["v1"]);
        let mut unlisted = UnlistedVersions::default();
        assert_eq!(unlisted.add_recent(few.clone(), None, start), few);
        assert_eq!(unlisted.add_recent(few.clone(), Some(&all), start), all);
        assert!(unlisted.has_any());
        let soon = start + VERSION_ABSENCE_CONFIRMATION / 2;
        assert_eq!(unlisted.add_recent(few.clone(), Some(&all), soon), all);
        assert_eq!(unlisted.add_recent(all.clone(), Some(&all), soon), all, "it was not gone");
        assert!(!unlisted.has_any());
        let end = start + VERSION_ABSENCE_CONFIRMATION;
        assert_eq!(unlisted.add_recent(few.clone(), Some(&all), end), all, "it is missing anew");
        let end = end + VERSION_ABSENCE_CONFIRMATION;
        unlisted.restart_confirmation();
        assert_eq!(unlisted.add_recent(few.clone(), Some(&all), end), all, "it may have just started again");
        let end = end + VERSION_ABSENCE_CONFIRMATION;
        assert_eq!(unlisted.add_recent(few.clone(), Some(&all), end), few);
        assert!(!unlisted.has_any());
    }
}
