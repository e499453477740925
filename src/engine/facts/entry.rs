//! The facts that are kept of one object. Phases for people are derived from them and never stored.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::engine::facts::rare_facts::RareFacts;
use crate::engine::facts::release_seal::NewestRelease;
use crate::engine::{
    ApplyVariant, ConfigStamp, ContentRef, DesiredObject, DesiredState, DryRunImpact, JobCreator, LiveObject,
    ObjectLifetime, ObjectRejection, RecreatePolicy, RefusalCause, ResourceVersion, RetryCause,
    RolloutOverlay, SharedDesiredObject, Uid,
};
use crate::fields::ValueDigest;
use crate::object::{ContentHash, ObjectId, Revision};

pub(crate) use crate::engine::facts::source_id::SourceId;

/// The content that the cluster must show now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum AcceptedContent {
    /// Nothing of ours is there.
    #[default]
    Nothing,
    /// This content.
    Known(SharedDesiredObject),
    /// The content of this reference, which has not been read yet.
    Unread(ContentRef),
    /// The content of this reference, which cannot be read any more.
    Unreadable(ContentRef),
}

impl AcceptedContent {
    /// Returns the content, where it is known.
    pub(crate) fn content(&self) -> Option<&SharedDesiredObject> {
        match self {
            Self::Known(desired) => Some(desired),
            _ => None,
        }
    }

    /// Returns whether it is known to have the same pod template as a content, so that this
    /// restarts nothing.
    pub(in crate::engine) fn has_template_of(&self, content: &DesiredObject) -> bool {
        self.content().is_some_and(|known| known.template == content.template)
    }

    /// Returns whether it is the content of this hash.
    pub(in crate::engine) fn is(&self, hash: ContentHash) -> bool {
        self.content().is_some_and(|desired| desired.hash == hash)
    }
}

/// A view of the object beside the informer's: a lookup, or the answer to our own write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum DirectView {
    /// There is no such object.
    Absent,
    /// There is one, and the informer does not show it: it lacks our label, or is newer.
    Found(Box<LiveObject>),
}

/// The coverage of the desired content by our managedFields entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FieldOwnership {
    /// Every leaf is ours: the object is applied.
    Complete,
    /// Only empty lists lack a path, which the server does not track: a read of the values
    /// decides.
    OnlyEmptyMissing,
    /// Every leaf is ours, but a value is spelled differently: somebody may have written in our
    /// name, or the server has its own form. A comparison of the values decides.
    Unequal,
    /// Somebody took a value away.
    Lost(RepairImpact),
}

/// The impact of repairing a lost value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RepairImpact {
    /// No pod is restarted.
    InPlace,
    /// The pod template is changed, or what keeps pods from following it.
    Template,
}

/// A coverage verdict with what it was made of: pure in both, so it holds as long as they do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct VerifiedOwnership {
    /// Hash of the content.
    pub content: ContentHash,
    /// The overlay on it.
    pub overlay: Option<RolloutOverlay>,
    /// The data that its pods were started with.
    pub config_stamp: Option<Box<ConfigStamp>>,
    /// Our entry's text at that time.
    pub managed_fields: Option<Arc<str>>,
    /// The values behind it at that time.
    pub value_digest: Option<ValueDigest>,
    /// The verdict.
    pub cover: FieldOwnership,
}

impl VerifiedOwnership {
    /// Returns whether the verdict speaks of this content and of what the object shows: our entry,
    /// and the values behind it.
    pub(crate) fn is_about(&self, content: ContentHash, variant: ApplyVariant, live: &LiveObject) -> bool {
        self.is_of_view(live)
            && self.content == content
            && self.overlay == variant.overlay
            && self.config_stamp.as_deref() == variant.config_stamp.as_ref()
    }

    /// Returns whether the verdict speaks of what the object shows.
    pub(crate) fn is_of_view(&self, live: &LiveObject) -> bool {
        let same = match (&self.managed_fields, &live.our_fields) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old == new,
            (old, new) => old.is_none() && new.is_none(),
        };
        same && self.value_digest == live.value_digest
    }
}

/// The API server's last refusal of a content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiRefusal {
    /// The source that asked for it.
    pub source: SourceId,
    /// The refused content.
    pub content: ContentHash,
    /// The cause.
    pub cause: RefusalCause,
    /// The time of the next try; never, until the content changes.
    pub retry: Option<Instant>,
    /// The kind of rule that refused it.
    pub rule: RefusalRule,
    /// The number of refusals in a row.
    pub times: u32,
}

impl ApiRefusal {
    /// Returns whether this content was refused. Another source may be allowed the same one.
    pub(in crate::engine) fn is_of(&self, content: &DesiredObject) -> bool {
        self.content == content.hash && self.source == content.body.source
    }

    /// Takes the place of the last refusal. That of the same content is counted on.
    pub(in crate::engine) fn replace(mut self, last: &mut Option<Box<Self>>) {
        let before = last.take().filter(|before| before.content == self.content);
        self.times = before.map_or(0, |before| before.times).saturating_add(1);
        *last = Some(Box::new(self));
    }

    /// Returns whether this content may be deleted and created again, as it changes a field that
    /// never changes.
    pub(in crate::engine) fn can_be_recreated(&self, content: &DesiredObject) -> bool {
        self.rule == RefusalRule::Immutable && content.traits.recreate == RecreatePolicy::Allowed
    }
}

/// The kind of rule that a refusal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RefusalRule {
    /// A field that never changes: deleting and creating would help.
    Immutable,
    /// The user's rights: nothing about the content.
    Rights,
    /// A webhook that does not answer: nobody knows whether it would refuse the content.
    Webhook,
    /// Any other.
    Other,
}

/// A failure after which the same is tried again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TemporaryFailure {
    /// The time of the next try.
    pub retry_at: Instant,
    /// The cause.
    pub cause: RetryCause,
}

/// The facts about one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectEntry {
    /// The target of each source: its desired state, or the rollback target in its place. That of
    /// the object's owner comes first.
    pub targets: Vec<(SourceId, DesiredState)>,
    /// The owner among several sources that want it.
    pub owner: Option<SourceId>,
    /// The content that the cluster must show now.
    pub accepted: AcceptedContent,
    /// The incarnation in which this process has put it there, or has found it.
    pub incarnation: Option<Uid>,
    /// The accepted content before this one, as far as this process has seen it.
    pub previous_content: Option<SharedDesiredObject>,
    /// The revision that brought the accepted content: it stays in the annotation as long as the
    /// content.
    pub revision: Option<Revision>,
    /// The newest release of the object that was seen with a seal.
    pub newest_release: Option<NewestRelease>,
    /// The direct view of the object, until the informer knows more.
    pub direct_view: Option<DirectView>,
    /// The time at which a lookup showed that there is no such object, as long as that counts.
    pub absent_since: Option<Instant>,
    /// The lowest version whose view causes an action, and since when: that of our own last write.
    pub min_resource_version: Option<(ResourceVersion, Instant)>,
    /// The last verdict on whether our managedFields entry covers the object, with its inputs.
    pub verified: Option<VerifiedOwnership>,
    /// The impact of a content on pods, by the server's dry run.
    pub dry_run: Option<Box<DryRunImpact>>,
    /// The last refusal.
    pub api_refusal: Option<Box<ApiRefusal>>,
    /// The rejection of the content that the newest revision asks for, with the content in its
    /// place.
    pub rejection: Option<Box<ObjectRejection>>,
    /// The facts that few objects have.
    pub rare: RareFacts,
}

impl ObjectEntry {
    /// Returns the last refusal of a content.
    pub(in crate::engine) fn refusal_of(&self, content: &DesiredObject) -> Option<&ApiRefusal> {
        let mut refusals = [&self.api_refusal, &self.rare.repair_refusal].into_iter().flatten();
        refusals.find(|refusal| refusal.is_of(content)).map(|refusal| &**refusal)
    }

    /// Forgets the last refusals that come from this kind of rule.
    pub(in crate::engine) fn forget_refusals(&mut self, rule: RefusalRule) {
        self.api_refusal = self.api_refusal.take().filter(|refusal| refusal.rule != rule);
        if self.rare.repair_refusal.as_ref().is_some_and(|refusal| refusal.rule == rule) {
            self.rare.change(|rare| rare.repair_refusal = None);
        }
    }

    /// Records the content with which an object is seen ended, if it is a Job that rhumb has created.
    pub(in crate::engine) fn note_end(&mut self, live: &LiveObject, content: ContentHash) {
        let ended = (live.finished && self.is_created_by_rhumb(live)).then_some(content);
        if self.rare.ended != ended {
            self.rare.change(|rare| rare.ended = ended);
        }
    }

    /// Returns whether its target is what the server refused last. The refusal of another content says
    /// nothing of what is to be written now.
    pub(in crate::engine) fn is_target_refused(&self) -> bool {
        let is_target =
            |content: ContentHash| self.target_content().is_none_or(|(_, desired)| desired.hash == content);
        self.api_refusal.as_ref().is_some_and(|refusal| is_target(refusal.content))
    }

    /// Returns the refusal of the target content that no other try ends. That of a change to an
    /// immutable field is none, where the object may be deleted and created again.
    pub(in crate::engine) fn final_refusal(&self) -> Option<&ApiRefusal> {
        let (_, desired) = self.target_content()?;
        let refusal = self.api_refusal.as_deref().filter(|refusal| refusal.is_of(desired))?;
        (refusal.retry.is_none() && !refusal.can_be_recreated(desired)).then_some(refusal)
    }

    /// Returns the target content of one source, when only one wants the object, or has it, and its
    /// manifest is usable.
    pub(crate) fn target_content(&self) -> Option<(SourceId, &SharedDesiredObject)> {
        match &self.targets[..] {
            [(source, DesiredState::Object(desired)), others @ ..]
                if others.is_empty() || self.owner == Some(*source) =>
            {
                Some((*source, desired))
            }
            _ => None,
        }
    }

    /// Returns whether this process knows that what is shown is the very object in which its
    /// content is to be.
    pub(in crate::engine) fn is_remembered(&self, live: &LiveObject) -> bool {
        self.accepted.content().is_some() && self.incarnation.as_ref() == Some(&live.uid)
    }

    /// Returns whether rhumb has created a Job, with the content that it shows. Its seal proves that,
    /// if it is no copy, or this process has created it.
    pub(in crate::engine) fn is_created_by_rhumb(&self, live: &LiveObject) -> bool {
        let is_sealed = !live.is_unproven() && live.job_creator == JobCreator::Rhumb;
        (is_sealed && !self.is_copied_release(live))
            || self.rare.created_incarnation.as_ref() == Some(&live.uid)
    }

    /// Returns whether it is a Job that was seen ended with a content, and goes away by itself.
    pub(in crate::engine) fn has_ended_with(&self, content: &DesiredObject) -> bool {
        content.traits.lifetime == ObjectLifetime::AfterFinish
            && self.rare.ended.is_some_and(|hash| content.has_hash(hash))
    }

    /// Returns the source that brought the content in force, where that has been read.
    pub(in crate::engine) fn accepted_source(&self) -> Option<SourceId> {
        self.accepted.content().map(|accepted| accepted.body.source)
    }

    /// Returns the target content, where the cluster must not show it yet.
    pub(crate) fn unreleased_content(&self) -> Option<&SharedDesiredObject> {
        let (_, desired) = self.target_content()?;
        match &self.accepted {
            AcceptedContent::Known(accepted) if accepted.hash == desired.hash => None,
            _ => Some(desired),
        }
    }
}

/// The topic that an entry waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WaitTopic {
    /// Something about this object changed.
    Object(ObjectId),
    /// The kinds that the server has changed, or an informer got through.
    Kinds,
    /// An object of an early wave was finished.
    Waves(SourceId),
    /// The inventory was written.
    Inventory(SourceId),
}
