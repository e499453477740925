//! The end: within 5 s of SIGTERM in every phase, whoever hangs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use controlplane::{Fault, FaultProxy, Requests, ResponseCut, Rule, RuleId};
use serde_json::{Value, json};

use crate::service::Manager;
use crate::support::{
    DEFAULT_TIMEOUT, Daemon, Remote, Repo, SHARED, ServerBehavior, TestNamespace, await_shares, shared_name,
    source, until, yaml,
};

/// The time that the documentation promises.
const PROMISED: Duration = Duration::from_secs(5);

/// The time limit on a busy machine. The servers that hang here do so for longer.
const BUSY_LIMIT: Duration = Duration::from_secs(15);

#[track_caller]
fn ends(daemon: &mut Daemon) {
    daemon.signal("TERM");
    assert_eq!(daemon.ended(BUSY_LIMIT).code(), Some(0));
}

/// Ends a daemon that has much to decide. Its processor time is bounded: how long that takes by the
/// clock is a matter of what else runs beside it.
#[track_caller]
fn ends_without_a_long_walk(daemon: &mut Daemon) {
    let before = daemon.processor_time();
    daemon.signal("TERM");
    let taken = daemon.last_processor_time().saturating_sub(before);
    assert_eq!(daemon.ended(BUSY_LIMIT).code(), Some(0));
    assert!(taken <= PROMISED, "{taken:?} of processor time");
}

fn silenced(proxy: &FaultProxy, requests: Requests) -> RuleId {
    proxy.add(Rule::new(requests, Fault::Refuse(ResponseCut::Silence)))
}

fn repo() -> Repo {
    Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))])
}

/// Writes a kubeconfig whose user is what this script says.
fn with_plugin(site: &TestNamespace<'_>, script: &str) -> PathBuf {
    let file = site.state.path().join("plugin.kubeconfig");
    let mut kubeconfig: Value =
        serde_yaml::from_str(&fs::read_to_string(site.kubeconfig()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "/bin/sh", "args": ["-c", script]}});
    fs::write(&file, kubeconfig.to_string()).unwrap();
    file
}

#[test]
fn while_a_credential_plugin_hangs_at_the_start() {
    let (site, manager, shop) = (TestNamespace::new("end-plugin"), Manager::new(), repo());
    let begun = site.state.path().join("begun");
    let kubeconfig = with_plugin(&site, &format!("touch {}; sleep 1000", begun.display()));
    let mut daemon = manager.start_with(&site, &site.configuration(shop.path(), ""), |command| {
        command.arg("--kubeconfig").arg(&kubeconfig);
    });
    until("the plugin runs", || begun.exists());
    ends(&mut daemon);
}

#[test]
fn while_the_api_server_is_silent_at_the_start() {
    let mut site = TestNamespace::new("end-start");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let rule = silenced(&proxy, Requests::any());
    let shop = repo();
    let mut daemon = site.configured(&site.configuration(shop.path(), "leases: always"));
    until("it is asked", || proxy.hits(rule).fired > 0);
    ends(&mut daemon);
}

#[test]
fn while_a_fetch_hangs() {
    let site = TestNamespace::new("end-fetch");
    let shop = repo();
    let remote = Remote::of(&shop);
    remote.set(ServerBehavior::SilentAfterHandshake);
    let mut command: Command = site.command(&["run", &remote.url(), "--ref", "main", "--interval", "1s"]);
    remote.trusted(&mut command);
    let mut daemon = Daemon::start(command);
    until("git asks", || remote.open() > 0);
    ends(&mut daemon);
    until("git has ended", || remote.open() == 0);
}

/// Lets the last credentials expire, after which the plugin gives no others: the Leases run out
/// too.
#[test]
fn while_a_credential_plugin_hangs_later() {
    let mut site = TestNamespace::new("end-later");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let kubeconfig: Value = serde_yaml::from_str(&fs::read_to_string(site.kubeconfig()).unwrap()).unwrap();
    let answer = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {
        "token": kubeconfig["users"][0]["user"]["token"], "expirationTimestamp": "2020-01-01T00:00:00Z"}});
    let (given, begun) = (site.state.path().join("given"), site.state.path().join("begun"));
    fs::write(&given, answer.to_string()).unwrap();
    let script = format!("cat {0} || {{ touch {1}; sleep 1000; }}", given.display(), begun.display());
    let kubeconfig = with_plugin(&site, &script);
    let (manager, shop) = (Manager::new(), repo());
    let mut daemon =
        manager.start_with(&site, &site.configuration(shop.path(), "leases: always"), |command| {
            command.arg("--kubeconfig").arg(&kubeconfig);
        });
    site.await_data("env", "a", "1");
    fs::remove_file(&given).unwrap();
    until("the plugin hangs", || begun.exists());
    ends(&mut daemon);
}

/// The ConfigMaps of one unit: a walk over all of them for each of them would take longer than an
/// end may.
const CONFIGS: usize = 1_500;

/// Returns a workload with this content, and the ConfigMaps that it needs and restarts on.
fn large_unit(content: &str) -> [(&'static str, String); 2] {
    let configs: Vec<(String, &str)> =
        (0..CONFIGS).map(|number| (format!("env-{number:04}"), content)).collect();
    let word = "  name: web\n  annotations: {rhumb.dev/restart-on-change: \"true\"}\nspec:\n";
    let web = yaml::deployment("web", 1, &format!("app:{content}"));
    yaml::unit(&web.replacen("  name: web\nspec:\n", word, 1), &configs)
}

/// The number of objects of the unit that are written as fast as they may be.
const FAST_WRITES: u64 = 50;

/// Slows all writes of the unit's objects but the first ones: the rest of them would take minutes.
fn slow_down(proxy: &FaultProxy) -> RuleId {
    let writes = Requests::any().method("PATCH").path_contains("/configmaps/env-").query_lacks("dryRun");
    let pause = Duration::from_secs(1);
    proxy.add(Rule::new(writes, Fault::Delay(pause, pause)).skip(FAST_WRITES))
}

// It is decided on, and later written.
#[test]
fn in_the_middle_of_a_unit_of_1500_objects() {
    let mut site = TestNamespace::new("end-unit");
    let shop = Repo::new(&large_unit("1"));
    let configuration = site.configuration(shop.path(), "");
    let mut daemon = site.configured(&configuration);
    site.await_rollout_within(DEFAULT_TIMEOUT * 3, "web");
    site.await_free_budget();
    let mark = daemon.mark();
    for (file, text) in large_unit("2") {
        shop.write(file, &text);
    }
    let revision = shop.commit("Change all");
    daemon.says_since(mark, &["read", &revision]);
    ends_without_a_long_walk(&mut daemon);
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let slowed = slow_down(&proxy);
    let mut daemon = site.configured(&configuration);
    until("it is being written", || proxy.hits(slowed).fired > 0);
    ends_without_a_long_walk(&mut daemon);
    let all = site.api.list(&site.at("ConfigMap", ""));
    let changed = all.iter().filter(|config| config["data"]["key"] == "2").count();
    assert!((1..CONFIGS).contains(&changed), "{changed} were written");
}

/// Leaves writes without an answer, and Leases that nobody takes back.
#[test]
fn while_neither_writes_nor_leases_are_answered() {
    let mut site = TestNamespace::new("end-all");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let shop = repo();
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nleases: always\n---\n";
    let mut daemon =
        site.configured(&format!("{head}{}", source(&shared_name(0), &site.name, shop.path(), "")));
    site.await_data("env", "a", "1");
    await_shares(&site, SHARED, &[1]);
    let writes = silenced(&proxy, Requests::any().method("PATCH").path_contains("configmaps/env"));
    shop.change("env.yaml", &yaml::config_map("env", "a", "2"));
    until("a write is on its way", || proxy.hits(writes).fired > 0);
    proxy.clear();
    silenced(&proxy, Requests::any());
    ends(&mut daemon);
    daemon.says(&["expire by themselves"]);
}

/// Returns the requests that write rhumb's own records: inventories with their status, orders and
/// the rollout ledger.
fn record_writes(site: &TestNamespace<'_>) -> Requests {
    let writes = ["POST", "PUT", "PATCH"].into_iter().fold(Requests::any(), Requests::method);
    writes.path_contains(&format!("/namespaces/{}/configmaps", site.system()))
}

/// Answers all but the records that are written last.
#[test]
fn while_the_last_records_are_not_answered() {
    for (name, settings) in [("end-records", ""), ("end-shared", "leases: always")] {
        let mut site = TestNamespace::new(name);
        let proxy = site.cluster.fault_proxy(5).unwrap();
        site.through(&proxy);
        let shop = repo();
        let configuration = site.configuration(shop.path(), settings);
        let mut daemon = site.configured(&configuration);
        site.await_data("env", "a", "1");
        let silent = silenced(&proxy, record_writes(&site));
        shop.change("env.yaml", &yaml::config_map("env", "a", "2"));
        site.await_data("env", "a", "2");
        until("a record is on its way", || proxy.hits(silent).fired > 0);
        ends(&mut daemon);
        // The next one takes them up as they are.
        proxy.clear();
        let mut daemon = site.configured(&configuration);
        shop.change("env.yaml", &yaml::config_map("env", "a", "3"));
        site.await_data_within(SHARED, "env", "a", "3");
        ends(&mut daemon);
    }
}

// The process goes on: only its loop of that source ends.
#[test]
fn of_a_source_that_another_replica_takes_while_its_records_are_not_answered() {
    let mut one = TestNamespace::new("end-lost");
    let mut other = one.with_empty_state();
    one.known_as("one");
    other.known_as("other");
    let proxy = one.cluster.fault_proxy(5).unwrap();
    one.through(&proxy);
    let shop = repo();
    let configuration = one.configuration(shop.path(), "leases: always");
    let mut first = one.configured(&configuration);
    one.await_data("env", "a", "1");
    let silent = silenced(&proxy, record_writes(&one));
    shop.change("env.yaml", &yaml::config_map("env", "a", "2"));
    one.await_data("env", "a", "2");
    until("a record is on its way", || proxy.hits(silent).fired > 0);
    first.signal("STOP");
    let mut second = other.configured(&configuration);
    shop.change("env.yaml", &yaml::config_map("env", "a", "3"));
    one.await_data_within(SHARED, "env", "a", "3");
    let mark = first.mark();
    first.signal("CONT");
    first.says_since(mark, &["lost the Lease of the source"]);
    proxy.clear();
    // It serves the source again, once nobody else does.
    ends(&mut second);
    shop.change("env.yaml", &yaml::config_map("env", "a", "4"));
    one.await_data_within(SHARED, "env", "a", "4");
    ends(&mut first);
}
