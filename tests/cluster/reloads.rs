//! New configurations in the middle of things: what a source leaves behind that goes, and finds
//! when it comes again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::customs::{HEAD, await_condition, custom, own};
use crate::service::{Manager, configuration, repo, write};
use crate::support::{
    DEFAULT_TIMEOUT, DedicatedCluster, Nodes, Repo, TestNamespace, at, eventually, source, until, yaml,
};

/// Claims of whoever is gone count until their workloads have rested for two minutes.
const RECLAIMED: Duration = Duration::from_mins(4);

#[test]
fn a_source_that_goes_in_the_middle_of_its_rollout_leaves_nothing_taken_and_goes_on_when_it_comes_again() {
    let site = TestNamespace::new("reload-gone");
    let manager = Manager::new();
    let names = ["a", "b"];
    let files = |image: &str| {
        let delay = if image == "app:1" { "{}" } else { "{controlplane/ready-delay: 10s}" };
        names.map(|name| (format!("{name}.yaml"), yaml::workload("Deployment", name, 2, image, delay)))
    };
    let (shop, ops) =
        (Repo::new(&files("app:1")), Repo::new(&[("c.yaml", yaml::deployment("c", 1, "app:1"))]));
    let settings = "leases: always\nbudget: {maxWorkloads: 1, maxUnavailable: 100%, soak: 1s}";
    let both = configuration(&site, settings, &[("reload-gone-shop", &shop), ("reload-gone-ops", &ops)]);
    let mut daemon = manager.start(&site, &both);
    for name in names {
        site.await_rollout(name);
    }
    site.await_rollout("c");
    site.await_free_budget();
    for (file, text) in files("app:2") {
        shop.write(&file, &text);
    }
    shop.write("more.yaml", &yaml::config_map("more", "a", "1"));
    shop.commit("Change all");
    let image = |name: &str| site.value("Deployment", name, "/spec/template/spec/containers/0/image");
    let newer = || names.iter().filter(|name| image(name) == "app:2").count();
    eventually("one rolls", DEFAULT_TIMEOUT, || if newer() == 1 { Ok(()) } else { Err("none does") });
    let window = site.window();
    write(&site, &configuration(&site, settings, &[("reload-gone-ops", &ops)]));
    let mark = daemon.mark();
    daemon.signal("HUP");
    daemon.says_since(mark, &["the source reload-gone-shop is gone; its objects stay as they are"]);
    let lease = at("Lease", &site.system(), "rhumb-reload-gone-shop");
    eventually("nobody holds its Lease", DEFAULT_TIMEOUT, || {
        let holder = site.api.value(&lease, "/spec/holderIdentity");
        if holder.as_str().is_none_or(str::is_empty) { Ok(()) } else { Err(holder.to_string()) }
    });
    // A rollout goes on by itself, nothing else of the source begins, and others have the budget
    // after a while.
    ops.change("c.yaml", &yaml::deployment("c", 1, "app:2"));
    eventually("another source rolls", RECLAIMED, || {
        let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
        if image("c") == "app:2" { Ok(()) } else { Err(site.api.value(&budget, "/data").to_string()) }
    });
    assert_eq!(newer(), 1);
    window.assert_no_deletes();
    assert!(site.inventory_of("reload-gone-shop").is_some());
    // It goes on where it was.
    write(&site, &both);
    daemon.signal("HUP");
    eventually("all have the newer image", RECLAIMED, || {
        if newer() == names.len() { Ok(()) } else { Err("not all") }
    });
    for name in names {
        site.await_rollout(name);
    }
    site.await_data("more", "a", "1");
    site.await_free_budget();
    window.assert_no_deletes();
    assert_eq!(site.api.list(&site.at("ReplicaSet", "")).len(), 2 * (names.len() + 1));
    assert_eq!(daemon.stop().code(), Some(0));
}

// The file's sources count, whatever is in the cluster.
#[test]
fn a_name_that_the_file_takes_and_gives_back_loses_and_doubles_nothing() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let both = |text: &str| ("both.yaml", yaml::config_map("both", "a", text));
    let theirs = Repo::new(&[("own.yaml", yaml::config_map("theirs", "a", "1")), both("theirs")]);
    let ours = Repo::new(&[("ours.yaml", yaml::config_map("ours", "a", "1")), both("ours")]);
    let with = format!("{HEAD}---\n{}", source("taken", &site.name, ours.path(), ""));
    let mut daemon = site.configured(HEAD);
    let spec = json!({"git": {"url": theirs.path()}, "namespace": site.name});
    site.api.create(&at("Source", &site.system(), ""), "people", &custom("taken", &spec));
    site.await_data("theirs", "a", "1");
    site.await_data("both", "a", "theirs");
    await_condition(&site, "taken", "Ready", &["True"]);
    let uid = |name: &str| site.value("ConfigMap", name, "/metadata/uid");
    let (inventory, before) =
        (site.inventory_of("taken").unwrap()["metadata"]["uid"].clone(), [uid("theirs"), uid("both")]);
    let window = site.window();
    for turn in ["1", "2"] {
        write(&site, &with);
        daemon.signal("HUP");
        site.await_data("both", "a", "ours");
        site.await_data("ours", "a", "1");
        await_condition(&site, "taken", "Stalled", &["True NameTaken"]);
        write(&site, HEAD);
        daemon.signal("HUP");
        site.await_data("both", "a", "theirs");
        theirs.change("more.yaml", &yaml::config_map("more", "a", turn));
        site.await_data("more", "a", turn);
        await_condition(&site, "taken", "Ready", &["True"]);
    }
    window.assert_no_deletes();
    assert!(site.has("ConfigMap", "ours"));
    assert_eq!([uid("theirs"), uid("both")], before);
    assert_eq!(site.inventory_of("taken").unwrap()["metadata"]["uid"], inventory);
    assert!(window.to("configmaps", "theirs").is_empty());
    assert_eq!(
        site.api.list(&at("ConfigMap", &site.system(), "")).iter().filter(|object| is_parent(object)).count(),
        1
    );
    assert_eq!(daemon.stop().code(), Some(0));
}

fn is_parent(object: &Value) -> bool {
    object["metadata"]["labels"]["applyset.kubernetes.io/id"].is_string()
}

#[test]
fn the_manager_hears_once_for_each_configuration_that_it_is_up() {
    let site = TestNamespace::new("reload-many");
    let manager = Manager::new();
    let repos: Vec<(String, Repo)> =
        (0..20).map(|number| (format!("reload-many-{number}"), repo(&format!("m{number}")))).collect();
    let text = |count: usize| {
        let sources: Vec<(&str, &Repo)> =
            repos.iter().take(count).map(|(name, repo)| (&**name, repo)).collect();
        configuration(&site, "", &sources)
    };
    let mut daemon = manager.start(&site, &text(18));
    let mut heard = manager.hears_all(&["READY=1"]);
    for count in [19, 19, 20, 17, 20] {
        write(&site, &text(count));
        daemon.signal("HUP");
        heard.extend(manager.hears_all(&["RELOADING=1"]));
        heard.extend(manager.hears_all(&["READY=1"]));
    }
    for (number, _) in repos.iter().enumerate() {
        site.await_data(&format!("m{number}"), "a", "1");
    }
    daemon.signal("TERM");
    heard.extend(manager.hears_all(&["STOPPING=1"]));
    assert_eq!(daemon.ended(DEFAULT_TIMEOUT).code(), Some(0));
    let count = |text: &str| heard.iter().filter(|message| message.contains(text)).count();
    assert_eq!((count("READY=1"), count("RELOADING=1")), (6, 5), "{heard:#?}");
}

/// Writes each line as JSON, those about a new configuration too.
#[test]
fn what_is_wrong_with_a_new_configuration_is_said_in_json_where_the_log_is() {
    let site = TestNamespace::new("reload-json");
    let manager = Manager::new();
    let shop = repo("env");
    let good = site.configuration(shop.path(), "");
    let mut daemon = manager.start_with(&site, &good, |command| {
        command.args(["--log-format", "json"]);
    });
    site.await_data("env", "a", "1");
    write(&site, &good.replace("git:", "gti:"));
    daemon.signal("HUP");
    manager.hears(&["READY=1", "STATUS=new configuration refused: "]);
    daemon.says(&["what was in force stays in force"]);
    assert_eq!(daemon.stop().code(), Some(0));
    let log = daemon.full_log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said =
        |line: &&Value| line["message"].as_str().is_some_and(|text| text.contains("unknown key `gti`"));
    assert_eq!(lines.iter().filter(said).count(), 1, "{log}");
}

/// Returns the number of claims in the ledger's text for the workload of this name.
fn claims_of(ledger: &str, name: &str) -> usize {
    let ledger: Value = serde_json::from_str(ledger).unwrap();
    let claims = ledger["claims"].as_array().into_iter().flatten();
    let objects = claims.map(|claim| claim["object"].as_str().unwrap_or_default());
    objects.filter(|object| object.ends_with(&format!("/{name}"))).count()
}

#[test]
fn a_workload_whose_source_goes_at_a_step_is_named_with_the_command_that_lets_it_go() {
    let site = TestNamespace::new("reload-held");
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
    let web = |image: &str| {
        yaml::workload("Deployment", "web", 2, image, "{}")
            .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{words}}}\nspec"))
    };
    let (shop, ops) = (Repo::new(&[("web.yaml", web("app:1"))]), repo("ops"));
    let settings = "budget: {soak: 0s, maxUnavailable: 100%}";
    let both = configuration(&site, settings, &[("reload-held-shop", &shop), ("reload-held-ops", &ops)]);
    let daemon = site.configured(&both);
    site.await_rollout("web");
    shop.change("web.yaml", &web("app:2"));
    let overlay = || site.value("Deployment", "web", "/metadata/annotations/rhumb.dev~1overlay");
    until("it is at its step", || overlay() == json!("surge=1 step=1"));
    write(&site, &configuration(&site, settings, &[("reload-held-ops", &ops)]));
    let mark = daemon.mark();
    daemon.signal("HUP");
    let command = "kubectl -n reload-held patch deployment web --type=merge";
    daemon.says_since(mark, &["reload-held/deployment.apps/web stays at step 1", command]);
}

/// Checks that the steps of both are where they were. Nothing is written anew, nothing is evicted,
/// and neither has two claims.
#[test]
fn a_new_configuration_in_the_middle_of_steps_keeps_them() {
    let site = TestNamespace::new("reload-steps");
    let nodes = Nodes::new(&site, 2);
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
    let web = |image: &str| {
        yaml::workload("Deployment", "web", 3, image, "{}")
            .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{words}}}\nspec"))
    };
    let files = |image: &str| {
        [("web.yaml", web(image)), ("agent.yaml", Nodes::daemon_set(&site, "agent", image, words, "{}"))]
    };
    let shop = Repo::new(&files("app:1"));
    let settings = "leases: always\nbudget: {soak: 0s, maxWorkloads: 2, maxUnavailable: 100%}";
    let mut daemon = site.configured(&site.configuration(shop.path(), settings));
    site.await_rollout("web");
    let ready = || site.value("DaemonSet", "agent", "/status/numberReady");
    eventually("both nodes are ready", DEFAULT_TIMEOUT, || match ready() {
        count if count == json!(nodes.names.len()) => Ok(()),
        other => Err(other.to_string()),
    });
    for (file, text) in files("app:2") {
        shop.write(file, &text);
    }
    shop.commit("Change both");
    let overlay = |kind: &str, name: &str| {
        let shown = site.value(kind, name, "/metadata/annotations/rhumb.dev~1overlay");
        shown.as_str().unwrap_or_default().to_owned()
    };
    let overlays = || [overlay("Deployment", "web"), overlay("DaemonSet", "agent")];
    let newer = || {
        let pods = site.api.list(&site.at("Pod", ""));
        let image = |pod: &&Value| pod["spec"]["containers"][0]["image"] == "app:2";
        pods.iter().filter(image).count()
    };
    let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
    let claims = || site.api.value(&budget, "/data/claims").as_str().unwrap_or_default().to_owned();
    let at_step = ["surge=1 step=1", "on-delete step=1"];
    eventually("both are at their step", DEFAULT_TIMEOUT, || {
        if overlays() == at_step && newer() == 2 {
            Ok(())
        } else {
            Err(format!("{:?}, {}", overlays(), newer()))
        }
    });
    let claimed = |name: &str| claims_of(&claims(), name);
    let window = site.window();
    for turn in ["2h", "3h"] {
        write(&site, &site.configuration(shop.path(), &format!("{settings}\nresync: {turn}")));
        let mark = daemon.mark();
        daemon.signal("HUP");
        daemon.says_since(mark, &["new configuration: "]);
        shop.change("more.yaml", &yaml::config_map("more", "a", turn));
        site.await_data("more", "a", turn);
        assert_eq!((overlays(), newer()), (at_step.map(str::to_owned), 2));
        // One whose step waits for a person may have given its claim back.
        assert!(claimed("web") <= 1 && claimed("agent") <= 1, "{}", claims());
    }
    let evicted = window.writes().into_iter().filter(|event| event.resource.starts_with("pods")).count();
    let written = [window.to("deployments", "web").len(), window.to("daemonsets", "agent").len(), evicted];
    assert_eq!(written, [0, 0, 0], "{:#?}", window.writes());
    for name in ["deploy/web", "ds/agent"] {
        site.rhumb(&["rollout", "promote", name]).ends(0);
    }
    eventually("both go on to their end", DEFAULT_TIMEOUT, || {
        if overlays() == ["", ""] && newer() == 5 {
            Ok(())
        } else {
            Err(format!("{:?}, {}", overlays(), newer()))
        }
    });
    site.await_free_budget();
    assert_eq!(daemon.stop().code(), Some(0));
}
