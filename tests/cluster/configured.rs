//! The commands that look once, with a configuration: the same as the daemon with it.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Folder, ProgramOutput, Repo, TestNamespace, run, source, yaml};

/// A configuration of two sources, as a file.
struct ConfiguredFixture<'a> {
    site: &'a TestNamespace<'static>,
    one: Repo,
    two: Repo,
    file: PathBuf,
}

impl<'a> ConfiguredFixture<'a> {
    fn new(site: &'a TestNamespace<'static>, two: &str) -> Self {
        let repo = |name: &str| Repo::new(&[("own.yaml", yaml::config_map(name, "a", "1"))]);
        let estate =
            Self { site, one: repo("one"), two: repo("two"), file: site.state.path().join("rhumb.yaml") };
        std::fs::write(&estate.file, estate.text(two)).unwrap();
        estate
    }

    fn text(&self, two: &str) -> String {
        format!(
            "{}---\n{}",
            source("one", &self.site.name, self.one.path(), ""),
            source("two", &self.site.name, self.two.path(), two)
        )
    }

    fn rhumb(&self, arguments: &[&str]) -> ProgramOutput {
        let mut command = self.site.bare_command();
        command.args(arguments).arg("--config").arg(&self.file);
        run(command)
    }
}

/// Returns the parts of each of the two sources.
fn parts(run: &ProgramOutput) -> (String, String) {
    let (one, two) = run.stdout.split_once("\nsource two\n").unwrap_or_else(|| panic!("{run:#?}"));
    (one.strip_prefix("source one\n").unwrap().to_owned(), two.to_owned())
}

#[test]
fn a_diff_of_a_configuration_shows_each_source_and_what_another_one_has() {
    let site = TestNamespace::new("configured");
    let estate = ConfiguredFixture::new(&site, "  allow: {kinds: [ConfigMap]}");
    let (one, two) = parts(&estate.rhumb(&["diff"]).ends(1));
    assert!(one.contains("+ ConfigMap configured/one") && !one.contains("/two"), "{one}");
    assert!(two.contains("+ ConfigMap configured/two") && !two.contains("/one"), "{two}");

    // An object that nobody has goes to neither, and each keeps its own.
    estate.one.change("both.yaml", &yaml::config_map("both", "a", "one"));
    estate.two.change("theirs.yaml", &yaml::config_map("both", "a", "two"));
    let (one, two) = parts(&estate.rhumb(&["diff"]).ends(1));
    for shown in [&one, &two] {
        assert!(shown.contains("! ConfigMap configured/both"), "{shown}");
        assert!(shown.contains("2 sources want it: both.yaml:1 and theirs.yaml:1"), "{shown}");
    }
    estate.rhumb(&["apply", "--source", "one"]).ends(0);
    assert_eq!(site.data("both", "a"), "one");
    let run = estate.rhumb(&["diff"]).ends(1);
    let (one, two) = parts(&run);
    // As in the status: both sources report it.
    for (shown, summary) in [(&one, "0 to create, 0 to"), (&two, "1 to create, 0 to")] {
        assert!(shown.contains(summary), "{shown}");
        assert!(shown.contains("the first of them applies it"), "{shown}");
    }
    let alone = estate.rhumb(&["diff", "--source", "two"]).ends(1);
    assert_eq!(alone.stdout.trim(), two.trim());

    // An object that moves from one source to the other is not deleted.
    estate.one.remove("both.yaml");
    estate.one.commit("Give it up");
    let (one, two) = parts(&estate.rhumb(&["diff"]).ends(1));
    assert!(one.contains("= ConfigMap configured/both") && one.contains("source two wants it"), "{one}");
    assert!(two.contains("~ ConfigMap configured/both"), "{two}");
    assert!(two.contains("it exists and is adopted from source one"), "{two}");
}

#[test]
fn a_diff_keeps_an_object_of_which_only_the_last_manifest_asks_for_it() {
    let site = TestNamespace::new("configured-kept");
    let estate = ConfiguredFixture::new(&site, "");
    let kept = yaml::config_map("kept", "a", "1")
        .replace("  name: kept\n", "  name: kept\n  annotations: {rhumb.dev/prune: never}\n");
    estate.one.change("kept.yaml", &kept);
    estate.one.change("gone.yaml", &yaml::config_map("gone", "a", "1"));
    estate.one.commit("Add two");
    estate.rhumb(&["apply", "--source", "one"]).ends(0);
    let object = site.at("ConfigMap", "kept");
    site.api.merge(
        &object,
        "somebody",
        &json!({ "metadata": { "annotations": { "rhumb.dev/prune": null } } }),
    );
    for file in ["kept.yaml", "gone.yaml"] {
        estate.one.remove(file);
    }
    estate.one.commit("Remove two");
    // It stays, so that it is defended as the daemon defends it.
    let diff = estate.rhumb(&["diff", "--source", "one"]).ends(1);
    diff.says(&["~ ConfigMap configured-kept/kept"]);
    diff.says(&["somebody removed .metadata.annotations"]);
    diff.says(&["- ConfigMap configured-kept/gone"]);
    diff.says(&["1 to configure, 1 to delete, 1 unchanged"]);
    estate.rhumb(&["apply", "--source", "one"]).ends(0);
    assert!(site.has("ConfigMap", "kept") && !site.has("ConfigMap", "gone"));
    let diff = estate.rhumb(&["diff", "--source", "one"]).ends(0);
    diff.says(&["= ConfigMap configured-kept/kept"]);
    diff.says(&["0 to delete, 1 unchanged, 1 kept"]);
}

#[test]
fn an_object_of_a_source_that_the_configuration_does_not_name_is_refused() {
    let site = TestNamespace::new("configured-others");
    let folder = Folder::new(&[("own.yaml", yaml::config_map("two", "a", "other"))]);
    site.apply(folder.path(), &[]).ends(0);
    let estate = ConfiguredFixture::new(&site, "");
    let shown = estate.rhumb(&["diff", "--source", "two"]).ends(1);
    shown.says(&["! ConfigMap configured-others/two"]);
    shown.says(&["refused: it belongs to source configured-others"]);
    shown.says(&["0 to create, 0 to configure, 0 to delete, 0 unchanged, 1 refused"]);
}

#[test]
fn one_source_is_applied_with_its_own_settings() {
    let site = TestNamespace::new("configured-apply");
    let estate =
        ConfiguredFixture::new(&site, "  prune: false\n  observe: false\n  allow: {kinds: [ConfigMap]}");
    let applied = estate.rhumb(&["apply"]).ends(2);
    applied.says(&["error", "rhumb.yaml has several"]);
    applied.says(&["hint", "--source: one, two"]);
    assert!(!site.has("ConfigMap", "one"));
    estate.two.change("key.yaml", &yaml::secret("key", "a", "1"));
    estate.two.change("old.yaml", &yaml::config_map("old", "a", "1"));
    let applied = estate.rhumb(&["apply", "--source", "two"]).ends(1);
    applied.says(&["key.yaml:1", "Secret configured-apply/key is not allowed"]);
    assert!(site.has("ConfigMap", "two") && !site.has("Secret", "key") && !site.has("ConfigMap", "one"));
    // Only what is committed counts, and what a source that prunes nothing gives up stays.
    estate.two.remove("old.yaml");
    estate.two.commit("Give it up");
    estate.two.write("own.yaml", &yaml::config_map("two", "a", "uncommitted"));
    estate.rhumb(&["apply", "--source", "two"]).ends(1);
    assert!(site.has("ConfigMap", "old"));
    assert_eq!(site.data("two", "a"), "1");
    estate.rhumb(&["apply", "--source", "one"]).ends(0);
    estate.one.change("own.yaml", &yaml::config_map("renamed", "a", "1"));
    estate.rhumb(&["apply", "--source", "one"]).ends(0);
    assert!(site.has("ConfigMap", "renamed") && !site.has("ConfigMap", "one"));
    let refused = estate.rhumb(&["apply", estate.two.path().to_str().unwrap(), "--source", "two"]).ends(2);
    refused.says(&["a source is applied from its own location only"]);
}

#[test]
fn a_directory_is_judged_as_that_of_a_source() {
    let site = TestNamespace::new("configured-stead");
    let estate = ConfiguredFixture::new(&site, "  allow: {kinds: [ConfigMap]}");
    estate.rhumb(&["apply", "--source", "two"]).ends(0);
    let folder = Folder::new(&[
        ("new.yaml", yaml::config_map("new", "a", "1")),
        ("key.yaml", yaml::secret("key", "a", "1")),
    ]);
    let path = folder.path().to_str().unwrap();
    let window = site.window();
    let shown = estate.rhumb(&["diff", path, "--source", "two"]).ends(1);
    shown.says(&["+ ConfigMap configured-stead/new"]);
    shown.says(&["- ConfigMap configured-stead/two"]);
    shown.says(&["key.yaml:1", "Secret configured-stead/key is not allowed"]);
    let part = estate.rhumb(&["diff", "-f", &format!("{path}/new.yaml"), "--source", "two"]).ends(1);
    part.says(&["+ ConfigMap configured-stead/new"]);
    part.says(&["1 to create, 0 to configure, 0 to delete, 0 unchanged"]);
    estate.rhumb(&["diff", path]).ends(2).says(&["hint", "--source: one, two"]);
    let json: Vec<Value> = {
        let run = estate.rhumb(&["diff", "-o", "json"]).ends(1);
        serde_json::Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap).collect()
    };
    let sources: Vec<&Value> = json.iter().map(|plan| &plan["source"]).collect();
    assert_eq!(sources, ["one", "two"]);
    window.assert_no_writes();
}
