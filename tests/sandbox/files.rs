//! Files: what is in the tree, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::sandbox::{ProgramCommand, SandboxError, SandboxPart, SandboxSupport};

use crate::fixture::{CANARY, Fixture, Stop, assert_stopped, sandbox, text, wait_for};
use crate::probe::{Link, probe};

const DENIED: Stop = Stop::Denied(SandboxPart::Files, "Permission denied");

fn denied(fixture: &Fixture, words: &[&str]) {
    for link in [Link::Static, Link::Dynamic] {
        let outcome = fixture.run(&fixture.command(probe(link), words));
        assert_stopped(&format!("{words:?}, {link:?}"), outcome, &[DENIED]);
    }
}

#[test]
fn the_tree_is_read_and_the_rest_is_not() {
    let fixture = Fixture::new(&[("sub/file", "text")]);
    fixture.link("link", fixture.canary());
    fixture.link("environment", format!("/proc/{}/environ", std::process::id()));
    fixture.link("zero", "/dev/zero");
    for link in [Link::Static, Link::Dynamic] {
        assert_eq!(text(fixture.run(&fixture.command(probe(link), &["read", "sub/file"]))), "text");
    }
    let canary = fixture.canary();
    let paths = [
        canary.to_str().unwrap(),
        "../canary",
        "link",
        "environment",
        "zero",
        "/etc/passwd",
        "/etc/hostname",
        "/proc/self/environ",
        "/proc/self/maps",
        "/proc/1/environ",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/dev/urandom",
        "/usr/bin/env",
    ];
    for path in paths {
        denied(&fixture, &["read", path]);
    }
    let own = probe(Link::Static).to_str().unwrap();
    assert!(fixture.run(&fixture.command(probe(Link::Static), &["read", own])).unwrap().is_success());
}

#[test]
fn the_private_folder_is_written_and_nothing_else() {
    let fixture = Fixture::new(&[("file", "text")]);
    let private = fixture.private();
    let inside = private.join("folder/file");
    let command = |words: &[&str]| fixture.command(probe(Link::Dynamic), words);
    assert_eq!(text(fixture.run(&command(&["mkdir", private.join("folder").to_str().unwrap()]))), "");
    assert_eq!(text(fixture.run(&command(&["write", inside.to_str().unwrap(), "1"]))), "");
    assert!(inside.exists());
    assert_eq!(text(fixture.run(&command(&["write", "/dev/null", "1"]))), "");
    let outside = fixture.canary();
    for path in
        ["file", "new", outside.to_str().unwrap(), "/tmp/rhumb-sandbox-test", "/dev/shm/rhumb-sandbox-test"]
    {
        denied(&fixture, &["write", path, "1"]);
    }
    denied(&fixture, &["mkdir", "folder"]);
    denied(&fixture, &["unlink", "file"]);
    assert_eq!(fs::read_to_string(outside).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(fixture.tree().join("file")).unwrap(), "text");
}

#[test]
fn only_the_program_itself_can_be_run() {
    let fixture = Fixture::new(&[]);
    let copied = fixture.private().join("program");
    fs::copy("/bin/sh", &copied).unwrap();
    for path in ["/bin/sh", "/usr/bin/env", copied.to_str().unwrap()] {
        denied(&fixture, &["exec", path]);
    }
}

#[test]
fn without_the_rules_for_files_only_its_configuration_runs_it() {
    let mut fixture = Fixture::new(&[]);
    fixture.policy.mode = SandboxMode::Seccomp;
    let words = ["read", "../canary"];
    assert_eq!(text(fixture.run(&fixture.command(probe(Link::Static), &words))), CANARY);
    fixture.policy.mode = SandboxMode::Full;
    assert_stopped("full", fixture.run(&fixture.command(probe(Link::Static), &words)), &[DENIED]);
}

#[test]
fn this_host_has_the_whole_sandbox() {
    let fixture = Fixture::new(&[]);
    let support = wait_for(SandboxSupport::probe(&sandbox(), &fixture.private())).unwrap();
    assert!(support.landlock.as_ref().is_ok_and(|version| *version >= 1), "{support:?}");
    assert_eq!(support.allows(SandboxMode::Full), Ok(()));
    let without = SandboxSupport { landlock: Err("the kernel does not know it".to_owned()), seccomp: Ok(()) };
    assert_eq!(without.allows(SandboxMode::Full), Err("the kernel does not know it"));
    assert_eq!(without.allows(SandboxMode::Seccomp), Ok(()));
}

#[test]
fn a_path_that_is_not_there_and_a_file_that_is_no_program_are_reported() {
    #[track_caller]
    fn check(fixture: &Fixture, command: ProgramCommand, expected: &str) {
        let error = fixture.run(&command).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut fixture = Fixture::new(&[("script", "#!/bin/sh\necho a shell runs\n"), ("data", "text")]);
    for name in ["script", "data"] {
        fs::set_permissions(fixture.tree().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    check(&fixture, fixture.command(&fixture.tree().join("script"), &[]), "is a script");
    check(&fixture, fixture.command(&fixture.tree().join("data"), &[]), "is no program");
    check(&fixture, fixture.command(&fixture.tree().join("none"), &[]), "No such file");
    fixture.policy.readable.push(fixture.tree().join("missing"));
    let error = fixture.run(&fixture.command(probe(Link::Static), &["thread"])).unwrap_err();
    assert!(matches!(&error, SandboxError::NotStarted { .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
}
