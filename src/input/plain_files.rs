//! The plain files of a source, and the variables that are put into them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::rendered_names::RenderedNames;
use super::sops::{SopsFormat, is_encrypted};
use super::substitution::{RevisionVariables, file_bytes, has_dollar};
use super::tree::FileTree;
use super::variables::{DocumentUsability, SubstitutedDocument, substitute};
use crate::manifest::listed_objects;
use crate::object::{Diagnostic, ManifestOrigin, RenderOrigin};
use crate::source::{
    BlobId, RenderedContent, RenderedRoot, RootKey, RootOutcome, Snapshot, SnapshotFile, SourceError,
};

/// The plain files that are taken as they are, by path, each with its content.
pub(super) type LiteralFiles = HashMap<Arc<str>, BlobId>;

/// Takes the plain files that name variables out of a snapshot, and puts the variables into them.
/// Files that were literal in the pass before are not read again, and those of this one take their
/// place.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(super) fn substitute_plain_files<T: FileTree>(
    plain: &mut Snapshot,
    start: &str,
    files: &T,
    variables: &RevisionVariables,
    known: &HashMap<RootKey, RenderedRoot>,
    literal: &mut LiteralFiles,
) -> Result<(Vec<RenderedRoot>, Vec<RenderedContent>), SourceError> {
    let (before, keys) = (std::mem::take(literal), FileKeys::of(variables));
    let known_paths: HashSet<&str> = known.values().map(|root| &*root.path).collect();
    let (mut roots, mut contents, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for file in std::mem::take(&mut plain.files) {
        if before.get(&file.path) == Some(&file.blob) {
            literal.insert(file.path.clone(), file.blob);
            left.push(file);
            continue;
        }
        // A key is made of all variables, and most files were never made anything of.
        if known_paths.contains(&*file.path)
            && let Some(same) = known.get(&keys.key_of(&file)).filter(|same| same.path == file.path)
        {
            roots.push(same.clone());
            continue;
        }
        match file_bytes(&file, start, files)? {
            // An encrypted file is checked as it is in git, and opened when it is read.
            Some(bytes) if !has_dollar(&bytes) || is_encrypted(&bytes, SopsFormat::of_name(&file.path)) => {
                literal.insert(file.path.clone(), file.blob);
                left.push(file);
            }
            Some(bytes) => {
                roots.push(substitute_file(&file, &bytes, variables, keys.key_of(&file), &mut contents));
            }
            None => left.push(file),
        }
    }
    plain.files = left;
    Ok((roots, contents))
}

fn substitute_file(
    file: &SnapshotFile,
    bytes: &[u8],
    variables: &RevisionVariables,
    key: RootKey,
    contents: &mut Vec<RenderedContent>,
) -> RenderedRoot {
    let path = file.path.clone();
    let refused = |found| RenderedRoot::new(path.clone(), RootKey::default(), RootOutcome::Refused(found));
    let read = substitute(&file.path, bytes, &variables.table);
    let is_faulty = |one: &SubstitutedDocument| one.usability == DocumentUsability::Faulty;
    if read.unreadable.iter().any(Diagnostic::is_error) || read.documents.iter().any(is_faulty) {
        let found = read.diagnostics(&file.path).into_iter().filter(Diagnostic::is_error).collect();
        return refused(variables.explain(found));
    }
    let warnings = read.diagnostics(&file.path).into();
    let mut names = RenderedNames::default();
    let mut objects: Vec<SnapshotFile> = Vec::new();
    for document in read.documents {
        let (position, value) = (document.value.position, document.value.to_value());
        if value.is_null() {
            continue;
        }
        let position = ManifestOrigin::new(path.clone(), position.line, position.column);
        // A Secret among the items of a list is sealed as any other.
        for mut value in listed_objects(value) {
            if let Err(found) = variables.keys.seal(&mut value, || position.clone()) {
                return refused(vec![*found]);
            }
            let bytes: Arc<[u8]> = value.to_string().into_bytes().into();
            let blob = BlobId::of(&bytes);
            objects.push(SnapshotFile {
                path: RenderedRoot::object_path(&path, &names.name_of(&value)),
                blob,
                size: bytes.len() as u64,
                origin: Some(RenderOrigin::of_origin(position.clone()).into()),
            });
            contents.push(RenderedContent { blob, bytes });
        }
    }
    objects.sort_unstable();
    RenderedRoot { warnings, ..RenderedRoot::new(path, key, RootOutcome::Rendered(objects.into())) }
}

/// The variables as they are in the key of each file, written out once.
struct FileKeys(Vec<u8>);

impl FileKeys {
    fn of(variables: &RevisionVariables) -> Self {
        let mut parts = Vec::new();
        for (name, value) in variables.key_values() {
            for part in [name, value] {
                parts.extend_from_slice(&(part.len() as u64).to_be_bytes());
                parts.extend_from_slice(part.as_bytes());
            }
        }
        Self(parts)
    }

    /// Returns the key of what is made of a file.
    fn key_of(&self, file: &SnapshotFile) -> RootKey {
        let mut hash = Sha256::new();
        hash.update("rhumb substitute 5");
        hash.update(<[u8; 20]>::from(file.blob));
        hash.update(&self.0);
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{
        SubstitutionConfig, VariableHolder, VariableHolderKind, VariableHolderNeed, VariableSecrecy,
    };
    use crate::input::holder_files::KnownHolders;
    use crate::input::kustomize::ParsedFiles;
    use crate::input::render_cipher::SEALED_PREFIX;
    use crate::input::roots::RootListing;
    use crate::input::sops::sealing::{self, sealed_secret};
    use crate::input::substitution::{VariableFacts, VariableSettings, read_variables};
    use crate::input::{Decrypter, MemoryTree};
    use crate::object::Revision;
    use crate::source::ClusterFacts;

    fn variables_of(
        config: &SubstitutionConfig,
        listing: &RootListing,
        tree: &MemoryTree,
    ) -> Arc<RevisionVariables> {
        let decrypter = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
        let settings = VariableSettings { config, namespace: "shop", decrypter: &decrypter };
        let facts = VariableFacts { cluster: &ClusterFacts::NotQueried, holders: KnownHolders::default() };
        let parsed = &mut ParsedFiles::default();
        let variables = read_variables(settings, listing, "", tree, parsed, facts).unwrap().variables;
        let variables = variables.unwrap();
        assert_eq!(variables.faults, []);
        variables
    }

    fn plain_file(path: &str, text: &str) -> SnapshotFile {
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        SnapshotFile { path: path.into(), blob, size, origin: None }
    }

    #[test]
    fn a_secret_among_the_items_of_a_list_is_sealed() {
        let holder = sealed_secret("vars", "canary");
        let item = "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: '${TOKEN}'}}";
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {item}\n");
        let tree = MemoryTree::new().file("list.yaml", &list).file("vars.yaml", &holder);
        let files = vec![plain_file("list.yaml", &list), plain_file("vars.yaml", &holder)];
        let plain = Snapshot::of_files(Revision::new("0"), files, Vec::new());
        let mut listing = RootListing { roots: Vec::new(), plain };
        let from = vec![VariableHolder {
            kind: VariableHolderKind::Secret,
            namespace: "shop".parse().unwrap(),
            name: "vars".parse().unwrap(),
            need: VariableHolderNeed::Required,
            secrecy: VariableSecrecy::Secret,
        }];
        let config = SubstitutionConfig { values: BTreeMap::new(), from };
        let variables = variables_of(&config, &listing, &tree);
        let known = HashMap::new();
        let (roots, contents) = substitute_plain_files(
            &mut listing.plain,
            "",
            &tree,
            &variables,
            &known,
            &mut LiteralFiles::new(),
        )
        .unwrap();
        assert!(matches!(&roots[..], [root] if root.outcome.failure().is_none()), "{roots:?}");
        let made: String =
            contents.iter().map(|made| String::from_utf8_lossy(&made.bytes).into_owned()).collect();
        assert!(made.contains(SEALED_PREFIX) && !made.contains("canary"), "{made}");
    }

    #[test]
    fn a_file_is_made_anew_where_others_open_what_is_sealed() {
        let keys = |recipient: &str| {
            let secret = sealed_secret("vars", "canary").replace("age1of-nobody", recipient);
            let tree = MemoryTree::new().file("vars.yaml", &secret);
            let files = vec![plain_file("vars.yaml", &secret)];
            let plain = Snapshot::of_files(Revision::new("0"), files, Vec::new());
            let from = vec![VariableHolder {
                kind: VariableHolderKind::Secret,
                namespace: "shop".parse().unwrap(),
                name: "vars".parse().unwrap(),
                need: VariableHolderNeed::Required,
                secrecy: VariableSecrecy::Secret,
            }];
            // It wins over the only variable of the Secret.
            let values = BTreeMap::from([("TOKEN".parse().unwrap(), "shown".to_owned())]);
            let config = SubstitutionConfig { values, from };
            let variables = variables_of(&config, &RootListing { roots: Vec::new(), plain }, &tree);
            let made = plain_file("a.yaml", "a: ${TOKEN}\n");
            (variables.digest(), FileKeys::of(&variables).key_of(&made))
        };
        let (before, after) = (keys("age1of-nobody"), keys("age1of-another"));
        assert_eq!(before, keys("age1of-nobody"));
        assert!(before.0 != after.0 && before.1 != after.1, "{before:?} {after:?}");
    }

    #[test]
    fn a_plain_file_is_read_again_where_it_or_its_variables_have_changed() {
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '${A}'}}";
        let (mut known, mut literal) = (HashMap::new(), LiteralFiles::new());
        let mut check = |value: &str, plain: &str, expected_reads: usize| {
            let tree = MemoryTree::new().file("a.yaml", map).file("b.yaml", plain);
            let files = vec![plain_file("a.yaml", map), plain_file("b.yaml", plain)];
            let mut plain = Snapshot::of_files(Revision::new("0"), files, Vec::new());
            let values = BTreeMap::from([("A".parse().unwrap(), value.to_owned())]);
            let config = SubstitutionConfig { values, from: Vec::new() };
            let listing = RootListing { roots: Vec::new(), plain: plain.clone() };
            let variables = variables_of(&config, &listing, &tree);
            let (roots, _) =
                substitute_plain_files(&mut plain, "", &tree, &variables, &known, &mut literal).unwrap();
            assert!(matches!(&roots[..], [root] if &*root.path == "a.yaml"), "{roots:?}");
            assert_eq!((plain.files.len(), tree.reads()), (1, expected_reads), "{value}");
            known = roots.into_iter().map(|root| (root.key, root)).collect();
        };
        check("1", "b: 1\n", 2);
        check("1", "b: 1\n", 0);
        check("2", "b: 1\n", 1);
        check("2", "b: 2\n", 1);
    }
}
