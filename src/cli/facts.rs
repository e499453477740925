//! The facts about one managed object that are outside of it: in its source's inventory and in the
//! rollout ledger.

use crate::object::{annotations, count_text};
use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::cluster_status::ManagedObjectState;
use super::object_argument::ObjectArgument;
use super::rollout_words::{RolloutState, rollout_state};
use super::target::{ClusterSession, ManagedObject};
use super::{CommandError, cluster_status, steps};
use crate::cluster::{explain_unread_claims, explain_unreadable_ledger, inventory_id_of};
use crate::daemon::{self, UnreadableRecords};
use crate::engine::{
    ActiveHold, ContentRef, HashCiphers, HoldIntent, MAX_PUBLISHED_OBJECTS, PauseIntent, PauseSubject,
    QueuedObject, Reason, ReasonCode, Rejection, RejectionAction, RollbackTarget, RolloutClaim,
    RolloutLedger, UnitMember, WithheldWrite, is_workload,
};
use crate::object::ObjectId;
use crate::render::CodedReason;

/// A reason as it is shown: a sentence, and the same for machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownReason {
    /// The sentence.
    pub(super) reason: String,
    /// The same for machines, as far as the records tell it.
    #[serde(flatten)]
    pub(super) coded: CodedReason,
}

impl ShownReason {
    /// Shows a reason.
    pub(super) fn of(reason: &Reason) -> Self {
        Self { reason: reason.to_string(), coded: CodedReason::of(reason) }
    }

    /// Shows the reason for which an object waits in the published queue. A position is one in
    /// front of the budget.
    pub(super) fn of_queued(queued: &QueuedObject) -> Self {
        let code = queued.position.map(|_| CodedReason::of_code(ReasonCode::WaitingForBudget));
        Self { reason: queued.to_string(), coded: code.unwrap_or_default() }
    }

    /// Shows the reason for which a deletion waits for a person.
    pub(super) fn of_pending_deletion(why: &str) -> Self {
        Self::with_code(format!("deletion pending: {why}"), ReasonCode::PruneNeedsConfirmation)
    }

    /// Shows a sentence that has this code.
    pub(super) fn with_code(reason: String, code: ReasonCode) -> Self {
        Self { reason, coded: CodedReason::of_code(code) }
    }

    /// Shows a sentence of which no record has the code.
    pub(super) fn without_code(reason: String) -> Self {
        Self { reason, coded: CodedReason::default() }
    }
}

/// Returns the reason of a hold that has not ended.
pub(super) fn hold_reason(hold: &HoldIntent) -> Option<Reason> {
    let until = Some(hold.until.filter(|until| *until > Timestamp::now())?);
    let (reason, withheld) = (hold.reason.clone(), WithheldWrite::Nothing);
    Some(Reason::OnHold(ActiveHold { until, reason, withheld }))
}

/// The facts about one object, as texts of the cluster.
pub(super) struct ClusterObjectFacts {
    id: ObjectId,
    inventory_id: String,
    standing: ManagedObjectState,
    /// The hold on it, and the pause of it or of its source.
    intents: Vec<Reason>,
    rejection: Option<Rejection>,
    /// The content that the live object names.
    shown: Option<ContentRef>,
    /// The reason for its pending deletion.
    pending: Option<String>,
    ledger: RolloutLedger,
    /// The command that mends the rollout ledger, where it cannot be read.
    unreadable: Option<String>,
    /// The records of its source that cannot be read, each with its remedy.
    unread_records: Vec<String>,
    /// The progress of its steps.
    steps: Vec<String>,
}

impl ClusterObjectFacts {
    /// Reads what is not known yet.
    pub(super) async fn read(session: &ClusterSession, target: &ManagedObject) -> Result<Self, CommandError> {
        let (ledger, unreadable) = read_ledger(session).await?;
        let state = is_workload(&target.id).then(|| rollout_state(&target.object).1);
        let at_rest = (state == Some(RolloutState::Done)).then(|| target.id.clone());
        let ledger = without_ended_claims(ledger, &at_rest.into_iter().collect());
        let inventory = &target.inventory;
        let heeded = |key| {
            let text = target.annotation_value(key);
            if cluster_status::is_heeding_opt_outs(inventory) { text } else { "" }
        };
        let own =
            PauseIntent::parse(heeded(annotations::PAUSED)).map(|paused| (PauseSubject::Object, paused));
        let of_source =
            inventory.annotations.get(annotations::PAUSED).and_then(|text| PauseIntent::parse(text));
        let of_source = of_source.map(|paused| (PauseSubject::Source(target.source.as_str().into()), paused));
        let paused = own.or(of_source).map(|(subject, paused)| Reason::Paused(subject, paused.reason));
        let rejections = inventory.rejections(&HashCiphers::default());
        let pending = inventory.pending_prunes().into_iter().find(|pending| pending.id == target.id);
        let hold = HoldIntent::parse(heeded(annotations::HOLD)).and_then(|hold| hold_reason(&hold));
        Ok(Self {
            id: target.id.clone(),
            inventory_id: inventory_id_of(&session.inventory_namespace, &target.source),
            standing: cluster_status::read_object_standing(session, target, &ledger),
            intents: hold.into_iter().chain(paused).collect(),
            rejection: rejections.into_iter().find(|one| one.unit.members.contains_key(&target.id)),
            shown: target.content_ref(),
            pending: pending.map(|pending| pending.reason),
            ledger,
            unreadable,
            unread_records: UnreadableRecords::find(inventory, &session.inventory_namespace, &target.source)
                .into_texts(),
            steps: steps::lines(session, target).await,
        })
    }

    /// Returns the phase, in one word.
    pub(super) fn phase(&self) -> String {
        self.standing.phase.map_or_else(|| "Unknown".to_owned(), |phase| phase.to_string())
    }

    /// Returns whether nothing of the rollout ledger can be read.
    fn is_unreadable(&self) -> bool {
        self.unreadable.is_some() && self.ledger.unreadable_claims.is_empty()
    }

    /// Returns its entry in the rollout queue.
    pub(super) fn queue_entry(&self) -> Option<&QueuedObject> {
        self.ledger
            .queue
            .iter()
            .find(|queued| queued.id == self.id && *queued.inventory_id == *self.inventory_id)
    }

    fn unit_record(&self) -> Option<&crate::engine::ReleaseUnit> {
        let ours = self.ledger.units.iter().filter(|unit| *unit.inventory_id == *self.inventory_id);
        ours.into_iter().find(|unit| unit.members.contains_key(&self.id))
    }

    /// Returns the reasons that keep it from the newest revision, as far as the cluster shows them.
    pub(super) fn wait_reasons(&self) -> Vec<ShownReason> {
        let queued = self.queue_entry().map(ShownReason::of_queued);
        let mut found: Vec<ShownReason> = queued.into_iter().collect();
        let unread = self.unreadable.iter().chain(&self.unread_records);
        found.extend(unread.map(|why| ShownReason::of(&Reason::RecordUnreadable(why.as_str().into()))));
        found.extend(self.standing.reason.iter().cloned());
        let steps = self.steps.iter().cloned();
        found.extend(steps.map(|step| ShownReason::with_code(step, ReasonCode::StepInProgress)));
        found.extend(self.intents.iter().map(ShownReason::of));
        if let Some(rejection) = &self.rejection {
            let course = rejection_course(rejection, &self.id, self.shown.as_ref());
            let rejected = format!("{}; {course}, or `rhumb rollout retry`", rejection.cause);
            found.push(ShownReason::with_code(rejected, ReasonCode::ContentRejected));
        }
        found.extend(self.pending.as_deref().map(ShownReason::of_pending_deletion));
        let unnamed = self.standing.unnamed;
        if self.standing.phase.is_none() && unnamed > 0 {
            found.push(ShownReason::without_code(format!(
                "it may be one of {unnamed} that are not settled and that the ConfigMap of the source does not name; \
                 `rhumb status` asks a daemon that runs"
            )));
        }
        if let Some(unit) = self.unit_record() {
            let others: Vec<String> =
                unit.members.keys().filter(|id| **id != self.id).map(ToString::to_string).collect();
            if !others.is_empty() {
                let revision = unit.revision.short_name();
                let together = format!("revision {revision} is released together with {}", others.join(", "));
                found.push(ShownReason::without_code(together));
            }
        }
        found
    }

    /// Returns the state of the rollout budget, in one line.
    pub(super) fn budget_text(&self) -> String {
        if self.is_unreadable() {
            return "rollout budget: it cannot be read".to_owned();
        }
        let own = if self.ledger.claims.contains_key(&self.id) { ", this one included" } else { "" };
        format!("{}{own}", budget_words(&self.ledger))
    }
}

/// Returns what becomes of an object with a rejected content, in words.
fn rejection_course(rejection: &Rejection, id: &ObjectId, shown: Option<&ContentRef>) -> &'static str {
    let member = rejection.unit.members.get(id);
    match rejection.action {
        RejectionAction::Quarantine => "it is held as it is",
        RejectionAction::RollBack if member.is_some_and(|one| is_showing_rollback_target(shown, one)) => {
            "it stays at the content before until the content changes in git"
        }
        RejectionAction::RollBack => "it goes back to the content before until the content changes in git",
    }
}

/// Returns whether an object shows what was rejected. Where the hash of a Secret cannot be read,
/// the revision decides.
pub(super) fn is_showing(shown: Option<&ContentRef>, rejection: &Rejection, member: &UnitMember) -> bool {
    let same = |shown: &ContentRef| match member.content {
        Some(_) if member.is_unreadable() => shown.revision == rejection.unit.revision,
        content => content == Some(shown.hash),
    };
    shown.is_some_and(same)
}

/// Returns whether an object shows its rollback target. The hash of a content is another one in
/// each inventory, and that of a Secret may be unreadable: there the revision decides.
pub(super) fn is_showing_rollback_target(shown: Option<&ContentRef>, member: &UnitMember) -> bool {
    let good = match &member.rollback_target {
        RollbackTarget::Content(good) | RollbackTarget::FormerContent { content: good, .. } => good,
        RollbackTarget::Absent | RollbackTarget::Unknown => return false,
    };
    shown.is_some_and(|shown| shown.hash == good.hash || shown.revision == good.revision)
}

/// Returns the rollout budget of the cluster, and how to mend it where it cannot be read.
pub(super) async fn read_ledger(
    session: &ClusterSession,
) -> Result<(RolloutLedger, Option<String>), CommandError> {
    let budget = session.cluster.read_rollout_ledger(&session.inventory_namespace).await?;
    let unwritable = budget.as_ref().and_then(|budget| budget.unwritable.as_deref());
    let unwritable = unwritable.map(|why| explain_unreadable_ledger(&session.inventory_namespace, why));
    let read = budget.map(|budget| RolloutLedger::parse(&budget.text, &HashCiphers::default()));
    Ok(match read.transpose() {
        Ok(ledger) => {
            let ledger = ledger.unwrap_or_default();
            let unread = Some(ledger.unreadable_claims.len()).filter(|count| *count > 0);
            let unread = unread.map(|count| explain_unread_claims(&session.inventory_namespace, count));
            (ledger, unwritable.or(unread))
        }
        Err(error) => (
            RolloutLedger::default(),
            Some(explain_unreadable_ledger(&session.inventory_namespace, &error.to_string())),
        ),
    })
}

/// Returns those of these sources that wait, each in a line, and how many more do.
pub(super) fn queue_lines(ledger: &RolloutLedger, inventory_ids: &BTreeSet<String>) -> Vec<String> {
    let ours = ledger.queue.iter().filter(|queued| inventory_ids.contains(&*queued.inventory_id));
    let mut lines = Vec::new();
    for queued in ours {
        lines.push(format!("{}: {queued}", ObjectArgument::of(&queued.id)));
        if let Some((position, of)) = queued.position
            && position as usize == MAX_PUBLISHED_OBJECTS
            && of > position
        {
            lines.push(format!("and {} more in the rollout queue", of - position));
        }
    }
    lines
}

/// The maximum number of holders of the budget that are named.
const MAX_NAMED_HOLDERS: usize = 3;

/// Takes out the claims that ended processes have left behind, of workloads that are at rest: their
/// rollouts are over.
pub(super) fn without_ended_claims(mut ledger: RolloutLedger, at_rest: &BTreeSet<ObjectId>) -> RolloutLedger {
    ledger.claims.retain(|id, claim| !(claim.holder_exited && at_rest.contains(id)));
    ledger
}

/// Returns the holder of a claim. A process that was killed could not say that it ended.
pub(super) fn holder_words(ledger: &RolloutLedger, claim: &RolloutClaim) -> String {
    let mut holder = ledger.holder_of(claim);
    let is_gone = RolloutLedger::holder_process(claim)
        .is_some_and(|(number, mark)| mark == daemon::process_mark() && !is_process_there(number));
    holder.has_ended |= is_gone;
    holder.to_string()
}

/// Returns whether there is a process of this number.
pub(super) fn is_process_there(number: u32) -> bool {
    Path::new("/proc").join(number.to_string()).exists()
}

/// Returns how much of it is taken, and by whom.
pub(super) fn budget_words(ledger: &RolloutLedger) -> String {
    let holder = |(id, claim)| format!("{} ({})", ObjectArgument::of(id), holder_words(ledger, claim));
    let holders: Vec<String> = ledger.claims.iter().take(MAX_NAMED_HOLDERS).map(holder).collect();
    let more = match ledger.claims.len().saturating_sub(MAX_NAMED_HOLDERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let holders = if holders.is_empty() { String::new() } else { format!(": {}{more}", holders.join(", ")) };
    let workloads = count_text(ledger.claims.len() + ledger.unreadable_claims.len(), "workload");
    format!(
        "rollout budget: {workloads} rolling out, which may take down {}{holders}",
        count_text(ledger.total_unavailable_pods(), "pod")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ReleaseUnit;
    use crate::object::{ContentHash, GroupKind, Revision};

    #[test]
    fn an_object_is_back_only_where_it_shows_its_rollback_target() {
        let content = |name: &str, revision: &str| ContentRef {
            hash: ContentHash::hash_bytes(name.as_bytes()),
            revision: Revision::new(revision),
        };
        let web = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let check =
            |action: RejectionAction, target: RollbackTarget, shown: Option<ContentRef>, expected: &str| {
                let content = Some(content("bad", "r2").hash);
                let member = UnitMember { content, rollback_target: target, restarted: None };
                let members = [(web.clone(), member)].into();
                let unit =
                    ReleaseUnit { inventory_id: "ours".into(), revision: Revision::new("r2"), members };
                let rejection = Rejection { unit, action, cause: "it failed".into() };
                assert_eq!(rejection_course(&rejection, &web, shown.as_ref()), expected, "{shown:?}");
            };
        let good = || RollbackTarget::Content(content("good", "r1"));
        let stays = "it stays at the content before until the content changes in git";
        let returns = "it goes back to the content before until the content changes in git";
        check(RejectionAction::RollBack, good(), Some(content("good", "r1")), stays);
        check(RejectionAction::RollBack, good(), Some(content("bad", "r2")), returns);
        check(RejectionAction::RollBack, good(), Some(content("other", "r0")), returns);
        check(RejectionAction::RollBack, good(), None, returns);
        check(RejectionAction::RollBack, RollbackTarget::Absent, Some(content("bad", "r2")), returns);
        // Another inventory has another hash of the same content.
        let former = || RollbackTarget::FormerContent {
            content: content("good", "r1"),
            inventory_id: "theirs".into(),
        };
        check(RejectionAction::RollBack, former(), Some(content("good, in ours", "r1")), stays);
        check(RejectionAction::RollBack, former(), Some(content("bad", "r2")), returns);
        check(RejectionAction::Quarantine, good(), Some(content("bad", "r2")), "it is held as it is");
    }

    #[test]
    fn a_long_queue_is_reported_as_far_as_it_is_known() {
        let queued = |number: usize, inventory_id: &str| QueuedObject {
            id: ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), &format!("w{number}")),
            inventory_id: inventory_id.into(),
            position: Some((number as u32, 170)),
            reason: "it is so".into(),
        };
        let mut queue: Vec<QueuedObject> =
            (1..=MAX_PUBLISHED_OBJECTS).map(|number| queued(number, "ours")).collect();
        queue.push(queued(3, "another"));
        let lines =
            queue_lines(&RolloutLedger { queue, ..RolloutLedger::default() }, &["ours".to_owned()].into());
        assert_eq!(lines.len(), MAX_PUBLISHED_OBJECTS + 1);
        let first = "shop/deployment.apps/w1: waiting in the rollout queue: 1st of 170, as it is so";
        assert_eq!(lines[0], first);
        assert_eq!(lines[MAX_PUBLISHED_OBJECTS], "and 70 more in the rollout queue");
    }
}
