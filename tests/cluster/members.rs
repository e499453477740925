//! Members of a union that somebody sets in the place of ours, as `kubectl edit` does. The server
//! refuses both together, and git is put back all the same. So are items of lists whose key
//! somebody changes.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, eventually};

const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 0\n  \
     selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
     volumes: [{name: tmp, emptyDir: {}}, {name: big, emptyDir: {sizeLimit: 1Gi}}]\n      containers:\n      \
     - name: main\n        image: 'registry.example/web:1'\n        env: [{name: MODE, value: calm}]\n        \
     readinessProbe: {httpGet: {path: /ready, port: 80}, periodSeconds: 7}\n";

/// Returns the parts of the template that the tests look at.
fn template(site: &TestNamespace<'_>) -> Value {
    let container = "/spec/template/spec/containers/0";
    let volumes = site.value("Deployment", "web", "/spec/template/spec/volumes");
    let env = site.value("Deployment", "web", &format!("{container}/env"));
    json!([volumes, env, site.value("Deployment", "web", &format!("{container}/readinessProbe"))])
}

/// Sets other members in the place of ours, and a field beside them that is nobody's union.
fn replace(site: &TestNamespace<'_>) {
    let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let change = json!({"spec": {"template": {"spec": {
        "volumes": [
            {"name": "tmp", "emptyDir": null, "hostPath": {"path": "/"}},
            {"name": "big", "emptyDir": null, "secret": {"secretName": "other"}},
        ],
        "containers": [{
            "name": "main",
            "env": [{"name": "MODE", "value": null, "valueFrom": from}],
            "readinessProbe": {"httpGet": null, "exec": {"command": ["true"]}, "failureThreshold": 9},
        }],
    }}}});
    let path = format!("{}?fieldManager=kubectl-edit", site.at("Deployment", "web"));
    site.api.call("PATCH", &path, "application/strategic-merge-patch+json", &change).unwrap();
}

#[test]
fn what_somebody_sets_in_the_place_of_a_field_of_git_goes_and_what_is_beside_it_stays() {
    let site = TestNamespace::new("members");
    let repo = Repo::new(&[("web.yaml", WEB)]);
    let mut daemon = site.daemon(repo.path());
    site.await_object("Deployment", "web");
    let before = template(&site);
    let mut after = before.clone();
    after[2]["failureThreshold"] = json!(9);
    let await_right = |expected: &Value| {
        eventually("git is in force", DEFAULT_TIMEOUT, || {
            let shown = template(&site);
            if shown == *expected { Ok(()) } else { Err(shown) }
        });
    };
    replace(&site);
    let by = "kubectl-edit replaced ";
    daemon.says(&["drift repaired", by, ".readinessProbe.httpGet by ", "Deployment members/web"]);
    await_right(&after);
    // A new content meets them too.
    daemon.stop();
    replace(&site);
    repo.write("web.yaml", &WEB.replace("web:1", "web:2"));
    repo.commit("the next image");
    let diff = site.diff(repo.path(), &[]).ends(1);
    diff.says(&["-       - hostPath:"]);
    diff.says(&["+         image: registry.example/web:2"]);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    await_right(&after);
    let image = "/spec/template/spec/containers/0/image";
    assert_eq!(site.value("Deployment", "web", image), json!("registry.example/web:2"));
}

#[test]
fn a_content_that_leaves_fields_to_others_takes_no_member_away_and_diff_says_so() {
    let site = TestNamespace::new("members-left");
    let left = "metadata:\n  name: web\n  annotations: {rhumb.dev/ignore-fields: .spec.paused}\nspec";
    let repo = Repo::new(&[("web.yaml", WEB.replace("metadata: {name: web}\nspec", left))]);
    site.apply(repo.path(), &[]).ends(0);
    replace(&site);
    let shown = template(&site);
    let refusal = "may not specify more than 1 volume type";
    let diff = site.diff(repo.path(), &[]).ends(1);
    diff.says(&[refusal]);
    assert!(!diff.stdout.contains("hostPath:\n"), "{}", diff.stdout);
    site.apply(repo.path(), &[]).ends(1).says(&[refusal]);
    assert_eq!(template(&site), shown);
}

/// Returns a Service with these ports, and that selects these labels.
fn service(name: &str, ports: &str, labels: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec:\n  selector: {{{labels}}}\n  ports: [{ports}]\n"
    )
}

/// The objects with ports: kind, name, their list, the key of each and the first in git.
const PORTS: [(&str, &str, &str, &str, u64); 4] = [
    ("Service", "plain", "/spec/ports", "port", 80),
    ("Service", "named", "/spec/ports", "port", 80),
    ("Service", "two", "/spec/ports", "port", 80),
    ("Deployment", "web", "/spec/template/spec/containers/0/ports", "containerPort", 8080),
];

/// Writes what has ports into a repository.
fn write_ports(repo: &Repo, version: &str) {
    let labels = format!("app: web, version: '{version}'");
    repo.write("plain.yaml", &service("plain", "{port: 80}", &labels));
    repo.write("named.yaml", &service("named", "{name: http, port: 80}", &labels));
    repo.write("two.yaml", &service("two", "{name: a, port: 80}, {name: b, port: 81}", &labels));
    let ports = format!("web:{version}'\n        ports: [{{name: http, containerPort: 8080}}]\n");
    repo.write("web.yaml", &WEB.replace("web:1'\n", &ports));
    repo.commit(&format!("version {version}"));
}

/// Returns the numbers of the ports of an object, in their order.
fn ports(site: &TestNamespace<'_>, kind: &str, name: &str, list: &str, key: &str) -> Vec<u64> {
    let shown = site.value(kind, name, list);
    shown.as_array().unwrap().iter().map(|port| port[key].as_u64().unwrap()).collect()
}

/// Changes the number of each first port, as `kubectl edit` does.
fn edit_ports(site: &TestNamespace<'_>) {
    for (kind, name, list, key, number) in PORTS {
        let nth = ports(site, kind, name, list, key).iter().position(|port| *port == number).unwrap();
        let change = json!([{"op": "replace", "path": format!("{list}/{nth}/{key}"), "value": 9999}]);
        edit(site, kind, name, &change);
    }
}

fn edit(site: &TestNamespace<'_>, kind: &str, name: &str, change: &Value) {
    let path = format!("{}?fieldManager=kubectl-edit", site.at(kind, name));
    site.api.call("PATCH", &path, "application/json-patch+json", change).unwrap();
}

/// Waits until the objects have these ports, each in the order of their numbers.
fn await_ports(site: &TestNamespace<'_>, expected: [&[u64]; 4]) {
    eventually("the ports of git are in force", DEFAULT_TIMEOUT, || {
        let shown = PORTS.map(|(kind, name, list, key, _)| {
            let mut shown = ports(site, kind, name, list, key);
            shown.sort_unstable();
            shown
        });
        if shown == expected { Ok(()) } else { Err(format!("{shown:?}")) }
    });
}

#[test]
fn an_item_whose_key_somebody_changes_comes_back_and_what_is_beside_it_stays() {
    let site = TestNamespace::new("members-keys");
    let repo = Repo::new(&[("plain.yaml", service("plain", "{port: 80}", "app: web"))]);
    write_ports(&repo, "1");
    let mut daemon = site.daemon(repo.path());
    for (kind, name, ..) in PORTS {
        site.await_object(kind, name);
    }
    await_ports(&site, [&[80], &[80], &[80, 81], &[8080]]);
    let other = json!({"name": "metrics", "port": 90});
    edit(&site, "Service", "named", &json!([{"op": "add", "path": "/spec/ports/-", "value": other}]));
    edit_ports(&site);
    for (kind, name, ..) in PORTS {
        daemon.says(&["drift repaired", "kubectl-edit ", "orts", &format!("{kind} members-keys/{name}")]);
    }
    let right: [&[u64]; 4] = [&[80], &[80, 90], &[80, 81], &[8080]];
    await_ports(&site, right);
    daemon.says(&["kubectl-edit replaced .spec.ports[port=80] by .spec.ports[port=9999,protocol=\"TCP\"]"]);
    // A new content meets them too.
    daemon.stop();
    edit_ports(&site);
    write_ports(&repo, "2");
    site.diff(repo.path(), &[]).ends(1).says(&["port: 9999"]);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    await_ports(&site, right);
    for name in ["plain", "named", "two"] {
        eventually("the selector of git is in force", DEFAULT_TIMEOUT, || {
            let shown = site.value("Service", name, "/spec/selector/version");
            if shown == json!("2") { Ok(()) } else { Err(shown) }
        });
    }
}
