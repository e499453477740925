//! Deployments: held beside their old pods, in their place, or narrowed.

use std::time::Duration;

use rhumb::testing::engine::{
    PromotionRequest, RolloutOverlay, RolloutOverlayState, StepDecision, StepProgress, Steps, next,
};
use serde_json::json;

use crate::harness::{BROKEN_IMAGE, Harness, NEW_IMAGE, OLD_IMAGE, plane};

fn surge(pods: u32) -> RolloutOverlay {
    RolloutOverlay::Surge { pods, step: 1 }
}

fn in_place(pods: u32) -> RolloutOverlay {
    RolloutOverlay::InPlace { pods, step: 1 }
}

#[tokio::test]
async fn a_surge_is_exactly_so_many_new_pods_beside_all_old_ones() {
    let mut web = Harness::new("Deployment", "surge", json!({ "replicas": 4 })).await;
    web.apply(NEW_IMAGE, surge(1)).await;
    web.until("one new pod", |web| web.is_held(4, 1)).await;
    assert_eq!((web.worst.old, web.worst.new), (4, 1));
    assert_eq!((web.status("updatedReplicas"), web.status("availableReplicas")), (1, 4));
    // Without a deadline there is no such condition: nobody but us notices that a hold fails.
    assert!(!web.live["status"]["conditions"].to_string().contains("Progressing"), "{}", web.live["status"]);
    web.apply(NEW_IMAGE, surge(3)).await;
    web.until("three new pods", |web| web.is_held(4, 3)).await;
    assert_eq!((web.worst.old, web.worst.new), (4, 3));
    assert_eq!((web.worst.gone(OLD_IMAGE).len(), web.worst.gone(NEW_IMAGE).len()), (0, 0));
    assert_eq!(web.annotation(), "surge=3 step=1");
    web.plain(NEW_IMAGE).await;
    web.until("all pods are new", |web| web.is_all(NEW_IMAGE)).await;
    // As its own strategy has it: a quarter of four.
    assert!(web.worst.ready >= 3, "{:?}", web.worst);
    assert_eq!(web.annotation(), "");
    assert_eq!(web.live["spec"]["minReadySeconds"], json!(null));
    assert_eq!(web.live["spec"]["progressDeadlineSeconds"], json!(600));
    assert_eq!(web.live["spec"]["strategy"]["rollingUpdate"]["maxSurge"], json!("25%"));
}

#[tokio::test]
async fn a_surge_that_is_given_up_takes_no_old_pod_away() {
    let mut web = Harness::new("Deployment", "abort", json!({ "replicas": 4 })).await;
    for (image, pods) in [(NEW_IMAGE, 2), (BROKEN_IMAGE, 3)] {
        web.apply(image, surge(pods)).await;
        web.until("held", |web| web.ready(OLD_IMAGE) == 4 && web.count(image) == pods as usize).await;
        assert_eq!(web.ready(BROKEN_IMAGE), 0);
        web.plain(OLD_IMAGE).await;
        web.until("back", |web| web.is_all(OLD_IMAGE)).await;
        assert_eq!((web.worst.old, web.worst.new), (4, pods as usize), "{image}");
    }
}

#[tokio::test]
async fn a_newer_template_takes_the_place_of_a_held_one() {
    let mut web = Harness::new("Deployment", "newer", json!({ "replicas": 4 })).await;
    web.apply("web:broken", surge(2)).await;
    web.until("held", |web| web.ready(OLD_IMAGE) == 4 && web.count(BROKEN_IMAGE) == 2).await;
    web.apply(NEW_IMAGE, surge(2)).await;
    web.until("held anew", |web| web.is_held(4, 2)).await;
    assert_eq!(web.worst.old, 4);
}

#[tokio::test]
async fn in_place_is_exactly_so_many_pods_replaced() {
    let mut web = Harness::new("Deployment", "in-place", json!({ "replicas": 4 })).await;
    web.apply(NEW_IMAGE, in_place(1)).await;
    web.until("one new pod", |web| web.is_held(3, 1)).await;
    assert_eq!((web.worst.old, web.worst.new), (3, 1));
    web.apply(NEW_IMAGE, in_place(2)).await;
    web.until("two new pods", |web| web.is_held(2, 2)).await;
    assert_eq!((web.worst.old, web.worst.new), (2, 2));
    web.forget();
    web.plain(NEW_IMAGE).await;
    web.until("all pods are new", |web| web.is_all(NEW_IMAGE)).await;
    assert!(web.worst.ready >= 3, "{:?}", web.worst);
    // The rollback of a pod that never gets Ready takes no other one away.
    web.plain(OLD_IMAGE).await;
    web.until("old again", |web| web.is_all(OLD_IMAGE)).await;
    web.apply(BROKEN_IMAGE, in_place(1)).await;
    web.until("held", |web| web.ready(OLD_IMAGE) == 3 && web.count(BROKEN_IMAGE) == 1).await;
    web.forget();
    web.plain(OLD_IMAGE).await;
    web.until("back", |web| web.is_all(OLD_IMAGE)).await;
    assert_eq!(web.worst.old, 3);
}

#[tokio::test]
async fn a_narrowed_deployment_takes_no_more_pods_away() {
    let spec = json!({ "replicas": 4, "strategy": { "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "100%" } } });
    let mut web = Harness::new("Deployment", "narrow", spec).await;
    web.apply(NEW_IMAGE, RolloutOverlay::Narrow(1)).await;
    web.until("all pods are new", |web| web.is_all(NEW_IMAGE)).await;
    assert_eq!(web.worst.ready, 3);
    assert_eq!(web.annotation(), "narrow=1");
    web.forget();
    web.apply(OLD_IMAGE, RolloutOverlay::Narrow(0)).await;
    web.until("all pods are old", |web| web.is_all(OLD_IMAGE)).await;
    assert_eq!(web.worst.ready, 4);
    let before = web.uids();
    web.plain(OLD_IMAGE).await;
    web.until("the plain strategy", |web| web.is_all(OLD_IMAGE)).await;
    assert_eq!(web.uids(), before);
}

/// Scales by the subresource, as an autoscaler does.
fn scale(name: &str, replicas: u32) {
    let count = format!("--replicas={replicas}");
    plane().kubectl(&["scale", "deployment", name, &count]).unwrap();
}

#[tokio::test]
async fn other_replicas_during_a_hold_keep_it_held() {
    let mut web = Harness::new("Deployment", "scaled", json!({})).await;
    scale("scaled", 8);
    web.until("eight pods", |web| web.pods.len() == 8 && web.is_all(OLD_IMAGE)).await;
    web.forget();
    web.apply(NEW_IMAGE, surge(2)).await;
    web.until("held", |web| web.is_held(8, 2)).await;
    // The controller shares what is added: 8:2 becomes 14:4.
    scale("scaled", 16);
    web.until("more pods", |web| web.is_held(14, 4)).await;
    assert_eq!((web.worst.old, web.worst.new), (8, 4));
    // A larger surge adds to that, and a smaller one takes nothing away.
    web.apply(NEW_IMAGE, surge(4)).await;
    web.until("more new pods", |web| web.is_held(14, 6)).await;
    web.apply(NEW_IMAGE, surge(1)).await;
    web.until("nothing", |web| web.is_held(14, 6)).await;
    scale("scaled", 4);
    web.until("fewer pods", |web| web.ready("") <= 8 && web.pods.len() == web.ready("")).await;
    assert!(web.ready(OLD_IMAGE) >= 3 && web.ready(NEW_IMAGE) >= 1, "{:?}", web.worst);
    assert_eq!(web.worst.new, 6);
    web.plain(NEW_IMAGE).await;
    web.until("all pods are new", |web| web.is_all(NEW_IMAGE)).await;
}

/// Asks nothing but the cluster for the status of the rollout, as after a crash at each point.
#[tokio::test]
async fn a_rollout_goes_through_its_steps() {
    let mut web = Harness::new("Deployment", "steps", json!({ "replicas": 4 })).await;
    web.body["metadata"]["annotations"] = json!({ "rhumb.dev/steps": "1, 50%" });
    let steps = Steps::of(&web.body).unwrap();
    let mut moves = Vec::new();
    loop {
        let image = web.live.pointer("/spec/template/spec/containers/0/image").unwrap().as_str().unwrap();
        let standing = StepProgress {
            replicas: 4,
            shown: if image == NEW_IMAGE {
                RolloutOverlayState::of(&web.live)
            } else {
                RolloutOverlayState::Other
            },
            made: web.count(NEW_IMAGE) as u32,
            ready: web.ready(NEW_IMAGE) as u32,
            ready_for: Duration::ZERO,
            promotion: PromotionRequest::None,
        };
        match next(&steps, &standing) {
            StepDecision::Stay(_) => web.event().await,
            StepDecision::Enter(overlay) => {
                moves.push(overlay.to_string());
                web.apply(NEW_IMAGE, overlay).await;
            }
            StepDecision::Finish => break,
        }
    }
    assert_eq!(moves, ["surge=1 step=1", "surge=2 step=2"]);
    assert_eq!((web.worst.old, web.worst.new), (4, 2));
    web.plain(NEW_IMAGE).await;
    web.until("all pods are new", |web| web.is_all(NEW_IMAGE)).await;
    // As its own strategy has it: a quarter of four.
    assert!(web.worst.ready >= 3, "{:?}", web.worst);
}
