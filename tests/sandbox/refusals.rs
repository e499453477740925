//! Hostile folders that rhumb refuses by name, as its command takes them: no program starts for
//! one, and the root beside it renders.

use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::Mode;
use serde_json::json;

use crate::roots::{MAP, WorkTree, names, programs};

const CHART: &str = "apiVersion: v2\nname: bad\nversion: 1.0.0\n";

/// Returns a good root, beside the files of a bad one.
fn good_and_bad(bad: &[(&str, &str)]) -> WorkTree {
    let tree = WorkTree::new(&[
        ("good/kustomization.yaml", "namePrefix: good-\nresources: [a.yaml]\n"),
        ("good/a.yaml", MAP),
        // Folders that the bad root names are no roots themselves.
        (".rhumbignore", "part*\n"),
    ]);
    for (path, text) in bad {
        tree.add(path, text);
    }
    tree
}

/// Checks that the bad root has one finding at a place, whether there are programs or none.
#[track_caller]
fn check(tree: &WorkTree, place: &str, expected: &str) {
    let printed = tree.print(".", programs());
    assert_eq!(names(&printed.objects), ["good-map"], "{place} {expected}: {printed:?}");
    let [found] = &*printed.findings else { panic!("{place} {expected}: {printed:?}") };
    assert!(found.starts_with(place) && found.contains(expected), "{place} {expected}: {found}");
    let without = tree.print(".", Path::new("/nonexistent"));
    assert!(without.objects.is_empty() && without.findings.contains(found), "{found}: {without:?}");
    let missing: Vec<_> = without.findings.iter().filter(|said| said.contains("in PATH")).collect();
    assert_eq!(missing.len(), 1, "the good root alone needs a program: {without:?}");
}

#[test]
fn what_a_kustomization_would_fetch_read_outside_or_run_is_refused_by_name() {
    let resource = |target: &str| format!("resources: ['{target}']\n");
    let remote = "a remote base, which is not fetched";
    let outside = "the path leaves the repository";
    let plugin = "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      \
                  exec: {path: /bin/sh}\n";
    for (kustomization, place, expected) in [
        (resource("https://github.com/org/repo?ref=v1"), "bad/kustomization.yaml:1: ", remote),
        (resource("http://169.254.169.254/latest/a.yaml"), "bad/kustomization.yaml:1: ", remote),
        (resource("/etc/passwd"), "bad/kustomization.yaml:1: ", outside),
        (resource("../../../etc/hostname"), "bad/kustomization.yaml:1: ", outside),
        ("generators: [plugin.yaml]\n".to_owned(), "bad/plugin.yaml:1: ", "a program of its own"),
        (resource("../bad"), "bad/kustomization.yaml:1: ", "this includes itself"),
    ] {
        let tree = good_and_bad(&[("bad/kustomization.yaml", &kustomization), ("bad/plugin.yaml", plugin)]);
        check(&tree, place, expected);
    }
}

#[test]
fn links_out_of_the_repository_and_pipes_are_refused_by_name() {
    let generator = "configMapGenerator: [{name: a, files: [link]}]\n";
    for target in ["/etc/passwd", "/proc/self/environ", "/dev/zero", "../../../etc/hostname"] {
        let tree = good_and_bad(&[("bad/kustomization.yaml", generator)]);
        symlink(target, tree.place("bad/link")).unwrap();
        check(&tree, "bad/kustomization.yaml:1: ", "the link bad/link leads out of the repository");
    }
    let tree = good_and_bad(&[("bad/kustomization.yaml", generator)]);
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.place("bad/link"), Mode::RUSR | Mode::WUSR).unwrap();
    check(&tree, "bad/kustomization.yaml:1: ", "bad/link is neither a regular file nor a folder");
}

/// Includes at each level the next one twice: two to the power of the levels.
#[test]
fn diamonds_are_refused_without_a_walk_of_each_way() {
    let tree = good_and_bad(&[("bad/kustomization.yaml", "resources: [../part0, ../part0/.]\n")]);
    for level in 0..20 {
        let next = level + 1;
        let text = format!("resources: [../part{next}, ../part{next}/.]\n");
        tree.add(&format!("part{level}/kustomization.yaml"), &text);
    }
    tree.add("part20/kustomization.yaml", "resources: []\n");
    check(&tree, "bad: ", "this root reads more than");
}

#[test]
fn what_a_chart_would_fetch_or_read_outside_is_refused_by_name() {
    let schema = |target: &str| format!("{{\"$ref\": \"{target}\"}}");
    for target in ["http://127.0.0.1:1/a.json", "file:///etc/passwd"] {
        let tree = good_and_bad(&[("bad/Chart.yaml", CHART), ("bad/values.schema.json", &schema(target))]);
        check(&tree, "bad/values.schema.json: ", "another one, which is not fetched");
    }
    for (path, target) in [("bad/files/link", "/etc/passwd"), ("bad/Chart.lock", "/etc/passwd")] {
        let tree = good_and_bad(&[("bad/Chart.yaml", CHART), ("bad/templates/a.yaml", MAP)]);
        symlink(target, tree.place(path)).unwrap();
        check(&tree, &format!("{path}: "), "leads out of the repository");
    }
}

/// Gives a variable lines that would be fields of their own in the text of a manifest.
#[test]
fn a_variable_adds_no_field_to_a_plain_file_or_to_what_kustomize_prints() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  hostname: ${EVIL}\n  containers: [{name: web}]\n";
    let tree = WorkTree::new(&[
        ("plain/pod.yaml", pod),
        ("rendered/pod.yaml", pod),
        ("rendered/kustomization.yaml", "resources: [pod.yaml]\n"),
        (
            "rhumb.yaml",
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\nspec:\n  directory: plain\n  \
             substitute: {EVIL: \"x\\n  hostPID: true\"}\n",
        ),
    ]);
    for folder in ["plain", "rendered"] {
        let arguments = ["--config", "rhumb.yaml", "--source", "shop", folder];
        let printed = tree.print_by(&arguments, programs());
        let [object] = &*printed.objects else { panic!("{folder}: {printed:?}") };
        let expected = json!({"hostname": "x  hostPID: true", "containers": [{"name": "web"}]});
        assert_eq!(object["spec"], expected, "{folder}");
    }
}
