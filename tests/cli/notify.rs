//! The report of `rhumb check` about recipients of notifications.

use crate::fixture::Fixture;

const CONFIGURATION: &str = "\
apiVersion: rhumb.dev/v1alpha1
kind: Configuration
kubeconfig: nowhere
notify:
  - github: {repository: acme/shop, token: gone}
    sources: [files]
  - slack: {urlFile: url}
---
apiVersion: rhumb.dev/v1alpha1
kind: Source
metadata: {name: files}
spec: {directory: files}
";

#[test]
fn check_says_who_cannot_be_notified() {
    let url = "http://hooks.example.org/hunter2hunter2";
    let fixture = Fixture::new(&[("rhumb.yaml", CONFIGURATION), ("files/a.yaml", ""), ("url", url)]);
    let shown = fixture.run("check --config rhumb.yaml");
    let place = fixture.path().display();
    for line in [
        format!(
            "missing acme/shop at api.github.com cannot be notified: {place}/gone: No such file or directory (os error 2)"
        ),
        format!(
            "missing the channel of {place}/url cannot be notified: its URL is not https, and not http on this machine"
        ),
        "warning no commit status of the source files at acme/shop: it is a directory, and has no commits"
            .to_owned(),
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
}
