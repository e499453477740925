//! The pure decision about an object that carries another owner's mark, or none.

use super::decision_inputs::{SECOND_SET, Scene, changed};
use crate::engine::decide::decision::DecisionInput;
use crate::engine::*;

const UNKNOWN_SET: &str = "applyset-unknown-v1";

/// The outcome for an object of nobody where none is taken over.
const NOT_ADOPTED: &str = "Nothing: it exists already, this source did not create it, and adopt is `never`; \
                           `adopt: if-unowned` takes it over";

/// Returns an object of which a newer content is wanted, with the mark of an owner.
fn owned(owner: ObjectOwner) -> Scene {
    changed().with_live(|live| live.owner = owner)
}

/// Returns an object that nothing proves to be ours, and that this process does not remember.
fn unknown(owner: ObjectOwner) -> Scene {
    unproven(owner).with(|scene| scene.entry.incarnation = None).with_live(|live| live.our_fields = None)
}

/// Returns an object that this process remembers, and that nothing proves to be ours.
fn unproven(owner: ObjectOwner) -> Scene {
    owned(owner).with_live(|live| live.release = None)
}

fn apply_set() -> String {
    format!(
        "the ApplySet {UNKNOWN_SET}: `kubectl get configmaps,secrets -A -l applyset.kubernetes.io/id={UNKNOWN_SET}` \
         finds its parent"
    )
}

#[track_caller]
fn check(scene: &Scene, holder: &InventoryHolder, expected: [&str; 3]) {
    let decided = AdoptPolicy::ALL.map(|adopt| {
        scene.decided(|input: &mut DecisionInput<'_>| {
            (input.adopt, input.holder) = (adopt, holder.clone());
        })
    });
    assert_eq!(decided.each_ref().map(String::as_str), expected, "{holder:?}");
}

#[test]
fn an_object_of_another_inventory_is_taken_over_where_its_holder_or_the_policy_lets_it_go() {
    let other = owned(ObjectOwner::Ours(UNKNOWN_SET.into()));
    check(&other, &InventoryHolder::Unread, ["Nothing: reading what other sources of the cluster want"; 3]);
    let stays =
        "Nothing: it belongs to source b, which no longer wants it and keeps it, as adopt is `never` here";
    let transfer = "Transfer 2 of r2, exact";
    check(&other, &InventoryHolder::GivesUp("b".into()), [stays, transfer, transfer]);
    let (kept, adopted) = ("Nothing: it belongs to source b", "Adopt 2 of r2, exact");
    check(&other, &InventoryHolder::Keeps("b".into()), [kept, kept, adopted]);
    let of_set = format!("Nothing: it belongs to {}", apply_set());
    check(&other, &InventoryHolder::Nobody, [&of_set, &of_set, adopted]);
}

#[test]
fn an_object_that_another_source_of_this_process_has_stays_defended_by_that_one() {
    let other = owned(ObjectOwner::Ours(SECOND_SET.into()));
    let kept = "Compare: it belongs to source b";
    check(&other, &InventoryHolder::Keeps("b".into()), [kept, kept, "Adopt 2 of r2, exact"]);
}

#[test]
fn the_mark_of_somebody_else_is_heeded_where_the_policy_allows_that_or_the_object_was_never_ours() {
    let denied = |input: &mut DecisionInput<'_>| input.opt_out = OptOutPolicy::Denied;
    for owner in [ObjectOwner::Foreign("Helm release x".into()), ObjectOwner::Controlled("Pod x".into())] {
        let (owned, unknown) = (owned(owner.clone()), unknown(owner.clone()));
        owned.check_with(denied, "Change 2 of r2, uid");
        for (scene, name) in [(&owned, "allowed"), (&unknown, "never ours")] {
            let found = scene.decided(|_| {});
            assert!(found.starts_with("Nothing: it belongs to "), "{owner:?} {name}: {found}");
        }
        let found = unknown.decided(denied);
        assert!(found.starts_with("Nothing: it belongs to "), "{owner:?}: {found}");
    }
    let nobody = InventoryHolder::Nobody;
    let (helm, pod) = ("Nothing: it belongs to Helm release x", "Nothing: it belongs to Pod x");
    let foreign = unknown(ObjectOwner::Foreign("Helm release x".into()));
    check(&foreign, &nobody, [helm, helm, "Adopt 2 of r2, exact"]);
    check(&unknown(ObjectOwner::Controlled("Pod x".into())), &nobody, [pod; 3]);
}

#[test]
fn an_object_without_a_label_is_ours_where_a_seal_our_fields_or_this_process_say_so() {
    let (nobody, ours) = (InventoryHolder::Nobody, ["Change 2 of r2, uid"; 3]);
    let stranger = [NOT_ADOPTED, "Adopt 2 of r2, exact", "Adopt 2 of r2, exact"];
    let unlabelled = || ObjectOwner::Nobody;
    check(&unknown(unlabelled()), &nobody, stranger);
    check(&owned(unlabelled()), &nobody, ours);
    // This process remembers the very object.
    check(&unproven(unlabelled()).with_live(|live| live.our_fields = None), &nobody, ours);
    // It has our fields, and the content that they are of is known.
    let with_fields = || unproven(unlabelled()).with(|scene| scene.entry.incarnation = None);
    check(&with_fields(), &nobody, ours);
    let of_nothing = with_fields().with(|scene| scene.entry.accepted = AcceptedContent::Nothing);
    check(&of_nothing, &nobody, stranger);
    let another = unproven(unlabelled()).with(|scene| scene.entry.incarnation = Some(Uid("other".into())));
    check(&another.with_live(|live| live.our_fields = None), &nobody, stranger);
}

#[test]
fn a_label_that_only_this_process_contradicts_is_drift_where_no_source_here_has_it() {
    let nobody = InventoryHolder::Nobody;
    check(&unproven(ObjectOwner::Ours(UNKNOWN_SET.into())), &nobody, ["Change 2 of r2, uid"; 3]);
    let of_set = format!("Nothing: it belongs to {}", apply_set());
    let adopted = "Adopt 2 of r2, exact";
    check(&unknown(ObjectOwner::Ours(UNKNOWN_SET.into())), &nobody, [&of_set, &of_set, adopted]);
    check(&unknown(ObjectOwner::Labelled(UNKNOWN_SET.into())), &nobody, [&of_set, &of_set, adopted]);
    // By the label alone nobody knows which of two sources has it.
    let second = unproven(ObjectOwner::Ours(SECOND_SET.into()));
    let kept = "Compare: it belongs to source b";
    check(&second, &InventoryHolder::Keeps("b".into()), [kept, kept, adopted]);
}
