//! Objects that move between sources of different processes: nothing is deleted that another one
//! brings.

use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, IMAGE, await_image};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{Daemon, Repo, SHARED, TestNamespace, at, until, yaml};

/// No pod is away, and nothing rolls.
const UNTOUCHED: Bounds = Bounds { workloads: 0, pods: 0 };

pub(crate) fn web() -> String {
    yaml::documents(&[Web::new("web", "app:1").text(), yaml::service("web", "web")])
}

/// Returns a repository with a folder for each of two sources; the first one has the workload.
pub(crate) fn two_folders() -> Repo {
    let file =
        |name: &str| (format!("{name}/own.yaml"), yaml::config_map(&format!("own-{name}"), "key", "one"));
    Repo::new(&[file("a"), file("b"), ("a/web.yaml".to_owned(), web())])
}

fn of_folder(site: &TestNamespace<'_>, repo: &Repo, folder: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {}-{folder}}}\nspec:\n  namespace: {}\n  \
         git: {{url: {}, path: {folder}}}\n{spec}\n",
        site.name,
        site.name,
        repo.path().display()
    )
}

fn with(settings: &str, sources: &[String]) -> String {
    format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{settings}\n{}", sources.concat())
}

/// Two daemons, each a user of its own, with a source each.
pub(crate) struct DaemonPair {
    pub(crate) one: TestNamespace<'static>,
    first: Daemon,
    second: Daemon,
}

impl DaemonPair {
    pub(crate) fn new(name: &str, repo: &Repo) -> Self {
        Self::within(name, repo, BUDGET)
    }

    pub(crate) fn within(name: &str, repo: &Repo, budget: &str) -> Self {
        let mut one = TestNamespace::new(name);
        let mut other = one.with_empty_state();
        one.known_as("one");
        other.known_as("other");
        let first = one.configured(&with(
            budget,
            &[of_folder(&one, repo, "a", "  blastRadius: {count: 10, percent: 100}")],
        ));
        let second = other.configured(&with(budget, &[of_folder(&one, repo, "b", "")]));
        one.await_rollout("web");
        one.await_free_budget();
        for name in ["own-a", "own-b"] {
            one.await_data(name, "key", "one");
        }
        for folder in ["a", "b"] {
            await_word(&one, folder, &repo.head());
        }
        Self { one, first, second }
    }
}

/// Waits until a source publishes that it has read a revision completely, and claims nothing.
#[track_caller]
fn await_word(site: &TestNamespace<'_>, folder: &str, revision: &str) {
    let inventory = at("ConfigMap", &site.system(), &format!("{}-{folder}", site.name));
    crate::support::eventually("a source has said how far it is", SHARED, || {
        let said = site.api.value(&inventory, "/data/handover");
        let text = said.as_str().unwrap_or_default();
        let done = [format!("\"read\":\"{revision}\""), "\"requests\":[]".to_owned()];
        if done.iter().all(|fact| text.contains(fact)) { Ok(()) } else { Err(text.to_owned()) }
    });
}

/// Waits until a source reports an object with all these texts in one line.
#[track_caller]
fn await_recorded(site: &TestNamespace<'_>, folder: &str, texts: &[&str]) {
    let inventory = at("ConfigMap", &site.system(), &format!("{}-{folder}", site.name));
    crate::support::eventually(&format!("{texts:?} is reported"), SHARED, || {
        let recorded = site.api.value(&inventory, "/data/not-as-wanted");
        let recorded = recorded.as_str().unwrap_or_default();
        let is_so = recorded.lines().any(|line| texts.iter().all(|text| line.contains(text)));
        if is_so { Ok(()) } else { Err(recorded.to_owned()) }
    });
}

/// The marks that must outlive a move.
#[derive(Debug, PartialEq)]
struct ObjectMarks {
    workload: Value,
    service: Value,
    address: Value,
}

fn marks(site: &TestNamespace<'_>) -> ObjectMarks {
    ObjectMarks {
        workload: site.value("Deployment", "web", "/metadata/uid"),
        service: site.value("Service", "web", "/metadata/uid"),
        address: site.value("Service", "web", "/spec/clusterIP"),
    }
}

/// Waits until an object is in the inventory of a folder's source.
#[track_caller]
pub(crate) fn await_owner(site: &TestNamespace<'_>, object: &str, folder: &str) {
    let inventory = at("ConfigMap", &site.system(), &format!("{}-{folder}", site.name));
    let set = site.api.value(&inventory, "/metadata/labels/applyset.kubernetes.io~1id");
    crate::support::eventually(&format!("{object} belongs to {folder}"), SHARED, || {
        let label = site.api.value(object, "/metadata/labels/applyset.kubernetes.io~1part-of");
        if label == set && !label.is_null() { Ok(()) } else { Err(label.to_string()) }
    });
}

fn moved(repo: &Repo, from: &str, to: &str) -> String {
    repo.git(&["mv", &format!("{from}/web.yaml"), &format!("{to}/web.yaml")]);
    repo.commit("Move it")
}

#[track_caller]
pub(crate) fn await_moved(site: &TestNamespace<'_>, to: &str) {
    for kind in ["Deployment", "Service"] {
        await_owner(site, &site.at(kind, "web"), to);
    }
}

#[test]
fn what_moves_between_two_daemons_keeps_its_pods_and_its_address() {
    let repo = two_folders();
    let pair = DaemonPair::new("moves-two", &repo);
    let (before, observer) = (marks(&pair.one), Observer::new(&pair.one));
    for (from, to) in [("a", "b"), ("b", "a"), ("a", "b")] {
        moved(&repo, from, to);
        await_moved(&pair.one, to);
        assert_eq!(marks(&pair.one), before);
    }
    observer.judge(UNTOUCHED);
}

/// Swaps the folders of both sources by one commit, twice, so that each gives all it has and takes
/// all of the other.
#[track_caller]
fn swap_and_judge(site: &TestNamespace<'_>, repo: &Repo) {
    let own = || ["own-a", "own-b"].map(|name| site.value("ConfigMap", name, "/metadata/uid"));
    let (before, observer, window) = ((marks(site), own()), Observer::new(site), site.window());
    for [web, other] in [["b", "a"], ["a", "b"]] {
        for (from, to) in [("a", "c"), ("b", "a"), ("c", "b")] {
            repo.git(&["mv", from, to]);
        }
        repo.commit("Swap the folders");
        await_moved(site, web);
        for (name, folder) in [("own-a", web), ("own-b", other)] {
            await_owner(site, &site.at("ConfigMap", name), folder);
        }
        assert_eq!((marks(site), own()), before);
    }
    observer.judge(UNTOUCHED);
    window.assert_no_deletes();
}

#[test]
fn two_daemons_that_swap_all_they_have_keep_it() {
    let repo = two_folders();
    let pair = DaemonPair::new("moves-swap", &repo);
    swap_and_judge(&pair.one, &repo);
}

#[test]
fn two_sources_of_a_daemon_that_swap_all_they_have_keep_it() {
    let repo = two_folders();
    let site = TestNamespace::new("moves-swap-one");
    let sources = ["a", "b"].map(|folder| of_folder(&site, &repo, folder, ""));
    let _daemon = site.configured(&with(BUDGET, &sources));
    site.await_rollout("web");
    site.await_free_budget();
    swap_and_judge(&site, &repo);
}

/// Moves a workload in the middle of a rollout whose pods never get ready: it goes back where it
/// has come to.
#[track_caller]
fn move_and_judge(site: &TestNamespace<'_>, repo: &Repo) {
    let (before, observer, window) = (marks(site), Observer::new(site), site.window());
    let bad = Web::new("web", "app:2").strategy(1, 0).fault("never-ready: \"true\"");
    repo.write("a/web.yaml", &yaml::documents(&[bad.text(), yaml::service("web", "web")]));
    repo.commit("Break it");
    until("it rolls", || site.value("Deployment", "web", IMAGE) == json!("app:2"));
    moved(repo, "a", "b");
    await_moved(site, "b");
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:2"), "nobody has judged it yet");
    await_image(site, "web", "app:1");
    await_recorded(site, "b", &["web", "no progress"]);
    site.await_free_budget();
    assert_eq!(marks(site), before);
    assert_eq!(observer.judge(BOUNDS).pods, 0, "the new pods come beside the old ones");
    window.assert_no_deletes();
}

/// Returns a budget whose deadline leaves the time to move an object before it passes, on a busy
/// machine too.
pub(crate) fn patient() -> String {
    BUDGET.replace("deadline: 60s", "deadline: 40s")
}

#[test]
fn a_rollout_that_moves_to_another_daemon_goes_back_when_it_fails() {
    let repo = two_folders();
    let pair = DaemonPair::within("moves-bad-two", &repo, &patient());
    move_and_judge(&pair.one, &repo);
}

#[test]
fn a_rollout_that_moves_within_a_daemon_goes_back_when_it_fails() {
    let repo = two_folders();
    let site = TestNamespace::new("moves-bad-one");
    let sources = ["a", "b"].map(|folder| of_folder(&site, &repo, folder, ""));
    let _daemon = site.configured(&with(&patient(), &sources));
    site.await_rollout("web");
    site.await_free_budget();
    move_and_judge(&site, &repo);
}

// To the controller the step is a rollout that is done. Were the canary taken for the last good
// content, going back would bring it to all pods.
#[test]
fn a_held_canary_that_moves_to_another_daemon_goes_back_from_there() {
    let repo = two_folders();
    let text = |image: &str| {
        let steps = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
        Web::of("StatefulSet", "db", image).word(steps).text()
    };
    repo.write("a/db.yaml", &text("app:1"));
    repo.commit("Add a set");
    let pair = DaemonPair::new("moves-canary", &repo);
    let site = &pair.one;
    let shows = |image: &str, ready: u32, updated: u32| {
        let status = |field: &str| site.value("StatefulSet", "db", &format!("/status/{field}"));
        site.value("StatefulSet", "db", IMAGE) == json!(image)
            && status("readyReplicas") == json!(ready)
            && status("updatedReplicas") == json!(updated)
    };
    until("it is there", || shows("app:1", 3, 3));
    repo.write("a/db.yaml", &text("app:2"));
    repo.commit("Try another image");
    until("it is held", || shows("app:2", 3, 1));
    repo.git(&["mv", "a/db.yaml", "b/db.yaml"]);
    repo.commit("Move it");
    await_owner(site, &site.at("StatefulSet", "db"), "b");
    assert!(shows("app:2", 3, 1));
    let source = format!("{}-b", site.name);
    let abort = ["rollout", "abort", "sts/db", "--source", &source];
    let inventory = at("ConfigMap", &site.system(), &source);
    until("it is aborted", || {
        site.rhumb(&abort);
        // An order is answered even where the command has given up before.
        let answers = site.api.value(&inventory, "/data/acknowledged");
        answers.as_str().is_some_and(|answers| answers.contains("goes back"))
    });
    until("it is back", || shows("app:1", 3, 3));
    // The controller keeps what the former source wrote of each template.
    let history = || site.rhumb(&["rollout", "history", "sts/db"]).ends(0);
    history().says(&["Add a set", "in force"]);
    history().says(&["Try another image", "aborted"]);
}

// Deleting the namespace would delete everything in it.
#[test]
fn a_namespace_that_moves_keeps_what_is_in_it() {
    let repo = two_folders();
    let name = "moves-home-team";
    let home = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    let place = format!("  name: inside\n  namespace: {name}\n");
    let inside = yaml::config_map("inside", "key", "one").replace("  name: inside\n", &place);
    repo.write("a/home.yaml", &yaml::documents(&[home, inside]));
    repo.commit("Make a home");
    let pair = DaemonPair::new("moves-home", &repo);
    let objects = [at("Namespace", "", name), at("ConfigMap", name, "inside")];
    for object in &objects {
        await_owner(&pair.one, object, "a");
    }
    let uids = || objects.each_ref().map(|object| pair.one.api.value(object, "/metadata/uid"));
    let (before, window) = (uids(), pair.one.window());
    repo.git(&["mv", "a/home.yaml", "b/home.yaml"]);
    repo.commit("Move the home");
    for object in &objects {
        await_owner(&pair.one, object, "b");
    }
    assert_eq!(uids(), before);
    window.assert_no_deletes();
}

#[test]
fn whoever_drops_an_object_waits_for_the_one_that_has_not_read_as_far() {
    let repo = two_folders();
    let pair = DaemonPair::new("moves-taker-late", &repo);
    let (before, observer, window) = (marks(&pair.one), Observer::new(&pair.one), pair.one.window());
    pair.second.signal("STOP");
    let behind = repo.head();
    let revision = moved(&repo, "a", "b");
    await_recorded(&pair.one, "a", &["Deployment", "source moves-taker-late-b", "may want it", &behind[..7]]);
    await_word(&pair.one, "a", &revision);
    window.assert_no_deletes();
    pair.second.signal("CONT");
    await_moved(&pair.one, "b");
    assert_eq!(marks(&pair.one), before);
    observer.judge(UNTOUCHED);
    window.assert_no_deletes();
}

#[test]
fn whoever_brings_an_object_waits_for_the_one_that_still_has_it() {
    let repo = two_folders();
    let pair = DaemonPair::new("moves-giver-late", &repo);
    let (before, observer) = (marks(&pair.one), Observer::new(&pair.one));
    pair.first.signal("STOP");
    moved(&repo, "a", "b");
    pair.second.says(&["web", "it belongs to source moves-giver-late-a"]);
    pair.first.signal("CONT");
    await_moved(&pair.one, "b");
    assert_eq!(marks(&pair.one), before);
    observer.judge(UNTOUCHED);
}

#[test]
fn what_moves_between_replicas_that_share_their_sources_is_not_deleted() {
    let repo = two_folders();
    let mut one = TestNamespace::new("moves-shared");
    let mut other = one.with_empty_state();
    one.known_as("one");
    other.known_as("other");
    let sources = [of_folder(&one, &repo, "a", ""), of_folder(&one, &repo, "b", "")];
    let text = with(&format!("leases: always\n{BUDGET}"), &sources);
    let both = [one.configured(&text), other.configured(&text)];
    for replica in &both {
        replica.says(&["serves 1 source"]);
    }
    one.await_rollout("web");
    one.await_free_budget();
    let (before, observer) = (marks(&one), Observer::new(&one));
    for (from, to) in [("a", "b"), ("b", "a")] {
        moved(&repo, from, to);
        await_moved(&one, to);
        assert_eq!(marks(&one), before);
    }
    observer.judge(UNTOUCHED);
}

#[test]
fn a_source_that_nobody_serves_keeps_what_it_may_want_and_is_named() {
    let repo = two_folders();
    let mut pair = DaemonPair::new("moves-dead", &repo);
    pair.second.kill();
    let window = pair.one.window();
    repo.remove("a/web.yaml");
    let revision = repo.commit("Drop it");
    await_recorded(&pair.one, "a", &["Deployment", "source moves-dead-b", "may want it"]);
    await_word(&pair.one, "a", &revision);
    window.assert_no_deletes();
    // Somebody says that it is gone for good.
    pair.one.api.delete(&at("ConfigMap", &pair.one.system(), "moves-dead-b"));
    pair.one.await_absence("Deployment", "web");
    pair.one.await_absence("Service", "web");
}

/// Starts two daemons over two repositories. The delay and the spec decide whether the second
/// source takes over what the first one drops.
fn two_repositories(
    name: &str,
    delay: &str,
    spec: &str,
) -> (Repo, Repo, TestNamespace<'static>, Daemon, Daemon) {
    let folder = |folder: &str| {
        (format!("{folder}/own.yaml"), yaml::config_map(&format!("own-{folder}"), "key", "one"))
    };
    let (name_of, text) = config("env", "one");
    let giver = Repo::new(&[folder("a"), (format!("a/{name_of}"), text)]);
    let taker = Repo::new(&[folder("b")]);
    let site = TestNamespace::new(name);
    let other = site.with_empty_state();
    let first =
        site.configured(&with(BUDGET, &[of_folder(&site, &giver, "a", &format!("  pruneDelay: {delay}"))]));
    let second = other.configured(&with(BUDGET, &[of_folder(&site, &taker, "b", spec)]));
    for name in ["own-a", "own-b", "env"] {
        site.await_data(name, "key", "one");
    }
    await_word(&site, "a", &giver.head());
    await_word(&site, "b", &taker.head());
    (giver, taker, site, first, second)
}

#[test]
fn what_moves_to_another_repository_has_a_time_to_be_claimed() {
    let (giver, taker, site, _first, _second) = two_repositories("moves-repositories", "3m", "");
    let uid = site.value("ConfigMap", "env", "/metadata/uid");
    let window = site.window();
    giver.remove("a/env.yaml");
    giver.commit("Drop it");
    await_recorded(&site, "a", &["env", "180 s to take it over"]);
    taker.change("b/env.yaml", &yaml::config_map("env", "key", "two"));
    await_owner(&site, &site.at("ConfigMap", "env"), "b");
    site.await_data("env", "key", "two");
    assert_eq!(site.value("ConfigMap", "env", "/metadata/uid"), uid);
    window.assert_no_deletes();
    // An object that nobody claims goes, after the time of its source.
    taker.remove("b/env.yaml");
    taker.commit("Drop it too");
    site.await_absence("ConfigMap", "env");
}

#[test]
fn what_another_source_wants_and_does_not_take_over_is_kept() {
    let (giver, taker, site, _first, second) = two_repositories("moves-refused", "20s", "  adopt: never");
    let window = site.window();
    taker.change("b/env.yaml", &yaml::config_map("env", "key", "two"));
    second.says(&["env", "refused", "it belongs to source moves-refused-a"]);
    giver.remove("a/env.yaml");
    let revision = giver.commit("Drop it");
    await_recorded(&site, "a", &["env", "source moves-refused-b wants it"]);
    second.says(&["env", "refused", "adopt is `never`"]);
    await_word(&site, "a", &revision);
    assert_eq!(site.data("env", "key"), "one");
    window.assert_no_deletes();
}

#[test]
fn what_moves_to_another_repository_is_not_deleted_before_the_daemon_of_that_one_has_observed_it() {
    let (giver, taker, site, _first, second) = two_repositories("moves-look", "0s", "");
    let uid = site.value("ConfigMap", "env", "/metadata/uid");
    let window = site.window();
    second.signal("STOP");
    giver.remove("a/env.yaml");
    giver.commit("Drop it");
    await_recorded(&site, "a", &["env", "source moves-look-b", "was observed again"]);
    taker.change("b/env.yaml", &yaml::config_map("env", "key", "two"));
    second.signal("CONT");
    await_owner(&site, &site.at("ConfigMap", "env"), "b");
    site.await_data("env", "key", "two");
    assert_eq!(site.value("ConfigMap", "env", "/metadata/uid"), uid);
    window.assert_no_deletes();
}

#[test]
fn what_moves_to_another_repository_stays_while_that_one_cannot_be_read_completely() {
    let (giver, taker, site, _first, _second) = two_repositories("moves-partial", "0s", "");
    let uid = site.value("ConfigMap", "env", "/metadata/uid");
    let window = site.window();
    taker.change("b/env.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env\n");
    let inventory = at("ConfigMap", &site.system(), "moves-partial-b");
    crate::support::eventually("the source says that it is incomplete", SHARED, || {
        let said = site.api.value(&inventory, "/data/handover");
        let text = said.as_str().unwrap_or_default();
        if text.contains("\"complete\":false,\"daemon\":true") { Ok(()) } else { Err(text.to_owned()) }
    });
    giver.remove("a/env.yaml");
    giver.commit("Drop it");
    let why = "source moves-partial-b may want it: it has not been read completely";
    await_recorded(&site, "a", &["env", why]);
    window.assert_no_deletes();
    taker.change("b/env.yaml", &yaml::config_map("env", "key", "two"));
    await_owner(&site, &site.at("ConfigMap", "env"), "b");
    assert_eq!(site.value("ConfigMap", "env", "/metadata/uid"), uid);
    window.assert_no_deletes();
}
