//! `StatefulSet`s: their controller waits for a bad pod for ever, whatever template comes after it.

use serde_json::{Value, json};

use crate::failures::{
    BOUNDS, BUDGET, HASTY, IMAGE, ONE, await_begin, await_image, await_rejection, narrow, push,
};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually};

fn db(image: &str) -> Web {
    Web::of("StatefulSet", "db", image)
}

/// Waits until a StatefulSet wants an image, and all its pods have it and are ready.
#[track_caller]
pub(crate) fn await_set(site: &TestNamespace<'_>, name: &str, image: &str) {
    eventually(&format!("{name} is rolled out to {image}"), DEFAULT_TIMEOUT, || {
        let shown = site.get("StatefulSet", name).ok_or_else(|| "it is not there".to_owned())?;
        let at = |pointer: &str| shown.pointer(pointer).cloned().unwrap_or_default();
        let done = at(IMAGE) == json!(image)
            && at("/status/observedGeneration") == at("/metadata/generation")
            && at("/status/updateRevision") == at("/status/currentRevision")
            && at("/status/readyReplicas") == at("/spec/replicas");
        if done { Ok(()) } else { Err(shown["status"].to_string()) }
    });
}

/// Returns a set with its configuration and a Deployment beside it, at rest.
fn at_rest(site: &TestNamespace<'_>, repo: &Repo, budget: &str) -> (Daemon, Observer) {
    let daemon = site.configured(&site.configuration(repo.path(), budget));
    await_set(site, "db", "app:1");
    site.await_rollout("api");
    site.await_free_budget();
    (daemon, Observer::new(site))
}

fn files(db: Web, content: &str, api: &str) -> Vec<(String, String)> {
    vec![db.uses("env").file(), config("env", content), Web::new("api", api).file()]
}

/// Checks a commit that is bad for the set: it goes back with its configuration and is freed, the
/// Deployment goes on.
fn goes_back(name: &str, budget: &str, bad: Web) {
    let site = TestNamespace::new(name);
    let repo = Repo::new(&files(db("app:1"), "one", "app:1"));
    let (daemon, observer) = at_rest(&site, &repo, &narrow(budget));
    let image = bad.image().to_owned();
    push(&repo, &files(bad, "two", "app:2"), "Break it");
    await_begin(&observer, "StatefulSet", "db", &image);
    await_rejection(&site, &["back", "failed: StatefulSet", "/db"]);
    await_set(&site, "db", "app:1");
    site.await_data("env", "key", "one");
    await_image(&site, "api", "app:2");
    site.await_free_budget();
    assert_eq!(observer.judge(ONE).pods, 1);
    drop(daemon);
}

#[test]
fn a_set_that_never_gets_ready() {
    goes_back("set-never-ready", HASTY, db("app:2").fault("never-ready: \"true\""));
}

#[test]
fn a_set_that_crashes_again_and_again() {
    goes_back("set-crash", BUDGET, db("app:2").fault("crash: \"true\""));
}

#[test]
fn a_set_whose_image_cannot_be_pulled() {
    goes_back("set-image", BUDGET, db("app:broken"));
}

#[test]
fn two_sets_and_a_deployment_share_one_budget() {
    let site = TestNamespace::new("set-two");
    let slow = |web: Web| web.fault("ready-delay: 300ms").file();
    let files = |image: &str| {
        let set = |name| slow(Web::of("StatefulSet", name, image));
        vec![set("one"), set("two"), slow(Web::new("web", image))]
    };
    let repo = Repo::new(&files("app:1"));
    let budget = BUDGET.replace("maxUnavailable: 2", "maxUnavailable: 1");
    let _daemon = site.configured(&site.configuration(repo.path(), &budget));
    let all = |image: &str| {
        for name in ["one", "two"] {
            await_set(&site, name, image);
        }
        await_image(&site, "web", image);
        site.await_free_budget();
    };
    all("app:1");
    let observer = Observer::new(&site);
    push(&repo, &files("app:2"), "Change all");
    all("app:2");
    let most = observer.judge(Bounds { workloads: 2, pods: 1 });
    assert_eq!(most.pods, 1);
}

/// Checks that by policy it stays as it is, and that a person's action then frees it.
fn held(name: &str, bad: Web, end: impl FnOnce(&TestNamespace<'_>, &Repo) -> &'static str) {
    let site = TestNamespace::new(name);
    let repo = Repo::new(&files(db("app:1"), "one", "app:1"));
    let (_daemon, observer) = at_rest(&site, &repo, &HASTY.replace('}', ", onFailure: quarantine}"));
    let image = bad.image().to_owned();
    push(&repo, &files(bad, "two", "app:1"), "Break it");
    await_rejection(&site, &["held", "failed: StatefulSet", "/db"]);
    site.await_free_budget();
    assert_eq!(site.value("StatefulSet", "db", IMAGE), json!(image));
    let of_bad = |pod: &Value| pod["spec"]["containers"][0]["image"] == json!(image);
    let stuck = site.api.list(&site.at("Pod", "")).into_iter().filter(of_bad).count();
    assert_eq!(stuck, 1, "nothing frees it before a person decides");
    let expected = end(&site, &repo);
    await_set(&site, "db", expected);
    site.await_free_budget();
    observer.judge(BOUNDS);
}

fn mend(_: &TestNamespace<'_>, repo: &Repo) -> &'static str {
    push(repo, &files(db("app:3"), "three", "app:1"), "Mend it");
    "app:3"
}

fn undo(site: &TestNamespace<'_>, _: &Repo) -> &'static str {
    site.order(&["rollout", "undo", "sts/db"], &["undone: revision"]);
    "app:1"
}

#[test]
fn a_set_that_is_held_and_then_mended_by_a_commit() {
    held("set-held-image", db("app:broken"), mend);
}

#[test]
fn a_set_that_is_held_as_it_never_gets_ready_and_then_mended_by_a_commit() {
    held("set-held-unready", db("app:2").fault("never-ready: \"true\""), mend);
}

#[test]
fn a_set_that_is_held_and_then_undone_by_a_person() {
    held("set-held-undone", db("app:2").fault("never-ready: \"true\""), undo);
}
