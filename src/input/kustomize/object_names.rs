//! The names of the objects in files, by the contents of the files. Roots share files, and a commit
//! changes few of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::BlobId;

use super::patch::NamedObject;

/// The bytes of memory that the names of one generation take. There are two of them, of some two
/// hundred objects each.
const MAX_GENERATION_BYTES: usize = 64 << 10;

/// The objects that files name: each content is parsed once.
///
/// A content that is asked for stays. Of the others those go that were asked for longest ago.
#[derive(Debug, Default)]
pub struct ObjectNames(Mutex<NameGenerations>);

/// The names that were asked for last, and those before them.
#[derive(Debug, Default)]
struct NameGenerations {
    young: HashMap<BlobId, Arc<[NamedObject]>>,
    old: HashMap<BlobId, Arc<[NamedObject]>>,
    /// The bytes of memory that the young ones take.
    bytes: usize,
}

impl ObjectNames {
    /// Returns the objects that a content names, where it was parsed before.
    pub(super) fn get(&self, blob: BlobId) -> Option<Arc<[NamedObject]>> {
        let mut names = self.lock();
        if let Some(objects) = names.young.get(&blob) {
            return Some(objects.clone());
        }
        let objects = names.old.remove(&blob)?;
        names.add(blob, objects.clone());
        Some(objects)
    }

    /// Remembers the objects that a content names.
    pub(super) fn add(&self, blob: BlobId, objects: Arc<[NamedObject]>) {
        self.lock().add(blob, objects);
    }

    /// Forgets all but the young ones: a pass over the roots has asked for those that they share.
    pub fn shrink(&self) {
        self.lock().old = HashMap::new();
    }

    fn lock(&self) -> MutexGuard<'_, NameGenerations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NameGenerations {
    fn add(&mut self, blob: BlobId, objects: Arc<[NamedObject]>) {
        let bytes = size(&objects);
        if bytes > MAX_GENERATION_BYTES {
            return;
        }
        if self.bytes + bytes > MAX_GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        if self.young.insert(blob, objects).is_none() {
            self.bytes += bytes;
        }
    }
}

/// Returns the bytes of memory that names take. A file without any has its entry, in a table of
/// which half may be empty.
fn size(objects: &[NamedObject]) -> usize {
    let texts = |one: &NamedObject| {
        let texts = [&one.group, &one.version, &one.kind, &one.name, &one.namespace];
        texts.iter().map(|text| block_size(text.capacity())).sum::<usize>()
    };
    let counts = 2 * size_of::<usize>();
    let list = block_size(counts + size_of_val(objects));
    let entry = 2 * size_of::<(BlobId, Arc<[NamedObject]>)>();
    entry + list + objects.iter().map(texts).sum::<usize>()
}

/// Returns the bytes that an allocator takes for so many. No block is smaller than four words.
fn block_size(bytes: usize) -> usize {
    let word = size_of::<usize>();
    if bytes == 0 { 0 } else { (bytes + word).next_multiple_of(2 * word).max(4 * word) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::kustomize::{ClosureLimits, ExpectedObjects, OriginFinder, ParsedFiles, find_closure};

    /// Returns how many files are read to know what a root prints.
    fn reads(tree: &MemoryTree, root: &str, names: &ObjectNames) -> usize {
        let parsed = &mut ParsedFiles::default();
        let closure = find_closure(tree, root, ClosureLimits::default(), parsed).unwrap();
        let before = tree.reads();
        let expected = ExpectedObjects::of(&mut OriginFinder::new(&closure, tree).with_names(names));
        assert!(expected.unwrap().is_some());
        tree.reads() - before
    }

    fn service(name: &str) -> String {
        format!("kind: Service\napiVersion: v1\nmetadata: {{name: {name}}}\n")
    }

    #[test]
    fn a_content_is_parsed_once_whatever_roots_and_revisions_have_it() {
        let tree = MemoryTree::new()
            .file("base/kustomization.yaml", "resources: [web.yaml, api.yaml]\n")
            .file("base/web.yaml", service("web"))
            .file("base/api.yaml", service("api"))
            .file("a/kustomization.yaml", "resources: [../base]\n")
            .file("b/kustomization.yaml", "resources: [../base]\nnamePrefix: b-\n");
        let names = ObjectNames::default();
        assert_eq!(reads(&tree, "a", &names), 2);
        assert_eq!(reads(&tree, "b", &names), 0);
        let changed = tree.clone().file("base/web.yaml", service("shop"));
        assert_eq!(reads(&changed, "b", &names), 1, "the changed file is parsed, and no other one");
        assert_eq!(reads(&tree, "b", &names), 0, "the older content is known as well");
        assert_eq!(reads(&tree, "b", &ObjectNames::default()), 2);
    }

    #[test]
    fn a_name_takes_what_an_allocator_takes_for_its_texts() {
        let check = |bytes: usize, expected: usize| assert_eq!(block_size(bytes), expected, "{bytes}");
        check(0, 0);
        check(1, 32);
        check(24, 32);
        check(25, 48);
        check(40, 48);
        let one = NamedObject::all(service("web").as_bytes());
        let two = [one.clone(), one.clone()].concat();
        let list = |count: usize| block_size(2 * size_of::<usize>() + count * size_of::<NamedObject>());
        // Its version, kind and name.
        assert_eq!(size(&two) - size(&one), list(2) - list(1) + 3 * 32);
    }

    #[test]
    fn no_more_is_remembered_than_the_bound_and_what_is_asked_for_stays() {
        let names = ObjectNames::default();
        let blob = |number: usize| BlobId::of(number.to_string().as_bytes());
        let parse = |name: &str| -> Arc<[NamedObject]> { NamedObject::all(service(name).as_bytes()).into() };
        for number in 0..3_000 {
            names.add(blob(number), parse(&format!("web-{number}")));
            assert!(names.get(blob(0)).is_some(), "{number}");
        }
        let generations = names.lock();
        for generation in [&generations.young, &generations.old] {
            let bytes: usize = generation.values().map(|objects| size(objects)).sum();
            assert!(bytes <= MAX_GENERATION_BYTES && !generation.is_empty(), "{bytes}");
        }
        let old = *generations.old.keys().find(|one| **one != blob(0)).unwrap();
        drop(generations);
        assert!(names.get(blob(1)).is_none() && names.get(blob(2_999)).is_some());
        names.shrink();
        assert!(names.get(old).is_none() && names.get(blob(0)).is_some() && names.get(blob(2_999)).is_some());
        let large = NamedObject { name: "x".repeat(MAX_GENERATION_BYTES), ..parse("web")[0].clone() };
        names.add(blob(3_000), [large].into());
        assert!(names.get(blob(3_000)).is_none() && names.get(blob(2_999)).is_some());
    }
}
