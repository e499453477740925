//! The files of a source that may hold variables: its plain ones, and the resources that its
//! kustomizations name.
//!
//! A pass remembers the files that hold some, or may. So the next one reads these, and those that
//! have changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::slice;
use std::sync::Arc;

use super::kustomize::ParsedFiles;
use super::last_revision::LastRevision;
use super::named_resources::find_named_resources;
use super::plain_files::LiteralFiles;
use super::roots::{RootForm, RootListing};
use super::substitution::{VariableSettings, file_bytes};
use super::tree::FileTree;
use super::variable_seal::HolderReading;
use crate::config::VariableHolder;
use crate::source::{BlobId, SnapshotFile, SourceError};

/// Files by path, each with its content.
type FileList = Vec<(Arc<str>, BlobId)>;

/// The files that matter to the variables of a source, as one pass has found them.
#[derive(Debug, Default)]
pub(super) struct HolderMemory {
    /// The plain files that hold none.
    idle: HashMap<Arc<str>, BlobId>,
    /// The Secrets that were looked for among the resources of kustomizations.
    missing: Vec<VariableHolder>,
    /// The resources of each root, by its folder, that hold one of them, or may.
    resources: HashMap<Arc<str>, FileList>,
    /// The plain files that name no variables.
    pub(super) literal: LiteralFiles,
}

/// The files that a pass knows from the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownHolders<'a> {
    /// The memory of that pass; none where there was none.
    pub before: Option<&'a HolderMemory>,
    /// The folders of the roots whose files may have changed since; none where that cannot be told.
    pub touched: Option<&'a BTreeSet<Arc<str>>>,
}

impl<'a> KnownHolders<'a> {
    /// Returns what is known after a revision, since which files of these roots may have changed.
    pub(super) fn after(last: Option<&'a LastRevision>, touched: Option<&'a BTreeSet<Arc<str>>>) -> Self {
        Self { before: last.map(|last| &last.holders), touched }
    }

    /// Returns whether a plain file holds no variables.
    fn is_idle(self, file: &SnapshotFile) -> bool {
        self.before.is_some_and(|before| before.idle.get(&file.path) == Some(&file.blob))
    }

    /// Returns the resources of a root that hold one of these Secrets, or may; none where they have
    /// to be looked for.
    fn resources_of(self, folder: &str, missing: &[VariableHolder]) -> Option<&'a FileList> {
        let before = self.before.filter(|before| before.missing == missing)?;
        if self.touched?.contains(folder) { None } else { before.resources.get(folder) }
    }
}

/// Reads the objects of a source that may hold variables: those of its plain files. A Secret that
/// is in none may be a resource of a kustomization.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(super) fn read_holders<T: FileTree>(
    settings: VariableSettings<'_>,
    listing: &RootListing,
    start: &str,
    files: &T,
    parsed: &mut ParsedFiles,
    known: KnownHolders<'_>,
) -> Result<(HolderReading, HolderMemory), SourceError> {
    let VariableSettings { config, namespace, decrypter } = settings;
    let literal = known.before.map(|before| before.literal.clone()).unwrap_or_default();
    let (mut read, mut memory) =
        (HolderReading::default(), HolderMemory { literal, ..HolderMemory::default() });
    if config.from.is_empty() {
        return Ok((read, memory));
    }
    for file in &listing.plain.files {
        let mut one = HolderReading::default();
        if !known.is_idle(file) {
            match file_bytes(file, start, files)? {
                Some(bytes) => one.add_file(&file.path, &bytes, &config.from, namespace, decrypter),
                None => one.add_unread(&file.path),
            }
        }
        if one.is_idle(&config.from, namespace) {
            memory.idle.insert(file.path.clone(), file.blob);
        } else {
            read.append(one);
        }
    }
    for refused in &listing.plain.refused {
        read.add_unread(&refused.origin.file);
    }
    memory.missing = read.missing_secrets(&config.from, namespace);
    if !memory.missing.is_empty() {
        read_resources(
            settings,
            listing,
            files,
            parsed,
            known,
            FoundHolders { read: &mut read, memory: &mut memory },
        )?;
    }
    Ok((read, memory))
}

/// The objects with variables that a pass has found, and what the next pass is to know of them.
struct FoundHolders<'a> {
    read: &'a mut HolderReading,
    memory: &'a mut HolderMemory,
}

/// Reads the Secrets that are missing in what was read, from the resources of kustomizations.
fn read_resources<T: FileTree>(
    settings: VariableSettings<'_>,
    listing: &RootListing,
    files: &T,
    parsed: &mut ParsedFiles,
    known: KnownHolders<'_>,
    found: FoundHolders<'_>,
) -> Result<(), SourceError> {
    let FoundHolders { read, memory } = found;
    let VariableSettings { namespace, decrypter, .. } = settings;
    let (mut wanted, mut searched) = (BTreeMap::new(), Vec::new());
    for root in listing.roots.iter().filter(|root| root.form == RootForm::Kustomize) {
        if let Some(found) = known.resources_of(&root.folder, &memory.missing) {
            wanted.extend(found.iter().cloned());
            memory.resources.insert(root.folder.clone(), found.clone());
        } else {
            let found = find_named_resources(slice::from_ref(root), files, parsed)?;
            wanted.extend(found.iter().map(|(path, blob)| (path.clone(), *blob)));
            searched.push((root.folder.clone(), found));
        }
    }
    let mut holding = BTreeSet::new();
    for (path, blob) in wanted {
        let mut one = HolderReading::default();
        match files.read(blob) {
            Ok(bytes) => one.add_resource(&path, &bytes, &memory.missing, namespace, decrypter),
            Err(SourceError::Unreadable { .. }) => one.add_unread(&path),
            Err(error) => return Err(error),
        }
        if !one.is_idle(&memory.missing, namespace) {
            read.append(one);
            holding.insert(path);
        }
    }
    for (folder, found) in searched {
        let found = found.into_iter().filter(|(path, _)| holding.contains(path)).collect();
        memory.resources.insert(folder, found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SubstitutionConfig, VariableHolderKind, VariableHolderNeed, VariableSecrecy};
    use crate::input::roots::RenderRoot;
    use crate::input::{Decrypter, MemoryTree};
    use crate::object::Revision;
    use crate::source::Snapshot;

    const ROOTS: usize = 20;

    /// Returns a source of plain files and roots, and its files. One resource is the Secret.
    fn source() -> (MemoryTree, RootListing) {
        let mut tree = MemoryTree::new().file("roots/3/vars.yaml", secret("one"));
        let (mut roots, mut plain) = (Vec::new(), Vec::new());
        for number in 0..ROOTS {
            let resources = if number == 3 { "[web.yaml, vars.yaml]" } else { "[web.yaml]" };
            let folder = format!("roots/{number}");
            tree = tree
                .file(
                    &format!("{folder}/kustomization.yaml"),
                    format!("namePrefix: p{number}-\nresources: {resources}\n"),
                )
                .file(&format!("{folder}/web.yaml"), map(&format!("web-{number}")));
            roots.push(RenderRoot { folder: folder.into(), form: RootForm::Kustomize });
            let (path, text) = (format!("plain-{number}.yaml"), map(&format!("plain-{number}")));
            tree = tree.file(&path, &text);
            plain.push(plain_file(&path, &text));
        }
        let plain = Snapshot::of_files(Revision::new("0"), plain, Vec::new());
        (tree, RootListing { roots, plain })
    }

    fn plain_file(path: &str, text: &str) -> SnapshotFile {
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        SnapshotFile { path: path.into(), blob, size, origin: None }
    }

    fn map(name: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
    }

    fn secret(value: &str) -> String {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: vars}}\nstringData: {{A: {value}}}\n")
    }

    /// A search for one Secret over passes, each of which knows what the one before has found.
    struct Passes {
        config: SubstitutionConfig,
        decrypter: Decrypter,
        memory: Option<HolderMemory>,
    }

    impl Passes {
        fn new() -> Self {
            let holder = VariableHolder {
                kind: VariableHolderKind::Secret,
                namespace: "shop".parse().unwrap(),
                name: "vars".parse().unwrap(),
                need: VariableHolderNeed::Required,
                secrecy: VariableSecrecy::Open,
            };
            let config = SubstitutionConfig { values: BTreeMap::new(), from: vec![holder] };
            Self { config, decrypter: Decrypter::default(), memory: None }
        }

        /// Returns how many files a pass reads, and the values of the Secrets that it finds.
        fn run(
            &mut self,
            tree: &MemoryTree,
            listing: &RootListing,
            touched: &[&str],
        ) -> (usize, Vec<String>) {
            let settings =
                VariableSettings { config: &self.config, namespace: "shop", decrypter: &self.decrypter };
            let touched: BTreeSet<Arc<str>> = touched.iter().map(|folder| Arc::from(*folder)).collect();
            let known = KnownHolders { before: self.memory.as_ref(), touched: Some(&touched) };
            let (before, parsed) = (tree.reads(), &mut ParsedFiles::default());
            let (read, memory) = read_holders(settings, listing, "", tree, parsed, known).unwrap();
            self.memory = Some(memory);
            assert_eq!((read.faults.len(), &read.unread), (0, &None));
            let values = read.bodies.iter().map(|body| body.object["stringData"]["A"].to_string());
            (tree.reads() - before, values.collect())
        }
    }

    #[test]
    fn a_pass_reads_what_has_changed_and_what_holds_variables() {
        let (tree, listing) = source();
        let mut passes = Passes::new();
        let one = vec!["\"one\"".to_owned()];
        // Each plain file; the kustomization and resource of each root; the Secret.
        assert_eq!(passes.run(&tree, &listing, &[]), (3 * ROOTS + 1, one.clone()));
        assert_eq!(passes.run(&tree, &listing, &[]), (1, one.clone()), "the Secret");

        let tree = tree.file("roots/5/web.yaml", map("other"));
        assert_eq!(passes.run(&tree, &listing, &["roots/5"]), (3, one), "the root that changed");

        let tree = tree.file("roots/3/vars.yaml", secret("two"));
        let two = vec!["\"two\"".to_owned()];
        assert_eq!(passes.run(&tree, &listing, &["roots/3"]), (3, two), "the root of the Secret");

        // A plain file comes first.
        let (mut listing, tree) = (listing, tree.file("plain-1.yaml", secret("three")));
        listing.plain.files[1] = plain_file("plain-1.yaml", &secret("three"));
        let third = vec!["\"three\"".to_owned()];
        assert_eq!(passes.run(&tree, &listing, &[]), (1, third.clone()));
        assert_eq!(passes.run(&tree, &listing, &[]), (1, third));
    }

    #[test]
    fn a_pass_without_change_reads_nothing_where_no_file_holds_variables() {
        let (tree, listing) = source();
        let tree = tree.file("roots/3/vars.yaml", map("none"));
        let mut passes = Passes::new();
        assert_eq!(passes.run(&tree, &listing, &[]), (3 * ROOTS + 1, Vec::new()));
        assert_eq!(passes.run(&tree, &listing, &[]), (0, Vec::new()));
    }

    #[test]
    fn a_file_that_may_hold_variables_is_not_forgotten() {
        let (tree, mut listing) = source();
        listing.roots.clear();
        let tree = tree.file("plain-0.yaml", "a: [\n");
        listing.plain.files = vec![plain_file("plain-0.yaml", "a: [\n")];
        let config = Passes::new().config;
        let decrypter = Decrypter::default();
        let settings = VariableSettings { config: &config, namespace: "shop", decrypter: &decrypter };
        let mut memory = None;
        for _ in 0..2 {
            let known = KnownHolders { before: memory.as_ref(), touched: None };
            let parsed = &mut ParsedFiles::default();
            let (read, after) = read_holders(settings, &listing, "", &tree, parsed, known).unwrap();
            assert_eq!(read.unread.as_deref(), Some("plain-0.yaml"));
            memory = Some(after);
        }
    }
}
