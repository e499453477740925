//! The commands' outputs and exit codes as scripts rely on them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::support::{Folder, Repo, TestNamespace, yaml};

/// Fails unless a value has exactly these members.
#[track_caller]
fn members(value: &Value, expected: &[&str]) {
    let shown: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(shown, expected.iter().copied().collect(), "{value:#}");
}

/// The members of each object of a plan. One with a reason has a code too, and its values.
const OBJECT_KEYS: [&str; 12] = [
    "group",
    "version",
    "kind",
    "namespace",
    "name",
    "file",
    "line",
    "wave",
    "action",
    "impact",
    "fields",
    "reason",
];

/// Fails unless a plan has the form that the schema promises.
#[track_caller]
fn is_a_plan(plan: &Value) {
    let keys = ["schema", "source", "revision", "complete", "objects", "units", "diagnostics", "summary"];
    members(plan, &keys);
    assert_eq!(plan["schema"], "rhumb.dev/plan/v1");
    assert!(plan["revision"].is_string() && plan["complete"].is_boolean(), "{plan:#}");
    let actions = ["create", "configure", "unchanged", "delete", "recreate", "wait", "refuse"];
    let objects = plan["objects"].as_array().unwrap();
    for object in objects {
        let coded = ["code", "details"].into_iter().filter(|key| !object[key].is_null());
        members(object, &OBJECT_KEYS.into_iter().chain(coded).collect::<Vec<_>>());
        assert!(actions.contains(&object["action"].as_str().unwrap()), "{object:#}");
        members(&object["impact"], &["kind", "pods"]);
        let impacts = ["none", "in-place", "scale", "restart", "recreate"];
        assert!(impacts.contains(&object["impact"]["kind"].as_str().unwrap()), "{object:#}");
        for field in object["fields"].as_array().unwrap() {
            members(field, &["path", "before", "after"]);
        }
    }
    for diagnostic in plan["diagnostics"].as_array().unwrap() {
        members(diagnostic, &["file", "line", "column", "severity", "code", "message", "hint"]);
    }
    for unit in plan["units"].as_array().unwrap() {
        members(unit, &["wave", "objects", "restarts"]);
        members(&unit["restarts"], &["workloads", "pods"]);
    }
    members(&plan["summary"], &[&actions[..], &["restarts"]].concat());
    members(&plan["summary"]["restarts"], &["workloads", "pods"]);
    for action in actions {
        let count = objects.iter().filter(|object| object["action"] == action).count();
        assert_eq!(plan["summary"][action], json!(count), "{action} in {plan:#}");
    }
}

fn object<'a>(plan: &'a Value, name: &str) -> &'a Value {
    plan["objects"].as_array().unwrap().iter().find(|object| object["name"] == name).unwrap()
}

#[test]
fn the_json_of_diff_and_apply_has_the_form_of_its_schema() {
    let site = TestNamespace::new("json");
    let folder = Folder::new(&[
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("gone.yaml", yaml::config_map("gone", "a", "one")),
        ("same.yaml", yaml::config_map("same", "a", "one")),
        ("web.yaml", yaml::deployment("web", 2, "nginx:1")),
        ("scaled.yaml", yaml::deployment("scaled", 2, "nginx:1")),
    ]);
    let first = site.apply(folder.path(), &["-o", "json", "--wait"]).ends(0);
    is_a_plan(&first.json());
    assert_eq!(first.json()["summary"]["create"], json!(5));
    folder.write("env.yaml", &yaml::config_map("env", "a", "two"));
    folder.write("web.yaml", &yaml::deployment("web", 2, "nginx:2"));
    folder.write("scaled.yaml", &yaml::deployment("scaled", 3, "nginx:1"));
    folder.write("new.yaml", &yaml::config_map("new", "a", "one"));
    folder.write("wrong.yaml", &yaml::config_map("wrong", "a", "one").replace("\ndata:", "\ndataa:"));
    folder.remove("gone.yaml");
    let diff = site.diff(folder.path(), &["-o", "json"]).ends(1).json();
    is_a_plan(&diff);
    assert_eq!((&diff["source"], &diff["complete"]), (&json!("json"), &json!(true)));
    let expected = [
        ("env", "configure", "in-place", 0),
        ("web", "configure", "restart", 2),
        ("scaled", "configure", "scale", 0),
        ("new", "create", "none", 0),
        ("gone", "delete", "none", 0),
        ("same", "unchanged", "none", 0),
        ("wrong", "refuse", "none", 0),
    ];
    assert_eq!(object(&diff, "wrong")["code"], "RefusedByServer");
    for (name, action, impact, pods) in expected {
        let shown = object(&diff, name);
        assert_eq!(shown["action"], action, "{shown:#}");
        if !matches!(name, "scaled" | "new" | "gone") {
            assert_eq!(shown["impact"], json!({"kind": impact, "pods": pods}), "{shown:#}");
        }
    }
    assert_eq!(object(&diff, "env")["fields"], json!([{"path": ".data.a", "before": "one", "after": "two"}]));
    assert_eq!(
        (&object(&diff, "web")["file"], &object(&diff, "web")["line"]),
        (&json!("web.yaml"), &json!(1))
    );
    assert_eq!(object(&diff, "scaled")["impact"]["kind"], "scale");
    let apply = site.apply(folder.path(), &["-o", "json", "--prune"]).ends(1).json();
    is_a_plan(&apply);
    for (name, action) in [("env", "configure"), ("new", "create"), ("gone", "delete"), ("wrong", "refuse")] {
        assert_eq!(object(&apply, name)["action"], action, "{apply:#}");
    }
    // A kind that the server certainly does not have keeps nothing from being pruned.
    folder.write("odd.yaml", "apiVersion: example.org/v1\nkind: Odd\nmetadata: {name: odd}\n");
    folder.remove("new.yaml");
    let diff = site.diff(folder.path(), &["-o", "json"]).ends(1).json();
    is_a_plan(&diff);
    assert_eq!(
        (&object(&diff, "odd")["action"], &object(&diff, "new")["action"]),
        (&json!("wait"), &json!("delete"))
    );
    let apply = site.apply(folder.path(), &["-o", "json", "--prune"]).ends(1).json();
    assert_eq!(
        (&object(&apply, "odd")["action"], &object(&apply, "new")["action"]),
        (&json!("wait"), &json!("delete")),
        "{apply:#}"
    );
}

#[test]
fn a_dry_run_writes_nothing_and_shows_the_plan() {
    let site = TestNamespace::new("dry-run");
    let folder = Folder::new(&[
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("b.yaml", yaml::config_map("b", "a", "one")),
    ]);
    let window = site.window();
    site.apply(folder.path(), &["--dry-run"]).ends(0).says(&["+ ConfigMap dry-run/env", "env.yaml:1"]);
    let json = site.apply(folder.path(), &["--dry-run", "-o", "json"]).ends(0).json();
    is_a_plan(&json);
    assert!(!site.has("ConfigMap", "env") && site.inventory().is_none());
    site.diff(folder.path(), &[]).ends(1);
    assert!(site.inventory().is_none());
    window.assert_silent();
    site.apply(folder.path(), &[]).ends(0);
    folder.remove("b.yaml");
    let window = site.window();
    site.apply(folder.path(), &["--dry-run", "--prune"]).ends(0).says(&["- ConfigMap dry-run/b"]);
    window.assert_silent();
    assert!(site.has("ConfigMap", "b"));
}

#[test]
fn health_counts_only_where_it_is_waited_for() {
    let site = TestNamespace::new("wait");
    let sick = yaml::workload("Deployment", "web", 1, "nginx:1", "{controlplane/never-ready: \"true\"}");
    let folder = Folder::new(&[("web.yaml", sick)]);
    site.apply(folder.path(), &[]).ends(0);
    let late = site.apply(folder.path(), &["--wait=10s"]).ends(5);
    late.says(&["deployment.apps/web", "not healthy"]);
    let (code, shown) =
        on_a_terminal(site.command(&["apply", folder.path().to_str().unwrap(), "--wait=10s"]), "");
    assert_eq!(code, Some(5), "{shown}");
    assert!(shown.contains("deployment.apps/web (wait) waiting: not healthy yet: "), "{shown}");
    folder.write(
        "web.yaml",
        &yaml::workload("Deployment", "web", 2, "nginx:1", "{controlplane/ready-delay: 1s}"),
    );
    site.apply(folder.path(), &["--wait=2m"]).ends(0);
    assert_eq!(site.value("Deployment", "web", "/status/availableReplicas"), json!(2));
}

#[test]
fn exit_codes_tell_what_happened() {
    let site = TestNamespace::new("codes");
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let missing = folder.path().join("nowhere");
    site.diff(folder.path(), &[]).ends(1);
    site.apply(folder.path(), &[]).ends(0);
    site.diff(folder.path(), &[]).ends(0);
    site.apply(&missing, &[]).ends(2);
    site.apply(folder.path(), &["--no-such-flag"]).ends(2);
    site.diff(&missing, &[]).ends(2);
    // Nobody listens on this port.
    let nobody = site.state.path().join("nobody.kubeconfig");
    let text = std::fs::read_to_string(site.kubeconfig()).unwrap();
    let begin = text.find("https://127.0.0.1:").unwrap();
    let port = text[begin + 18..].find(|c: char| !c.is_ascii_digit()).unwrap();
    let server = &text[begin..begin + 18 + port];
    std::fs::write(&nobody, text.replace(server, "https://127.0.0.1:1")).unwrap();
    for command in ["diff", "apply"] {
        let path = folder.path().to_str().unwrap();
        let run = site.rhumb(&[command, path, "--kubeconfig", nobody.to_str().unwrap()]).ends(3);
        run.says(&["error", "the API server at 127.0.0.1:", " cannot be reached"]);
        run.says(&["hint"]);
    }
    let mut stranger: Value = serde_json::from_str(&text).unwrap();
    stranger["users"][0]["user"] = json!({"token": "nobody's"});
    std::fs::write(&nobody, stranger.to_string()).unwrap();
    let run = site.diff(folder.path(), &["--kubeconfig", nobody.to_str().unwrap()]).ends(3);
    run.says(&["error: ", "(401)"]);
    run.says(&["hint: renew the token"]);
    folder.write("odd.yaml", "apiVersion: example.org/v1\nkind: Odd\nmetadata: {name: odd}\n");
    site.apply(folder.path(), &[]).ends(1);
    folder.write("odd.yaml", "kind: [");
    site.apply(folder.path(), &[]).ends(1);
    site.diff(folder.path(), &[]).ends(1);
}

#[test]
fn a_revision_is_applied_by_its_name_and_a_work_tree_as_it_is() {
    let site = TestNamespace::new("revision");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let first = repo.head();
    repo.change("env.yaml", &yaml::config_map("env", "a", "two"));
    repo.write("env.yaml", &yaml::config_map("env", "a", "uncommitted"));
    let check = |flags: &[&str], expected: &str| {
        site.apply(repo.path(), flags).ends(0);
        assert_eq!(site.data("env", "a"), expected);
    };
    check(&[], "uncommitted");
    check(&["--ref", "main"], "two");
    check(&["--ref", &first], "one");
    site.diff(repo.path(), &["--ref", &first]).ends(0);
    // A URL and a bare repository have no files on disk: their newest commit counts.
    let (_bare, bare) = repo.bare();
    let url = format!("file://{}", repo.path().display());
    for place in [url.as_str(), bare.to_str().unwrap()] {
        let diff = site.rhumb(&["diff", place]).ends(1);
        diff.says(&["+", "a: two"]);
    }
    site.diff(repo.path(), &["--ref", "main"]).ends(1).says(&["two"]);
}

#[test]
fn what_no_source_brings_is_foreseen() {
    let site = TestNamespace::new("unnamed");
    let needy = yaml::config_map("needy", "a", "one").replace(
        "  name: needy\n",
        "  name: needy\n  annotations: {rhumb.dev/depends-on: ConfigMap/nowhere}\n",
    );
    let folder = Folder::new(&[("needy.yaml", needy)]);
    let why = "needs ConfigMap unnamed/nowhere, which no source names";
    let diff = site.diff(folder.path(), &[]).ends(1);
    diff.says(&["? ConfigMap unnamed/needy"]);
    diff.says(&["waits: ", why]);
    site.apply(folder.path(), &[]).ends(1).says(&["configmap/needy", "waiting: ", why]);
}

/// Runs a command on a terminal on which somebody has typed this already; its exit code and all it
/// shows.
fn on_a_terminal(mut command: Command, typed: &str) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let open = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    command.stdin(open()).stdout(open()).stderr(open());
    let mut child = command.spawn().unwrap();
    // Its copies of the terminal's other end: reading ends when the program's are closed too.
    drop(command);
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).unwrap();
    let mut shown = Vec::new();
    // The end of a terminal is an error (EIO).
    let _ = master.read_to_end(&mut shown);
    (child.wait().unwrap().code(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_person_at_a_terminal_is_asked_and_nobody_else() {
    let site = TestNamespace::new("asked");
    let names: Vec<String> = (0..12).map(|n| format!("c{n:02}")).collect();
    let folder = Folder::new(
        &names
            .iter()
            .map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "one")))
            .collect::<Vec<_>>(),
    );
    site.apply(folder.path(), &[]).ends(0);
    names[..6].iter().for_each(|name| folder.remove(&format!("{name}.yaml")));
    let question = "Delete these 6 objects? [y/N]";
    let nobody = site.apply(folder.path(), &["--prune"]).ends(4);
    assert!(!nobody.all().contains("[y/N]"), "{nobody:#?}");
    nobody.says(&["hint: ", "rhumb prune confirm --source asked", "rhumb prune list --source asked"]);
    site.apply(folder.path(), &["--prune", "--dry-run"]).ends(4);
    site.diff(folder.path(), &[]).ends(1);
    let apply = ["apply", folder.path().to_str().unwrap(), "--prune"];
    let check = |typed: &str, code: i32, left: usize| {
        let (ended, shown) = on_a_terminal(site.command(&apply), typed);
        assert_eq!(ended, Some(code), "{shown}");
        assert!(shown.contains(question) && shown.contains("asked/configmap/c05"), "{shown}");
        assert_eq!(names.iter().filter(|name| site.has("ConfigMap", name)).count(), left, "{shown}");
    };
    check("n\n", 4, 12);
    check("\n", 4, 12);
    check("y\n", 0, 6);
}
