//! Files: what is in the tree, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rhumb::testing::input::sandbox::{Confinement, ProgramCommand, SandboxError, SandboxSupport, SandboxWall};

use crate::bed::{Bed, CANARY, Stop, assert_stopped, sandbox, text, wait_for};
use crate::probe::{Link, probe};

const DENIED: Stop = Stop::Denied(SandboxWall::Files, "Permission denied");

fn denied(bed: &Bed, words: &[&str]) {
    for link in [Link::Static, Link::Dynamic] {
        let outcome = bed.run(&bed.command(probe(link), words));
        assert_stopped(&format!("{words:?}, {link:?}"), outcome, &[DENIED]);
    }
}

#[test]
fn the_tree_is_read_and_the_rest_is_not() {
    let bed = Bed::new(&[("sub/file", "text")]);
    bed.link("link", bed.canary());
    bed.link("environment", format!("/proc/{}/environ", std::process::id()));
    bed.link("zero", "/dev/zero");
    for link in [Link::Static, Link::Dynamic] {
        assert_eq!(text(bed.run(&bed.command(probe(link), &["read", "sub/file"]))), "text");
    }
    let canary = bed.canary();
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
        denied(&bed, &["read", path]);
    }
    let own = probe(Link::Static).to_str().unwrap();
    assert!(bed.run(&bed.command(probe(Link::Static), &["read", own])).unwrap().is_success());
}

#[test]
fn the_private_folder_is_written_and_nothing_else() {
    let bed = Bed::new(&[("file", "text")]);
    let private = bed.private();
    let inside = private.join("folder/file");
    let command = |words: &[&str]| bed.command(probe(Link::Dynamic), words);
    assert_eq!(text(bed.run(&command(&["mkdir", private.join("folder").to_str().unwrap()]))), "");
    assert_eq!(text(bed.run(&command(&["write", inside.to_str().unwrap(), "1"]))), "");
    assert!(inside.exists());
    assert_eq!(text(bed.run(&command(&["write", "/dev/null", "1"]))), "");
    let outside = bed.canary();
    for path in
        ["file", "new", outside.to_str().unwrap(), "/tmp/rhumb-sandbox-test", "/dev/shm/rhumb-sandbox-test"]
    {
        denied(&bed, &["write", path, "1"]);
    }
    denied(&bed, &["mkdir", "folder"]);
    denied(&bed, &["unlink", "file"]);
    assert_eq!(fs::read_to_string(outside).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(bed.tree().join("file")).unwrap(), "text");
}

#[test]
fn only_the_program_itself_can_be_run() {
    let bed = Bed::new(&[]);
    let copied = bed.private().join("program");
    fs::copy("/bin/sh", &copied).unwrap();
    for path in ["/bin/sh", "/usr/bin/env", copied.to_str().unwrap()] {
        denied(&bed, &["exec", path]);
    }
}

#[test]
fn without_the_wall_around_files_only_its_configuration_runs_it() {
    let mut bed = Bed::new(&[]);
    bed.policy.confinement = Confinement::Seccomp;
    let words = ["read", "../canary"];
    assert_eq!(text(bed.run(&bed.command(probe(Link::Static), &words))), CANARY);
    bed.policy.confinement = Confinement::Full;
    assert_stopped("full", bed.run(&bed.command(probe(Link::Static), &words)), &[DENIED]);
}

#[test]
fn this_host_has_all_walls() {
    let bed = Bed::new(&[]);
    let support = wait_for(SandboxSupport::probe(&sandbox(), &bed.private())).unwrap();
    assert!(support.landlock.as_ref().is_ok_and(|version| *version >= 1), "{support:?}");
    assert_eq!(support.allows(Confinement::Full), Ok(()));
    let without = SandboxSupport { landlock: Err("the kernel does not know it".to_owned()), seccomp: Ok(()) };
    assert_eq!(without.allows(Confinement::Full), Err("the kernel does not know it"));
    assert_eq!(without.allows(Confinement::Seccomp), Ok(()));
}

#[test]
fn a_path_that_is_not_there_and_a_file_that_is_no_program_are_told() {
    #[track_caller]
    fn check(bed: &Bed, command: ProgramCommand, expected: &str) {
        let error = bed.run(&command).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut bed = Bed::new(&[("script", "#!/bin/sh\necho a shell runs\n"), ("data", "text")]);
    for name in ["script", "data"] {
        fs::set_permissions(bed.tree().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    check(&bed, bed.command(&bed.tree().join("script"), &[]), "is a script");
    check(&bed, bed.command(&bed.tree().join("data"), &[]), "is no program");
    check(&bed, bed.command(&bed.tree().join("none"), &[]), "No such file");
    bed.policy.readable.push(bed.tree().join("missing"));
    let error = bed.run(&bed.command(probe(Link::Static), &["thread"])).unwrap_err();
    assert!(matches!(&error, SandboxError::NotStarted { .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
}
