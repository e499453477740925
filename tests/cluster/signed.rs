//! A source follows only what is signed; what was accepted is defended meanwhile.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Daemon, Repo, TestNamespace, at, run, until, yaml};

/// A key that counts, and a repository that it signs in.
struct SignedRepository {
    repo: Repo,
    keys: TempDir,
}

impl SignedRepository {
    fn new() -> Self {
        let signed = Self { repo: Repo::new(&[("README", "nothing")]), keys: TempDir::new().unwrap() };
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(signed.key());
        assert!(command.status().unwrap().success());
        let public = std::fs::read_to_string(signed.key().with_extension("pub")).unwrap();
        std::fs::write(signed.signers(), format!("ann@example.org {public}")).unwrap();
        signed
    }

    fn key(&self) -> PathBuf {
        self.keys.path().join("key")
    }

    fn signers(&self) -> PathBuf {
        self.keys.path().join("signers")
    }

    /// Commits a value with a signature.
    fn change(&self, value: &str) -> String {
        self.repo.write("env.yaml", &yaml::config_map("env", "a", value));
        self.repo.git(&["add", "--all"]);
        let key = format!("user.signingKey={}", self.key().display());
        let settings = ["-c", "gpg.format=ssh", "-c", &key];
        self.repo.git(&[&settings[..], &["commit", "--quiet", "--gpg-sign", "--message=Sign"]].concat());
        self.repo.head()
    }

    fn configuration(&self, site: &TestNamespace<'_>, mode: &str) -> String {
        let url = format!("url: {}", self.repo.path().display());
        let verified = format!("{url}, verify: {{keys: {}, mode: {mode}}}", self.signers().display());
        site.configuration(self.repo.path(), "").replace(&url, &verified)
    }
}

fn says_nothing_is_followed(site: &TestNamespace<'_>, daemon: &Daemon, mark: usize, words: &str) {
    daemon.says_since(mark, &["WARN", words, "in force: "]);
    let why =
        || site.inventory().is_some_and(|inventory| inventory["data"]["status"].to_string().contains(words));
    until("the inventory tells it", why);
    until("an Event tells it", || {
        let all = site.api.list(&format!("/api/v1/namespaces/{}/events", site.system()));
        all.iter().any(|event| event["message"].to_string().contains(words))
    });
    let status = site.rhumb(&["status"]).all();
    assert!(status.contains(words), "{status}");
}

#[test]
fn only_signed_commits_are_applied_and_what_was_accepted_is_defended() {
    let site = TestNamespace::new("signed");
    let signed = SignedRepository::new();
    let first = signed.change("1");
    let text = signed.configuration(&site, "range");
    let mut daemon = site.configured(&text);
    site.await_data("env", "a", "1");
    let accepted = || site.inventory().map(|inventory| inventory["data"]["accepted"].clone());
    until("it is written down", || accepted() == Some(json!(first)));
    let mark = daemon.mark();
    let unsigned = signed.repo.change("env.yaml", &yaml::config_map("env", "a", "evil"));
    says_nothing_is_followed(&site, &daemon, mark, "it has no SSH signature");
    site.api.merge(&site.at("ConfigMap", "env"), "them", &json!({"data": {"a": "theirs"}}));
    site.await_data("env", "a", "1");
    let file = signed.keys.path().join("rhumb.yaml");
    std::fs::write(&file, &text).unwrap();
    let mut check = site.bare_command();
    check.arg("check").arg("--config").arg(&file);
    let checked = run(check).all();
    for words in ["commits can be verified by the keys of", "it has no SSH signature"] {
        assert!(checked.contains(words), "{checked}");
    }
    // A new host knows only what is written down.
    daemon.stop();
    let other = site.with_empty_state();
    let daemon = other.configured(&text);
    daemon.says(&["WARN", "it has no SSH signature"]);
    site.api.merge(&site.at("ConfigMap", "env"), "them", &json!({"data": {"a": "theirs"}}));
    site.await_data("env", "a", "1");
    // With the unsigned commit below it, a signed one is not enough until a person says so.
    let mark = daemon.mark();
    let third = signed.change("3");
    daemon.says_since(mark, &["WARN", &format!("commit {unsigned} in it: it has no SSH signature")]);
    let inventory = at("ConfigMap", &site.system(), &site.name);
    site.api.merge(&inventory, "ann", &json!({"metadata": {"annotations": {"rhumb.dev/accept": third}}}));
    site.await_data("env", "a", "3");
    until("it is written down", || accepted() == Some(json!(third)));
    until("the confirmation is spent", || {
        site.inventory()
            .is_some_and(|inventory| inventory["metadata"]["annotations"]["rhumb.dev/accept"].is_null())
    });
    let fourth = signed.change("4");
    site.await_data("env", "a", "4");
    until("it is written down", || accepted() == Some(json!(fourth)));
}

// Only the commit at the reference has to be signed: what is below it comes with it.
#[test]
fn with_the_mode_head_a_signed_commit_brings_the_unsigned_ones_below_it() {
    let site = TestNamespace::new("signed-head");
    let signed = SignedRepository::new();
    signed.change("1");
    let daemon = site.configured(&signed.configuration(&site, "head"));
    site.await_data("env", "a", "1");
    let mark = daemon.mark();
    signed.repo.change("other.yaml", &yaml::config_map("other", "a", "unsigned"));
    says_nothing_is_followed(&site, &daemon, mark, "it has no SSH signature");
    assert!(!site.has("ConfigMap", "other"));
    signed.change("2");
    site.await_data("env", "a", "2");
    site.await_data("other", "a", "unsigned");
}
