//! From the bytes of a file to what the engine keeps of it.
//!
//! `source_task/revision_step.rs` calls it for each file that changed. The facts travel in a
//! `SourceReading`, which goes in as `Input::Read`.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::parsed_manifests::ParsedManifests;
use crate::engine::{
    AllowList, BodyLocation, DesiredObject, FileCompleteness, FileFacts, SharedDesiredObject, SourceId,
    UnusableObject, check_annotations, check_variables,
};
use crate::input::{Decrypter, VariableMode, read_manifest};
use crate::manifest::{self, KindScopes, ManifestFile};
use crate::object::{Diagnostic, GroupKind, Gvk, NamespacedKind, Object, ObjectId, count_text, verb_to_be};
use crate::render::describe_violation;
use crate::source::SnapshotFile;

/// The settings for reading the files of one source.
#[derive(Clone, Debug)]
pub(super) struct ReadSettings {
    /// Number of the source.
    pub(super) source: SourceId,
    /// Id of its inventory.
    pub(super) inventory_id: Arc<str>,
    /// Namespace of objects that name none.
    pub(super) namespace: Arc<str>,
    /// The allow-list.
    pub(super) allow: Arc<AllowList>,
    /// The identities that open what is encrypted.
    pub(super) decrypter: Arc<Decrypter>,
    /// Indicates whether `${NAME}` in its files is a variable.
    pub(super) variables: VariableMode,
    /// Texts that its objects share.
    pub(super) names: NameInterner,
    /// The place of what was parsed, for those who need it again.
    pub(super) parsed: ParsedManifests,
}

/// The result of reading a file, with the kinds whose scopes were not known. It is read again once
/// they are.
#[derive(Debug)]
pub(super) struct FileReading {
    /// The facts that the engine keeps.
    pub(super) facts: FileFacts,
    /// Kinds that neither the server nor a definition in the source knows.
    pub(super) unknown: BTreeSet<GroupKind>,
}

impl ReadSettings {
    /// Reads one file.
    pub(super) fn read(
        &self,
        snapshot_file: &SnapshotFile,
        bytes: &[u8],
        scopes: &mut KindScopes,
    ) -> FileReading {
        self.assemble(snapshot_file, self.parse(snapshot_file, bytes), scopes)
    }

    /// Parses one file. It depends on no scope, and so on no other file.
    pub(super) fn parse(&self, snapshot_file: &SnapshotFile, bytes: &[u8]) -> ManifestFile {
        self.keep(snapshot_file, bytes, read_manifest(snapshot_file, bytes, &self.decrypter))
    }

    /// Keeps what was parsed of a file, where somebody needs it again, and returns it.
    pub(super) fn keep(
        &self,
        snapshot_file: &SnapshotFile,
        bytes: &[u8],
        parsed: ManifestFile,
    ) -> ManifestFile {
        self.parsed.keep(snapshot_file.blob, bytes.len(), &parsed.items);
        parsed
    }

    /// Makes the facts of what was parsed of a file.
    pub(super) fn assemble(
        &self,
        snapshot_file: &SnapshotFile,
        reading: ManifestFile,
        scopes: &mut KindScopes,
    ) -> FileReading {
        let file = &snapshot_file.path;
        let blob = snapshot_file.blob.into();
        let mut facts = FileFacts { diagnostics: reading.diagnostics, ..FileFacts::default() };
        if !reading.understood {
            facts.completeness = FileCompleteness::Partial;
        }
        let mut unknown = BTreeSet::new();
        for item in &reading.items {
            scopes.add_definition(item);
        }
        let mut disallowed = DisallowedObjects::default();
        for item in reading.items {
            let kind = item.gvk.group_kind();
            let scope = scopes.get(&kind);
            // The scope of a kind that is refused in any namespace need not be known.
            if scope.is_none() && self.allow.can_allow_kind(&kind, None) {
                unknown.insert(kind);
            }
            let location = BodyLocation { source: self.source, blob, index: item.index };
            let assembled = manifest::assemble([item], scopes, &self.namespace);
            facts.diagnostics.extend(assembled.diagnostics);
            for object in assembled.objects {
                if let Some(violation) = self.allow.violation(&object.id, scope) {
                    let found = describe_violation(&violation, &object.id, &object.origin);
                    facts.disallowed.push(unusable_object(object.id, object.gvk, &found));
                    disallowed.add(found);
                    continue;
                }
                let object = &self.names.intern_object(object);
                let mut misuse = check_annotations(object);
                if self.variables == VariableMode::Literal {
                    misuse.extend(check_variables(object));
                }
                match misuse.iter().find(|found| found.is_error()) {
                    Some(fault) => facts.unusable.push(Arc::new(UnusableObject {
                        id: object.id.clone(),
                        gvk: object.gvk.clone(),
                        origin: object.origin.clone(),
                        reason: fault.message.as_str().into(),
                    })),
                    None => facts.objects.push(self.desired_object(object, location)),
                }
                facts.diagnostics.extend(misuse);
            }
            for invalid in assembled.invalid {
                match self.allow.violation(&invalid.id, scope) {
                    Some(violation) => {
                        let found = describe_violation(&violation, &invalid.id, &invalid.origin);
                        facts.disallowed.push(unusable_object(invalid.id, invalid.gvk, &found));
                        disallowed.add(found);
                    }
                    None => facts.unusable.push(Arc::new(UnusableObject {
                        id: invalid.id,
                        gvk: invalid.gvk,
                        origin: invalid.origin,
                        reason: invalid.reason.as_str().into(),
                    })),
                }
            }
        }
        facts.diagnostics.extend(disallowed.diagnostics(file));
        facts.objects.shrink_to_fit();
        facts.unscoped.clone_from(&unknown);
        FileReading { facts, unknown }
    }
}

impl ReadSettings {
    fn desired_object(&self, object: &Object, location: BodyLocation) -> SharedDesiredObject {
        let mut desired = DesiredObject::of(object, location, &self.inventory_id);
        self.names.intern_references(&mut desired);
        Arc::new(desired)
    }
}

/// Returns an object that cannot be used for the reason that a finding gives.
fn unusable_object(id: ObjectId, gvk: Gvk, found: &Diagnostic) -> Arc<UnusableObject> {
    Arc::new(UnusableObject { id, gvk, origin: found.origin.clone(), reason: found.message.as_str().into() })
}

/// The maximum number of disallowed objects of a file that are named.
const MAX_NAMED_DISALLOWED: usize = 100;

/// The disallowed objects of a file.
#[derive(Default)]
struct DisallowedObjects {
    named: Vec<Diagnostic>,
    more: usize,
}

impl DisallowedObjects {
    fn add(&mut self, found: Diagnostic) {
        if self.named.len() < MAX_NAMED_DISALLOWED { self.named.push(found) } else { self.more += 1 }
    }

    fn diagnostics(self, file: &Arc<str>) -> impl Iterator<Item = Diagnostic> {
        let Self { named, more } = self;
        let words =
            || format!("{} of this file {} not allowed", count_text(more, "more object"), verb_to_be(more));
        let rest = (more > 0).then(|| Diagnostic::file_error(file.clone(), "not-allowed", words()));
        named.into_iter().chain(rest)
    }
}

/// One copy of what thousands of objects share: kinds with their versions, namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct NameInterner(Arc<Mutex<SharedNames>>);

#[derive(Debug, Default)]
struct SharedNames {
    kinds: HashSet<Gvk>,
    namespaced_kinds: HashSet<NamespacedKind>,
}

impl NameInterner {
    fn intern_object(&self, object: Object) -> Object {
        let mut names = self.lock();
        let gvk = intern(&mut names.kinds, &object.gvk);
        let id = names.shared_id(&object.id);
        Object { id, gvk, ..object }
    }

    /// Makes the identities that an object names share what they have in common with others.
    fn intern_references(&self, desired: &mut DesiredObject) {
        let mut names = self.lock();
        for id in desired.needs.iter_mut().chain(&mut desired.depends_on) {
            *id = names.shared_id(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SharedNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedNames {
    fn shared_id(&mut self, id: &ObjectId) -> ObjectId {
        ObjectId::of(intern(&mut self.namespaced_kinds, id.namespaced_kind()), id.name())
    }
}

/// Returns the known copy of a name. That of a new one is this.
fn intern<T: Clone + Eq + Hash>(known: &mut HashSet<T>, name: &T) -> T {
    if let Some(shared) = known.get(name) {
        return shared.clone();
    }
    known.insert(name.clone());
    name.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the allowed objects of a file, and the diagnostics of the others.
    fn read(allow: AllowList, text: &str) -> (FileReading, Vec<String>) {
        let read_settings = ReadSettings {
            source: SourceId::new(0),
            inventory_id: "set".into(),
            namespace: "shop".into(),
            allow: Arc::new(allow),
            decrypter: Arc::default(),
            variables: VariableMode::Literal,
            names: NameInterner::default(),
            parsed: ParsedManifests::default(),
        };
        let mut read =
            read_settings.read(&SnapshotFile::in_test("a.yaml"), text.as_bytes(), &mut KindScopes::builtin());
        let found = read.facts.diagnostics.drain(..).filter(|found| found.code == "not-allowed");
        let findings = found.map(|found| format!("{}: {}", found.origin.line, found.message)).collect();
        (read, findings)
    }

    fn list(namespaces: &[&str], kinds: &[&str]) -> AllowList {
        AllowList {
            namespaces: Some(namespaces.iter().copied().map(Arc::from).collect()),
            kinds: Some(kinds.iter().map(|kind| kind.parse().unwrap()).collect()),
            ..AllowList::deny_all()
        }
    }

    #[test]
    fn what_is_not_allowed_is_refused_by_name_and_holds_up_nothing_else() {
        let text = "apiVersion: v1\nkind: List\nitems:\n\
            - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n\
            - {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: web}}\n\
            - {apiVersion: v1, kind: Secret, metadata: {name: c}}\n\
            - {apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n\
            - {apiVersion: v1, kind: Secret, metadata: {name: d}, data: {a: '?'}}\n";
        let (read, findings) = read(list(&["shop"], &["ConfigMap"]), text);
        let left: Vec<String> = read.facts.objects.iter().map(|object| object.id.to_string()).collect();
        assert_eq!((left, read.facts.unusable.len()), (vec!["ConfigMap shop/a".to_owned()], 0));
        assert_eq!(read.facts.completeness, FileCompleteness::Complete);
        let named: Vec<String> = read.facts.disallowed.iter().map(|object| object.id.to_string()).collect();
        assert_eq!(named, ["ConfigMap web/b", "Secret shop/c", "Namespace shop", "Secret shop/d"]);
        let starts = [
            "5: ConfigMap web/b is not allowed: the namespace web",
            "6: Secret shop/c is not allowed: the kind Secret",
            "7: Namespace shop is not allowed: the kind Namespace lives in no namespace",
            "8: Secret shop/d is not allowed: the kind Secret",
        ];
        let fits = findings.iter().zip(starts).all(|(findings, start)| findings.starts_with(start));
        assert!(fits && findings.len() == starts.len(), "{findings:#?}");
    }

    #[test]
    fn where_a_kind_lives_is_waited_for_only_where_it_may_be_allowed() {
        let ox = "{apiVersion: example.org/v1, kind: Ox, metadata: {name: a}}\n";
        let (waits, findings) = read(list(&["shop"], &["example.org/Ox"]), ox);
        assert_eq!((findings.len(), waits.unknown.len(), waits.facts.unscoped.len()), (0, 1, 1));
        let (refused, findings) = read(list(&["shop"], &["ConfigMap"]), ox);
        assert_eq!((findings.len(), refused.unknown.len(), refused.facts.unscoped.len()), (1, 0, 0));
    }

    #[test]
    fn many_that_are_not_allowed_are_counted() {
        let text: Vec<String> = (0..MAX_NAMED_DISALLOWED + 7)
            .map(|number| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a{number}}}}}\n"))
            .collect();
        let (_, findings) = read(list(&["shop"], &["ConfigMap"]), &text.join("---\n"));
        assert_eq!(findings.len(), MAX_NAMED_DISALLOWED + 1);
        assert!(
            findings.contains(&"0: 7 more objects of this file are not allowed".to_owned()),
            "{findings:?}"
        );
    }
}
