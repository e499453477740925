//! What somebody tries who wants more than he may, or who breaks things at the worst moment.

use controlplane::{Fault, Requests, ResponseCut, Rule};
use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Nodes, Repo, TestNamespace, at, eventually, source, until, yaml};

const CONFIGURATION: &str = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n";

fn maps(count: usize) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("c{n:02}.yaml"), yaml::config_map(&format!("c{n:02}"), "a", "1"))).collect()
}

fn with_finalizer(name: &str) -> String {
    yaml::config_map(name, "a", "1").replace("metadata:\n", "metadata:\n  finalizers: [example.org/keep]\n")
}

fn drop_finalizer(site: &TestNamespace<'_>, name: &str) {
    site.api.merge(&site.at("ConfigMap", name), "somebody", &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn a_deletion_that_a_finalizer_holds_is_sent_once_over_two_processes() {
    let site = TestNamespace::new("attack-final");
    let repo = Repo::new(&maps(30));
    repo.write("held.yaml", &with_finalizer("held"));
    repo.change("back.yaml", &with_finalizer("back"));
    let mut daemon = site.daemon(repo.path());
    site.await_data("held", "a", "1");
    site.await_data("back", "a", "1");
    site.await_data("c29", "a", "1");
    let window = site.window();
    repo.remove("held.yaml");
    repo.remove("back.yaml");
    repo.commit("Remove");
    let ends = |name: &str| site.value("ConfigMap", name, "/metadata/deletionTimestamp");
    until("both are being deleted", || ends("held").is_string() && ends("back").is_string());
    daemon.kill();
    let daemon = site.with_empty_state().daemon(repo.path());
    daemon.says(&["settled"]);
    eprintln!("STATUS {}", site.rhumb(&["status"]).all());
    eprintln!("WHY {}", site.rhumb(&["why", "configmap/held"]).all());
    // One is wanted again while it goes: it comes back when it is gone.
    let uid = site.value("ConfigMap", "back", "/metadata/uid");
    repo.change("back.yaml", &yaml::config_map("back", "a", "2"));
    std::thread::sleep(std::time::Duration::from_secs(3));
    drop_finalizer(&site, "back");
    site.await_data("back", "a", "2");
    assert_ne!(site.value("ConfigMap", "back", "/metadata/uid"), uid);
    // The other is made anew by somebody, as it was, under the same name.
    let mut copy = site.get("ConfigMap", "held").unwrap();
    for key in [
        "uid",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
        "managedFields",
        "creationTimestamp",
    ] {
        copy["metadata"].as_object_mut().unwrap().remove(key);
    }
    drop_finalizer(&site, "held");
    site.await_absence("ConfigMap", "held");
    site.api.create(&site.at("ConfigMap", ""), "kubectl-create", &copy);
    let mark = repo.change("c01.yaml", &yaml::config_map("c01", "a", "2"));
    site.await_data("c01", "a", "2");
    daemon.says(&[&mark[..12]]);
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert!(site.has("ConfigMap", "held"), "a copy was pruned");
    eprintln!("STATUS {}", site.rhumb(&["status"]).all());
    let deletes: Vec<String> =
        window.deletes().into_iter().map(|call| format!("{} {}", call.name, call.code)).collect();
    assert_eq!(deletes.len(), 2, "{deletes:?}");
}

/// Two sources of two repositories; after each number of writes the process is killed, while one
/// object goes over.
#[test]
fn a_move_between_two_repositories_keeps_the_object_whenever_the_process_is_killed() {
    for count in 0..5 {
        let name = format!("attack-move-{count}");
        let mut site = TestNamespace::new(&name);
        let direct = site.with_empty_state();
        let one = Repo::new(&maps(12));
        one.change("m.yaml", &yaml::config_map("m", "a", "one"));
        let two = Repo::new(&[("l.yaml", yaml::config_map("l", "a", "1"))]);
        let text = format!(
            "{CONFIGURATION}pruneDelay: 2s\n---\n{}---\n{}",
            source(&format!("{name}-one"), &name, one.path(), ""),
            source(&format!("{name}-two"), &name, two.path(), "")
        );
        let proxy = site.cluster.fault_proxy(1).unwrap();
        site.through(&proxy);
        let mut daemon = site.configured(&text);
        site.await_data("m", "a", "one");
        site.await_data("l", "a", "1");
        site.await_data("c11", "a", "1");
        let uid = site.value("ConfigMap", "m", "/metadata/uid");
        let window = site.window();
        let writes = ["POST", "PUT", "PATCH", "DELETE"]
            .into_iter()
            .fold(Requests::any(), Requests::method)
            .query_lacks("dryRun")
            .path_lacks("/events")
            .path_lacks("/leases");
        if count > 0 {
            proxy.add(Rule::new(writes.clone(), Fault::Pass).times(count));
        }
        proxy.add(Rule::new(writes.clone(), Fault::DropAnswer(ResponseCut::Silence)).times(1));
        proxy.add(Rule::new(writes.clone(), Fault::Refuse(ResponseCut::Silence)));
        one.remove("m.yaml");
        one.commit("Give it away");
        two.change("m.yaml", &yaml::config_map("m", "a", "two"));
        std::thread::sleep(std::time::Duration::from_secs(4));
        daemon.kill();
        let _next = direct.configured(&text);
        direct.await_data_within(DEFAULT_TIMEOUT * 2, "m", "a", "two");
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(direct.value("ConfigMap", "m", "/metadata/uid"), uid, "{name}");
        window.assert_no_deletes();
    }
}

#[test]
fn objects_of_a_group_whose_server_is_away_are_neither_pruned_nor_healthy_and_come_back() {
    let site = TestNamespace::new("attack-group");
    let group = "attack-group.example.org";
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: oxen.{group}}}\nspec:\n  group: {group}\n  \
         names: {{kind: Ox, plural: oxen}}\n  scope: Namespaced\n  versions:\n  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: \
         {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}\n"
    );
    site.cluster.kubectl_in(&["apply", "-f", "-"], &definition).unwrap();
    let ox = |name: &str, size: u32| {
        format!("apiVersion: {group}/v1\nkind: Ox\nmetadata: {{name: {name}}}\nspec: {{size: {size}}}\n")
    };
    let repo = Repo::new(&maps(20));
    for n in 0..4 {
        repo.write(&format!("ox{n}.yaml"), &ox(&format!("ox{n}"), 1));
    }
    repo.commit("Oxen");
    let path = |name: &str| format!("/apis/{group}/v1/namespaces/{}/oxen/{name}", site.name);
    until("the kind is served", || site.cluster.kubectl(&["get", "oxen", "-A"]).is_ok());
    let daemon = site.daemon(repo.path());
    until("the oxen are there", || site.api.get(&path("ox3")).is_some());
    daemon.says(&["settled"]);
    // Its group goes to a server that nobody can reach.
    let service = format!("/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}");
    let away = json!({"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": null}},
        "spec": {"insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nobody", "port": 443}}});
    site.api.merge(&service, "setup", &away);
    until("it is away", || site.cluster.kubectl(&["get", "oxen", "-A"]).is_err());
    let window = site.window();
    repo.remove("ox0.yaml");
    repo.remove("c00.yaml");
    repo.write("ox1.yaml", &ox("ox1", 2));
    repo.change("c01.yaml", &yaml::config_map("c01", "a", "2"));
    site.await_data("c01", "a", "2");
    std::thread::sleep(std::time::Duration::from_secs(20));
    let status = site.rhumb(&["status"]).all();
    eprintln!("STATUS {status}");
    eprintln!("WHY {}", site.rhumb(&["why", "ox/ox2"]).all());
    eprintln!("WHY {}", site.rhumb(&["why", "ox/ox1"]).all());
    eprintln!("LIST {}", site.rhumb(&["prune", "list"]).all());
    window.assert_no_deletes();
    assert!(!status.lines().any(|line| line.trim_end().ends_with(" healthy")), "{status}");
    // A new process knows no more.
    drop(daemon);
    let daemon = site.with_empty_state().daemon(repo.path());
    std::thread::sleep(std::time::Duration::from_secs(10));
    window.assert_no_deletes();
    eprintln!("LOG {}", daemon.log());
    site.api.merge(
        &service,
        "setup",
        &json!({"spec": {"insecureSkipTLSVerify": null, "service": null},
        "metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": "true"}}}),
    );
    until("it is back", || site.cluster.kubectl(&["get", "oxen", "-A"]).is_ok());
    eventually("what was removed goes", DEFAULT_TIMEOUT * 3, || {
        let is_gone = site.api.get(&path("ox0")).is_none() && !site.has("ConfigMap", "c00");
        let size = site.api.value(&path("ox1"), "/spec/size");
        if is_gone && size == json!(2) { Ok(()) } else { Err(format!("{is_gone} {size}")) }
    });
    assert!(site.api.get(&path("ox2")).is_some());
}

const BUDGET: &str = "budget: {soak: 0s, maxUnavailable: 100%}";

fn images(site: &TestNamespace<'_>, image: &str) -> usize {
    let pods = site.api.list(&site.at("Pod", ""));
    let is = |pod: &&Value| {
        pod.pointer("/metadata/deletionTimestamp").is_none()
            && pod["spec"]["containers"][0]["image"] == json!(image)
    };
    pods.iter().filter(is).count()
}

#[test]
fn a_held_step_of_a_stateful_set_stays_at_its_count_when_it_is_scaled() {
    let site = TestNamespace::new("attack-scale-set");
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
    let set = |image: &str, replicas: u32| {
        yaml::workload("StatefulSet", "web", replicas, image, "{}")
            .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{words}}}\nspec"))
    };
    let repo = Repo::new(&[("web.yaml", set("pg:1", 4))]);
    let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    let ready = |count: u32| {
        until("all are ready", || site.value("StatefulSet", "web", "/status/readyReplicas") == json!(count))
    };
    ready(4);
    repo.change("web.yaml", &set("pg:2", 4));
    until("it is held", || {
        site.value("StatefulSet", "web", "/metadata/annotations/rhumb.dev~1overlay")
            == json!("partition=3 step=1")
    });
    until("one is new", || images(&site, "pg:2") == 1);
    ready(4);
    // By git.
    repo.change("web.yaml", &set("pg:2", 9));
    ready(9);
    let shown = |what: &str| {
        std::thread::sleep(std::time::Duration::from_secs(4));
        eprintln!(
            "{what}: new {} old {} overlay {} partition {} {}",
            images(&site, "pg:2"),
            images(&site, "pg:1"),
            site.value("StatefulSet", "web", "/metadata/annotations/rhumb.dev~1overlay"),
            site.value("StatefulSet", "web", "/spec/updateStrategy/rollingUpdate/partition"),
            site.rhumb(&["rollout", "status", "sts/web"]).all()
        );
    };
    shown("up by git");
    let after_git = images(&site, "pg:2");
    repo.change("web.yaml", &set("pg:2", 3));
    ready(3);
    shown("down by git");
    let down = images(&site, "pg:2");
    repo.change("web.yaml", &set("pg:2", 6));
    ready(6);
    shown("up again");
    assert!(
        after_git <= 2 && down <= 1 && images(&site, "pg:2") <= 2,
        "{after_git} {down} {}",
        images(&site, "pg:2")
    );
}

#[test]
fn a_held_step_of_a_daemon_set_stays_at_its_count_when_nodes_come() {
    let site = TestNamespace::new("attack-scale-nodes");
    let nodes = Nodes::new(&site, 3);
    let words = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
    let agent = |image: &str| Nodes::daemon_set(&site, "agent", image, words, "{}");
    let repo = Repo::new(&[("agent.yaml", agent("agent:1"))]);
    let _daemon = site.configured(&site.configuration(repo.path(), "budget: {soak: 0s, maxUnavailable: 1}"));
    until("all run", || site.value("DaemonSet", "agent", "/status/numberReady") == json!(3));
    repo.change("agent.yaml", &agent("agent:2"));
    until("one is new", || images(&site, "agent:2") == 1);
    // Two more nodes.
    for number in 4..6 {
        let taint = json!({"key": "site", "value": site.name, "effect": "NoSchedule"});
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("{}-{number}", site.name), "labels": {"site": site.name}}, "spec": {"taints": [taint]}});
        site.api.create("/api/v1/nodes", "setup", &node);
    }
    until("all run", || site.value("DaemonSet", "agent", "/status/numberReady") == json!(5));
    std::thread::sleep(std::time::Duration::from_secs(6));
    let told = site.rhumb(&["rollout", "status", "ds/agent"]).all();
    eprintln!("new {} old {} {told}", images(&site, "agent:2"), images(&site, "agent:1"));
    // New nodes get the new template from their controller; no old pod may go for them.
    assert_eq!(images(&site, "agent:1"), 2);
    assert_eq!(
        site.value("DaemonSet", "agent", "/metadata/annotations/rhumb.dev~1overlay"),
        json!("on-delete step=1")
    );
    site.rhumb(&["rollout", "promote", "ds/agent"]).ends(0);
    until("all are new", || images(&site, "agent:2") == 5);
    for number in 4..6 {
        site.api.delete(&at("Node", "", &format!("{}-{number}", site.name)));
    }
    drop(nodes);
}

/// Lets an account do in a namespace what a role of the cluster says.
fn grant(site: &TestNamespace<'_>, namespace: &str, account: &str) {
    let name = format!("{}-{account}-{namespace}", site.name);
    let subject = format!("--serviceaccount={}:{account}", site.system());
    site.cluster
        .kubectl(&["-n", namespace, "create", "rolebinding", &name, "--clusterrole=cluster-admin", &subject])
        .unwrap();
}

#[test]
fn objects_wait_for_a_namespace_that_the_source_of_another_account_brings_later() {
    let site = TestNamespace::new("attack-home");
    let home = "attack-home-later";
    let there = |text: String| text.replace("metadata:\n", &format!("metadata:\n  namespace: {home}\n"));
    let apps = Repo::new(&[
        ("env.yaml", there(yaml::config_map("env", "a", "1"))),
        ("web.yaml", there(yaml::deployment("web", 1, "app:1"))),
        ("own.yaml", yaml::config_map("own", "a", "1")),
    ]);
    let homes = Repo::new(&[("rest.yaml", yaml::config_map("rest", "a", "1"))]);
    let text = format!(
        "{CONFIGURATION}resync: 2s\n---\n{}---\n{}",
        source(
            "attack-home-apps",
            &site.name,
            apps.path(),
            &format!("  serviceAccountName: apps\n  allow: {{namespaces: [{home}, {}]}}", site.name)
        ),
        source("attack-home-homes", &site.name, homes.path(), "  serviceAccountName: homes")
    );
    grant(&site, &site.name, "apps");
    let homes_account = format!("--serviceaccount={}:homes", site.system());
    site.cluster
        .kubectl(&[
            "create",
            "clusterrolebinding",
            "attack-home-homes",
            "--clusterrole=cluster-admin",
            &homes_account,
        ])
        .unwrap();
    let mut daemon = site.configured(&text);
    site.await_data("own", "a", "1");
    site.await_data("rest", "a", "1");
    eventually("they wait", DEFAULT_TIMEOUT, || {
        let told = site.rhumb(&["why", "configmap/env", "--namespace", home]).all();
        if told.contains("namespace") { Ok(()) } else { Err(told) }
    });
    std::thread::sleep(std::time::Duration::from_secs(10));
    eprintln!("LOG {}", daemon.log());
    homes.change("home.yaml", &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {home}}}\n"));
    until("the namespace is there", || site.api.get(&at("Namespace", "", home)).is_some());
    // Its account gets its rights there later, too.
    std::thread::sleep(std::time::Duration::from_secs(5));
    grant(&site, home, "apps");
    eventually("they are applied", DEFAULT_TIMEOUT * 2, || {
        let there = site.api.get(&at("ConfigMap", home, "env")).is_some()
            && site.api.get(&at("Deployment", home, "web")).is_some();
        if there { Ok(()) } else { Err(daemon.log()) }
    });
    assert!(daemon.is_running());
    site.api.delete(&at("Namespace", "", home));
}

#[test]
fn a_service_whose_name_another_account_claims_keeps_its_address_and_moves_with_it() {
    let site = TestNamespace::new("attack-service");
    let one =
        Repo::new(&[("web.yaml", yaml::service("web", "web")), ("k.yaml", yaml::config_map("k", "a", "1"))]);
    let two = Repo::new(&[("l.yaml", yaml::config_map("l", "a", "1"))]);
    let spec =
        |account: &str| format!("  serviceAccountName: {account}\n  allow: {{namespaces: [{}]}}", site.name);
    let text = format!(
        "{CONFIGURATION}resync: 2s\npruneDelay: 3s\n---\n{}---\n{}",
        source("attack-service-one", &site.name, one.path(), &spec("first")),
        source("attack-service-two", &site.name, two.path(), &spec("second"))
    );
    grant(&site, &site.name, "first");
    grant(&site, &site.name, "second");
    let daemon = site.configured(&text);
    let shown = site.await_object("Service", "web");
    let address = shown["spec"]["clusterIP"].clone();
    site.await_data("l", "a", "1");
    let window = site.window();
    let mark = daemon.mark();
    two.change("web.yaml", &yaml::service("web", "other"));
    daemon.says_since(mark, &["web"]);
    one.change("k.yaml", &yaml::config_map("k", "a", "2"));
    site.await_data("k", "a", "2");
    one.change("web.yaml", &yaml::service("web", "newer"));
    until("the owner's content", || site.value("Service", "web", "/spec/selector/app") == json!("newer"));
    one.remove("web.yaml");
    one.commit("Give it away");
    eventually("it goes over", DEFAULT_TIMEOUT * 2, || {
        let app = site.value("Service", "web", "/spec/selector/app");
        if app == json!("other") { Ok(()) } else { Err(app.to_string()) }
    });
    assert_eq!(site.value("Service", "web", "/spec/clusterIP"), address);
    assert_eq!(site.value("Service", "web", "/metadata/uid"), shown["metadata"]["uid"]);
    window.assert_no_deletes();
}
