//! `rhumb render` compared with the real kustomize: the same objects.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::build::{build, documents, kustomize};
use super::repositories::{Repository, own, real};

/// The time for the roots of all repositories. Roots that are left are not tried.
const TIME: Duration = Duration::from_mins(1);

/// The errors of roots that kustomize builds, by their codes and a text in their messages. Flux
/// makes names of variables, and rhumb opens files for age alone.
const KNOWN_ERRORS: [(&str, &str); 3] =
    [("bad-name", "${"), ("bad-namespace", "${"), ("not-supported", "is encrypted for PGP, and not for age")];

/// The outcome of a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    /// kustomize does not build it.
    Unbuilt,
    /// kustomize builds it, and rhumb refuses it for a known reason.
    Refused,
}

/// Returns the objects that the program prints of a folder, or the errors that it finds.
fn printed(folder: &Path) -> Result<Vec<Value>, Vec<Value>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
    command.args(["render", "--show-secrets", "--output", "json"]).arg(folder).env_clear();
    command.env("PATH", kustomize().parent().unwrap()).env("HOME", "/nonexistent");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let mut shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    if output.status.success() {
        return Ok(shown["objects"].as_array_mut().map(std::mem::take).unwrap());
    }
    let mut found = shown["diagnostics"].as_array_mut().map(std::mem::take).unwrap();
    found.retain(|found| found["severity"] == "error");
    Err(found)
}

fn is_known(found: &Value) -> bool {
    let message = found["message"].as_str().unwrap();
    KNOWN_ERRORS.iter().any(|(code, text)| found["code"] == *code && message.contains(text))
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(ToString::to_string);
    objects
}

/// Compares a root.
fn compare(repository: &Repository, root: &str) -> Comparison {
    let folder = repository.folder.join(root);
    let Ok(bare) = build(&folder) else { return Comparison::Unbuilt };
    match printed(&folder) {
        Ok(printed) => {
            assert_eq!(sorted(printed), sorted(documents(&bare)), "{}", folder.display());
            Comparison::Equal
        }
        Err(found) => {
            let is_refused = !found.is_empty() && found.iter().all(is_known);
            assert!(is_refused, "{} builds, and is not printed: {found:#?}", folder.display());
            Comparison::Refused
        }
    }
}

/// Returns copies of repositories in git work trees: beside a folder in none nothing is read.
fn work_trees(repositories: &[Repository]) -> (TempDir, Vec<Repository>) {
    let folder = tempfile::tempdir().unwrap();
    let copies = repositories.iter().map(|repository| {
        let copy = folder.path().join(repository.folder.file_name().unwrap());
        let copied = Command::new("cp").arg("-r").arg(&repository.folder).arg(&copy).status().unwrap();
        assert!(copied.success() && fs::exists(&copy).unwrap());
        let made = Command::new("git").args(["init", "--quiet"]).arg(&copy).status().unwrap();
        assert!(made.success());
        Repository::at(&copy)
    });
    let copies = copies.collect();
    (folder, copies)
}

#[test]
fn a_root_is_printed_as_kustomize_builds_it() {
    let shop = Repository::at(&own("shop"));
    let roots = shop.roots();
    let count = roots.iter().filter(|root| compare(&shop, root) == Comparison::Equal).count();
    assert!(count >= 8, "only {count} roots were compared");
}

#[test]
fn roots_of_real_repositories_are_printed_as_kustomize_builds_them() {
    let Some(repositories) = real() else { return };
    let (_folder, repositories) = work_trees(&repositories);
    let end = Instant::now() + TIME;
    let mut all = Vec::new();
    // One of each repository after the other, so that the time reaches some of all.
    let mut left: Vec<_> =
        repositories.iter().map(|repository| (repository, repository.roots().into_iter())).collect();
    while !left.is_empty() && Instant::now() < end {
        left.retain_mut(|(repository, roots)| {
            let Some(root) = roots.next().filter(|_| Instant::now() < end) else { return false };
            all.push(compare(repository, &root));
            true
        });
    }
    let count = |wanted: Comparison| all.iter().filter(|found| **found == wanted).count();
    let [equal, unbuilt, refused] = [Comparison::Equal, Comparison::Unbuilt, Comparison::Refused].map(count);
    eprintln!("{equal} roots are equal, {unbuilt} do not build, {refused} are refused for a known reason");
    assert!(equal > refused, "only {equal} of {} roots were compared", all.len());
}
