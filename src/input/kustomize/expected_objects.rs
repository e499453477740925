//! The objects that kustomize will print for a root, expected from its files: their origins need
//! not be asked for then. With origins, kustomize takes a quarter more processor time.
//!
//! **Invariant:** is sure or says nothing. Where an output is not the expected one, kustomize is
//! asked.

use std::collections::HashMap;

use serde_json::Value;

use crate::input::origin::OriginAnnotation;
use crate::input::paths;
use crate::input::tree::FileTree;
use crate::source::SourceError;

use super::closure::ClosureFolder;
use super::file::{KustomizationKind, ReferenceRole};
use super::object_origins::{OriginFinder, named_object};
use super::patch::NamedObject;

/// Objects that are expected of one root. Larger roots are rare, and kustomize is asked.
const MAX_EXPECTED_OBJECTS: usize = 5_000;
/// Folders that include each other in a row. Real ones have up to five.
const MAX_BASE_DEPTH: usize = 20;
/// Characters of the hash of a generated name, with the dash before it.
const DASHED_HASH_CHARS: usize = 11;
/// The kinds that prefixes and suffixes leave alone, as kustomize's `PrefixTransformer` has them.
const UNCHANGED_NAMES: [(&str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    NAMESPACE_KIND,
];
const NAMESPACE_KIND: (&str, &str) = ("", "Namespace");
/// The kinds that generators make.
const GENERATED_KINDS: [(&str, &str); 2] = [("", "ConfigMap"), ("", "Secret")];

/// An object that a root will print.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExpectedObject {
    group: String,
    kind: String,
    /// Its namespace, if its kind has them.
    namespace: String,
    /// The number of its origin.
    origin: usize,
}

/// The objects that a root will print, and the origin of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedObjects {
    /// The objects of files by their names.
    objects: HashMap<String, Vec<ExpectedObject>>,
    /// The names of generated objects, which have a hash at their end or none.
    generated: HashMap<String, Vec<usize>>,
    /// An origin for each.
    origins: Vec<OriginAnnotation>,
}

/// The changes that the folders on the way from the root make to names.
#[derive(Clone, Debug, Default)]
struct NameChange {
    prefix: String,
    suffix: String,
    /// The namespace of the outermost folder that sets one.
    namespace: String,
}

impl NameChange {
    /// Returns the change of what a folder includes: its own comes before those around it.
    fn change_within(&self, folder: &ClosureFolder) -> Self {
        let kustomization = &folder.kustomization;
        let outermost = if self.namespace.is_empty() { &kustomization.namespace } else { &self.namespace };
        Self {
            prefix: format!("{}{}", self.prefix, kustomization.affixes.prefix),
            suffix: format!("{}{}", kustomization.affixes.suffix, self.suffix),
            namespace: outermost.clone(),
        }
    }

    fn name_of(&self, object: &NamedObject) -> String {
        let kind = (&*object.group, &*object.kind);
        if kind == NAMESPACE_KIND && !self.namespace.is_empty() {
            return self.namespace.clone();
        }
        if UNCHANGED_NAMES.contains(&kind) {
            return object.name.clone();
        }
        format!("{}{}{}", self.prefix, object.name, self.suffix)
    }
}

impl ExpectedObjects {
    /// Returns the objects that kustomize will print for the closure of a finder; none where its
    /// files do not say so for certain.
    ///
    /// # Errors
    /// Fails where a file of the closure cannot be read.
    pub fn of(finder: &mut OriginFinder<'_, impl FileTree>) -> Result<Option<Self>, SourceError> {
        let closure = finder.closure();
        let Some(root) = closure.folders.first() else { return Ok(None) };
        let is_predictable = |folder: &ClosureFolder| {
            let kustomization = &folder.kustomization;
            kustomization.has_predictable_names && kustomization.kind == KustomizationKind::Kustomization
        };
        if !closure.folders.iter().all(is_predictable) {
            return Ok(None);
        }
        let mut walk = ExpectationWalk { finder, found: Self::default() };
        let is_certain = walk.add_folder(root, &NameChange::default(), 0)?;
        Ok(is_certain.then_some(walk.found))
    }

    /// Returns whether some name has variables in it, which are put in after the program.
    pub fn has_variables(&self) -> bool {
        let names = self.objects.keys().chain(self.generated.keys());
        names.into_iter().any(|name| name.contains('$'))
    }

    /// Returns the origins of the objects of an output, in its order. None where one of them is not
    /// expected, or more than one of the expected ones may be it.
    pub fn origins<'o>(&self, objects: impl IntoIterator<Item = &'o Value>) -> Option<Vec<OriginAnnotation>> {
        let mut is_used = vec![false; self.origins.len()];
        let origin = |object: &Value| {
            let number = self.number_of(&named_object(object))?;
            let is_first = !std::mem::replace(is_used.get_mut(number)?, true);
            is_first.then_some(())?;
            self.origins.get(number).cloned()
        };
        objects.into_iter().map(origin).collect()
    }

    /// Returns the number of the one that an object is.
    fn number_of(&self, object: &NamedObject) -> Option<usize> {
        let same_kind = |one: &&ExpectedObject| one.kind == object.kind && one.group == object.group;
        let named: Vec<&ExpectedObject> =
            self.objects.get(&object.name).into_iter().flatten().filter(same_kind).collect();
        let is_generated = GENERATED_KINDS.contains(&(&*object.group, &*object.kind));
        let without_hash = object.name.len().checked_sub(DASHED_HASH_CHARS);
        let without_hash = without_hash.and_then(|end| object.name.split_at_checked(end));
        let without_hash = without_hash.filter(|(_, hash)| is_hash(hash)).map(|(name, _)| name);
        let generated = [Some(&*object.name), without_hash].into_iter().flatten().filter(|_| is_generated);
        let generated: Vec<usize> =
            generated.filter_map(|name| self.generated.get(name)).flatten().copied().collect();
        match (named.as_slice(), generated.as_slice()) {
            ([only], []) => Some(only.origin),
            ([], [only]) => Some(*only),
            (several, []) => {
                let is_there = |one: &&&ExpectedObject| one.namespace == object.namespace;
                let mut there = several.iter().filter(is_there);
                there.next().filter(|_| there.next().is_none()).map(|one| one.origin)
            }
            _ => None,
        }
    }
}

/// Returns whether a text may be the hash that kustomize puts at the end of generated names.
fn is_hash(text: &str) -> bool {
    let hash = text.strip_prefix('-');
    hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
}

/// The walk from a root to the files of its objects.
struct ExpectationWalk<'w, 'a, T> {
    finder: &'w mut OriginFinder<'a, T>,
    found: ExpectedObjects,
}

impl<T: FileTree> ExpectationWalk<'_, '_, T> {
    /// Adds what a folder prints, and returns whether that is certain.
    fn add_folder(
        &mut self,
        folder: &ClosureFolder,
        around: &NameChange,
        depth: usize,
    ) -> Result<bool, SourceError> {
        if depth > MAX_BASE_DEPTH {
            return Ok(false);
        }
        let change = around.change_within(folder);
        for reference in &folder.kustomization.references {
            if reference.role != ReferenceRole::Resource {
                continue;
            }
            let Some(path) = paths::join(&folder.path, &reference.target) else { return Ok(false) };
            let is_certain = match self.finder.folder(&path) {
                Some(included) => self.add_folder(included, &change, depth + 1)?,
                None => self.add_file(&path, &change)?,
            };
            if !is_certain {
                return Ok(false);
            }
        }
        for (name, _) in &folder.kustomization.generated {
            let configured_in = Some(paths::relative_to(&self.finder.closure().root, &folder.file));
            let number = self.next_number(OriginAnnotation { configured_in, ..OriginAnnotation::default() });
            let name = format!("{}{name}{}", change.prefix, change.suffix);
            self.found.generated.entry(name).or_default().push(number);
        }
        Ok(self.found.origins.len() <= MAX_EXPECTED_OBJECTS)
    }

    fn add_file(&mut self, path: &str, change: &NameChange) -> Result<bool, SourceError> {
        let closure = self.finder.closure();
        let Some(file) = closure.files.get(path) else { return Ok(false) };
        let named = self.finder.read_named(file.file.blob)?;
        let path = paths::relative_to(&closure.root, path);
        for object in named.iter().filter(|object| !object.kind.is_empty()) {
            let origin = OriginAnnotation { path: Some(path.clone()), ..OriginAnnotation::default() };
            let origin = self.next_number(origin);
            let namespace = if change.namespace.is_empty() { &object.namespace } else { &change.namespace };
            let expected = ExpectedObject {
                group: object.group.clone(),
                kind: object.kind.clone(),
                namespace: namespace.clone(),
                origin,
            };
            self.found.objects.entry(change.name_of(object)).or_default().push(expected);
        }
        Ok(self.found.origins.len() <= MAX_EXPECTED_OBJECTS)
    }

    fn next_number(&mut self, origin: OriginAnnotation) -> usize {
        self.found.origins.push(origin);
        self.found.origins.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::kustomize::{ClosureLimits, ParsedFiles, find_closure};

    const BASE: (&str, &str) =
        ("base/kustomization.yaml", "namePrefix: b-\nresources: [web.yaml, env.yaml, shop.yaml]\n");

    /// Returns the origins of an output of `root`, which has objects of these kinds and names.
    fn origins(kustomization: &str, more: &[(&str, &str)], output: &[(&str, &str)]) -> Option<Vec<String>> {
        let root = ("root/kustomization.yaml", kustomization);
        let service = "kind: Service\napiVersion: v1\nmetadata: {name: web}\n---\nkind: Deployment\napiVersion: apps/v1\n\
                       metadata: {name: web}\n";
        let map = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: env}\n";
        let namespace = "kind: Namespace\napiVersion: v1\nmetadata: {name: shop}\n";
        let files =
            [BASE, root, ("base/web.yaml", service), ("base/env.yaml", map), ("base/shop.yaml", namespace)];
        let files = files.iter().chain(more);
        let tree = files.fold(MemoryTree::new(), |tree, (path, text)| tree.file(path, text));
        let closure = find_closure(&tree, "root", ClosureLimits::default(), &mut ParsedFiles::default());
        let expected = ExpectedObjects::of(&mut OriginFinder::new(&closure.unwrap(), &tree)).unwrap()?;
        let object = |(kind, name): &(&str, &str)| {
            let version = if *kind == "Deployment" { "apps/v1" } else { "v1" };
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
        };
        let output: Vec<Value> = output.iter().map(object).collect();
        let found = expected.origins(&output)?;
        Some(found.into_iter().map(|one| one.path.or(one.configured_in).unwrap_or_default()).collect())
    }

    #[test]
    fn an_output_as_its_files_say_has_its_origins() {
        let check = |kustomization: &str, output: &[(&str, &str)], expected: &[&str]| {
            let found = origins(kustomization, &[], output);
            assert_eq!(
                found.as_deref(),
                Some(&*expected.iter().map(ToString::to_string).collect::<Vec<_>>())
            );
        };
        let base = "resources: [../base]\n";
        check(
            base,
            &[("Namespace", "shop"), ("ConfigMap", "b-env"), ("Deployment", "b-web"), ("Service", "b-web")],
            &["../base/shop.yaml", "../base/env.yaml", "../base/web.yaml", "../base/web.yaml"],
        );
        check(&format!("{base}nameSuffix: -v1\n"), &[("Service", "b-web-v1")], &["../base/web.yaml"]);
        check(&format!("{base}namePrefix: a-\n"), &[("Service", "a-b-web")], &["../base/web.yaml"]);
        check(&format!("{base}namespace: prod\n"), &[("Namespace", "prod")], &["../base/shop.yaml"]);
        let generator =
            format!("{base}nameSuffix: -x\nconfigMapGenerator: [{{name: set, literals: [a=b]}}]\n");
        check(&generator, &[("ConfigMap", "set-x-5g88h79647")], &["kustomization.yaml"]);
        check(&generator, &[("ConfigMap", "set-x")], &["kustomization.yaml"]);
    }

    #[test]
    fn an_output_that_may_be_another_has_none() {
        let check = |kustomization: &str, more: &[(&str, &str)], output: &[(&str, &str)]| {
            assert_eq!(origins(kustomization, more, output), None, "{kustomization}");
        };
        let base = "resources: [../base]\n";
        check(base, &[], &[("Service", "web")]);
        check(base, &[], &[("Secret", "b-web")]);
        check(base, &[], &[("Service", "b-web"), ("Service", "b-web")]);
        let component = ("part/kustomization.yaml", "kind: Component\nnamePrefix: c-\n");
        check(&format!("{base}components: [../part]\n"), &[component], &[("Service", "b-web")]);
        check(&format!("{base}buildMetadata: [originAnnotations]\n"), &[], &[("Service", "b-web")]);
        check(&format!("{base}NamePrefix: a-\n"), &[], &[("Service", "a-b-web")]);
        let merged = "configMapGenerator: [{name: set, behavior: merge, literals: [a=b]}]\n";
        check(&format!("{base}{merged}"), &[], &[("Service", "b-web")]);
        let twice =
            ("root/web.yaml", "kind: Service\napiVersion: v1\nmetadata: {name: b-web, namespace: x}\n");
        check("resources: [../base, web.yaml]\n", &[twice], &[("Service", "b-web"), ("Service", "b-web")]);
    }
}
