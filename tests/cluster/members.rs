//! Members of a union that somebody sets in the place of ours, as `kubectl edit` does. The server
//! refuses both together, and git is put back all the same.

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
