//! Objects whose manifests went to another folder of the same repository, for a pass over one
//! folder.
//!
//! Nobody serves the source of a folder that is only applied by hand, so that it cannot be asked
//! what it wants. Its files can be read where both are in one work tree.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::action_executor::run_blocking;
use crate::engine::{DroppedObject, MovedObjects};
use crate::manifest;
use crate::object::{GroupKind, ObjectId, Revision};
use crate::source::{BlobId, DiskSnapshot, OutsideFiles, SourceError};

/// The name of an object as a file writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WrittenName {
    kind: GroupKind,
    name: String,
    /// None where the file names none.
    namespace: Option<String>,
}

/// Names of objects, each with the file that writes it.
#[derive(Clone, Debug, Default)]
struct WrittenNames(BTreeMap<WrittenName, Arc<str>>);

impl WrittenNames {
    fn add(&mut self, path: &str, bytes: &[u8]) {
        let file: Arc<str> = path.into();
        for item in manifest::read(&file, bytes).items {
            let kind = GroupKind { group: item.gvk.group.clone(), kind: item.gvk.kind.clone() };
            let name = WrittenName { kind, name: item.name, namespace: item.namespace };
            self.0.entry(name).or_insert_with(|| file.clone());
        }
    }

    /// Returns the file that may mean an object. One that names no namespace may mean any.
    fn file_of(&self, id: &ObjectId) -> Option<&Arc<str>> {
        let name = |namespace: Option<&str>| WrittenName {
            kind: id.group_kind(),
            name: id.name().to_owned(),
            namespace: namespace.map(str::to_owned),
        };
        self.0.get(&name(id.namespace())).or_else(|| self.0.get(&name(None)))
    }
}

/// A search for what the folder of a source has dropped, in the other folders of its repository.
pub(crate) struct MovedObjectSearch {
    outside: OutsideFiles,
    disk: Arc<DiskSnapshot>,
}

impl fmt::Debug for MovedObjectSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MovedObjectSearch").finish_non_exhaustive()
    }
}

impl MovedObjectSearch {
    /// Prepares a search around a folder that was read like this. None where the folder is in no
    /// work tree, or is all of one.
    ///
    /// # Errors
    /// Fails where the folder is not there, or where its `.git` leads elsewhere.
    pub(crate) fn of_folder(folder: &Path, disk: Arc<DiskSnapshot>) -> Result<Option<Self>, SourceError> {
        Ok(OutsideFiles::of_folder(folder)?.map(|outside| Self { outside, disk }))
    }

    /// Returns those of the dropped objects that another folder has come to name. Each comes with
    /// the file that names it.
    ///
    /// A file that named the object already when its content was released here is a twin, as that of
    /// another cluster. Where nobody knows that, the object counts as moved.
    pub(super) async fn find(self, dropped: Vec<DroppedObject>) -> MovedObjects {
        match run_blocking(move || self.search(dropped)).await {
            Ok(moved) => MovedObjects::Known(moved),
            Err(error) => MovedObjects::Unreadable(error.to_string().into()),
        }
    }

    fn search(&self, mut dropped: Vec<DroppedObject>) -> Result<BTreeMap<ObjectId, Arc<str>>, SourceError> {
        let mut own = WrittenNames::default();
        for file in &self.disk.snapshot.files {
            own.add(&file.path, self.disk.read(file.blob).unwrap_or_default());
        }
        dropped.retain(|object| own.file_of(&object.id).is_none());
        if dropped.is_empty() {
            return Ok(BTreeMap::new());
        }
        RepositorySearch::new(&self.outside)?.find_moved(dropped)
    }
}

/// A search in the files of a repository. Each content is read once.
struct RepositorySearch<'a> {
    outside: &'a OutsideFiles,
    now: WrittenNames,
    contents: HashMap<BlobId, Arc<WrittenNames>>,
    /// The names at earlier revisions; none for a revision that the repository does not have.
    before: BTreeMap<Revision, Option<WrittenNames>>,
}

impl<'a> RepositorySearch<'a> {
    fn new(outside: &'a OutsideFiles) -> Result<Self, SourceError> {
        let (mut now, mut contents) = (WrittenNames::default(), HashMap::new());
        outside.visit(|file| {
            let mut names = WrittenNames::default();
            names.add(&file.path, &file.bytes);
            now.0.extend(names.0.clone());
            contents.insert(file.blob, Arc::new(names));
        })?;
        Ok(Self { outside, now, contents, before: BTreeMap::new() })
    }

    fn find_moved(
        &mut self,
        dropped: Vec<DroppedObject>,
    ) -> Result<BTreeMap<ObjectId, Arc<str>>, SourceError> {
        let revisions = dropped.iter().filter(|object| self.now.file_of(&object.id).is_some());
        let revisions: BTreeSet<Revision> = revisions.filter_map(|object| object.released.clone()).collect();
        for revision in revisions {
            let names = self.read_names_at(&revision)?;
            self.before.insert(revision, names);
        }
        Ok(moved_objects(dropped, &self.now, &self.before))
    }

    fn read_names_at(&mut self, revision: &Revision) -> Result<Option<WrittenNames>, SourceError> {
        let Some(files) = self.outside.list_at(revision)? else { return Ok(None) };
        let mut all = WrittenNames::default();
        for (path, blob) in files {
            if !self.contents.contains_key(&blob) {
                let mut names = WrittenNames::default();
                names.add(&path, &self.outside.read(blob)?);
                self.contents.insert(blob, Arc::new(names));
            }
            all.0.extend(self.contents.get(&blob).into_iter().flat_map(|names| names.0.clone()));
        }
        Ok(Some(all))
    }
}

/// Returns those of the dropped objects that a file names now, and that none named when they were
/// released, each with that file.
fn moved_objects(
    dropped: Vec<DroppedObject>,
    now: &WrittenNames,
    before: &BTreeMap<Revision, Option<WrittenNames>>,
) -> BTreeMap<ObjectId, Arc<str>> {
    let is_twin = |object: &DroppedObject| {
        let names = object.released.as_ref().and_then(|revision| before.get(revision)?.as_ref());
        names.is_some_and(|names| names.file_of(&object.id).is_some())
    };
    let moved = dropped.into_iter().filter_map(|object| {
        let file = now.file_of(&object.id).filter(|_| !is_twin(&object))?.clone();
        Some((object.id, file))
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[(&str, &str)]) -> WrittenNames {
        let mut names = WrittenNames::default();
        for (path, text) in files {
            names.add(path, text.as_bytes());
        }
        names
    }

    fn manifest(name: &str, namespace: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{namespace}}}\n")
    }

    #[test]
    fn an_object_has_moved_where_another_file_has_come_to_name_it() {
        let (here, any, there) =
            (manifest("env", ", namespace: shop"), manifest("env", ""), manifest("env", ", namespace: x"));
        let other = manifest("other", "");
        let check = |now: &[(&str, &str)], before: Option<&[(&str, &str)]>, expected: Option<&str>| {
            let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "env");
            let revision = Revision::new("c1");
            let dropped = vec![DroppedObject { id: id.clone(), released: Some(revision.clone()) }];
            let before = [(revision, before.map(names))].into();
            let moved = moved_objects(dropped, &names(now), &before);
            assert_eq!(moved.get(&id).map(|file| &**file), expected, "{now:?}");
        };
        check(&[("b/env.yaml", &here)], Some(&[]), Some("b/env.yaml"));
        check(&[("b/env.yaml", &any)], Some(&[("b/env.yaml", &other)]), Some("b/env.yaml"));
        check(&[("b/env.yaml", &there)], Some(&[]), None);
        check(&[("b/env.yaml", &other)], Some(&[]), None);
        // The file of another cluster.
        check(&[("b/env.yaml", &here)], Some(&[("b/env.yaml", &here)]), None);
        check(&[("b/new/env.yaml", &here)], Some(&[("b/env.yaml", &any)]), None);
        // Nobody knows what was there.
        check(&[("b/env.yaml", &here)], None, Some("b/env.yaml"));
    }
}
