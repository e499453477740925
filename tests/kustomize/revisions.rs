//! The difference of two revisions by the real kustomize, where no cluster is.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::build::kustomize;

const BASE: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 2\n  \
                    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
                    containers: [{name: web, image: 'nginx:1.28'}]\n";
const OVERLAY: &str = "resources: [../base]\npatches: [{path: patch.yaml}]\n";
const PATCH: &str =
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 3}\n";
const OLD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: shop}\n";

struct Clone {
    folder: TempDir,
}

impl Clone {
    /// Returns a repository with two commits: `main`, and the one of a pull request.
    fn new() -> Self {
        let clone = Self { folder: tempfile::tempdir().unwrap() };
        clone.git(&["init", "--quiet", "--initial-branch=main"]);
        clone.put("base/kustomization.yaml", "resources: [web.yaml]\n");
        clone.put("base/web.yaml", BASE);
        clone.put("prod/kustomization.yaml", OVERLAY);
        clone.put("prod/patch.yaml", PATCH);
        clone.put("old.yaml", OLD);
        clone.put("key.yaml", &secret("canary-before"));
        clone.put(".rhumbignore", "base\nrhumb.yaml\n");
        clone.commit();
        clone.git(&["checkout", "--quiet", "-b", "request"]);
        clone.put("prod/patch.yaml", &PATCH.replace('3', "5"));
        fs::remove_file(clone.path().join("old.yaml")).unwrap();
        clone.put("key.yaml", &secret("canary-after"));
        clone.commit();
        clone
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, words: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(words);
        command.current_dir(self.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.status().unwrap().success(), "{words:?}");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a"]);
    }

    /// Runs the program with no cluster that it could ask.
    fn rhumb(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        let search =
            format!("{}:{}", kustomize().parent().unwrap().display(), std::env::var("PATH").unwrap());
        command.args(line.split_whitespace()).current_dir(self.path()).env_clear();
        command.env("PATH", search).env("HOME", self.path()).env("KUBECONFIG", "/nonexistent");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Fails unless a command line ends so, and prints each of these texts.
    #[track_caller]
    fn check(&self, line: &str, code: i32, said: &[&str], unsaid: &[&str]) {
        let output = self.rhumb(line);
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {printed}");
        for text in said {
            assert!(printed.contains(text), "{line}: no {text:?} in {printed}");
        }
        for text in unsaid.iter().chain(&["canary"]) {
            assert!(!printed.contains(text), "{line}: {text:?} in {printed}");
        }
    }
}

fn secret(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: shop}}\nstringData: {{password: {value}}}\n"
    )
}

const CHANGES: [&str; 6] = [
    "- ConfigMap shop/old  old.yaml:1",
    "~ Secret shop/key  key.yaml:1",
    "~ Deployment shop/web  scales by 2 pods  prod (kustomize) ← base/web.yaml:1, prod/patch.yaml:1",
    "  -   replicas: 3",
    "  +   replicas: 5",
    "0 added, 2 changed, 1 removed, 0 unchanged",
];

#[test]
fn a_request_shows_what_it_changes_without_a_cluster() {
    let clone = Clone::new();
    clone.check("diff --from main --to request", 1, &CHANGES, &[]);
    clone.check("diff --from main", 1, &CHANGES, &[]);
    clone.check(
        "diff . --from request --to request",
        0,
        &["0 added, 0 changed, 0 removed, 2 unchanged"],
        &["~"],
    );
    // One folder of the repository: the root reads its base all the same.
    let one = ["~ Deployment shop/web", "0 added, 1 changed, 0 removed, 0 unchanged"];
    clone.check("diff prod --from main", 1, &one, &["Secret"]);
    clone.check("diff . --path prod --from main --to request", 1, &one, &["Secret"]);
    clone.check(
        "diff . --from main --to request -o json",
        1,
        &["\"action\": \"delete\"", "\"renderer\": \"kustomize"],
        &[],
    );
    clone.check("diff . --from main --to request -o unified", 1, &["-  replicas: 3", "+  replicas: 5"], &[]);
    clone.check("diff . --from main --to request -o name", 1, &["deployment.apps/web"], &[]);
    // The files on disk count, committed or not.
    clone.put("new.yaml", &OLD.replace("old", "new"));
    clone.check("diff --from request", 1, &["+ ConfigMap shop/new", "1 added, 0 changed"], &[]);
    clone.check("diff --from HEAD --to request", 0, &["2 unchanged"], &["shop/new"]);
}

#[test]
fn a_root_that_fails_removes_nothing() {
    let clone = Clone::new();
    clone.put("prod/kustomization.yaml", "resources: [../base]\npatches: [{path: gone.yaml}]\n");
    clone.commit();
    let said = [
        "not known whether these objects of main are removed: ",
        "Deployment shop/web",
        "prod/kustomization.yaml:2",
        "gone.yaml",
        "not everything was read: ",
    ];
    clone.check("diff --from main --to request", 1, &said, &["- ConfigMap", "- Deployment"]);
    // The other way round the older revision is named.
    clone.check(
        "diff --from request --to main",
        1,
        &["request:prod/kustomization.yaml:2"],
        &["+ Deployment"],
    );
}

#[test]
fn a_revision_or_a_folder_that_is_not_there_is_named() {
    let clone = Clone::new();
    clone.check("diff --from nowhere", 2, &["nowhere", "git fetch --unshallow"], &[]);
    clone.check("diff --from main~1", 2, &["main~1", "git fetch --unshallow"], &[]);
    clone.check("diff --from main@{1}", 2, &["main@{1}", "`git rev-parse main@{1}`"], &[]);
    clone.check("diff --from request~1 --to request", 1, &["1 removed"], &["canary"]);
    clone.check("diff --to main", 2, &["--from"], &[]);
    clone.check("diff https://git.example.org/a.git --from main", 2, &["is not on this host"], &[]);
    clone.check("diff . --path nowhere --from main --to request", 2, &["nowhere"], &[]);
    clone.put("added/map.yaml", &OLD.replace("old", "added"));
    clone.check(
        "diff added --from main",
        1,
        &["+ ConfigMap shop/added", "note: added: no manifest in main"],
        &[],
    );
    let outside = tempfile::tempdir().unwrap();
    clone.check(&format!("diff {} --from main", outside.path().display()), 2, &["in no git repository"], &[]);
}

#[test]
fn the_settings_of_a_source_count() {
    let clone = Clone::new();
    let source = |name: &str, location: &str| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec:\n  {location}\n  namespace: rest\n  \
             allow: {{kinds: [ConfigMap]}}\n  substitute: {{LEVEL: warn}}\n---\n"
        )
    };
    let text =
        source("shop", "directory: apps") + &source("far", "git: {url: 'https://git.example.org/a.git'}");
    clone.put("rhumb.yaml", &text);
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {level: '${LEVEL}'}\n";
    clone.put("apps/all.yaml", &format!("{map}---\n{}", secret("canary-before")));
    let said = ["+ ConfigMap rest/env", "Secret shop/key is not allowed", "1 added"];
    clone.check("diff --config rhumb.yaml --source shop --from main", 1, &said, &[]);
    let far = "error: source far: https://git.example.org/a.git is not on this host";
    clone.check("diff --config rhumb.yaml --from main", 2, &["source shop", said[0], far], &[]);
    clone.check("diff apps --config rhumb.yaml --source far --from main", 1, &said, &[]);
    // The command `render` takes the same settings.
    let printed = ["level: warn", "namespace: rest", "Secret shop/key is not allowed"];
    clone.check("render --config rhumb.yaml --source shop", 1, &printed, &["kind: Secret"]);
    clone.check("render apps -c rhumb.yaml --source far -o json", 1, &["\"level\": \"warn\""], &[]);
    clone.check("render --config rhumb.yaml", 2, &["one source is rendered at a time"], &[]);
}
