//! The difference of two revisions, object by object. Nothing here is asked of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::manifest_set::{CheckedObjects, ManifestSet};
use crate::change::{self, Impact, ImpactKind};
use crate::engine::{AllowList, Plan, PlanBasis, PlannedAction, PlannedObject, keep_ignored, wave};
use crate::graph;
use crate::input::is_key_missing;
use crate::input::sops::SOPS_KEY;
use crate::manifest::{InvalidObject, KindScopes};
use crate::object::{Diagnostic, Gvk, ManifestOrigin, Object, ObjectId, RenderOrigin};

/// The number of objects that a note names.
const MAX_NAMED_OBJECTS: usize = 5;

/// The objects of one revision.
#[derive(Debug)]
pub(super) struct RevisionObjects {
    /// The name of the revision, as people wrote it.
    pub(super) name: String,
    /// The objects.
    pub(super) objects: BTreeMap<ObjectId, RevisionObject>,
    /// Indicates whether every file was read and every document understood: only then is absence
    /// known.
    pub(super) completeness: Completeness,
    /// The findings.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The files that no identity opens, whose objects are here with their ciphertext.
    pub(super) sealed: BTreeSet<Arc<str>>,
}

/// The completeness of what was read of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// All of it.
    Complete,
    /// Some of it may be missing.
    Partial,
}

/// One object of a revision. Its `Debug` form leaves the content out.
#[derive(Clone)]
pub(super) struct RevisionObject {
    /// Its kind and version.
    pub(super) gvk: Gvk,
    /// The place of its manifest.
    pub(super) origin: ManifestOrigin,
    /// The content, or why there is none that could be applied.
    pub(super) content: Result<Arc<Value>, String>,
}

impl std::fmt::Debug for RevisionObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RevisionObject({} at {})", self.gvk, self.origin)
    }
}

impl RevisionObjects {
    /// Returns a revision in which nothing of the source is.
    pub(super) fn nothing(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            objects: BTreeMap::new(),
            completeness: Completeness::Complete,
            diagnostics: Vec::new(),
            sealed: BTreeSet::new(),
        }
    }

    /// Returns the objects of manifests. Files that no identity opens are taken as encrypted.
    pub(super) fn new(
        name: &str,
        mut manifests: ManifestSet,
        scopes: &KindScopes,
        namespace: &str,
        allow: &AllowList,
    ) -> Self {
        let completeness = if manifests.understood { Completeness::Complete } else { Completeness::Partial };
        let unopened = manifests.diagnostics.iter().filter(|found| is_key_missing(found));
        let unopened: BTreeSet<Arc<str>> = unopened.map(|found| found.origin.file.clone()).collect();
        let mut sealed = BTreeSet::new();
        for item in manifests.items.iter_mut().filter(|item| unopened.contains(&item.origin.file)) {
            // Another fault of the same object would be hidden here, but for one that is a finding.
            item.valid = true;
            if let Some(body) = item.body.as_object_mut() {
                body.remove(SOPS_KEY);
            }
            sealed.insert(item.origin.file.clone());
        }
        // A root that has nothing else is not rendered, and stays a finding.
        manifests.diagnostics.retain(|found| !is_key_missing(found) || !sealed.contains(&found.origin.file));
        let CheckedObjects { assembled, diagnostics, disallowed } =
            manifests.into_objects(scopes, namespace, allow);
        let mut objects = BTreeMap::new();
        for Object { id, gvk, body, origin } in assembled.objects {
            let content = disallowed.get(&id).map_or(Ok(body), |why| Err(why.clone()));
            objects.insert(id, RevisionObject { gvk, origin, content });
        }
        for InvalidObject { id, gvk, origin, reason } in assembled.invalid {
            objects.insert(id, RevisionObject { gvk, origin, content: Err(reason) });
        }
        Self { name: name.to_owned(), objects, completeness, diagnostics, sealed }
    }
}

/// Returns what a step from one revision to another changes, in the form of a plan.
///
/// Objects are the same by group, kind, namespace and name. One that only one revision has counts
/// as added or removed only where the other one was read completely; else a note names it.
pub(super) fn compare(from: &RevisionObjects, to: &RevisionObjects) -> Plan {
    let (mut objects, mut unknown) = (Vec::new(), (Vec::new(), Vec::new()));
    let all: BTreeSet<&ObjectId> = from.objects.keys().chain(to.objects.keys()).collect();
    for id in all {
        match (from.objects.get(id), to.objects.get(id)) {
            (Some(before), None) if to.completeness == Completeness::Complete => {
                objects.push(compare_sides(id, Some(before), before, PlannedAction::Delete, &from.name));
            }
            (Some(_), None) => unknown.0.push(id),
            (None, Some(after)) if from.completeness == Completeness::Complete => {
                objects.push(compare_sides(id, None, after, PlannedAction::Create, &from.name));
            }
            (None, Some(_)) => unknown.1.push(id),
            (Some(before), Some(after)) => {
                objects.push(compare_sides(id, Some(before), after, PlannedAction::Configure, &from.name));
            }
            (None, None) => {}
        }
    }
    objects.sort_by_cached_key(|planned| {
        let removal = planned.verdict == PlannedAction::Delete;
        let rank = i16::from(graph::rank(&planned.id.group_kind()));
        (removal, planned.wave, if removal { -rank } else { rank }, planned.id.clone())
    });
    let notes = [
        unknown_note(&unknown.0, &from.name, &to.name, "removed"),
        unknown_note(&unknown.1, &to.name, &from.name, "added"),
        sealed_note(from, to),
    ];
    Plan {
        basis: PlanBasis::Revision,
        complete: [from, to].iter().all(|side| side.completeness == Completeness::Complete),
        objects,
        diagnostics: findings(from, to),
        notes: notes.into_iter().flatten().collect(),
        ..Plan::default()
    }
}

/// Returns the step of one object. Its kind and place are those of `shown`, the newer side that has
/// it.
fn compare_sides(
    id: &ObjectId,
    before: Option<&RevisionObject>,
    shown: &RevisionObject,
    verdict: PlannedAction,
    from: &str,
) -> PlannedObject {
    let after = if verdict == PlannedAction::Delete { None } else { Some(shown) };
    let content = |side: Option<&RevisionObject>| side.and_then(|side| side.content.clone().ok());
    let (old, mut new) = (content(before), content(after));
    // Fields that both leave to others are not changed in the cluster either.
    if let (Some(old), Some(new)) = (&old, &mut new) {
        *new = keep_ignored(old, (**new).clone()).into();
    }
    let base = PlannedObject {
        origin: Some(shown.origin.clone()),
        wave: shown.content.as_ref().map_or(0, |content| wave(content)),
        ..PlannedObject::new(id.clone(), shown.gvk.clone(), verdict)
    };
    if let Some(Err(why)) = after.map(|side| &side.content) {
        return PlannedObject { verdict: PlannedAction::Refuse, reason: Some(why.clone()), ..base };
    }
    let reason = match before.map(|side| &side.content) {
        Some(Err(why)) => Some(format!("it could not be applied in {from}: {why}")),
        _ => None,
    };
    let fields = change::diff_fields(id, old.as_deref(), new.as_deref());
    if verdict == PlannedAction::Configure && reason.is_none() && fields.is_empty() {
        return PlannedObject { verdict: PlannedAction::Unchanged, ..base };
    }
    let (impact, refusal) = impact(id, old.as_deref(), new.as_deref());
    let (old, new) = change::present_pair(id, old.as_deref(), new.as_deref());
    PlannedObject {
        impact,
        fields,
        reason: reason.or(refusal),
        before: old.map(Arc::new),
        after: new.map(Arc::new),
        ..base
    }
}

/// Returns the impact on pods as far as manifests show it, and what the API server may say. It
/// alone knows whether an object must be made anew.
fn impact(id: &ObjectId, old: Option<&Value>, new: Option<&Value>) -> (Impact, Option<String>) {
    let kind = id.group_kind();
    let impact = change::change_impact(&kind, old, new);
    if impact.kind != ImpactKind::Recreate {
        return (impact, None);
    }
    let why = "a field changes that the API server does not let change in place".to_owned();
    (Impact { kind: ImpactKind::InPlace, pods: 0 }, Some(why))
}

/// Returns the findings of both, those of the older revision under its name. A finding of both is
/// reported for the newer one alone, and the older one's warnings are past.
fn findings(from: &RevisionObjects, to: &RevisionObjects) -> Vec<Diagnostic> {
    let key =
        |found: &Diagnostic| (found.origin.edited_origin().file.clone(), found.code, found.message.clone());
    let newer: BTreeSet<_> = to.diagnostics.iter().map(key).collect();
    let older = from.diagnostics.iter().filter(|found| found.is_error() && !newer.contains(&key(found)));
    let named =
        |found: &Diagnostic| Diagnostic { origin: named_origin(&found.origin, &from.name), ..found.clone() };
    let mut all: Vec<Diagnostic> = older.map(named).chain(to.diagnostics.iter().cloned()).collect();
    all.sort();
    all
}

/// Returns a place in a revision, as git writes it: `REV:PATH`.
fn named_origin(origin: &ManifestOrigin, revision: &str) -> ManifestOrigin {
    let named = |file: &str| -> Arc<str> { format!("{revision}:{file}").into() };
    let file_origin = |file_origin: &ManifestOrigin| ManifestOrigin {
        file: named(&file_origin.file),
        ..file_origin.clone()
    };
    let render = origin.render.as_ref().map(|render| {
        Arc::new(RenderOrigin {
            root: named(&render.root),
            renderer: render.renderer.clone(),
            places: render.places.iter().map(file_origin).collect(),
        })
    });
    ManifestOrigin { render, ..file_origin(origin) }
}

fn unknown_note(unknown: &[&ObjectId], has: &str, lacks: &str, subject: &str) -> Option<String> {
    if unknown.is_empty() {
        return None;
    }
    let mut names: Vec<String> = unknown.iter().take(MAX_NAMED_OBJECTS).map(ToString::to_string).collect();
    names.extend(unknown.len().checked_sub(MAX_NAMED_OBJECTS + 1).map(|more| format!("{} more", more + 1)));
    Some(format!(
        "{lacks} was not read completely, so it is not known whether these objects of {has} are {subject}: {}",
        names.join(", ")
    ))
}

fn sealed_note(from: &RevisionObjects, to: &RevisionObjects) -> Option<String> {
    let files: BTreeSet<&Arc<str>> = from.sealed.iter().chain(&to.sealed).collect();
    let count = match files.len() {
        0 => return None,
        1 => return Some("1 encrypted file was compared as encrypted, as no identity opens it".to_owned()),
        count => count,
    };
    Some(format!("{count} encrypted files were compared as encrypted, as no identity opens them"))
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
