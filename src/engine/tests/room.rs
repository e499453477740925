//! An object that is too large to be recorded is refused by name, and nothing is written that would
//! not fit.

use std::sync::Arc;

use super::harness::Harness;
use super::world::{AuditEntry, SET, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, GroupKind, ObjectId, Revision};

/// Returns a workload and so many `ConfigMaps` with the longest names that there are, all of which
/// it needs.
fn files(count: usize, content: u32) -> Vec<(String, Option<SharedDesiredObject>)> {
    let used: Vec<ObjectId> = (0..count).map(|number| config(&format!("{number:0>253}"))).collect();
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = used.clone().into();
    let used = used.iter().map(|id| (id.name().to_owned(), Some(desired(id, content, id.name()))));
    used.chain([("web".to_owned(), Some(Arc::new(web)))]).collect()
}

fn read(harness: &mut Harness, revision: &str, files: &[(String, Option<SharedDesiredObject>)]) {
    let files: Vec<(&str, Option<SharedDesiredObject>)> =
        files.iter().map(|(file, wanted)| (&**file, wanted.clone())).collect();
    harness.read(reading(revision, &files));
}

/// Returns a world in which all objects change, and the number of those written.
fn change_all(count: usize) -> (Harness, usize) {
    let mut harness = Harness::new(3);
    read(&mut harness, "r1", &files(count, 1));
    harness.settle();
    harness.world.log.clear();
    read(&mut harness, "r2", &files(count, 2));
    harness.settle();
    let changed = harness.world.log.iter().filter(|wrote| matches!(wrote, AuditEntry::Changed(_))).count();
    (harness, changed)
}

#[test]
fn a_unit_whose_record_is_too_large_is_refused_by_name_and_nothing_of_it_is_written() {
    let (mut harness, changed) = change_all(1900);
    assert_eq!(changed, 0);
    assert!(harness.world.is_free());
    for id in [workload("web"), config(&format!("{:0>253}", 7))] {
        let reason = harness.decide(&id).reason.expect("it is refused");
        assert!(reason.is_refusal(), "{reason:?}");
        let reason_text = reason.to_string();
        for part in ["1901 objects", "Deployment shop/web", "600 kB", "fewer of them in one commit"] {
            assert!(reason_text.contains(part), "{reason_text} names {part}");
        }
    }
    assert_eq!(harness.engine.next_ledger(), None);
    // A commit that leaves most of them as they were is released.
    let mut few = files(1900, 1);
    few.splice(..3, files(3, 3).into_iter().take(3));
    few.pop();
    few.extend(files(1900, 3).pop());
    read(&mut harness, "r3", &few);
    harness.settle();
    assert_eq!(harness.world.log.iter().filter(|wrote| matches!(wrote, AuditEntry::Changed(_))).count(), 4);
}

#[test]
fn a_unit_whose_record_fits_is_released() {
    let (harness, changed) = change_all(150);
    assert_eq!(changed, 151);
    assert!(harness.world.is_free());
}

fn id(name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("rbac.authorization.k8s.io", "ClusterRole"), None, name)
}

fn unit(name: &str, count: usize) -> ReleaseUnit {
    let release =
        ContentRef { hash: ContentHash::hash_bytes(b"old"), revision: Revision::new(&"a".repeat(40)) };
    let hash = ContentHash::hash_bytes(b"data");
    let restarted =
        Some(ConfigRestart { key: Some(u32::MAX), data: hash, foreign: hash, before: Some(hash) });
    let member = |number: usize| UnitMember {
        content: Some(ContentHash::hash_bytes(b"new")),
        rollback_target: if number.is_multiple_of(2) {
            RollbackTarget::Content(release.clone())
        } else {
            RollbackTarget::Absent
        },
        restarted: restarted.filter(|_| number.is_multiple_of(3)),
    };
    ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new(&"b".repeat(40)),
        members: (0..count).map(|number| (id(&format!("{name}{number}")), member(number))).collect(),
    }
}

#[test]
fn no_record_is_larger_than_it_is_taken_for() {
    for name in ["web", "", "it's \"quoted\"\n", "a:b\\c", &"x".repeat(253)] {
        let claim = RolloutClaim {
            inventory_id: SET.into(),
            holder: "1-2-3".into(),
            rollout_key: ContentHash::hash_bytes(b"new"),
            reserved: u32::MAX,
            holder_exited: true,
            recreates: true,
            recreation_deadline: Some(600),
        };
        let claims = (0..50).map(|number| (id(&format!("{name}{number}")), claim.clone())).collect();
        let start = |number: usize| RolloutStart {
            id: id(&format!("{name}{number}")),
            inventory_id: SET.into(),
            at: jiff::Timestamp::MAX,
            clock: name.into(),
        };
        let tally = BudgetTally {
            inventory_id: SET.into(),
            name: name.into(),
            pods: u32::MAX,
            pods_in: [(name.into(), u32::MAX)].into(),
            unavailable: (0..20).map(|number| (id(&format!("{name}{number}")), u32::MAX)).collect(),
            rest: u32::MAX,
            at: Some(jiff::Timestamp::UNIX_EPOCH),
        };
        let ledger = RolloutLedger {
            claims,
            units: vec![unit(name, 50), unit(name, 1)],
            starts: (0..50).map(start).collect(),
            tallies: vec![tally],
            ..RolloutLedger::default()
        };
        let (text, bytes) = (ledger.text(&HashCiphers::default()).unwrap().len(), ledger.bytes());
        assert!(text <= bytes + 30, "{name:?}: {text} bytes are taken for {bytes}");
    }
}

#[test]
fn what_decides_nothing_is_left_out_where_it_does_not_fit() {
    let queued = |length: usize| QueuedObject {
        id: workload("web"),
        inventory_id: SET.into(),
        position: None,
        reason: "x".repeat(length).into(),
    };
    let check = |queue: usize, past: usize, expected: (usize, usize)| {
        let ledger = RolloutLedger {
            units: vec![unit("unit", 100)],
            history: vec![unit("past", past)],
            queue: vec![queued(queue)],
            ..RolloutLedger::default()
        };
        let text = ledger.bounded_text(&HashCiphers::default()).unwrap();
        assert!(text.len() <= MAX_RECORD_BYTES, "{}", text.len());
        let read = RolloutLedger::parse(&text, &HashCiphers::default()).unwrap();
        assert_eq!(read.units, ledger.units);
        assert_eq!((read.queue.len(), read.history.len()), expected);
    };
    check(10, 10, (1, 1));
    check(MAX_RECORD_BYTES, 10, (0, 1));
    check(MAX_RECORD_BYTES, 6000, (0, 0));
}

#[test]
fn as_long_as_other_rollouts_fill_the_ledger_no_unit_is_added_to_it() {
    let mut harness = Harness::new(3);
    read(&mut harness, "r1", &files(1, 1));
    harness.settle();
    read(&mut harness, "r2", &files(1, 2));
    let theirs = ReleaseUnit { inventory_id: "applyset-theirs-v1".into(), ..unit("unit", 6000) };
    let full = RolloutLedger { units: vec![theirs], ..harness.world.ledger.clone() };
    assert!(full.bytes() > MAX_RECORD_BYTES);
    harness.engine.set_ledger(full);
    let reason = harness.engine.decide(&workload("web"), harness.now).reason;
    let is_full = matches!(&reason, Some(Reason::Retrying(RetryCause::LedgerFull { .. }, _)));
    assert!(is_full, "{reason:?}");
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.settle();
    assert!(harness.world.log.contains(&AuditEntry::Changed(workload("web"))), "{:?}", harness.world.log);
}
