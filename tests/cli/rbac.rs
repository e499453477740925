//! The roles that `rhumb rbac` prints, without a cluster.

use std::process::Command;

use crate::bed::Bed;

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
    let told = Bed::new(TWO).run("rbac --config rhumb.yaml");
    let guessed: Vec<&str> = told.lines().filter(|line| line.contains("is a guess")).collect();
    assert!(matches!(guessed[..], [line] if line.ends_with(": Yak.example.org")), "{told}");
    assert!(!told.contains("oxes"), "{told}");
    // It lives in a namespace, as its definition says: there alone it is written.
    let role =
        told.split("---\n").find(|role| role.contains("kind: Role\n") && role.contains("namespace: farm\n"));
    assert!(role.is_some_and(|role| role.contains("- oxen\n") && role.contains("- create\n")), "{told}");
}

#[test]
fn what_is_printed_can_be_deleted_and_takes_no_inventory_along() {
    let told = Bed::new(TWO).run("rbac --config rhumb.yaml --user rhumb");
    assert!(!told.contains("kind: Namespace\n"), "{told}");
    let before = told.lines().find(|line| line.starts_with("# These namespaces must be there before"));
    assert!(before.is_some_and(|line| line.ends_with(": farm, rhumb-system")), "{told}");
}

#[test]
fn a_host_in_a_configuration_is_not_looked_for_among_the_files_of_this_one() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n";
    let source = "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\n";
    let bed = Bed::new(&[
        ("localhost:shop/a.yaml", account),
        ("rhumb.yaml", &format!("{source}spec: {{git: {{url: 'localhost:shop'}}}}\n")),
        ("here.yaml", &format!("{source}spec: {{git: {{url: './localhost:shop'}}}}\n")),
    ]);
    for line in ["init --quiet .", "add a.yaml", "commit --quiet --message=a"] {
        let mut git = Command::new("git");
        git.current_dir(bed.path().join("localhost:shop")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.args(["-c", "user.name=A Person", "-c", "user.email=person@example.com"]);
        assert!(git.args(line.split(' ')).status().unwrap().success(), "{line}");
    }
    let told = bed.run("rbac --config here.yaml");
    assert!(told.contains("- serviceaccounts\n"), "{told}");
    // No server answers there, or none that is known.
    let told = bed.run("rbac --config rhumb.yaml");
    assert!(!told.contains("serviceaccounts") && told.contains("localhost:shop: "), "{told}");
}
