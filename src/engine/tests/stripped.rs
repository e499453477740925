//! A policy that takes the label away of what rhumb writes.

use super::harness::Harness;
use super::world::{AuditEntry, World, config, desired, reading};
use crate::engine::*;

#[test]
fn a_label_that_the_server_does_not_keep_is_reported_and_not_written_again() {
    let id = config("env");
    for owner in [ObjectOwner::Nobody, ObjectOwner::Labelled("somebody-v1".into())] {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("env", Some(desired(&id, 1, "env")))]));
        while !matches!(harness.decide(&id).action, Action::Apply(_)) {
            harness.step(&id);
        }
        let action = harness.decide(&id).action;
        harness.engine.note_dispatch(&id, &action);
        assert!(matches!(harness.world.perform(&id, &action), ActionResult::Applied(_)));
        let live = LiveObject { owner, ..World::live(&id, &harness.world.things[&id]) };
        harness.engine.record_result(&id, &action, ActionResult::Applied(WriteResult { live }), harness.now);
        // No watch by label shows it.
        harness.world.events.clear();
        harness.pass_time(WRITE_ECHO_TIMEOUT);
        for _ in 0..3 {
            let decision = harness.decide(&id);
            let reason = decision.reason.clone().expect("it is reported");
            assert!(reason.is_refusal(), "{reason:?}");
            let reason_text = reason.to_string();
            assert!(
                reason_text.contains("does not keep the label") && reason_text.contains("let the label pass"),
                "{reason_text}"
            );
            harness.act(&id, decision);
        }
        assert_eq!(harness.world.log, [AuditEntry::Created(id.clone())]);
    }
}
