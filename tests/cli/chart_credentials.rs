//! The report of `rhumb check` about credentials for chart servers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::fixture::Fixture;

const CONFIGURATION: &str = "\
apiVersion: rhumb.dev/v1alpha1
kind: Configuration
kubeconfig: nowhere
customSources: {follow: remote, fetch: {credentials: [{host: custom.example.org, credential: customs}]}}
---
apiVersion: rhumb.dev/v1alpha1
kind: Source
metadata: {name: files}
spec:
  directory: files
  fetch:
    credentials:
    - {host: ghcr.io, credential: there}
    - {host: 'gone.example.org:5000', credential: gone}
    - {host: wrong.example.org, credential: wrong}
";

fn fixture() -> Fixture {
    let fixture = Fixture::new(&[
        ("rhumb.yaml", CONFIGURATION),
        ("files/a.yaml", ""),
        ("credentials/chart-credentials.there", "ann:hunter2hunter2\n"),
        ("credentials/chart-credentials.wrong", "hunter2hunter2\n"),
    ]);
    for (name, mode) in [("there", 0o604), ("wrong", 0o600)] {
        let file = fixture.path().join(format!("credentials/chart-credentials.{name}"));
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }
    fixture
}

/// Returns the lines of the report about them; the credentials are in this folder.
fn shown(fixture: &Fixture, folder: Option<&str>) -> Vec<String> {
    let mut command = fixture.command("check --config rhumb.yaml");
    if let Some(folder) = folder {
        command.env("CREDENTIALS_DIRECTORY", fixture.path().join(folder));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let place = format!("{}/", fixture.path().display());
    let lines = text.lines().filter(|line| line.to_lowercase().contains("credentials"));
    lines.map(|line| line.replace(&place, "")).collect()
}

#[test]
fn check_names_each_credential_for_charts_that_cannot_be_read() {
    let lines = shown(&fixture(), Some("credentials"));
    assert_eq!(
        lines,
        [
            "warning credentials/chart-credentials.there: everybody may use it (mode 0604)",
            "ok      credentials/chart-credentials.there: credentials for charts of ghcr.io",
            "missing the credentials for gone.example.org:5000: credentials/chart-credentials.gone: No such file or directory (os error 2)",
            "missing the credentials for wrong.example.org: credentials/chart-credentials.wrong: it is not `USER:PASSWORD`",
            "missing the credentials for custom.example.org: credentials/chart-credentials.customs: No such file or directory (os error 2)",
        ]
    );
}

// Only the service has the folder.
#[test]
fn check_says_that_it_sees_no_credentials_for_charts() {
    let lines = shown(&fixture(), None);
    let hosts = ["ghcr.io", "gone.example.org:5000", "wrong.example.org", "custom.example.org"];
    let expected = hosts.map(|host| {
        format!(
            "warning the credentials for {host}: $CREDENTIALS_DIRECTORY is not set, so they are not looked at"
        )
    });
    assert_eq!(lines, expected);
}
