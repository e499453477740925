//! The forms of calls and of their effects in a trace.
//!
//! A decision is shown without its content, which is in the reading that brought it. Of a reason
//! only the code is shown, and no seal at all: a replay cannot make it.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use crate::engine::decide::decision::{
    Action, ApplyPurpose, ApplyRequest, Decision, DeletionReason, Precondition, RestartRisk,
};
use crate::engine::effect::serialize_marks;
use crate::engine::{ApplyVariant, ResourceVersion, SharedDesiredObject, SourceId, SourceStatement, Uid};
use crate::object::{ContentHash, ObjectId, Revision};

/// The question for the tidy statement of a source.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::engine) struct StatementQuestion<'a> {
    /// The source.
    pub source: SourceId,
    /// Its present one.
    pub recorded: Option<Cow<'a, SourceStatement>>,
}

impl<'a> StatementQuestion<'a> {
    /// Asks about a source.
    pub(in crate::engine) fn of(source: SourceId, recorded: Option<&'a SourceStatement>) -> Self {
        Self { source, recorded: recorded.map(Cow::Borrowed) }
    }
}

/// Objects that were marked.
#[derive(Debug, Serialize)]
pub(in crate::engine) struct MarkedObjects(
    /// Their keys.
    #[serde(serialize_with = "serialize_marks")]
    pub Vec<ObjectId>,
);

/// An object that was decided about.
#[derive(Debug)]
pub(in crate::engine) struct DecidedObject<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// The decision.
    pub decision: Decision,
}

impl Serialize for DecidedObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DecisionForm::from(self).serialize(serializer)
    }
}

#[derive(Debug, Serialize)]
struct DecisionForm<'a> {
    id: &'a ObjectId,
    action: ActionForm<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requeue_after: Option<Duration>,
}

#[derive(Debug, Serialize)]
enum ActionForm<'a> {
    Nothing,
    Forget,
    Lookup,
    CompareCached(ContentHash, ApplyVariant),
    CompareLive(ContentHash, ApplyVariant),
    AwaitContent,
    DryRun(ApplyForm<'a>),
    Apply(ApplyForm<'a>),
    Delete(&'a Uid, ResourceVersion, DeletionReason),
}

#[derive(Debug, Serialize)]
struct ApplyForm<'a> {
    content: ContentHash,
    source: SourceId,
    revision: &'a Revision,
    /// The serial number that its seal proves.
    serial: Option<u64>,
    precondition: &'a Precondition,
    decided_on: Option<ResourceVersion>,
    variant: ApplyVariant,
    purpose: ApplyPurpose,
    restarts: RestartRisk,
}

impl<'a> From<&'a DecidedObject<'a>> for DecisionForm<'a> {
    fn from(decided: &'a DecidedObject<'a>) -> Self {
        let decision = &decided.decision;
        let reason = decision.reason.as_ref().map(|reason| reason.code().word());
        let action = ActionForm::from(&decision.action);
        Self { id: decided.id, action, reason, requeue_after: decision.requeue_after }
    }
}

impl<'a> From<&'a Action> for ActionForm<'a> {
    fn from(action: &'a Action) -> Self {
        let hash = |desired: &SharedDesiredObject| desired.hash;
        match action {
            Action::Nothing => Self::Nothing,
            Action::Forget => Self::Forget,
            Action::Lookup => Self::Lookup,
            Action::CompareCached(desired, variant) => Self::CompareCached(hash(desired), *variant),
            Action::CompareLive(desired, variant) => Self::CompareLive(hash(desired), *variant),
            Action::AwaitContent => Self::AwaitContent,
            Action::DryRun(apply) => Self::DryRun(apply.into()),
            Action::Apply(apply) => Self::Apply(apply.into()),
            Action::Delete(uid, version, reason) => Self::Delete(uid, *version, *reason),
        }
    }
}

impl<'a> From<&'a ApplyRequest> for ApplyForm<'a> {
    fn from(apply: &'a ApplyRequest) -> Self {
        Self {
            content: apply.desired.hash,
            source: apply.source,
            revision: &apply.revision,
            serial: apply.seal.map(|seal| seal.serial),
            precondition: &apply.precondition,
            decided_on: apply.decided_on,
            variant: apply.variant,
            purpose: apply.purpose,
            restarts: apply.restarts,
        }
    }
}
