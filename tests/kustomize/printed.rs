//! `rhumb render` compared with the real kustomize: the same objects.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::build::{build, documents, kustomize};
use super::repositories::{Repository, own, real};

/// The time for the roots of all repositories. Roots that are left are not tried.
const TIME: Duration = Duration::from_mins(1);

/// Returns the objects that the program prints of a folder; none where it finds errors.
fn printed(folder: &Path) -> Option<Vec<Value>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
    command.args(["render", "--show-secrets", "--output", "json"]).arg(folder).env_clear();
    command.env("PATH", kustomize().parent().unwrap()).env("HOME", "/nonexistent");
    let output = command.output().unwrap();
    let mut shown: Value = serde_json::from_slice(&output.stdout).ok()?;
    let Value::Array(objects) = shown["objects"].take() else { return None };
    output.status.success().then_some(objects)
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(ToString::to_string);
    objects
}

/// Compares a root. False where one of both does not print it without errors.
fn check(repository: &Repository, root: &str) -> bool {
    let folder = repository.folder.join(root);
    let (Ok(bare), Some(printed)) = (build(&folder), printed(&folder)) else { return false };
    assert_eq!(sorted(printed), sorted(documents(&bare)), "{}", folder.display());
    true
}

#[test]
fn a_root_is_printed_as_kustomize_builds_it() {
    let shop = Repository::at(&own("shop"));
    let count = shop.roots().iter().filter(|root| check(&shop, root)).count();
    assert!(count >= 8, "only {count} roots were compared");
}

#[test]
fn roots_of_real_repositories_are_printed_as_kustomize_builds_them() {
    let Some(repositories) = real() else { return };
    let end = Instant::now() + TIME;
    let (mut tried, mut equal) = (0, 0);
    // One of each repository after the other, so that the time reaches some of all.
    let mut left: Vec<_> =
        repositories.iter().map(|repository| (repository, repository.roots().into_iter())).collect();
    while !left.is_empty() && Instant::now() < end {
        left.retain_mut(|(repository, roots)| {
            let Some(root) = roots.next().filter(|_| Instant::now() < end) else { return false };
            tried += 1;
            equal += usize::from(check(repository, &root));
            true
        });
    }
    eprintln!("{tried} roots tried, {equal} equal, all others have errors");
    assert!(equal > 0, "none of {tried} roots was compared");
}
