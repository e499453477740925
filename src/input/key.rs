//! The key under which the outcome of a render is kept: equal inputs, equal key, and only those.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::object::hex_text;
use crate::source::BlobId;

use super::kustomize::Closure;

/// The form of the key. Another one where what is hashed, or what is made of an output, changes.
const KEY_FORMAT_VERSION: &str = "rhumb render 11";

/// The program that renders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramIdentity {
    /// Its name.
    pub name: String,
    /// The version it calls itself.
    pub version: String,
    /// The SHA-256 of its file.
    pub digest: [u8; 32],
}

/// All that the outcome of a render depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenderInputs<'a> {
    /// The program.
    pub program: &'a ProgramIdentity,
    /// Its arguments, without the places of files, in their order.
    pub arguments: Vec<String>,
    /// The environment that it gets, without the places of files.
    pub environment: BTreeMap<String, String>,
    /// Every option that changes what is made of its output.
    pub options: BTreeMap<String, String>,
    /// The folder that is rendered.
    pub root: &'a str,
    /// The files by path: mode and content.
    pub files: BTreeMap<&'a str, (FileMode, BlobId)>,
    /// The charts by name: the SHA-256 of each archive.
    pub charts: BTreeMap<String, [u8; 32]>,
    /// The version of the cluster; none where the render does not depend on it.
    pub kube_version: Option<String>,
    /// The kinds of the cluster, as the render is given them.
    pub api_versions: Arc<[String]>,
    /// The variables that are put in, by name. Of a secret one the value is a hash under the seal.
    pub variables: BTreeMap<String, String>,
}

/// The mode of a file, as git has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FileMode {
    /// Not executable.
    Plain,
    /// Executable.
    Executable,
}

impl<'a> RenderInputs<'a> {
    /// Returns the inputs of a program over a closure, without any option.
    pub(crate) fn of(program: &'a ProgramIdentity, closure: &'a Closure) -> Self {
        let mode = |is_executable| if is_executable { FileMode::Executable } else { FileMode::Plain };
        let files = closure.files.iter();
        Self {
            program,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            options: BTreeMap::new(),
            root: &closure.root,
            files: files
                .map(|(path, file)| (&**path, (mode(file.file.is_executable), file.file.blob)))
                .collect(),
            charts: BTreeMap::new(),
            kube_version: None,
            api_versions: Arc::default(),
            variables: BTreeMap::new(),
        }
    }

    /// Returns the key.
    pub(crate) fn key(&self) -> RenderKey {
        let mut form = CanonicalForm(Sha256::new());
        form.text(KEY_FORMAT_VERSION);
        form.text(&self.program.name);
        form.text(&self.program.version);
        form.bytes(&self.program.digest);
        form.list(self.arguments.iter(), |form, argument| form.text(argument));
        form.map(&self.environment, |form, value| form.text(value));
        form.map(&self.options, |form, value| form.text(value));
        form.text(self.root);
        form.map(&self.files, |form, (mode, blob)| {
            form.bytes(&[u8::from(*mode == FileMode::Executable)]);
            form.bytes(&<[u8; 20]>::from(*blob));
        });
        form.map(&self.charts, |form, digest| form.bytes(digest));
        form.list(self.kube_version.iter(), |form, version| form.text(version));
        form.list(self.api_versions.iter(), |form, version| form.text(version));
        form.map(&self.variables, |form, value| form.text(value));
        RenderKey(form.0.finalize().into())
    }
}

/// Bytes of which no two lists of parts share a text: each part comes after its length, each list
/// after its count.
struct CanonicalForm(Sha256);

impl CanonicalForm {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn list<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        self.0.update((items.len() as u64).to_be_bytes());
        items.for_each(|item| each(self, item));
    }

    fn map<K: AsRef<str>, V>(&mut self, map: &BTreeMap<K, V>, mut each: impl FnMut(&mut Self, &V)) {
        self.list(map.iter(), |form, (key, value)| {
            form.text(key.as_ref());
            each(form, value);
        });
    }
}

/// The key of a render: the SHA-256 of its inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RenderKey([u8; 32]);

impl RenderKey {
    /// Returns its bytes.
    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0
    }
}

/// 64 hex digits.
impl fmt::Display for RenderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex_text(&self.0))
    }
}

impl fmt::Debug for RenderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RenderKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn program() -> ProgramIdentity {
        ProgramIdentity { name: "kustomize".into(), version: "v5.8.2".into(), digest: [7; 32] }
    }

    /// Checks that each change of the inputs alone, and each way to move a letter over a border,
    /// gives another key.
    #[test]
    fn every_input_is_in_the_key_and_no_two_run_together() {
        let (first, mut second, mut third) = (program(), program(), program());
        second.version = "v5.8.3".into();
        third.digest = [8; 32];
        let closure = Closure::default();
        let base = RenderInputs::of(&first, &closure);
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let blob = |text: &str| BlobId::of(text.as_bytes());
        let files = |path, mode, text| BTreeMap::from([(path, (mode, blob(text)))]);
        let inputs = [
            base.clone(),
            RenderInputs { program: &second, ..base.clone() },
            RenderInputs { program: &third, ..base.clone() },
            RenderInputs { arguments: vec!["ab".into()], ..base.clone() },
            RenderInputs { arguments: vec!["a".into(), "b".into()], ..base.clone() },
            RenderInputs { arguments: vec!["ab".into(), String::new()], ..base.clone() },
            RenderInputs { environment: map("a", "bc"), ..base.clone() },
            RenderInputs { environment: map("ab", "c"), ..base.clone() },
            RenderInputs { options: map("a", "bc"), ..base.clone() },
            RenderInputs { options: map("ab", "c"), ..base.clone() },
            RenderInputs { variables: map("a", "bc"), ..base.clone() },
            RenderInputs { variables: map("ab", "c"), ..base.clone() },
            RenderInputs { root: "a", ..base.clone() },
            RenderInputs { files: files("a", FileMode::Plain, "x"), ..base.clone() },
            RenderInputs { files: files("b", FileMode::Plain, "x"), ..base.clone() },
            RenderInputs { files: files("a", FileMode::Executable, "x"), ..base.clone() },
            RenderInputs { files: files("a", FileMode::Plain, "y"), ..base.clone() },
            RenderInputs { charts: BTreeMap::from([("a".into(), [1; 32])]), ..base.clone() },
            RenderInputs { charts: BTreeMap::from([("a".into(), [2; 32])]), ..base.clone() },
            RenderInputs { kube_version: Some("1.34".into()), ..base.clone() },
            RenderInputs { api_versions: ["1.34".into()].into(), ..base.clone() },
        ];
        let keys: BTreeSet<RenderKey> = inputs.iter().map(RenderInputs::key).collect();
        assert_eq!(keys.len(), inputs.len());
        assert_eq!(base.key(), base.clone().key());
    }
}
