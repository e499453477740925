//! The order of a release with hooks: which of its objects wait for which others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::engine;
use crate::graph;
use crate::manifest::{KindScope, KindScopes};
use crate::object::annotations::{DEPENDS_ON, WAVE};
use crate::object::{Gvk, ObjectId, annotation_text, text_at};

use super::hooks::{annotate, is_job, is_pod};
use super::namespaces::scopes_of;
use super::options::UnnamedNamespace;
use super::output::ChartObject;

/// Bytes of all names that the objects of one release wait for. Each has the names of all before
/// it, so they grow with the square of the objects. Large charts have some 100 KiB.
pub(super) const MAX_AWAITED_NAME_BYTES: usize = 16 << 20;

/// The objects of a release would wait for more than may be written on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyNames;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum HookPhase {
    /// Before the rest of the release.
    Before,
    /// After it.
    After,
}

/// The hooks of a release in steps, each of which waits for those before it in its phase.
#[derive(Debug, Default)]
pub(super) struct HookSteps(BTreeMap<HookPhase, Vec<HookStep>>);

#[derive(Debug)]
struct HookStep {
    weight: i64,
    /// Says that it consists of one Job or Pod, which helm runs to its end before it goes on.
    runs: bool,
    objects: Vec<ChartObject>,
}

impl HookSteps {
    /// Adds a hook after those that were added before.
    pub(super) fn add(&mut self, phase: HookPhase, weight: i64, object: ChartObject) {
        let steps = self.0.entry(phase).or_default();
        let runs = is_job(&object.body) || is_pod(&object.body);
        match steps.last_mut() {
            Some(last) if !runs && !last.runs && last.weight == weight => last.objects.push(object),
            _ => steps.push(HookStep { weight, runs, objects: vec![object] }),
        }
    }

    fn take(&mut self, phase: HookPhase) -> Vec<HookStep> {
        self.0.remove(&phase).unwrap_or_default()
    }
}

/// Writes on each object what it waits for, and returns them all: the hooks that run before, the
/// rest, and the hooks that run after.
///
/// Definitions and namespaces wait for no hook. Nor does what a hook needs that runs before, as its
/// service account: at an upgrade it is there. A hook that runs after and that others need is one
/// of the rest, as a ConfigMap of their pods. helm does not wait for these pods either.
///
/// # Errors
/// Fails where that is more than may be written on them.
pub(super) fn order(
    mut rest: Vec<ChartObject>,
    mut steps: HookSteps,
    namespace: &str,
    unnamed: UnnamedNamespace,
) -> Result<Vec<ChartObject>, TooManyNames> {
    let names = HelmReleaseObjectIds { scopes: scopes_of(rest.iter()), namespace, unnamed };
    let (mut before, mut after) = (steps.take(HookPhase::Before), steps.take(HookPhase::After));
    let mut used = take_used(&names, &before, &mut after, &rest);
    rest.append(&mut used);
    let needed = needed_objects(&names, &before, &rest);
    let is_waiting = |object: &ChartObject| {
        let is_base = matches!(text_at(&object.body, &["kind"]), "Namespace" | "CustomResourceDefinition");
        !is_base && names.id(&object.body).is_none_or(|id| !needed.contains(&id))
    };
    let waiting = rest.iter().filter(|object| is_waiting(object));
    let first = waiting.map(|object| engine::wave(&object.body)).min();
    set_waves(before.iter_mut().rev(), first, i32::min);
    advance_needed(&names, &before, &needed, &mut rest);
    let last = rest.iter().map(|object| engine::wave(&object.body)).max();
    set_waves(after.iter_mut(), last, i32::max);
    let mut awaited = AwaitedNames { text: String::new(), left: MAX_AWAITED_NAME_BYTES };
    let mut all = chain(&names, before, &mut awaited)?;
    for object in rest.iter_mut().filter(|object| is_waiting(object)) {
        awaited.write_on(&mut object.body)?;
    }
    awaited.text.clear();
    for object in &rest {
        awaited.add(&names, object);
    }
    let after = chain(&names, after, &mut awaited)?;
    all.append(&mut rest);
    all.extend(after);
    Ok(all)
}

/// Puts the hooks of a phase into the wave of the objects around which they run: nothing may wait
/// for a later wave. A wave of rhumb's own that is farther from these stays. The steps come with
/// the nearest to the objects first, and the next ones are no nearer than it. A wave of Argo CD
/// orders hooks among each other, as their weights do here.
fn set_waves<'a>(
    steps: impl Iterator<Item = &'a mut HookStep>,
    of_rest: Option<i32>,
    farther: fn(i32, i32) -> i32,
) {
    let mut nearest = of_rest;
    for step in steps {
        let mut of_step = nearest;
        for object in &mut step.objects {
            let shown = engine::wave(&object.body);
            let own = annotation_text(&object.body, WAVE).trim().parse::<i32>().ok();
            let wave = match nearest {
                Some(nearest) => own.map_or(nearest, |own| farther(own, nearest)),
                None => shown,
            };
            if wave != shown {
                annotate(&mut object.body, WAVE, &wave.to_string());
            }
            of_step = Some(of_step.map_or(wave, |of_step| farther(of_step, wave)));
        }
        nearest = of_step;
    }
}

/// Puts what hooks need that run before into no later wave than theirs. Nobody refers to an object
/// that gives rights, so nothing else would bring that in time.
fn advance_needed(
    names: &HelmReleaseObjectIds<'_>,
    before: &[HookStep],
    needed: &BTreeSet<ObjectId>,
    rest: &mut [ChartObject],
) {
    let hooks = before.iter().flat_map(|step| &step.objects);
    let Some(earliest) = hooks.map(|object| engine::wave(&object.body)).min() else { return };
    for object in rest {
        let is_needed = names.id(&object.body).is_some_and(|id| needed.contains(&id));
        if is_needed && engine::wave(&object.body) > earliest {
            annotate(&mut object.body, WAVE, &earliest.to_string());
        }
    }
}

/// Takes the hooks that run after and that others of the release need out of their steps. Else each
/// would wait for the other.
fn take_used(
    names: &HelmReleaseObjectIds<'_>,
    before: &[HookStep],
    after: &mut [HookStep],
    rest: &[ChartObject],
) -> Vec<ChartObject> {
    let needs_of = |object: &ChartObject| {
        let id = names.id(&object.body)?;
        let needs = graph::references(&id, &object.body);
        Some((id, needs))
    };
    let hooks: BTreeMap<ObjectId, BTreeSet<ObjectId>> =
        after.iter().flat_map(|step| &step.objects).filter_map(needs_of).collect();
    if hooks.is_empty() {
        return Vec::new();
    }
    let users = rest.iter().chain(before.iter().flat_map(|step| &step.objects)).filter_map(needs_of);
    let mut left: Vec<ObjectId> = users.flat_map(|(_, needs)| needs).collect();
    let mut used = BTreeSet::new();
    while let Some(id) = left.pop() {
        if let Some(needs) = hooks.get(&id)
            && used.insert(id)
        {
            left.extend(needs.iter().cloned());
        }
    }
    let is_used = |object: &mut ChartObject| names.id(&object.body).is_some_and(|id| used.contains(&id));
    after.iter_mut().flat_map(|step| step.objects.extract_if(.., is_used)).collect()
}

/// Makes each step wait for the objects before it.
fn chain(
    names: &HelmReleaseObjectIds<'_>,
    steps: Vec<HookStep>,
    awaited: &mut AwaitedNames,
) -> Result<Vec<ChartObject>, TooManyNames> {
    let mut all = Vec::new();
    for mut step in steps {
        for object in &mut step.objects {
            awaited.write_on(&mut object.body)?;
        }
        step.objects.iter().for_each(|object| awaited.add(names, object));
        all.append(&mut step.objects);
    }
    Ok(all)
}

/// The names of the objects that those which follow wait for.
struct AwaitedNames {
    /// All of them, as the annotation has them.
    text: String,
    /// The bytes that may still be written.
    left: usize,
}

impl AwaitedNames {
    fn add(&mut self, names: &HelmReleaseObjectIds<'_>, object: &ChartObject) {
        if let Some(name) = names.text(&object.body) {
            let separator = if self.text.is_empty() { "" } else { ", " };
            let _ = write!(self.text, "{separator}{name}");
        }
    }

    /// Makes an object wait for all of them, and for what it names itself.
    fn write_on(&mut self, body: &mut Value) -> Result<(), TooManyNames> {
        if self.text.is_empty() {
            return Ok(());
        }
        self.left = self.left.checked_sub(self.text.len()).ok_or(TooManyNames)?;
        let own = annotation_text(body, DEPENDS_ON);
        let own = own.split(',').map(str::trim).filter(|name| !name.is_empty());
        let text = own.chain([self.text.as_str()]).collect::<Vec<_>>().join(", ");
        annotate(body, DEPENDS_ON, &text);
        Ok(())
    }
}

/// Returns the objects of the release that hooks need which run before it, and all that these need.
/// An object that gives rights to a service account that is needed is needed too.
fn needed_objects(
    names: &HelmReleaseObjectIds<'_>,
    before: &[HookStep],
    rest: &[ChartObject],
) -> BTreeSet<ObjectId> {
    let of = |object: &ChartObject| {
        let id = names.id(&object.body)?;
        let needs = graph::references(&id, &object.body);
        Some((id, needs))
    };
    let edges: BTreeMap<ObjectId, BTreeSet<ObjectId>> = rest.iter().filter_map(of).collect();
    // The objects that give rights to each account.
    let mut bindings: BTreeMap<&ObjectId, Vec<&ObjectId>> = BTreeMap::new();
    for (other, needs) in edges.iter().filter(|(other, _)| other.group() == "rbac.authorization.k8s.io") {
        for account in needs.iter().filter(|id| id.is("", "ServiceAccount")) {
            bindings.entry(account).or_default().push(other);
        }
    }
    let hooks = before.iter().flat_map(|step| &step.objects).filter_map(of);
    let mut left: Vec<ObjectId> = hooks.flat_map(|(_, needs)| needs).collect();
    let mut needed = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !edges.contains_key(&id) || !needed.insert(id.clone()) {
            continue;
        }
        left.extend(edges.get(&id).into_iter().flatten().cloned());
        left.extend(bindings.get(&id).into_iter().flatten().map(|other| (*other).clone()));
    }
    needed
}

/// The identities of a release's objects, as far as the scope of their kinds is known without a
/// cluster.
struct HelmReleaseObjectIds<'a> {
    scopes: KindScopes,
    /// The namespace of the release.
    namespace: &'a str,
    /// The namespace that objects get which name none.
    unnamed: UnnamedNamespace,
}

impl HelmReleaseObjectIds<'_> {
    /// Returns the identity of an object; none where that is not known.
    fn id(&self, body: &Value) -> Option<ObjectId> {
        let gvk = Gvk::from_api_version(text_at(body, &["apiVersion"]), text_at(body, &["kind"]));
        let (kind, name) = (gvk.group_kind(), text_at(body, &["metadata", "name"]));
        if name.is_empty() {
            return None;
        }
        let written = text_at(body, &["metadata", "namespace"]);
        let namespace = match (self.scopes.get(&kind), written) {
            (Some(KindScope::Cluster), _) => None,
            (Some(KindScope::Namespaced), "") => Some(self.namespace),
            (None, "") => return None,
            (_, written) => Some(written),
        };
        Some(ObjectId::new(&kind, namespace, name))
    }

    /// Returns the identity of an object in the form of the annotation. Where the source says where
    /// an object lives, the name leaves it open as the object does.
    fn text(&self, body: &Value) -> Option<String> {
        let id = self.id(body)?;
        let (group, kind, name) = (id.group(), id.kind(), id.name());
        let written = text_at(body, &["metadata", "namespace"]);
        Some(match (id.namespace(), self.unnamed) {
            (Some(namespace), UnnamedNamespace::Release) => {
                format!("{group}/namespaces/{namespace}/{kind}/{name}")
            }
            (Some(_), UnnamedNamespace::Source) => format!("{group}/namespaces/{written}/{kind}/{name}"),
            (None, _) => format!("{group}/{kind}/{name}"),
        })
    }
}
