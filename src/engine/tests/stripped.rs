//! A policy that takes the label away of what rhumb writes.

use super::rig::Harness;
use super::world::{AuditEntry, World, config, desired, reading};
use crate::engine::*;

#[test]
fn a_label_that_the_server_does_not_keep_is_told_and_not_written_again() {
    let id = config("env");
    for owner in [ObjectOwner::Nobody, ObjectOwner::Labelled("somebody-v1".into())] {
        let mut rig = Harness::new(3);
        rig.read(reading("r1", &[("env", Some(desired(&id, 1, "env")))]));
        while !matches!(rig.decide(&id).action, Action::Apply(_)) {
            rig.step(&id);
        }
        let action = rig.decide(&id).action;
        rig.engine.dispatched(&id, &action);
        assert!(matches!(rig.world.perform(&id, &action), ActionResult::Applied(_)));
        let live = LiveObject { owner, ..World::live(&id, &rig.world.things[&id]) };
        rig.engine.outcome(&id, &action, ActionResult::Applied(WriteResult { live }), rig.now);
        // No watch by label shows it.
        rig.world.events.clear();
        rig.pass_time(ECHO);
        for _ in 0..3 {
            let decision = rig.decide(&id);
            let reason = decision.reason.clone().expect("it is told");
            assert!(reason.is_refusal(), "{reason:?}");
            let told = reason.to_string();
            assert!(
                told.contains("does not keep the label") && told.contains("let the label pass"),
                "{told}"
            );
            rig.act(&id, decision);
        }
        assert_eq!(rig.world.log, [AuditEntry::Created(id.clone())]);
    }
}
