//! A cluster of a few objects, which looks like a real one to the engine.

use crate::object::annotations::{self, RELEASE};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::change::ImpactKind;
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ContentHash, GroupKind, Gvk, ManifestOrigin, ObjectId, Revision};

pub(crate) const SET: &str = "applyset-ours-v1";

/// The source that was added first.
pub(crate) const FIRST: SourceId = SourceId::new(0);
/// The source that was added second.
pub(crate) const SECOND: SourceId = SourceId::new(1);

/// Returns a budget of this many workloads at once from the beginning, whatever their pods, and no
/// time to soak.
pub(crate) fn budget(most: u32) -> Budget {
    Budget {
        max_workloads: most,
        max_unavailable: PodAmount::Percent(100),
        starts_per_minute: 1000,
        soak: Duration::ZERO,
        ..Budget::default()
    }
}

pub(crate) fn id(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new(group, kind), (!namespace.is_empty()).then_some(namespace), name)
}

pub(crate) fn config(name: &str) -> ObjectId {
    id("", "ConfigMap", "shop", name)
}

pub(crate) fn workload(name: &str) -> ObjectId {
    id("apps", "Deployment", "shop", name)
}

pub(crate) fn gvk(id: &ObjectId) -> Gvk {
    Gvk::new(id.group(), "v1", id.kind())
}

/// Returns the numbers of a workload whose three pods are ready.
pub(super) fn all_ready() -> ReplicaStatus {
    ReplicaStatus { replicas: 3, pods: 3, updated: 3, ready: 3, available: 3, ..ReplicaStatus::default() }
}

/// Returns a desired object whose content is this number.
pub(crate) fn desired(id: &ObjectId, content: u32, file: &str) -> SharedDesiredObject {
    let hash = ContentHash::hash_bytes(format!("{id} {content}").as_bytes());
    Arc::new(DesiredObject {
        id: id.clone(),
        gvk: gvk(id),
        hash,
        hash_without_replicas: None,
        replicas: None,
        template: is_workload(id).then_some(hash),
        strategy: UpdateStrategy::default(),
        steps: None,
        wave: 0,
        selects: None,
        labels: None,
        needs: Box::default(),
        config: None,
        depends_on: Box::default(),
        defines: None,
        traits: ObjectPolicies::default(),
        ignores: None,
        generated: None,
        origin: ManifestOrigin::new(file.into(), 1, 1),
        body: BodyLocation { source: FIRST, blob: [0; 20], index: 0 },
    })
}

/// Returns one reading of the only source: one file an object.
pub(crate) fn reading(revision: &str, files: &[(&str, Option<SharedDesiredObject>)]) -> SourceReading {
    let facts =
        |shared: &SharedDesiredObject| FileFacts { objects: vec![shared.clone()], ..FileFacts::default() };
    SourceReading {
        revision: Some(Revision::new(revision)),
        files: files.iter().map(|(file, shared)| ((*file).into(), shared.as_ref().map(facts))).collect(),
        ..SourceReading::default()
    }
}

/// Returns an inventory that names these kinds, and all namespaces of these tests.
pub(crate) fn naming(kinds: impl IntoIterator<Item = GroupKind>) -> Inventory {
    let namespaces = ["depot", "elsewhere", "kube-system", "ops", "other", "shop", "shopw"];
    let namespaces = namespaces.into_iter().map(Arc::from).collect();
    Inventory { kinds: kinds.into_iter().collect(), namespaces, ..Inventory::default() }
}

/// Returns an engine that watches ConfigMaps, whose sources follow these repositories.
pub(crate) fn following(of: &[(&str, &str, RepositoryIdentity)], adopt: AdoptPolicy) -> Engine {
    let maps = GroupKind::new("", "ConfigMap");
    let mut engine = Engine::new(budget(3));
    engine.set_release_key(ReadState::Value(super::harness::release_key()));
    let gvk = Gvk::new("", "v1", "ConfigMap");
    engine.handle_now(Input::Discovered { gvk, availability: KindAvailability::Served });
    engine.end_list(&maps);
    for (name, set, repository) in of {
        let radius = BlastRadius { count: 100, percent: 100 };
        let source = engine.add_source(SourceDeclaration::new(name, set, adopt, PrunePolicy::On, radius));
        let inventory = naming([maps.clone()]);
        engine.handle_now(Input::Inventory { source, inventory });
        engine.handle_now(Input::Repository { source, repository: repository.clone() });
    }
    engine
}

/// One object of the world.
#[derive(Clone, Debug)]
pub(crate) struct WorldObject {
    pub(crate) uid: u64,
    pub(crate) rv: u64,
    pub(crate) release: Option<ContentRef>,
    pub(crate) labelled: bool,
    pub(crate) drifted: bool,
    /// Grows with each change of what we own of it.
    pub(crate) shape: u64,
    pub(crate) foreign: bool,
    pub(crate) phase: WorkloadPhase,
    /// The overlay on it.
    pub(crate) shown: RolloutOverlayState,
    /// The data that its pods were started with.
    pub(crate) config_stamp: Option<ConfigStamp>,
    /// The intents of people for it.
    pub(crate) objects_with_intents: Option<Box<ObjectIntents>>,
    /// The wish of somebody else's annotation on it.
    pub(crate) asks: ReconcilePolicy,
    /// The content whose rollout its controller says has failed: it goes on saying so until another
    /// got somewhere.
    pub(crate) failed: Option<ContentHash>,
    /// The render that made up values of it.
    pub(crate) generated: Option<Box<GeneratedMark>>,
    /// Its pods, where they are not all there.
    pub(crate) numbers: Option<ReplicaStatus>,
}

impl WorldObject {
    /// Returns one in its first version, that came to rest with this content of a revision.
    pub(crate) fn settled(hash: ContentHash, revision: &str, rv: u64) -> Self {
        Self {
            uid: rv,
            rv,
            release: Some(ContentRef { hash, revision: Revision::new(revision) }),
            labelled: true,
            drifted: false,
            shape: rv,
            foreign: false,
            phase: WorkloadPhase::Settled,
            shown: RolloutOverlayState::Plain,
            config_stamp: None,
            objects_with_intents: None,
            asks: ReconcilePolicy::Enabled,
            failed: None,
            generated: None,
            numbers: None,
        }
    }

    fn is_restarted_by(&self, content: ContentHash, config_stamp: Option<ConfigStamp>) -> bool {
        let hashed = |config_stamp: Option<ConfigStamp>| config_stamp.and_then(ConfigStamp::template_hash);
        let released = self.release.as_ref().map(|release| release.hash);
        released != Some(content) || self.drifted || hashed(self.config_stamp) != hashed(config_stamp)
    }

    /// Returns the content that decides whether its pods come up.
    pub(crate) fn runs(&self) -> Option<ContentHash> {
        let data = self.config_stamp.map(|started| started.data);
        let content = self.release.as_ref().map(|release| release.hash)?;
        Some(data.map_or(content, |data| ContentHash::hash_bytes(format!("{content} {data}").as_bytes())))
    }
}

/// One entry of the world's audit log about us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuditEntry {
    Created(ObjectId),
    Changed(ObjectId),
    Deleted(ObjectId, u64),
    Nothing(ObjectId),
}

/// The cluster, and the watch events that have not been delivered yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) things: BTreeMap<ObjectId, WorldObject>,
    pub(crate) events: Vec<(ObjectId, Option<WorldObject>)>,
    pub(crate) log: Vec<AuditEntry>,
    pub(crate) clock: u64,
    /// The rollout ledger.
    pub(crate) ledger: RolloutLedger,
    /// The rejections in the inventory.
    pub(crate) rejections: Vec<Rejection>,
    /// The acknowledgements in the inventory.
    pub(crate) acknowledged: Vec<Acknowledgement>,
    /// The orders object.
    pub(crate) orders: Vec<Order>,
    pub(crate) paused: Option<PauseIntent>,
    /// Contents whose pods never get ready.
    pub(crate) bad: BTreeSet<ContentHash>,
    /// The server's impact of contents, where it does not follow from the contents.
    pub(crate) impacts: BTreeMap<ContentHash, ImpactKind>,
    /// The number of dry runs.
    pub(crate) dry_runs: usize,
}

impl World {
    pub(crate) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn live(id: &ObjectId, thing: &WorldObject) -> LiveObject {
        let owner = match (thing.foreign, thing.labelled) {
            (true, _) => ObjectOwner::Foreign("Flux Kustomization a/b".into()),
            (false, true) => ObjectOwner::Ours(SET.into()),
            (false, false) => ObjectOwner::Nobody,
        };
        LiveObject {
            uid: Uid(thing.uid.to_string().into()),
            rv: ResourceVersion(thing.rv),
            generation: thing.shape.cast_signed(),
            gvk: gvk(id),
            owner,
            release: thing.release.clone(),
            release_serial: 0,
            job_creator: JobCreator::Rhumb,
            unproven_release: None,
            our_fields: thing.release.as_ref().map(|_| {
                let hashed = thing
                    .config_stamp
                    .and_then(ConfigStamp::template_hash)
                    .map_or("", |_| annotations::CONFIG_HASH);
                format!("{} {RELEASE} {hashed}", thing.shape).into()
            }),
            value_digest: None,
            other_managers: Arc::from([]),
            replicas_ceded: false,
            health: thing.failed.map_or(Health::current(), |content| {
                Health::new(HealthStatus::Failed, &format!("content {content} made no progress"))
            }),
            replica_status: is_workload(id).then(|| {
                let failed_before = thing.failed.is_some() && thing.failed != thing.runs();
                ReplicaStatus { phase: thing.phase, failed_before, ..thing.numbers.unwrap_or_else(all_ready) }
            }),
            overlay: thing.shown,
            config_stamp: thing.config_stamp.map(Box::new),
            finished: false,
            deleting: false,
            prune_timing: PruneTiming::AfterUnit,
            intents: thing.objects_with_intents.clone(),
            sealed_render: thing.generated.as_deref().map(|mark| Box::new(mark.render_hash())),
            volume_claim_retention: VolumeClaimRetention::Retain,
            selects: None,
            opt_out: (thing.asks == ReconcilePolicy::Disabled).then_some(annotations::RECONCILE),
        }
    }

    /// Changes what we own of an object, as somebody else.
    pub(super) fn drift(&mut self, id: &ObjectId) {
        let rv = self.tick();
        let thing = self.things.get_mut(id).unwrap();
        (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
        self.announce(id);
    }

    /// Announces the object as it is now; a watch by label does not show what lacks the label.
    pub(crate) fn announce(&mut self, id: &ObjectId) {
        let shown = self.things.get(id).filter(|thing| thing.labelled && !thing.foreign).cloned();
        self.events.push((id.clone(), shown));
    }

    /// Returns whether nothing is claimed, and no unit is being released.
    pub(crate) fn is_free(&self) -> bool {
        self.ledger.claims.is_empty() && self.ledger.units.is_empty()
    }

    /// Carries an action out as the API server would.
    pub(crate) fn perform(&mut self, id: &ObjectId, action: &Action) -> ActionResult {
        match action {
            Action::Apply(apply) => self.apply(id, apply),
            Action::Delete(uid, rv, _) => self.delete(id, uid, *rv),
            other => panic!("{other:?} is no write"),
        }
    }

    fn apply(&mut self, id: &ObjectId, apply: &ApplyRequest) -> ActionResult {
        let known = self.things.get(id).cloned();
        let conflict = ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO));
        match (&apply.precondition, &known) {
            (Precondition::Absent, Some(_)) | (Precondition::Uid(_) | Precondition::Exact(..), None) => {
                return conflict;
            }
            (Precondition::Uid(uid) | Precondition::Exact(uid, _), Some(thing))
                if *uid.0 != thing.uid.to_string() =>
            {
                return conflict;
            }
            (Precondition::Exact(_, rv), Some(thing)) if rv.0 != thing.rv => return conflict,
            _ => {}
        }
        let release = ContentRef { hash: apply.desired.hash, revision: apply.revision.clone() };
        let same = |thing: &&WorldObject| {
            thing.release.as_ref() == Some(&release)
                && thing.shown == RolloutOverlayState::from(apply.variant.overlay)
                && !thing.drifted
                && thing.config_stamp == apply.variant.config_stamp
                && thing.labelled
        };
        if let Some(thing) = known.as_ref().filter(same) {
            self.log.push(AuditEntry::Nothing(id.clone()));
            return ActionResult::Applied(WriteResult { live: Self::live(id, thing) });
        }
        let rv = self.tick();
        let rolls =
            known.as_ref().is_some_and(|t| t.is_restarted_by(release.hash, apply.variant.config_stamp));
        let phase = if is_workload(id) && rolls { WorkloadPhase::Replacing } else { WorkloadPhase::Settled };
        let thing = WorldObject {
            uid: known.as_ref().map_or(rv, |thing| thing.uid),
            shown: RolloutOverlayState::from(apply.variant.overlay),
            config_stamp: apply.variant.config_stamp,
            phase,
            objects_with_intents: known.as_ref().and_then(|thing| thing.objects_with_intents.clone()),
            asks: known.as_ref().map_or(ReconcilePolicy::Enabled, |thing| thing.asks),
            failed: known.as_ref().and_then(|thing| thing.failed),
            numbers: known.as_ref().and_then(|thing| thing.numbers),
            // It is among the fields that are left alone.
            generated: match &known {
                Some(thing) => thing.generated.clone(),
                None => apply.desired.generated.clone(),
            },
            release: Some(release),
            ..WorldObject::settled(apply.desired.hash, "", rv)
        };
        self.log.push(if known.is_some() {
            AuditEntry::Changed(id.clone())
        } else {
            AuditEntry::Created(id.clone())
        });
        let live = Self::live(id, &thing);
        self.things.insert(id.clone(), thing);
        self.announce(id);
        ActionResult::Applied(WriteResult { live })
    }

    fn delete(&mut self, id: &ObjectId, uid: &Uid, rv: ResourceVersion) -> ActionResult {
        match self.things.get(id) {
            Some(thing) if *uid.0 == thing.uid.to_string() && rv.0 == thing.rv => {
                self.log.push(AuditEntry::Deleted(id.clone(), thing.uid));
                self.things.remove(id);
                self.tick();
                self.announce(id);
                ActionResult::Deleted
            }
            Some(_) => ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO)),
            None => ActionResult::Deleted,
        }
    }
}

/// Returns a time from which a test counts.
pub(crate) fn start_time() -> Instant {
    Instant::now()
}

impl Engine {
    /// Takes a fact over now.
    pub(crate) fn handle_now(&mut self, input: Input) {
        self.handle(input, Instant::now());
    }

    /// Takes a reading of a source over.
    pub(crate) fn read(&mut self, source: SourceId, reading: SourceReading) {
        self.handle_now(Input::Read { source, reading });
    }

    /// Shows an object, as the informer does, where there is only one informer group.
    pub(crate) fn observe_object(&mut self, id: &ObjectId, live: LiveObject) {
        self.handle_now(Input::Seen { informer_group: OWN_INFORMER_GROUP, id: id.clone(), live });
    }

    /// Shows that an object is gone, as the informer does, where there is only one informer group.
    pub(crate) fn observe_absence(&mut self, id: &ObjectId) {
        self.handle_now(Input::Gone { informer_group: OWN_INFORMER_GROUP, id: id.clone() });
    }

    /// Begins the list of a kind, where there is only one informer group.
    pub(crate) fn begin_list(&mut self, kind: &GroupKind) {
        self.handle_now(Input::ListBegun(kind.into()));
    }

    /// Ends the list of a kind, where there is only one informer group.
    pub(crate) fn end_list(&mut self, kind: &GroupKind) {
        self.handle_now(Input::Listed(kind.into()));
    }
}
