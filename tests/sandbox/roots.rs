//! Hostile folders as `rhumb render` takes them, with the real programs in its sandbox.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::kustomize;
use crate::kustomize::{OVERLAY, alias_bomb, deep_list};

/// The memory that rhumb may have itself, in KiB: that of a program which renders.
const MEMORY_KIB: u32 = 512 << 10;

pub(crate) const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";

/// A git work tree of these files, each a path and a text.
pub(crate) struct WorkTree(TempDir);

/// The printed objects, and each finding as its place and its words.
#[derive(Debug)]
pub(crate) struct PrintedObjects {
    pub(crate) objects: Vec<Value>,
    pub(crate) findings: Vec<String>,
}

impl WorkTree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        assert!(Command::new("git").args(["init", "--quiet"]).arg(folder.path()).status().unwrap().success());
        let tree = Self(folder);
        for (path, text) in files {
            tree.add(path, text);
        }
        tree
    }

    /// Returns the place of a file, whose folder is there.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn add(&self, path: &str, text: &str) {
        fs::write(self.place(path), text).unwrap();
    }

    /// Prints a folder, with the programs of another one. Fails beyond the memory of rhumb.
    #[track_caller]
    pub(crate) fn print(&self, path: &str, programs: &Path) -> PrintedObjects {
        self.print_by(&[path], programs)
    }

    /// Does the same with these arguments.
    #[track_caller]
    pub(crate) fn print_by(&self, arguments: &[&str], programs: &Path) -> PrintedObjects {
        let script = format!("ulimit -d {MEMORY_KIB} && exec \"$@\"");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_rhumb"), "render", "--output", "json"]);
        command.args(arguments);
        command.current_dir(self.0.path()).env_clear().env("PATH", programs).env("HOME", "/nonexistent");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), None, "{said}");
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        let text = |found: &Value| {
            let line = found["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
            format!("{}{line}: {}", found["file"].as_str().unwrap(), found["message"].as_str().unwrap())
        };
        PrintedObjects {
            objects: shown["objects"].as_array().unwrap().clone(),
            findings: shown["diagnostics"].as_array().unwrap().iter().map(text).collect(),
        }
    }
}

/// Returns the folder of the real programs.
pub(crate) fn programs() -> &'static Path {
    kustomize().parent().unwrap()
}

pub(crate) fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
}

/// Checks that the good root of a tree gives its one object, and the bad one its one finding.
#[track_caller]
fn check_good_beside_bad(case: &str, tree: &WorkTree, object: &str, expected: &str) {
    let printed = tree.print(".", programs());
    assert_eq!(names(&printed.objects), [object], "{case}");
    let [found] = &*printed.findings else { panic!("{case}: {printed:?}") };
    assert!(found.contains(expected), "{case}: {found}");
}

/// Leaves no program to start: the finding about its absence is that of a harmless kustomization.
#[test]
fn a_kustomization_that_grows_is_refused_before_a_program_starts() {
    fn check(kustomization: &str, expected: &str) {
        let tree = WorkTree::new(&[("app/kustomization.yaml", kustomization), ("app/a.yaml", MAP)]);
        let printed = tree.print("app", Path::new("/nonexistent"));
        assert!(printed.objects.is_empty(), "{printed:?}");
        let [found] = &*printed.findings else { panic!("{printed:?}") };
        assert!(found.starts_with(expected), "{found}");
    }
    let head = "resources: [a.yaml]\n";
    let aliases = "app/kustomization.yaml:2: the aliases up to here expand to far more than the file holds";
    check(head, "app/kustomization.yaml: there is no kustomize in PATH");
    check(&alias_bomb(head), aliases);
    check(&deep_list(head), "app/kustomization.yaml:2: nested more than 1024 levels deep");
}

#[test]
fn a_resource_that_grows_ends_its_own_root_alone() {
    let stopped = "bad/kustomization.yaml: kustomize was stopped: it asked for more memory than it may have";
    let refused = "bad/kustomization.yaml: kustomize fails: ";
    for (case, resource, expected) in
        [("aliases", alias_bomb(MAP), stopped), ("depth", deep_list(MAP), refused)]
    {
        let tree = WorkTree::new(&[
            ("bad/kustomization.yaml", "resources: [a.yaml]\n"),
            ("bad/a.yaml", &resource),
            ("good/kustomization.yaml", "namePrefix: good-\nresources: [a.yaml]\n"),
            ("good/a.yaml", MAP),
        ]);
        check_good_beside_bad(case, &tree, "good-map", expected);
    }
}

/// Gives a root a schema without merge keys, between two roots of the same files.
#[test]
fn a_schema_counts_in_its_own_root_alone() {
    let tree = WorkTree::new(&[]);
    for root in ["a", "b", "c"] {
        for (path, text) in OVERLAY {
            let text = text.replace("namespace: prod", &format!("namespace: {root}"));
            tree.add(&format!("{root}/{path}"), &text);
        }
    }
    let kustomization = fs::read_to_string(tree.0.path().join("b/kustomization.yaml")).unwrap();
    tree.add("b/kustomization.yaml", &format!("{kustomization}openapi: {{path: schema.json}}\n"));
    tree.add("b/schema.json", r#"{"definitions": {"io.k8s.api.apps.v1.Deployment": {"type": "object"}}}"#);
    let printed = tree.print(".", programs());
    assert!(printed.findings.is_empty(), "{printed:?}");
    let of_kind = |object: &&Value| object["kind"] == "Deployment";
    let images: Vec<&Value> = printed.objects.iter().filter(of_kind).map(image).collect();
    assert_eq!(images, [&Value::from("web:1"), &Value::Null, &Value::from("web:1")]);
    for root in ["a", "b", "c"] {
        let is_of_root = |object: &&Value| object["metadata"]["namespace"] == root;
        let together: Vec<Value> = printed.objects.iter().filter(is_of_root).cloned().collect();
        assert_eq!(tree.print(root, programs()).objects, together, "{root}");
    }
}

fn image(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// Leads through folders that are read before a program starts, each naming the next.
#[test]
fn plugins_in_many_folders_end_their_own_root_alone() {
    let tree = WorkTree::new(&[
        ("bad/kustomization.yaml", "transformers: [../f0]\n"),
        ("good/kustomization.yaml", "namePrefix: good-\nresources: [a.yaml]\n"),
        ("good/a.yaml", MAP),
        (".rhumbignore", "f*\n"),
    ]);
    for number in 0..15_000 {
        let text = format!("resources: [../f{}]\n", number + 1);
        tree.add(&format!("f{number}/kustomization.yaml"), &text);
    }
    check_good_beside_bad("15,000 folders", &tree, "good-map", "f15000");
}

/// Names items of lists with gaps before them, in a file that looks encrypted.
#[test]
fn gaps_in_the_metadata_of_a_file_end_their_own_root_alone() {
    let lines = (0..130_000).map(|number| format!("sops_a{number}__list_1023=x\n"));
    let text: String = ["sops_mac=x\n".to_owned()].into_iter().chain(lines).collect();
    let tree = WorkTree::new(&[
        ("bad/kustomization.yaml", "secretGenerator: [{name: a, envs: [x.env]}]\n"),
        ("bad/x.env", &text),
        ("good/kustomization.yaml", "namePrefix: good-\nresources: [a.yaml]\n"),
        ("good/a.yaml", MAP),
    ]);
    check_good_beside_bad("gaps", &tree, "good-map", "it has more keys and items than SOPS writes");
}

#[test]
fn a_chart_whose_objects_grow_by_their_number_ends_within_memory_and_alone() {
    let map = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ";
    let hooks = format!(
        "{{{{ range until 9000 }}}}{map}a{{{{ . }}}}\n  annotations: {{helm.sh/hook: pre-install}}{{{{ end }}}}\
         {{{{ range until 9000 }}}}{map}b{{{{ . }}}}{{{{ end }}}}"
    );
    let key = "{{ repeat 1000 \"k\" }}: { ";
    let leaves = "{{ range until 50000 }}\"{{ . }}\": {{ randNumeric 6 | quote }},{{ end }}";
    let differing = format!("{MAP}data: {{ {} {leaves} {}\n", key.repeat(59), "}".repeat(60));
    for (case, template, expected) in [
        ("hooks", &hooks, "the hooks of this chart make its objects wait for each other in more than"),
        ("differing", &differing, "more fields differ from render to render than can be named"),
    ] {
        let tree = WorkTree::new(&[
            ("bad/Chart.yaml", "apiVersion: v2\nname: bad\nversion: 1.0.0\n"),
            ("bad/templates/a.yaml", template),
            ("good/Chart.yaml", "apiVersion: v2\nname: good\nversion: 1.0.0\n"),
            ("good/templates/a.yaml", MAP),
        ]);
        check_good_beside_bad(case, &tree, "map", expected);
    }
}

#[test]
fn a_chart_that_makes_too_much_ends_within_memory_and_alone() {
    let objects = "{{ range until 200000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a{{ . }}}\n{{ end }}";
    let line = "x".repeat(1000);
    let output = format!("{{{{ range until 300000 }}}}\n# {line}\n{{{{ end }}}}\n{MAP}");
    for (case, template, expected) in [
        ("200,000 objects", objects, "bad/Chart.yaml: the chart makes more than 20000 objects"),
        ("300 MB", &output, "bad/Chart.yaml: helm was stopped: "),
    ] {
        let tree = WorkTree::new(&[
            ("bad/Chart.yaml", "apiVersion: v2\nname: bad\nversion: 1.0.0\n"),
            ("bad/templates/a.yaml", template),
            ("good/Chart.yaml", "apiVersion: v2\nname: good\nversion: 1.0.0\n"),
            ("good/templates/a.yaml", MAP),
        ]);
        check_good_beside_bad(case, &tree, "map", expected);
    }
}
