//! The reports of the commands and the log about objects that wait, are left unfinished, or are
//! tried again and again.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, at, eventually, until, yaml};

fn rollout_ledger(site: &TestNamespace<'_>) -> Value {
    site.api.value(&at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev"), "/data/claims")
}

fn three(images: [&str; 3]) -> Vec<(String, String)> {
    let one = |(n, image): (usize, &str)| {
        let name = format!("d{n}");
        let sick = if image == "nginx:sick" { "{controlplane/never-ready: \"true\"}" } else { "{}" };
        (format!("{name}.yaml"), yaml::workload("Deployment", &name, 2, image, sick))
    };
    images.into_iter().enumerate().map(one).collect()
}

fn write(repo: &Repo, files: &[(String, String)]) {
    for (name, text) in files {
        repo.write(name, text);
    }
    repo.commit("Change all");
}

const ONE_AT_A_TIME: &str = "budget: {maxWorkloads: 1, soak: 0s, maxUnavailable: 100%}";

/// Starts a rollout of three workloads of which one may roll at a time, and the first one never
/// ends.
fn two_that_wait(site: &TestNamespace<'_>) -> (Repo, Daemon) {
    let repo = Repo::new(&three(["nginx:1"; 3]));
    let daemon = site.configured(&site.configuration(repo.path(), ONE_AT_A_TIME));
    for name in ["d0", "d1", "d2"] {
        site.await_rollout(name);
    }
    site.await_free_budget();
    write(&repo, &three(["nginx:sick", "nginx:2", "nginx:2"]));
    (repo, daemon)
}

// Its claim stays, as the rollout goes on and the next daemon goes on with it.
#[test]
fn nothing_waits_for_a_daemon_that_was_stopped() {
    let site = TestNamespace::new("told-stop");
    let (repo, mut daemon) = two_that_wait(&site);
    let waiting = "told-stop/deployment.apps/d1: waiting in the rollout queue: 1st of 2";
    eventually("d1 waits", DEFAULT_TIMEOUT, || {
        let status = site.rhumb(&["rollout", "status"]).all();
        if status.contains(waiting) { Ok(()) } else { Err(status) }
    });
    assert!(daemon.stop().success());
    let ledger = rollout_ledger(&site).to_string();
    assert!(!ledger.contains("queue") && ledger.contains("Deployment.apps/told-stop/d0"), "{ledger}");
    let status = site.rhumb(&["rollout", "status"]).ends(1);
    status.says(&["told-stop/deployment.apps/d0: Waiting for deployment"]);
    assert!(!status.all().contains("told-stop/deployment.apps/d1"), "{status:#?}");
    // Rollouts that it had not come to are shown all the same, as it reported them last.
    site.rhumb(&["status"]).ends(0).says(&["told-stop", "1 rolling, 2 waiting"]);
    let why = site.rhumb(&["why", "deploy/d1"]).ends(0);
    why.says(&["phase    Waiting"]);
    why.says(&["reason   last reported by rhumb: 1 of 1 workloads are rolling out"]);
    let _next = site.configured(&site.configuration(repo.path(), ONE_AT_A_TIME));
    eventually("d1 waits again", DEFAULT_TIMEOUT, || {
        let status = site.rhumb(&["rollout", "status"]).all();
        if status.contains(waiting) { Ok(()) } else { Err(status) }
    });
}

#[test]
fn whoever_waits_sees_its_place_and_why() {
    let site = TestNamespace::new("told-queue");
    let (repo, _daemon) = two_that_wait(&site);
    let rolling = "as 1 of 1 workloads are rolling out: Deployment told-queue/d0";
    let place = format!("waiting in the rollout queue: 2nd of 2, {rolling}");
    eventually("d2 sees its place", DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "deploy/d2"]).all();
        if why.contains(&place) { Ok(()) } else { Err(why) }
    });
    site.rhumb(&["why", "deploy/d2"]).ends(0).says(&["phase", "Waiting"]);
    let status = site.rhumb(&["rollout", "status", "deploy/d1"]).ends(1);
    status.says(&["waiting in the rollout queue: 1st of 2", rolling]);
    assert!(!status.all().contains("successfully rolled out"), "{status:#?}");
    let all = site.rhumb(&["rollout", "status"]).ends(1);
    all.says(&["told-queue/deployment.apps/d0: Waiting for deployment"]);
    all.says(&["told-queue/deployment.apps/d1: waiting in the rollout queue: 1st of 2"]);
    // When the last has gone the queue is empty.
    write(&repo, &three(["nginx:2"; 3]));
    for name in ["d0", "d1", "d2"] {
        until("it runs the new image", || {
            site.value("Deployment", name, "/spec/template/spec/containers/0/image") == json!("nginx:2")
        });
        site.await_rollout(name);
    }
    site.await_empty_queue();
    site.rhumb(&["rollout", "status"]).ends(0).says(&["no workload is being rolled out"]);
}

#[test]
fn an_object_that_waits_for_another_says_so() {
    let site = TestNamespace::new("told-wave");
    let late = |image: &str| {
        yaml::deployment("late", 1, image)
            .replace("  name: late\nspec", "  name: late\n  annotations: {rhumb.dev/wave: \"1\"}\nspec")
    };
    let first = |image: &str, pods: &str| yaml::workload("Deployment", "first", 1, image, pods);
    let repo = Repo::new(&[("first.yaml", first("nginx:1", "{}")), ("late.yaml", late("nginx:1"))]);
    let settings = "resync: 1s\nbudget: {soak: 0s}";
    let _daemon = site.configured(&site.configuration(repo.path(), settings));
    site.await_rollout("late");
    site.await_free_budget();
    repo.write("first.yaml", &first("nginx:2", "{controlplane/never-ready: \"true\"}"));
    repo.change("late.yaml", &late("nginx:2"));
    let expected = "waiting: wave 0 is not finished: Deployment told-wave/first";
    eventually("it says what it waits for", DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "deploy/late"]).all();
        if why.contains(expected) { Ok(()) } else { Err(why) }
    });
    eventually("others report it alone", DEFAULT_TIMEOUT, || {
        let ledger = rollout_ledger(&site);
        let ledger: Value = ledger.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        let reasons: Vec<&Value> = ledger["queue"].as_array().into_iter().flatten().collect();
        let is_so = reasons.len() == 1 && reasons[0].to_string().contains("wave 0 is not finished");
        if is_so { Ok(()) } else { Err(ledger) }
    });
    // A fact that does not change is written once: several resyncs later nothing has been written.
    let window = site.window();
    eventually("two resyncs have passed", DEFAULT_TIMEOUT, || {
        let is_read = |event: &&controlplane::AuditEvent| event.verb == "get" && event.name == site.name;
        let reads = window.calls().iter().filter(is_read).count();
        if reads >= 3 { Ok(()) } else { Err(format!("{reads} reads of the inventory")) }
    });
    let writes: Vec<_> =
        window.all_writes().into_iter().filter(|event| event.name == "rollout-budget.rhumb.dev").collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

#[test]
fn why_tells_the_file_and_what_it_asks_for() {
    let site = TestNamespace::new("told-file");
    let both = yaml::documents(&[yaml::config_map("env", "a", "one"), yaml::deployment("web", 1, "nginx:1")]);
    let repo = Repo::new(&[("deploy/web.yaml", both.clone())]);
    site.apply(repo.path(), &["--wait"]).ends(0);
    let path = repo.path().to_str().unwrap();
    let why = site.rhumb(&["why", "deploy/web", path]).ends(0);
    let line = both.lines().position(|line| line == "---").unwrap() + 2;
    why.says(&["file", &format!(" deploy/web.yaml:{line}")]);
    why.says(&["manifest", "as the live object"]);
    // Not committed, as `rhumb diff` reads it, or in a folder of its own.
    repo.write("deploy/web.yaml", &both.replace("nginx:1", "nginx:2"));
    let why = site.rhumb(&["why", "deploy/web", path]).ends(0);
    why.says(&["manifest", "differs in .spec.template.spec.containers"]);
    let why = site.rhumb(&["why", "cm/env", path, "--path", "deploy"]).ends(0);
    why.says(&["file", " web.yaml:1"]);
    why.says(&["manifest", "as the live object"]);
    let why = site.rhumb(&["why", "deploy/web", path, "--ref", "HEAD"]).ends(0);
    why.says(&["manifest", "as the live object"]);
    // A fault of the source is reported, and the cluster answers all the same.
    let why = site.rhumb(&["why", "deploy/web", "/nowhere/at/all"]).ends(2);
    why.says(&["phase", "Settled"]);
    why.says(&["error: /nowhere/at/all: no such file or directory"]);
    repo.write("deploy/web.yaml", &yaml::config_map("other", "a", "one"));
    let why = site.rhumb(&["why", "deploy/web", path]).ends(0);
    why.says(&["file", "SOURCE does not contain it"]);
    site.rhumb(&["why", "deploy/web", "--path", "deploy"])
        .ends(2)
        .says(&["--ref and --path are of a SOURCE"]);
}

#[test]
fn why_names_who_changed_an_object_with_a_source_and_without() {
    let site = TestNamespace::new("told-writer");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    site.apply(repo.path(), &[]).ends(0);
    let why = site.rhumb(&["why", "cm/env"]).ends(0).all();
    assert!(!why.contains("changed"), "{why}");
    site.api.merge(&site.at("ConfigMap", "env"), "kubectl-edit", &json!({"data": {"a": "two"}}));
    let words = "kubectl-edit changed .data.a at 20";
    site.rhumb(&["why", "cm/env"]).ends(0).says(&["  changed  ", words, "since rhumb last wrote it"]);
    let path = repo.path().to_str().unwrap();
    site.rhumb(&["why", "cm/env", path]).ends(0).says(&["  manifest differs in .data.a", words]);
}

#[test]
fn apply_tells_which_steps_it_leaves_unfinished() {
    let site = TestNamespace::new("told-steps");
    let stepped = |image: &str| {
        let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
        yaml::deployment("web", 3, image)
            .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{words}}}\nspec"))
    };
    let folder = Folder::new(&[("web.yaml", stepped("nginx:1"))]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    folder.write("web.yaml", &stepped("nginx:2"));
    let applied = site.apply(folder.path(), &[]).ends(0);
    applied.says(&["unfinished: told-steps/deployment.apps/web: step 1 of 1"]);
    applied.says(&["hint: `rhumb run`", "`rhumb rollout promote told-steps/deployment.apps/web`"]);
    until("its new pod is there", || site.value("Deployment", "web", "/status/updatedReplicas") == json!(1));
    let plan = site.apply(folder.path(), &["-o", "json"]).ends(0).json();
    let reason = plan["objects"][0]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.starts_with("unfinished: step 1 of 1: "), "{plan:#}");
}

#[test]
fn apply_that_waits_leaves_no_claim_behind() {
    let site = TestNamespace::new("told-claims");
    let folder = Folder::new(&[("web.yaml", yaml::deployment("web", 2, "nginx:1"))]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    folder.write("web.yaml", &yaml::deployment("web", 2, "nginx:2"));
    site.apply(folder.path(), &["--wait"]).ends(0);
    let ledger = rollout_ledger(&site);
    let free = ledger.as_str().is_some_and(|ledger| ledger.starts_with(r#"{"claims":[],"units":[]"#));
    assert!(free, "{ledger}");
}

#[test]
fn what_a_live_annotation_leaves_alone_is_no_success_while_it_is_not_healthy() {
    let site = TestNamespace::new("told-disabled");
    let folder = Folder::new(&[("web.yaml", yaml::deployment("web", 1, "nginx:1"))]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    let annotations = json!({"kustomize.toolkit.fluxcd.io/reconcile": "disabled"});
    let containers = json!([{"name": "main", "image": "nginx:broken"}]);
    let change = json!({
        "metadata": {"annotations": annotations},
        "spec": {"strategy": {"type": "Recreate", "rollingUpdate": null},
                 "template": {"spec": {"containers": containers}}},
    });
    site.api.merge(&site.at("Deployment", "web"), "somebody", &change);
    until("it is not healthy", || site.value("Deployment", "web", "/status/unavailableReplicas") == json!(1));
    site.apply(folder.path(), &["--wait=20s"]).ends(5).says(&[
        "deployment.apps/web is not healthy: InProgress",
        "left alone by annotation: kustomize.toolkit.fluxcd.io/reconcile is set on the live object",
    ]);
    // The word of the repository is one about its health too.
    let quiet = yaml::deployment("web", 1, "nginx:1").replacen(
        "  name: web\n",
        "  name: web\n  annotations: {rhumb.dev/reconcile: disabled}\n",
        1,
    );
    folder.write("web.yaml", &quiet);
    site.apply(folder.path(), &["--wait=20s"]).ends(0);
}

#[test]
fn a_namespace_that_is_missing_is_reported_once() {
    let site = TestNamespace::new("told-namespace");
    let text = yaml::config_map("env", "a", "b")
        .replace("  name: env\n", "  name: env\n  namespace: told-nowhere\n");
    let repo = Repo::new(&[("env.yaml", text)]);
    let daemon = site.daemon(repo.path());
    let window = site.window();
    let tries = || {
        let to = |event: &&controlplane::AuditEvent| event.namespace == "told-nowhere" && event.is_write();
        window.calls().iter().filter(to).count()
    };
    eventually("it was tried several times", DEFAULT_TIMEOUT * 2, || {
        let tries = tries();
        if tries >= 3 { Ok(()) } else { Err(format!("{tries} times")) }
    });
    let log = daemon.log();
    let refusals: Vec<&str> = log.lines().filter(|line| line.contains("refused: ")).collect();
    assert_eq!(refusals.len(), 1, "{refusals:#?}");
    assert!(refusals[0].contains("told-nowhere"), "{refusals:#?}");
}

/// Returns the number of lines of a daemon's log whose message begins so.
fn lines(daemon: &crate::support::Daemon, message: &str) -> usize {
    daemon.full_log().lines().filter(|line| line.contains(message)).count()
}

#[test]
fn what_one_process_has_reported_the_next_one_does_not_and_what_it_left_it_does() {
    let site = TestNamespace::new("told-once");
    let names = ["a", "b", "c", "d", "e", "f"];
    let files = names.map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1")));
    let repo = Repo::new(&files);
    let text = site.configuration(repo.path(), "budget: {soak: 0s}");
    let data = |key: &str| {
        let inventory = site.inventory().unwrap_or_default();
        inventory["data"][key].as_str().unwrap_or_default().to_owned()
    };
    let mut first = site.configured(&text);
    first.says(&["settled: revision "]);
    until("that is written down", || data("settled") == repo.head());
    first.kill();
    // A commit that comes while nobody runs, and changes nothing.
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Nothing"]);
    let mut second = site.configured(&text);
    second.says(&["settled: revision ", &repo.head()[..12]]);
    until("that is written down too", || data("settled") == repo.head());
    second.kill();
    let mut third = site.configured(&text);
    third.says(&["read", &repo.head()]);
    for name in ["a.yaml", "b.yaml", "c.yaml"] {
        repo.remove(name);
    }
    repo.commit("Remove three");
    third.says(&["prune waiting: 3 pending deletions (ConfigMap told-once/a: "]);
    until("they are written down", || data("pending-prunes").lines().count() == 3);
    third.kill();
    assert_eq!(lines(&third, "settled: "), 0, "{}", third.full_log());
    let mut fourth = site.configured(&text);
    fourth.says(&["read", &repo.head()]);
    // As many as before, and another one.
    repo.write("a.yaml", &yaml::config_map("a", "a", "1"));
    repo.remove("d.yaml");
    repo.commit("Remove another one");
    fourth.says(&["prune waiting: 3 pending deletions (ConfigMap told-once/d: "]);
    fourth.kill();
    assert_eq!(lines(&fourth, "prune waiting: "), 1, "{}", fourth.full_log());
}

// A source's status is written at most every 5 s; a settled revision is written at once.
#[test]
fn what_was_reported_right_before_the_end_is_not_reported_again() {
    let site = TestNamespace::new("told-end");
    let files = [("a.yaml", yaml::config_map("a", "a", "1")), ("b.yaml", yaml::config_map("b", "b", "1"))];
    let repo = Repo::new(&files);
    let text = site.configuration(repo.path(), "budget: {soak: 0s}");
    let settled = || {
        let inventory = site.inventory().unwrap_or_default();
        inventory["data"]["settled"].as_str().unwrap_or_default().to_owned()
    };
    let mut first = site.configured(&text);
    first.says(&["settled: revision "]);
    until("that is written down", || settled() == repo.head());
    let second = repo.change("a.yaml", &yaml::config_map("a", "a", "2"));
    first.says(&["settled: revision ", &second[..12]]);
    assert!(first.stop().success());
    // An object that is created again meanwhile is as it was.
    site.api.delete(&site.at("ConfigMap", "b"));
    let mut next = site.configured(&text);
    site.await_object("ConfigMap", "b");
    next.says(&["created", "b"]);
    until("it is written down whatever was reported", || settled() == second);
    let third = repo.change("a.yaml", &yaml::config_map("a", "a", "3"));
    next.says(&["settled: revision ", &third[..12]]);
    next.kill();
    assert_eq!(lines(&next, "settled: "), 1, "{}", next.full_log());
    // A revision that comes back is news.
    let mut last = site.configured(&text);
    last.says(&["read", &third]);
    repo.change("a.yaml", &yaml::config_map("a", "a", "4"));
    last.says(&["settled: revision "]);
    let mark = last.mark();
    repo.git(&["reset", "--quiet", "--hard", &third]);
    last.says_since(mark, &["settled: revision ", &third[..12]]);
    last.kill();
}

/// Compares the commands without a daemon: one looks at all objects, the other one at one of them.
#[test]
fn why_says_the_phase_that_status_says() {
    let site = TestNamespace::new("told-phases");
    let words =
        |text: String, words: &str| text.replacen("spec:", &format!("  annotations: {{{words}}}\nspec:"), 1);
    let sick = "{controlplane/never-ready: \"true\"}";
    let folder = Folder::new(&[
        ("web.yaml".to_owned(), yaml::deployment("web", 1, "nginx:1")),
        ("sick.yaml".to_owned(), yaml::workload("Deployment", "sick", 1, "nginx:1", sick)),
        (
            "own.yaml".to_owned(),
            words(yaml::deployment("own", 1, "nginx:1"), "rhumb.dev/paused: \"for a while\""),
        ),
        ("env.yaml".to_owned(), yaml::config_map("env", "a", "b")),
    ]);
    site.apply(folder.path(), &[]).ends(0);
    site.await_rollout("web");
    site.await_rollout("own");
    site.kubectl(&["annotate", "configmap/env", "rhumb.dev/reconcile=disabled"]);
    let expected = [
        ("deployment.apps/web", "Settled"),
        ("deployment.apps/sick", "Progressing"),
        ("deployment.apps/own", "Paused"),
        ("configmap/env", "OptedOut"),
    ];
    for (name, expected) in expected {
        let object = format!("{}/{name}", site.name);
        let status = site.rhumb(&["status", &object, "-o", "json"]).json();
        assert_eq!(status["phase"], json!(expected), "{status}");
        site.rhumb(&["why", &object]).ends(0).says(&[&format!("phase    {expected}")]);
    }
}

#[test]
fn a_status_without_a_daemon_names_the_command_that_ended_or_was_killed() {
    let site = TestNamespace::new("told-killed");
    let folder = Folder::new(&[("web.yaml", yaml::deployment("web", 1, "nginx:1"))]);
    let path = folder.path().to_str().unwrap();
    site.apply(folder.path(), &["--wait"]).ends(0);
    let stuck = "{controlplane/never-ready: \"true\"}";
    folder.write("web.yaml", &yaml::workload("Deployment", "web", 1, "nginx:2", stuck));
    let mut pass = Daemon::start(site.command(&["apply", path, "--wait"]));
    let image = || site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
    until("it rolls out", || image() == json!("nginx:2"));
    let killed = format!("claimed by source told-killed, process {} on ", pass.pid());
    pass.kill();
    let says = |texts: &[&str]| {
        eventually(&format!("{texts:?} is reported"), DEFAULT_TIMEOUT, || {
            let reported = site.rhumb(&["status"]).all();
            if reported.lines().any(|line| texts.iter().all(|text| line.contains(text))) {
                Ok(())
            } else {
                Err(reported)
            }
        });
    };
    says(&["RollingOut", &killed, ", which has ended"]);
    // The next one ends by itself, and says how it left things.
    site.apply(folder.path(), &["--wait=2s"]);
    says(&["source told-killed: reported 20", "by `rhumb apply` (process ", ", which has ended"]);
}
