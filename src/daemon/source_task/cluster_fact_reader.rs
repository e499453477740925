//! The facts of the cluster that the renders of one source depend on, asked for at each check.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::cluster_facts::read_cluster_facts;
use crate::cluster::Cluster;
use crate::object::{ObjectId, Revision};
use crate::source::{
    ClusterFacts, FactUse, KnownClusterFacts, ServedVersions, Source, SourceError, SourceObservation,
};

/// The access to a revision that is not in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RevisionAccess {
    /// It is in the store; only its roots may have to be rendered.
    Stored,
    /// It may have to be fetched too.
    Fetched,
}

/// The reader of facts, with the rights of the account that a source acts as.
#[derive(Default)]
pub(in crate::daemon) struct ClusterFactReader {
    /// None where only the versions are known.
    cluster: Option<Cluster>,
    known: KnownClusterFacts,
    /// The objects that the newest render uses, and those that others wanted since.
    wanted: BTreeSet<ObjectId>,
}

impl ClusterFactReader {
    /// Returns one that has asked nothing yet.
    pub(in crate::daemon) fn new(cluster: Cluster, versions: Option<Arc<ServedVersions>>) -> Self {
        let known = KnownClusterFacts { versions, ..KnownClusterFacts::default() };
        Self { cluster: Some(cluster), known, wanted: BTreeSet::new() }
    }

    /// Takes over the versions that discovery reported last.
    pub(super) fn set_versions(&mut self, versions: Option<Arc<ServedVersions>>) {
        self.known.versions = versions;
    }

    /// Observes a source by the facts of this moment: each object that its renders want is asked
    /// for once, before it or on the way.
    ///
    /// # Errors
    /// Fails as the observation does, and where the cluster does not answer.
    pub(in crate::daemon) async fn observe(
        &mut self,
        source: &mut Source,
    ) -> Result<SourceObservation, SourceError> {
        self.ask_again(source).await?;
        loop {
            match source.observe().await {
                Err(SourceError::FactsWanted(facts)) if self.request_objects(source, &facts).await? => {}
                seen => {
                    if seen.is_ok() {
                        self.keep_used(&source.used_facts().objects);
                    }
                    return seen;
                }
            }
        }
    }

    /// Forgets all objects but those that the newest render uses: nobody keeps the others up to
    /// date, and each check would ask for them. An older render that wants one asks anew.
    fn keep_used(&mut self, used: &BTreeSet<ObjectId>) {
        self.wanted.retain(|id| used.contains(id));
        self.known.objects.retain(|id, _| used.contains(id));
    }

    /// Makes the files of a revision that is not in force readable, by the facts that are known and
    /// others that it asks for.
    ///
    /// # Errors
    /// Fails as the access does, and where the cluster does not answer.
    pub(super) async fn prepare_revision(
        &mut self,
        source: &mut Source,
        revision: &Revision,
        access: RevisionAccess,
    ) -> Result<(), SourceError> {
        loop {
            let prepared = match access {
                RevisionAccess::Stored => source.render_older_revision(revision).await,
                RevisionAccess::Fetched => source.fetch_revision(revision).await,
            };
            match prepared {
                Err(SourceError::FactsWanted(facts)) if self.request_objects(source, &facts).await? => {}
                done => return done,
            }
        }
    }

    /// Asks for all objects that were wanted before: others may have changed them.
    async fn ask_again(&mut self, source: &mut Source) -> Result<(), SourceError> {
        let facts = FactUse { versions: false, objects: self.wanted.clone() };
        self.read_facts(source, &facts).await
    }

    /// Asks for desired objects that are not known, and says whether there were any.
    async fn request_objects(&mut self, source: &mut Source, facts: &FactUse) -> Result<bool, SourceError> {
        let objects = facts.objects.difference(&self.wanted).cloned().collect();
        let missing = FactUse { versions: false, objects };
        if missing.objects.is_empty() || self.cluster.is_none() {
            return Ok(false);
        }
        self.read_facts(source, &missing).await?;
        self.wanted.extend(missing.objects);
        Ok(true)
    }

    async fn read_facts(&mut self, source: &mut Source, facts: &FactUse) -> Result<(), SourceError> {
        if let Some(cluster) = self.cluster.as_ref().filter(|_| !facts.objects.is_empty()) {
            let result = read_cluster_facts(cluster, facts, &mut self.known).await;
            result.map_err(|error| SourceError::FactsUnread(error.to_string()))?;
        }
        source.set_facts(ClusterFacts::Queried(self.known.clone()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;
    use crate::source::ObjectFact;

    #[test]
    fn what_no_render_uses_any_more_is_not_asked_for_again() {
        let config = |name: &str| ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name);
        let mut reader = ClusterFactReader::default();
        for name in ["old", "kept"] {
            reader.wanted.insert(config(name));
            reader.known.objects.insert(config(name), ObjectFact::Absent);
        }
        reader.keep_used(&[config("kept"), config("new")].into());
        assert_eq!(reader.wanted, [config("kept")].into());
        assert!(reader.known.objects.keys().eq([&config("kept")]));
    }
}
