use std::collections::{BTreeMap, BTreeSet};

use super::world::{config, id};
use crate::engine::{
    AllowViolation, BlastRadius, BlockingRoot, ChangeMilestone, DisallowedObject, PeerInterest,
    PruneCandidate, PruneCause, PruneDecision, PruneGuard, PruneTiming, RootRelation, SourceLifecycle, Uid,
    WithheldCause, WithheldDeletion, decide_prunes,
};
use crate::health::{Health, HealthStatus};
use crate::object::{GroupKind, ObjectId};

fn pending(id: ObjectId) -> PruneCandidate {
    let uid = Uid(format!("uid-{}", id.name()).into());
    PruneCandidate {
        id,
        uid,
        prune_timing: PruneTiming::AfterUnit,
        not_allowed: None,
        unrendered: None,
        is_unproven: false,
        is_kept_by_claim: false,
        unfinished: None,
        needed_by: None,
        withheld: None,
    }
}

/// Returns why a source may not have a ConfigMap.
fn disallowed() -> DisallowedObject {
    DisallowedObject { violation: AllowViolation::Kind(GroupKind::parse("ConfigMap")), step: Some(2) }
}

/// Returns a change that does not become healthy.
fn unhealthy() -> (ObjectId, ChangeMilestone) {
    (config("x"), ChangeMilestone::Healthy(Health::new(HealthStatus::InProgress, "")))
}

fn inventory(counts: &[(&str, u32)]) -> BTreeMap<GroupKind, u32> {
    counts.iter().map(|(kind, count)| (GroupKind::parse(kind), *count)).collect()
}

fn words(judged: &BTreeMap<ObjectId, PruneDecision>, id: &ObjectId) -> String {
    match &judged[id] {
        PruneDecision::Delete => "delete".to_owned(),
        PruneDecision::Defer(why) => format!("later: {why}"),
        PruneDecision::Confirm(why) => format!("confirm: {why}"),
        PruneDecision::Keep(why) => format!("keep: {why}"),
        PruneDecision::Ignore(why) => format!("leave: {why}"),
    }
}

/// Returns a guard that lets all go that is asked for.
fn open_guard<'a>(confirmed: &'a BTreeSet<Uid>, inventory: &'a BTreeMap<GroupKind, u32>) -> PruneGuard<'a> {
    PruneGuard {
        closed: None,
        other_location: None,
        is_kept_complete: true,
        radius: BlastRadius::default(),
        lifecycle: SourceLifecycle::Active,
        confirmed,
        inventory,
    }
}

#[track_caller]
fn check(all: &[PruneCandidate], guard: &PruneGuard<'_>, expected: &str) {
    assert_eq!(words(&decide_prunes(all, guard), &all[0].id), expected);
}

#[test]
fn what_is_not_allowed_is_left_whatever_else_holds() {
    let confirmed = BTreeSet::from([Uid("uid-a".into())]);
    let three = inventory(&[("ConfigMap", 3)]);
    let not_allowed = || PruneCandidate { not_allowed: Some(disallowed()), ..pending(config("a")) };
    let left = "leave: no longer allowed, so it is neither repaired nor deleted: the kind ConfigMap is not among \
                `allow.kinds` of the source; it stays in step 2 of its rollout";
    let open = open_guard(&confirmed, &three);
    check(&[not_allowed()], &open, left);
    check(&[not_allowed()], &PruneGuard { lifecycle: SourceLifecycle::Deleting, ..open.clone() }, left);
    let closed = Some(PruneDecision::Defer(PruneCause::UnreadInventory));
    check(&[not_allowed()], &PruneGuard { closed, ..open.clone() }, left);
    // It does not count among what would go at once.
    check(&[pending(config("b")), not_allowed()], &open, "delete");
}

/// Returns an object that stays whatever a person confirms, for each reason of its own.
fn staying() -> [PruneCandidate; 3] {
    let b = || pending(config("b"));
    [
        PruneCandidate { prune_timing: PruneTiming::Never, ..b() },
        PruneCandidate { is_unproven: true, ..b() },
        PruneCandidate { not_allowed: Some(disallowed()), ..b() },
    ]
}

#[test]
fn the_end_of_a_source_leaves_what_an_object_uses_that_stays() {
    let nobody = BTreeSet::new();
    let hundred = inventory(&[("ConfigMap", 100)]);
    let guard = PruneGuard { lifecycle: SourceLifecycle::Deleting, ..open_guard(&nobody, &hundred) };
    let used = PruneCandidate { needed_by: Some(config("b")), ..pending(config("a")) };
    for user in staying() {
        check(&[used.clone(), user], &guard, "keep: ConfigMap shop/b, which is kept, uses it");
    }
}

#[test]
fn an_object_that_stays_takes_no_room_of_the_blast_radius() {
    let nobody = BTreeSet::new();
    let hundred = inventory(&[("ConfigMap", 100)]);
    let radius = BlastRadius { count: 1, percent: 100 };
    let guard = PruneGuard { radius, ..open_guard(&nobody, &hundred) };
    for other in staying() {
        check(&[pending(config("a")), other], &guard, "delete");
    }
}

// Else whoever may write one object would have others go without a question.
#[test]
fn an_object_that_only_its_own_annotations_keep_counts_as_one_that_goes() {
    let (nobody, confirmed) = (BTreeSet::new(), BTreeSet::from([Uid("uid-b".into())]));
    let (two, three) = (inventory(&[("ConfigMap", 2)]), inventory(&[("ConfigMap", 3)]));
    let b = || pending(config("b"));
    let annotated =
        |is_kept_by_claim| PruneCandidate { prune_timing: PruneTiming::Never, is_kept_by_claim, ..b() };
    let unproven = |is_kept_by_claim| PruneCandidate { is_unproven: true, is_kept_by_claim, ..b() };
    let all = |b: PruneCandidate| [pending(config("a")), b, pending(config("c"))];
    let wide = BlastRadius { count: 100, percent: 100 };
    let of_kind = |inventory| PruneGuard { radius: wide, ..open_guard(&nobody, inventory) };
    let would_go = "confirm: all 3 objects of kind ConfigMap would be pruned";
    check(&all(annotated(true)), &of_kind(&three), would_go);
    check(&all(annotated(false)), &of_kind(&three), "delete");
    // The inventory counts no object without a seal.
    check(&all(unproven(true)), &of_kind(&two), would_go);
    check(&all(unproven(false)), &of_kind(&two), "delete");
    let hundred = inventory(&[("ConfigMap", 100)]);
    let radius = BlastRadius { count: 1, percent: 100 };
    let narrow = PruneGuard { radius, ..open_guard(&nobody, &hundred) };
    let beyond = |total: u32| {
        format!("confirm: 2 of {total} objects would be pruned at once, beyond the blast radius")
    };
    check(&[pending(config("a")), annotated(true)], &narrow, &beyond(100));
    check(&[pending(config("a")), unproven(true)], &narrow, &beyond(101));
    // A person knows of it.
    let sure = PruneGuard { confirmed: &confirmed, ..narrow.clone() };
    check(&[pending(config("a")), annotated(true)], &sure, "delete");
    let kept = "keep: no longer wanted, and kept, as an annotation of it asks";
    for guard in [&narrow, &sure] {
        check(&[annotated(true), pending(config("a"))], guard, kept);
    }
}

#[test]
fn where_not_all_that_is_kept_is_known_a_person_confirms_each() {
    let (nobody, confirmed) = (BTreeSet::new(), BTreeSet::from([Uid("uid-a".into())]));
    let hundred = inventory(&[("ConfigMap", 100)]);
    let open = open_guard(&nobody, &hundred);
    let a = || pending(config("a"));
    let unsure = PruneGuard { is_kept_complete: false, ..open.clone() };
    check(
        &[a()],
        &unsure,
        "confirm: not all objects that are to be kept are known: `kept` in the ConfigMap of the source has no room for more, or lines that cannot be read",
    );
    check(&[a()], &PruneGuard { confirmed: &confirmed, ..unsure }, "delete");
}

#[test]
fn each_guard_says_why() {
    let confirmed = BTreeSet::from([Uid("uid-a".into())]);
    let nobody = BTreeSet::new();
    let hundred = inventory(&[("ConfigMap", 100)]);
    let open = open_guard(&nobody, &hundred);
    let a = || pending(config("a"));
    check(&[a()], &open, "delete");
    check(
        &[PruneCandidate { prune_timing: PruneTiming::Never, ..a() }],
        &open,
        "keep: no longer wanted, and kept, as an annotation of it asks",
    );
    check(
        &[a()],
        &PruneGuard { closed: Some(PruneDecision::Keep(PruneCause::PolicyOff)), ..open.clone() },
        "keep: no longer wanted; `prune` is off",
    );
    check(
        &[PruneCandidate { unfinished: Some(unhealthy()), ..a() }],
        &open,
        "later: pruned when ConfigMap shop/x is healthy (InProgress)",
    );
    check(
        &[PruneCandidate { unfinished: Some(unhealthy()), prune_timing: PruneTiming::BeforeUnit, ..a() }],
        &open,
        "delete",
    );
    check(
        &[PruneCandidate { needed_by: Some(config("b")), ..a() }],
        &open,
        "later: pruned after ConfigMap shop/b, which uses it",
    );
    let doubt = BlockingRoot { folder: "shop".into(), relation: RootRelation::PossibleName };
    let doubtful = || PruneCandidate { unrendered: Some(doubt.clone()), ..a() };
    let kept = "keep: not pruned: root shop does not render, and may want the object";
    check(&[doubtful()], &open, kept);
    // A confirmation says how many may go, and not what a root wants.
    check(&[doubtful()], &PruneGuard { confirmed: &confirmed, ..open.clone() }, kept);
    let elsewhere = PruneGuard { other_location: Some("/old".into()), ..open.clone() };
    let why = "confirm: this inventory was made from /old; nothing of it is pruned until it is confirmed";
    check(&[a()], &elsewhere, why);
    check(&[a()], &PruneGuard { confirmed: &confirmed, ..elsewhere }, "delete");
    // Confirmation opens no other guard.
    let closed = PruneGuard {
        closed: Some(PruneDecision::Keep(PruneCause::NotInFiles)),
        confirmed: &confirmed,
        ..open.clone()
    };
    check(&[a()], &closed, "keep: not in the given files");
    let few = inventory(&[("ConfigMap", 3)]);
    let all_three = [a(), pending(config("b")), pending(config("c"))];
    let wide = BlastRadius { count: 100, percent: 100 };
    check(
        &all_three,
        &PruneGuard { inventory: &few, radius: wide, ..open.clone() },
        "confirm: all 3 objects of kind ConfigMap would be pruned",
    );
    check(&all_three[..2], &PruneGuard { inventory: &few, radius: wide, ..open.clone() }, "delete");
    for (precious, name) in [
        (id("", "Namespace", "", "shop"), "a Namespace"),
        (id("", "PersistentVolumeClaim", "shop", "disk"), "a PersistentVolumeClaim"),
        (id("apps", "StatefulSet", "shop", "db"), "a StatefulSet"),
        (id("", "ConfigMap", "kube-system", "dns"), "an object in kube-system"),
    ] {
        let why = format!("confirm: {name} is deleted only after a confirmation");
        check(&[pending(precious)], &open, &why);
    }
}

#[test]
fn what_another_source_wants_waits_and_takes_a_confirmation_that_knows_of_it() {
    let confirmed = BTreeSet::from([Uid("uid-a".into())]);
    let nobody = BTreeSet::new();
    let hundred = inventory(&[("ConfigMap", 100)]);
    let open = open_guard(&nobody, &hundred);
    let a = || pending(config("a"));
    let withheld = |is_long| {
        let cause = WithheldCause::Peer("b".into(), PeerInterest::Requested);
        Some(WithheldDeletion { cause, is_long })
    };
    let soon = PruneCandidate { withheld: withheld(false), ..a() };
    let sure = PruneGuard { confirmed: &confirmed, ..open.clone() };
    check(std::slice::from_ref(&soon), &open, "later: not pruned now: source b wants it");
    // The confirmation knew nothing of the other source.
    check(&[soon], &sure, "later: not pruned now: source b wants it");
    check(&[PruneCandidate { withheld: withheld(true), ..a() }], &open, "confirm: source b wants it");
    check(&[PruneCandidate { withheld: withheld(true), ..a() }], &sure, "delete");
}

/// Tries every number of pending objects against every size of the inventory up to 130. Each is
/// tried with every number of confirmations that matters. Deletions without a confirmation never
/// exceed the blast radius, and nobody is asked for a part.
#[test]
fn the_whole_pending_set_is_inside_the_radius_or_none_of_it_goes() {
    let radius = BlastRadius::default();
    for total in 1..=130_u32 {
        for count in 1..=total.min(14) {
            let all: Vec<PruneCandidate> = (0..count).map(|n| pending(config(&format!("c{n}")))).collect();
            let counts = inventory(&[("ConfigMap", total)]);
            for confirmed in [0, 1, count / 2, count] {
                let confirmed: BTreeSet<Uid> =
                    all.iter().take(confirmed as usize).map(|p| p.uid.clone()).collect();
                let guard = PruneGuard {
                    is_kept_complete: true,
                    closed: None,
                    other_location: None,
                    radius,
                    lifecycle: SourceLifecycle::Active,
                    confirmed: &confirmed,
                    inventory: &counts,
                };
                let judged = decide_prunes(&all, &guard);
                let unasked: Vec<&PruneCandidate> =
                    all.iter().filter(|p| !confirmed.contains(&p.uid)).collect();
                let gone = unasked.iter().filter(|p| judged[&p.id] == PruneDecision::Delete).count() as u32;
                assert!(gone == 0 || gone == unasked.len() as u32, "{count} of {total}");
                assert!(gone <= 1.max(10.min(total / 10)), "{count} of {total}");
                let asked = all.iter().filter(|p| confirmed.contains(&p.uid));
                assert!(
                    asked.into_iter().all(|p| judged[&p.id] == PruneDecision::Delete),
                    "{count} of {total}"
                );
            }
        }
    }
}

#[test]
fn an_object_may_ask_for_a_confirmation() {
    let confirmed = BTreeSet::from([Uid("uid-a".into())]);
    let nobody = BTreeSet::new();
    let hundred = inventory(&[("ConfigMap", 100)]);
    let check = |unfinished: Option<(ObjectId, ChangeMilestone)>,
                 confirmed: &BTreeSet<Uid>,
                 expected: &str| {
        let radius = BlastRadius::default();
        let lifecycle = SourceLifecycle::Active;
        let guard = PruneGuard {
            is_kept_complete: true,
            closed: None,
            other_location: None,
            radius,
            lifecycle,
            confirmed,
            inventory: &hundred,
        };
        let asks =
            PruneCandidate { prune_timing: PruneTiming::OnConfirmation, unfinished, ..pending(config("a")) };
        assert_eq!(words(&decide_prunes(&[asks], &guard), &config("a")), expected);
    };
    check(None, &nobody, "confirm: its annotation asks for a confirmation");
    check(None, &confirmed, "delete");
    check(Some(unhealthy()), &confirmed, "later: pruned when ConfigMap shop/x is healthy (InProgress)");
}

#[test]
fn whoever_deletes_the_source_is_asked_about_nothing_but_what_is_always_asked() {
    let nobody = BTreeSet::new();
    let all = inventory(&[("ConfigMap", 40), ("Namespace", 1), ("Deployment.apps", 1)]);
    let guard = PruneGuard {
        is_kept_complete: true,
        closed: None,
        other_location: None,
        radius: BlastRadius { count: 0, percent: 0 },
        lifecycle: SourceLifecycle::Deleting,
        confirmed: &nobody,
        inventory: &all,
    };
    let mut pending: Vec<PruneCandidate> =
        (0..40).map(|number| pending(config(&number.to_string()))).collect();
    assert!(decide_prunes(&pending, &guard).values().all(|judged| *judged == PruneDecision::Delete));
    pending
        .push(PruneCandidate { prune_timing: PruneTiming::OnConfirmation, ..self::pending(config("asks")) });
    pending.push(self::pending(id("", "Namespace", "", "shop")));
    let web = id("apps", "Deployment", "shop", "web");
    pending.push(PruneCandidate { prune_timing: PruneTiming::Never, ..self::pending(web.clone()) });
    // Objects that another one needs are left alone, at whatever distance.
    pending[0].needed_by = Some(web);
    pending[1].needed_by = Some(config("0"));
    pending[2].needed_by = Some(config("3"));
    let judged = decide_prunes(&pending, &guard);
    let check = |id: &ObjectId, expected: &str| assert_eq!(words(&judged, id), expected);
    check(&config("asks"), "confirm: its annotation asks for a confirmation");
    check(&id("", "Namespace", "", "shop"), "confirm: a Namespace is deleted only after a confirmation");
    check(&config("0"), "keep: Deployment shop/web, which is kept, uses it");
    check(&config("1"), "keep: ConfigMap shop/0, which is kept, uses it");
    check(&config("2"), "later: pruned after ConfigMap shop/3, which uses it");
    check(&config("3"), "delete");
    let elsewhere = PruneGuard { other_location: Some("/old".into()), ..guard };
    assert!(
        words(&decide_prunes(&pending[3..4], &elsewhere), &config("3"))
            .starts_with("confirm: this inventory")
    );
}

#[test]
fn of_two_timings_the_one_counts_under_which_less_is_deleted() {
    use PruneTiming::{AfterUnit, BeforeUnit, Never, OnConfirmation};
    let all = [AfterUnit, BeforeUnit, OnConfirmation, Never];
    for (rank, one) in all.into_iter().enumerate() {
        for (other_rank, other) in all.into_iter().enumerate() {
            assert_eq!(one.strictest(other), all[rank.max(other_rank)], "{one:?} {other:?}");
        }
    }
    assert_eq!(all.map(PruneTiming::is_kept), [false, false, true, true]);
}

#[test]
fn all_of_a_kind_go_without_a_question_where_they_are_two() {
    let nobody = BTreeSet::new();
    let all = ["a", "b", "c"].map(|name| pending(config(name)));
    let radius = BlastRadius { count: 100, percent: 100 };
    for (count, expected) in
        [(1, "delete"), (2, "delete"), (3, "confirm: all 3 objects of kind ConfigMap would be pruned")]
    {
        let counts = inventory(&[("ConfigMap", count), ("Secret", 100)]);
        check(&all[..count as usize], &PruneGuard { radius, ..open_guard(&nobody, &counts) }, expected);
    }
}

#[test]
fn more_than_the_blast_radius_says_how_many_of_how_many() {
    let nobody = BTreeSet::new();
    let counts = inventory(&[("ConfigMap", 30), ("Secret", 70)]);
    let radius = BlastRadius { count: 1, percent: 100 };
    let two = ["a", "b"].map(|name| pending(config(name)));
    let guard = PruneGuard { radius, ..open_guard(&nobody, &counts) };
    check(&two, &guard, "confirm: 2 of 100 objects would be pruned at once, beyond the blast radius");
    check(&two[..1], &guard, "delete");
}

#[test]
fn only_the_end_of_a_source_keeps_what_an_object_uses_that_stays() {
    let nobody = BTreeSet::new();
    let hundred = inventory(&[("ConfigMap", 100)]);
    let used = PruneCandidate { needed_by: Some(config("b")), ..pending(config("a")) };
    for user in staying() {
        let expected = "later: pruned after ConfigMap shop/b, which uses it";
        check(&[used.clone(), user], &open_guard(&nobody, &hundred), expected);
    }
}
