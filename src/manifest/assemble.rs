//! Manifest items as objects: namespaces in their normal form, and each object only once.
//!
//! The daemon assembles item by item, and commands all items of a source together.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::{KindScope, KindScopes, ManifestItem, clean};
use crate::object::annotations::{DEPENDS_ON, SOURCE_NAMESPACE_INFIX};
use crate::object::{Diagnostic, GroupKind, Gvk, ManifestOrigin, Object, ObjectId, annotation_text};

/// The usable objects of a source.
#[derive(Clone, Debug, Default)]
pub(crate) struct AssembledSource {
    /// The objects to apply, in the order of their items, with cleaned bodies.
    pub objects: Vec<Object>,
    /// The objects that are wanted and cannot be used. They must never be pruned.
    pub invalid: Vec<InvalidObject>,
    /// The diagnostics across items.
    pub diagnostics: Vec<Diagnostic>,
    /// Objects of `objects` and `invalid` whose kind the table does not know. Their namespace is as
    /// written. Once the kind is known they may turn out to be another object.
    pub unknown_scope: HashSet<ObjectId>,
}

/// An object that the source wants and that cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InvalidObject {
    /// The object.
    pub id: ObjectId,
    /// Its kind in the version that the manifest asks for.
    pub gvk: Gvk,
    /// The place where it was read.
    pub origin: ManifestOrigin,
    /// The reason for which it is unusable.
    pub reason: String,
}

/// The number of other places that are named for an object that is defined more than once.
const MAX_NAMED_DUPLICATES: usize = 3;

/// Normalises the namespaces of all items by the scope of their kinds, and finds objects that are
/// defined twice.
///
/// A cluster-scoped object loses its namespace, with a warning; a namespaced one without gets
/// `default_namespace`; one of an unknown kind stays as written. An object without a name is left
/// out: its reading was not `understood`.
pub(crate) fn assemble(
    items: impl IntoIterator<Item = ManifestItem>,
    scopes: &KindScopes,
    default_namespace: &str,
) -> AssembledSource {
    let mut assembly = Assembly::new(scopes, default_namespace);
    for item in items {
        assembly.add(item);
    }
    assembly.finish()
}

struct AssemblyEntry {
    id: ObjectId,
    gvk: Gvk,
    origin: ManifestOrigin,
    body: Value,
    valid: bool,
}

struct Assembly<'s> {
    scopes: &'s KindScopes,
    default: Arc<str>,
    entries: Vec<AssemblyEntry>,
    /// The first entry of each object.
    first: HashMap<ObjectId, usize>,
    /// Entries that share their object with an earlier one, by the index of that.
    copies: HashMap<usize, Vec<usize>>,
    kinds: HashMap<Gvk, Gvk>,
    namespaces: HashMap<Box<str>, Arc<str>>,
    assembled: AssembledSource,
}

impl<'s> Assembly<'s> {
    fn new(scopes: &'s KindScopes, default_namespace: &str) -> Self {
        Self {
            scopes,
            default: default_namespace.into(),
            entries: Vec::new(),
            first: HashMap::new(),
            copies: HashMap::new(),
            kinds: HashMap::new(),
            namespaces: HashMap::new(),
            assembled: AssembledSource::default(),
        }
    }

    fn add(&mut self, item: ManifestItem) {
        if item.name.is_empty() {
            return;
        }
        let gvk = self.kinds.entry(item.gvk.clone()).or_insert(item.gvk).clone();
        let kind = gvk.group_kind();
        let scope = self.scopes.get(&kind);
        let namespace = match (scope, item.namespace.as_deref()) {
            (Some(KindScope::Cluster), written) => {
                if let Some(written) = written {
                    self.assembled.diagnostics.push(needless_namespace(
                        &item.origin,
                        &kind,
                        &item.name,
                        written,
                    ));
                }
                Arc::from("")
            }
            (Some(KindScope::Namespaced), None) => self.default.clone(),
            (_, Some(written)) => self.intern_namespace(written),
            (None, None) => Arc::from(""),
        };
        let mut body = clean(item.body);
        set_namespace(&mut body, &namespace);
        complete_dependencies(&mut body, &self.default);
        let id = ObjectId::with_shared_namespace(&kind, namespace, &item.name);
        if scope.is_none() {
            self.assembled.unknown_scope.insert(id.clone());
        }
        let index = self.entries.len();
        let first = *self.first.entry(id.clone()).or_insert(index);
        if first != index {
            self.copies.entry(first).or_default().push(index);
        }
        self.entries.push(AssemblyEntry { id, gvk, origin: item.origin, body, valid: item.valid });
    }

    fn intern_namespace(&mut self, namespace: &str) -> Arc<str> {
        if let Some(known) = self.namespaces.get(namespace) {
            return known.clone();
        }
        let shared: Arc<str> = namespace.into();
        self.namespaces.insert(namespace.into(), shared.clone());
        shared
    }

    fn finish(mut self) -> AssembledSource {
        let mut twice: HashMap<usize, String> = HashMap::new();
        for (first, others) in &self.copies {
            let all: Vec<usize> = std::iter::once(*first).chain(others.iter().copied()).collect();
            let hint = duplicate_hint(all.iter().filter_map(|index| Some(&self.entries.get(*index)?.origin)));
            for &index in &all {
                let Some(entry) = self.entries.get(index) else { continue };
                let others = all.iter().filter(|other| **other != index);
                let origins = others.filter_map(|other| Some(&self.entries.get(*other)?.origin));
                let reason = format!("{} is defined {}", entry.id, also_at_text(all.len(), origins));
                let diagnostic = Diagnostic::error(entry.origin.clone(), "duplicate-object", reason.clone());
                self.assembled.diagnostics.push(diagnostic.hint(hint));
                twice.insert(index, reason);
            }
        }
        self.assembled.diagnostics.sort();
        for (index, entry) in self.entries.into_iter().enumerate() {
            let AssemblyEntry { id, gvk, origin, body, valid } = entry;
            let reason = match twice.remove(&index) {
                Some(reason) => reason,
                None if valid => {
                    self.assembled.objects.push(Object { id, gvk, body: Arc::new(body), origin });
                    continue;
                }
                None => "its manifest has an error".to_owned(),
            };
            self.assembled.invalid.push(InvalidObject { id, gvk, origin, reason });
        }
        self.assembled
    }
}

/// Returns the remedy for an object that is defined more than once. Roots that share a base are
/// each meant for another cluster, so that nothing in them is to be removed.
fn duplicate_hint<'o>(origins: impl Iterator<Item = &'o ManifestOrigin>) -> &'static str {
    let root = |origin: &'o ManifestOrigin| {
        let render = origin.render.as_deref().filter(|render| !render.renderer.is_empty());
        render.map(|render| &*render.root)
    };
    let roots: Vec<Option<&str>> = origins.map(root).collect();
    let distinct: HashSet<&str> = roots.iter().flatten().copied().collect();
    let is_between_roots = distinct.len() > 1 && !roots.contains(&None);
    match (is_between_roots, roots.len() == 2) {
        (true, true) => {
            "name the root that is meant by `spec.git.path` (--path), or list the other in `.rhumbignore`: neither \
             is applied"
        }
        (true, false) => {
            "name the root that is meant by `spec.git.path` (--path), or list the others in `.rhumbignore`: none is \
             applied"
        }
        (false, true) => "remove one of the two: neither is applied",
        (false, false) => "remove all but one: none is applied",
    }
}

/// Returns how often an object is defined, and where besides here. Names a few, as each copy names
/// the others.
fn also_at_text<'o>(count: usize, others: impl Iterator<Item = &'o ManifestOrigin>) -> String {
    let times = if count == 2 { "twice".to_owned() } else { format!("{count} times") };
    let named: Vec<String> =
        others.take(MAX_NAMED_DUPLICATES).map(|origin| format!(" and at {origin}")).collect();
    let more = count - 1 - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{times}: here{}{more}", named.concat())
}

fn needless_namespace(origin: &ManifestOrigin, kind: &GroupKind, name: &str, namespace: &str) -> Diagnostic {
    let message = format!("{} {name} lives in no namespace: \"{namespace}\" is left out", kind.kind);
    Diagnostic::warning(origin.clone(), "needless-namespace", message).hint("remove metadata.namespace")
}

fn set_namespace(body: &mut Value, namespace: &str) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

/// Completes the names of dependencies that leave the namespace to the source. A chart's objects
/// have such names, as the chart does not know where they will live.
pub(crate) fn complete_dependencies(body: &mut Value, default: &str) {
    let text = annotation_text(body, DEPENDS_ON);
    if !text.contains(SOURCE_NAMESPACE_INFIX) {
        return;
    }
    let text = text.replace(SOURCE_NAMESPACE_INFIX, &format!("/namespaces/{default}/"));
    if let Some(written) = body.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        written.insert(DEPENDS_ON.to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn a_dependency_without_a_namespace_is_in_that_of_the_source() {
        let check = |text: &str, expected: &str| {
            let manifest = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: other\n  annotations: \
                 {{{DEPENDS_ON}: '{text}'}}\n"
            );
            let read = manifest::read(&Arc::from("a.yaml"), manifest.as_bytes());
            let assembled = assemble(read.items, &KindScopes::builtin(), "shop");
            assert_eq!(annotation_text(&assembled.objects[0].body, DEPENDS_ON), expected);
        };
        check("batch/namespaces//Job/a", "batch/namespaces/shop/Job/a");
        check(
            "Secret/b, /namespaces//ConfigMap/c, apps/namespaces//Deployment/web",
            "Secret/b, /namespaces/shop/ConfigMap/c, apps/namespaces/shop/Deployment/web",
        );
        check(
            "batch/namespaces/other/Job/a, v1/Namespace/shop",
            "batch/namespaces/other/Job/a, v1/Namespace/shop",
        );
    }
}
