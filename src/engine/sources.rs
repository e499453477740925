//! A source as the engine knows it, and one reading of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::prune::Judgement;
use super::watchers::{OWN, WatcherId};
use super::{
    Acknowledged, Adopt, AllowList, Authored, BlastRadius, Catalog, Census, FileFacts, Life, Narrowing,
    OptOut, PRUNE_DELAY, Paused, Prune, Rejection, Repository, Uid,
};
use crate::object::{Diagnostic, GroupKind, Hash, ObjectId, Revision};

/// What the parent object of a source's inventory says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Kinds that it names: a kind is named before the first object of it is written.
    pub kinds: BTreeSet<GroupKind>,
    /// Namespaces that it names, as early.
    pub namespaces: BTreeSet<Arc<str>>,
    /// The place that it was made from, where that is not the source's place now.
    pub other_place: Option<Arc<str>>,
    /// It does not name the present place beside the others yet. What is written before it does would be taken, from one
    /// of those, for what was brought there and is not wanted any more.
    pub unplaced: bool,
    /// Incarnations whose deletion a person has confirmed.
    pub confirmed: BTreeSet<Uid>,
    /// The contents with which Jobs ended that go away by themselves.
    pub finished: BTreeMap<ObjectId, Hash>,
    /// Contents that failed here.
    pub rejections: Vec<Rejection>,
    /// That nothing new of the whole source is released.
    pub paused: Option<Paused>,
    /// What became of that which people asked for.
    pub acknowledged: Vec<Acknowledged>,
}

/// Whether a source writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// It does.
    Allowed,
    /// It is only observed: everything is decided, nothing is written.
    Observed,
}

/// Why a source was not read whole that nobody has looked at.
const UNREAD: &str = "it has not been read yet";

/// One source and what it may do.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Source {
    /// Its name.
    pub name: Arc<str>,
    /// The id of its inventory.
    pub applyset: Arc<str>,
    /// Whether it takes objects over.
    pub adopt: Adopt,
    /// Whether it deletes what it no longer names.
    pub prune: Prune,
    /// What it may have at all.
    pub allow: Arc<AllowList>,
    /// Says if it heeds what others put on its live objects.
    pub opt_out: OptOut,
    /// How much it deletes unasked.
    pub radius: BlastRadius,
    /// What it wants, by file.
    pub catalog: Catalog,
    /// The revision in force; none before the first read.
    pub head: Option<Revision>,
    /// Who made the revisions of which the budget object does not tell yet.
    pub(super) authors: Vec<(Revision, Authored)>,
    /// Why its newest state was not read whole; none when it was.
    pub incomplete: Option<Arc<str>>,
    /// What of its newest state could hold manifests and is not read at all.
    pub refused: Vec<Diagnostic>,
    /// Its inventory; none before the parent was read.
    pub inventory: Option<Inventory>,
    /// Whether it writes at all.
    pub writes: Writes,
    /// Whether it goes on.
    pub life: Life,
    /// The repository that it follows.
    pub repository: Repository,
    /// For so long other sources may claim what it drops, before that is deleted.
    pub prune_delay: Duration,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: Narrowing,
    /// Whose informers show its objects.
    pub watcher: WatcherId,
    /// Rejections that are to be written down.
    pub(super) rejecting: Vec<Rejection>,
    /// Objects with something else instead of what the newest revision asks for.
    pub(super) instead: BTreeSet<ObjectId>,
    /// How many objects of each kind it wants.
    pub(super) kinds: Census,
    /// What the cluster shows in its inventory.
    pub(super) members: Census,
    /// Objects with which a change of the newest revision is not done.
    pub(super) moving: BTreeSet<ObjectId>,
    pub(super) waves: BTreeMap<i32, BTreeSet<ObjectId>>,
    /// Objects that are named to whoever waits for an earlier wave: only when one of them is done are all asked again.
    pub(super) awaited: BTreeSet<ObjectId>,
    pub(super) judged: BTreeMap<ObjectId, Judgement>,
    pub(super) to_judge: bool,
    /// The reading that last left an object unwanted.
    pub(super) dropped: u64,
    /// It was looked at after this reading of any source.
    pub(super) checked: u64,
}

impl Source {
    /// A source that has not been read yet.
    pub fn new(name: &str, applyset: &str, adopt: Adopt, prune: Prune, radius: BlastRadius) -> Self {
        Self {
            name: name.into(),
            applyset: applyset.into(),
            adopt,
            prune,
            allow: Arc::default(),
            opt_out: OptOut::default(),
            radius,
            catalog: Catalog::default(),
            head: None,
            authors: Vec::new(),
            incomplete: Some(UNREAD.into()),
            refused: Vec::new(),
            inventory: None,
            writes: Writes::Allowed,
            life: Life::Lives,
            repository: Repository::Unknown,
            prune_delay: PRUNE_DELAY,
            budget: Narrowing::default(),
            watcher: OWN,
            rejecting: Vec::new(),
            instead: BTreeSet::new(),
            kinds: Census::default(),
            members: Census::default(),
            moving: BTreeSet::new(),
            waves: BTreeMap::new(),
            awaited: BTreeSet::new(),
            judged: BTreeMap::new(),
            to_judge: true,
            dropped: 0,
            checked: 0,
        }
    }
}

impl Source {
    /// What reading found, in the files and beside them.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = self.catalog.diagnostics();
        found.extend(self.refused.iter().cloned());
        found.sort();
        found
    }

    /// Whether nobody has tried yet to read it, since this process began.
    pub fn is_unread(&self) -> bool {
        self.incomplete.as_deref() == Some(UNREAD)
    }

    /// Whether what it does not name is known to be wanted no more.
    pub fn is_whole(&self) -> bool {
        self.incomplete.is_none() && self.prune != Prune::Partial
    }

    /// What the cluster shows in its inventory, by kind and namespace.
    pub fn members(&self) -> &Census {
        &self.members
    }

    /// Keeps the number of its objects of a kind, when it comes to want one, or no longer does.
    pub(super) fn count(&mut self, id: &ObjectId, before: bool, now: bool) {
        self.kinds.note(id, before, now);
    }

    /// As [`Source::count`], for what the cluster shows.
    pub(super) fn count_member(&mut self, id: &ObjectId, before: bool, now: bool) {
        self.members.note(id, before, now);
    }
}

/// One reading of a source: what changed since the last.
#[derive(Debug, Default)]
pub struct Reading {
    /// The revision that was read.
    pub revision: Option<Revision>,
    /// Who made it; none for a folder that is no commit.
    pub authored: Option<Authored>,
    /// Files that changed, with what they hold now; nothing for one that is gone.
    pub files: Vec<(Arc<str>, Option<FileFacts>)>,
    /// Why it was not read whole, beyond files that were not understood.
    pub incomplete: Option<Arc<str>>,
    /// What could hold manifests and is not read at all, each with its reason.
    pub refused: Vec<Diagnostic>,
}
