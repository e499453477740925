//! The API server is restarted while workloads roll.

use serde_json::json;

use crate::failures::{BOUNDS, BUDGET, IMAGE, await_image, await_rejection, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::processes::FIVE;
use crate::support::{DedicatedCluster, Repo, TestNamespace, until};

fn files(image: &str, web: &str, content: &str) -> Vec<(String, String)> {
    let slow = |name: &str, image: &str| Web::new(name, image).fault("ready-delay: 400ms");
    let others = FIVE[..4].iter().map(|name| slow(name, image).file());
    others.chain([slow("web", web).uses("env").file(), config("env", content)]).collect()
}

fn restart(own: &DedicatedCluster) {
    own.kill_apiserver().unwrap();
    own.start_apiserver().unwrap();
}

#[test]
fn an_api_server_that_is_restarted_in_the_middle_of_a_rollout_and_of_a_rollback() {
    let own = DedicatedCluster::complete();
    let site = TestNamespace::on(&own, "restarted");
    let repo = Repo::new(&files("app:1", "app:1", "one"));
    let mut daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    for name in FIVE {
        await_image(&site, name, "app:1");
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&repo, &files("app:2", "app:2", "two"), "Change all");
    for name in [FIVE[0], FIVE[2]] {
        until("it rolls", || site.value("Deployment", name, IMAGE) == json!("app:2"));
        restart(&own);
    }
    for name in FIVE {
        await_image(&site, name, "app:2");
    }
    site.await_data("env", "key", "two");
    site.await_free_budget();
    push(&repo, &files("app:3", "app:broken", "three"), "Break one");
    await_rejection(&site, &["web"]);
    restart(&own);
    for name in &FIVE[..4] {
        await_image(&site, name, "app:3");
    }
    await_image(&site, "web", "app:2");
    site.await_data("env", "key", "two");
    site.await_free_budget();
    assert!(daemon.is_running());
    let most = observer.judge(BOUNDS);
    assert!(most.pods > 0, "{most:?} was seen");
}
