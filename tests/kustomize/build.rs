//! The real kustomize, without a network, and what it prints.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use controlplane::Renderers;
use rhumb::testing::input::FileTree;
use rhumb::testing::input::kustomize::RenderTree;
use serde::Deserialize as _;
use serde_json::Value;
use tempfile::TempDir;

/// An address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:1";

/// Returns the program, built once for all tests.
pub(crate) fn kustomize() -> &'static Path {
    static RENDERERS: OnceLock<Renderers> = OnceLock::new();
    &RENDERERS.get_or_init(|| Renderers::find().unwrap()).kustomize
}

/// Builds a folder. It finds no git, and no way out of this machine.
pub(crate) fn build(folder: &Path) -> Result<Vec<u8>, String> {
    let output = Command::new(kustomize())
        .args(["build", "--load-restrictor", "LoadRestrictionsNone", "."])
        .current_dir(folder)
        .env_clear()
        .envs([
            ("HOME", "/nonexistent"),
            ("PATH", "/nonexistent"),
            ("HTTP_PROXY", NOWHERE),
            ("HTTPS_PROXY", NOWHERE),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the objects of an output, by another reader than our own.
pub(crate) fn documents(output: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(output).unwrap();
    let documents = serde_yaml::Deserializer::from_str(text);
    let values = documents.map(|document| Value::deserialize(document).unwrap());
    values.filter(|value| !value.is_null()).collect()
}

/// Writes a tree into a folder of its own.
pub(crate) fn written(tree: &RenderTree, files: &impl FileTree) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in &tree.files {
        super::put(folder.path(), &file.path, &super::content(files, file));
    }
    folder
}
