//! A program with a network: what it reaches, and what it does not.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::sandbox::{NetworkReach, SandboxPart, SandboxSupport};

use crate::fixture::{Fixture, Stop, assert_stopped, sandbox, text, wait_for};
use crate::probe::{Link, probe};

/// The version of Landlock that knows ports.
const KNOWS_PORTS: u32 = 4;

const NOT_PERMITTED: Stop = Stop::Denied(SandboxPart::SystemCalls, "Operation not permitted");
const OTHER_PORT: Stop = Stop::Denied(SandboxPart::Files, "Permission denied");

fn with_ports(ports: &[u16]) -> Fixture {
    let mut fixture = Fixture::new(&[("file", "text")]);
    fixture.policy.network = NetworkReach::Ports(ports.to_vec());
    fixture
}

fn knows_ports() -> bool {
    let fixture = Fixture::new(&[]);
    let support = wait_for(SandboxSupport::probe(&sandbox(), &fixture.private())).unwrap();
    support.landlock.unwrap() >= KNOWS_PORTS
}

#[test]
fn it_connects_to_its_ports_alone() {
    let [its, other] = [0, 0].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let fixture = with_ports(&[53, port(&its)]);
    for link in [Link::Static, Link::Dynamic] {
        let connect = |listener: &TcpListener| {
            fixture.run(&fixture.command(probe(link), &["connect", &port(listener).to_string()]))
        };
        text(connect(&its));
        if knows_ports() {
            assert_stopped("another port", connect(&other), &[OTHER_PORT]);
        }
    }
}

#[test]
fn nothing_listens() {
    for mode in [SandboxMode::Full, SandboxMode::Seccomp] {
        let mut fixture = with_ports(&[443]);
        fixture.policy.mode = mode;
        let listen = fixture.run(&fixture.command(probe(Link::Static), &["listen", "0"]));
        assert_stopped("listen", listen, &[NOT_PERMITTED]);
    }
    if knows_ports() {
        let fixture = with_ports(&[443]);
        let bind = fixture.run(&fixture.command(probe(Link::Static), &["listen", "443"]));
        assert_stopped("bind", bind, &[OTHER_PORT]);
    }
}

#[test]
fn sockets_of_other_kinds_cannot_be_made() {
    let fixture = with_ports(&[443]);
    for call in ["socket-netlink", "socket-unix", "socket-raw", "socket-vsock", "socketpair"] {
        let outcome = fixture.run(&fixture.command(probe(Link::Static), &["call", call]));
        assert_stopped(call, outcome, &[NOT_PERMITTED]);
    }
    for call in ["socket", "socket-datagram"] {
        text(fixture.run(&fixture.command(probe(Link::Static), &["call", call])));
    }
}

// Landlock does not bound whose rights are changed.
#[test]
fn rights_of_files_stay_as_they_are() {
    let fixture = with_ports(&[443]);
    let mode = || fs::metadata(fixture.canary()).unwrap().permissions().mode();
    let before = mode();
    let path = fixture.canary().display().to_string();
    text(fixture.run(&fixture.command(probe(Link::Static), &["chmod", &path])));
    assert_eq!(mode(), before);
    let without = Fixture::new(&[]);
    let outcome = without.run(&without.command(probe(Link::Static), &["chmod", &path]));
    assert_stopped("chmod", outcome, &[NOT_PERMITTED]);
}

#[test]
fn it_starts_no_process_and_reads_no_other_file() {
    let fixture = with_ports(&[443]);
    for act in ["fork", "vfork", "system"] {
        let outcome = fixture.run(&fixture.command(probe(Link::Static), &[act]));
        assert_stopped(act, outcome, &[NOT_PERMITTED]);
    }
    let path = fixture.canary().display().to_string();
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &["read", &path]));
    assert_stopped("read", outcome, &[OTHER_PORT]);
}
