//! System calls: no network, no other process, nothing of the kernel's that outlives a run.

use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::sandbox::SandboxPart;

use crate::fixture::{Fixture, Stop, assert_stopped, text};
use crate::probe::{Link, probe};

/// Tries an act in both kinds of program, under both modes of the sandbox.
#[track_caller]
fn denied(words: &[&str], by: Stop) {
    let mut fixture = Fixture::new(&[("file", "text")]);
    for mode in [SandboxMode::Full, SandboxMode::Seccomp] {
        fixture.policy.mode = mode;
        for link in [Link::Static, Link::Dynamic] {
            let outcome = fixture.run(&fixture.command(probe(link), words));
            assert_stopped(&format!("{words:?}, {link:?}, {mode:?}"), outcome, &[by]);
        }
    }
}

const NOT_PERMITTED: Stop = Stop::Denied(SandboxPart::SystemCalls, "Operation not permitted");

#[test]
fn no_socket_can_be_made() {
    for call in ["socket", "socket-datagram", "socket-netlink", "socket-unix", "socketpair"] {
        denied(&["call", call], NOT_PERMITTED);
    }
}

#[test]
fn no_process_can_be_started() {
    denied(&["fork"], NOT_PERMITTED);
    denied(&["vfork"], NOT_PERMITTED);
    denied(&["call", "clone"], NOT_PERMITTED);
    denied(&["system"], NOT_PERMITTED);
    // The C library falls back to the form that the filter can judge.
    denied(&["call", "clone3"], Stop::Refused("Function not implemented"));
}

#[test]
fn no_other_process_can_be_touched() {
    let parent = std::process::id().to_string();
    for call in ["ptrace", "vm_readv", "kill", "tgkill", "pidfd_open", "prlimit-other"] {
        denied(&["call", call, &parent], NOT_PERMITTED);
    }
    denied(&["steal", &parent], NOT_PERMITTED);
    denied(&["call", "kill-all"], NOT_PERMITTED);
}

#[test]
fn nothing_of_the_kernel_is_within_reach() {
    let calls = [
        "add_key",
        "bpf",
        "execveat",
        "io_uring_setup",
        "keyctl",
        "memfd_create",
        "mount",
        "name_to_handle_at",
        "perf_event_open",
        "personality",
        "seccomp",
        "setns",
        "setuid",
        "shmget",
        "unshare",
        "userfaultfd",
    ];
    for call in calls {
        denied(&["call", call], NOT_PERMITTED);
    }
}

#[test]
fn it_stays_in_the_group_that_is_killed_and_keeps_its_limits() {
    for call in ["setpgid", "setsid", "prlimit"] {
        denied(&["call", call], NOT_PERMITTED);
    }
}

#[test]
fn files_keep_their_rights_and_get_no_other_names() {
    for call in ["chmod", "chown", "link", "mknod", "symlink", "truncate", "xattr"] {
        denied(&["call", call], NOT_PERMITTED);
    }
}

#[test]
fn the_calls_of_another_architecture_end_it() {
    denied(&["foreign"], Stop::Killed(SandboxPart::SystemCalls));
}

#[test]
fn threads_can_be_started() {
    let fixture = Fixture::new(&[]);
    for link in [Link::Static, Link::Dynamic] {
        assert_eq!(text(fixture.run(&fixture.command(probe(link), &["thread"]))), "");
    }
}
