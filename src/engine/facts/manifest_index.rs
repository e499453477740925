//! The index of the manifests of one source: the desired state of each object, by the file that has
//! it. It is to manifests as the store of an informer is to live objects.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::lookup_counts;
use crate::engine::{ManifestFault, ManifestOrigins, ObjectCounts, SharedDesiredObject};
use crate::object::{Diagnostic, GroupKind, Gvk, ManifestOrigin, ObjectId, count_text};

/// The number of places named for an object that is defined several times: each copy names the
/// others.
const MAX_NAMED_PLACES: usize = 3;

/// An object that is wanted but cannot be used: its manifest is wrong, or it is defined twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnusableObject {
    /// The object.
    pub id: ObjectId,
    /// Its kind in the version that the manifest asks for.
    pub gvk: Gvk,
    /// The place.
    pub origin: ManifestOrigin,
    /// The reason.
    pub reason: ManifestFault,
}

/// The number of findings of one source that are kept with all their words. Each file keeps one
/// beyond them. A small repository can name one wrong file ten thousand times.
pub(crate) const MAX_SOURCE_FINDINGS: usize = 5000;

/// The facts of one file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FileFacts {
    /// Usable objects.
    pub objects: Vec<SharedDesiredObject>,
    /// Objects that are wanted but cannot be used.
    pub unusable: Vec<Arc<UnusableObject>>,
    /// Objects that it names and that its source may not have. Nobody wants them.
    pub disallowed: Vec<Arc<UnusableObject>>,
    /// Indicates whether every document of it was understood.
    pub completeness: FileCompleteness,
    /// Kinds in it of which it was not known whether their objects live in namespaces: who is meant
    /// may turn out to be another object.
    pub unscoped: BTreeSet<GroupKind>,
    /// The diagnostics of the file.
    #[serde(skip)]
    pub diagnostics: Vec<Diagnostic>,
    /// The number of those that had no room.
    pub left_out: usize,
}

impl FileFacts {
    /// Leaves out the findings that have no room, and counts them. The first error stays, or else the
    /// first finding. Takes what stays off the room.
    pub(crate) fn bound_findings(&mut self, capacity: &mut usize) {
        let most = (*capacity).max(1);
        if self.diagnostics.len() > most {
            self.left_out += self.diagnostics.len() - most;
            self.diagnostics.sort_by_key(|found| !found.is_error());
            self.diagnostics.truncate(most);
            self.diagnostics.shrink_to_fit();
        }
        *capacity = capacity.saturating_sub(self.diagnostics.len());
    }

    /// Returns the findings, with a last one for those that were left out.
    fn all_findings(&self, file: &Arc<str>) -> impl Iterator<Item = Diagnostic> {
        let left_out = (self.left_out > 0).then(|| {
            let message = format!("{} in this file are not shown", count_text(self.left_out, "more finding"));
            let origin = ManifestOrigin::new(file.clone(), 1, 1);
            Diagnostic::warning(origin, "too-many-findings", message)
        });
        self.diagnostics.iter().cloned().chain(left_out)
    }
}

/// Indicates whether every document of a file was understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileCompleteness {
    /// All of it.
    #[default]
    Complete,
    /// Not all: it may want objects that nobody knows of.
    Partial,
    /// It is an object of a root that is not rendered now.
    Unrendered,
}

/// The desired state of one object in one source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DesiredState {
    /// This content.
    Object(SharedDesiredObject),
    /// It should exist, but its manifest cannot be used.
    Unusable(Arc<UnusableObject>),
}

impl DesiredState {
    /// Returns where the manifest is.
    pub(crate) fn origin(&self) -> &ManifestOrigin {
        match self {
            Self::Object(desired) => &desired.origin,
            Self::Unusable(unusable) => &unusable.origin,
        }
    }

    /// Returns the kind with the version that it names.
    pub(crate) fn gvk(&self) -> &Gvk {
        match self {
            Self::Object(desired) => &desired.gvk,
            Self::Unusable(unusable) => &unusable.gvk,
        }
    }
}

/// The facts of one file as the index keeps them: in most files there are but usable objects.
#[derive(Clone, Debug)]
struct IndexedFile {
    objects: FileObjects,
    /// All other facts; none where each is as by default.
    others: Option<Box<FileFacts>>,
}

/// The usable objects of a file: in many there is one.
#[derive(Clone, Debug)]
enum FileObjects {
    One(SharedDesiredObject),
    Others(Box<[SharedDesiredObject]>),
}

impl FileObjects {
    fn new(objects: Vec<SharedDesiredObject>) -> Self {
        match <[SharedDesiredObject; 1]>::try_from(objects) {
            Ok([one]) => Self::One(one),
            Err(others) => Self::Others(others.into_boxed_slice()),
        }
    }

    fn into_vec(self) -> Vec<SharedDesiredObject> {
        match self {
            Self::One(one) => vec![one],
            Self::Others(others) => others.into_vec(),
        }
    }
}

impl IndexedFile {
    fn new(mut facts: FileFacts) -> Self {
        let objects = FileObjects::new(std::mem::take(&mut facts.objects));
        let FileFacts { objects: _, unusable, disallowed, completeness, unscoped, diagnostics, left_out } =
            &facts;
        let is_default = unusable.is_empty()
            && disallowed.is_empty()
            && *completeness == FileCompleteness::default()
            && unscoped.is_empty()
            && diagnostics.is_empty()
            && *left_out == 0;
        Self { objects, others: (!is_default).then(|| Box::new(facts)) }
    }

    fn into_facts(self) -> FileFacts {
        let others = self.others.map(|others| *others).unwrap_or_default();
        FileFacts { objects: self.objects.into_vec(), ..others }
    }
}

/// The desired states of one object in one source: nearly always one.
#[derive(Clone, Debug)]
enum DesiredStates {
    One(DesiredState),
    Several(Box<SeveralStates>),
}

/// The states of an object that is defined several times.
#[derive(Clone, Debug)]
struct SeveralStates(Vec<DesiredState>);

impl DesiredStates {
    fn as_slice(&self) -> &[DesiredState] {
        match self {
            Self::One(state) => std::slice::from_ref(state),
            Self::Several(several) => &several.0,
        }
    }

    /// Returns them with another one.
    fn with_state(self, state: DesiredState) -> Self {
        match self {
            Self::One(first) => Self::Several(Box::new(SeveralStates(vec![first, state]))),
            Self::Several(mut several) => {
                several.0.push(state);
                Self::Several(several)
            }
        }
    }

    /// Returns those that do not come from a file; none where all do.
    fn without_file(self, file: &str) -> Option<Self> {
        match self {
            Self::One(state) => (*state.origin().file != *file).then_some(Self::One(state)),
            Self::Several(mut several) => {
                several.0.retain(|state| *state.origin().file != *file);
                if several.0.len() > 1 {
                    return Some(Self::Several(several));
                }
                several.0.pop().map(Self::One)
            }
        }
    }
}

/// The desired states of one source, by file and by object.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct ManifestIndex {
    files: BTreeMap<Arc<str>, IndexedFile>,
    states: HashMap<ObjectId, DesiredStates>,
    /// The counts of the keys of `states` and of `lost_names`.
    object_counts: ObjectCounts,
    /// The number of findings in the files.
    findings: usize,
    /// The number of objects in the files that the source may not have.
    disallowed: usize,
    partly_understood: BTreeSet<Arc<str>>,
    /// The files with a kind of unknown scope. Each turn of the loop asks for the first. A walk over
    /// all files would cost the square of their number in a first pass.
    unscoped: BTreeSet<Arc<str>>,
    /// The objects whose manifests ask to be kept.
    kept: BTreeSet<ObjectId>,
    /// The objects of a file when it was last understood, which it does not name now that it is
    /// not: they count as wanted still.
    lost_names: HashMap<ObjectId, Arc<UnusableObject>>,
}

impl ManifestIndex {
    /// Replaces what one file holds (nothing, when it is gone) and returns the objects affected.
    pub(crate) fn replace(&mut self, file: &Arc<str>, facts: Option<FileFacts>) -> Vec<ObjectId> {
        let mut changed = Vec::new();
        self.partly_understood.remove(file);
        self.unscoped.remove(file);
        let before = self.files.remove(file).map(IndexedFile::into_facts);
        self.remember_lost_names(file, before.as_ref(), facts.as_ref(), &mut changed);
        if let Some(old) = before {
            self.findings -= old.diagnostics.len();
            self.disallowed -= old.disallowed.len();
            for id in ids(&old) {
                if let Some(states) = self.states.remove(id) {
                    match states.without_file(file) {
                        Some(others) => drop(self.states.insert(id.clone(), others)),
                        None => self.object_counts.remove(id),
                    }
                }
                changed.push(id.clone());
            }
        }
        if let Some(mut facts) = facts {
            facts.bound_findings(&mut MAX_SOURCE_FINDINGS.saturating_sub(self.findings));
            self.findings += facts.diagnostics.len();
            self.disallowed += facts.disallowed.len();
            let objects = facts.objects.iter().map(|d| (&d.id, DesiredState::Object(d.clone())));
            for (id, state) in
                objects.chain(facts.unusable.iter().map(|h| (&h.id, DesiredState::Unusable(h.clone()))))
            {
                let states = if let Some(others) = self.states.remove(id) {
                    others.with_state(state)
                } else {
                    self.object_counts.add(id);
                    DesiredStates::One(state)
                };
                self.states.insert(id.clone(), states);
                changed.push(id.clone());
            }
            if facts.completeness != FileCompleteness::Complete {
                self.partly_understood.insert(file.clone());
            }
            if !facts.unscoped.is_empty() {
                self.unscoped.insert(file.clone());
            }
            self.files.insert(file.clone(), IndexedFile::new(facts));
        }
        changed.sort();
        changed.dedup();
        for id in &changed {
            self.index_kept(id);
        }
        changed
    }

    fn index_kept(&mut self, id: &ObjectId) {
        let is_kept = |state: &DesiredState| matches!(state, DesiredState::Object(desired) if desired.traits.prune_timing.is_kept());
        if self.states.get(id).is_some_and(|states| states.as_slice().iter().any(is_kept)) {
            self.kept.insert(id.clone());
        } else {
            self.kept.remove(id);
        }
    }

    /// Returns the objects whose manifests ask to be kept, or for a confirmation.
    pub(crate) fn kept_ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.kept.iter()
    }

    /// Remembers what a file named before, where it is not understood any more.
    fn remember_lost_names(
        &mut self,
        file: &Arc<str>,
        before: Option<&FileFacts>,
        now: Option<&FileFacts>,
        changed: &mut Vec<ObjectId>,
    ) {
        let mut remembered: Vec<Arc<UnusableObject>> = Vec::new();
        self.lost_names.retain(|_, lost| {
            let other = lost.origin.file != *file;
            if !other {
                remembered.push(lost.clone());
            }
            other
        });
        for lost in &remembered {
            self.object_counts.remove(&lost.id);
            changed.push(lost.id.clone());
        }
        let Some(now) = now.filter(|facts| facts.completeness != FileCompleteness::Complete) else { return };
        let reason = match now.completeness {
            FileCompleteness::Unrendered => ManifestFault::UnrenderedFolder,
            FileCompleteness::Complete | FileCompleteness::Partial => {
                ManifestFault::UnreadableFile(file.clone())
            }
        };
        let unusable = |id: &ObjectId, gvk: &Gvk, origin: &ManifestOrigin| {
            Arc::new(UnusableObject {
                id: id.clone(),
                gvk: gvk.clone(),
                origin: origin.clone(),
                reason: reason.clone(),
            })
        };
        if let Some(facts) = before {
            remembered.extend(facts.objects.iter().map(|d| unusable(&d.id, &d.gvk, &d.origin)));
            remembered.extend(facts.unusable.iter().map(|h| unusable(&h.id, &h.gvk, &h.origin)));
        }
        let named: HashSet<&ObjectId> = ids(now).collect();
        for lost in remembered.into_iter().filter(|lost| !named.contains(&lost.id)) {
            changed.push(lost.id.clone());
            if self.lost_names.insert(lost.id.clone(), lost.clone()).is_none() {
                self.object_counts.add(&lost.id);
            }
        }
    }

    /// Returns the desired state of one object. An object that is in two places is unusable, and
    /// both are named.
    pub(crate) fn desired_state(&self, id: &ObjectId) -> Option<DesiredState> {
        match self.states.get(id).map(DesiredStates::as_slice) {
            None | Some([]) => self.lost_names.get(id).cloned().map(DesiredState::Unusable),
            Some([state]) => Some(state.clone()),
            Some(several) => {
                let (gvk, origin) = match &several[0] {
                    DesiredState::Object(desired) => (desired.gvk.clone(), desired.origin.clone()),
                    DesiredState::Unusable(unusable) => (unusable.gvk.clone(), unusable.origin.clone()),
                };
                let places = first_places(several.iter().map(DesiredState::origin), several.len());
                let reason = ManifestFault::Repeated(places);
                Some(DesiredState::Unusable(Arc::new(UnusableObject { id: id.clone(), gvk, origin, reason })))
            }
        }
    }

    /// Returns all objects that are wanted, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.states.keys().chain(self.lost_names.keys().filter(|id| !self.states.contains_key(*id)))
    }

    /// Returns the counts of their kinds and namespaces.
    pub(crate) fn object_counts(&self) -> &ObjectCounts {
        &self.object_counts
    }

    /// Returns the objects that the source names and may not have.
    pub(crate) fn disallowed_objects(&self) -> impl Iterator<Item = &Arc<UnusableObject>> {
        let files = (self.disallowed > 0).then(|| self.files.values());
        let others = files.into_iter().flatten().filter_map(|file| file.others.as_deref());
        others.flat_map(|facts| &facts.disallowed)
    }

    /// Returns the first file that was not understood.
    pub(crate) fn first_unreadable_file(&self) -> Option<&Arc<str>> {
        self.partly_understood.first()
    }

    /// Returns whether a file was not understood that is no object of a root.
    pub(crate) fn has_unreadable_plain_file(&self) -> bool {
        let is_partly = |facts: &FileFacts| facts.completeness == FileCompleteness::Partial;
        self.partly_understood.iter().any(|file| {
            self.files.get(file).is_none_or(|indexed| indexed.others.as_deref().is_some_and(is_partly))
        })
    }

    /// Returns the files with objects of a kind of unknown scope, and that kind.
    pub(crate) fn unscoped_files(&self) -> impl Iterator<Item = (&Arc<str>, &GroupKind)> {
        let files = self.unscoped.iter().inspect(|_| lookup_counts::count(1));
        let files = files.filter_map(|file| self.files.get_key_value(file));
        let others = files.filter_map(|(file, indexed)| Some((file, indexed.others.as_deref()?)));
        others.flat_map(|(file, facts)| facts.unscoped.iter().map(move |kind| (file, kind)))
    }

    /// Returns all findings, file by file, those about objects that are defined twice included.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        let others = self.files.iter().filter_map(|(file, indexed)| Some((file, indexed.others.as_deref()?)));
        let mut found: Vec<Diagnostic> = others.flat_map(|(file, facts)| facts.all_findings(file)).collect();
        let several = self.states.iter().map(|(id, states)| (id, states.as_slice()));
        for (id, states) in several.filter(|(_, states)| states.len() > 1) {
            for state in states {
                let others = states.iter().map(DesiredState::origin).filter(|other| *other != state.origin());
                let others = first_places(others, states.len() - 1);
                let message = format!("{id} is also defined at {others}; neither is applied");
                let hint = "remove all but one, or list the other file in .rhumbignore";
                found.push(Diagnostic::error(state.origin().clone(), "duplicate-object", message).hint(hint));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// Returns the places of this number of manifests, of which the first are named.
fn first_places<'o>(all: impl Iterator<Item = &'o ManifestOrigin>, count: usize) -> ManifestOrigins {
    ManifestOrigins { first: all.take(MAX_NAMED_PLACES).cloned().collect(), count }
}

fn ids(facts: &FileFacts) -> impl Iterator<Item = &ObjectId> {
    facts.objects.iter().map(|desired| &desired.id).chain(facts.unusable.iter().map(|unusable| &unusable.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_indexed_of_a_file_and_of_an_object_has_a_bound() {
        assert!(size_of::<IndexedFile>() <= 24, "{}", size_of::<IndexedFile>());
        assert!(size_of::<DesiredStates>() <= 16, "{}", size_of::<DesiredStates>());
    }

    #[test]
    fn an_object_of_two_files_is_that_of_one_again_once_the_other_is_gone() {
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "a");
        let facts = |file: &str| {
            let (gvk, origin) = (Gvk::new("", "v1", "ConfigMap"), ManifestOrigin::new(file.into(), 1, 1));
            let unusable = UnusableObject { id: id.clone(), gvk, origin, reason: file.into() };
            FileFacts { unusable: vec![Arc::new(unusable)], ..FileFacts::default() }
        };
        let mut index = ManifestIndex::default();
        let mut check = |file: &str, facts: Option<FileFacts>, expected: Option<&str>| {
            index.replace(&file.into(), facts);
            let reason = index.desired_state(&id).map(|state| match state {
                DesiredState::Unusable(unusable) => unusable.reason.to_string(),
                DesiredState::Object(_) => panic!("it is usable"),
            });
            assert_eq!(reason.as_deref(), expected, "{file}");
            assert_eq!(index.ids().count(), usize::from(expected.is_some()), "{file}");
            assert_eq!(index.object_counts().kinds().count(), usize::from(expected.is_some()), "{file}");
        };
        check("a", Some(facts("a")), Some("a"));
        check("b", Some(facts("b")), Some("it is defined 2 times: a:1 and b:1"));
        check("c", Some(facts("c")), Some("it is defined 3 times: a:1 and b:1 and c:1"));
        check("a", None, Some("it is defined 2 times: b:1 and c:1"));
        check("c", None, Some("b"));
        check("b", None, None);
    }

    #[test]
    fn of_many_copies_of_an_object_each_names_a_few_others() {
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "a");
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let mut index = ManifestIndex::default();
        for line in 1..=40 {
            let file: Arc<str> = format!("{line:02}.yaml").into();
            let origin = ManifestOrigin::new(file.clone(), line, 1);
            let unusable = UnusableObject { id: id.clone(), gvk: gvk.clone(), origin, reason: "".into() };
            index.replace(
                &file,
                Some(FileFacts { unusable: vec![Arc::new(unusable)], ..FileFacts::default() }),
            );
        }
        let Some(DesiredState::Unusable(unusable)) = index.desired_state(&id) else {
            panic!("it is not held")
        };
        let expected = "it is defined 40 times: 01.yaml:1 and 02.yaml:2 and 03.yaml:3 and 37 more";
        assert_eq!(unusable.reason.to_string(), expected);
        let found = index.diagnostics();
        assert_eq!(found.len(), 40);
        for one in found {
            // Were all named, the words of all together would grow with the square of their number.
            assert!(one.message.ends_with(" and 36 more; neither is applied"), "{}", one.message);
        }
    }

    #[test]
    fn the_findings_of_a_source_have_a_bound_and_each_file_keeps_its_first_error() {
        let mut index = ManifestIndex::default();
        let file = |number: u32| -> Arc<str> { format!("{number:04}.yaml").into() };
        let facts = |file: &Arc<str>| {
            let found = |line: u32| {
                let origin = ManifestOrigin::new(file.clone(), line, 1);
                let warning = Diagnostic::warning(origin.clone(), "needless", "a");
                if line == 200 { Diagnostic::error(origin, "wrong", "b") } else { warning }
            };
            FileFacts { diagnostics: (1..=200).map(found).collect(), ..FileFacts::default() }
        };
        for number in 0..1000 {
            index.replace(&file(number), Some(facts(&file(number))));
        }
        let kept = |index: &ManifestIndex| {
            let others = index.files.values().filter_map(|indexed| indexed.others.as_deref());
            others.map(|facts| facts.diagnostics.len()).sum()
        };
        let expected: usize = MAX_SOURCE_FINDINGS + 1000 - MAX_SOURCE_FINDINGS / 200;
        assert_eq!((kept(&index), index.findings), (expected, expected));
        let found = index.diagnostics();
        let errors = found.iter().filter(|found| found.is_error()).count();
        assert_eq!(errors, 1000, "one of each file");
        let last: Vec<&str> = found.iter().rev().take(2).map(|found| &*found.message).collect();
        assert_eq!(last, ["b", "199 more findings in this file are not shown"]);
        for number in 0..1000 {
            index.replace(&file(number), None);
        }
        assert_eq!((kept(&index), index.findings), (0, 0));
        index.replace(&file(0), Some(facts(&file(0))));
        assert_eq!(kept(&index), 200, "there is room again");
    }
}
