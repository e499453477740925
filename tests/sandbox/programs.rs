//! Programs of this host: found, asked for their versions in the sandbox, and remembered.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::sandbox::{
    ProgramError, ProgramFinder, ProgramLookup, ProgramVersion, RenderProgram,
};
use rhumb::testing::object::ErrorClass;
use tempfile::TempDir;

use crate::fixture::{helm, kustomize, sandbox, wait_for};
use crate::roots::{MAP, WorkTree, names};

/// Installs a program of this name that prints a version.
fn printing(dir: &Path, name: &str, version: &str) {
    let source = format!("#include <stdio.h>\nint main(void) {{ puts(\"{version}\"); return 0; }}\n");
    let file = dir.join("program.c");
    fs::write(&file, source).unwrap();
    let built = dir.join("built");
    let status = std::process::Command::new("cc").arg("-o").arg(&built).arg(&file).status().unwrap();
    assert!(status.success());
    fs::rename(built, dir.join(name)).unwrap();
}

fn find(
    finder: &ProgramFinder,
    program: RenderProgram,
    place: ProgramLookup<'_>,
) -> Result<rhumb::testing::input::sandbox::InstalledProgram, ProgramError> {
    wait_for(finder.find(program, place, SandboxMode::Full))
}

#[test]
fn the_real_programs_tell_their_versions_in_the_sandbox() {
    let finder = ProgramFinder::new(sandbox());
    let path = std::env::join_paths([kustomize(), helm()].map(|path| path.parent().unwrap())).unwrap();
    for (program, file) in [(RenderProgram::Kustomize, kustomize()), (RenderProgram::Helm, helm())] {
        let named = find(&finder, program, ProgramLookup::File(file)).unwrap();
        assert_eq!(named.path, file.canonicalize().unwrap());
        assert!(named.version > program.floor(), "{named:?}");
        assert_ne!(named.digest, [0; 32]);
        let searched = find(&finder, program, ProgramLookup::Search(&path)).unwrap();
        assert_eq!(searched.program, program);
    }
}

#[test]
fn a_file_is_asked_again_when_it_is_another_one() {
    let dir = TempDir::new().unwrap();
    let finder = ProgramFinder::new(sandbox());
    let place = ProgramLookup::Search(dir.path().as_os_str());
    let found = || find(&finder, RenderProgram::Kustomize, place).unwrap();
    printing(dir.path(), "kustomize", "v5.0.1");
    let first = found();
    assert_eq!(first.version, ProgramVersion(5, 0, 1));
    assert_eq!(found(), first);
    printing(dir.path(), "kustomize", "v5.7.0");
    let second = found();
    assert_eq!(second.version, ProgramVersion(5, 7, 0));
    assert_ne!(second.digest, first.digest);
}

#[test]
fn what_cannot_be_used_says_why_and_what_to_do() {
    let dir = TempDir::new().unwrap();
    let finder = ProgramFinder::new(sandbox());
    let check = |program, expected: &[&str]| {
        let place = ProgramLookup::Search(dir.path().as_os_str());
        let error = find(&finder, program, place).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Config, "{error}");
        let text = error.to_string();
        for words in expected {
            assert!(text.contains(words), "{words}: {text}");
        }
    };
    check(RenderProgram::Kustomize, &["no kustomize in PATH", "go install", "`programs.kustomize`"]);
    printing(dir.path(), "kustomize", "v4.5.7");
    check(RenderProgram::Kustomize, &["is version 4.5.7", "5.0.0 or newer"]);
    printing(dir.path(), "helm", "v3.17.3+ge4da497");
    check(RenderProgram::Helm, &["is version 3.17.3", "3.18.0 or newer"]);
    printing(dir.path(), "helm", "(devel)");
    check(RenderProgram::Helm, &["names no version: (devel)"]);
    fs::write(dir.path().join("helm"), "#!/bin/sh\nexec helm.real \"$@\"\n").unwrap();
    fs::set_permissions(dir.path().join("helm"), fs::Permissions::from_mode(0o755)).unwrap();
    check(RenderProgram::Helm, &["is a script", "name the program that it starts"]);
    let nowhere = find(&finder, RenderProgram::Helm, ProgramLookup::Search(OsStr::new(""))).unwrap_err();
    assert!(matches!(nowhere, ProgramError::Missing { .. }), "{nowhere}");
}

#[test]
fn a_missing_program_stops_the_roots_that_need_it_alone() {
    let programs = TempDir::new().unwrap();
    std::os::unix::fs::symlink(helm(), programs.path().join("helm")).unwrap();
    let tree = WorkTree::new(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
        ("chart/templates/a.yaml", MAP),
        ("overlay/kustomization.yaml", "namePrefix: overlay-\nresources: [a.yaml]\n"),
        ("overlay/a.yaml", MAP),
        ("plain.yaml", &MAP.replace("name: map", "name: plain")),
    ]);
    let printed = tree.print(".", programs.path());
    assert_eq!(names(&printed.objects), ["map", "plain"], "{printed:?}");
    let [found] = &*printed.findings else { panic!("{printed:?}") };
    let expected = "overlay/kustomization.yaml: there is no kustomize in PATH; it comes by `go install";
    assert!(found.starts_with(expected), "{found}");
}
