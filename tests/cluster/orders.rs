//! The orders of people on the command line, while rhumb runs and while it does not.

use controlplane::AuditEvent;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, until, yaml};

/// Returns a Deployment that uses the `ConfigMap` env.
fn web(image: &str, annotations: &str) -> String {
    let text = yaml::workload("Deployment", "web", 2, image, annotations);
    format!("{text}        envFrom: [{{configMapRef: {{name: env}}}}]\n")
}

/// Returns a repository whose first commit has both.
fn first() -> Repo {
    Repo::new(&[("web.yaml", web("nginx:1", "{}")), ("env.yaml", yaml::config_map("env", "a", "one"))])
}

/// Commits a change of both.
fn second(repo: &Repo) -> String {
    repo.write("env.yaml", &yaml::config_map("env", "a", "two"));
    repo.change("web.yaml", &web("nginx:2", "{}"))
}

fn daemon(site: &TestNamespace<'_>, repo: &Repo) -> Daemon {
    site.configured(&site.configuration(repo.path(), "budget: {soak: 0s, deadline: 20s}"))
}

#[track_caller]
fn await_image(site: &TestNamespace<'_>, image: &str) {
    eventually(&format!("web runs {image}"), DEFAULT_TIMEOUT, || {
        match site.value("Deployment", "web", "/spec/template/spec/containers/0/image") {
            shown if shown == json!(image) => Ok(()),
            shown => Err(shown),
        }
    });
}

#[track_caller]
fn at_rest(site: &TestNamespace<'_>, image: &str) {
    await_image(site, image);
    site.await_rollout("web");
    site.await_free_budget();
}

fn short(commit: &str) -> &str {
    &commit[..12]
}

#[test]
fn an_undo_takes_back_what_came_together_and_stays_until_the_content_changes() {
    let site = TestNamespace::new("orders-undo");
    let repo = first();
    let old = repo.head();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    let new = second(&repo);
    at_rest(&site, "nginx:2");
    let undone = format!(
        "undone: revision {} of Deployment orders-undo/web (2 objects) goes back to {}",
        short(&new),
        short(&old)
    );
    site.rhumb(&["rollout", "undo", "deploy/web"]).ends(0).says(&[&undone]);
    at_rest(&site, "nginx:1");
    site.await_data("env", "a", "one");
    // A commit that has nothing to do with it changes nothing about it.
    repo.change("other.yaml", &yaml::config_map("other", "a", "b"));
    site.await_object("ConfigMap", "other");
    let why = site.rhumb(&["why", "deployment/web"]).ends(0);
    why.says(&["phase", "RolledBack"]);
    why.says(&["; it stays at the content before until the content changes in git"]);
    why.says(&["brought by revision", &old]);
    let back = format!("it is back at revision {}, which a dry run does not read", short(&old));
    site.diff(repo.path(), &[]).says(&["undone by", &back]);
    let author = repo.git(&["log", "-1", "--format=%an"]);
    let history = site.rhumb(&["rollout", "history", "deploy/web"]).ends(0).all();
    let line = history.lines().find(|line| line.contains(short(&new))).unwrap_or(&history);
    for part in [author.trim(), "Change web.yaml", "undone by"] {
        assert!(line.contains(part), "{part:?} in {history}");
    }
    // The first revision only made it, and is known all the same.
    let line = history.lines().find(|line| line.contains(short(&old))).unwrap_or(&history);
    for part in [author.trim(), "in force"] {
        assert!(line.contains(part), "{part:?} in {history}");
    }
    assert_eq!(site.data("env", "a"), "one");
    // Another content ends it.
    repo.change("web.yaml", &web("nginx:3", "{}"));
    at_rest(&site, "nginx:3");
    site.await_data("env", "a", "two");
    // By the beginning of its name any commit can be gone back to, and a retry takes that back.
    let run = site.rhumb(&["rollout", "undo", "deploy/web", "--to-revision", &old[..8]]);
    run.ends(0).says(&["goes back to", short(&old)]);
    at_rest(&site, "nginx:1");
    site.rhumb(&["rollout", "retry", "deploy/web"]).ends(0).says(&["retried: "]);
    at_rest(&site, "nginx:3");
}

#[test]
fn a_failed_rollout_is_tried_again_when_a_person_says_so() {
    let site = TestNamespace::new("orders-retry");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    repo.change("web.yaml", &web("nginx:broken", "{}"));
    await_image(&site, "nginx:broken");
    at_rest(&site, "nginx:1");
    site.rhumb(&["why", "deploy/web"]).ends(0).says(&["failed", "nginx:broken"]);
    site.rhumb(&["rollout", "retry", "deploy/web"]).ends(0).says(&["retried: 1 object"]);
    await_image(&site, "nginx:broken");
    at_rest(&site, "nginx:1");
}

#[test]
fn an_abort_takes_a_rollout_back_in_the_middle() {
    let site = TestNamespace::new("orders-abort");
    let repo = first();
    let configuration = site.configuration(repo.path(), "budget: {soak: 0s}");
    let _daemon = site.configured(&configuration);
    at_rest(&site, "nginx:1");
    let bad = repo.change("web.yaml", &web("nginx:2", "{controlplane/never-ready: \"true\"}"));
    await_image(&site, "nginx:2");
    let status = site.rhumb(&["rollout", "status", "deploy/web"]).ends(1);
    status.says(&["Waiting for deployment"]);
    site.rhumb(&["rollout", "status"]).ends(1).says(&["orders-abort/deployment.apps/web: Waiting"]);
    let aborted = format!("aborted: revision {}", short(&bad));
    site.rhumb(&["rollout", "abort", "deploy/web"]).ends(0).says(&[&aborted]);
    at_rest(&site, "nginx:1");
    let expected = "nothing to abort: no rollout of Deployment orders-abort/web is under way";
    site.rhumb(&["rollout", "abort", "deploy/web"]).ends(1).says(&[expected]);
    let status = site.rhumb(&["rollout", "status", "deploy/web", "--watch"]).ends(0);
    status.says(&["deployment \"web\" successfully rolled out"]);
    status.says(&["rollout budget: 0 workloads"]);
    status.says(&["aborted by"]);
}

#[test]
fn what_is_paused_is_repaired_and_gets_nothing_new() {
    let site = TestNamespace::new("orders-pause");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    let run = site.rhumb(&["rollout", "pause", "deploy/web", "--reason", "a long  weekend"]);
    run.ends(0).says(&["paused: Deployment orders-pause/web"]);
    repo.write("other.yaml", &yaml::config_map("other", "a", "b"));
    repo.change("web.yaml", &web("nginx:2", "{}"));
    site.await_object("ConfigMap", "other");
    site.rhumb(&["why", "deploy/web"]).ends(0).says(&["it is paused: a long weekend"]);
    let containers = json!([{"name": "main", "image": "nginx:foreign"}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    site.api.merge(&site.at("Deployment", "web"), "somebody", &change);
    at_rest(&site, "nginx:1");
    site.rhumb(&["rollout", "resume", "deploy/web"]).ends(0).says(&["resumed: Deployment"]);
    at_rest(&site, "nginx:2");
    // An annotation has no way to the terminal of its readers.
    let hostile = "1 because\n  phase    Settled\u{1b}]0;title\u{7}";
    let change = json!({"metadata": {"annotations": {"rhumb.dev/paused": hostile}}});
    site.api.merge(&site.at("Deployment", "web"), "somebody", &change);
    for command in [&["why", "deploy/web"][..], &["rollout", "status", "deploy/web"]] {
        let explained = site.rhumb(command).ends(0);
        explained.says(&["it is paused: because phase Settled\u{fffd}]0;title\u{fffd}"]);
    }
    site.rhumb(&["rollout", "resume", "deploy/web"]).ends(0);
    // All of the source at once.
    let source = site.name.clone();
    site.rhumb(&["rollout", "pause", &source]).ends(0).says(&["paused: source orders-pause"]);
    repo.write("other.yaml", &yaml::config_map("other", "a", "c"));
    repo.change("web.yaml", &web("nginx:3", "{}"));
    eventually("what the source has news for is reported to be paused", DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "cm/other"]).ends(0).all();
        let is_paused = why.contains("phase    Paused") && why.contains("source orders-pause is paused");
        if is_paused { Ok(()) } else { Err(why) }
    });
    assert_eq!(site.data("other", "a"), "b", "it is not released meanwhile");
    at_rest(&site, "nginx:2");
    let named = format!("source/{source}");
    site.rhumb(&["rollout", "resume", &named]).ends(0).says(&["resumed: source orders-pause"]);
    at_rest(&site, "nginx:3");
    site.await_data("other", "a", "c");
    let run = site.rhumb(&["rollout", "resume", &source]);
    run.ends(1).says(&["nothing to do: source orders-pause is not paused"]);
}

#[test]
fn a_hold_ends_by_itself() {
    let site = TestNamespace::new("orders-hold");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    let run = site.rhumb(&["hold", "cm/env", "--for", "4s", "--reason", "trying something"]);
    run.ends(0).says(&["held: ConfigMap orders-hold/env until"]);
    let hold = site.value("ConfigMap", "env", "/metadata/annotations/rhumb.dev~1hold");
    let end: Timestamp = hold.as_str().unwrap().split([' ', '=']).nth(2).unwrap().parse().unwrap();
    let change = json!({"data": {"a": "tried"}});
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &change);
    site.await_data("env", "a", "one");
    assert!(Timestamp::now() >= end, "it was repaired before {end}");
    // And earlier where a person ends it.
    site.rhumb(&["hold", "cm/env", "--for", "2h", "--reason", "again"]).ends(0);
    site.rhumb(&["why", "cm/env"]).ends(0).says(&["on hold until", "again"]);
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &change);
    let released = site.rhumb(&["release", "cm/env"]).ends(0).all();
    assert!(released.lines().any(|line| line == "released: ConfigMap orders-hold/env"), "{released}");
    site.await_data("env", "a", "one");
    let run = site.rhumb(&["release", "cm/env"]);
    run.ends(1).says(&["nothing to do: ConfigMap orders-hold/env is not on hold"]);
}

#[test]
fn an_order_with_nothing_to_do_says_so() {
    let site = TestNamespace::new("orders-idle");
    let repo = first();
    let commit = repo.head();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    let window = site.window();
    let says = |order: &[&str], expected: &str| {
        let command = [&["rollout"], order, &["deploy/web"]].concat();
        site.rhumb(&command).ends(1).says(&[expected]);
    };
    says(&["retry"], "nothing to retry: nothing of Deployment orders-idle/web was rejected");
    says(&["abort"], "nothing to abort: no rollout of Deployment orders-idle/web is under way");
    let alone = format!("nothing to undo: revision {}, which brought it, has none before it", short(&commit));
    says(&["undo"], &alone);
    says(&["undo", "--to-revision", "0123abcd"], "nothing to undo: no revision is called 0123abcd");
    says(&["undo", "--to-revision", "main"], "nothing to undo: no revision is called main");
    let own = "is in revision";
    says(&["undo", "--to-revision", &commit], own);
    let run = site.rhumb(&["rollout", "abort", "deploy/nobody"]);
    run.ends(2).says(&["there is no Deployment orders-idle/nobody"]);
    // Nobody has written to it.
    let wrote = window.to("deployments", "web");
    assert_eq!(wrote.len(), 0, "{wrote:#?}");
}

#[test]
fn what_is_ordered_while_nobody_runs_is_carried_out_later() {
    let site = TestNamespace::new("orders-later");
    let repo = first();
    let mut running = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    second(&repo);
    at_rest(&site, "nginx:2");
    site.await_empty_queue();
    running.stop();
    let expected = "rhumb has not acknowledged it within 10 s";
    site.rhumb(&["rollout", "undo", "deploy/web"]).ends(5).says(&[expected]);
    site.rhumb(&["rollout", "status", "deploy/web"]).ends(0).says(&["successfully rolled out"]);
    site.rhumb(&["rollout", "status"]).ends(0).says(&["no workload is being rolled out"]);
    site.rhumb(&["why", "deploy/web"]).ends(0).says(&["phase", "Settled"]);
    site.rhumb(&["rollout", "history", "deploy/web"]).ends(0).says(&["in force"]);
    let _running = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    site.await_data("env", "a", "one");
}

#[test]
fn a_restart_is_the_users_own_and_stays() {
    let site = TestNamespace::new("orders-restart");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    site.rhumb(&["rollout", "restart", "deploy/web"]).ends(0).says(&["restarted: Deployment"]);
    until("its pods were replaced", || {
        site.value("Deployment", "web", "/metadata/annotations/deployment.kubernetes.io~1revision")
            == json!("2")
    });
    at_rest(&site, "nginx:1");
    let at = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
    assert!(site.value("Deployment", "web", at).is_string());
    let fields = site.value("Deployment", "web", "/metadata/managedFields");
    let manager = |name: &str| fields.as_array().unwrap().iter().any(|entry| entry["manager"] == name);
    assert!(manager("rhumb-cli") && manager("rhumb"), "{fields:#}");
}

#[test]
fn whoever_may_not_order_is_informed() {
    let mut site = TestNamespace::new("orders-rights");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    site.limited();
    let run = site.rhumb(&["rollout", "undo", "deploy/web"]).ends(3);
    run.says(&["error: Deployment orders-rights/web", "cannot get resource \"deployments\""]);
    run.says(&["hint: check the user's roles"]);
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    ]);
    grant(&site, &rules);
    let run = site.rhumb(&["rollout", "undo", "deploy/web"]).ends(3);
    let object = "ConfigMap orders-rights-rhumb/orders.orders-rights.rhumb.dev";
    run.says(&["error:", object, "cannot patch resource \"configmaps\""]);
    run.says(&[
        "hint: the rights to `get` and `patch`",
        object,
        "allow to give orders to source orders-rights",
    ]);
    site.rhumb(&["why", "deploy/web"]).ends(0).says(&["phase", "Settled"]);
}

/// Returns the orders object of a source.
pub(crate) fn orders_of(site: &TestNamespace<'_>, source: &str) -> String {
    at("ConfigMap", &site.system(), &format!("orders.{source}.rhumb.dev"))
}

// Rights over every ConfigMap of an application's namespace give no order.
#[test]
fn an_order_on_an_object_does_nothing_and_is_reported() {
    let site = TestNamespace::new("orders-misplaced");
    let repo = first();
    let old = repo.head();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    second(&repo);
    at_rest(&site, "nginx:2");
    let order = json!({"metadata": {"annotations": {"rhumb.dev/order": format!("c1 undo {old}")}}});
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &order);
    eventually("it is reported", DEFAULT_TIMEOUT, || {
        let events = site.api.list(&format!("/api/v1/namespaces/{}/events", site.name));
        let is_refusal = |event: &Value| {
            event["reason"] == "OrderIgnored"
                && event["type"] == "Warning"
                && event["involvedObject"]["name"] == "env"
        };
        if events.iter().any(is_refusal) { Ok(()) } else { Err(format!("{events:?}")) }
    });
    assert_eq!(site.data("env", "a"), "two");
    assert_eq!(site.value("Deployment", "web", "/spec/template/spec/containers/0/image"), json!("nginx:2"));
    assert_eq!(site.inventory().unwrap().pointer("/data/rejected"), None);
}

/// Grants a team the right to the orders object of one source by its name, and to no other one in
/// that namespace.
#[test]
fn who_may_order_what_becomes_of_one_source_may_not_of_another() {
    let mut site = TestNamespace::new("orders-team");
    let (mine, theirs) = (first(), Repo::new(&[("theirs.yaml", yaml::config_map("theirs", "a", "one"))]));
    let other = crate::support::source("orders-other", "orders-team", theirs.path(), "");
    let configuration = site.configuration(mine.path(), "budget: {soak: 0s}");
    let daemon = site.configured(&format!("{configuration}---\n{other}"));
    at_rest(&site, "nginx:1");
    let new = second(&mine);
    at_rest(&site, "nginx:2");
    theirs.change("theirs.yaml", &yaml::config_map("theirs", "a", "two"));
    site.await_data("theirs", "a", "two");
    for source in ["orders-team", "orders-other"] {
        until("its orders object is made", || site.api.get(&orders_of(&site, source)).is_some());
    }
    site.limited();
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["get", "list"]},
        // Rights to read what there is of the other source give no order for it.
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
         "resourceNames": ["theirs", "orders-other"]},
    ]);
    grant(&site, &rules);
    grant_printed_role(&site, "orders-team");
    // Without the right to list all sources that of the object is named: the runs here do that by
    // --source.
    let run = site.rhumb(&["rollout", "undo", "deploy/web"]).ends(0);
    let undone = ["undone: revision", short(&new), &format!("(ordered by {})", site.user)];
    run.says(&undone);
    daemon.says(&[&["INFO order: "], &undone[..], &["object=Deployment orders-team/web"]].concat());
    eventually("an Event tells it", DEFAULT_TIMEOUT, || {
        let events = site.api.list(&site.at("Event", ""));
        let is_told = |event: &Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == "OrderDone" && undone.iter().all(|text| message.contains(text))
        };
        if events.iter().any(is_told) { Ok(()) } else { Err(format!("{events:#?}")) }
    });
    at_rest(&site, "nginx:1");
    let why = site.rhumb(&["why", "deploy/web"]).ends(0);
    why.says(&[&format!("undone by {}", site.user)]);
    let history = site.rhumb(&["rollout", "history", "deploy/web"]).ends(0);
    history.says(&["undone: revision", &format!("(ordered by {})", site.user)]);
    // An order that is done leaves the object.
    let data = || site.api.value(&orders_of(&site, "orders-team"), "/data");
    until("the order is taken out", || data().as_object().is_none_or(serde_json::Map::is_empty));
    // The other source's objects neither by its own orders object nor by this one.
    let mut command = site.bare_command();
    command.args(["rollout", "undo", "cm/theirs", "--source", "orders-other", "-n", "orders-team"]);
    let run = crate::support::run(command).ends(3);
    run.says(&["error:", "orders.orders-other.rhumb.dev", "cannot patch resource \"configmaps\""]);
    let order = json!({"verb": "undo", "object": "ConfigMap/orders-team/theirs"}).to_string();
    site.api.merge(&orders_of(&site, "orders-team"), "somebody", &json!({"data": {"1-a": order}}));
    let expected = "1-a nothing was done: ConfigMap orders-team/theirs is no object of source orders-team";
    eventually("it is refused", DEFAULT_TIMEOUT, || {
        let said = site.inventory().unwrap()["data"]["acknowledged"].as_str().unwrap_or_default().to_owned();
        if said.contains(expected) { Ok(()) } else { Err(said) }
    });
    assert_eq!(site.data("theirs", "a"), "two");
}

// A push to a branch must not decide which revision runs, whoever gives the order.
#[test]
fn an_undo_leads_to_nothing_that_was_never_followed() {
    let site = TestNamespace::new("orders-unmerged");
    let repo = first();
    let old = repo.head();
    let branch = repo.git(&["symbolic-ref", "--short", "HEAD"]).trim().to_owned();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    repo.write("web.yaml", &web("nginx:evil", "{}"));
    let evil = repo.git(&["stash", "create"]).trim().to_owned();
    repo.git(&["branch", "evil", &evil]);
    repo.git(&["checkout", "-q", "web.yaml"]);
    second(&repo);
    at_rest(&site, "nginx:2");
    let run = site.rhumb(&["rollout", "undo", "deploy/web", "--to-revision", &evil]);
    run.ends(1).says(&[
        "nothing to undo: revision",
        short(&evil),
        "was never in force here and is no ancestor of",
    ]);
    // A revision that was in force may be gone back to, wherever the branch is now.
    let orphan = repo.git(&["commit-tree", "-m", "Begin anew", "HEAD^{tree}"]).trim().to_owned();
    repo.git(&["update-ref", &format!("refs/heads/{branch}"), &orphan]);
    repo.change("other.yaml", &yaml::config_map("other", "a", "b"));
    site.await_object("ConfigMap", "other");
    let run = site.rhumb(&["rollout", "undo", "deploy/web", "--to-revision", &old]);
    run.ends(0).says(&["undone: ", short(&old)]);
    at_rest(&site, "nginx:1");
}

/// Fills the orders object: that holds up nothing, and its orders are carried out all the same.
#[test]
fn a_flood_of_tokens_stops_nothing() {
    let site = TestNamespace::new("orders-flood");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    let orders = orders_of(&site, "orders-flood");
    until("its orders object is made", || site.api.get(&orders).is_some());
    let mut data = serde_json::Map::new();
    for number in 0..4 {
        data.insert(format!("0-{number}"), json!("x".repeat(240_000)));
    }
    let order = json!({"verb": "abort", "object": "ConfigMap/orders-flood/env"}).to_string();
    data.extend((0..150).map(|number| (format!("1-{number:03}"), json!(order))));
    site.api.merge(&orders, "somebody", &json!({"data": data}));
    let long = format!("{} undo", "t".repeat(240_000));
    let annotations = json!({"rhumb.dev/order": long});
    site.api.merge(
        &site.at("ConfigMap", "env"),
        "somebody",
        &json!({"metadata": {"annotations": annotations}}),
    );
    let paused = json!({"rhumb.dev/order": null, "rhumb.dev/paused": "t".repeat(240_000)});
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"metadata": {"annotations": paused}}));
    let left = || site.api.value(&orders, "/data").to_string().len();
    eventually("all of it is taken out", DEFAULT_TIMEOUT, || if left() < 10 { Ok(()) } else { Err(left()) });
    let acknowledged =
        || site.inventory().unwrap()["data"]["acknowledged"].as_str().unwrap_or_default().to_owned();
    eventually("the pause is taken note of", DEFAULT_TIMEOUT, || {
        if acknowledged().contains("paused: ConfigMap") { Ok(()) } else { Err(acknowledged()) }
    });
    assert!(acknowledged().len() < 100_000, "{}", acknowledged().len());
    site.rhumb(&["rollout", "resume", "cm/env"]).ends(0);
    second(&repo);
    at_rest(&site, "nginx:2");
    site.rhumb(&["rollout", "undo", "deploy/web"]).ends(0).says(&["undone: "]);
    at_rest(&site, "nginx:1");
}

/// Lets the user of the place do something everywhere.
pub(crate) fn grant(site: &TestNamespace<'_>, rules: &serde_json::Value) {
    let api = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": site.user}, "rules": rules,
    });
    site.api.create(&format!("{api}/clusterroles"), "setup", &role);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": site.user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": site.user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": site.user}],
    });
    site.api.create(&format!("{api}/clusterrolebindings"), "setup", &binding);
    await_granted(site, &rules[0]);
}

/// Waits until the server, which hears of roles and bindings a moment later, grants the user of the
/// place what a rule says.
#[track_caller]
fn await_granted(site: &TestNamespace<'_>, rule: &Value) {
    let first = |key: &str| rule[key][0].as_str().unwrap_or_default();
    let asked = json!({
        "group": first("apiGroups"), "resource": first("resources"), "verb": first("verbs"),
        "name": first("resourceNames"), "namespace": site.system(),
    });
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": site.user, "resourceAttributes": asked},
    });
    eventually("what was granted counts", DEFAULT_TIMEOUT, || {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let status = site.api.create(path, "setup", &review)["status"].clone();
        if status["allowed"] == json!(true) { Ok(()) } else { Err(status) }
    });
}

/// Lets the user of the place give the orders of a source by the Role that docs/security.md prints,
/// and by nothing else.
pub(crate) fn grant_printed_role(site: &TestNamespace<'_>, source: &str) {
    let page = include_str!("../../docs/security.md");
    let (_, role) = page.split_once("```yaml\nkind: Role\n").unwrap();
    let (role, _) = role.split_once("```").unwrap();
    let role = role.replace("shop", source).replace("rhumb-system", &site.system());
    let role: Value = serde_yaml::from_str(&format!("kind: Role\n{role}")).unwrap();
    let name = role["metadata"]["name"].as_str().unwrap();
    assert_eq!(role["metadata"]["namespace"], json!(site.system()));
    assert_eq!(name, format!("{source}-orders"));
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", site.system());
    site.api.create(&format!("{roles}/roles"), "setup", &role);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": site.user}],
    });
    site.api.create(&format!("{roles}/rolebindings"), "setup", &binding);
    await_granted(site, &role["rules"][0]);
}

// A user who may give the orders of one source reaches no other one.
#[test]
fn orders_that_are_made_to_look_like_an_inventory_hold_back_no_deletion() {
    let site = TestNamespace::new("orders-disguised");
    let one = Repo::new(&[("one.yaml", yaml::config_map("one", "key", "one"))]);
    let files = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let files = files.map(|name| (format!("{name}.yaml"), yaml::config_map(name, "key", "other")));
    let other = Repo::new(&files);
    let sources = [("orders-one", &one), ("orders-other", &other)];
    let text = sources.map(|(name, repo)| crate::support::source(name, &site.name, repo.path(), ""));
    let _daemon = site.configured(&text.join("---\n"));
    site.await_data("one", "key", "one");
    site.await_data("a", "key", "other");
    let orders = orders_of(&site, "orders-one");
    eventually("the orders object is there", DEFAULT_TIMEOUT, || site.api.get(&orders).ok_or("it is not"));
    let disguise = json!({"metadata": {
        "labels": {"applyset.kubernetes.io/id": "x"},
        "annotations": {"applyset.kubernetes.io/tooling": "rhumb/v1"},
    }});
    site.api.merge(&orders, "somebody", &disguise);
    other.remove("a.yaml");
    other.commit("remove a");
    site.await_absence("ConfigMap", "a");
}

// Each request for an observation has all daemons read all inventories.
#[test]
fn orders_that_are_made_to_look_like_a_request_for_an_observation_have_nothing_read() {
    let site = TestNamespace::new("orders-asking");
    let repo = first();
    let _daemon = daemon(&site, &repo);
    at_rest(&site, "nginx:1");
    let orders = orders_of(&site, "orders-asking");
    until("its orders object is made", || site.api.get(&orders).is_some());
    let window = site.window();
    for number in 0..20 {
        let asking = json!({"metadata": {"labels": {"rhumb.dev/look-request": format!("r{number}")}},
            "data": {"0-a": "no order"}});
        site.api.merge(&orders, "somebody", &asking);
        until("what is no order is taken out", || site.api.value(&orders, "/data/0-a").is_null());
    }
    let is_list = |event: &AuditEvent| {
        event.verb == "list" && event.resource == "configmaps" && event.namespace == site.system()
    };
    let lists = window.calls().into_iter().filter(is_list).count();
    assert!(lists < 10, "{lists} lists of inventories");
}
