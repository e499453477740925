//! Objects that the API server refuses: they wait with its reason, and so does what needs them; the
//! rest goes on.

use serde_json::{Value, json};

use crate::support::{
    DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, at, eventually, in_time, until, yaml,
};

/// Returns a Deployment whose pods take their environment from a ConfigMap or Secret.
fn user_of(name: &str, kind: &str, needs: &str) -> String {
    let reference = format!("        envFrom: [{{{kind}Ref: {{name: {needs}}}}}]\n");
    yaml::deployment(name, 1, "nginx:1") + &reference
}

/// Refuses ConfigMaps with the key `forbidden` in the site's namespace.
fn forbid(site: &TestNamespace<'_>) {
    let name = format!("{}-policy", site.name);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.name}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["configmaps"]}],
            },
            "validations": [{"expression": "!has(object.data) || !('forbidden' in object.data)",
                "message": "this key is not for you"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    site.api.create(&at("ValidatingAdmissionPolicy", "", ""), "setup", &policy);
    site.api.create(&at("ValidatingAdmissionPolicyBinding", "", ""), "setup", &binding);
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": {"forbidden": ""}});
    let path = format!("{}?dryRun=All", site.at("ConfigMap", ""));
    eventually("the policy is in force", DEFAULT_TIMEOUT, || {
        match site.api.call("POST", &path, "application/json", &probe) {
            Ok(_) => Err("the object was accepted"),
            Err(_) => Ok(()),
        }
    });
}

fn allow(site: &TestNamespace<'_>) {
    site.api.delete(&at("ValidatingAdmissionPolicyBinding", "", &format!("{}-policy", site.name)));
}

#[test]
fn an_object_that_admission_denies_waits_with_its_users_until_it_is_allowed() {
    let site = TestNamespace::new("admission");
    forbid(&site);
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "forbidden", "x")),
        ("web.yaml", user_of("web", "configMap", "env")),
        ("other.yaml", yaml::config_map("other", "a", "b")),
    ]);
    let apply = site.apply(repo.path(), &[]).ends(1);
    apply.says(&["configmap/env", "refused", "this key is not for you"]);
    apply.says(&["deployment.apps/web", "waiting", "env"]);
    assert_eq!(site.data("other", "a"), "b");
    assert!(!site.has("Deployment", "web"));
    let diff = site.diff(repo.path(), &[]).ends(1);
    diff.says(&["env", "this key is not for you"]);
    let daemon = site.daemon(repo.path());
    daemon.says(&["env", "refused", "this key is not for you"]);
    allow(&site);
    site.await_data("env", "forbidden", "x");
    site.await_object("Deployment", "web");
}

#[test]
fn a_change_that_admission_denies_leaves_the_accepted_content_defended() {
    let site = TestNamespace::new("admission-change");
    forbid(&site);
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("other.yaml", yaml::config_map("other", "a", "one")),
    ]);
    let daemon = site.daemon(repo.path());
    site.await_data("env", "a", "one");
    repo.write("env.yaml", &(yaml::config_map("env", "a", "two") + "  forbidden: x\n"));
    repo.change("other.yaml", &yaml::config_map("other", "a", "two"));
    daemon.says(&["env", "refused", "this key is not for you"]);
    site.await_data("other", "a", "two");
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"data": {"a": "foreign"}}));
    site.await_data("env", "a", "one");
    repo.change("env.yaml", &yaml::config_map("env", "a", "three"));
    site.await_data("env", "a", "three");
    allow(&site);
}

#[test]
fn an_object_beyond_a_quota_waits_and_goes_through_when_the_quota_is_lifted() {
    let site = TestNamespace::new("quota");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"count/secrets": "0"}}});
    site.api.create(&site.at("ResourceQuota", ""), "setup", &quota);
    eventually("the quota counts", DEFAULT_TIMEOUT, || {
        match site.value("ResourceQuota", "few", "/status/hard/count~1secrets") {
            Value::String(_) => Ok(()),
            other => Err(other.to_string()),
        }
    });
    let repo = Repo::new(&[
        ("key.yaml", yaml::secret("key", "a", "b")),
        ("web.yaml", user_of("web", "secret", "key")),
        ("other.yaml", yaml::config_map("other", "a", "b")),
    ]);
    let daemon = site.daemon(repo.path());
    daemon.says(&["key", "refused", "quota"]);
    site.await_data("other", "a", "b");
    assert!(!site.has("Deployment", "web"));
    site.api.merge(
        &site.at("ResourceQuota", "few"),
        "setup",
        &json!({"spec": {"hard": {"count/secrets": "5"}}}),
    );
    site.await_object("Secret", "key");
    site.await_object("Deployment", "web");
}

#[test]
fn a_refusal_that_may_heal_is_tried_again_with_growing_rests() {
    let site = TestNamespace::new("refusal-rests");
    forbid(&site);
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "forbidden", "x"))]);
    let window = site.window();
    let _daemon = site.configured(&site.configuration(repo.path(), "resync: 1s"));
    let times = in_time("it is tried five times", DEFAULT_TIMEOUT, || {
        let tries: Vec<_> =
            window.to("configmaps", "env").iter().map(|event| event.timestamp.as_millisecond()).collect();
        if tries.len() >= 6 { Ok(tries) } else { Err(format!("{} tries", tries.len())) }
    });
    let rests: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 0.2 s, doubled each time, less up to a fifth: the resync every second wakes nobody.
    for (n, rest) in rests.iter().enumerate() {
        let least = (160 << n) - 20;
        assert!(*rest >= least, "rest {n} is {rest} ms, not {least}: {rests:?}");
    }
    allow(&site);
}

fn immutable(value: &str) -> String {
    yaml::config_map("fixed", "a", value) + "immutable: true\n"
}

#[test]
fn an_immutable_field_is_tried_once_until_its_content_changes() {
    let site = TestNamespace::new("immutable");
    let repo =
        Repo::new(&[("fixed.yaml", immutable("one")), ("other.yaml", yaml::config_map("other", "a", "one"))]);
    let daemon = site.configured(&site.configuration(repo.path(), "resync: 1s"));
    site.await_data("fixed", "a", "one");
    let window = site.window();
    repo.write("fixed.yaml", &immutable("two"));
    repo.change("other.yaml", &yaml::config_map("other", "a", "two"));
    daemon.says(&["fixed", "refused", "immutable", "rhumb.dev/recreate"]);
    site.await_data("other", "a", "two");
    // Several resyncs and another commit later it was still tried once.
    for value in ["three", "four", "five"] {
        let mark = daemon.mark();
        repo.change("other.yaml", &yaml::config_map("other", "a", value));
        site.await_data("other", "a", value);
        daemon.says_since(mark, &["read"]);
    }
    assert_eq!(window.to("configmaps", "fixed").len(), 1);
    // A workload's selector, in the same words.
    let mark = daemon.mark();
    repo.change("fixed.yaml", &immutable("three"));
    daemon.says_since(mark, &["fixed", "refused"]);
    assert_eq!(window.to("configmaps", "fixed").len(), 2);
    assert_eq!(site.data("fixed", "a"), "one");
}

#[test]
fn an_immutable_field_is_replaced_where_the_object_allows_it() {
    let site = TestNamespace::new("immutable-recreate");
    let allowed = |value: &str| {
        immutable(value)
            .replace("  name: fixed\n", "  name: fixed\n  annotations: {rhumb.dev/recreate: \"true\"}\n")
    };
    let folder = Folder::new(&[("fixed.yaml", immutable("one"))]);
    site.apply(folder.path(), &[]).ends(0);
    folder.write("fixed.yaml", &immutable("two"));
    let refused = site.apply(folder.path(), &[]).ends(1);
    refused.says(&["configmap/fixed", "refused", "immutable"]);
    site.diff(folder.path(), &[]).ends(1).says(&["immutable"]);
    folder.write("fixed.yaml", &allowed("two"));
    let window = site.window();
    site.apply(folder.path(), &[]).ends(0);
    assert_eq!(site.data("fixed", "a"), "two");
    assert_eq!(window.deletes().len(), 1);
}

#[test]
fn a_field_that_the_server_does_not_know_is_refused_with_its_path() {
    let site = TestNamespace::new("unknown-field");
    let mistyped = yaml::deployment("web", 1, "nginx:1").replace("        image:", "        imagee:");
    let repo = Repo::new(&[
        ("web.yaml", mistyped),
        ("service.yaml", yaml::service("web", "web")),
        ("other.yaml", yaml::config_map("other", "a", "b")),
    ]);
    let apply = site.apply(repo.path(), &[]).ends(1);
    apply.says(&["deployment.apps/web", "refused", "imagee"]);
    assert_eq!(site.data("other", "a"), "b");
    assert!(!site.has("Deployment", "web"));
    site.diff(repo.path(), &[]).ends(1).says(&["imagee"]);
    let daemon = site.daemon(repo.path());
    daemon.says(&["web", "refused", "imagee"]);
    repo.change("web.yaml", &yaml::deployment("web", 1, "nginx:1"));
    site.await_rollout("web");
}

#[test]
fn a_label_that_a_policy_of_the_cluster_takes_away_is_reported_and_not_written_again_and_again() {
    let site = TestNamespace::new("label-stripped");
    let policy = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {{name: \
         {0}}}\nspec:\n  failurePolicy: Fail\n  reinvocationPolicy: Never\n  matchConstraints:\n    \
         namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {0}}}}}\n    resourceRules:\n    - \
         {{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}}\n  \
         mutations:\n  - patchType: JSONPatch\n    jsonPatch:\n      expression: >-\n        has(object.metadata.labels) \
         && 'applyset.kubernetes.io/part-of' in object.metadata.labels ? [JSONPatch{{op: 'remove', path: \
         '/metadata/labels/applyset.kubernetes.io~1part-of'}}] : []\n---\napiVersion: \
         admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {{name: {0}}}\nspec: \
         {{policyName: {0}}}\n",
        site.name
    );
    site.cluster.kubectl_in(&["apply", "-f", "-"], &policy).unwrap();
    let probe = yaml::config_map("probe", "a", "1").replacen(
        "  name: probe\n",
        "  name: probe\n  labels: {applyset.kubernetes.io/part-of: x}\n",
        1,
    );
    let create =
        ["create", "--dry-run=server", "-o", "jsonpath={.metadata.labels}", "-n", &site.name, "-f", "-"];
    let is_in_force =
        || site.cluster.kubectl_in(&create, &probe).is_ok_and(|labels| !labels.contains("part-of"));
    until("the policy is in force", is_in_force);
    let repo = Repo::new(&[("map.yaml", yaml::config_map("map", "a", "1"))]);
    let window = site.window();
    let configuration = site.configuration(repo.path(), "resync: 1s");
    let daemon = Daemon::start(site.command_with_config(&["run", "-v"], &configuration));
    daemon.says(&["refused", "the server does not keep the label applyset.kubernetes.io/part-of"]);
    eventually("the status tells it", DEFAULT_TIMEOUT, || {
        let reported = site.rhumb(&["status"]).all();
        if reported.contains("does not keep the label") { Ok(()) } else { Err(reported) }
    });
    repo.change("other.yaml", &yaml::config_map("other", "a", "1"));
    until("the other one is written too", || site.has("ConfigMap", "other"));
    for _ in 0..5 {
        daemon.says_since(daemon.mark(), &["checked everything"]);
    }
    assert!(window.to("configmaps", "map").len() <= 2, "{:#?}", window.to("configmaps", "map"));
}
