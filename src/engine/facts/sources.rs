//! A source as the engine knows it, and one reading of it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::engine::facts::causes::reason_code::CauseCode;
use crate::engine::facts::prune_decisions::CachedPruneDecisions;
use crate::engine::facts::source_declaration::{AcceptanceRecord, SourceDeclaration};
use crate::engine::{
    Acknowledgement, Authorship, FileFacts, KeptObjects, ManifestIndex, ObjectCounts, PauseIntent,
    PrunePolicy, Rejection, SourceLifecycle, Uid,
};
use crate::object::{ContentHash, Diagnostic, GroupKind, ObjectId, Revision, UnrenderedRoot};

/// The inventory of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inventory {
    /// Kinds that it names: a kind is named before the first object of it is written.
    pub kinds: BTreeSet<GroupKind>,
    /// Namespaces that it names: each before the first object in it is written.
    pub namespaces: BTreeSet<Arc<str>>,
    /// The location that it was made from, where that is not the source's location now.
    pub other_location: Option<Arc<str>>,
    /// It does not name the present location beside the others yet. An object written before it
    /// does would pass for one of theirs that is no longer wanted.
    pub lacks_location: bool,
    /// The revision that it records as accepted, of a source whose commits must be signed.
    pub accepted: Option<Revision>,
    /// Incarnations whose deletion a person has confirmed, as an earlier order of theirs says.
    pub confirmed: BTreeSet<Uid>,
    /// The ends of Jobs that go away by themselves.
    pub finished: BTreeMap<ObjectId, FinishedJob>,
    /// The objects that are kept when nobody wants them any more.
    pub kept: KeptObjects,
    /// Contents that failed here, or that a person undid or aborted.
    pub rejections: Vec<Rejection>,
    /// The reason for which not all of these are known: nothing new is released.
    pub unreadable_rejections: Option<Arc<str>>,
    /// The reason for which not all of the Jobs that have ended are known: none is created.
    pub unreadable_finished: Option<Arc<str>>,
    /// The pause of the whole source.
    pub paused: Option<PauseIntent>,
    /// The acknowledgements of orders and intents.
    pub acknowledged: Vec<Acknowledgement>,
}

/// The end of a Job that goes away by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinishedJob {
    /// The content with which it ended.
    pub content: ContentHash,
    /// Indicates whether it has failed.
    pub has_failed: bool,
    /// The revision that brought the content of one that has failed; none where no record says it.
    pub revision: Option<Revision>,
}

/// The cause for which a source was not read completely. `render` has its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IncompleteCause {
    /// It has not been read yet.
    Unread,
    /// This file of it is not understood.
    UnreadableFile(Arc<str>),
    /// Its reading fails, or leaves something out, as these words say.
    Message(Arc<str>),
}

impl IncompleteCause {
    /// Returns its code; none for words.
    pub(crate) const fn code(&self) -> Option<CauseCode> {
        match self {
            Self::Unread => Some(CauseCode::NeverRead),
            Self::UnreadableFile(_) => Some(CauseCode::FileUnreadable),
            Self::Message(_) => None,
        }
    }
}

/// One source: its declaration, and what is known of it.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct SourceState {
    /// Its declaration.
    pub declared: SourceDeclaration,
    /// Its desired state, by file.
    pub manifests: ManifestIndex,
    /// The revision that was read last; none before the first read.
    pub head: Option<Revision>,
    /// The authors of revisions that the ledger does not have yet.
    pub(in crate::engine) authors: Vec<(Revision, Authorship)>,
    /// The reason for which its newest state was not read completely; none when it was.
    pub incomplete_reason: Option<IncompleteCause>,
    /// The roots of its newest state that do not render, where they are all that was not read
    /// completely.
    pub(in crate::engine) unrendered: Arc<[UnrenderedRoot]>,
    /// The files of its newest state that could hold manifests and are not read at all.
    pub refused: Vec<Diagnostic>,
    /// The warnings about what was rendered of it.
    pub(in crate::engine) warnings: Vec<Diagnostic>,
    /// The kinds that the server listed for its renders; none where they depend on no list.
    pub(in crate::engine) rendered_kinds: Option<Arc<BTreeSet<GroupKind>>>,
    /// Its inventory; none before that was read.
    pub inventory: Option<Inventory>,
    /// Confirmed deletions that are to be written down.
    pub(in crate::engine) pending_confirmations: BTreeSet<Uid>,
    /// Confirmed deletions of what has come back since, which the inventory still says.
    pub(in crate::engine) withdrawn_confirmations: BTreeSet<Uid>,
    /// Rejections that are to be written down.
    pub(in crate::engine) pending_rejections: Vec<Rejection>,
    /// Objects whose newest content is rejected here.
    pub(in crate::engine) rejected_objects: BTreeSet<ObjectId>,
    /// The number of desired objects of each kind.
    pub(in crate::engine) desired_counts: ObjectCounts,
    /// The number of live objects in its inventory.
    pub(in crate::engine) live_counts: ObjectCounts,
    /// Objects with which a change of the newest revision is not done.
    pub(in crate::engine) unfinished: HashSet<ObjectId>,
    pub(in crate::engine) waves: BTreeMap<i32, BTreeSet<ObjectId>>,
    /// Objects that are named to whoever waits for an earlier wave: only when one of them is done
    /// are all asked again.
    pub(in crate::engine) wave_blockers: BTreeSet<ObjectId>,
    /// The last judgement of the prune guard.
    pub(in crate::engine) prunes: CachedPruneDecisions,
    /// The number of the last reading that removed an object from its desired state, or was its
    /// first.
    pub(in crate::engine) last_removal: u64,
    /// The time of that reading.
    pub(in crate::engine) removed_at: Option<Instant>,
    /// The number of the reading, of any source, after which it was checked last.
    pub(in crate::engine) checked_after: u64,
}

impl SourceState {
    /// Returns a source that has not been read yet.
    pub(in crate::engine) fn new(declared: SourceDeclaration) -> Self {
        Self {
            declared,
            manifests: ManifestIndex::default(),
            head: None,
            authors: Vec::new(),
            incomplete_reason: Some(IncompleteCause::Unread),
            unrendered: Arc::default(),
            refused: Vec::new(),
            warnings: Vec::new(),
            rendered_kinds: None,
            inventory: None,
            pending_confirmations: BTreeSet::new(),
            withdrawn_confirmations: BTreeSet::new(),
            pending_rejections: Vec::new(),
            rejected_objects: BTreeSet::new(),
            desired_counts: ObjectCounts::default(),
            live_counts: ObjectCounts::default(),
            unfinished: HashSet::new(),
            waves: BTreeMap::new(),
            wave_blockers: BTreeSet::new(),
            prunes: CachedPruneDecisions::default(),
            last_removal: 0,
            removed_at: None,
            checked_after: 0,
        }
    }
}

impl SourceState {
    /// Returns the diagnostics of reading, in the files and beside them.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = self.manifests.diagnostics();
        found.extend(self.refused.iter().chain(&self.warnings).cloned());
        found.sort();
        found
    }

    /// Returns whether nobody has tried yet to read it, since this process began.
    pub(crate) fn is_unread(&self) -> bool {
        self.incomplete_reason == Some(IncompleteCause::Unread)
    }

    /// Returns the followed revision, where the inventory has to record it as accepted first, and
    /// does not yet. A source that ends follows none.
    pub(in crate::engine) fn unrecorded_revision(&self) -> Option<&Revision> {
        let is_required = self.declared.acceptance == AcceptanceRecord::Required
            && self.declared.lifecycle == SourceLifecycle::Active;
        let recorded = self.inventory.as_ref().and_then(|inventory| inventory.accepted.as_ref());
        self.head.as_ref().filter(|head| is_required && recorded != Some(*head))
    }

    /// Returns whether what it does not name is known to be wanted no more.
    pub(crate) fn is_complete(&self) -> bool {
        self.incomplete_reason.is_none() && self.declared.prune != PrunePolicy::Partial
    }

    /// Returns whether roots that do not render are all that it lacks, so that each object that it
    /// does not name is judged by itself. Nobody does where the source itself goes.
    pub(in crate::engine) fn is_lacking_roots_alone(&self) -> bool {
        !self.unrendered.is_empty() && self.declared.lifecycle == SourceLifecycle::Active
    }

    /// Returns the number of live objects in its inventory, by kind and namespace.
    pub(crate) fn live_counts(&self) -> &ObjectCounts {
        &self.live_counts
    }

    /// Returns the number of objects that it wants, by kind and namespace. A rollback may want what
    /// its newest revision does not name.
    pub(crate) fn desired_counts(&self) -> &ObjectCounts {
        &self.desired_counts
    }

    /// Returns the counts of the objects that it wants, to be kept up.
    pub(in crate::engine) fn desired_counts_mut(&mut self) -> &mut ObjectCounts {
        &mut self.desired_counts
    }

    /// Does the same as [`SourceState::desired_counts_mut`], for what the cluster shows.
    pub(in crate::engine) fn live_counts_mut(&mut self) -> &mut ObjectCounts {
        &mut self.live_counts
    }
}

/// One reading of a source: what changed since the last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SourceReading {
    /// The revision that was read.
    pub revision: Option<Revision>,
    /// Its author; none for a folder that is no commit.
    pub authored: Option<Authorship>,
    /// Files that changed, with what they hold now; nothing for one that is gone.
    pub files: Vec<(Arc<str>, Option<FileFacts>)>,
    /// The reason for which it was not read completely, beyond files that were not understood.
    pub incomplete_reason: Option<Arc<str>>,
    /// The roots that do not render, where nothing else makes it incomplete.
    pub unrendered: Arc<[UnrenderedRoot]>,
    /// The files that could hold manifests and are not read at all, each with its reason.
    #[serde(skip)]
    pub refused: Vec<Diagnostic>,
    /// The warnings about what was rendered.
    #[serde(skip)]
    pub warnings: Vec<Diagnostic>,
    /// The kinds that the server listed for its renders; none where they depend on no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_kinds: Option<Arc<BTreeSet<GroupKind>>>,
}
