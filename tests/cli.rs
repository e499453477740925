//! The `rhumb` program as a person meets it: what it prints where, and how it ends. Needs no
//! cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it did not expect")]

#[path = "cli/chart_credentials.rs"]
mod chart_credentials;
#[path = "cli/configured.rs"]
mod configured;
#[path = "cli/dist.rs"]
mod dist;
#[path = "cli/fixture.rs"]
mod fixture;
#[path = "cli/lock.rs"]
mod lock;
#[path = "cli/notify.rs"]
mod notify;
#[path = "cli/old_git.rs"]
mod old_git;
#[path = "cli/pipes.rs"]
mod pipes;
#[path = "cli/rbac.rs"]
mod rbac;
#[path = "cli/running.rs"]
mod running;
#[path = "cli/screen.rs"]
mod screen;
#[path = "cli/wrong.rs"]
mod wrong;

use std::fs;

use insta::assert_snapshot;

use fixture::Fixture;

const SHOP: &[(&str, &str)] = &[
    (
        "shop/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  \"on\": \"0644\"\n  motd: |\n    Hello\n",
    ),
    (
        "shop/web.json",
        r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1e1}}"#,
    ),
    (
        "shop/rights.yml",
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}\n- {apiVersion: v1, kind: Secret, metadata: {name: web}, stringData: {on: yes}}\n",
    ),
    ("shop/.hidden.yaml", "not: [read"),
    ("shop/notes.yaml", "not: [read"),
    ("shop/.rhumbignore", "notes.yaml\n"),
];

const BROKEN: &[(&str, &str)] = &[
    ("shop/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
    ("shop/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  name: c\n"),
    ("shop/c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [1\n"),
    ("shop/d.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"),
    ("shop/e.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, namespace: shop}\n"),
    ("shop/helm/Chart.yaml", "name: shop\n"),
];

#[test]
fn help_is_a_page_for_each_command() {
    let fixture = Fixture::new(&[]);
    let pages = [
        "",
        "run",
        "diff",
        "apply",
        "validate",
        "render",
        "lock",
        "prune",
        "prune list",
        "prune confirm",
        "rollout",
        "rollout status",
        "rollout history",
        "rollout undo",
        "rollout retry",
        "rollout pause",
        "rollout resume",
        "rollout promote",
        "rollout abort",
        "rollout restart",
        "status",
        "top",
        "events",
        "check",
        "uninstall",
        "rbac",
        "debug",
        "debug replay",
        "why",
        "hold",
        "release",
        "version",
    ];
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("cli");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for page in pages {
        let name = format!("help {page}").trim().replace(' ', "-");
        let text = fixture.run(format!("{page} --help").trim());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "a line is too wide in {name}");
        settings.bind(|| assert_snapshot!(name, text));
    }
}

#[test]
fn a_command_ends_with_the_code_that_its_help_names() {
    let kubeconfig = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, \
                      user: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: a}]}";
    let fixture = Fixture::new(&[SHOP[0], ("unreachable", kubeconfig), ("wrong.yaml", "kind: None\n")]);
    let check = |line: &str, code: i32| {
        let output = fixture.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
    };
    check("check shop --kubeconfig unreachable", 1);
    check("check nowhere", 2);
    check("check --config wrong.yaml", 78);
    check("uninstall --sources shop", 2);
    check("uninstall --kubeconfig unreachable", 3);
    check("rollout status --kubeconfig unreachable", 3);
    check("rollout undo web", 2);
    check("prune list --kubeconfig unreachable", 3);
}

#[test]
fn the_version_is_one_line() {
    for line in ["version", "--version"] {
        let expected = format!("$ rhumb {line}\nrhumb {}\n--- exit code 0", env!("CARGO_PKG_VERSION"));
        assert_eq!(Fixture::new(&[]).run(line), expected);
    }
}

#[test]
fn rendering_shows_objects_as_kubernetes_reads_them() {
    let fixture = Fixture::new(SHOP);
    assert_snapshot!(fixture.run("render shop"), @r#"
    $ rhumb render shop
    apiVersion: v1
    data:
      motd: |
        Hello
      'on': '0644'
    kind: ConfigMap
    metadata:
      name: web
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      name: web
    ---
    apiVersion: v1
    kind: Secret
    metadata:
      name: web
    stringData:
      'true': '<masked>'
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: web
    spec:
      replicas: 10
    --- standard error
    shop/rights.yml:5:70: warning: an unquoted yes, no, on, off, y or n is a boolean here
      hint: write true or false, or quote it: other readers, kustomize among them, take it for text
    shop/rights.yml:5:74: error: stringData: the value of "true" must be text, and this is a boolean
      hint: put it in quotes
    --- exit code 1
    "#);
    assert_snapshot!(fixture.run("render shop/web.json -o json"), @r#"
    $ rhumb render shop/web.json -o json
    {
      "objects": [
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "name": "web"
          },
          "spec": {
            "replicas": 10
          }
        }
      ],
      "diagnostics": []
    }
    --- exit code 0
    "#);
    assert_snapshot!(fixture.run_with_input("render -", "{apiVersion: v1, kind: Pod, metadata: {name: a}}"), @r"
    $ rhumb render -
    apiVersion: v1
    kind: Pod
    metadata:
      name: a
    --- exit code 0
    ");
}

#[test]
fn rendering_tells_what_it_could_not_read() {
    let fixture = Fixture::new(BROKEN);
    assert_snapshot!(fixture.run("render shop"), @r#"
    $ rhumb render shop
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: a
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: c
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: a
      namespace: default
    ---
    apiVersion: v1
    kind: Namespace
    metadata:
      name: shop
      namespace: shop
    --- standard error
    shop/b.yaml:5:3: error: key "name" is given twice in this mapping: first in line 4, again in line 5
        name: c
        ^
      hint: remove one of the two: kubectl would silently use the later
    shop/c.yaml:4:7: error: this is not YAML: `[` is never closed by `]`
        data: [1
              ^
    shop/helm/Chart.yaml: error: version must be a text, and is missing or none
      hint: `helm lint` on this folder says all that helm does not take
    --- exit code 1
    "#);
    assert_snapshot!(fixture.run("render shop/c.yaml -o json"), @r#"
    $ rhumb render shop/c.yaml -o json
    {
      "objects": [],
      "diagnostics": [
        {
          "file": "shop/c.yaml",
          "line": 4,
          "column": 7,
          "severity": "error",
          "code": "yaml-syntax",
          "message": "this is not YAML: `[` is never closed by `]`",
          "hint": null
        }
      ]
    }
    --- exit code 1
    "#);
}

#[test]
fn validation_finds_everything_at_once() {
    assert_snapshot!(Fixture::new(BROKEN).run("validate shop"), @r#"
    $ rhumb validate shop
    shop/a.yaml:1:1: error: ConfigMap default/a is defined twice: here and at shop/d.yaml:1
      hint: remove one of the two: neither is applied
    shop/b.yaml:5:3: error: key "name" is given twice in this mapping: first in line 4, again in line 5
        name: c
        ^
      hint: remove one of the two: kubectl would silently use the later
    shop/c.yaml:4:7: error: this is not YAML: `[` is never closed by `]`
        data: [1
              ^
    shop/d.yaml:1:1: error: ConfigMap default/a is defined twice: here and at shop/a.yaml:1
      hint: remove one of the two: neither is applied
    shop/e.yaml:1:1: warning: Namespace shop lives in no namespace: "shop" is left out
      hint: remove metadata.namespace
    shop/helm/Chart.yaml: error: version must be a text, and is missing or none
      hint: `helm lint` on this folder says all that helm does not take
    --- standard error
    4 objects in 5 files: 5 errors, 1 warning
    --- exit code 1
    "#);
    assert_snapshot!(Fixture::new(SHOP).run("validate shop"), @r#"
    $ rhumb validate shop
    shop/rights.yml:5:70: warning: an unquoted yes, no, on, off, y or n is a boolean here
      hint: write true or false, or quote it: other readers, kustomize among them, take it for text
    shop/rights.yml:5:74: error: stringData: the value of "true" must be text, and this is a boolean
      hint: put it in quotes
    --- standard error
    4 objects in 3 files: 1 error, 1 warning
    --- exit code 1
    "#);
    assert_snapshot!(Fixture::new(SHOP).run("validate ./shop/web.json"), @r"
    $ rhumb validate ./shop/web.json
    --- standard error
    1 object in 1 file: no errors
    --- exit code 0
    ");
    assert_snapshot!(Fixture::new(&[]).run_with_input("validate -", "kind: Pod\n"), @r"
    $ rhumb validate -
    <stdin>:1:1: error: apiVersion is missing: this is no Kubernetes object
        kind: Pod
        ^
      hint: add it, or list the file in .rhumbignore if it is not meant for the cluster
    --- standard error
    0 objects in 1 file: 1 error
    --- exit code 1
    ");
}

#[test]
fn warnings_are_no_errors() {
    let fixture = Fixture::new(&BROKEN[4..5]);
    assert_snapshot!(fixture.run("validate ."), @r#"
    $ rhumb validate .
    shop/e.yaml:1:1: warning: Namespace shop lives in no namespace: "shop" is left out
      hint: remove metadata.namespace
    --- standard error
    1 object in 1 file: 1 warning
    --- exit code 0
    "#);
}

#[test]
fn what_is_not_there_cannot_be_read() {
    let fixture = Fixture::new(&[("empty/readme.md", "")]);
    assert_snapshot!(fixture.run("validate nowhere"), @r"
    $ rhumb validate nowhere
    --- standard error
    error: nowhere: no such file or directory
    hint: a path or a git URL is wanted here, not the name of a source
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("render empty"), @r"
    $ rhumb render empty
    --- standard error
    error: empty: no *.yaml, *.yml or *.json file in it
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("diff nowhere"), @r"
    $ rhumb diff nowhere
    --- standard error
    error: nowhere: no such file or directory
    hint: a path or a git URL is wanted here, not the name of a source
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("run empty/readme.md"), @r"
    $ rhumb run empty/readme.md
    --- standard error
    error: empty/readme.md is a file, and a source is a directory
    hint: name its directory; `rhumb diff`, `rhumb apply` and `rhumb validate` take single files
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("apply empty/readme.md --prune"), @r"
    $ rhumb apply empty/readme.md --prune
    --- standard error
    error: --prune needs a whole source, and single files are a part of one
    hint: name the directory of all files, or leave --prune out
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("apply -f empty/none.yaml"), @r"
    $ rhumb apply -f empty/none.yaml
    --- standard error
    error: empty/none.yaml: no such file or directory
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("run gopher://host/shop"), @r"
    $ rhumb run gopher://host/shop
    --- standard error
    error: gopher://host/shop: not a source: its scheme is not known: use https://, ssh://, git@host:path or a path
    --- exit code 2
    ");
}

#[test]
fn wrong_usage_is_explained() {
    let fixture = Fixture::new(SHOP);
    assert_snapshot!(fixture.run("dif shop"), @r"
    $ rhumb dif shop
    --- standard error
    error: unrecognized subcommand 'dif'

      tip: a similar subcommand exists: 'diff'

    Usage: rhumb [OPTIONS] <COMMAND>

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("diff"), @r"
    $ rhumb diff
    --- standard error
    error: the following required arguments were not provided:
      <SOURCE>

    Usage: rhumb diff [OPTIONS] <SOURCE>
           rhumb diff [OPTIONS] --filename <FILE>
           rhumb diff [OPTIONS] --config <FILE> [--source <NAME> [SOURCE]]
           rhumb diff [OPTIONS] --from <REV> [--to <REV>] [SOURCE]

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("diff shop -o jsn"), @r"
    $ rhumb diff shop -o jsn
    --- standard error
    error: invalid value 'jsn' for '--output <FORM>'
      [possible values: text, unified, json, name]

      tip: a similar value exists: 'json'

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("diff shop --ref main"), @r"
    $ rhumb diff shop --ref main
    --- standard error
    error: shop is in no git repository, so --ref means nothing
    hint: name a repository as SOURCE, and a folder in it with --path
    --- exit code 2
    ");
}

#[test]
fn commands_of_other_tools_are_translated() {
    let tip = |word: &str| Fixture::new(&[]).run(word);
    let delete = tip("delete");
    assert!(delete.contains("tip: `rhumb apply --prune` deletes objects that left a source"), "{delete}");
    for word in ["delete", "generat", "get", "sync"] {
        let printed = tip(word);
        assert!(!printed.contains("'generate'"), "a hidden command is no tip: {printed}");
    }
}

// Without a `=` it is taken for a source.
#[test]
fn a_timeout_apart_from_its_flag_is_explained() {
    let fixture = Fixture::new(SHOP);
    for line in [
        "apply --wait 5m",
        "apply shop --wait 5m",
        "apply --wait 5m shop",
        "apply -f shop/web.json --wait 5m",
    ] {
        let printed = fixture.run(line);
        assert!(printed.contains("write the timeout behind `=`: --wait=5m"), "{printed}");
        assert!(printed.ends_with("--- exit code 2"), "{printed}");
    }
}

#[test]
fn wrong_values_are_explained() {
    let fixture = Fixture::new(SHOP);
    assert_snapshot!(fixture.run("diff shop --path ../secret"), @r"
    $ rhumb diff shop --path ../secret
    --- standard error
    error: invalid value '../secret' for '--path <PATH>': not a relative path that stays inside the repository

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("apply shop --wait=never"), @r"
    $ rhumb apply shop --wait=never
    --- standard error
    error: invalid value 'never' for '--wait[=<TIMEOUT>]': not a duration longer than nothing (for example 90s, 5m, 1h30m or 500ms)

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("apply shop --adopt sometimes"), @r"
    $ rhumb apply shop --adopt sometimes
    --- standard error
    error: invalid value 'sometimes' for '--adopt <POLICY>': none of never, if-unowned, always

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("apply shop --blast-radius 200% -n Shop"), @r"
    $ rhumb apply shop --blast-radius 200% -n Shop
    --- standard error
    error: invalid value '200%' for '--blast-radius <BOUND>': not a count (10) or a percentage from 0% to 100% (10%)

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("run shop --interval 5m"), @r"
    $ rhumb run shop --interval 5m
    --- standard error
    error: shop is a directory: it is watched, not asked
    hint: leave --interval out
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("prune confirm web"), @r"
    $ rhumb prune confirm web
    --- standard error
    error: invalid value 'web' for '[OBJECT]...': not an object's name (for example shop/deployment.apps/web or namespace/shop)

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("version --log-level loud=very"), @r#"
    $ rhumb version --log-level loud=very
    --- standard error
    error: wrong log level `loud=very`: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
    hint: use error, warn, info, debug or trace, or directives as rhumb=debug,kube=info
    --- exit code 2
    "#);
}

#[test]
fn a_configuration_is_wrong_in_all_its_places() {
    let text = "\
apiVersion: rhumb.dev/v1alpha1
kind: Configuration
resnyc: 5m
api: {qps: -1}
---
apiVersion: rhumb.dev/v1alpha1
kind: Source
metadata:
  name: Shop
spec:
  git:
    url: https://ann:hunter2@git.example.org/shop.git
    intervall: 1 minute
  directory: 12
";
    let fixture = Fixture::new(&[("rhumb.yaml", text)]);
    assert_snapshot!(fixture.run("run --config rhumb.yaml"), @r#"
    $ rhumb run --config rhumb.yaml
    --- standard error
    rhumb.yaml:3:1: error: unknown key `resnyc`
        resnyc: 5m
        ^
      hint: did you mean `resync`?
    rhumb.yaml:4:12: error: expected a whole number from 1, found -1
        api: {qps: -1}
                   ^
    rhumb.yaml:9:9: error: expected a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends, found the text `Shop`
        name: Shop
              ^
    rhumb.yaml:13:5: error: unknown key `intervall`
        intervall: 1 minute
        ^
      hint: did you mean `interval`?
    rhumb.yaml:14:14: error: expected text, found 12
        directory: 12
                   ^
      hint: write it in quotes: "12"
    error: rhumb.yaml is no usable configuration: 5 errors
    --- exit code 78
    "#);
}

/// Writes each line of the daemon as JSON then, to its last word.
#[test]
fn flags_are_taken_before_and_after_the_command() {
    let fixture = Fixture::new(&[("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")]);
    for line in [
        "--kubeconfig k --context c -n shop --source shop -v validate a.yaml",
        "validate --kubeconfig k --context c -n shop --source shop -v a.yaml",
        "validate --kubeconfig k a.yaml --state-directory s --system-namespace x",
    ] {
        let shown = fixture.run(line);
        assert!(shown.ends_with("1 object in 1 file: no errors\n--- exit code 0"), "{shown}");
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let fixture = Fixture::new(BROKEN);
    let escapes = |line: &str| fixture.run(line).contains('\u{1b}');
    assert!(!escapes("validate shop"));
    assert!(!escapes("validate shop --color never"));
    assert!(escapes("validate shop --color always"));
    assert!(escapes("validate nowhere --color always"));
}

#[test]
fn nothing_is_left_behind() {
    let fixture = Fixture::new(SHOP);
    fixture.run("validate shop");
    fixture.run("render shop");
    let left: Vec<_> =
        fs::read_dir(fixture.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["shop"]);
}
