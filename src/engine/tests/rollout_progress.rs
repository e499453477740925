//! The progress that goes over from one rollout of a workload to the next one, and the views that
//! say nothing of it.

use super::harness::Harness;
use super::shared_budget::{at_rest, budget, one};
use super::world::{FIRST, workload};
use crate::engine::rollout::progress::ProgressTracking;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::object::Revision;

fn settled() -> Harness {
    at_rest(&["web"], &budget("100%", 100))
}

/// Returns a rollout of this content of `web`; without one it is somebody else's.
fn rollout(harness: &Harness, content: Option<u32>) -> Rollout {
    let claim = content.map(|content| harness.engine.make_claim(FIRST, one("web", content).hash, 1));
    Rollout::new(BudgetSlot::Taken, 1, claim, None)
}

/// Returns the same after it has brought three new pods.
fn advanced(harness: &Harness, content: Option<u32>) -> Rollout {
    let mut advanced = rollout(harness, content);
    advanced.progress.note_pods(3);
    advanced
}

/// Returns the progress of a rollout that follows another one, and goes on from there or not.
fn progress_after(before: &Rollout, goes_on: bool) -> ProgressTracking {
    if goes_on { before.progress.continuation() } else { ProgressTracking::default() }
}

#[test]
fn a_workload_that_is_seen_again_with_the_same_content_goes_on_unless_it_was_gone() {
    let web = workload("web");
    let check = |is_gone: bool, content: u32, expected: bool| {
        let mut harness = settled();
        let before = advanced(&harness, Some(1));
        harness.engine.rollouts.in_flight.insert(web.clone(), before.clone());
        harness.engine.interrupt_rollout(&web);
        if is_gone {
            harness.engine.rollouts.interrupted.forget(&web);
        }
        let mut next = rollout(&harness, Some(content));
        harness.engine.resume_rollout(&web, &mut next);
        assert_eq!(next.progress, progress_after(&before, expected), "{is_gone} {content}");
    };
    check(false, 1, true);
    check(false, 2, false);
    check(true, 1, false);
}

/// Returns a write of `web` for this purpose.
fn write(purpose: ApplyPurpose) -> Action {
    Action::Apply(ApplyRequest {
        desired: one("web", 1),
        source: FIRST,
        revision: Revision::new("r1"),
        seal: None,
        precondition: Precondition::Absent,
        decided_on: None,
        variant: ApplyVariant::PLAIN,
        purpose,
        restarts: RestartRisk::Possible,
    })
}

#[test]
fn a_write_goes_on_from_the_rollout_before_it_where_it_repairs_that_or_brings_the_same_content() {
    // The contents of the rollout before and of the write.
    let check = |purpose: ApplyPurpose, contents: [Option<u32>; 2], has_failed: bool, expected: bool| {
        let mut harness = settled();
        let mut before = advanced(&harness, contents[0]);
        before.failed = has_failed.then(|| RolloutFailureCause::Status("it crashes".into()));
        let mut next = rollout(&harness, contents[1]);
        next.replaced = Some(Box::new(before.clone()));
        harness.engine.continue_rollout(&workload("web"), &write(purpose), &mut next);
        let progress = progress_after(&before, expected);
        assert_eq!(next.progress, progress, "{purpose:?} {contents:?} {has_failed}");
    };
    let same = [Some(1), Some(1)];
    check(ApplyPurpose::Repair, same, false, true);
    check(ApplyPurpose::Repair, same, true, true);
    check(ApplyPurpose::Repair, [None, Some(1)], false, true);
    // New pods begin with it.
    check(ApplyPurpose::Step, same, false, false);
    check(ApplyPurpose::Restart, same, false, false);
    check(ApplyPurpose::Change, same, false, true);
    check(ApplyPurpose::Change, same, true, false);
    check(ApplyPurpose::Change, [Some(1), Some(2)], false, false);
    check(ApplyPurpose::Change, [None, Some(1)], false, false);
    check(ApplyPurpose::Change, [None, None], false, false);
}

#[test]
fn a_view_is_another_ones_where_a_rollout_of_ours_is_known_to_have_lost_a_field_in_it() {
    let web = workload("web");
    let check = |content: Option<u32>, cover: FieldOwnership, is_of_view: bool, expected: bool| {
        let mut harness = settled();
        let live = harness.engine.live_object(&web).unwrap().clone();
        let verified = VerifiedOwnership {
            content: one("web", 1).hash,
            overlay: None,
            config_stamp: None,
            managed_fields: live.our_fields.clone().filter(|_| is_of_view),
            value_digest: live.value_digest,
            cover,
        };
        harness.engine.objects.entries.get_mut(&web).unwrap().verified = Some(verified);
        let rollout = rollout(&harness, content);
        let found = harness.engine.is_changed_by_others(&web, &rollout, &live);
        assert_eq!(found, expected, "{content:?} {cover:?} {is_of_view}");
    };
    check(Some(1), FieldOwnership::Lost(RepairImpact::Template), true, true);
    check(Some(1), FieldOwnership::Lost(RepairImpact::InPlace), true, true);
    check(Some(1), FieldOwnership::Complete, true, false);
    // The verdict is about an older view.
    check(Some(1), FieldOwnership::Lost(RepairImpact::Template), false, false);
    // Nothing of it is ours.
    check(None, FieldOwnership::Lost(RepairImpact::Template), true, false);
}
