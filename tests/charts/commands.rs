//! Charts of servers as the commands render and lock them.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::archives::chart;
use crate::fixture::helm;
use crate::repository::Repository;

/// A source with a chart that another one is a part of.
struct Source {
    repository: Repository,
    folder: TempDir,
}

impl Source {
    /// Makes one that asks for this version of the part.
    fn of(version: &str) -> Self {
        let source = Self { repository: Repository::start(), folder: tempfile::tempdir().unwrap() };
        let url = &source.repository.url;
        let part = format!("{{name: web, version: '{version}', repository: '{url}'}}");
        source.put(
            "src/shop/Chart.yaml",
            &format!("apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{part}]\n"),
        );
        source.put(
            "rhumb.yaml",
            &format!(
                "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nprograms: {{helm: {}}}\n---\n\
                 apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: shop}}\n\
                 spec: {{directory: {}, fetch: {{allow: ['{url}']}}}}\n",
                helm().display(),
                source.folder.path().join("src").display()
            ),
        );
        source
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command, and returns whether it succeeds, with all that it prints.
    fn rhumb(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_rhumb"))
            .args(arguments)
            .args(["--config", "rhumb.yaml"])
            .current_dir(self.folder.path())
            .env_clear()
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env("SSL_CERT_FILE", self.repository.fixture.path("ca.pem"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn lock(&self) -> String {
        fs::read_to_string(self.folder.path().join("src/shop/rhumb.lock")).unwrap_or_default()
    }
}

#[test]
fn the_helmignore_of_a_chart_says_nothing_of_the_files_of_a_fetched_part() {
    let source = Source::of("1.0.0");
    source.put("src/shop/.helmignore", "a.yaml\nweb/\n*.txt\n");
    let (succeeds, shown) = source.rhumb(&["render"]);
    assert!(succeeds && shown.contains("name: v1.0.0"), "{shown}");
}

#[test]
fn a_chart_without_a_version_is_locked_so_that_it_renders() {
    for version in ["", "*", "^1"] {
        let source = Source::of(version);
        let (succeeds, shown) = source.rhumb(&["validate"]);
        let asked = if version.is_empty() { "*" } else { version };
        let expected = format!("the version {asked} of the chart web is a range, which means 1.2.0 now");
        assert!(!succeeds && shown.contains(&expected), "{shown}");
        let (succeeds, shown) = source.rhumb(&["lock", "src"]);
        assert!(succeeds && source.lock().contains(&format!("constraint: \"{asked}\"")), "{shown}");
        let (succeeds, shown) = source.rhumb(&["render"]);
        assert!(succeeds && shown.contains("name: v1.2.0"), "{shown}");
        assert!(source.rhumb(&["lock", "src", "--check"]).0);
    }
}

#[test]
fn a_lock_takes_a_changed_chart_only_where_a_person_asks_for_it() {
    let source = Source::of("1.0.0");
    assert!(source.rhumb(&["render"]).0);
    source.repository.publish("1.0.0", chart("web", "1.0.0", "other"));
    let (succeeds, shown) = source.rhumb(&["lock", "src"]);
    assert!(!succeeds && shown.contains("has changed") && shown.contains("--update"), "{shown}");
    assert_eq!(source.lock(), "");
    let (succeeds, shown) = source.rhumb(&["lock", "src", "--update"]);
    assert!(succeeds && shown.contains("+ web 1.0.0"), "{shown}");
    let (succeeds, shown) = source.rhumb(&["render"]);
    assert!(succeeds && shown.contains("name: other"), "{shown}");
    assert!(source.rhumb(&["lock", "src"]).0);
}
