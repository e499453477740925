//! The roles that `rhumb rbac` prints, without a cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize as _;
use serde_json::Value;

use crate::fixture::Fixture;

/// Two sources: one holds an object of a kind that the other one defines.
const TWO: &[(&str, &str)] = &[
    (
        "kinds/ox.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: oxen.example.org}\n\
         spec: {group: example.org, scope: Namespaced, names: {kind: Ox, plural: oxen}, versions: []}\n",
    ),
    (
        "herd/one.yaml",
        "apiVersion: example.org/v1\nkind: Ox\nmetadata: {name: one}\n---\napiVersion: example.org/v1\nkind: \
         Yak\nmetadata: {name: two}\n",
    ),
    (
        "rhumb.yaml",
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: herd}\nspec: {directory: herd, namespace: \
         farm}\n---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: kinds}\nspec: {directory: kinds}\n",
    ),
];

#[test]
fn kinds_are_called_as_any_of_the_sources_defines_them() {
    let printed_roles = Fixture::new(TWO).run("rbac --config rhumb.yaml");
    let guessed: Vec<&str> = printed_roles.lines().filter(|line| line.contains("is a guess")).collect();
    assert!(matches!(guessed[..], [line] if line.ends_with(": Yak.example.org")), "{printed_roles}");
    assert!(!printed_roles.contains("oxes"), "{printed_roles}");
    // It lives in a namespace, as its definition says: there alone it is written.
    let role = printed_roles
        .split("---\n")
        .find(|role| role.contains("kind: Role\n") && role.contains("namespace: farm\n"));
    assert!(
        role.is_some_and(|role| role.contains("- oxen\n") && role.contains("- create\n")),
        "{printed_roles}"
    );
}

#[test]
fn what_is_printed_can_be_deleted_and_takes_no_inventory_along() {
    let printed_roles = Fixture::new(TWO).run("rbac --config rhumb.yaml --user rhumb");
    assert!(!printed_roles.contains("kind: Namespace\n"), "{printed_roles}");
    let before =
        printed_roles.lines().find(|line| line.starts_with("# These namespaces must be there before"));
    assert!(before.is_some_and(|line| line.ends_with(": farm, rhumb-system")), "{printed_roles}");
}

#[test]
fn a_host_in_a_configuration_is_not_looked_for_among_the_files_of_this_one() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n";
    let source = "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\n";
    let fixture = Fixture::new(&[
        ("localhost:shop/a.yaml", account),
        ("rhumb.yaml", &format!("{source}spec: {{git: {{url: 'localhost:shop'}}}}\n")),
        ("here.yaml", &format!("{source}spec: {{git: {{url: './localhost:shop'}}}}\n")),
    ]);
    for line in ["init --quiet .", "add a.yaml", "commit --quiet --message=a"] {
        let mut git = Command::new("git");
        git.current_dir(fixture.path().join("localhost:shop")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.args(["-c", "user.name=A Person", "-c", "user.email=person@example.com"]);
        assert!(git.args(line.split(' ')).status().unwrap().success(), "{line}");
    }
    let printed_roles = fixture.run("rbac --config here.yaml");
    assert!(printed_roles.contains("- serviceaccounts\n"), "{printed_roles}");
    // No server answers there, or none that is known.
    let printed_roles = fixture.run("rbac --config rhumb.yaml");
    assert!(
        !printed_roles.contains("serviceaccounts") && printed_roles.contains("localhost:shop: "),
        "{printed_roles}"
    );
}

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster").join(name)).unwrap()
}

fn documents(text: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(text).map(|one| Value::deserialize(one).unwrap()).collect()
}

/// Returns each right of all roles, with its scope. A role that has to be bound in a namespace is
/// bound in `shop`.
fn granted(text: &str) -> BTreeSet<String> {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut found = BTreeSet::new();
    for role in documents(text) {
        let metadata = &role["metadata"];
        let place = match (role["kind"].as_str(), metadata["name"].as_str()) {
            (Some("Role"), _) => metadata["namespace"].as_str().unwrap(),
            (Some("ClusterRole"), Some("rhumb-managed")) => "shop",
            (Some("ClusterRole"), _) => "everywhere",
            _ => continue,
        };
        for rule in role["rules"].as_array().unwrap() {
            let names = words(&rule["resourceNames"]).join(",");
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    let right = |verb| format!("{place}: {verb} {resource}.{group} {names}");
                    found.extend(words(&rule["verbs"]).into_iter().map(right));
                }
            }
        }
    }
    found
}

/// Returns the configuration of the example, with a source that holds one object of each of these
/// kinds.
fn beside(kinds: &[(&str, &str)]) -> Fixture {
    let objects: Vec<String> = kinds
        .iter()
        .map(|(api, kind)| {
            let steps = if *api == "apps/v1" { ", annotations: {rhumb.dev/steps: '1'}" } else { "" };
            format!("---\napiVersion: {api}\nkind: {kind}\nmetadata: {{name: all{steps}}}\n")
        })
        .collect();
    let config = documents(&example("deployment.yaml"));
    let config = config.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let config = config["data"]["rhumb.yaml"].as_str().unwrap();
    let source = "---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: all}\n\
                  spec: {directory: all, namespace: shop}\n";
    Fixture::new(&[("all/all.yaml", &*objects.concat()), ("rhumb.yaml", &format!("{config}{source}"))])
}

/// The kinds of the example.
const KINDS: [(&str, &str); 12] = [
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
];

/// Returns the roles for the account of the example.
fn printed(fixture: &Fixture) -> String {
    let line = "rbac --config rhumb.yaml --service-account rhumb-system/rhumb";
    let output = fixture.command(line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_for_a_cluster_grants_what_is_printed_and_says_what_the_rest_amounts_to() {
    let given = example("rbac.yaml");
    let printed_roles = printed(&beside(&KINDS));
    assert!(!printed_roles.contains("WARNING"), "{printed_roles}");
    let missing: Vec<String> = granted(&printed_roles).difference(&granted(&given)).cloned().collect();
    assert_eq!(missing, [""; 0], "as it is");
    let more = [("v1", "Secret"), ("v1", "Namespace"), ("networking.k8s.io/v1", "Ingress")];
    let printed_roles = printed(&beside(&[&KINDS[..], &more].concat()));
    let taken_up = given.replace("  # - apiGroups", "  - apiGroups");
    let taken_up = taken_up.replace("  #   resources", "    resources").replace("  #   verbs", "    verbs");
    // The kinds of its sources are not known before, so it proves that one of others is gone.
    let proof = ["customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"];
    let proof = proof.map(|kind| format!("everywhere: list {kind} "));
    let expected: BTreeSet<String> = granted(&printed_roles).into_iter().chain(proof).collect();
    let differing: Vec<String> = granted(&taken_up).symmetric_difference(&expected).cloned().collect();
    assert_eq!(differing, [""; 0], "with the lines that are taken up");
    let comments = given.lines().filter_map(|line| line.trim_start().strip_prefix("# "));
    let comments = comments.collect::<Vec<_>>().join(" ");
    let warnings: Vec<&str> =
        printed_roles.lines().filter_map(|line| line.strip_prefix("# WARNING: to ")).collect();
    assert_eq!(warnings.len(), 2, "{printed_roles}");
    for warning in warnings {
        let words = warning.split(" (in ").next().unwrap();
        assert!(comments.contains(words), "`{words}` is not said: {comments}");
    }
}

#[test]
fn kinds_that_are_patterns_are_refused_and_named() {
    #[track_caller]
    fn check(fixture: &Fixture, line: &str, code: i32, expected: &str) {
        let output = fixture.command(line).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    for (version, kind, expected) in [
        ("v1", "*", "all.yaml:2: a kind has at most 63 letters"),
        ("v1", "*/*", "all.yaml:2: a kind has at most 63 letters"),
        ("*/*", "Secret", "all.yaml:1: apiVersion names a group and a version"),
        ("apps/*", "Deployment", "all.yaml:1: apiVersion names a group and a version"),
    ] {
        let text = format!("apiVersion: '{version}'\nkind: '{kind}'\nmetadata: {{name: all}}\n");
        check(&Fixture::new(&[("herd/all.yaml", &*text)]), "rbac herd", 2, expected);
    }
    for kind in ["*", "*/*"] {
        let source = format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: herd}}\nspec: {{directory: herd, \
             allow: {{kinds: ['{kind}']}}}}\n"
        );
        let fixture = Fixture::new(&[TWO[1], ("rhumb.yaml", &*source)]);
        let expected = format!("all of a group, found the text `{kind}`");
        check(&fixture, "rbac --config rhumb.yaml", 78, &expected);
    }
}
