use crate::object::annotations;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::engine::facts::overlay::is_tightening;
use crate::engine::rollout::step_overlay::max_loss_under;
use crate::engine::{RolloutOverlay, RolloutOverlayState, UpdateStrategy, apply_overlay};
use crate::object::GroupKind;
use crate::object::canonical_json;

fn workload(kind: &str, spec: Value) -> Value {
    let mut content = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "web", "annotations": {"a": "b"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
    });
    content["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    content
}

#[test]
fn overlays_read_as_they_are_written() {
    for text in [
        "surge=2 step=1",
        "in-place=1 step=3",
        "partition=0 step=2",
        "partition=3 step=1",
        "on-delete step=2",
        "narrow=1",
        "narrow=0",
    ] {
        assert_eq!(text.parse::<RolloutOverlay>().map(|overlay| overlay.to_string()), Ok(text.to_owned()));
    }
    for wrong in [
        "",
        "surge",
        "surge=2",
        "surge=0 step=1",
        "in-place=0 step=1",
        "surge=2 step=0",
        "surge=-1 step=1",
        "surge=99999999999 step=1",
        "on-delete",
        "on-delete=1 step=1",
        "narrow=1 step=1",
        "narrow",
        "partition step=1",
        "pause=1 step=1",
    ] {
        assert!(wrong.parse::<RolloutOverlay>().is_err(), "{wrong}");
    }
}

const SURGE: RolloutOverlay = RolloutOverlay::Surge { pods: 2, step: 1 };
const IN_PLACE: RolloutOverlay = RolloutOverlay::InPlace { pods: 2, step: 1 };
const PARTITION: RolloutOverlay = RolloutOverlay::Partition { from: 3, step: 1 };
const ON_DELETE: RolloutOverlay = RolloutOverlay::OnDelete { step: 1 };

#[test]
fn each_overlay_lays_its_fields() {
    fn check(kind: &str, spec: Value, overlay: RolloutOverlay, expected: Value) {
        let content = workload(kind, spec.clone());
        let laid = apply_overlay(content.clone(), Some(overlay));
        let mut wanted = workload(kind, expected);
        wanted["metadata"]["annotations"][annotations::OVERLAY] = json!(overlay.to_string());
        assert_eq!(canonical_json(&laid), canonical_json(&wanted), "{kind} {spec} {overlay}");
        assert_eq!(apply_overlay(laid.clone(), Some(overlay)), laid, "laying it twice");
    }
    let at_step = |surge: u32, unavailable: u32| {
        json!({
            "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
            "minReadySeconds": 2_147_483_646, "progressDeadlineSeconds": 2_147_483_647,
        })
    };
    check("Deployment", json!({}), SURGE, at_step(2, 0));
    check("Deployment", json!({}), IN_PLACE, at_step(0, 2));
    let own = json!({
        "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "50%"}},
        "minReadySeconds": 5, "progressDeadlineSeconds": 60,
    });
    check("Deployment", own.clone(), SURGE, at_step(2, 0));
    check("Deployment", own, IN_PLACE, at_step(0, 2));
    let named = json!({"strategy": {"type": "RollingUpdate"}});
    let mut expected = at_step(2, 0);
    expected["strategy"]["type"] = json!("RollingUpdate");
    check("Deployment", named, SURGE, expected);

    let partition = |from: u32| json!({"updateStrategy": {"rollingUpdate": {"partition": from}}});
    check("StatefulSet", json!({}), PARTITION, partition(3));
    check("StatefulSet", partition(1), PARTITION, partition(3));
    check("StatefulSet", partition(5), PARTITION, partition(5));
    let most = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
    let expected = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "partition": 3}}});
    check("StatefulSet", most, PARTITION, expected);

    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    check("DaemonSet", json!({}), ON_DELETE, on_delete.clone());
    let rolling =
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}}});
    check("DaemonSet", rolling, ON_DELETE, on_delete);
}

#[test]
fn narrowing_never_widens_and_stays_valid() {
    fn check(kind: &str, rolling: Value, pods: u32, expected: Value) {
        let key = if kind == "Deployment" { "strategy" } else { "updateStrategy" };
        let spec = json!({ key: {"rollingUpdate": rolling} });
        let laid = apply_overlay(workload(kind, spec), Some(RolloutOverlay::Narrow(pods)));
        assert_eq!(laid["spec"][key]["rollingUpdate"], expected, "{kind} {rolling} {pods}");
    }
    check("Deployment", json!({}), 1, json!({"maxUnavailable": 1}));
    check("Deployment", json!({}), 0, json!({"maxUnavailable": 0}));
    check("Deployment", json!({"maxUnavailable": "50%"}), 2, json!({"maxUnavailable": 2}));
    check("Deployment", json!({"maxUnavailable": 1}), 2, json!({"maxUnavailable": 1}));
    check("Deployment", json!({"maxUnavailable": "0%"}), 2, json!({"maxUnavailable": "0%"}));
    check(
        "Deployment",
        json!({"maxSurge": 0, "maxUnavailable": 3}),
        1,
        json!({"maxSurge": 0, "maxUnavailable": 1}),
    );
    for none in [json!(0), json!("0%")] {
        let own = json!({"maxSurge": none, "maxUnavailable": 3});
        check("Deployment", own, 0, json!({"maxSurge": 1, "maxUnavailable": 0}));
    }
    check("DaemonSet", json!({}), 2, json!({"maxUnavailable": 2}));
    check("DaemonSet", json!({}), 0, json!({"maxUnavailable": 1}));
    check("DaemonSet", json!({"maxUnavailable": "40%"}), 2, json!({"maxUnavailable": 2}));
    let zero = json!({"maxSurge": 0, "maxUnavailable": 3});
    check("DaemonSet", zero, 1, json!({"maxSurge": 0, "maxUnavailable": 1}));
    let surge = json!({"maxSurge": 1, "maxUnavailable": 0});
    check("DaemonSet", surge.clone(), 2, surge);
}

#[test]
fn what_cannot_have_an_overlay_stays_as_it_is() {
    let recreate = workload("Deployment", json!({"strategy": {"type": "Recreate"}}));
    for overlay in [SURGE, IN_PLACE, RolloutOverlay::Narrow(1), PARTITION] {
        assert_eq!(apply_overlay(recreate.clone(), Some(overlay)), recreate, "{overlay}");
    }
    let set = workload("StatefulSet", json!({"updateStrategy": {"type": "OnDelete"}}));
    for overlay in [PARTITION, SURGE, RolloutOverlay::Narrow(1)] {
        assert_eq!(apply_overlay(set.clone(), Some(overlay)), set, "{overlay}");
    }
    let map = json!({"kind": "ConfigMap", "data": {}});
    assert_eq!(apply_overlay(map.clone(), Some(SURGE)), map);
}

#[test]
fn without_an_overlay_there_is_no_annotation() {
    let plain = workload("Deployment", json!({}));
    assert_eq!(apply_overlay(plain.clone(), None), plain);
    let mut copied = plain.clone();
    copied["metadata"]["annotations"][annotations::OVERLAY] = json!("surge=9 step=9");
    assert_eq!(apply_overlay(copied, None), plain);
}

#[test]
fn no_overlay_touches_the_template() {
    let all = [SURGE, IN_PLACE, PARTITION, ON_DELETE, RolloutOverlay::Narrow(1)];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let plain = workload(kind, json!({}));
        for overlay in all {
            let laid = apply_overlay(plain.clone(), Some(overlay));
            assert_eq!(laid["spec"]["template"], plain["spec"]["template"], "{kind} {overlay}");
        }
    }
}

#[test]
fn what_a_strategy_takes_down_by_itself() {
    fn check(kind: &str, strategy: Value, replicas: u32, expected: u32) {
        let key = if kind == "Deployment" { "strategy" } else { "updateStrategy" };
        let content = workload(kind, json!({ key: strategy }));
        assert_eq!(
            UpdateStrategy::of(&GroupKind::new("apps", kind), &content).max_loss(replicas),
            expected,
            "{kind} {strategy} of {replicas}"
        );
    }
    let rolling = |rolling: Value| json!({ "rollingUpdate": rolling });
    check("Deployment", json!({}), 10, 2);
    check("Deployment", json!({}), 3, 0);
    check("Deployment", json!({"type": "Recreate"}), 3, 3);
    check("Deployment", rolling(json!({"maxUnavailable": 5})), 3, 3);
    check("Deployment", rolling(json!({"maxUnavailable": "50%"})), 3, 1);
    check("Deployment", rolling(json!({"maxUnavailable": "10%", "maxSurge": 0})), 3, 1);
    check("DaemonSet", json!({}), 10, 1);
    check("DaemonSet", rolling(json!({"maxUnavailable": "10%"})), 11, 2);
    check("DaemonSet", rolling(json!({"maxSurge": 1, "maxUnavailable": 0})), 11, 0);
    check("DaemonSet", json!({"type": "OnDelete"}), 11, 0);
    check("StatefulSet", json!({}), 4, 1);
    check("StatefulSet", rolling(json!({"maxUnavailable": "30%"})), 4, 2);
}

#[test]
fn the_tightest_of_two_overlays_is_that_of_fewer_pods_at_the_same_step() {
    use RolloutOverlay::{InPlace, Narrow, OnDelete, Partition, Surge};

    let check = |one: RolloutOverlay, other: RolloutOverlay, expected: Option<RolloutOverlay>| {
        assert_eq!((one.tightest(other), other.tightest(one)), (expected, expected), "{one} {other}");
        let state = RolloutOverlayState::Overlaid;
        let differs = one != other;
        assert_eq!(is_tightening(state(one), Some(other)), differs && expected == Some(other));
        assert_eq!(is_tightening(state(other), Some(one)), differs && expected == Some(one));
        assert!(!is_tightening(state(one), None) && !is_tightening(RolloutOverlayState::Plain, Some(one)));
    };
    let surge = |pods, step| Surge { pods, step };
    let in_place = |pods, step| InPlace { pods, step };
    let partition = |from, step| Partition { from, step };
    check(surge(1, 1), surge(2, 1), Some(surge(1, 1)));
    check(surge(1, 1), surge(1, 1), Some(surge(1, 1)));
    check(surge(1, 1), surge(2, 2), None);
    check(in_place(1, 1), in_place(2, 1), Some(in_place(1, 1)));
    check(in_place(1, 1), in_place(2, 2), None);
    // The pods before the position stay.
    check(partition(2, 1), partition(1, 1), Some(partition(2, 1)));
    check(partition(2, 1), partition(1, 2), None);
    check(surge(1, 1), in_place(1, 1), None);
    check(OnDelete { step: 1 }, OnDelete { step: 1 }, None);
    check(Narrow(1), Narrow(2), None);
}

#[test]
fn an_overlay_bounds_the_pods_that_its_strategy_takes_down() {
    let rolling = json!({"strategy": {"rollingUpdate": {"maxUnavailable": 3}}});
    let three = UpdateStrategy::of(&GroupKind::new("apps", "Deployment"), &workload("Deployment", rolling));
    let deleted = json!({"updateStrategy": {"type": "OnDelete"}});
    let none = UpdateStrategy::of(&GroupKind::new("apps", "DaemonSet"), &workload("DaemonSet", deleted));
    let check = |strategy: UpdateStrategy, overlay: Option<RolloutOverlay>, expected: u32| {
        assert_eq!(max_loss_under(strategy, overlay, 10), expected, "{overlay:?}");
    };
    let in_place = |pods: u32| Some(RolloutOverlay::InPlace { pods, step: 1 });
    check(three, None, 3);
    check(three, Some(PARTITION), 3);
    check(three, Some(SURGE), 0);
    check(three, in_place(2), 2);
    check(three, in_place(12), 10);
    check(three, Some(ON_DELETE), 3);
    check(none, Some(ON_DELETE), 1);
    check(none, None, 0);
    check(three, Some(RolloutOverlay::Narrow(2)), 2);
    check(three, Some(RolloutOverlay::Narrow(4)), 3);
}
