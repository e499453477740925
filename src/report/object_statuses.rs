//! The status of single objects: each by its source, its phase and its reason.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ObjectRef, ObjectStatus, Phase, StatusContext};
use crate::engine::{DesiredState, ObjectEntry, PauseSubject, Reason, RefusedManifest, SourceId, View};
use crate::object::ObjectId;
use crate::render::CodedReason;

/// The manifests of each source that are refused to it: no entry tells of them under its name.
pub(super) struct RefusedObjects<'a>(Vec<BTreeMap<&'a ObjectId, RefusedManifest>>);

/// One object of one source.
#[derive(Clone, Copy)]
pub(super) struct ReportedObject<'a> {
    id: &'a ObjectId,
    /// The source that it counts for.
    pub(super) source: SourceId,
    /// Its phase there.
    pub(super) phase: Phase,
    /// Its facts; none where the source has no more than a manifest that is refused to it.
    entry: Option<&'a ObjectEntry>,
    refused: Option<&'a RefusedManifest>,
}

impl<'a> RefusedObjects<'a> {
    /// Returns those of all sources.
    pub(super) fn of(engine: View<'a>) -> Self {
        Self(engine.source_ids().map(|source| engine.refused_manifests(source)).collect())
    }

    fn manifest(&self, source: SourceId, id: &ObjectId) -> Option<&RefusedManifest> {
        self.0.get(source.position())?.get(id)
    }

    /// Returns the objects of all sources: the entries, and each manifest that is refused to a
    /// source which has no entry of that object.
    pub(super) fn reported_objects(
        &'a self,
        engine: View<'a>,
        context: &'a StatusContext<'_>,
    ) -> impl Iterator<Item = ReportedObject<'a>> {
        let entries =
            engine.entries().filter_map(move |(id, entry)| self.of_entry(engine, context, id, entry));
        let manifests = engine.source_ids().zip(&self.0);
        let manifests =
            manifests.flat_map(|(source, of)| of.iter().map(move |(id, found)| (source, *id, found)));
        let rest = manifests.filter(move |(source, id, _)| {
            let counted = engine.entry(id).and_then(|entry| source_of_object(engine, id, entry));
            counted != Some(*source)
        });
        entries.chain(rest.map(|(source, id, found)| ReportedObject {
            id,
            source,
            phase: Phase::Refused,
            entry: None,
            refused: Some(found),
        }))
    }

    fn of_entry(
        &'a self,
        engine: View<'_>,
        context: &StatusContext<'_>,
        id: &'a ObjectId,
        entry: &'a ObjectEntry,
    ) -> Option<ReportedObject<'a>> {
        let source = source_of_object(engine, id, entry)?;
        let refused = self.manifest(source, id);
        let phase = match refused {
            Some(_) => Phase::Refused,
            None => Phase::of(engine, id, entry, context.open.get(id)),
        };
        Some(ReportedObject { id, source, phase, entry: Some(entry), refused })
    }
}

/// The filter of a list of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectFilter {
    /// The source.
    pub source: Option<String>,
    /// The phase.
    pub phase: Option<Phase>,
    /// The kind, for example `Deployment` or `Deployment.apps`.
    pub kind: Option<String>,
}

impl ObjectFilter {
    /// Compares the kind without regard to case, as kubectl does.
    fn is_of_kind(&self, id: &ObjectId) -> bool {
        let is = |kind: &String| {
            kind.eq_ignore_ascii_case(id.kind()) || kind.eq_ignore_ascii_case(&id.group_kind().to_string())
        };
        self.kind.as_ref().is_none_or(is)
    }
}

/// Returns the objects that a filter lets through, in their order.
pub(crate) fn objects(
    engine: View<'_>,
    context: &StatusContext<'_>,
    filter: &ObjectFilter,
) -> Vec<ObjectStatus> {
    let (queued, refused) = (queue_reasons(engine), RefusedObjects::of(engine));
    let chosen = refused.reported_objects(engine, context).filter(|object| {
        let of_source = |source: &String| *source == *engine.source(object.source).declared.name;
        filter.is_of_kind(object.id)
            && filter.source.as_ref().is_none_or(of_source)
            && filter.phase.is_none_or(|phase| phase == object.phase)
    });
    let mut chosen: Vec<ReportedObject<'_>> = chosen.collect();
    chosen.sort_by_key(|object| object.id);
    chosen.into_iter().map(|object| object.status(engine, context, &queued)).collect()
}

/// Returns the objects of each source in some phases: the first so many, in their order.
pub(crate) fn first_objects(
    engine: View<'_>,
    context: &StatusContext<'_>,
    most: usize,
    is_asked_for: impl Fn(Phase) -> bool,
) -> Vec<Vec<ObjectStatus>> {
    let (queued, refused) = (queue_reasons(engine), RefusedObjects::of(engine));
    let mut found: Vec<Vec<ReportedObject<'_>>> = engine.sources().iter().map(|_| Vec::new()).collect();
    for object in refused.reported_objects(engine, context).filter(|object| is_asked_for(object.phase)) {
        found[object.source.position()].push(object);
    }
    let grouped = found.into_iter().map(|mut of| {
        of.sort_by_key(|object| object.id);
        of.into_iter().take(most).map(|object| object.status(engine, context, &queued)).collect()
    });
    grouped.collect()
}

/// Returns one object; none where no source of this process knows it.
pub(crate) fn object_status(
    engine: View<'_>,
    context: &StatusContext<'_>,
    id: &ObjectId,
) -> Option<ObjectStatus> {
    let refused = RefusedObjects::of(engine);
    let entry = engine.entry(id).and_then(|entry| refused.of_entry(engine, context, id, entry));
    let manifest = || refused.reported_objects(engine, context).find(|object| object.id == id);
    Some(entry.or_else(manifest)?.status(engine, context, &queue_reasons(engine)))
}

/// A reason as it is reported: its sentence, and its form for machines.
#[derive(Clone, Debug, Default)]
struct ReportedReason {
    sentence: Option<String>,
    coded: CodedReason,
}

impl ReportedReason {
    fn of(reason: &Reason) -> Self {
        Self { sentence: Some(reason.to_string()), coded: CodedReason::of(reason) }
    }
}

/// Returns the present reason of each object in the rollout queue: it changes without a new
/// decision about the object.
fn queue_reasons(engine: View<'_>) -> BTreeMap<ObjectId, ReportedReason> {
    let waits = engine.queue_with_reasons().into_iter().filter(|(queued, _)| queued.position.is_some());
    let reported = waits.map(|(queued, reason)| {
        let sentence = Some(queued.reason.to_string());
        (queued.id, ReportedReason { sentence, coded: CodedReason::of(&reason) })
    });
    reported.collect()
}

impl ReportedObject<'_> {
    /// Returns its status.
    fn status(
        self,
        engine: View<'_>,
        context: &StatusContext<'_>,
        queued: &BTreeMap<ObjectId, ReportedReason>,
    ) -> ObjectStatus {
        let (id, phase) = (self.id, self.phase);
        let open = || context.open.get(id).filter(|_| self.entry.is_some());
        let unhealthy = || {
            let live = engine.live_object(id).filter(|live| !live.health.is_current())?;
            let sentence = match &*live.health.message {
                "" => live.health.status.to_string(),
                message => message.to_owned(),
            };
            Some(ReportedReason { sentence: Some(sentence), ..ReportedReason::default() })
        };
        let paused = || {
            let paused = engine.annotated_pause(id).filter(|_| phase == Phase::Paused)?;
            Some(ReportedReason::of(&Reason::Paused(PauseSubject::Object, paused.reason.clone())))
        };
        let known = || queued.get(id).cloned().or_else(|| open().map(ReportedReason::of));
        let reported = match self.refused {
            Some(found) => ReportedReason::of(&Reason::Unusable(found.reason.clone())),
            None => known().or_else(paused).or_else(unhealthy).unwrap_or_default(),
        };
        let target = self.entry.and_then(|entry| entry.targets.first()).map(|(_, state)| state);
        let origin = self.refused.map(|found| &found.origin).or(target.map(DesiredState::origin));
        let revision = self.entry.and_then(|entry| entry.revision.as_ref());
        ObjectStatus {
            object: ObjectRef::of(id),
            source: engine.source(self.source).declared.name.to_string(),
            phase,
            reason: reported.sentence,
            coded: reported.coded,
            revision: revision.map(ToString::to_string),
            origin: origin.map(ToString::to_string),
            wave: match target {
                Some(DesiredState::Object(desired)) => desired.wave,
                Some(DesiredState::Unusable(_)) | None => 0,
            },
        }
    }
}

/// Returns the source that wants an object, or has it in its inventory.
fn source_of_object(engine: View<'_>, id: &ObjectId, entry: &ObjectEntry) -> Option<SourceId> {
    let wanting = entry.targets.first().map(|(source, _)| *source);
    wanting.or_else(|| engine.source_of(engine.informer_object(id)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use jiff::Timestamp;

    use super::*;
    use crate::engine::tests::world::{FIRST, SECOND, config, desired, following, gvk, reading};
    use crate::engine::{AdoptPolicy, Engine, FileFacts, RepositoryIdentity, SourceReading, UnusableObject};
    use crate::object::{ManifestOrigin, Revision};
    use crate::report::{DaemonStatus, Metrics, status};

    /// Returns an engine whose first source names an object that it may not have.
    fn disallowed(id: &ObjectId) -> Engine {
        let sources =
            [("one", "set-a", RepositoryIdentity::Unknown), ("two", "set-b", RepositoryIdentity::Unknown)];
        let mut engine = following(&sources, AdoptPolicy::IfUnowned);
        let object = UnusableObject {
            id: id.clone(),
            gvk: gvk(id),
            origin: ManifestOrigin::new("a.yaml".into(), 3, 1),
            reason: "it is not allowed".into(),
        };
        let facts = FileFacts { disallowed: vec![Arc::new(object)], ..FileFacts::default() };
        engine.read(
            FIRST,
            SourceReading {
                revision: Some(Revision::new("r1")),
                files: vec![("a.yaml".into(), Some(facts))],
                ..SourceReading::default()
            },
        );
        engine.read(SECOND, reading("r1", &[]));
        engine
    }

    fn with_context<T>(engine: &Engine, answer: impl Fn(View<'_>, &StatusContext<'_>) -> T) -> T {
        let context = StatusContext {
            open: &BTreeMap::new(),
            locations: &[],
            troubles: &[],
            budget: None,
            unreadable: &[],
            times: &[],
            metrics: &Metrics::default(),
            since: Timestamp::UNIX_EPOCH,
            next_resync: Timestamp::UNIX_EPOCH,
            queue: 0,
            unfinished: (Duration::ZERO, Duration::ZERO),
            now: (Instant::now(), Timestamp::UNIX_EPOCH),
        };
        answer(engine.view(), &context)
    }

    fn phases(status: &DaemonStatus) -> Vec<(bool, Vec<(Phase, usize)>)> {
        let of = |source: &crate::report::SourceStatus| {
            (source.healthy, source.objects.iter().map(|(phase, count)| (*phase, *count)).collect())
        };
        status.sources.iter().map(of).collect()
    }

    #[test]
    fn a_manifest_that_is_not_allowed_counts_as_refused_and_its_source_is_not_healthy() {
        let id = config("env");
        let engine = disallowed(&id);
        assert_eq!(
            phases(&with_context(&engine, status)),
            [(false, vec![(Phase::Refused, 1)]), (true, Vec::new())]
        );
        let refused = ObjectStatus {
            object: ObjectRef::of(&id),
            source: "one".to_owned(),
            phase: Phase::Refused,
            reason: Some("it is not allowed".to_owned()),
            coded: CodedReason::of(&Reason::Unusable("it is not allowed".into())),
            revision: None,
            origin: Some("a.yaml:3".to_owned()),
            wave: 0,
        };
        let all = |filter: &ObjectFilter| with_context(&engine, |engine, it| objects(engine, it, filter));
        assert_eq!(all(&ObjectFilter::default()), std::slice::from_ref(&refused));
        let second = ObjectFilter { source: Some("two".to_owned()), ..ObjectFilter::default() };
        assert_eq!(all(&second), []);
        let first =
            with_context(&engine, |engine, it| first_objects(engine, it, 9, |phase| !phase.is_well()));
        assert_eq!(first, [vec![refused.clone()], Vec::new()]);
        assert_eq!(with_context(&engine, |engine, it| object_status(engine, it, &id)), Some(refused));
    }

    #[test]
    fn the_object_of_another_source_is_counted_beside_the_manifest_that_is_refused() {
        let id = config("env");
        let mut engine = disallowed(&id);
        engine.read(SECOND, reading("r2", &[("env", Some(desired(&id, 1, "env")))]));
        assert_eq!(
            phases(&with_context(&engine, status)),
            [(false, vec![(Phase::Refused, 1)]), (false, vec![(Phase::Waiting, 1)])]
        );
        let shown = with_context(&engine, |engine, it| object_status(engine, it, &id)).unwrap();
        assert_eq!((&*shown.source, shown.phase), ("two", Phase::Waiting));
        engine.read(FIRST, SourceReading { files: vec![("a.yaml".into(), None)], ..reading("r2", &[]) });
        assert_eq!(phases(&with_context(&engine, status))[0], (true, Vec::new()));
    }
}
