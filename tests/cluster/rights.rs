//! `rhumb rbac` and `rhumb check`: the roles that are printed are enough, and none of their rules
//! is too much.

use controlplane::{Answer, Fault, Requests, Rule};
use serde_json::{Value, json};

use crate::support::{
    DEFAULT_TIMEOUT, ProgramOutput, Repo, TestNamespace, at, eventually, run, source, until, yaml,
};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Returns something of each sort that takes rights of its own.
fn files(image: &str) -> Vec<(&'static str, String)> {
    let annotated = |text: String, annotation: &str| {
        text.replacen("metadata:\n", &format!("metadata:\n  annotations: {{{annotation}}}\n"), 1)
    };
    let web = yaml::deployment("web", 2, image);
    let set = |kind: &str, name: &str| yaml::workload(kind, name, 2, image, "{}");
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    vec![
        ("env.yaml", yaml::config_map("env", "a", image)),
        ("old.yaml", yaml::config_map("old", "a", "1")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", annotated(web, "rhumb.dev/restart-on-change: 'true'")),
        ("db.yaml", set("StatefulSet", "db")),
        ("agent.yaml", annotated(set("DaemonSet", "agent"), "rhumb.dev/steps: '1'")),
        (
            "role.yaml",
            format!(
                "{rbac}\nkind: Role\nmetadata: {{name: reader}}\nrules:\n- {{apiGroups: [''], resources: [endpoints], \
                 verbs: [get]}}\n---\n{rbac}\nkind: RoleBinding\nmetadata: {{name: reader}}\nroleRef: {{apiGroup: \
                 rbac.authorization.k8s.io, kind: Role, name: reader}}\nsubjects: []\n"
            ),
        ),
        (
            "oxen.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: \
             oxen.rights.example.org}\nspec:\n  group: rights.example.org\n  scope: Namespaced\n  names: {kind: Ox, \
             plural: oxen}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: \
             object, x-kubernetes-preserve-unknown-fields: true}}}\n---\napiVersion: rights.example.org/v1\nkind: \
             Ox\nmetadata: {name: one}\n"
                .to_owned(),
        ),
    ]
}

fn check(site: &TestNamespace<'_>, repo: &Repo) -> ProgramOutput {
    site.rhumb(&["check", repo.path().to_str().unwrap(), "-o", "json"])
}

/// Grants a user exactly what is printed for a repository.
fn granted<'a>(name: &str, repo: &Repo) -> TestNamespace<'a> {
    let mut site = TestNamespace::new(name);
    site.limited();
    let missing = check(&site, repo).ends(1).json();
    assert!(missing["denied"].as_array().unwrap().len() > 20, "{missing:#}");
    let source = repo.path().to_str().unwrap();
    let printed = site.rhumb(&["rbac", source, "--user", &site.user]).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    until("all is granted", || check(&site, repo).code == 0);
    site
}

#[test]
fn with_the_roles_that_are_printed_nothing_is_forbidden() {
    let repo = Repo::new(&files("app:1"));
    let site = granted("rights-enough", &repo);
    let window = site.window();
    site.apply(repo.path(), &[]);
    let daemon = site.daemon(repo.path());
    let ox = format!("/apis/rights.example.org/v1/namespaces/{}/oxen/one", site.name);
    until("the custom object is there", || site.api.get(&ox).is_some());
    for (file, text) in files("app:2") {
        repo.write(file, &text);
    }
    repo.remove("old.yaml");
    repo.commit("Change all");
    let image = |kind: &str, name: &str| site.value(kind, name, "/spec/template/spec/containers/0/image");
    let all = [("Deployment", "web"), ("StatefulSet", "db"), ("DaemonSet", "agent")];
    until("all have the new image", || all.iter().all(|(kind, name)| image(kind, name) == json!("app:2")));
    until("the steps are over", || {
        let overlay = site.value("DaemonSet", "agent", "/metadata/annotations/rhumb.dev~1overlay");
        let updated = site.value("DaemonSet", "agent", "/status/updatedNumberScheduled");
        overlay.is_null() && updated == site.value("DaemonSet", "agent", "/status/desiredNumberScheduled")
    });
    site.await_absence("ConfigMap", "old");
    drop(daemon);
    let calls = window.calls();
    assert!(calls.iter().any(|call| call.resource == "pods" && call.verb == "watch"), "no pods were watched");
    assert!(calls.iter().any(|call| call.resource == "nodes"), "no nodes were read");
    let forbidden: Vec<_> = calls.iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

#[test]
fn a_source_without_secrets_rolls_beside_one_with_them() {
    let mut site = TestNamespace::new("rights-sealed");
    let user = |image: &str, key: &str| {
        let from = "        envFrom:\n        - secretRef: {name: key}\n        image:";
        let web = yaml::deployment("web", 1, image).replace("        image:", from);
        [("web.yaml", web), ("key.yaml", yaml::secret("key", "token", key))]
    };
    let repo = Repo::new(&user("app:1", "one"));
    site.apply(repo.path(), &["--wait=3m"]).ends(0);
    for (file, text) in user("app:2", "two") {
        repo.write(file, &text);
    }
    repo.commit("Change both");
    site.apply(repo.path(), &["--wait=3m"]).ends(0);
    let budget = site.api.value(&at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev"), "/data/claims");
    assert!(budget.as_str().unwrap().contains('~'), "nothing is sealed: {budget}");

    site.limited();
    let other = Repo::new(&[("other.yaml", yaml::deployment("other", 1, "app:1"))]);
    let rhumb = |arguments: &[&str]| {
        let mut command = site.bare_command();
        command.args(arguments).arg(other.path()).args(["--source", "other", "-n", &site.name]);
        run(command)
    };
    let printed = rhumb(&["rbac", "--user", &site.user]).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    until("all is granted", || rhumb(&["check"]).code == 0);
    let window = site.window();
    rhumb(&["apply", "--wait=3m"]).ends(0);
    let forbidden: Vec<_> = window.calls().into_iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

/// Policies whose parameters are chosen by name and by labels.
const POLICIES: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: rights-admission-chosen}
spec: {policyName: rights-admission, validationActions: [Deny], paramRef: {selector: {}, parameterNotFoundAction: Allow}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: rights-admission-named}
spec:
  policyName: rights-admission
  validationActions: [Deny]
  paramRef: {name: limits, namespace: rights-admission, parameterNotFoundAction: Allow}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: rights-admission}
spec:
  paramKind: {apiVersion: v1, kind: PodTemplate}
  matchConstraints:
    resourceRules: [{apiGroups: [none.example.org], apiVersions: [v1], operations: [CREATE], resources: [things]}]
  validations: [{expression: 'true'}]
";

#[test]
fn policies_with_parameters_are_taken_with_the_roles_that_are_printed() {
    let repo = Repo::new(&[("policies.yaml", POLICIES.to_owned())]);
    let mut site = TestNamespace::new("rights-admission");
    site.limited();
    let printed = site.rhumb(&["rbac", repo.path().to_str().unwrap(), "--user", &site.user]).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    until("all is granted", || check(&site, &repo).code == 0);
    let applied = site.apply(repo.path(), &[]).ends(0);
    applied.says(&["3 created"]);
}

#[test]
fn each_rule_that_is_taken_away_is_named() {
    let repo = Repo::new(&files("app:1"));
    let site = granted("rights-each", &repo);
    let name = format!("rhumb:{}:{}", site.system(), site.name);
    let mut paths = vec![format!("{GROUP}/clusterroles/{name}")];
    for namespace in [site.name.clone(), site.system()] {
        paths.push(format!("{GROUP}/namespaces/{namespace}/roles/{name}"));
    }
    for path in paths {
        let all_rules = site.api.value(&path, "/rules");
        for number in 0..all_rules.as_array().unwrap().len() {
            let mut rules = all_rules.as_array().unwrap().clone();
            let gone = rules.remove(number);
            site.api.merge(&path, "setup", &json!({"rules": rules}));
            let what = format!("{gone} of {path} is named");
            let report = eventually(&what, DEFAULT_TIMEOUT, || {
                // Until the server has heard of it, the one before may still be missing.
                let checked = check(&site, &repo);
                let report = checked.json();
                let denied = report["denied"].as_array().unwrap();
                let named = !denied.is_empty() && denied.iter().all(|denied| is_of(denied, &gone));
                if named { Ok(report) } else { Err(checked.all()) }
            });
            assert!(
                report["denied"].as_array().unwrap().iter().all(|denied| is_of(denied, &gone)),
                "{report:#}"
            );
            if number == 0 {
                // The printed roles mend it.
                let printed = report["roles"].as_str().unwrap();
                site.cluster.kubectl_in(&["apply", "-f", "-"], printed).unwrap();
                until("it is mended", || check(&site, &repo).code == 0);
                site.cluster.kubectl_in(&["delete", "-f", "-"], printed).unwrap();
            }
            site.api.merge(&path, "setup", &json!({"rules": all_rules}));
        }
    }
}

/// Returns whether a rule grants the denied access.
fn is_of(denied: &Value, rule: &Value) -> bool {
    let holds = |key: &str, value: &Value| rule[key].as_array().unwrap().contains(value);
    holds("apiGroups", &denied["group"])
        && holds("resources", &denied["resource"])
        && holds("verbs", &denied["verb"])
}

#[test]
fn a_check_says_what_is_wrong_beside_rights() {
    let site = TestNamespace::new("rights-beside");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let source = repo.path().to_str().unwrap().to_owned();
    let good = site.rhumb(&["check", &source]).ends(0);
    for line in [
        "ok      git version",
        "ok      the API server answers",
        "rights that these sources need are granted",
    ] {
        good.says(&[line]);
    }
    // No git, and a state directory that is a file.
    let mut command = site.command(&["check", &source]);
    let file = site.state.path().join("file");
    std::fs::write(&file, "").unwrap();
    command.env("PATH", site.state.path()).env("STATE_DIRECTORY", &file);
    let bad = run(command).ends(1);
    bad.says(&["missing git is not in the PATH"]);
    bad.says(&["missing state directory"]);
    // A cluster that does not answer, and a kubeconfig that is nowhere.
    let mut command = site.command(&["check", &source]);
    command.args(["--kubeconfig", "/none/kubeconfig"]);
    run(command).ends(1).says(&["missing", "/none/kubeconfig"]);
    // Kinds and versions that the server does not have. A kind that the repository itself defines
    // is on its way.
    repo.write("thing.yaml", "{apiVersion: none.example.org/v1, kind: Thing, metadata: {name: a}}");
    repo.write("old.yaml", "{apiVersion: v2, kind: ConfigMap, metadata: {name: b}}");
    let unserved = site.rhumb(&["check", &source]).ends(1);
    unserved.says(&["missing the server has no kind none.example.org/v1 Thing"]);
    unserved.says(&["missing the server has no kind v2 ConfigMap: it serves v1"]);
    let guessed = site.rhumb(&["rbac", &source]).ends(0);
    guessed.says(&["is a guess", "Thing.none.example.org"]);
    assert!(!guessed.stdout.contains("ConfigMap."), "{guessed:#?}");
    repo.remove("thing.yaml");
    repo.remove("old.yaml");
    // Nobody makes the one namespace, and the repository makes the other.
    let homes = "{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: rights-nowhere}}\n---\n{apiVersion: v1, \
                 kind: ConfigMap, metadata: {name: d, namespace: rights-made}}\n---\n{apiVersion: v1, kind: Namespace, \
                 metadata: {name: rights-made}}";
    repo.write("homes.yaml", homes);
    let unmade = site.rhumb(&["check", &source]).ends(1);
    unmade.says(&["missing namespace rights-nowhere does not exist, and no source contains it"]);
    assert!(!unmade.stdout.contains("rights-made"), "{unmade:#?}");
    repo.remove("homes.yaml");
    // An object that is held back for an error would be missing in the roles.
    repo.write("wrong.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: true}}}");
    site.rhumb(&["check", &source]).ends(1).says(&["not all files are understood"]);
    site.rhumb(&["rbac", &source]).ends(2).says(&["not all files are understood"]);
    repo.remove("wrong.yaml");
    repo.write("broken.yaml", "a: [");
    site.rhumb(&["check", &source]).ends(1).says(&["not all files are understood"]);
    site.rhumb(&["rbac", &source]).ends(2).says(&["not all files are understood"]);
}

#[test]
fn one_source_that_cannot_be_read_hides_nothing_of_another() {
    let site = TestNamespace::new("rights-unread");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let file = site.state.path().join("rhumb.yaml");
    let gone = source("gone", &site.name, &site.state.path().join("nowhere"), "");
    std::fs::write(&file, format!("{gone}---\n{}", source("there", &site.name, repo.path(), ""))).unwrap();
    let mut command = site.bare_command();
    command.arg("check").arg("--config").arg(&file);
    let checked = run(command).ends(1);
    checked.says(&["missing source gone: "]);
    checked.says(&["ok      source there: 1 object of 1 kind"]);
    // Nobody takes that for all.
    checked.says(&["warning ", "rights are granted; which others are needed is not known: gone"]);
    assert!(!checked.stdout.contains("these sources need are granted"), "{checked:#?}");
}

#[test]
fn a_no_has_the_words_of_the_server() {
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let mut site = TestNamespace::new("rights-words");
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let answered = |status: Value| {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}, "status": status});
        let answer = Answer::new(201, &review.to_string()).header("Content-Type", "application/json");
        let reviews = Requests::any().path_contains("selfsubjectaccessreviews");
        let rule = proxy.add(Rule::new(reviews, Fault::Replace(answer)));
        let checked = check(&site, &repo).ends(1).json();
        proxy.remove(rule);
        checked
    };
    // To be asked to slow down is no answer.
    let reviews = Requests::any().path_contains("selfsubjectaccessreviews");
    let busy = Answer::error(429, "TooManyRequests").header("Retry-After", "1");
    let rule = proxy.add(Rule::new(reviews, Fault::Replace(busy)).times(3));
    check(&site, &repo).ends(0);
    proxy.remove(rule);
    let lost = answered(json!({"allowed": false, "reason": "the role a is not found"}));
    let text = lost["findings"].to_string();
    assert!(text.contains("the server says: the role a is not found"), "{text}");
    assert_eq!(lost["denied"][0]["said"], json!("the role a is not found"));
    assert!(lost["roles"].as_str().unwrap().contains("kind: ClusterRole"), "{lost:#}");
    // No role helps against whoever denies.
    let denied = answered(json!({"allowed": false, "denied": true, "reason": "all is frozen"}));
    let text = denied["findings"].to_string();
    assert!(text.contains("it is denied whatever roles grant: all is frozen"), "{text}");
    assert_eq!(denied["roles"], json!(""));
}

#[test]
fn only_who_can_be_bound_is_bound() {
    let site = TestNamespace::new("rights-bound");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let rbac = |flag: &str, value: &str| site.rhumb(&["rbac", repo.path().to_str().unwrap(), flag, value]);
    for wrong in ["a", "/", "a/", "/b", "a/b/c", "A/b", "a/B", "a/b..c"] {
        rbac("--service-account", wrong).ends(2).says(&[wrong, "is no service account"]);
    }
    rbac("--user", "").ends(2).says(&["names nobody"]);
    rbac("--service-account", "ops/a.b").ends(0).says(&["name: a.b"]);
}
