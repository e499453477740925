//! From the bytes of a file to what the engine keeps of it.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Desired, FileFacts, Held, Place, SourceId, Understood, misused};
use crate::manifest::{self, Scopes};
use crate::object::{GroupKind, Gvk, Object, ObjectId};

/// How the files of one source are read.
#[derive(Clone, Debug)]
pub(super) struct Dialect {
    /// Number of the source.
    pub(super) source: SourceId,
    /// Id of its inventory.
    pub(super) applyset: Arc<str>,
    /// Namespace of objects that name none.
    pub(super) namespace: Arc<str>,
    /// Texts that its objects share.
    pub(super) names: Names,
}

/// What was read, and which kinds' scopes were not known, so that it must be read again when they are.
#[derive(Debug)]
pub(super) struct Read {
    /// What the engine keeps.
    pub(super) facts: FileFacts,
    /// Kinds that neither the server nor a definition in the source knows.
    pub(super) unknown: BTreeSet<GroupKind>,
}

impl Dialect {
    /// Reads one file.
    pub(super) fn read(&self, file: &Arc<str>, bytes: &[u8], blob: [u8; 20], scopes: &mut Scopes) -> Read {
        let reading = manifest::read(file, bytes);
        let mut facts = FileFacts { diagnostics: reading.diagnostics, ..FileFacts::default() };
        if !reading.understood {
            facts.understood = Understood::Partly;
        }
        let mut unknown = BTreeSet::new();
        for item in &reading.items {
            scopes.learn(item);
        }
        for item in reading.items {
            let kind = item.gvk.group_kind();
            if scopes.get(&kind).is_none() {
                unknown.insert(kind);
            }
            let place = Place { source: self.source, blob, index: item.index };
            let assembled = manifest::assemble([item], scopes, &self.namespace);
            facts.diagnostics.extend(assembled.diagnostics);
            for object in assembled.objects {
                let object = &self.names.shared(object);
                let misused = misused(object);
                match misused.iter().find(|found| found.is_error()) {
                    Some(fault) => facts.held.push(Arc::new(Held {
                        id: object.id.clone(),
                        gvk: object.gvk.clone(),
                        origin: object.origin.clone(),
                        reason: fault.message.as_str().into(),
                    })),
                    None => facts.objects.push(Arc::new(Desired::of(object, place, &self.applyset))),
                }
                facts.diagnostics.extend(misused);
            }
            let held = assembled.held.into_iter();
            facts.held.extend(held.map(|held| {
                Arc::new(Held { id: held.id, gvk: held.gvk, origin: held.origin, reason: held.reason.into() })
            }));
        }
        facts.objects.shrink_to_fit();
        facts.unscoped.clone_from(&unknown);
        Read { facts, unknown }
    }
}

/// One copy of each text that thousands of objects share: groups, versions, kinds, namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Mutex<HashSet<Arc<str>>>>);

impl Names {
    fn shared(&self, object: Object) -> Object {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = |text: &str| {
            if let Some(shared) = known.get(text) {
                return shared.clone();
            }
            let shared: Arc<str> = text.into();
            known.insert(shared.clone());
            shared
        };
        let Gvk { group, version, kind } = &object.gvk;
        let gvk = Gvk { group: text(group), version: text(version), kind: text(kind) };
        let namespace = text(object.id.namespace().unwrap_or_default());
        let id = ObjectId::shared(&gvk.group_kind(), namespace, object.id.name());
        Object { id, gvk, ..object }
    }
}
