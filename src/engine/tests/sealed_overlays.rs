//! The overlay of a workload is a fact by the seal, or by what this process has written.

use super::harness::release_key;
use super::release_seal::{at_rest, release};
use super::world::{SET, World, all_ready, config, desired, reading, workload};
use crate::engine::facts::entry::VerifiedOwnership;
use crate::engine::facts::release_annotation::{SealedFacts, SealedOverlay};
use crate::engine::tests::harness::Harness;
use crate::engine::*;
use crate::object::ContentHash;

/// A change of the release annotation beside a forged overlay.
#[derive(Clone, Copy, Debug)]
enum Forgery {
    /// Leave it as it is.
    Kept,
    /// Take it away.
    Removed,
    /// Take its seal away.
    Unsealed,
    /// Name another content.
    Renamed,
}

/// Returns what is shown of a workload whose last write had an overlay, with another overlay that
/// somebody else wrote.
fn forged_view(
    harness: &Harness,
    written: Option<RolloutOverlay>,
    shown: RolloutOverlayState,
    forgery: Forgery,
) -> LiveObject {
    let web = workload("web");
    let mut live = World::live(&web, &harness.world.things[&web]);
    let release = live.release.take().unwrap();
    let facts =
        SealedFacts { overlay: SealedOverlay::Known(written), ..SealedFacts::of(PruneTiming::AfterUnit, 1) };
    let seal = Some(ReleaseKey::of(&release_key()).seal(SET, &web, &release, facts));
    let annotation = match forgery {
        Forgery::Kept => Some(ReleaseAnnotation { release, seal }),
        Forgery::Removed => None,
        Forgery::Unsealed => Some(ReleaseAnnotation { release, seal: None }),
        Forgery::Renamed => {
            let hash = ContentHash::hash_bytes(b"another");
            Some(ReleaseAnnotation { release: ContentRef { hash, ..release }, seal })
        }
    };
    let numbers = ReplicaStatus { replicas: 6, updated: 1, phase: WorkloadPhase::Replacing, ..all_ready() };
    LiveObject {
        unproven_release: annotation.map(Box::new),
        overlay: shown,
        replica_status: Some(numbers),
        rv: ResourceVersion(live.rv.0 + 1),
        ..live
    }
}

// It would let more pods go, or end a step that a person is to end.
#[test]
fn an_overlay_that_somebody_else_writes_lets_no_more_pods_go() {
    let surge = |pods, step| RolloutOverlay::Surge { pods, step };
    let check = |written: Option<RolloutOverlay>, shown, forgery, is_new: bool, expected| {
        let (mut harness, web) = (at_rest(), workload("web"));
        let mut view = forged_view(&harness, written, shown, forgery);
        if is_new {
            harness.engine = harness.fresh(3);
        } else {
            let verified = harness.engine.entry(&web).unwrap().verified.clone();
            let verified = verified.map(|verified| VerifiedOwnership { overlay: written, ..verified });
            harness.engine.objects.entries.get_mut(&web).unwrap().verified = verified;
        }
        harness.engine.prove(&web, &mut view);
        assert_eq!(view.overlay, expected, "{written:?} {shown:?} {forgery:?} new: {is_new}");
    };
    let (first, far) = (surge(1, 1), surge(5, 3));
    let overlaid = RolloutOverlayState::Overlaid;
    let all = [Forgery::Kept, Forgery::Removed, Forgery::Unsealed, Forgery::Renamed];
    for shown in [overlaid(far), overlaid(RolloutOverlay::Narrow(6)), RolloutOverlayState::Plain] {
        for forgery in all {
            // A process that has written it knows it; the seal proves it to one that has just
            // started. Else the steps begin anew.
            check(Some(first), shown, forgery, false, overlaid(first));
            check(None, shown, forgery, false, RolloutOverlayState::Plain);
            let expected = match forgery {
                Forgery::Kept => overlaid(first),
                _ => RolloutOverlayState::Unreadable,
            };
            check(Some(first), shown, forgery, true, expected);
        }
    }
}

#[test]
fn the_overlay_of_an_annotation_is_read_back() {
    for overlay in
        [None, Some(RolloutOverlay::Partition { from: 2, step: 1 }), Some(RolloutOverlay::Narrow(1))]
    {
        let facts =
            SealedFacts { overlay: SealedOverlay::Known(overlay), ..SealedFacts::of(PruneTiming::Never, 7) };
        let (web, release) = (workload("web"), release("a", "r1"));
        let key = ReleaseKey::of(&release_key());
        let annotation =
            ReleaseAnnotation { release: release.clone(), seal: Some(key.seal(SET, &web, &release, facts)) };
        let read = ReleaseAnnotation::parse(&annotation.to_string()).unwrap();
        assert_eq!(read, annotation);
        assert_eq!(key.proven_facts(SET, &web, &read), Some(facts), "{read}");
        let other = annotation.to_string().replace("from=2", "from=0").replace("=1", "=2");
        let altered = ReleaseAnnotation::parse(&other).unwrap();
        assert_eq!(key.proven_facts(SET, &web, &altered).is_some(), altered == read, "{other}");
        // Nothing that is no workload has an overlay.
        let text = annotation.to_string();
        assert_eq!(key.proven_facts(SET, &config("web"), &ReleaseAnnotation::parse(&text).unwrap()), None);
    }
    let older = SealedFacts::of(PruneTiming::AfterUnit, 7);
    let (web, release) = (workload("web"), release("a", "r1"));
    let key = ReleaseKey::of(&release_key());
    let seal = Some(key.seal(SET, &web, &release, older));
    assert_eq!(key.proven_facts(SET, &web, &ReleaseAnnotation { release, seal }), Some(older));
}

// The view of its own write may come before the answer, and no seal proves it.
#[test]
fn without_a_key_another_content_has_the_overlay_that_it_shows() {
    let (mut harness, web) = (at_rest(), workload("web"));
    harness.engine = harness.fresh_without_key();
    harness.engine.set_release_key(ReadState::Unreadable("forbidden".into()));
    let files = [config("a"), web.clone()].map(|id| (id.name().to_owned(), desired(&id, 1, id.name())));
    let files: Vec<_> = files.iter().map(|(file, desired)| (&**file, Some(desired.clone()))).collect();
    harness.read(reading("r1", &files));
    harness.settle();
    assert!(harness.engine.entry(&web).unwrap().verified.is_some());
    let shown = RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods: 1, step: 1 });
    for (forgery, expected) in [(Forgery::Renamed, shown), (Forgery::Unsealed, RolloutOverlayState::Plain)] {
        let mut view = forged_view(&harness, None, shown, forgery);
        harness.engine.prove(&web, &mut view);
        assert_eq!(view.overlay, expected, "{forgery:?}");
    }
}
