//! A kernel without Landlock, as rhumb sees it behind a filter of system calls.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::fixture::kustomize;
use crate::probe::{Link, probe};

const REASON: &str = "the kernel does not know it, or the service or container does not let it be called";

/// Runs rhumb on a folder with a kustomization, with this line in its configuration. Returns its
/// exit code and all that it says.
fn run(words: &[&str], line: &str) -> (Option<i32>, String) {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("app")).unwrap();
    write("app/kustomization.yaml", "namePrefix: rendered-\nresources: [a.yaml]\n");
    write("app/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n");
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: ";
    let text = format!(
        "{head}Configuration\nprograms: {{kustomize: {}}}\n{line}\n---\n{head}Source\nmetadata: {{name: shop}}\n\
         spec: {{directory: {}, namespace: shop}}\n",
        kustomize().display(),
        folder.path().join("app").display()
    );
    write("rhumb.yaml", &text);
    let mut command = Command::new(probe(Link::Static));
    command.args(["without-landlock", env!("CARGO_BIN_EXE_rhumb")]).args(words);
    command.args(["--config", "rhumb.yaml"]).current_dir(folder.path()).env_clear();
    command.env("PATH", "/usr/bin:/bin").env("HOME", folder.path()).env("KUBECONFIG", "/nonexistent");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn without_landlock_nothing_is_rendered_unless_the_configuration_says_so() {
    let render = ["render", "--source", "shop", "app"];
    let (code, said) = run(&render, "");
    let refused =
        format!("kustomize is not run: its sandbox needs landlock, which does not work here: {REASON}");
    assert!(code == Some(1) && said.contains(&refused) && !said.contains("rendered-map"), "{code:?}: {said}");
    let (code, said) = run(&render, "sandbox: seccomp");
    assert!(code == Some(0) && said.contains("name: rendered-map"), "{code:?}: {said}");
}

#[test]
fn a_check_says_that_landlock_is_missing_unless_nothing_needs_it() {
    let (code, said) = run(&["check"], "");
    let missing = format!("the sandbox for programs that render does not work: landlock: {REASON}");
    assert!(code == Some(1) && said.contains(&missing), "{code:?}: {said}");
    let (_, said) = run(&["check"], "sandbox: seccomp");
    assert!(said.contains("the sandbox for programs that render works"), "{said}");
}
