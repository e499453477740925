//! A release annotation is unproven, and a fact only by its seal.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::harness::{Harness, release_key};
use super::world::{AuditEntry, FIRST, SET, World, WorldObject, config, desired, id, reading, workload};
use crate::engine::facts::release_annotation::SealedFacts;
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

pub(super) fn release(content: &str, revision: &str) -> ContentRef {
    ContentRef { hash: ContentHash::hash_bytes(content.as_bytes()), revision: Revision::new(revision) }
}

/// Returns the key as it is when all is well.
fn right() -> ReadState<HashKey> {
    ReadState::Value(release_key())
}

fn other_key() -> HashKey {
    HashKey::of(&[8; 32]).unwrap()
}

/// Returns the live view of an object with an unproven annotation, sealed by a key or not at all.
fn unproven_view(harness: &Harness, id: &ObjectId, by: Option<&HashKey>) -> LiveObject {
    let thing = &harness.world.things[id];
    let mut live = World::live(id, thing);
    let release = live.release.take().unwrap();
    let seal =
        by.map(|key| ReleaseKey::of(key).seal(SET, id, &release, SealedFacts::of(PruneTiming::AfterUnit, 0)));
    LiveObject { unproven_release: Some(Box::new(ReleaseAnnotation { release, seal })), ..live }
}

/// Returns a process that has just started and finds all objects with unproven annotations.
fn restarted(harness: &Harness, by: Option<&HashKey>, key: ReadState<HashKey>) -> Engine {
    let empty = Harness { world: World { things: [].into(), ..harness.world.clone() }, ..harness.clone() };
    let mut engine = empty.fresh_without_key();
    for id in harness.world.things.keys() {
        engine.observe_object(id, unproven_view(harness, id, by));
    }
    engine.set_release_key(key);
    engine
}

pub(super) fn at_rest() -> Harness {
    let mut harness = Harness::new(3);
    let files = [config("a"), workload("web")].map(|id| (id.name().to_owned(), desired(&id, 1, id.name())));
    let files: Vec<_> = files.iter().map(|(file, desired)| (&**file, Some(desired.clone()))).collect();
    harness.read(reading("r1", &files));
    harness.settle();
    harness.world.log.clear();
    harness
}

fn judgement(harness: &mut Harness, id: &ObjectId) -> String {
    harness.read_contents();
    harness.engine.process_changes();
    let found =
        harness.engine.prune_decisions(FIRST).find(|(other, _)| *other == id).map(|(_, found)| found.clone());
    found.map_or_else(String::new, |found| format!("{found:?}"))
}

#[test]
fn a_seal_holds_for_one_source_object_content_and_revision_under_one_key() {
    let web = id("apps", "Deployment", "shop", "web");
    let of = |key: &HashKey, set: &str, id: &ObjectId, release: &ContentRef| {
        ReleaseKey::of(key).seal(set, id, release, SealedFacts::of(PruneTiming::AfterUnit, 0))
    };
    let seal = of(&release_key(), SET, &web, &release("a", "r1"));
    assert_eq!(seal, of(&release_key(), SET, &web, &release("a", "r1")));
    let timed = |timing| {
        ReleaseKey::of(&release_key()).seal(SET, &web, &release("a", "r1"), SealedFacts::of(timing, 0))
    };
    assert_eq!(seal, timed(PruneTiming::BeforeUnit), "the order of a deletion is no proof");
    let others = [
        ("source", of(&release_key(), "applyset-other-v1", &web, &release("a", "r1"))),
        ("group", of(&release_key(), SET, &id("x", "Deployment", "shop", "web"), &release("a", "r1"))),
        ("kind", of(&release_key(), SET, &id("apps", "DaemonSet", "shop", "web"), &release("a", "r1"))),
        ("namespace", of(&release_key(), SET, &id("apps", "Deployment", "ops", "web"), &release("a", "r1"))),
        ("no namespace", of(&release_key(), SET, &id("apps", "Deployment", "", "web"), &release("a", "r1"))),
        ("name", of(&release_key(), SET, &id("apps", "Deployment", "shop", "we"), &release("a", "r1"))),
        ("border", of(&release_key(), SET, &id("apps", "Deployment", "shopw", "eb"), &release("a", "r1"))),
        ("hash", of(&release_key(), SET, &web, &release("b", "r1"))),
        ("revision", of(&release_key(), SET, &web, &release("a", "r2"))),
        ("key", of(&other_key(), SET, &web, &release("a", "r1"))),
        ("keep", timed(PruneTiming::Never)),
        ("confirm", timed(PruneTiming::OnConfirmation)),
    ];
    let all: BTreeSet<String> = others.iter().map(|(_, other)| other.to_string()).collect();
    assert_eq!(all.len(), others.len());
    for (altered, other) in others {
        assert_ne!(seal, other, "{altered}");
    }
}

#[test]
fn annotations_are_read_within_bounds() {
    let hash = "00112233445566778899aabbccddeeff";
    let check = |text: &str, expected: Option<(&str, bool)>| {
        let read = ReleaseAnnotation::parse(text);
        let read =
            read.as_ref().map(|annotation| (annotation.release.revision.as_str(), annotation.seal.is_some()));
        assert_eq!(read, expected, "{text:.80}");
    };
    let long = "a".repeat(64);
    check(&format!("{hash}@r1"), Some(("r1", false)));
    check(&format!("{hash}@r1 {hash}"), Some(("r1", true)));
    check(&format!("{hash}@{long}"), Some((&long, false)));
    check(&format!("{hash}@{long}a"), None);
    check(&format!("{hash}@{}", "a".repeat(200_000)), None);
    check(&format!("{hash}@r1 {hash}0"), Some(("r1", false)));
    check(&format!("{hash}@r1 {}", "f".repeat(200_000)), Some(("r1", false)));
    check(&format!("{hash}@r\n1"), None);
    check(&format!("{}@r1", "f".repeat(32)), None);
    check("", None);
    let annotation = ReleaseAnnotation::parse(&format!("{hash}@r1 {hash}")).unwrap();
    assert_eq!(annotation.to_string(), format!("{hash}@r1 {hash}"));
}

#[test]
fn what_is_written_is_sealed_and_its_own_seal_proves_it() {
    let (a, mut harness) = (config("a"), Harness::new(3));
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    let decision = harness.decide(&a);
    let decision = if decision.action == Action::Lookup {
        harness.engine.record_lookup(&a, DirectView::Absent);
        harness.decide(&a)
    } else {
        decision
    };
    let Action::Apply(apply) = decision.action else { panic!("{decision:?}") };
    let release = apply.release_annotation().release;
    let seal = |timing| ReleaseKey::of(&release_key()).seal(SET, &a, &release, SealedFacts::of(timing, 1));
    assert_eq!(apply.seal, Some(seal(PruneTiming::AfterUnit)));
    // A manifest that asks to be kept says so in the seal too.
    let mut kept = (*apply.desired).clone();
    kept.traits.prune_timing = PruneTiming::Never;
    let apply = ApplyRequest { desired: kept.into(), ..apply };
    let decision = Decision { action: Action::Apply(apply), ..harness.decide(&a) };
    let Action::Apply(apply) = harness.engine.seal_decision(&a, decision).action else { panic!() };
    assert_eq!(apply.seal, Some(seal(PruneTiming::Never)));
}

#[test]
fn the_serial_number_of_a_release_is_the_time_or_above_the_last_one_and_that_of_the_same_release_stays() {
    let a = config("a");
    // The content and the serial number of the newest release that was seen.
    let check = |seconds: u64, seen: Option<(u32, u64)>, expected: u64| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
        harness.engine.set_clock(harness.now, jiff::Timestamp::UNIX_EPOCH + Duration::from_secs(seconds));
        if let Some((content, release_serial)) = seen {
            let thing = WorldObject::settled(desired(&a, content, "a").hash, "r0", 1);
            let live = LiveObject { release_serial, ..World::live(&a, &thing) };
            harness.engine.store_live_object(&a, live);
        }
        let apply = ApplyRequest {
            desired: desired(&a, 1, "a"),
            source: FIRST,
            revision: Revision::new("r1"),
            seal: None,
            precondition: Precondition::Absent,
            decided_on: None,
            variant: ApplyVariant::PLAIN,
            purpose: ApplyPurpose::Change,
            restarts: RestartRisk::Absent,
        };
        let decision = harness.engine.seal_decision(&a, Decision::act(Action::Apply(apply)));
        let Action::Apply(apply) = decision.action else { panic!() };
        assert_eq!(apply.seal.map(|seal| seal.serial), Some(expected), "{seconds} {seen:?}");
    };
    check(0, None, 1);
    check(1000, None, 1000);
    check(1000, Some((2, 7)), 1000);
    check(1000, Some((2, 1000)), 1001);
    check(1000, Some((2, 5000)), 5001);
    check(1000, Some((1, 7)), 7);
    check(1000, Some((1, 0)), 1);
}

// Anybody may take the annotation off the object, and a lost revision reads no manifest again.
#[test]
fn a_word_to_keep_outlives_the_annotation_and_the_manifest_that_had_it() {
    let check = |timing: PruneTiming, expected: &str| {
        let mut harness = at_rest();
        let a = config("a");
        let empty =
            Harness { world: World { things: [].into(), ..harness.world.clone() }, ..harness.clone() };
        let mut live = unproven_view(&harness, &a, None);
        let annotation = live.unproven_release.as_mut().unwrap();
        annotation.seal = Some(ReleaseKey::of(&release_key()).seal(
            SET,
            &a,
            &annotation.release,
            SealedFacts::of(timing, 0),
        ));
        let content = annotation.release.hash;
        harness.engine = empty.fresh_without_key();
        harness.engine.observe_object(&a, live);
        harness.engine.set_release_key(right());
        harness.history.remove(&content);
        harness.read(reading("r2", &[]));
        let judged = judgement(&mut harness, &a);
        assert!(judged.starts_with(expected), "{timing:?}: {judged}");
    };
    check(PruneTiming::AfterUnit, "Delete");
    check(PruneTiming::BeforeUnit, "Delete");
    check(PruneTiming::OnConfirmation, "Confirm");
    check(PruneTiming::Never, "Keep(Annotated)");
}

#[test]
fn nothing_is_written_before_it_is_known_whether_there_is_a_key() {
    let (a, mut harness) = (config("a"), Harness::new(3));
    harness.engine = harness.fresh_without_key();
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert!(harness.engine.is_reading_data());
    // Without a key what is written has no seal, and is never pruned.
    harness.engine.set_release_key(ReadState::Unreadable("forbidden".into()));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(a)]);
}

#[test]
fn what_shows_the_wanted_content_is_taken_up_without_a_write_whatever_its_seal() {
    for by in [None, Some(other_key()), Some(release_key())] {
        for key in [right(), ReadState::Unreadable("forbidden".into()), ReadState::Reading] {
            let mut harness = at_rest();
            let commit = harness.commits.last().unwrap().1.clone();
            harness.engine = restarted(&harness, by.as_ref(), key);
            let files: Vec<_> =
                commit.iter().map(|(file, desired)| (&**file, Some(desired.clone()))).collect();
            harness.read(reading("r1", &files));
            harness.settle();
            assert_eq!(harness.world.log, []);
            let accepted = harness
                .engine
                .entry(&workload("web"))
                .unwrap()
                .accepted
                .content()
                .map(|desired| desired.hash);
            assert_eq!(accepted, Some(commit["web"].hash));
        }
    }
}

#[test]
fn only_what_its_seal_proves_is_pruned() {
    let check = |by: Option<&HashKey>, key: ReadState<HashKey>, expected: &str| {
        let mut harness = at_rest();
        harness.engine = restarted(&harness, by, key);
        harness.read(reading("r2", &[]));
        let judged = judgement(&mut harness, &config("a"));
        assert!(judged.starts_with(expected), "{judged}");
        harness.settle();
        let deleted = !harness.world.things.contains_key(&config("a"));
        assert_eq!(deleted, expected == "Delete", "{judged}");
    };
    check(Some(&release_key()), right(), "Delete");
    check(None, right(), "Keep(Unproven)");
    check(Some(&other_key()), right(), "Keep(Unproven)");
    check(Some(&release_key()), ReadState::Value(other_key()), "Keep(Unproven)");
    check(Some(&release_key()), ReadState::Unreadable("forbidden".into()), "Defer(UncheckedSeals(");
    check(Some(&release_key()), ReadState::Reading, "Defer(UnreadKey)");
}

#[test]
fn a_copy_of_a_sealed_object_is_no_member() {
    let mut harness = at_rest();
    let (a, copy) = (config("a"), id("", "ConfigMap", "elsewhere", "a"));
    let mut live = unproven_view(&harness, &a, Some(&release_key()));
    live.uid = Uid("copy".into());
    harness.engine.observe_object(&copy, live);
    assert!(judgement(&mut harness, &copy).starts_with("Keep"));
    assert_eq!(
        harness.engine.source(FIRST).live_counts().by_kind()[&a.group_kind()],
        1,
        "it makes no precondition laxer"
    );
}

#[test]
fn a_forged_release_is_neither_fetched_nor_kept_nor_gone_back_to() {
    let mut harness = at_rest();
    let web = workload("web");
    let forged = release("of a fork", "f0f0f0");
    for seal in [
        None,
        Some(ReleaseKey::of(&other_key()).seal(
            SET,
            &web,
            &forged,
            SealedFacts::of(PruneTiming::AfterUnit, 0),
        )),
    ] {
        let mut live = unproven_view(&harness, &web, None);
        live.rv = ResourceVersion(live.rv.0 + 100);
        live.unproven_release = Some(Box::new(ReleaseAnnotation { release: forged.clone(), seal }));
        let mut engine = restarted(&Harness { world: World::default(), ..harness.clone() }, None, right());
        engine.observe_object(&web, live);
        engine.set_reading(FIRST, reading("r2", &[("web", Some(desired(&web, 2, "web")))]));
        engine.process_changes();
        let decision = engine.decide(&web, harness.now);
        assert!(engine.unread_contents().is_empty(), "{decision:?}");
        assert!(!engine.revisions().contains(&forged.revision));
        assert!(
            !matches!(engine.member(FIRST, &web).rollback_target, RollbackTarget::Content(good) if good == forged)
        );
    }
    // In a process that knows what it has put there, it is drift.
    let mut live = unproven_view(&harness, &web, None);
    live.rv = ResourceVersion(live.rv.0 + 100);
    live.unproven_release = Some(Box::new(ReleaseAnnotation { release: forged.clone(), seal: None }));
    harness.engine.observe_object(&web, live);
    let known = harness.engine.entry(&web).unwrap().accepted.content().map(|known| known.hash);
    assert_eq!(known, Some(desired(&web, 1, "web").hash));
    let mut decision = harness.decide(&web);
    if let Action::CompareCached(desired, variant) = &decision.action {
        let managed_fields = harness.engine.live_object(&web).and_then(|live| live.our_fields.clone());
        let content = variant.hash(desired);
        let verified = VerifiedOwnership {
            content,
            overlay: None,
            config_stamp: None,
            managed_fields,
            value_digest: None,
            cover: FieldOwnership::Complete,
        };
        harness.engine.record_coverage(&web, verified);
        decision = harness.decide(&web);
    }
    assert!(
        matches!(
            &decision.action,
            Action::Apply(ApplyRequest { purpose: ApplyPurpose::Repair, restarts: RestartRisk::Absent, .. })
        ),
        "{decision:?}"
    );
    assert!(!harness.engine.unread_contents().contains_key(&forged.revision));
}

#[test]
fn a_key_that_comes_late_proves_what_was_listed_before() {
    let mut harness = at_rest();
    harness.engine = restarted(&harness, Some(&release_key()), ReadState::Reading);
    assert!(harness.engine.informer_object(&config("a")).unwrap().is_unproven());
    harness.engine.set_release_key(ReadState::Value(release_key()));
    assert!(!harness.engine.informer_object(&config("a")).unwrap().is_unproven());
    // One that is lost while this process runs is made again; what another process makes instead
    // proves nothing more.
    harness.engine.set_release_key(ReadState::Unreadable("gone".into()));
    harness.engine.set_release_key(ReadState::Value(other_key()));
    assert!(!harness.engine.informer_object(&config("a")).unwrap().is_unproven());
    harness.engine.assert_counts();
}

#[test]
fn what_was_found_as_asked_for_can_be_gone_back_to_without_a_seal() {
    let mut harness = at_rest();
    let web = workload("web");
    let commit = harness.commits.last().unwrap().1.clone();
    harness.engine = restarted(&harness, None, ReadState::Value(release_key()));
    let files: Vec<_> = commit.iter().map(|(file, desired)| (&**file, Some(desired.clone()))).collect();
    harness.read(reading("r1", &files));
    harness.settle();
    assert!(harness.engine.revisions().contains(&Revision::new("r1")));
    harness.read(reading("r2", &[("web", Some(desired(&web, 2, "web")))]));
    let good = ContentRef { hash: commit["web"].hash, revision: Revision::new("r1") };
    assert_eq!(harness.engine.member(FIRST, &web).rollback_target, RollbackTarget::Content(good));
}

/// Shows a newer view of an object with this release, sealed with this place among all of them.
fn show_release(harness: &mut Harness, id: &ObjectId, release: &ContentRef, serial: u64) {
    let rv = harness.engine.informer_object(id).unwrap().rv;
    let live = World::live(id, &harness.world.things[id]);
    let seal = ReleaseKey::of(&release_key()).seal(
        SET,
        id,
        release,
        SealedFacts::of(PruneTiming::AfterUnit, serial),
    );
    let annotation = ReleaseAnnotation { release: release.clone(), seal: Some(seal) };
    let unproven_release = Some(Box::new(annotation));
    let live = LiveObject { rv: rv.next(), release: None, unproven_release, ..live };
    harness.engine.observe_object(id, live);
}

#[test]
fn an_earlier_release_that_somebody_writes_back_is_unproven() {
    let check = |first: u64, then: u64, is_proven: bool| {
        let (mut harness, web) = (at_rest(), workload("web"));
        let now = harness.world.things[&web].release.clone().unwrap();
        show_release(&mut harness, &web, &now, first);
        show_release(&mut harness, &web, &release("old", "r0"), then);
        let live = harness.engine.informer_object(&web).unwrap();
        assert_eq!(!live.is_unproven(), is_proven, "{first}, {then}");
        let accepted = harness.engine.entry(&web).unwrap().accepted.content().map(|known| known.hash);
        assert_eq!(accepted, (!is_proven).then_some(now.hash), "{first}, {then}");
        assert_eq!(harness.engine.unread_contents().is_empty(), !is_proven, "{first}, {then}");
        // Nothing that it says is gone back to.
        let target = harness.engine.member(FIRST, &web).rollback_target;
        let is_target =
            matches!(target, RollbackTarget::Content(content) if content.revision.as_str() == "r0");
        assert_eq!(is_target, is_proven, "{first}, {then}");
    };
    check(5, 6, true);
    check(5, 4, false);
    // An older version left no place.
    check(5, 0, false);
    check(0, 1, true);
}

#[test]
fn an_earlier_seal_of_the_same_content_is_written_anew_and_the_next_release_is_above_all() {
    let (mut harness, a) = (at_rest(), config("a"));
    let now = harness.world.things[&a].release.clone().unwrap();
    show_release(&mut harness, &a, &now, 7);
    show_release(&mut harness, &a, &now, 6);
    let place = |decision: &Decision| match &decision.action {
        Action::Apply(apply) => apply.release_annotation().to_string().rsplit(' ').next().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    let mut decision = harness.decide(&a);
    if let Action::CompareCached(desired, variant) = &decision.action {
        let managed_fields = harness.engine.live_object(&a).and_then(|live| live.our_fields.clone());
        let content = variant.hash(desired);
        let (overlay, config_stamp, value_digest) = (None, None, None);
        let cover = FieldOwnership::Complete;
        let verified =
            VerifiedOwnership { content, overlay, config_stamp, managed_fields, value_digest, cover };
        harness.engine.record_coverage(&a, verified);
        decision = harness.decide(&a);
    }
    assert_eq!(place(&decision), "7", "the same release keeps its place");
    harness.read(reading(
        "r2",
        &[("a", Some(desired(&a, 2, "a"))), ("web", Some(desired(&workload("web"), 1, "web")))],
    ));
    harness.engine.process_changes();
    assert_eq!(place(&harness.decide(&a)), "8");
}

#[test]
fn an_object_that_the_inventory_records_as_kept_stays_whatever_its_seal_says() {
    let check = |recorded: &[PruneTiming], is_truncated: bool, expected: &str| {
        let mut harness = at_rest();
        let a = config("a");
        let inventory = harness.engine.source(FIRST).inventory.clone().unwrap_or_default();
        let timings =
            recorded.iter().map(|timing| (a.clone(), KeptTiming { timing: *timing, serial: 0 })).collect();
        let kept = KeptObjects { timings, is_truncated };
        harness.read(reading("r2", &[("a", None)]));
        harness.engine.set_inventory(FIRST, Inventory { kept, ..inventory });
        let judged = judgement(&mut harness, &a);
        assert!(judged.starts_with(expected), "{recorded:?}, {is_truncated}: {judged}");
    };
    check(&[], false, "Delete");
    check(&[PruneTiming::Never], false, "Keep(Annotated)");
    check(&[PruneTiming::OnConfirmation], false, "Confirm");
    // There are more than have room, and it may be one of them.
    check(&[], true, "Confirm");
    check(&[PruneTiming::Never], true, "Keep(Annotated)");
}

#[test]
fn what_the_inventory_of_another_process_records_as_kept_stays_until_a_newer_release_than_that() {
    let check = |recorded: Option<u64>, found: u64, expected: &str| {
        let mut harness = at_rest();
        let a = config("a");
        harness.read(reading("r2", &[("a", None)]));
        let mut live = harness.engine.live_object(&a).unwrap().clone();
        live.release_serial = found;
        harness.engine.store_live_object(&a, live);
        let kept = recorded.map(|serial| (a.clone(), KeptTiming { timing: PruneTiming::Never, serial }));
        let kept = KeptObjects { timings: kept.into_iter().collect(), is_truncated: false };
        let (name, inventory_id, says) =
            ("other".into(), "applyset-x-v1".into(), Ok(SourceStatement::default()));
        harness.engine.set_peers(
            vec![PeerSource { name, inventory_id, statement: says, kept, rejections: Vec::new() }],
            Instant::now(),
        );
        let judged = judgement(&mut harness, &a);
        assert!(judged.starts_with(expected), "{recorded:?}, {found}: {judged}");
    };
    let kept = "Keep(Annotated)";
    check(None, 7, "Delete");
    check(Some(8), 7, kept);
    check(Some(7), 7, kept);
    check(Some(6), 7, "Delete");
    // An older version has recorded no number.
    check(Some(0), 7, kept);
}

#[test]
fn the_manifest_in_force_says_what_the_inventory_records_as_kept() {
    let (mut harness, a) = (at_rest(), config("a"));
    let with = |timing: PruneTiming, content: u32| {
        let mut object = (*desired(&a, content, "a")).clone();
        object.traits.prune_timing = timing;
        let object: SharedDesiredObject = object.into();
        object
    };
    let recorded = |harness: &Harness| {
        let kept = harness.engine.kept_objects(FIRST).timings;
        kept.into_iter().map(|(id, kept)| (id, kept.timing)).collect::<Vec<_>>()
    };
    let record = |harness: &mut Harness| {
        let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
        let kept = harness.engine.kept_objects(FIRST);
        harness.engine.set_inventory(FIRST, Inventory { kept, ..inventory });
    };
    assert_eq!(recorded(&harness), []);
    harness.read(reading("r2", &[("a", Some(with(PruneTiming::Never, 2)))]));
    assert_eq!(recorded(&harness), [(a.clone(), PruneTiming::Never)], "before it is in force");
    harness.settle();
    assert_eq!(recorded(&harness), [(a.clone(), PruneTiming::Never)]);
    record(&mut harness);
    // Until another one is in force, it holds.
    harness.read(reading("r3", &[("a", Some(with(PruneTiming::AfterUnit, 3)))]));
    assert_eq!(recorded(&harness), [(a.clone(), PruneTiming::Never)]);
    harness.settle();
    assert_eq!(recorded(&harness), []);
    harness.read(reading("r4", &[("a", Some(with(PruneTiming::OnConfirmation, 4)))]));
    harness.settle();
    record(&mut harness);
    harness.read(reading("r5", &[("a", None)]));
    harness.settle();
    assert_eq!(recorded(&harness), [(a.clone(), PruneTiming::OnConfirmation)], "nobody wants it any more");
}
