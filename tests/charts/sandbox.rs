//! The sandbox around the program that fetches.

use rhumb::testing::input::sandbox::{Sandbox, SandboxSupport};

use crate::archives::chart;
use crate::fixture::{Fixture, wait_for, word};
use crate::server::{Answer, Certificate, ChartServer};

/// The version of Landlock that knows ports.
const KNOWS_PORTS: u32 = 4;

#[test]
fn another_port_is_out_of_reach() {
    let certificate = Certificate::new();
    let (server, other) = (ChartServer::start(&certificate), ChartServer::start(&certificate));
    let url = format!("https://127.0.0.1:{}/stable", server.port);
    let fixture = Fixture::trusting(certificate, &format!("{{allow: ['{url}']}}"));
    let place = format!("https://127.0.0.1:{}/web.tgz", other.port);
    server.index("/stable", &[["web", "1.0.0", &place]]);
    other.answer("/web.tgz", Answer::Content(chart("web", "1.0.0", "other")));
    let sandbox = Sandbox::launched_by(env!("CARGO_BIN_EXE_rhumb"));
    let support = wait_for(SandboxSupport::probe(&sandbox, &fixture.path("programs"))).unwrap();
    let fetched = fixture.fetch([&url, "web", "1.0.0"]);
    if support.landlock.unwrap() < KNOWS_PORTS {
        assert_eq!(word(&fetched.unwrap()), "other");
        return;
    }
    let message = fetched.unwrap_err().to_string();
    assert!(message.ends_with("(it may connect to the port of the repository alone)"), "{message}");
    assert_eq!(other.seen(), []);
}
