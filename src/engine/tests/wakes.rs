//! Nobody waits longer than what he waits for, and nobody goes before it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::harness::Harness;
use super::world::{AuditEntry, FIRST, World, WorldObject, config, desired, id, naming, reading, workload};
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::ObjectId;

/// Returns a desired object with some of its facts changed.
fn with(id: &ObjectId, content: u32, change: impl FnOnce(&mut DesiredObject)) -> SharedDesiredObject {
    let mut wanted = (*desired(id, content, id.name())).clone();
    change(&mut wanted);
    Arc::new(wanted)
}

/// Goes on until the engine asks for nothing more, without any news from the cluster.
fn drain(harness: &mut Harness) {
    for _ in 0..50 {
        let dirty = harness.engine.take_dirty();
        if dirty.is_empty() {
            return;
        }
        for id in dirty {
            harness.step(&id);
        }
    }
    panic!("it never comes to rest: {:#?}", harness.world.log);
}

fn reason(harness: &mut Harness, id: &ObjectId) -> String {
    let now = harness.now;
    harness.engine.decide(id, now).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

/// Returns the view of an object while its controller works on its newest content.
fn unhealthy(id: &ObjectId, thing: &super::world::WorldObject) -> LiveObject {
    LiveObject { health: Health::new(HealthStatus::InProgress, "rolls"), ..World::live(id, thing) }
}

/// Answers a decided write as the world would, but with an object that is not healthy yet.
fn apply_unhealthily(harness: &mut Harness, id: &ObjectId) {
    let action = harness.decide(id).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    harness.engine.note_dispatch(id, &action);
    assert!(matches!(harness.world.perform(id, &action), ActionResult::Applied(_)));
    let live = unhealthy(id, &harness.world.things[id]);
    harness.engine.record_result(id, &action, ActionResult::Applied(WriteResult { live }), harness.now);
}

#[test]
fn what_depends_on_a_change_waits_for_its_health_and_not_for_that_of_the_view_before() {
    for order in ["annotation", "wave"] {
        let (first, second) = (workload("first"), config("second"));
        let later = |content| {
            with(&second, content, |wanted| match order {
                "wave" => wanted.wave = 1,
                _ => wanted.depends_on = [first.clone()].into(),
            })
        };
        let files =
            |content| [("first", Some(desired(&first, content, "first"))), ("second", Some(later(content)))];
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &files(1)));
        harness.settle();
        harness.read(reading("r2", &files(2)));
        apply_unhealthily(&mut harness, &first);
        harness.world.events.clear();
        harness.world.log.clear();
        drain(&mut harness);
        assert_eq!(harness.world.log, [], "{order}");
        // An event that is older than our write changes nothing.
        let old = LiveObject {
            rv: ResourceVersion(harness.world.things[&first].rv - 1),
            ..World::live(&first, &harness.world.things[&first])
        };
        harness.engine.observe_object(&first, old);
        drain(&mut harness);
        assert_eq!(harness.world.log, [], "{order}");
        let rv = harness.world.tick();
        harness.world.things.get_mut(&first).unwrap().rv = rv;
        harness.world.announce(&first);
        harness.settle();
        let why = reason(&mut harness, &second);
        assert_eq!(harness.world.log, [AuditEntry::Changed(second.clone())], "{order}: {why}");
    }
}

#[test]
fn a_wave_goes_on_when_its_last_open_object_is_taken_out_or_a_newer_revision_leaves_it_behind() {
    let (early, late) = (config("early"), config("late"));
    let wave = |id: &ObjectId, wave| with(id, 1, |wanted| wanted.wave = wave);
    for ending in ["removed", "moved"] {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("early", Some(wave(&early, 0))), ("late", Some(wave(&late, 1)))]));
        refuse(&mut harness, &early);
        drain(&mut harness);
        assert!(
            reason(&mut harness, &late).contains("wave 0 is not finished"),
            "{}",
            reason(&mut harness, &late)
        );
        harness.engine.take_dirty();
        let change = if ending == "removed" { None } else { Some(wave(&early, 2)) };
        harness.read(reading("r2", &[("early", change)]));
        drain(&mut harness);
        let why = reason(&mut harness, &late);
        assert_eq!(harness.world.log, [AuditEntry::Created(late.clone())], "{ending}: {why}");
    }
    let (first, second) = (workload("first"), config("second"));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("first", Some(wave(&first, 0))), ("second", Some(wave(&second, 1)))]));
    harness.step(&first);
    apply_unhealthily(&mut harness, &first);
    harness.engine.observe_object(&first, unhealthy(&first, &harness.world.things[&first]));
    harness.world.events.clear();
    drain(&mut harness);
    assert!(reason(&mut harness, &second).contains("wave 0 is not finished"));
    harness.read(reading("r2", &[("c", Some(desired(&config("c"), 1, "c")))]));
    drain(&mut harness);
    assert!(harness.world.log.contains(&AuditEntry::Created(second)), "{:?}", harness.world.log);
}

/// Refuses an object's content, as the server.
fn refuse(harness: &mut Harness, id: &ObjectId) {
    let action = loop {
        match harness.decide(id).action {
            action @ Action::Apply(_) => break action,
            _ => drop(harness.step(id)),
        }
    };
    let why = WriteFailure::Refused("no".into(), RefusalRule::Other, Some(Duration::from_mins(5)));
    harness.engine.record_result(id, &action, ActionResult::Failed(why), harness.now);
}

/// Returns a harness in which an object was applied, and another content of it is wanted.
fn with_a_change_of(id: &ObjectId) -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(id, 1, "a")))]));
    harness.settle();
    harness.read(reading("r2", &[("a", Some(desired(id, 2, "a")))]));
    harness
}

/// Answers a write with a conflict, as the server.
fn conflict(harness: &mut Harness, id: &ObjectId, action: &Action) {
    let conflict = ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO));
    harness.engine.record_result(id, action, conflict, harness.now);
}

#[test]
fn a_lookup_ends_the_wait_for_our_own_write_whatever_version_it_shows() {
    let a = config("a");
    let mut harness = with_a_change_of(&a);
    let action = harness.decide(&a).action;
    // A quota, or a webhook, has a conflict of its own: the object is as it was.
    conflict(&mut harness, &a, &action);
    drain(&mut harness);
    assert_eq!(reason(&mut harness, &a), "waiting for the watch to show rhumb's last write");
    harness.pass_time(WRITE_ECHO_TIMEOUT);
    harness.engine.mark_dirty(&a);
    harness.settle();
    assert_eq!(harness.world.log.len(), 2, "{:?}", harness.world.log);
}

#[test]
fn a_conflict_does_not_make_a_view_from_before_our_own_write_count() {
    let a = config("a");
    let mut harness = with_a_change_of(&a);
    let action = harness.decide(&a).action;
    let shown = harness.engine.live_object(&a).unwrap().rv;
    let written = ResourceVersion(shown.0 + 10);
    harness.engine.objects.entries.get_mut(&a).unwrap().min_resource_version = Some((written, harness.now));
    conflict(&mut harness, &a, &action);
    let pending = harness.engine.entry(&a).unwrap().min_resource_version.map(|(version, _)| version);
    assert_eq!(pending, Some(written));
}

#[test]
fn a_recreated_workload_gives_its_slot_back_though_nobody_reported_that_it_was_gone() {
    let a = workload("a");
    let mut harness = Harness::new(3);
    let wanted = |content| with(&a, content, |wanted| wanted.traits.recreate = RecreatePolicy::Allowed);
    harness.read(reading("r1", &[("a", Some(wanted(1)))]));
    harness.settle();
    harness.read(reading("r2", &[("a", Some(wanted(2)))]));
    let action = harness.decide(&a).action;
    let why = WriteFailure::Refused("the field is immutable".into(), RefusalRule::Immutable, None);
    harness.engine.record_result(&a, &action, ActionResult::Failed(why), harness.now);
    let step = harness.step(&a);
    assert!(
        matches!(step, Some(Action::Delete(_, _, DeletionReason::Recreate))),
        "{step:?} {}",
        reason(&mut harness, &a)
    );
    harness.world.events.clear();
    harness.pass_time(WRITE_ECHO_TIMEOUT);
    harness.engine.mark_dirty(&a);
    harness.settle();
    assert!(harness.world.things.contains_key(&a));
    assert_eq!(harness.engine.workloads_in_flight(), [].into());
}

/// Returns two workloads with a newer content where one may restart, with the write of the first
/// one, which is sent.
pub(super) fn restarting() -> (Harness, [ObjectId; 2], Action) {
    let [a, b] = ["a", "b"].map(workload);
    let mut harness = Harness::new(1);
    let files = |content| [&a, &b].map(|id| (id.name(), Some(desired(id, content, id.name()))));
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &files(2)));
    let action = harness.decide(&a).action;
    harness.engine.note_dispatch(&a, &action);
    (harness, [a, b], action)
}

/// Records that a write got no answer.
pub(super) fn lose_answer(harness: &mut Harness, id: &ObjectId, action: &Action) {
    let lost = WriteFailure::Unknown("no answer".into(), Duration::from_secs(1));
    harness.engine.record_result(id, action, ActionResult::Failed(lost), harness.now);
}

#[test]
fn a_restart_whose_answer_was_lost_keeps_its_slot_until_the_cluster_tells() {
    let (mut harness, [a, b], action) = restarting();
    harness.world.perform(&a, &action);
    lose_answer(&mut harness, &a, &action);
    let events = std::mem::take(&mut harness.world.events);
    drain(&mut harness);
    assert_eq!(harness.world.log, [AuditEntry::Changed(a.clone())], "b must wait: a may be rolling");
    harness.world.events = events;
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a), AuditEntry::Changed(b)]);
}

#[test]
fn a_restart_that_was_never_carried_out_holds_no_slot_for_ever() {
    let (mut harness, [a, b], action) = restarting();
    lose_answer(&mut harness, &a, &action);
    harness.pass_time(Duration::from_secs(1));
    harness.engine.mark_dirty(&a);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a), AuditEntry::Changed(b)]);
}

#[test]
fn a_count_that_an_autoscaler_may_own_is_not_sent_before_the_autoscalers_are_known() {
    let a = workload("a");
    let wanted = with(&a, 1, |wanted| {
        wanted.hash_without_replicas = Some(crate::object::ContentHash::hash_bytes(b"without"));
    });
    let mut harness = Harness::new(3);
    let thing = WorldObject::settled(wanted.hash_without_replicas.unwrap(), "r1", 1);
    harness.read(reading("r1", &[("a", Some(wanted))]));
    harness.engine.observe_object(&a, LiveObject { replicas_ceded: true, ..World::live(&a, &thing) });
    (harness.world.clock, _) = (1, harness.world.things.insert(a.clone(), thing));
    drain(&mut harness);
    assert_eq!(harness.world.log, []);
    harness.engine.set_autoscaled(HashSet::from([a.clone()]));
    drain(&mut harness);
    assert_eq!(harness.world.log, []);
    harness.engine.set_autoscaled(HashSet::new());
    drain(&mut harness);
    assert_eq!(harness.world.log, [AuditEntry::Changed(a)], "no autoscaler: the manifest's count");
}

#[test]
fn an_annotation_that_the_server_does_not_keep_is_sent_once() {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    let stripped = |rv| LiveObject {
        uid: Uid("1".into()),
        rv: ResourceVersion(rv),
        release: None,
        our_fields: Some("f:rhumb.dev/release".into()),
        owner: ObjectOwner::Ours(super::world::SET.into()),
        ..World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "r1", rv))
    };
    harness.engine.observe_object(&a, stripped(5));
    let mut sent = 0;
    for _ in 0..20 {
        for id in harness.engine.take_dirty() {
            let action = harness.decide(&id).action;
            if let Action::Apply(_) = action {
                sent += 1;
                harness.engine.record_result(
                    &id,
                    &action,
                    ActionResult::Applied(WriteResult { live: stripped(5) }),
                    harness.now,
                );
            }
        }
    }
    assert_eq!(sent, 1);
    assert!(reason(&mut harness, &a).contains("does not keep"), "{}", reason(&mut harness, &a));
}

#[test]
fn a_claim_that_waits_for_its_pod_holds_nobody_up() {
    let claim = id("", "PersistentVolumeClaim", "shop", "disk");
    let waits = crate::health::of(&serde_json::json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "status": {"phase": "Pending"}}));
    assert!(crate::health::is_waiting_for_consumer(&waits));
    for order in ["annotation", "wave"] {
        let web = workload("web");
        let mut harness = Harness::new(3);
        let kind = claim.group_kind();
        harness.engine.set_kind_availability(super::world::gvk(&claim), KindAvailability::Served);
        harness.engine.list_complete(&kind);
        harness.engine.set_inventory(FIRST, naming([kind, web.group_kind()]));
        let web_wanted = with(&web, 1, |wanted| match order {
            "wave" => wanted.wave = 1,
            _ => wanted.depends_on = [claim.clone()].into(),
        });
        harness.read(reading("r1", &[("disk", Some(desired(&claim, 1, "disk"))), ("web", Some(web_wanted))]));
        drain(&mut harness);
        let live = LiveObject { health: waits.clone(), ..World::live(&claim, &harness.world.things[&claim]) };
        harness.engine.observe_object(&claim, LiveObject { rv: ResourceVersion(live.rv.0 + 1), ..live });
        drain(&mut harness);
        assert!(harness.world.things.contains_key(&web), "{order}: {}", reason(&mut harness, &web));
    }
}
