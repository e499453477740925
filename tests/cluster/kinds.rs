//! Kinds and namespaces that come with the commit, come later, or never come.

use std::time::Duration;

use controlplane::{Answer, Fault, Requests, Rule};
use serde_json::json;

use crate::support::{
    DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, at, eventually, source, until, yaml,
};

/// Returns a definition of a namespaced kind `<Word>` in the group `<site>.example.org`.
fn definition(site: &TestNamespace<'_>, word: &str, short: &str) -> String {
    let (group, plural, kind) = (group(site), format!("{word}s"), kind(word));
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  names: {{kind: {kind}, plural: {plural}, singular: {word}, shortNames: [{short}]}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{size: {{type: integer}}}}}}
"
    )
}

fn group(site: &TestNamespace<'_>) -> String {
    format!("{}.example.org", site.name)
}

fn kind(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

fn custom(site: &TestNamespace<'_>, word: &str, name: &str, amount: &str) -> String {
    format!(
        "apiVersion: {}/v1\nkind: {}\nmetadata: {{name: {name}}}\nspec: {{size: {amount}}}\n",
        group(site),
        kind(word)
    )
}

fn path(site: &TestNamespace<'_>, word: &str, name: &str) -> String {
    format!("/apis/{}/v1/namespaces/{}/{word}s/{name}", group(site), site.name)
}

#[test]
fn a_definition_and_its_objects_come_in_one_commit_whatever_the_order_of_files() {
    let site = TestNamespace::new("crd-apply");
    let folder = Folder::new(&[
        ("a-object.yaml", custom(&site, "widget", "one", "1")),
        ("b-definition.yaml", definition(&site, "widget", "wdg")),
        ("c-object.yaml", custom(&site, "widget", "two", "2")),
    ]);
    site.diff(folder.path(), &[])
        .ends(1)
        .says(&["not checked by the API server yet, as the definition of Widget is applied first"]);
    site.apply(folder.path(), &[]).ends(0);
    assert_eq!(site.api.value(&path(&site, "widget", "one"), "/spec/size"), json!(1));
    assert_eq!(site.api.value(&path(&site, "widget", "two"), "/spec/size"), json!(2));
    let window = site.window();
    site.with_empty_state().apply(folder.path(), &[]).ends(0);
    window.assert_silent();
}

#[test]
fn the_daemon_brings_a_definition_and_its_objects_and_repairs_them() {
    let site = TestNamespace::new("crd-run");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "b"))]);
    let _daemon = site.daemon(repo.path());
    site.await_data("env", "a", "b");
    repo.write("a-object.yaml", &custom(&site, "widget", "one", "1"));
    repo.change("b-definition.yaml", &definition(&site, "widget", "wdr"));
    until("the object is there", || site.api.get(&path(&site, "widget", "one")).is_some());
    site.api.merge(&path(&site, "widget", "one"), "somebody", &json!({"spec": {"size": 9}}));
    until("it is repaired", || site.api.value(&path(&site, "widget", "one"), "/spec/size") == json!(1));
    repo.change("a-object.yaml", &custom(&site, "widget", "one", "wide"));
    repo.change("c-object.yaml", &custom(&site, "widget", "two", "2"));
    until("the good one is there", || site.api.get(&path(&site, "widget", "two")).is_some());
    assert_eq!(site.api.value(&path(&site, "widget", "one"), "/spec/size"), json!(1));
}

#[test]
fn the_objects_of_a_definition_that_is_never_established_wait_with_the_reason() {
    let site = TestNamespace::new("crd-never");
    // Its short name is another definition's, so the server does not accept its names.
    let taken = Folder::new(&[("taken.yaml", definition(&site, "gadget", "taken"))]);
    let mut command = site.bare_command();
    command.args(["apply", "--wait", "--source", "crd-never-other"]).arg(taken.path());
    assert_eq!(crate::support::run(command).code, 0);
    let folder = Folder::new(&[
        ("definition.yaml", definition(&site, "gizmo", "taken")),
        ("object.yaml", custom(&site, "gizmo", "one", "1")),
        ("env.yaml", yaml::config_map("env", "a", "b")),
    ]);
    let apply = site.apply(folder.path(), &[]).ends(1);
    apply.says(&["one", "waiting", "the server has no kind"]);
    assert_eq!(site.data("env", "a"), "b");
    let conflict = "\"taken\" is already in use";
    let definition = format!("customresourcedefinition.apiextensions.k8s.io/gizmos.{}", group(&site));
    site.apply(folder.path(), &["--wait=20s"]).ends(1).says(&[&definition, "is not healthy", conflict]);
}

#[test]
fn an_object_of_an_unknown_kind_waits_and_comes_when_its_kind_does() {
    let site = TestNamespace::new("crd-later");
    let repo = Repo::new(&[
        ("object.yaml", custom(&site, "widget", "one", "1")),
        ("env.yaml", yaml::config_map("env", "a", "b")),
    ]);
    let apply = site.apply(repo.path(), &[]).ends(1);
    apply.says(&["one", "waiting", "the server has no kind"]);
    site.diff(repo.path(), &[]).ends(1).says(&["waits", "the server has no kind"]);
    let _daemon = site.daemon(repo.path());
    site.await_data("env", "a", "b");
    let other = Folder::new(&[("definition.yaml", definition(&site, "widget", "wdl"))]);
    let mut command = site.bare_command();
    command.args(["apply", "--wait", "--source", "crd-later-other"]).arg(other.path());
    assert_eq!(crate::support::run(command).code, 0);
    eventually("the object is there", DEFAULT_TIMEOUT * 2, || {
        site.api.get(&path(&site, "widget", "one")).ok_or("it is not")
    });
}

#[test]
fn an_object_in_a_version_that_is_not_served_waits_and_the_served_ones_are_named() {
    let site = TestNamespace::new("version");
    let old = yaml::deployment("web", 1, "nginx:1").replace("apps/v1", "apps/v1beta1");
    let folder = Folder::new(&[("web.yaml", old)]);
    site.apply(folder.path(), &[]).ends(1).says(&["web", "the server has no kind", "it has v1"]);
}

#[test]
fn namespaces_come_first() {
    let site = TestNamespace::without_namespace(crate::support::shared(), "namespace-first");
    let folder = Folder::new(&[
        ("a.yaml", yaml::config_map("a", "key", "one")),
        ("web.yaml", yaml::deployment("web", 1, "nginx:1")),
        ("z.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: namespace-first}\n".to_owned()),
    ]);
    let window = site.window();
    let diff = site.diff(folder.path(), &[]).ends(1);
    diff.says(&["+ Deployment namespace-first/web", "starts 1 pod"]);
    diff.says(&[
        "2 objects: not checked by the API server yet, as the namespace namespace-first is created first",
    ]);
    assert_eq!(diff.stdout.matches("created first").count(), 1, "{diff:#?}");
    site.apply(folder.path(), &[]).ends(0);
    let writes = window.writes();
    assert_eq!(writes.len(), 3, "{writes:#?}");
    assert_eq!(writes[0].resource, "namespaces");
    assert!(writes.iter().all(|write| write.code < 400), "{writes:#?}");
}

#[test]
fn objects_in_a_namespace_that_nobody_made_wait_for_it() {
    let site = TestNamespace::without_namespace(crate::support::shared(), "namespace-later");
    let elsewhere =
        yaml::config_map("there", "key", "one").replace("  name:", "  namespace: default\n  name:");
    let repo = Repo::new(&[
        ("a.yaml", yaml::config_map("a", "key", "one")),
        ("there.yaml", elsewhere.replace("there", "namespace-later-there")),
    ]);
    let apply = site.apply(repo.path(), &[]).ends(1);
    apply.says(&["configmap/a", "namespace", "namespace-later"]);
    let there = at("ConfigMap", "default", "namespace-later-there");
    assert_eq!(site.api.value(&there, "/data/key"), json!("one"));
    let _daemon = site.daemon(repo.path());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.name}});
    site.api.create("/api/v1/namespaces", "setup", &namespace);
    site.await_data("a", "key", "one");
    site.api.delete(&there);
}

#[test]
fn waves_go_one_after_the_other_and_a_sick_one_holds_up_the_next() {
    let site = TestNamespace::new("waves");
    let waved = |name: &str, wave: i32| {
        let line = format!("  name: {name}\n  annotations: {{rhumb.dev/wave: \"{wave}\"}}\n");
        yaml::config_map(name, "key", "one").replace(&format!("  name: {name}\n"), &line)
    };
    let sick = yaml::workload("Deployment", "sick", 1, "nginx:1", "{controlplane/never-ready: \"true\"}")
        .replace("  name: sick\nspec", "  name: sick\n  annotations: {rhumb.dev/wave: \"1\"}\nspec");
    let folder = Folder::new(&[
        ("a.yaml", waved("third", 2)),
        ("b.yaml", waved("second", 1)),
        ("c.yaml", waved("first", -1)),
        ("d.yaml", sick),
    ]);
    let window = site.window();
    let apply = site.apply(folder.path(), &["--wait=20s"]);
    apply.says(&["configmap/third", "waiting", "wave 1 is not finished"]);
    assert!(site.has("ConfigMap", "second") && !site.has("ConfigMap", "third"));
    let names: Vec<String> = window.writes().into_iter().map(|event| event.name).collect();
    assert_eq!(names[0], "first", "{names:?}");
}

#[test]
fn what_depends_on_a_workload_waits_until_it_is_healthy() {
    let site = TestNamespace::new("depends-on");
    let after = yaml::config_map("after", "key", "one").replace(
        "  name: after\n",
        "  name: after\n  annotations: {rhumb.dev/depends-on: \"apps/namespaces/depends-on/Deployment/web\"}\n",
    );
    let folder = Folder::new(&[
        ("after.yaml", after),
        ("web.yaml", yaml::workload("Deployment", "web", 1, "nginx:1", "{controlplane/ready-delay: 2s}")),
    ]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    let created =
        |kind: &str, name: &str, pointer: &str| site.value(kind, name, pointer).as_str().unwrap().to_owned();
    let pods = site.api.list(&site.at("Pod", ""));
    let conditions = pods[0]["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    let after = created("ConfigMap", "after", "/metadata/creationTimestamp");
    assert!(after.as_str() >= ready["lastTransitionTime"].as_str().unwrap(), "{after} {ready}");
}

/// Returns an autoscaler of a workload that is not there.
fn scaler(name: &str, version: &str, target: &str) -> String {
    format!(
        "apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}\n  maxReplicas: 3\n"
    )
}

#[test]
fn two_versions_of_one_kind_are_watched_once() {
    let mut site = TestNamespace::new("two-versions");
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let repo = Repo::new(&[("one.yaml", scaler("one", "v1", "a")), ("two.yaml", scaler("two", "v2", "b"))]);
    let _daemon = site.daemon(repo.path());
    let paths = ["one", "two"].map(|name| site.at("HorizontalPodAutoscaler", name));
    let most = |path: &str| site.api.value(path, "/spec/maxReplicas");
    for path in &paths {
        until("it is there", || most(path) == json!(3));
    }
    // Each further kind is a reason to look through all that are wanted.
    let watches = Requests::any().watches().path_suffix("/horizontalpodautoscalers");
    // Objects may be there before what was listed is watched.
    until("they are watched", || proxy.open(&watches) == 1);
    let counted = proxy.add(Rule::new(watches.clone(), Fault::Delay(Duration::ZERO, Duration::ZERO)));
    repo.change("env.yaml", &yaml::config_map("env", "a", "1"));
    site.await_data("env", "a", "1");
    repo.change("web.yaml", &yaml::service("web", "web"));
    site.await_object("Service", "web");
    assert_eq!(proxy.remove(counted).fired, 0, "it was watched anew");
    assert_eq!(proxy.open(&watches), 1);
    // Both are defended, and both can go.
    for path in &paths {
        site.api.merge(path, "somebody", &json!({"spec": {"maxReplicas": 9}}));
        until("it is repaired", || most(path) == json!(3));
    }
    repo.remove("two.yaml");
    repo.commit("Remove one");
    site.await_absence("HorizontalPodAutoscaler", "two");
    assert!(site.has("HorizontalPodAutoscaler", "one"));
}

#[test]
fn a_source_that_is_only_observed_says_so_of_kinds_that_come_later() {
    let site = TestNamespace::new("kinds-observed");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, source(&site.name, &site.name, repo.path(), "  observe: true")).unwrap();
    let mut command = site.bare_command();
    command.args(["run", "-v", "--config"]).arg(file);
    let daemon = Daemon::start(command);
    daemon.says(&["ConfigMap kinds-observed/env", "observe: true"]);
    let window = site.window();
    repo.change("web.yaml", &yaml::service("web", "web"));
    daemon.says(&["Service kinds-observed/web", "observe: true"]);
    window.assert_silent();
}

#[test]
fn a_kind_that_is_not_there_keeps_a_source_from_pruning_and_that_is_reported_once() {
    let site = TestNamespace::new("kinds-unserved");
    let repo = Repo::new(&[
        ("odd.yaml", custom(&site, "widget", "one", "1")),
        ("two.yaml", custom(&site, "widget", "two", "2")),
        ("a.yaml", yaml::config_map("a", "a", "1")),
        ("b.yaml", yaml::config_map("b", "a", "1")),
        ("c.yaml", yaml::config_map("c", "a", "1")),
    ]);
    let daemon = site.daemon(repo.path());
    let kind = format!("Widget.{}", group(&site));
    let words = format!("nothing is pruned while {kind} cannot be listed: the server has no such kind");
    daemon.says(&["WARN", &words, "install its definition, or remove its manifests"]);
    site.await_data("c", "a", "1");
    repo.remove("a.yaml");
    repo.change("b.yaml", &yaml::config_map("b", "a", "2"));
    site.await_data("b", "a", "2");
    let listed = || {
        let listed = site.rhumb(&["prune", "list"]).ends(0);
        if listed.stderr.contains(&words) { Ok(listed) } else { Err(listed.all()) }
    };
    eventually("the inventory tells it", DEFAULT_TIMEOUT, listed).says(&["note: since 2", &words]);
    // A command that looks once asks at once whether the kind is there at all.
    let diff = site.diff(repo.path(), &[]).ends(1);
    diff.says(&["- ConfigMap kinds-unserved/a"]);
    assert!(!diff.all().contains(&words), "{diff:#?}");
    assert!(site.has("ConfigMap", "a"));
    assert_eq!(daemon.log().matches(&words).count(), 1, "{}", daemon.log());
    // Nobody has to know: as soon as the kind can be listed, what was removed goes.
    let definition = definition(&site, "widget", "wdu");
    site.cluster.kubectl_in(&["apply", "--server-side", "-f", "-"], &definition).unwrap();
    site.await_absence("ConfigMap", "a");
    until("the inventory tells nothing any more", || {
        site.inventory().is_some_and(|inventory| inventory["data"]["prune-closed"].is_null())
    });
}

#[test]
fn a_kind_that_is_gone_for_good_is_let_go_of_and_one_whose_server_is_down_is_not() {
    let site = TestNamespace::new("kinds-gone");
    let maps = ["a", "b", "c", "d"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1")));
    let repo = Repo::new(&maps);
    repo.write("definition.yaml", &definition(&site, "widget", "wdl"));
    repo.change("object.yaml", &custom(&site, "widget", "one", "1"));
    site.apply(repo.path(), &["--ref", "HEAD"]).ends(0);
    let down = TestNamespace::new("kinds-down");
    let other = Repo::new(&maps);
    down.apply(other.path(), &["--ref", "HEAD"]).ends(0);
    // The one kind goes with its definition, the other is that of a server that nobody can reach.
    let crd = at("CustomResourceDefinition", "", &format!("widgets.{}", group(&site)));
    site.api.delete(&crd);
    until("the definition is gone", || site.api.get(&crd).is_none());
    let group = "down.example.org";
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nobody"}}});
    site.api.create("/apis/apiregistration.k8s.io/v1/apiservices", "setup", &service);
    let kinds = "applyset.kubernetes.io/contains-group-kinds";
    let named = json!({"metadata": {"annotations": {kinds: format!("ConfigMap,Thing.{group}")}}});
    site.api.merge(&at("ConfigMap", &down.system(), &down.name), "somebody", &named);
    for repo in [&repo, &other] {
        for name in ["definition.yaml", "object.yaml", "a.yaml"] {
            let _ = std::fs::remove_file(repo.path().join(name));
        }
        repo.commit("Remove");
    }
    let (daemon, blind) = (site.daemon(repo.path()), down.daemon(other.path()));
    let words = format!("nothing is pruned while Widget.{} cannot be listed", self::group(&site));
    daemon.says(&["WARN", &words, "bring its definition back"]);
    blind.says(&[
        "WARN",
        &format!("nothing is pruned while Thing.{group} cannot be listed"),
        "delete its APIService",
    ]);
    let probe = || if site.has("ConfigMap", "a") { Err("it is there") } else { Ok(()) };
    eventually("what was removed is pruned", DEFAULT_TIMEOUT * 3, probe);
    until("the inventory names the kind no longer", || {
        site.inventory()
            .is_some_and(|inventory| inventory["metadata"]["annotations"][kinds] == json!("ConfigMap"))
    });
    assert!(down.has("ConfigMap", "a"), "{}", blind.log());
    assert!(!blind.log().contains("does not have this kind"), "{}", blind.log());
    site.api.delete(&format!("/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}"));
}

#[test]
fn a_kind_that_never_was_there_does_not_keep_a_pass_from_pruning() {
    let site = TestNamespace::new("kinds-never");
    let folder =
        Folder::new(&["a", "b"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1"))));
    folder.write("odd.yaml", &custom(&site, "widget", "one", "1"));
    site.apply(folder.path(), &["--prune"]).ends(1).says(&["widget", "the server has no kind"]);
    let kinds = "/metadata/annotations/applyset.kubernetes.io~1contains-group-kinds";
    let named = || site.inventory().unwrap().pointer(kinds).cloned();
    assert_eq!(named(), Some(json!(format!("ConfigMap,Widget.{}", group(&site)))));
    folder.remove("odd.yaml");
    folder.remove("a.yaml");
    let diff = site.diff(folder.path(), &[]).ends(1);
    diff.says(&["- ConfigMap kinds-never/a"]);
    assert!(!diff.all().contains("nothing is pruned"), "{diff:#?}");
    site.apply(folder.path(), &["--prune"]).ends(0).says(&["configmap/a", "pruned"]);
    assert!(!site.has("ConfigMap", "a") && site.has("ConfigMap", "b"));
    assert_eq!(named(), Some(json!("ConfigMap")));
}

/// Runs the command as it is shown.
#[test]
fn a_kind_that_a_person_knows_to_be_gone_is_let_go_of_by_the_command_that_is_shown() {
    let mut site = TestNamespace::new("kinds-let-go");
    let repo = Repo::new(&["a", "b"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1"))));
    site.apply(repo.path(), &["--ref", "HEAD"]).ends(0);
    let kinds = "applyset.kubernetes.io/contains-group-kinds";
    let named = json!({"metadata": {"annotations": {kinds: "ConfigMap,Gone.example.org,Service"}}});
    site.api.merge(&at("ConfigMap", &site.system(), &site.name), "somebody", &named);
    // Without the list of definitions rhumb itself can never be sure.
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let definitions = Requests::any().path_contains("/customresourcedefinitions");
    proxy.add(Rule::new(definitions, Fault::Replace(Answer::error(403, "Forbidden"))));
    repo.remove("a.yaml");
    repo.commit("Remove one");
    let daemon = site.daemon(repo.path());
    let words = "nothing is pruned while Gone.example.org cannot be listed";
    let warning = daemon.says(&["WARN", words]);
    let command = warning.split('`').find(|part| part.starts_with("kubectl ") && part.contains(kinds));
    let command = command.unwrap_or_else(|| panic!("no command: {warning}"));
    site.with_config(&["check"], &site.configuration(repo.path(), "")).says(&[words, command]);
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    site.cluster.kubectl(&arguments).unwrap();
    site.await_absence("ConfigMap", "a");
    assert!(site.has("ConfigMap", "b"));
    until("the inventory names the kind no longer", || {
        site.inventory()
            .is_some_and(|inventory| inventory["metadata"]["annotations"][kinds] == json!("ConfigMap"))
    });
}

#[test]
fn a_definition_that_somebody_deletes_comes_back_with_its_objects() {
    let site = TestNamespace::new("crd-back");
    let repo = Repo::new(&[
        ("definition.yaml", definition(&site, "widget", "wdb")),
        ("object.yaml", custom(&site, "widget", "one", "1")),
        ("env.yaml", yaml::config_map("env", "a", "1")),
    ]);
    let _daemon = site.daemon(repo.path());
    let object = path(&site, "widget", "one");
    until("the object is there", || site.api.get(&object).is_some());
    let window = site.window();
    let before = site.api.value(&object, "/metadata/uid");
    site.api.delete(&at("CustomResourceDefinition", "", &format!("widgets.{}", group(&site))));
    let back = || match site.api.value(&object, "/metadata/uid") {
        uid if uid.is_string() && uid != before => Ok(()),
        uid => Err(format!("{uid}")),
    };
    eventually("the object is there again", DEFAULT_TIMEOUT, back);
    // And it is watched: what happens to it is seen.
    site.api.merge(&object, "somebody", &json!({"spec": {"size": 9}}));
    until("it is repaired", || site.api.value(&object, "/spec/size") == json!(1));
    window.assert_no_deletes();
}

#[test]
fn a_source_uses_a_kind_that_another_one_brought_while_both_were_followed() {
    let site = TestNamespace::new("crd-other");
    let first = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let second = Repo::new(&[("env.yaml", yaml::config_map("second", "a", "1"))]);
    let _daemon = site.configured(&yaml::documents(&[
        source(&site.name, &site.name, first.path(), ""),
        source("crd-other-second", &site.name, second.path(), ""),
    ]));
    site.await_data("env", "a", "1");
    site.await_data("second", "a", "1");
    first.write("definition.yaml", &definition(&site, "widget", "wdo"));
    first.change("object.yaml", &custom(&site, "widget", "one", "1"));
    until("the first has its object", || site.api.get(&path(&site, "widget", "one")).is_some());
    // The server's kinds are known by now, and nothing is left to ask it for.
    second.change("object.yaml", &custom(&site, "widget", "two", "2"));
    until("the second has its object", || site.api.get(&path(&site, "widget", "two")).is_some());
}
