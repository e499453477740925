//! Rights that are taken away in the middle of a rollout, and given back.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, run, source, until, yaml};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Returns the paths of all roles that grant something on a resource.
fn roles_with(site: &TestNamespace<'_>, resource: &str) -> Vec<(String, Value)> {
    let name = |role: &Value| role["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let namespaced = format!("{ROLES}/namespaces/{}/roles", site.name);
    let all = [format!("{ROLES}/clusterroles"), namespaced].into_iter().flat_map(|place| {
        let roles = site.api.list(&place);
        roles.into_iter().map(move |role| (format!("{place}/{}", name(&role)), role["rules"].clone()))
    });
    let is_ours = |path: &str| path.contains(&site.name);
    let grants = |rules: &Value| {
        rules.as_array().into_iter().flatten().any(|rule| {
            rule["resources"] == json!([resource]) || {
                rule["resources"].as_array().is_some_and(|all| all.contains(&json!(resource)))
            }
        })
    };
    all.filter(|(path, rules)| is_ours(path) && grants(rules)).collect()
}

/// Takes a verb on a resource out of rules.
fn without(rules: &Value, resource: &str, verb: &str) -> Value {
    let mut rules = rules.as_array().cloned().unwrap_or_default();
    for rule in &mut rules {
        if rule["resources"].as_array().is_some_and(|all| all.contains(&json!(resource))) {
            let verbs = rule["verbs"].as_array().cloned().unwrap_or_default();
            rule["verbs"] = verbs.into_iter().filter(|one| one != verb).collect();
        }
    }
    rules.retain(|rule| rule["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty()));
    json!(rules)
}

#[test]
fn whoever_loses_the_right_to_patch_in_a_rollout_names_it_and_goes_on_when_it_is_back() {
    let mut site = TestNamespace::new("lost-right");
    let web = |image: &str| {
        let steps = "metadata:\n  annotations: {rhumb.dev/steps: '1', rhumb.dev/step-promote: manual}\n";
        yaml::deployment("web", 3, image).replacen("metadata:\n", steps, 1)
    };
    let repo = Repo::new(&[("web.yaml", web("app:1"))]);
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nleases: never\nbudget: {{soak: 0s, maxUnavailable: \
         100%}}\n---\n{}",
        source(&site.name, &site.name, repo.path(), "")
    );
    site.limited();
    let printed = run(site.command_with_config(&["rbac", "--user", &site.user], &text)).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    eventually("all is granted", DEFAULT_TIMEOUT, || {
        let reported = site.with_config(&["check"], &text);
        if reported.stdout.contains("missing the right") { Err(reported.all()) } else { Ok(()) }
    });
    let daemon = site.configured(&text);
    site.await_rollout("web");
    site.await_free_budget();
    repo.change("web.yaml", &web("app:2"));
    // In the middle: one pod has the new image, and a person has to promote it.
    until("the step is held", || site.value("Deployment", "web", "/status/updatedReplicas") == json!(1));
    let taken = roles_with(&site, "deployments");
    assert!(!taken.is_empty());
    for (path, rules) in &taken {
        site.api.merge(path, "setup", &json!({"rules": without(rules, "deployments", "patch")}));
    }
    let asked = format!("--as={}", site.user);
    until("the right is gone", || {
        let can = ["auth", "can-i", "patch", "deployments.apps", "-n", &site.name, &asked];
        site.cluster.kubectl(&can).is_err()
    });
    let mark = daemon.mark();
    eventually("the order is given", DEFAULT_TIMEOUT, || {
        let mut command = site.bare_command();
        command.env("KUBECONFIG", site.cluster.kubeconfig());
        command.args(["rollout", "promote", "deploy/web", "-n", &site.name]);
        let reported = run(command);
        if reported.code == 0 { Ok(()) } else { Err(reported.all()) }
    });
    let reported =
        [r#"cannot patch resource "deployments" in API group "apps" in the namespace "lost-right""#];
    daemon.says_since(mark, &["WARN refused: ", reported[0]]);
    for command in [&["status"][..], &["why", "deploy/web"], &["rollout", "status", "deploy/web"]] {
        eventually(&format!("{command:?} names the right"), DEFAULT_TIMEOUT, || {
            let all = site.rhumb(command).all();
            if all.contains(reported[0]) { Ok(()) } else { Err(all) }
        });
    }
    eventually("an Event names the right", DEFAULT_TIMEOUT, || {
        let events = site.api.list(&site.at("Event", ""));
        let is_told = |event: &Value| {
            event["reason"] == "Refused"
                && event["message"].as_str().is_some_and(|text| text.contains(reported[0]))
        };
        if events.iter().any(is_told) { Ok(()) } else { Err(format!("{events:#?}")) }
    });
    for (path, rules) in &taken {
        site.api.merge(path, "setup", &json!({"rules": rules}));
    }
    site.await_rollout("web");
    let image = site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
    assert_eq!(image, json!("app:2"));
}
