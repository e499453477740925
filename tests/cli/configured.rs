//! The commands that look once, with a configuration, as far as that needs no cluster.

use std::process::Command;

use crate::fixture::Fixture;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\n";

const FILES: &[(&str, &str)] = &[
    (
        "rhumb.yaml",
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\nspec:\n  directory: shop\n  namespace: shop\n  \
         allow: {namespaces: [shop], kinds: [ConfigMap, apps/*]}\n---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\n\
         metadata: {name: ops}\nspec: {directory: ops, observe: true}\n",
    ),
    (
        "one.yaml",
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\nspec: {directory: shop, allow: {kinds: [Secret]}}\n",
    ),
    (
        "bad.yaml",
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\nspec: {directry: shop}\n",
    ),
    (
        "shop/all.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: other}\n---\napiVersion: v1\nkind: Namespace\n\
         metadata: {name: shop}\n",
    ),
    ("ops/key.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\n"),
    ("other/env.yaml", MAP),
];

/// Fails unless a command ends with this code and each of these texts, and prints none of the
/// others.
#[track_caller]
fn check(fixture: &Fixture, line: &str, code: i32, said: &[&str], unsaid: &[&str]) {
    let printed = fixture.run(line);
    assert!(printed.ends_with(&format!("--- exit code {code}")), "{printed}");
    for text in said {
        assert!(printed.contains(text), "no {text:?} in {printed}");
    }
    for text in unsaid {
        assert!(!printed.contains(text), "{text:?} in {printed}");
    }
}

#[test]
fn validate_holds_each_source_against_what_it_may_have() {
    let fixture = Fixture::new(FILES);
    let refused = [
        "shop/all.yaml:5:1: error: Secret shop/key is not allowed: the kind Secret",
        "shop/all.yaml:9:1: error: Deployment other/web is not allowed: the namespace other",
        "shop/all.yaml:13:1: error: Namespace shop is not allowed",
        "4 objects in 1 file: 3 errors",
    ];
    let both = ["\nsource shop\n", "\nsource ops\n", "1 object in 1 file: no errors"];
    check(&fixture, "validate --config rhumb.yaml", 1, &[&refused[..], &both].concat(), &["env is not"]);
    check(&fixture, "validate --config rhumb.yaml --source shop", 1, &refused, &both);
    // The older name of the flag.
    check(&fixture, "validate --config rhumb.yaml --name shop", 1, &refused, &both);
    check(&fixture, "validate -c rhumb.yaml --source ops", 0, &both[2..], &both[..2]);
    check(&fixture, "validate -c rhumb.yaml --source shop other", 0, &["1 object in 1 file: no errors"], &[]);
    let expected = ["other/env.yaml:1:1: error: ConfigMap default/env is not allowed"];
    check(&fixture, "validate --config one.yaml other", 1, &expected, &[]);
}

#[test]
fn a_variable_that_nobody_fills_in_is_an_error_but_where_variables_are_put_in() {
    let source = |keys: &str| {
        let head =
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: web}\nspec:\n  directory: web\n";
        format!("{head}{keys}")
    };
    let object = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: '${TYPE:-ClusterIP}'}\n";
    let fixture = Fixture::new(&[
        ("web/service.yaml", object),
        ("literal.yaml", &source("")),
        ("defaults.yaml", &source("  substitute: {}\n")),
    ]);
    let fault =
        "web/service.yaml:1:1: error: spec.type contains the variable ${TYPE}, which nobody has filled in";
    for line in ["validate web", "validate --config literal.yaml", "validate --config literal.yaml web"] {
        check(&fixture, line, 1, &[fault, "1 object in 1 file: 1 error"], &[]);
    }
    check(&fixture, "render --config literal.yaml", 1, &["type: ${TYPE:-ClusterIP}", fault], &[]);
    for line in ["validate --config defaults.yaml", "validate --config defaults.yaml web"] {
        check(&fixture, line, 0, &["1 object in 1 file: no errors"], &[]);
    }
    check(&fixture, "render --config defaults.yaml", 0, &["type: ClusterIP"], &["TYPE"]);
}

#[test]
fn what_is_beside_a_folder_in_no_work_tree_is_not_read_and_why_is_reported() {
    let fixture = Fixture::new(&[
        ("web/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: []\n"),
    ]);
    let said = [
        "web/kustomization.yaml:1:13: error: resources: the path leaves the folder that is read: ../base",
        "hint: this folder is in no git work tree, so nothing beside it is read: name a folder that holds all",
    ];
    check(&fixture, "validate web", 1, &said, &["repository"]);
}

#[test]
fn validate_takes_the_newest_commit_of_a_repository_and_its_signature() {
    let spec = |settings: &str| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: shop}}\nspec:\n  git: {{url: ., path: shop{settings}}}\n"
        )
    };
    let key =
        "ann@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFP5m7bZ5vQ3mGYGkqUeeEYwAcwbqvWtUQ0vmfVQ4VwN\n";
    let fixture = Fixture::new(&[
        ("shop/env.yaml", MAP),
        ("rhumb.yaml", &spec("")),
        ("signed.yaml", &spec(", verify: {keys: signers}")),
        ("signers", key),
    ]);
    for words in [&["init", "--quiet"][..], &["add", "shop"], &["commit", "--quiet", "--message=Begin"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]).args(words);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(fixture.path());
        assert!(git.status().unwrap().success());
    }
    std::fs::write(fixture.path().join("shop/env.yaml"), "not: [read").unwrap();
    let path = std::env::var("PATH").unwrap();
    for (file, code, text) in [
        ("rhumb.yaml", 0, "1 object in 1 file: no errors"),
        ("signed.yaml", 2, "is refused: it has no SSH signature; only what is signed by a key of"),
    ] {
        let output =
            fixture.command(&format!("validate --config {file}")).env("PATH", &path).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(text), "{stderr}");
    }
}

#[test]
fn what_is_meant_must_be_plain() {
    let fixture = Fixture::new(FILES);
    for (line, code, said) in [
        ("diff --config bad.yaml", 78, &["unknown key `directry`"][..]),
        ("apply --config bad.yaml", 78, &["unknown key `directry`"]),
        ("validate --config none.yaml", 78, &["cannot read none.yaml"]),
        ("diff --config rhumb.yaml --source web", 2, &["rhumb.yaml has no source web", "it has shop, ops"]),
        (
            "diff --config rhumb.yaml other",
            2,
            &["rhumb.yaml has several", "choose one with --source: shop, ops"],
        ),
        ("diff --config rhumb.yaml -f other", 2, &["rhumb.yaml has several"]),
        ("validate --config rhumb.yaml other", 2, &["rhumb.yaml has several"]),
        ("diff --config one.yaml shop.git", 2, &["no such file or directory"]),
        (
            "diff --config one.yaml https://git.example.org/shop.git",
            2,
            &["the file says where its sources are"],
        ),
        ("diff --config rhumb.yaml --source ops web", 2, &["web: no such file or directory"]),
        ("diff --config rhumb.yaml --ref main", 2, &["'--config <FILE>' cannot be used with '--ref <REF>'"]),
        ("diff --source shop", 2, &["--config <FILE>"]),
        ("apply --config rhumb.yaml", 2, &["one source is applied at a time", "--source: shop, ops"]),
        ("apply --config rhumb.yaml --source ops", 2, &["source ops only observes, so nothing is applied"]),
        ("apply --config one.yaml other", 2, &["a source is applied from its own location only"]),
        ("apply --config one.yaml -f other", 2, &["a source is applied from its own location only"]),
        ("apply --config one.yaml --prune", 2, &["'--config <FILE>' cannot be used with '--prune'"]),
    ] {
        check(&fixture, line, code, said, &[]);
    }
    std::fs::rename(fixture.path().join("shop"), fixture.path().join("deploy")).unwrap();
    let hint = ["shop: no such file or directory", "hint: --source shop is the source of that name"];
    check(&fixture, "diff --config one.yaml shop", 2, &hint, &[]);
}

#[test]
fn validate_names_dependencies_that_no_source_has() {
    let map = |name: &str, on: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: shop\n  annotations:\n    \
             rhumb.dev/depends-on: {on}\n"
        )
    };
    let (near, far) = (map("a", "ConfigMap/env"), map("b", "ConfigMap/gone"));
    let sources = |folders: &[&str]| {
        let one = |name: &&str| {
            format!(
                "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec: {{directory: {name}, \
                 namespace: shop}}\n"
            )
        };
        folders.iter().map(one).collect::<Vec<_>>().join("---\n")
    };
    let fixture = Fixture::new(&[
        ("good.yaml", &sources(&["web", "env"])),
        ("bad.yaml", &sources(&["web", "env", "far"])),
        ("web/a.yaml", &near),
        ("env/env.yaml", MAP),
        ("far/b.yaml", &far),
        ("far/bad/broken.yaml", "a: [\n"),
        ("far/.rhumbignore", "bad\n"),
    ]);
    let absent =
        "far/b.yaml:1:1: error: ConfigMap shop/b: it depends on ConfigMap shop/gone, which no source names";
    check(&fixture, "validate --config good.yaml", 0, &["no errors"], &["it depends on"]);
    check(&fixture, "validate --config bad.yaml", 1, &[absent], &["shop/a: it"]);
    // Another source may have it.
    let warning =
        "web/a.yaml:1:1: warning: ConfigMap shop/a: it depends on ConfigMap shop/env, which is not among";
    check(&fixture, "validate web", 0, &[warning], &[]);
    check(&fixture, "validate --config good.yaml --source web", 0, &[warning], &[]);
    // The missing object may be in the file that cannot be read.
    std::fs::remove_file(fixture.path().join("far/.rhumbignore")).unwrap();
    check(&fixture, "validate --config bad.yaml", 1, &["far/bad/broken.yaml"], &["it depends on"]);
}
