//! Roots compared with the real kustomize. The files that a closure names, and nothing else, give
//! the output of the whole repository. A root that is refused does not build without a network.
//!
//! `RHUMB_INPUTS` names a folder with more repositories in `repositories/`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what was tried")]

mod build;
mod printed;
mod repositories;
mod revisions;

use std::path::Path;

use rhumb::testing::input::kustomize::{
    ClosureLimits, OriginFinder, OriginTracking, ParsedFiles, PlannedContent, PlannedFile, RenderTree,
    find_closure,
};
use rhumb::testing::input::{FileTree, strip_origin};
use rhumb::testing::source::DiskTree;

use build::{build, documents, written};
use repositories::{OriginSource, Outcome, Repository, own};

/// Judges every root of a repository, on all cores.
fn judge(repository: &Repository) -> Vec<(String, Outcome)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let roots = repository.roots();
    let share = roots.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = roots
            .chunks(share)
            .map(|roots| {
                let one = |root: &String| (root.clone(), repository.judge(root));
                scope.spawn(move || roots.iter().map(one).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn count(outcomes: &[(String, Outcome)], wanted: fn(&Outcome) -> bool) -> usize {
    outcomes.iter().filter(|(_, outcome)| wanted(outcome)).count()
}

#[track_caller]
fn check(repository: &Repository, equal: usize, refused: usize) {
    let outcomes = judge(repository);
    let wrong: Vec<_> = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Wrong(_))).collect();
    assert!(wrong.is_empty(), "{}: {wrong:#?}", repository.folder.display());
    let counted = (
        count(&outcomes, |outcome| matches!(outcome, Outcome::Equal(_))),
        count(&outcomes, |outcome| matches!(outcome, Outcome::Refused(_))),
    );
    assert_eq!(counted, (equal, refused), "{outcomes:#?}");
}

#[test]
fn a_closure_alone_gives_the_output_of_the_whole_repository() {
    let repository = Repository::at(&own("shop"));
    check(&repository, 13, 0);
    assert_eq!(repository.judge("overlays/marked"), Outcome::EqualWithoutOrigins);
}

#[test]
fn what_is_refused_does_not_build() {
    check(&Repository::at(&own("")), 13, 10);
}

#[test]
fn links_are_replaced_by_what_they_lead_to() {
    let folder = repositories::linked();
    check(&Repository::at(folder.path()), 16, 0);
}

#[test]
fn real_repositories_give_their_output_or_are_refused_where_they_do_not_build() {
    let Some(repositories) = repositories::real() else { return };
    let mut all = [0; 2];
    for repository in repositories {
        let outcomes = judge(&repository);
        let wrong: Vec<_> =
            outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Wrong(_))).collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", repository.folder.display());
        let equal = count(&outcomes, |outcome| matches!(outcome, Outcome::Equal(_)));
        let from_files = count(&outcomes, |outcome| *outcome == Outcome::Equal(OriginSource::Files));
        let refused = count(&outcomes, |outcome| matches!(outcome, Outcome::Refused(_)));
        let unsaid = count(&outcomes, |outcome| *outcome == Outcome::EqualWithoutOrigins);
        let neither = count(&outcomes, |outcome| matches!(outcome, Outcome::FailsAlike(_)));
        assert!(!outcomes.is_empty(), "{} has no root", repository.folder.display());
        eprintln!(
            "{}: {} roots, {equal} equal ({from_files} with origins from their files), {unsaid} equal without \
             origins, {refused} refused, {neither} fail alike",
            repository.folder.display(),
            outcomes.len()
        );
        all = [all[0] + from_files, all[1] + equal];
    }
    let [from_files, equal] = all;
    // All others take a quarter more processor time.
    eprintln!("of {equal} roots {from_files} have their origins from their files");
    assert!(from_files * 4 >= equal * 3, "of {equal} roots only {from_files} have their origins from files");
}

/// Checks that the real program fails without any one file of a closure, so that no render is stale
/// or partial.
#[test]
fn a_closure_has_no_file_too_many() {
    let repository = Repository::at(&own("shop"));
    for root in repository.roots() {
        let closure = repository.closure(&root);
        let tree = RenderTree::plain(&closure);
        for left_out in &tree.files {
            let files = tree.files.iter().filter(|file| file.path != left_out.path).cloned().collect();
            let folder = written(&RenderTree { files, ..tree.clone() }, &repository.tree);
            std::fs::create_dir_all(folder.path().join(&root)).unwrap();
            let built = build(&folder.path().join(&root));
            assert!(built.is_err(), "{root} builds without {}", left_out.path);
        }
    }
}

#[test]
fn each_object_names_the_lines_that_it_comes_from() {
    let tree = DiskTree::open(&own("shop")).unwrap();
    let origins = |root: &str| {
        let closure =
            find_closure(&tree, root, ClosureLimits::default(), &mut ParsedFiles::default()).unwrap();
        let planned = RenderTree::of(&closure, &tree).unwrap();
        assert_eq!(planned.origins, OriginTracking::Added);
        let output = build(&written(&planned, &tree).path().join(root)).unwrap();
        let mut finder = OriginFinder::new(&closure, &tree);
        let mut named: Vec<String> = Vec::new();
        for mut object in documents(&output) {
            let said = strip_origin(&mut object);
            let name = format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
            named.push(format!("{name}: {}", finder.find(said.as_ref(), &object).unwrap()));
        }
        named.sort();
        named
    };
    assert_eq!(origins("overlays/prod"), include_str!("origins.txt").lines().collect::<Vec<_>>());
}

/// Reads a content that a plan names from the tree that it was planned over.
fn content(tree: &impl FileTree, planned: &PlannedFile) -> Vec<u8> {
    match &planned.content {
        PlannedContent::Blob(blob) => tree.read(*blob).unwrap().to_vec(),
        PlannedContent::Text(text) => text.to_vec(),
    }
}

fn put(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
