//! The facts without which no order of a person is carried out.

use super::harness::Harness;
use super::world::{FIRST, config, desired, reading};
use crate::engine::*;

#[test]
fn no_order_is_carried_out_before_all_was_read_that_it_depends_on() {
    let check = |lose: &dyn Fn(&mut Engine)| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&config("a"), 1, "a")))]));
        assert!(harness.engine.can_carry_out(FIRST));
        lose(&mut harness.engine);
        assert!(!harness.engine.can_carry_out(FIRST));
    };
    check(&|engine| engine.sources[FIRST].head = None);
    check(&|engine| engine.rollouts.ledger.forget());
    check(&|engine| engine.sources[FIRST].inventory = None);
    check(&|engine| engine.set_informer_state(&config("a").group_kind(), KindState::Syncing));
}
