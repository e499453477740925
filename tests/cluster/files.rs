//! Files that cannot be used as they are: each waits alone, and nothing is pruned meanwhile.

use serde_json::json;

use crate::support::{DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, eventually, yaml};

/// The third file's text when it does not parse, and where.
const BROKEN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c3}\ndata:\n  key: \"never closed\n";

fn ten(value: &str) -> Vec<(String, String)> {
    (0..10).map(|n| (format!("c{n}.yaml"), yaml::config_map(&format!("c{n}"), "key", value))).collect()
}

fn begin(site: &TestNamespace<'_>) -> Repo {
    let repo = Repo::new(&ten("one"));
    repo.change("extra.yaml", &yaml::config_map("extra", "key", "one"));
    site.apply(repo.path(), &["--ref", "HEAD"]).ends(0);
    repo
}

/// Commits a change of nine files, of which it breaks one, and removes one more.
fn spoil(repo: &Repo) {
    for (name, text) in ten("two") {
        repo.write(&name, &text);
    }
    repo.write("c3.yaml", BROKEN);
    repo.remove("extra.yaml");
    repo.commit("Change all, and break one");
}

#[test]
fn of_ten_files_one_that_does_not_parse_waits_alone() {
    let site = TestNamespace::new("broken-file");
    let repo = begin(&site);
    let daemon = site.daemon(repo.path());
    let window = site.window();
    spoil(&repo);
    for n in [0, 1, 2, 4, 5, 6, 7, 8, 9] {
        site.await_data(&format!("c{n}"), "key", "two");
    }
    daemon.says(&["c3.yaml:"]);
    assert_eq!(site.data("c3", "key"), "one");
    site.api.merge(&site.at("ConfigMap", "c3"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("c3", "key", "one");
    site.api.delete(&site.at("ConfigMap", "c3"));
    site.await_data("c3", "key", "one");
    assert!(site.has("ConfigMap", "extra"));
    window.assert_no_deletes();
    repo.change("c3.yaml", &yaml::config_map("c3", "key", "two"));
    site.await_data("c3", "key", "two");
    site.await_absence("ConfigMap", "extra");
}

#[test]
fn a_new_process_defends_what_a_broken_file_held() {
    let site = TestNamespace::new("broken-file-cold");
    let repo = begin(&site);
    spoil(&repo);
    let _daemon = site.with_empty_state().daemon(repo.path());
    site.await_data("c9", "key", "two");
    site.api.merge(&site.at("ConfigMap", "c3"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("c3", "key", "one");
    assert!(site.has("ConfigMap", "extra"));
}

#[test]
fn a_file_that_does_not_parse_is_named_and_sets_the_exit_codes() {
    let site = TestNamespace::new("broken-file-codes");
    let folder = Folder::new(&ten("one"));
    folder.write("extra.yaml", &yaml::config_map("extra", "key", "one"));
    site.apply(folder.path(), &[]).ends(0);
    for (name, text) in ten("two") {
        folder.write(&name, &text);
    }
    folder.write("c3.yaml", BROKEN);
    folder.remove("extra.yaml");
    let diff = site.diff(folder.path(), &[]).ends(1);
    diff.says(&["c3.yaml:", "error"]);
    assert!(!diff.all().lines().any(|line| line.starts_with("- ")), "{diff:#?}");
    let window = site.window();
    let apply = site.apply(folder.path(), &["--prune"]).ends(1);
    apply.says(&["c3.yaml:5", "error"]);
    apply.says(&["configmap/c9", "configured"]);
    assert_eq!((site.data("c3", "key"), site.data("c9", "key")), ("one".to_owned(), "two".to_owned()));
    assert!(site.has("ConfigMap", "extra"));
    window.assert_no_deletes();
    assert_eq!(window.writes().len(), 9);
}

#[test]
fn an_object_that_is_invalid_holds_back_itself_and_what_needs_it_but_not_its_file() {
    let site = TestNamespace::new("invalid-object");
    let invalid = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: env\n  labels: {\"not a label\": x}\n";
    let workload = yaml::deployment("web", 1, "nginx:1").replace(
        "        image: nginx:1\n",
        "        image: nginx:1\n        envFrom: [{configMapRef: {name: env}}]\n",
    );
    let all = [invalid.to_owned(), workload, yaml::config_map("other", "a", "b")];
    let folder = Folder::new(&[("all.yaml", yaml::documents(&all))]);
    let apply = site.apply(folder.path(), &[]).ends(1);
    apply.says(&["all.yaml:5", "not a label"]);
    apply.says(&["deployment.apps/web", "waiting", "env"]);
    assert_eq!(site.data("other", "a"), "b");
    assert!(!site.has("Deployment", "web"));
    folder.write("all.yaml", &yaml::documents(&[&all[1], &all[2]]));
    folder.write("env.yaml", &yaml::config_map("env", "a", "b"));
    site.apply(folder.path(), &[]).ends(0);
    assert!(site.has("Deployment", "web"));
}

#[test]
fn an_object_with_a_word_or_a_variable_that_is_not_understood_keeps_its_content_and_is_not_created() {
    let site = TestNamespace::new("not-understood");
    let words = [
        ("wave", "argocd.argoproj.io/sync-wave", "abc"),
        ("hook", "argocd.argoproj.io/hook", "PreSync"),
        ("helm-hook", "helm.sh/hook", "pre-install"),
        ("flux", "image.toolkit.fluxcd.io/x", "1"),
        ("own", "rhumb.dev/waves", "1"),
    ];
    let with_word = |(name, word, value): (&str, &str, &str), prefix: &str| {
        let annotated = format!("metadata:\n  annotations: {{{word}: \"{value}\"}}\n");
        yaml::config_map(&format!("{prefix}{name}"), "key", "two").replace("metadata:\n", &annotated)
    };
    let folder = Folder::new(&[("plain.yaml", yaml::config_map("plain", "key", "one"))]);
    for (name, ..) in words {
        folder.write(&format!("{name}.yaml"), &yaml::config_map(name, "key", "one"));
    }
    site.apply(folder.path(), &[]).ends(0);
    folder.write("plain.yaml", &yaml::config_map("plain", "key", "two"));
    for one in words {
        folder.write(&format!("{}.yaml", one.0), &with_word(one, ""));
        folder.write(&format!("new-{}.yaml", one.0), &with_word(one, "new-"));
    }
    folder.write("variable.yaml", &yaml::deployment("variable", 1, "shop.${DOMAIN}/web:1"));
    let apply = site.apply(folder.path(), &[]).ends(1);
    assert_eq!(site.data("plain", "key"), "two");
    for (name, word, _) in words {
        apply.says(&[&format!("{name}.yaml"), word]);
        assert_eq!(site.data(name, "key"), "one", "{name}");
        assert!(!site.has("ConfigMap", &format!("new-{name}")), "{name}");
    }
    apply.says(&["variable.yaml", "${DOMAIN}"]);
    assert!(!site.has("Deployment", "variable"));
}

#[test]
fn a_root_that_cannot_be_rendered_makes_the_source_incomplete() {
    let site = TestNamespace::new("foreign-file");
    let folder = Folder::new(&[
        ("a.yaml", yaml::config_map("a", "key", "one")),
        ("b.yaml", yaml::config_map("b", "key", "one")),
    ]);
    site.apply(folder.path(), &[]).ends(0);
    folder.remove("b.yaml");
    folder.write("sub/kustomization.yaml", "resources: [a.yaml]\n");
    folder.write("a.yaml", &yaml::config_map("a", "key", "two"));
    let apply = site.apply(folder.path(), &["--prune"]).ends(1);
    assert!(site.has("ConfigMap", "b"));
    assert_eq!(site.data("a", "key"), "two");
    let diff = site.diff(folder.path(), &[]).ends(1);
    for run in [apply, diff] {
        run.says(&[
            "sub/kustomization.yaml:1:13: error: resources: no such file or folder in this revision: a.yaml",
        ]);
        run.says(&["hint: add it to the repository, or correct the path"]);
        run.says(&["nothing is pruned: sub/kustomization.yaml:1: resources: no such file or folder"]);
    }
    let plan = site.diff(folder.path(), &["-o", "json"]).ends(1).json();
    assert_eq!(plan["diagnostics"][0]["file"], "sub/kustomization.yaml", "{plan:#}");
    let daemon = site.daemon(folder.path());
    daemon.says(&["WARN", "sub/kustomization.yaml", "no such file or folder in this revision"]);
    drop(daemon);
    std::fs::remove_dir_all(folder.path().join("sub")).unwrap();
    site.apply(folder.path(), &["--prune"]).ends(0);
    assert!(!site.has("ConfigMap", "b"));
}

#[test]
fn a_directory_that_is_followed_keeps_what_its_broken_file_held() {
    let site = TestNamespace::new("broken-file-dir");
    let folder = Folder::new(&ten("one"));
    let daemon = site.daemon(folder.path());
    for n in 0..10 {
        site.await_data(&format!("c{n}"), "key", "one");
    }
    folder.write("c3.yaml", BROKEN);
    folder.write("c9.yaml", &yaml::config_map("c9", "key", "two"));
    site.await_data("c9", "key", "two");
    daemon.says(&["c3.yaml:"]);
    site.api.merge(&site.at("ConfigMap", "c3"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("c3", "key", "one");
    folder.write("c3.yaml", &yaml::config_map("c3", "key", "three"));
    eventually("c3 is mended", DEFAULT_TIMEOUT, || match site.data("c3", "key") {
        value if value == "three" => Ok(()),
        value => Err(value),
    });
}

/// Returns the most memory that a process has held at once, in MiB.
fn peak_memory(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn many_names_of_one_wrong_file_take_little_memory_and_few_lines_of_the_log() {
    let site = TestNamespace::new("many-names");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "mode", "calm"))]);
    let daemon = site.daemon(repo.path());
    site.await_data("env", "mode", "calm");
    let (before, mark) = (peak_memory(&daemon), daemon.mark());
    let wrong = "a\n---\n".repeat(250);
    for number in 0..2000 {
        repo.write(&format!("wrong/{}/{number}.yaml", number % 20), &wrong);
    }
    repo.write("env.yaml", &yaml::config_map("env", "mode", "wild"));
    repo.commit("many names");
    site.await_data("env", "mode", "wild");
    daemon.says_since(mark, &["more errors in its files", "rhumb validate"]);
    let grown = peak_memory(&daemon) - before;
    assert!(grown < 96, "{grown} MiB");
    let lines = daemon.log().lines().count();
    assert!(lines < 400, "{lines} lines of the log");
}
