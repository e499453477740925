//! The files of this package, and which of them a crate reaches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use walkdir::WalkDir;

use crate::rust;

/// The folders with sources.
pub(crate) const FOLDERS: [&str; 4] = ["src", "tests", "examples", "benches"];

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path from the package's root, with `/`.
    pub(crate) path: String,
    /// Its text; empty if it is none.
    pub(crate) text: String,
}

impl Source {
    /// Returns the modules that it is in, the top one first: `["engine", "decide"]`.
    pub(crate) fn module(&self) -> Vec<&str> {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let inside = inside.strip_suffix(".rs").unwrap_or(inside);
        let inside = inside.strip_suffix("/mod").unwrap_or(inside);
        if inside == "lib" || inside == "main" { Vec::new() } else { inside.split('/').collect() }
    }

    /// Returns whether it is compiled for tests only: `tests.rs`, `tests/`, `pods_tests.rs`,
    /// `properties.rs`.
    pub(crate) fn is_test(&self) -> bool {
        let module = self.module();
        module.iter().any(|name| *name == "tests" || name.ends_with("_tests") || *name == "properties")
    }
}

/// Returns the package's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a file's text.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns all files below folders, in order.
pub(crate) fn files(folders: &[&str]) -> Vec<Source> {
    let mut found: Vec<Source> = folders
        .iter()
        .map(|folder| root().join(folder))
        .filter(|folder| folder.exists())
        .flat_map(|folder| {
            WalkDir::new(folder).into_iter().filter_entry(|entry| entry.file_name() != "target")
        })
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let path = entry.path().strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            Source { path, text: fs::read_to_string(entry.path()).unwrap_or_default() }
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns all files below folders that are Rust.
pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    let mut found = files(folders);
    found.retain(|file| Path::new(&file.path).extension().is_some_and(|extension| extension == "rs"));
    found
}

/// Returns the names at the top level: those that git tracks, or all where there is no repository.
pub(crate) fn top_level() -> BTreeSet<String> {
    let listed = Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let listed = listed.ok().filter(|output| output.status.success() && !output.stdout.is_empty());
    if let Some(listed) = listed {
        let paths = String::from_utf8(listed.stdout).unwrap();
        paths.lines().map(|path| path.split('/').next().unwrap().to_owned()).collect()
    } else {
        let entries = fs::read_dir(root()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Returns the Rust files that a `mod` or cargo itself reaches, and the declared modules that have
/// no file.
pub(crate) fn reached() -> (BTreeSet<String>, Vec<String>) {
    let (mut seen, mut missing) = (BTreeSet::new(), Vec::new());
    for file in sources(&FOLDERS).iter().filter(|file| is_root(&file.path)) {
        follow(Path::new(&file.path), IsRoot::Yes, &mut seen, &mut missing);
    }
    (seen, missing)
}

/// Returns whether cargo compiles a file as the root of a crate.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["tests", "controlplane", "src", file] | ["src", file] => file == "lib.rs" || file == "main.rs",
        ["tests", "controlplane", "tests", _] | ["tests" | "examples" | "benches", _] => true,
        ["tests" | "examples" | "benches", _, file] => file == "main.rs",
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsRoot {
    Yes,
    No,
}

fn follow(path: &Path, is_root: IsRoot, seen: &mut BTreeSet<String>, missing: &mut Vec<String>) {
    if !seen.insert(path.to_str().unwrap().to_owned()) {
        return;
    }
    let beside = path.parent().unwrap();
    let stem = path.file_stem().unwrap();
    let below = if is_root == IsRoot::Yes || stem == "mod" { beside.to_owned() } else { beside.join(stem) };
    for module in rust::modules(&read(path.to_str().unwrap())) {
        let places = if let Some(named) = &module.path {
            vec![normal(&beside.join(named))]
        } else {
            let folder = module.inside.iter().fold(below.clone(), |folder, name| folder.join(name));
            vec![folder.join(format!("{}.rs", module.name)), folder.join(&module.name).join("mod.rs")]
        };
        match places.iter().find(|place| root().join(place).is_file()) {
            Some(place) => follow(place, IsRoot::No, seen, missing),
            None => missing.push(format!("{}: mod {}", path.display(), module.name)),
        }
    }
}

/// Returns a path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}
