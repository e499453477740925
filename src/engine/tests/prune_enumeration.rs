//! Each combination of the facts of the prune guard: nothing goes without each single one of them.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{config, id};
use crate::engine::{
    AllowViolation, BlastRadius, BlockingRoot, ChangeMilestone, DisallowedObject, PeerInterest,
    PruneCandidate, PruneCause, PruneDecision, PruneGuard, PruneTiming, RootRelation, SourceLifecycle, Uid,
    WithheldCause, WithheldDeletion, decide_prunes,
};
use crate::object::{GroupKind, ObjectId};

const TIMINGS: [PruneTiming; 4] =
    [PruneTiming::AfterUnit, PruneTiming::BeforeUnit, PruneTiming::OnConfirmation, PruneTiming::Never];

/// The objects that go together with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectCompany {
    /// Few go.
    Few,
    /// More go than the blast radius allows.
    BeyondRadius,
    /// All objects of its kind go.
    AllOfKind,
}

/// The facts about one object, beside those about its source.
#[expect(clippy::struct_excessive_bools, reason = "each fact is one of its own")]
#[derive(Clone, Copy, Debug)]
struct CandidateTraits {
    timing: PruneTiming,
    is_not_allowed: bool,
    is_unproven: bool,
    is_unrendered: bool,
    is_unfinished: bool,
    is_needed: bool,
    /// Indicates whether another source wants it, and whether it does for long.
    withheld: Option<bool>,
    is_confirmed: bool,
}

/// An object that nothing keeps.
const PLAIN: CandidateTraits = CandidateTraits {
    timing: PruneTiming::AfterUnit,
    is_not_allowed: false,
    is_unproven: false,
    is_unrendered: false,
    is_unfinished: false,
    is_needed: false,
    withheld: None,
    is_confirmed: false,
};

/// The facts about its source.
#[derive(Clone, Copy, Debug)]
struct SourceFacts {
    is_closed: bool,
    is_from_elsewhere: bool,
    is_kept_complete: bool,
    lifecycle: SourceLifecycle,
    company: ObjectCompany,
}

fn object_facts() -> impl Iterator<Item = CandidateTraits> {
    TIMINGS.into_iter().flat_map(|timing| {
        [None, Some(false), Some(true)].into_iter().flat_map(move |withheld| {
            (0..64_u8).map(move |bits| {
                let flags = std::array::from_fn::<bool, 6, _>(|bit| bits & (1 << bit) != 0);
                let [is_not_allowed, is_unproven, is_unrendered, is_unfinished, is_needed, is_confirmed] =
                    flags;
                CandidateTraits {
                    timing,
                    is_not_allowed,
                    is_unproven,
                    is_unrendered,
                    is_unfinished,
                    is_needed,
                    withheld,
                    is_confirmed,
                }
            })
        })
    })
}

fn source_facts() -> Vec<SourceFacts> {
    let mut all = Vec::new();
    for bits in 0..8_u8 {
        let [is_closed, is_from_elsewhere, is_kept_complete] =
            std::array::from_fn::<bool, 3, _>(|bit| bits & (1 << bit) != 0);
        for lifecycle in [SourceLifecycle::Active, SourceLifecycle::Deleting] {
            for company in [ObjectCompany::Few, ObjectCompany::BeyondRadius, ObjectCompany::AllOfKind] {
                all.push(SourceFacts { is_closed, is_from_elsewhere, is_kept_complete, lifecycle, company });
            }
        }
    }
    all
}

fn candidate(id: &ObjectId, facts: CandidateTraits) -> PruneCandidate {
    let violation = AllowViolation::Namespace("ops".into());
    let doubt = BlockingRoot { folder: "shop".into(), relation: RootRelation::Origin };
    PruneCandidate {
        id: id.clone(),
        uid: Uid("of-it".into()),
        prune_timing: facts.timing,
        not_allowed: facts.is_not_allowed.then_some(DisallowedObject { violation, step: None }),
        unrendered: facts.is_unrendered.then_some(doubt),
        is_unproven: facts.is_unproven,
        is_kept_by_claim: false,
        unfinished: facts.is_unfinished.then(|| (config("change"), ChangeMilestone::Changed)),
        needed_by: facts.is_needed.then(|| config("user")),
        withheld: facts.withheld.map(|is_long| {
            let cause = WithheldCause::Peer("other".into(), PeerInterest::Requested);
            WithheldDeletion { cause, is_long }
        }),
    }
}

/// Returns whether it goes, guard by guard.
fn goes(is_precious: bool, object: CandidateTraits, source: SourceFacts) -> bool {
    let is_much = source.lifecycle == SourceLifecycle::Active && source.company != ObjectCompany::Few;
    let needs_person = is_precious
        || source.is_from_elsewhere
        || !source.is_kept_complete
        || is_much
        || object.timing == PruneTiming::OnConfirmation
        || object.withheld == Some(true);
    let guards = [
        !object.is_not_allowed,
        object.timing != PruneTiming::Never,
        !source.is_closed,
        !object.is_unproven,
        !object.is_unrendered,
        object.withheld != Some(false),
        !object.is_unfinished || object.timing == PruneTiming::BeforeUnit,
        !object.is_needed,
        object.is_confirmed || !needs_person,
    ];
    guards.into_iter().all(|guard| guard)
}

fn decide(id: &ObjectId, object: CandidateTraits, source: SourceFacts) -> PruneDecision {
    decide_closed(id, object, source, &PruneDecision::Defer(PruneCause::UnreadInventory))
}

/// Does the same where a closed guard has this decision for all.
fn decide_closed(
    id: &ObjectId,
    object: CandidateTraits,
    source: SourceFacts,
    closed: &PruneDecision,
) -> PruneDecision {
    let mut pending = vec![candidate(id, object)];
    let count = match source.company {
        ObjectCompany::Few | ObjectCompany::BeyondRadius => 1,
        ObjectCompany::AllOfKind => 3,
    };
    for number in 1..count {
        let other = ObjectId::new(&id.group_kind(), id.namespace(), &format!("other{number}"));
        let uid = Uid(format!("other{number}").into());
        pending.push(PruneCandidate { uid, ..candidate(&other, PLAIN) });
    }
    let all = if source.company == ObjectCompany::AllOfKind { count } else { 100 };
    let inventory: BTreeMap<GroupKind, u32> = [(id.group_kind(), all)].into();
    let most = if source.company == ObjectCompany::BeyondRadius { 0 } else { 100 };
    let confirmed: BTreeSet<Uid> =
        if object.is_confirmed { [Uid("of-it".into())].into() } else { BTreeSet::new() };
    let guard = PruneGuard {
        is_kept_complete: source.is_kept_complete,
        closed: source.is_closed.then(|| closed.clone()),
        other_location: source.is_from_elsewhere.then(|| "elsewhere".into()),
        radius: BlastRadius { count: most, percent: 100 },
        lifecycle: source.lifecycle,
        confirmed: &confirmed,
        inventory: &inventory,
    };
    decide_prunes(&pending, &guard).remove(id).unwrap()
}

/// The combinations for an object, as docs/reliability.md has them.
const COMBINATIONS: usize = 768 * 48;

/// Checks all combinations for an object.
fn check(id: &ObjectId, is_precious: bool) {
    let sources = source_facts();
    assert_eq!(object_facts().count() * sources.len(), COMBINATIONS);
    for object in object_facts() {
        for source in &sources {
            let decided = decide(id, object, *source);
            let expected = goes(is_precious, object, *source);
            assert_eq!(
                decided == PruneDecision::Delete,
                expected,
                "{id}: {object:?} {source:?}: {decided:?}"
            );
        }
    }
}

#[test]
fn nothing_goes_without_each_of_the_guards_and_all_that_passes_them_goes() {
    check(&config("a"), false);
}

#[test]
fn what_loses_data_goes_only_when_it_is_confirmed_whatever_else_holds() {
    for precious in [
        id("", "Namespace", "", "shop"),
        id("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com"),
        id("", "PersistentVolume", "", "disk"),
        id("", "PersistentVolumeClaim", "shop", "disk"),
        id("apps", "StatefulSet", "shop", "db"),
        id("", "ConfigMap", "kube-system", "dns"),
    ] {
        check(&precious, true);
    }
}

#[test]
fn a_closed_guard_has_one_decision_for_all_that_is_neither_kept_nor_out_of_reach() {
    let id = config("a");
    let closed_sources: Vec<SourceFacts> =
        source_facts().into_iter().filter(|source| source.is_closed).collect();
    let decisions = [PruneDecision::Defer, PruneDecision::Confirm, PruneDecision::Keep];
    for closed in decisions.map(|decision| decision(PruneCause::NotInFiles)) {
        for object in object_facts() {
            let is_exempt = object.is_not_allowed || object.timing == PruneTiming::Never;
            for source in &closed_sources {
                let decided = decide_closed(&id, object, *source, &closed);
                assert_eq!(decided == closed, !is_exempt, "{object:?} {source:?}: {decided:?}");
                assert_ne!(decided, PruneDecision::Delete, "{object:?} {source:?}");
            }
        }
    }
}

// Objects that go first, and those that are confirmed with others, count as all do.
#[test]
fn the_blast_radius_counts_each_object_that_would_go_unasked_whenever_it_goes() {
    let radius = BlastRadius { count: 2, percent: 100 };
    let inventory: BTreeMap<GroupKind, u32> = [(GroupKind::new("", "ConfigMap"), 100)].into();
    let nobody = BTreeSet::new();
    for timing in TIMINGS {
        let pending: Vec<PruneCandidate> = (0..3)
            .map(|number| {
                let is_last = number == 2;
                let facts = if is_last { CandidateTraits { timing, ..PLAIN } } else { PLAIN };
                let uid = Uid(number.to_string().into());
                PruneCandidate { uid, ..candidate(&config(&number.to_string()), facts) }
            })
            .collect();
        let guard = PruneGuard {
            is_kept_complete: true,
            closed: None,
            other_location: None,
            radius,
            lifecycle: SourceLifecycle::Active,
            confirmed: &nobody,
            inventory: &inventory,
        };
        let judged = decide_prunes(&pending, &guard);
        let gone = judged.values().filter(|decision| **decision == PruneDecision::Delete).count();
        // One that is kept is not among those that go.
        assert_eq!(gone, if timing == PruneTiming::Never { 2 } else { 0 }, "{timing:?}: {judged:?}");
    }
}
