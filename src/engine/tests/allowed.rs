//! Sources that may have only some objects: the list was narrowed after they were applied.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{AuditEntry, FIRST, config, desired, reading, workload};
use crate::engine::*;
use crate::manifest::{KindScope, KindScopes};
use crate::object::{ErrorClass, GroupKind, ObjectId};

/// Starts a new process, whose source may have only these kinds.
fn narrow(harness: &mut Harness, kinds: &[&str]) {
    harness.engine = harness.fresh(3);
    let kinds = kinds.iter().map(|kind| kind.parse().unwrap()).collect();
    let list = AllowList { kinds: Some(kinds), ..AllowList::default() };
    harness.engine.sources[FIRST].declared.allow = Arc::new(list);
}

/// Returns a world from before the allow-list admitted nothing but workloads: one object of each
/// sort.
fn narrowed() -> (Harness, ObjectId, ObjectId) {
    let (a, web) = (config("a"), workload("web"));
    let mut harness = Harness::new(3);
    let both = [("a", Some(desired(&a, 1, "a"))), ("web", Some(desired(&web, 1, "web")))];
    harness.read(reading("r1", &both));
    harness.settle();
    harness.world.log.clear();
    narrow(&mut harness, &["apps/*"]);
    (harness, a, web)
}

#[test]
fn what_is_no_longer_allowed_is_neither_repaired_nor_deleted_and_reported() {
    let (mut harness, a, web) = narrowed();
    // The manifest still names it, or no longer: it is not given to the engine, as it is not
    // allowed.
    harness.read(reading("r2", &[("web", Some(desired(&web, 2, "web")))]));
    harness.settle();
    harness.world.drift(&a);
    harness.settle();
    let reason = harness.decide(&a).reason.map(|reason| reason.to_string());
    let words = reason.unwrap_or_default();
    assert!(
        words.starts_with("no longer allowed, so it is neither repaired nor deleted: the kind ConfigMap")
    );
    assert_eq!(harness.world.log, [AuditEntry::Changed(web)]);
}

#[test]
fn a_kind_that_is_not_allowed_need_not_be_listed_for_others_to_be_pruned_or_orders_to_be_carried_out() {
    let (mut harness, a, web) = narrowed();
    let blind = KindState::Unobservable("it may not be listed".into(), ErrorClass::Forbidden);
    harness.engine.set_informer_state(&GroupKind::new("", "ConfigMap"), blind);
    harness.read(reading("r2", &[]));
    harness.settle();
    assert!(!harness.world.things.contains_key(&web) && harness.world.things.contains_key(&a));
    assert_eq!(harness.engine.unlisted_reason(FIRST), None);
    assert!(harness.engine.can_carry_out(FIRST));
}

#[test]
fn nothing_that_a_source_asks_for_passes_its_list() {
    let a = config("a");
    let mut harness = Harness::new(3);
    narrow(&mut harness, &["apps/*"]);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert!(harness.engine.entry(&a).is_none_or(|entry| entry.targets.is_empty()));
}

// A definition among the manifests may say of a kind that the server does not have yet that it has
// namespaces.
#[test]
fn an_object_that_names_a_namespace_is_held_against_the_scope_that_the_server_shows_later() {
    let check = |scope: KindScope, expected: &[AuditEntry]| {
        let mut harness = Harness::new(3);
        let (namespaces, cluster_scoped) = (Some(["shop".into()].into()), ClusterScopeRule::None);
        let list = AllowList { namespaces, cluster_scoped, ..AllowList::default() };
        harness.engine.sources[FIRST].declared.allow = Arc::new(list);
        harness.read(reading("r1", &[("a", Some(desired(&config("a"), 1, "a")))]));
        let mut scopes = KindScopes::new();
        scopes.insert(GroupKind::new("", "ConfigMap"), scope);
        harness.handle(Input::Scopes(scopes));
        harness.settle();
        assert_eq!(harness.world.log, expected, "{scope:?}");
    };
    check(KindScope::Namespaced, &[AuditEntry::Created(config("a"))]);
    check(KindScope::Cluster, &[]);
}

#[test]
fn a_claim_on_what_is_no_longer_listed_is_taken_back_once_nobody_holds_it() {
    let web = workload("web");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(desired(&web, 1, "web")))]));
    harness.settle();
    // The process before this one was in the middle of it.
    let claim = RolloutClaim {
        inventory_id: super::world::SET.into(),
        holder: "the one before".into(),
        rollout_key: desired(&web, 2, "web").hash,
        reserved: 1,
        holder_exited: false,
        recreates: false,
        recreation_deadline: None,
    };
    harness.world.ledger.claims.insert(web.clone(), claim);
    narrow(&mut harness, &["ConfigMap"]);
    let blind = KindState::Unobservable("it may not be listed".into(), ErrorClass::Forbidden);
    harness.engine.set_informer_state(&GroupKind::new("apps", "Deployment"), blind);
    harness.read(reading("r2", &[]));
    harness.settle();
    assert!(harness.world.ledger.claims.contains_key(&web), "it may roll on");
    assert_eq!(harness.engine.foreign_workloads(), std::slice::from_ref(&web), "it is looked at");
    harness.engine.observe_foreign_workload(&web, None, harness.now);
    harness.pass_time(ABANDONED_CLAIM_AGE);
    harness.engine.observe_foreign_workload(&web, None, harness.now);
    harness.settle();
    assert!(!harness.world.ledger.claims.contains_key(&web), "it rests");
}
