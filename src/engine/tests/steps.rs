use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::decide::step_wait::SurplusPods;
use crate::engine::{
    PromotionRequest, RolloutOverlay, RolloutOverlayState, StepDecision, StepProgress, StepRequirement,
    Steps, check_annotations, check_steps, next,
};
use crate::object::{GroupKind, Gvk, ManifestOrigin, Object, ObjectId};

fn content(kind: &str, annotations: &Value, spec: &Value) -> Value {
    let group = if kind == "ConfigMap" { "v1" } else { "apps/v1" };
    json!({"apiVersion": group, "kind": kind, "metadata": {"annotations": annotations}, "spec": spec})
}

fn steps(kind: &str, annotations: &Value) -> Steps {
    Steps::of(&content(kind, annotations, &json!({}))).unwrap()
}

fn deployment(list: &str) -> Steps {
    steps("Deployment", &json!({"rhumb.dev/steps": list}))
}

fn words(kind: &str, annotations: Value, spec: Value, expected: &[&str]) {
    let body = content(kind, &annotations, &spec);
    let works = Steps::of(&body).is_some();
    let object = Object {
        id: ObjectId::new(&GroupKind::new("apps", kind), Some("shop"), "web"),
        gvk: Gvk::from_api_version("apps/v1", kind),
        body: Arc::new(body),
        origin: ManifestOrigin::new("a.yaml".into(), 3, 1),
    };
    let found = check_steps(&object);
    let findings: Vec<String> =
        found.iter().map(|found| format!("{}: {}", found.severity, found.message)).collect();
    assert_eq!(findings, expected, "{kind} {annotations} {spec}");
    assert!(found.iter().all(|found| found.hint.is_some()));
    let asked = annotations.get("rhumb.dev/steps").is_some();
    assert_eq!(
        works,
        asked && !expected.iter().any(|text| !text.contains("does not advance")),
        "{annotations}"
    );
    // Through the one function that everything calls, and known to it.
    let mut all = check_annotations(&object);
    // Findings about words that have no effect yet are another matter.
    all.retain(|found| found.code == "steps");
    assert_eq!(all, found);
}

#[test]
fn words_about_steps_are_read() {
    let good = json!({
        "rhumb.dev/steps": "1, 25%,50%", "rhumb.dev/step-soak": "2m", "rhumb.dev/step-promote": "manual",
        "rhumb.dev/step-mode": "in-place",
    });
    words("Deployment", good, json!({}), &[]);
    words("Deployment", json!({"rhumb.dev/steps": "100%", "rhumb.dev/step-soak": "0s"}), json!({}), &[]);
    words("StatefulSet", json!({"rhumb.dev/steps": "1, 1000"}), json!({}), &[]);
    words("DaemonSet", json!({"rhumb.dev/steps": "1", "rhumb.dev/step-nodes": "a=b"}), json!({}), &[]);
    words("ConfigMap", json!({}), json!({}), &[]);
}

#[test]
fn steps_that_are_no_steps_are_reported() {
    let neither = |part: &str| {
        format!(
            "error: rhumb.dev/steps names {part:?}, which is neither a count from 1 nor a percentage from 1% to 100%"
        )
    };
    for (list, part) in [
        ("", ""),
        ("0", "0"),
        ("0%", "0%"),
        ("101%", "101%"),
        ("-1", "-1"),
        ("+1", "+1"),
        ("half", "half"),
        ("1,", ""),
        ("1 %", "1 %"),
        ("1.5", "1.5"),
        ("4294967296", "4294967296"),
    ] {
        words("Deployment", json!({"rhumb.dev/steps": list}), json!({}), &[&neither(part)]);
    }
    for (list, part) in
        [("1, 1", "1"), ("2, 1", "1"), ("50%, 50%", "50%"), ("50%, 25%", "25%"), ("25%, 3", "3")]
    {
        let expected_finding =
            format!("error: rhumb.dev/steps is {list:?}, and {part} is not more than the step before it");
        words("Deployment", json!({"rhumb.dev/steps": list}), json!({}), &[&expected_finding]);
    }
}

#[test]
fn words_beside_the_steps_are_reported() {
    let with = |key: &str, value: &str| json!({"rhumb.dev/steps": "1", key: value});
    for wrong in ["", "2", "2 m", "soon", "-1s"] {
        let expected_finding = format!("error: rhumb.dev/step-soak is {wrong:?}, which is no duration");
        words("Deployment", with("rhumb.dev/step-soak", wrong), json!({}), &[&expected_finding]);
    }
    words(
        "Deployment",
        with("rhumb.dev/step-promote", "Manual"),
        json!({}),
        &["error: rhumb.dev/step-promote is \"Manual\""],
    );
    words(
        "Deployment",
        with("rhumb.dev/step-mode", "inplace"),
        json!({}),
        &["error: rhumb.dev/step-mode is \"inplace\""],
    );
    words(
        "StatefulSet",
        with("rhumb.dev/step-mode", "in-place"),
        json!({}),
        &[
            "error: rhumb.dev/step-mode is for Deployments: the pods of other kinds are always replaced in place",
        ],
    );
    words(
        "Deployment",
        with("rhumb.dev/step-nodes", "a=b"),
        json!({}),
        &["error: rhumb.dev/step-nodes is for DaemonSets: other pods are not bound to nodes"],
    );
    words(
        "DaemonSet",
        with("rhumb.dev/step-nodes", "a b"),
        json!({}),
        &["error: rhumb.dev/step-nodes is \"a b\", which is no label selector"],
    );
    words(
        "ConfigMap",
        json!({"rhumb.dev/steps": "1"}),
        json!({}),
        &["error: rhumb.dev/steps is for Deployments, StatefulSets and DaemonSets, and this is a ConfigMap"],
    );
    words(
        "Deployment",
        json!({"rhumb.dev/step-soak": "1m"}),
        json!({}),
        &["warning: rhumb.dev/step-soak has no effect without rhumb.dev/steps"],
    );
}

#[test]
fn steps_that_a_strategy_cannot_have_are_reported() {
    let one = json!({"rhumb.dev/steps": "1"});
    words(
        "Deployment",
        one.clone(),
        json!({"strategy": {"type": "Recreate"}}),
        &[
            "error: rhumb.dev/steps cannot work with spec.strategy.type Recreate, which ends all old pods before the first new one",
        ],
    );
    words(
        "Deployment",
        one.clone(),
        json!({"paused": true}),
        &[
            "warning: rhumb.dev/steps does not advance while spec.paused is true: no new pod is made in any step",
        ],
    );
    words("Deployment", one.clone(), json!({"paused": false}), &[]);
    for kind in ["StatefulSet", "DaemonSet"] {
        words(
            kind,
            one.clone(),
            json!({"updateStrategy": {"type": "OnDelete"}}),
            &[
                "warning: rhumb.dev/steps has no effect with spec.updateStrategy.type OnDelete: a pod gets the new template when somebody deletes the old one",
            ],
        );
    }
}

#[test]
fn steps_come_to_pods() {
    fn check(list: &str, replicas: u32, expected: &[u32]) {
        let steps = deployment(list);
        let targets: Vec<u32> = (1..=steps.count() + 1).map(|step| steps.target(step, replicas)).collect();
        assert_eq!(targets, expected, "{list} of {replicas}");
    }
    check("1, 25%, 50%", 8, &[1, 2, 4, 8]);
    check("1, 25%, 50%", 10, &[1, 3, 5, 10]);
    check("1, 25%, 50%", 1, &[1, 1, 1, 1]);
    check("1, 25%, 50%", 0, &[0, 0, 0, 0]);
    check("3, 25%", 4, &[3, 3, 4]);
    check("2, 9, 100%", 4, &[2, 4, 4, 4]);
    check("1%", 4_000_000_000, &[40_000_000, 4_000_000_000]);
}

#[test]
fn each_kind_is_held_by_its_own_overlay() {
    let one = json!({"rhumb.dev/steps": "1, 50%"});
    let in_place = json!({"rhumb.dev/steps": "1, 50%", "rhumb.dev/step-mode": "in-place"});
    let of = |steps: &Steps, replicas| -> Vec<Option<String>> {
        (0..=4).map(|step| steps.overlay_of(step, replicas).map(|overlay| overlay.to_string())).collect()
    };
    let some = |texts: &[&str]| -> Vec<Option<String>> {
        let texts = texts.iter().map(|text| Some((*text).to_owned()));
        let mut all: Vec<Option<String>> = std::iter::once(None).chain(texts).collect();
        all.resize(5, None);
        all
    };
    assert_eq!(of(&steps("Deployment", &one), 4), some(&["surge=1 step=1", "surge=2 step=2"]));
    assert_eq!(of(&steps("Deployment", &in_place), 4), some(&["in-place=1 step=1", "in-place=2 step=2"]));
    assert_eq!(of(&steps("StatefulSet", &one), 4), some(&["partition=3 step=1", "partition=2 step=2"]));
    // Held to the end, as its pods are evicted.
    assert_eq!(
        of(&steps("DaemonSet", &one), 4),
        some(&["on-delete step=1", "on-delete step=2", "on-delete step=3"])
    );
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        assert_eq!(of(&steps(kind, &one), 0), some(&[]), "{kind}");
    }
    let own = json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}});
    let kept = Steps::of(&content("StatefulSet", &one, &own)).unwrap();
    assert_eq!(of(&kept, 8), some(&["partition=7 step=1", "partition=4 step=2"]));
    assert_eq!(of(&kept, 4), some(&["partition=3 step=1", "partition=3 step=2"]));
    assert_eq!(of(&kept, 3), some(&[]));
}

fn standing(replicas: u32, shown: RolloutOverlayState, ready: u32) -> StepProgress {
    StepProgress {
        replicas,
        shown,
        made: ready,
        ready,
        ready_for: Duration::from_secs(30),
        promotion: PromotionRequest::None,
    }
}

fn surge(pods: u32, step: u32) -> RolloutOverlayState {
    RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods, step })
}

fn step_text(step: StepDecision) -> String {
    match step {
        StepDecision::Enter(overlay) => format!("enter {overlay}"),
        StepDecision::Stay(wait) => wait.to_string(),
        StepDecision::Finish => "finish".to_owned(),
    }
}

#[test]
fn each_standing_has_its_move() {
    use RolloutOverlayState::{Other, Plain, Unreadable};

    #[track_caller]
    fn check(words: &[(&str, &str)], standing: StepProgress, expected: &str) {
        let mut annotations = json!({"rhumb.dev/steps": "1, 25%, 50%"});
        for (key, value) in words {
            annotations[format!("rhumb.dev/step-{key}")] = json!(value);
        }
        assert_eq!(
            step_text(next(&steps("Deployment", &annotations), &standing)),
            expected,
            "{words:?} {standing:?}"
        );
    }
    let auto: &[(&str, &str)] = &[];
    let soak = &[("soak", "45s")];
    let manual = &[("promote", "manual")];
    let both = &[("soak", "45s"), ("promote", "manual")];
    check(auto, standing(8, Other, 0), "enter surge=1 step=1");
    check(auto, standing(8, Unreadable, 8), "enter surge=1 step=1");
    check(auto, standing(8, surge(1, 1), 0), "step 1 of 3: 0 of 1 new pods are ready");
    check(auto, standing(8, surge(1, 1), 1), "enter surge=2 step=2");
    check(auto, standing(8, surge(2, 2), 1), "step 2 of 3: 1 of 2 new pods are ready");
    check(auto, standing(8, surge(2, 2), 5), "enter surge=4 step=3");
    check(auto, standing(8, surge(4, 3), 4), "finish");
    check(auto, standing(8, Plain, 0), "finish");
    check(auto, standing(8, RolloutOverlayState::Overlaid(RolloutOverlay::Narrow(1)), 3), "finish");
    check(auto, standing(0, Other, 0), "finish");
    check(auto, standing(0, surge(1, 1), 0), "finish");

    check(soak, standing(8, surge(1, 1), 1), "step 1 of 3: soaks 15s more");
    check(
        soak,
        StepProgress { ready_for: Duration::from_millis(44_999), ..standing(8, surge(1, 1), 1) },
        "step 1 of 3: soaks 1s more",
    );
    check(
        soak,
        StepProgress { ready_for: Duration::from_secs(45), ..standing(8, surge(1, 1), 1) },
        "enter surge=2 step=2",
    );
    check(manual, standing(8, surge(1, 1), 0), "step 1 of 3: 0 of 1 new pods are ready");
    check(manual, standing(8, surge(1, 1), 1), "step 1 of 3: waits for `rhumb rollout promote`");
    check(both, standing(8, surge(1, 1), 1), "step 1 of 3: soaks 15s more");

    let asked = |from, standing| StepProgress { promotion: PromotionRequest::OneStep { from }, ..standing };
    check(both, asked(1, standing(8, surge(1, 1), 1)), "enter surge=2 step=2");
    check(both, asked(1, standing(8, surge(1, 1), 0)), "step 1 of 3: 0 of 1 new pods are ready");
    check(manual, asked(1, standing(8, surge(2, 2), 2)), "step 2 of 3: waits for `rhumb rollout promote`");
    check(manual, asked(2, standing(8, surge(1, 1), 1)), "step 1 of 3: waits for `rhumb rollout promote`");
    check(manual, asked(3, standing(8, surge(4, 3), 4)), "finish");
    check(manual, asked(1, standing(8, Other, 0)), "enter surge=1 step=1");
    let full = |standing| StepProgress { promotion: PromotionRequest::Full, ..standing };
    for shown in [Other, surge(1, 1), surge(4, 3), Plain, Unreadable] {
        check(both, full(standing(8, shown, 0)), "finish");
    }

    // Other replicas while held at 25%: the same step, with other pods.
    check(auto, standing(16, surge(2, 2), 2), "enter surge=4 step=2");
    check(auto, standing(4, surge(2, 2), 2), "enter surge=1 step=2");
    check(manual, standing(7, surge(2, 2), 2), "step 2 of 3: waits for `rhumb rollout promote`");
    // The Deployment gave the new template its share of the pods that were added.
    check(
        auto,
        StepProgress { made: 4, ..standing(16, surge(2, 2), 2) },
        "step 2 of 3: 2 of 4 new pods are ready",
    );
    check(auto, StepProgress { made: 3, ..standing(16, surge(2, 2), 3) }, "enter surge=4 step=2");
    check(auto, standing(16, surge(2, 2), 4), "enter surge=8 step=3");
    check(auto, standing(16, surge(2, 1), 4), "enter surge=1 step=1");
    // Another mode, or fewer steps than before.
    check(&[("mode", "in-place")], standing(8, surge(2, 2), 2), "enter in-place=2 step=2");
    check(auto, standing(8, surge(7, 9), 8), "enter surge=4 step=3");
}

#[test]
fn a_daemon_set_is_held_until_all_its_nodes_are_done() {
    let on_delete = |step| RolloutOverlayState::Overlaid(RolloutOverlay::OnDelete { step });
    let some = steps("DaemonSet", &json!({"rhumb.dev/steps": "1, 3", "rhumb.dev/step-promote": "manual"}));
    let promoted =
        |from, standing| StepProgress { promotion: PromotionRequest::OneStep { from }, ..standing };
    assert_eq!(step_text(next(&some, &standing(5, RolloutOverlayState::Other, 0))), "enter on-delete step=1");
    assert_eq!(step_text(next(&some, &promoted(2, standing(5, on_delete(2), 3)))), "enter on-delete step=3");
    assert_eq!(
        step_text(next(&some, &standing(5, on_delete(3), 4))),
        "after its last step: 4 of 5 new pods are ready"
    );
    assert_eq!(step_text(next(&some, &standing(5, on_delete(3), 5))), "finish");
    assert_eq!(step_text(next(&some, &promoted(2, standing(3, on_delete(2), 3)))), "finish");
    let full = StepProgress { promotion: PromotionRequest::Full, ..standing(5, on_delete(1), 0) };
    assert_eq!(step_text(next(&some, &full)), "finish");
}

#[test]
fn what_a_scale_gave_beyond_a_step_is_reported() {
    let check = |kind: &str, made: u32, shown: &str, expected: &str| {
        let words = json!({"rhumb.dev/steps": "1", "rhumb.dev/step-promote": "manual"});
        let standing =
            StepProgress { made, ..standing(8, RolloutOverlayState::Overlaid(shown.parse().unwrap()), 1) };
        let waits = format!("step 1 of 1: waits for `rhumb rollout promote`{expected}");
        assert_eq!(step_text(next(&steps(kind, &words), &standing)), waits);
    };
    check("Deployment", 1, "surge=1 step=1", "");
    let shared =
        "; it was scaled meanwhile, and its controller gave the new template 2 pods more than the step has";
    check("Deployment", 3, "surge=1 step=1", shared);
    check("StatefulSet", 1, "partition=7 step=1", "");
    let made = "; it was scaled meanwhile, and 2 pods more than the step has are of the new template: each keeps it \
                until somebody deletes it";
    check("StatefulSet", 3, "partition=7 step=1", made);
}

#[test]
fn only_pods_beyond_the_step_at_the_present_count_are_a_surplus() {
    let check = |kind: &str, (replicas, shown): (u32, &str), made: u32, expected: SurplusPods| {
        let mode = if shown.starts_with("in-place") { "in-place" } else { "surge" };
        let mut words = json!({"rhumb.dev/steps": "1, 25%", "rhumb.dev/step-promote": "manual"});
        if kind == "Deployment" {
            words["rhumb.dev/step-mode"] = json!(mode);
        }
        let overlay = RolloutOverlayState::Overlaid(shown.parse().unwrap());
        match next(&steps(kind, &words), &standing(replicas, overlay, made)) {
            StepDecision::Stay(wait) => assert_eq!(wait.surplus, expected, "{shown} {made}"),
            other => panic!("{shown} {made}: {other:?}"),
        }
    };
    check("Deployment", (16, "surge=2 step=2"), 4, SurplusPods::None);
    check("Deployment", (16, "surge=2 step=2"), 6, SurplusPods::Shared(2));
    check("Deployment", (8, "in-place=1 step=1"), 3, SurplusPods::Shared(2));
    check("DaemonSet", (8, "on-delete step=1"), 3, SurplusPods::None);
}

#[test]
fn an_overlay_stands_for_a_step_that_there_is() {
    let list = json!({"rhumb.dev/steps": "1, 50%"});
    let check = |kind: &str, overlay: &str, expected: u32| {
        assert_eq!(steps(kind, &list).step_of(overlay.parse().unwrap()), expected, "{kind} {overlay}");
    };
    check("Deployment", "surge=1 step=2", 2);
    check("Deployment", "surge=1 step=3", 2);
    check("Deployment", "narrow=1", 1);
    check("DaemonSet", "on-delete step=4", 3);
}

#[test]
fn the_annotation_names_the_step_of_a_rollout() {
    let shown =
        |annotations: Value| RolloutOverlayState::of(&json!({"metadata": {"annotations": annotations}}));
    assert_eq!(RolloutOverlayState::of(&json!({})), RolloutOverlayState::Plain);
    assert_eq!(shown(json!({"rhumb.dev/overlay": "surge=2 step=1"})), surge(2, 1));
    for text in [json!("surge=2"), json!(""), json!(3), json!(null)] {
        assert_eq!(shown(json!({"rhumb.dev/overlay": text})), RolloutOverlayState::Unreadable, "{text}");
    }
}

/// Returns all steps of up to three sizes, for each kind.
fn all_steps() -> Vec<Steps> {
    let lists =
        ["1", "2", "50%", "100%", "1, 2", "1, 50%", "2, 9", "1, 2, 3", "1, 25%, 50%", "10%, 60%, 100%"];
    let mut all = Vec::new();
    for (kind, mode) in [
        ("Deployment", Some("surge")),
        ("Deployment", Some("in-place")),
        ("StatefulSet", None),
        ("DaemonSet", None),
    ] {
        for list in lists {
            for promote in ["auto", "manual"] {
                let mut words = json!({"rhumb.dev/steps": list, "rhumb.dev/step-soak": "10s", "rhumb.dev/step-promote": promote});
                if let Some(mode) = mode {
                    words["rhumb.dev/step-mode"] = json!(mode);
                }
                all.push(steps(kind, &words));
            }
        }
    }
    all
}

/// Returns all parts of a step's state, in small numbers.
fn all_standings(steps: &Steps) -> Vec<StepProgress> {
    let mut all = Vec::new();
    for replicas in 0..=5 {
        let mut shown = vec![
            RolloutOverlayState::Other,
            RolloutOverlayState::Plain,
            RolloutOverlayState::Unreadable,
            RolloutOverlayState::Overlaid(RolloutOverlay::Narrow(1)),
        ];
        for of in 0..=5 {
            shown.extend(
                (1..=5).filter_map(|step| steps.overlay_of(step, of)).map(RolloutOverlayState::Overlaid),
            );
        }
        for shown in shown {
            for (made, ready) in (0..=6).flat_map(|made| [(made, made), (made, made / 2)]) {
                for ready_for in [0, 9, 10].map(Duration::from_secs) {
                    let from = (0..=4).map(|from| PromotionRequest::OneStep { from });
                    for promotion in from.chain([PromotionRequest::None, PromotionRequest::Full]) {
                        all.push(StepProgress { replicas, shown, made, ready, ready_for, promotion });
                    }
                }
            }
        }
    }
    all
}

fn step_shown(steps: &Steps, shown: RolloutOverlayState) -> Option<u32> {
    match shown {
        RolloutOverlayState::Overlaid(overlay) if overlay.step().is_some() => Some(steps.step_of(overlay)),
        _ => None,
    }
}

#[test]
fn no_standing_skips_a_step_or_goes_on_without_its_pods() {
    let mut checked = 0_u32;
    for steps in all_steps() {
        for standing in all_standings(&steps) {
            checked += 1;
            let decided = next(&steps, &standing);
            let at = step_shown(&steps, standing.shown);
            let text = || format!("{steps:?} {standing:?} {decided:?}");
            let all = steps.target(u32::MAX, standing.replicas);
            let is_free = standing.promotion == PromotionRequest::Full || all == 0;
            match decided {
                StepDecision::Enter(overlay) => {
                    assert!(!is_free, "{}", text());
                    let to = overlay.step().unwrap();
                    assert_eq!(Some(overlay), steps.overlay_of(to, standing.replicas), "{}", text());
                    assert_ne!(
                        standing.shown,
                        RolloutOverlayState::Overlaid(overlay),
                        "a write that changes nothing: {}",
                        text()
                    );
                    match at {
                        None => assert_eq!(to, 1, "{}", text()),
                        Some(at) if to == at => {}
                        Some(at) => {
                            assert_eq!(to, at + 1, "{}", text());
                            assert!(standing.ready >= steps.target(at, standing.replicas), "{}", text());
                            let asked = standing.promotion == PromotionRequest::OneStep { from: at };
                            assert!(asked || standing.ready_for >= Duration::from_secs(10), "{}", text());
                        }
                    }
                }
                StepDecision::Finish => {
                    let was_free = matches!(
                        standing.shown,
                        RolloutOverlayState::Plain | RolloutOverlayState::Overlaid(RolloutOverlay::Narrow(_))
                    );
                    let at_end = at.is_some_and(|at| at >= steps.count());
                    assert!(
                        is_free
                            || was_free
                            || (at_end && standing.ready >= steps.target(at.unwrap(), standing.replicas)),
                        "{}",
                        text()
                    );
                }
                StepDecision::Stay(wait) => {
                    assert_eq!(Some(wait.step), at, "{}", text());
                    assert_eq!(
                        matches!(wait.lacks, StepRequirement::Pods { .. }),
                        standing.ready < steps.target(wait.step, standing.replicas),
                        "{}",
                        text()
                    );
                }
            }
        }
    }
    assert!(checked > 500_000, "{checked}");
}

/// Follows a rollout in which each step's pods get Ready; returns the steps entered.
fn follow(
    steps: &Steps,
    mut replicas: impl FnMut(usize) -> u32,
    promote: impl Fn(u32) -> PromotionRequest,
) -> (Vec<u32>, StepDecision) {
    let mut entered = Vec::new();
    let mut shown = RolloutOverlayState::Other;
    for turn in 0..40 {
        let replicas = replicas(turn);
        let at = step_shown(steps, shown);
        let ready = at.map_or(0, |at| steps.target(at, replicas));
        let promotion = at.map_or(PromotionRequest::None, &promote);
        let ready_for = Duration::from_secs(10);
        let standing = StepProgress { replicas, shown, made: ready, ready, ready_for, promotion };
        match next(steps, &standing) {
            StepDecision::Enter(overlay) => {
                shown = RolloutOverlayState::Overlaid(overlay);
                if at != overlay.step() {
                    entered.push(overlay.step().unwrap());
                }
            }
            other => return (entered, other),
        }
    }
    panic!("{steps:?} never ends: {entered:?}");
}

#[test]
fn a_rollout_whose_pods_get_ready_ends_after_each_of_its_steps() {
    for steps in all_steps() {
        let is_manual = steps.promote == crate::engine::PromotionMode::Manual;
        for first in 1..=6 {
            for second in 1..=6 {
                for change in 0..4 {
                    let replicas = |turn| if turn < change { first } else { second };
                    let ask = |at| {
                        if is_manual {
                            PromotionRequest::OneStep { from: at }
                        } else {
                            PromotionRequest::None
                        }
                    };
                    let (entered, end) = follow(&steps, replicas, ask);
                    assert_eq!(end, StepDecision::Finish, "{steps:?}");
                    let last = steps.count();
                    assert!(
                        entered.iter().copied().eq(1..=last) || entered.iter().copied().eq(1..=last + 1),
                        "{entered:?}"
                    );
                    let (entered, end) = follow(&steps, replicas, |_| PromotionRequest::None);
                    if is_manual {
                        assert!(
                            matches!(end, StepDecision::Stay(wait) if wait.lacks == StepRequirement::Promotion),
                            "{end:?}"
                        );
                        assert_eq!(entered, [1]);
                        // A word that was given once takes it one step on, and no further.
                        let (entered, end) =
                            follow(&steps, replicas, |_| PromotionRequest::OneStep { from: 1 });
                        assert!(entered.len() <= 2, "{entered:?}");
                        assert!(end == StepDecision::Finish || entered == [1, 2], "{end:?}");
                    } else {
                        assert_eq!(end, StepDecision::Finish);
                    }
                }
            }
        }
    }
}
