//! What a reconciler is made of.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{Cluster, ServiceAccount};
use crate::engine::{
    self, Adopt, AllowList, BlastRadius, Budget, Life, Narrowing, OptOut, Prune, Repository, Writes,
};
use crate::source::{Disk, Source};

/// Where the files of a source come from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each source")]
pub enum Files {
    /// From a repository or directory that is followed.
    Followed(Source),
    /// As they were on disk, once.
    Once(Arc<Disk>),
}

/// One source.
#[derive(Debug)]
pub struct SourceSetup {
    /// Its name.
    pub name: String,
    /// Where it is, without credentials: another place under the same name prunes nothing unasked.
    pub place: String,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// What it may have at all.
    pub allow: Arc<AllowList>,
    /// The service account, in the namespace of the inventories, as which its objects are read and written; none for
    /// rhumb's own.
    pub account: Option<Arc<str>>,
    /// The namespaces in which it looks for its objects; none for all.
    pub namespaces: Option<BTreeSet<Arc<str>>>,
    /// Whether it takes objects over.
    pub adopt: Adopt,
    /// Says if it heeds what others put on its live objects.
    pub opt_out: OptOut,
    /// Whether it deletes.
    pub prune: Prune,
    /// How much it deletes unasked.
    pub radius: BlastRadius,
    /// For so long other sources may claim what it drops, before that is deleted.
    pub prune_delay: Duration,
    /// Whether it writes.
    pub writes: Writes,
    /// Whether it goes on. Of one that ends, the files only tell what its objects were made from.
    pub life: Life,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: Narrowing,
    /// Its files.
    pub files: Files,
}

impl SourceSetup {
    /// As whom its objects are read and written, where the inventories are in this namespace.
    pub(super) fn acts_as(&self, system: &str) -> Option<ServiceAccount> {
        self.account.as_ref().map(|name| ServiceAccount::new(system, name))
    }

    /// Returns the facts that the engine has of it before anything of it is read.
    pub(super) fn facts(&self, applyset: &str) -> engine::Source {
        let mut source = engine::Source::new(&self.name, applyset, self.adopt, self.prune, self.radius);
        source.writes = self.writes;
        source.allow = self.allow.clone();
        source.opt_out = self.opt_out;
        source.budget = self.budget.clone();
        source.life = self.life;
        source.prune_delay = self.prune_delay;
        if let Files::Once(_) = self.files {
            source.repository = Repository::Nowhere;
        }
        source
    }
}

/// A reconciler's parts.
#[derive(Debug)]
pub struct Setup {
    /// The cluster.
    pub cluster: Cluster,
    /// Namespace of the inventories.
    pub namespace: String,
    /// Time between two looks at everything.
    pub resync: Duration,
    /// How much may roll at once.
    pub budget: Budget,
    /// Writes in flight at once.
    pub concurrency: usize,
    /// The sources.
    pub sources: Vec<SourceSetup>,
}
