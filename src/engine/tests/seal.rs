//! Hashes of Secrets: sealed wherever they are written down, and never decided by where they cannot
//! be read.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{FIRST, budget, config, desired, id, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

fn secret() -> ObjectId {
    id("", "Secret", "shop", "password")
}

fn key(byte: u8) -> HashKey {
    HashKey::of(&[byte; 32]).unwrap()
}

fn seals(keys: &[u8]) -> HashCiphers {
    let mut seals = HashCiphers::default();
    for byte in keys {
        seals.add(&key(*byte));
    }
    seals
}

fn release(id: &ObjectId, content: u32) -> ContentRef {
    ContentRef { hash: desired(id, content, "").hash, revision: Revision::new(&format!("r{content}")) }
}

/// Returns a unit of a Secret and a workload: from the first content to the second.
fn unit() -> ReleaseUnit {
    let member = |id: ObjectId| {
        let (old, new) = (release(&id, 1), release(&id, 2).hash);
        (
            id,
            UnitMember { content: Some(new), rollback_target: RollbackTarget::Content(old), restarted: None },
        )
    };
    ReleaseUnit {
        inventory_id: "a-v1".into(),
        revision: Revision::new("r2"),
        members: [member(secret()), member(workload("web")), member(config("env"))].into(),
    }
}

fn ledger() -> RolloutLedger {
    RolloutLedger { units: vec![unit()], history: vec![unit()], ..RolloutLedger::default() }
}

fn rejections() -> Vec<Rejection> {
    vec![Rejection { unit: unit(), action: RejectionAction::RollBack, cause: "it failed".into() }]
}

#[test]
fn the_hash_of_a_secret_is_written_only_under_a_seal() {
    let seals = seals(&[1]);
    let texts = [ledger().text(&seals).unwrap(), rejections_text(&rejections(), &seals).unwrap()];
    for text in &texts {
        for content in [1, 2] {
            let has_hash = |id: &ObjectId| text.contains(&release(id, content).hash.to_string());
            assert!(!has_hash(&secret()), "{text}");
            assert!(has_hash(&workload("web")) && has_hash(&config("env")), "{text}");
        }
        assert!(text.contains("\"~") && text.contains("@r1"), "{text}");
    }
    assert_eq!(RolloutLedger::parse(&texts[0], &seals).unwrap(), ledger());
    assert_eq!(parse_rejections(&texts[1], &seals), rejections());
    assert_eq!(RolloutLedger::seal_status(&texts[0], &seals).unwrap(), HashCipherStatus::Valid);
    assert_eq!(rejections_seal_status(&texts[1], &seals), HashCipherStatus::Valid);
    // Without a key it is not written at all.
    assert_eq!(ledger().text(&HashCiphers::default()), None);
    assert_eq!(rejections_text(&rejections(), &HashCiphers::default()), None);
}

#[test]
fn each_word_is_read_by_who_has_its_key() {
    let hash = release(&secret(), 1).hash;
    let plain = hash.to_string();
    let word = |keys: &[u8]| seals(keys).hash_word(&secret(), hash).unwrap();
    let check = |word: &str, keys: &[u8], expected: (ContentHash, HashCipherStatus)| {
        let seals = seals(keys);
        assert_eq!((seals.read(word), seals.seal_status(&secret(), word)), expected, "{word} by {keys:?}");
    };
    check(&word(&[1]), &[1], (hash, HashCipherStatus::Valid));
    check(&word(&[1]), &[], (ContentHash::UNREADABLE, HashCipherStatus::Locked));
    check(&word(&[1]), &[2], (ContentHash::UNREADABLE, HashCipherStatus::Valid));
    check(&word(&[1]), &[1, 2], (hash, HashCipherStatus::Stale));
    check(&word(&[1, 2]), &[2], (hash, HashCipherStatus::Valid));
    check(&word(&[1, 2, 1]), &[1], (hash, HashCipherStatus::Valid));
    // As an older version wrote it.
    check(&plain, &[1], (hash, HashCipherStatus::Stale));
    check(&plain, &[], (hash, HashCipherStatus::Stale));
    for wrong in ["~", "~1", "~1.2", &format!("~x.{plain}"), "", "later"] {
        check(wrong, &[1], (ContentHash::UNREADABLE, HashCipherStatus::Valid));
    }
    assert_eq!(seals(&[1]).seal_status(&config("env"), &plain), HashCipherStatus::Valid);
    assert_eq!(seals(&[1]).hash_word(&secret(), ContentHash::UNREADABLE).unwrap(), "~");
    assert_ne!(word(&[1]), word(&[2]));
    let other = seals(&[1]).hash_word(&secret(), release(&secret(), 2).hash).unwrap();
    assert_ne!(word(&[1]), other);
    assert!(!format!("{:?}", seals(&[1])).contains("01"));
}

#[test]
fn what_an_older_version_wrote_is_read_and_sealed() {
    let plain = |text: String| {
        let (seals, mut text) = (seals(&[1]), text);
        for content in [1, 2] {
            let hash = release(&secret(), content).hash;
            text = text.replace(&seals.hash_word(&secret(), hash).unwrap(), &hash.to_string());
        }
        text
    };
    let older = plain(ledger().text(&seals(&[1])).unwrap());
    for seals in [HashCiphers::default(), seals(&[2])] {
        assert_eq!(RolloutLedger::parse(&older, &seals).unwrap(), ledger());
        assert_eq!(RolloutLedger::seal_status(&older, &seals).unwrap(), HashCipherStatus::Stale);
    }
    let older = plain(rejections_text(&rejections(), &seals(&[1])).unwrap());
    assert_eq!(parse_rejections(&older, &HashCiphers::default()), rejections());
    assert_eq!(rejections_seal_status(&older, &HashCiphers::default()), HashCipherStatus::Stale);
}

#[test]
fn lines_that_are_no_rejections_are_left_out_and_distinguished() {
    let seals = seals(&[1]);
    let good = rejections_text(&rejections(), &seals).unwrap();
    assert!(good.lines().all(is_readable_rejection));
    let text = format!("garbage\n{good}{{\"way\": \"back\"}}\n");
    let unread = text.lines().filter(|line| !is_readable_rejection(line)).count();
    assert_eq!((unread, parse_rejections(&text, &seals)), (2, rejections()));
}

#[test]
fn a_rejection_is_written_in_the_words_of_older_versions() {
    let check = |action: RejectionAction, expected: &str| {
        let rejection = Rejection { action, ..rejections().remove(0) };
        let text = rejections_text(&[rejection], &seals(&[1])).unwrap();
        assert!(
            text.starts_with(&format!(r#"{{"way":"{expected}","cause":"it failed","unit":{{"#)),
            "{text}"
        );
        assert!(text.contains(r#","good":""#), "{text}");
    };
    check(RejectionAction::RollBack, "back");
    check(RejectionAction::Quarantine, "held");
}

#[test]
fn what_cannot_be_read_is_no_content_and_no_removal() {
    let text = rejections_text(&rejections(), &seals(&[1])).unwrap();
    for other in [seals(&[2]), HashCiphers::default()] {
        let read = parse_rejections(&text, &other).remove(0);
        let member = &read.unit.members[&secret()];
        assert!(member.is_unreadable());
        assert_eq!(member.rollback_target, RollbackTarget::Unknown);
        assert_eq!(read.unit.members[&workload("web")], unit().members[&workload("web")]);
        let quarantined = read.quarantine_if_unreadable();
        let cause = "it failed; the record of Secret shop/password is sealed by a key that is not known here";
        assert_eq!((quarantined.action, &*quarantined.cause), (RejectionAction::Quarantine, cause));
        assert_eq!(quarantined.clone().quarantine_if_unreadable(), quarantined);
        // It can be written by whoever cannot read it.
        let again = rejections_text(std::slice::from_ref(&quarantined), &other).unwrap();
        assert_eq!(parse_rejections(&again, &other), [quarantined]);
    }
    let rejection = parse_rejections(&text, &seals(&[1])).remove(0);
    assert_eq!(rejection.clone().quarantine_if_unreadable(), rejection);
}

fn web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [secret()].into();
    Arc::new(web)
}

fn files(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 3] {
    [
        ("alone", Some(desired(&workload("alone"), content, "alone"))),
        ("secret", Some(desired(&secret(), content, "secret"))),
        ("web", Some(web(content))),
    ]
}

fn at_rest() -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness
}

#[track_caller]
fn assert_shows(harness: &Harness, expected: [u32; 3]) {
    for (id, content) in [workload("alone"), secret(), workload("web")].into_iter().zip(expected) {
        let shown = harness.world.things[&id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(desired(&id, content, "").hash), "{id}: {:#?}", harness.world.log);
    }
}

#[test]
fn what_is_released_with_a_secret_waits_for_the_key() {
    let mut harness = at_rest();
    assert!(!harness.engine.is_key_needed());
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_shows(&harness, [2, 1, 1]);
    assert!(harness.engine.is_key_needed() && harness.engine.is_reading_data());
    let reasons = |harness: &mut Harness| [secret(), workload("web")].map(|id| harness.decide(&id).reason);
    assert!(matches!(reasons(&mut harness), [Some(Reason::Reading(_)), Some(Reason::Reading(_))]));
    harness.engine.set_config_key(ReadState::Unreadable("forbidden".into()));
    harness.settle();
    let why = Some(Reason::KeyUnavailable("forbidden".into()));
    assert_eq!(reasons(&mut harness), [why.clone(), why]);
    assert!(!harness.engine.is_reading_data());
    harness.engine.set_config_key(ReadState::Value(key(1)));
    harness.settle();
    assert_shows(&harness, [2, 2, 2]);
}

#[test]
fn nothing_begins_while_the_rollout_ledger_is_locked() {
    let mut harness = at_rest();
    harness.engine = harness.fresh(3);
    harness.engine.lock_ledger();
    harness.engine.set_config_key(ReadState::Unreadable("forbidden".into()));
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_shows(&harness, [1, 1, 1]);
    assert_eq!(harness.decide(&workload("alone")).reason, Some(Reason::KeyUnavailable("forbidden".into())));
    harness.engine.set_config_key(ReadState::Value(key(1)));
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.settle();
    assert_shows(&harness, [2, 2, 2]);
}

#[test]
fn an_inventory_that_is_locked_is_not_read() {
    let mut harness = at_rest();
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    let mut engine = Engine::new(budget(3));
    engine.set_release_key(ReadState::Value(super::harness::release_key()));
    engine.add_source(SourceDeclaration::new(
        "test",
        super::world::SET,
        AdoptPolicy::IfUnowned,
        PrunePolicy::On,
        BlastRadius::default(),
    ));
    engine.lock_inventory(FIRST);
    assert!(engine.is_key_needed());
    engine.set_config_key(ReadState::Unreadable("forbidden".into()));
    let desired = desired(&secret(), 1, "secret");
    engine.set_kind_availability(desired.gvk.clone(), KindAvailability::Served);
    engine.list_complete(&secret().group_kind());
    engine.set_reading(FIRST, reading("r1", &[("secret", Some(desired))]));
    engine.record_lookup(&secret(), DirectView::Absent);
    assert_eq!(
        engine.decide(&secret(), harness.now).reason,
        Some(Reason::KeyUnavailable("forbidden".into()))
    );
    engine.set_inventory(FIRST, inventory);
    assert!(matches!(engine.decide(&secret(), harness.now).action, Action::Apply(_)));
    harness.settle();
}

#[test]
fn an_inventory_that_is_locked_later_counts_no_more() {
    let mut harness = at_rest();
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_config_key(ReadState::Unreadable("forbidden".into()));
    harness.engine.lock_inventory(FIRST);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_shows(&harness, [1, 1, 1]);
    assert_eq!(harness.decide(&workload("alone")).reason, Some(Reason::KeyUnavailable("forbidden".into())));
    harness.read(reading("r3", &[("alone", None)]));
    harness.settle();
    assert_shows(&harness, [1, 1, 1]);
    harness.engine.set_config_key(ReadState::Value(key(1)));
    harness.engine.set_inventory(FIRST, inventory);
    harness.read(reading("r4", &files(4)));
    harness.settle();
    assert_shows(&harness, [4, 4, 4]);
}

/// Returns a world whose second revision of web is bad. The record after so many turns is read
/// under another key.
fn another_key(point: usize) -> Harness {
    let mut harness = at_rest();
    harness.engine.set_config_key(ReadState::Value(key(1)));
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &files(2)));
    for _ in 0..point {
        harness.turn();
    }
    let (old, new) = (seals(&[1]), seals(&[2]));
    harness.world.ledger = RolloutLedger::parse(&harness.world.ledger.text(&old).unwrap(), &new).unwrap();
    let rejected = parse_rejections(&rejections_text(&harness.world.rejections, &old).unwrap(), &new);
    harness.world.rejections = rejected.into_iter().map(Rejection::quarantine_if_unreadable).collect();
    harness.engine = harness.fresh(3);
    harness.engine.set_config_key(ReadState::Value(key(2)));
    harness.read(reading("r2", &files(2)));
    harness.settle();
    harness
}

#[test]
fn whenever_the_key_is_lost_all_ends_and_nothing_bad_is_tried_again() {
    let web = workload("web");
    let (mut backs, mut helds) = (0, 0);
    for point in 0..60 {
        let mut harness = another_key(point);
        let before = harness.world.log.len();
        let rejected: Vec<Rejection> = harness.world.rejections.clone();
        assert_eq!(rejected.len(), 1, "{point}: {rejected:#?}");
        match rejected[0].action {
            RejectionAction::RollBack => {
                backs += 1;
                assert_shows(&harness, [2, 1, 1]);
            }
            RejectionAction::Quarantine => {
                helds += 1;
                assert!(rejected[0].cause.contains("password"), "{point}: {}", rejected[0].cause);
                let reason = harness.decide(&web).reason;
                assert!(matches!(reason, Some(Reason::Rejected(_))), "{point}: {reason:?}");
            }
        }
        for _ in 0..3 {
            harness.engine.mark_all();
            harness.settle();
        }
        assert_eq!(harness.world.log.len(), before, "{point}: {:#?}", harness.world.log);
        assert!(harness.world.is_free(), "{point}");
        // The next content is released as ever.
        harness.read(reading("r3", &files(3)));
        harness.settle();
        assert_shows(&harness, [3, 3, 3]);
    }
    assert!(backs > 3 && helds > 3, "{backs} {helds}");
}

#[test]
fn a_key_is_needed_once_something_is_to_be_sealed_or_opened() {
    for needs in [Input::SealKeyNeeded, Input::LedgerLocked, Input::InventoryLocked { source: FIRST }] {
        let mut harness = at_rest();
        assert!(!harness.engine.view().is_key_needed());
        let words = format!("{needs:?}");
        harness.engine.handle(needs, harness.now);
        assert!(harness.engine.view().is_key_needed(), "{words}");
    }
}

#[test]
fn a_unit_with_a_secret_can_be_recorded_with_a_key_alone() {
    let plain = || {
        let mut plain = unit();
        plain.members.remove(&secret());
        plain
    };
    let mut harness = at_rest();
    let recorded = |harness: &Harness| [unit(), plain()].map(|unit| harness.engine.can_be_recorded(&unit));
    assert_eq!(recorded(&harness), [false, true]);
    harness.engine.set_config_key(ReadState::Value(key(1)));
    assert_eq!(recorded(&harness), [true, true]);
}

// Else a person would look for the key in vain.
#[test]
fn a_key_that_cannot_be_read_is_the_reason_only_where_an_inventory_is_locked() {
    let (mut engine, now) = (Engine::new(budget(3)), super::world::start_time());
    engine.set_release_key(ReadState::Value(super::harness::release_key()));
    engine.add_source(super::harness::source("test", super::world::SET));
    engine.set_config_key(ReadState::Unreadable("forbidden".into()));
    let wanted = desired(&config("env"), 1, "env");
    engine.set_kind_availability(wanted.gvk.clone(), KindAvailability::Served);
    engine.end_list(&config("env").group_kind());
    engine.read(FIRST, reading("r1", &[("env", Some(wanted))]));
    engine.record_lookup(&config("env"), DirectView::Absent);
    let reason = |engine: &mut Engine| engine.decide(&config("env"), now).reason;
    let unwritten = || Some(Reason::Inventory("test".into()));
    assert_eq!(reason(&mut engine), unwritten(), "nothing is sealed");
    engine.handle(Input::InventoryLocked { source: FIRST }, now);
    assert_eq!(reason(&mut engine), Some(Reason::KeyUnavailable("forbidden".into())));
    engine.handle(Input::Inventory { source: FIRST, inventory: Inventory::default() }, now);
    assert_eq!(reason(&mut engine), unwritten(), "it was read, and names no kind");
}
