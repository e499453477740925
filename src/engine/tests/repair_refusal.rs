//! A server that refuses a new content and the repair of the one before it.

use std::time::Duration;

use super::release_seal::at_rest;
use super::world::{config, desired, reading};
use crate::engine::*;

// Were only the last refusal known, each of the two would be tried again after the other, at once
// and without end.
#[test]
fn a_refused_content_and_the_refused_repair_of_the_one_before_it_both_wait() {
    let (mut harness, a) = (at_rest(), config("a"));
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&a).unwrap();
    (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
    harness.world.announce(&a);
    harness.deliver(usize::MAX);
    harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
    let mut tried = Vec::new();
    for _ in 0..20 {
        let decision = harness.decide(&a);
        match &decision.action {
            Action::Apply(apply) => {
                tried.push((apply.desired.hash, apply.purpose));
                let again = Some(Duration::from_mins(5));
                let failure = WriteFailure::Refused("denied by a policy".into(), RefusalRule::Other, again);
                let now = harness.now;
                harness.engine.record_result(&a, &decision.action, ActionResult::Failed(failure), now);
            }
            Action::CompareCached(content, variant) | Action::CompareLive(content, variant) => {
                harness.compare(&a, content, *variant);
            }
            _ => break,
        }
    }
    let of = |content: u32| desired(&a, content, "a").hash;
    assert_eq!(tried, [(of(2), ApplyPurpose::Change), (of(1), ApplyPurpose::Repair)]);
    assert!(matches!(harness.decide(&a).reason, Some(Reason::Refused(..))));
}
