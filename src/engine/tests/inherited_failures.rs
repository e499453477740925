//! Failed content that a newer revision leaves as it is: the record by which it is judged.

use super::last_good::{failing, files, hash};
use super::world::{FIRST, reading, workload};
use crate::engine::*;
use crate::object::Revision;

// The newer content was claimed and never written, and git takes it back.
#[test]
fn a_record_of_what_was_to_follow_failed_content_becomes_one_of_the_failed_content() {
    let web = workload("web");
    let mut harness = failing();
    let failed = harness.world.ledger.units[0].clone();
    let mut claimed = ReleaseUnit { revision: Revision::new("r3"), ..failed.clone() };
    claimed.members.get_mut(&web).unwrap().content = Some(hash(&web, 3));
    harness.read(reading("r4", &files(2, 2)));
    let mut next = RolloutLedger { units: vec![claimed], ..RolloutLedger::default() };
    harness.engine.record_inherited_failures(&mut next);
    assert_eq!(next.units, [ReleaseUnit { revision: Revision::new("r4"), ..failed }]);
}

#[test]
fn failed_content_is_recorded_where_only_a_rejection_that_is_over_says_what_was_good() {
    let web = workload("web");
    let failing = failing();
    let failed = failing.world.ledger.units[0].clone();
    // The content that was good, the recorded units, those that are about to be recorded, and the
    // units that are recorded then.
    let check = |good: u32, known: &[ReleaseUnit], next: &[ReleaseUnit], expected: &[&str]| {
        let mut harness = failing.clone();
        let good = ContentRef { hash: hash(&web, good), revision: Revision::new("r1") };
        let member = UnitMember {
            content: Some(hash(&web, 9)),
            rollback_target: RollbackTarget::Content(good),
            restarted: None,
        };
        let unit = ReleaseUnit { members: [(web.clone(), member)].into(), ..failed.clone() };
        let over = Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() };
        harness.engine.set_ledger(RolloutLedger { units: known.to_vec(), ..harness.world.ledger.clone() });
        let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
        harness.engine.set_inventory(FIRST, Inventory { rejections: vec![over], ..inventory });
        harness.read(reading("r3", &files(2, 2)));
        let mut next = RolloutLedger { units: next.to_vec(), ..RolloutLedger::default() };
        harness.engine.record_inherited_failures(&mut next);
        for unit in &next.units {
            assert_eq!(unit.members[&web].content, Some(hash(&web, 2)), "{next:#?}");
        }
        let revisions: Vec<&str> = next.units.iter().map(|unit| unit.revision.as_str()).collect();
        assert_eq!(revisions, expected);
    };
    check(1, &[], &[], &["r3"]);
    // The good content is shown.
    check(2, &[], &[], &[]);
    check(1, std::slice::from_ref(&failed), &[], &[]);
    // It is recorded already.
    check(1, &[], std::slice::from_ref(&failed), &["r2"]);
}
