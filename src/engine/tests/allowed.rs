//! Sources that may have only some objects: the list was narrowed after they were applied.

use std::sync::Arc;

use super::rig::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ErrorClass, GroupKind, ObjectId};

/// A process that has just started, and whose source may have only these kinds.
fn narrow(rig: &mut Harness, kinds: &[&str]) {
    rig.engine = rig.fresh(3);
    let kinds = kinds.iter().map(|kind| kind.parse().unwrap()).collect();
    let list = AllowList { kinds: Some(kinds), ..AllowList::default() };
    rig.engine.sources[0].allow = Arc::new(list);
}

/// Returns a world from before the allow-list admitted nothing but workloads: one object of each
/// sort.
fn narrowed() -> (Harness, ObjectId, ObjectId) {
    let (a, web) = (config("a"), workload("web"));
    let mut rig = Harness::new(3);
    let both = [("a", Some(desired(&a, 1, "a"))), ("web", Some(desired(&web, 1, "web")))];
    rig.read(reading("r1", &both));
    rig.settle();
    rig.world.log.clear();
    narrow(&mut rig, &["apps/*"]);
    (rig, a, web)
}

fn drift(rig: &mut Harness, id: &ObjectId) {
    let rv = rig.world.tick();
    let thing = rig.world.things.get_mut(id).unwrap();
    (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
    rig.world.announce(id);
}

#[test]
fn what_is_no_longer_allowed_is_neither_repaired_nor_deleted_and_told() {
    let (mut rig, a, web) = narrowed();
    // The manifest still names it, or no longer: it is not told to the engine, as it is not allowed.
    rig.read(reading("r2", &[("web", Some(desired(&web, 2, "web")))]));
    rig.settle();
    drift(&mut rig, &a);
    rig.settle();
    let reason = rig.decide(&a).reason.map(|reason| reason.to_string());
    let words = reason.unwrap_or_default();
    assert!(
        words.starts_with("no longer allowed, so it is neither repaired nor deleted: the kind ConfigMap")
    );
    assert_eq!(rig.world.log, [AuditEntry::Changed(web)]);
}

#[test]
fn a_kind_that_is_not_allowed_need_not_be_listed_for_others_to_be_pruned_or_orders_to_be_carried_out() {
    let (mut rig, a, web) = narrowed();
    let blind = KindState::Blind("it may not be listed".into(), ErrorClass::Forbidden);
    rig.engine.informer(&GroupKind::new("", "ConfigMap"), blind);
    rig.read(reading("r2", &[]));
    rig.settle();
    assert!(!rig.world.things.contains_key(&web) && rig.world.things.contains_key(&a));
    assert_eq!(rig.engine.unlisted(0), None);
    assert!(rig.engine.knows_enough(0));
}

#[test]
fn nothing_that_a_source_asks_for_passes_its_list() {
    let a = config("a");
    let mut rig = Harness::new(3);
    narrow(&mut rig, &["apps/*"]);
    rig.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    rig.settle();
    assert_eq!(rig.world.log, []);
    assert!(rig.engine.entry(&a).is_none_or(|entry| entry.wants.is_empty()));
}

#[test]
fn a_claim_on_what_is_no_longer_listed_is_taken_back_once_nobody_holds_it() {
    let web = workload("web");
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    rig.settle();
    // The process before this one was in the middle of it.
    let claim = RolloutClaim {
        applyset: super::world::SET.into(),
        holder: "the one before".into(),
        content: desired(&web, 2, "web").hash,
        pods: 1,
        left: false,
    };
    rig.world.book.claims.insert(web.clone(), claim);
    narrow(&mut rig, &["ConfigMap"]);
    let blind = KindState::Blind("it may not be listed".into(), ErrorClass::Forbidden);
    rig.engine.informer(&GroupKind::new("apps", "Deployment"), blind);
    rig.read(reading("r2", &[]));
    rig.settle();
    assert!(rig.world.book.claims.contains_key(&web), "it may roll on");
    assert_eq!(rig.engine.others(), std::slice::from_ref(&web), "it is looked at");
    rig.engine.other_seen(&web, None, rig.now);
    rig.pass_time(SPENT);
    rig.engine.other_seen(&web, None, rig.now);
    rig.settle();
    assert!(!rig.world.book.claims.contains_key(&web), "it rests");
}
