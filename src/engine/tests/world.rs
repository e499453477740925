//! A cluster of a few objects, as far as the engine can tell it from a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::change::ImpactKind;
use crate::engine::*;
use crate::health::{Health, Status};
use crate::object::{GroupKind, Gvk, Hash, ObjectId, Origin, Revision};

pub(super) const SET: &str = "applyset-ours-v1";

/// So many workloads at once from the beginning, whatever their pods, and no time to soak.
pub(super) fn budget(most: u32) -> Budget {
    Budget {
        max_workloads: most,
        max_unavailable: Amount::Percent(100),
        starts_per_minute: 1000,
        soak: Duration::ZERO,
        ..Budget::default()
    }
}

pub(super) fn id(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new(group, kind), (!namespace.is_empty()).then_some(namespace), name)
}

pub(super) fn config(name: &str) -> ObjectId {
    id("", "ConfigMap", "shop", name)
}

pub(super) fn workload(name: &str) -> ObjectId {
    id("apps", "Deployment", "shop", name)
}

pub(super) fn gvk(id: &ObjectId) -> Gvk {
    Gvk::new(id.group(), "v1", id.kind())
}

/// A wanted object whose content is this number.
pub(super) fn desired(id: &ObjectId, content: u32, file: &str) -> Shared {
    let hash = Hash::of_bytes(format!("{id} {content}").as_bytes());
    Arc::new(Desired {
        id: id.clone(),
        gvk: gvk(id),
        hash,
        ceded: None,
        count: None,
        template: is_workload(id).then_some(hash),
        strategy: Strategy::default(),
        steps: None,
        wave: 0,
        selects: None,
        labels: None,
        needs: Box::default(),
        config: None,
        after: Box::default(),
        defines: None,
        traits: Traits::default(),
        ignores: None,
        origin: Origin { file: file.into(), line: 1, column: 1 },
        place: Place::default(),
    })
}

/// One reading of the only source: one file an object.
pub(super) fn reading(revision: &str, files: &[(&str, Option<Shared>)]) -> Reading {
    let facts = |shared: &Shared| FileFacts { objects: vec![shared.clone()], ..FileFacts::default() };
    Reading {
        revision: Some(Revision::new(revision)),
        files: files.iter().map(|(file, shared)| ((*file).into(), shared.as_ref().map(facts))).collect(),
        ..Reading::default()
    }
}

/// An engine that watches ConfigMaps, whose sources follow these repositories.
pub(super) fn following(of: &[(&str, &str, Repository)], adopt: Adopt) -> Engine {
    let maps = GroupKind::new("", "ConfigMap");
    let mut engine = Engine::new(budget(3));
    engine.release_key(Known::Is(super::rig::release_key()));
    engine.served(Gvk::new("", "v1", "ConfigMap"), Served::Yes);
    engine.list_complete(&maps);
    for (name, set, repository) in of {
        let radius = BlastRadius { count: 100, percent: 100 };
        let source = engine.add_source(Source::new(name, set, adopt, Prune::On, radius));
        engine.inventory(source, Inventory { kinds: [maps.clone()].into(), ..Inventory::default() });
        engine.follows(source, repository.clone());
    }
    engine
}

/// One object of the world.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) uid: u64,
    pub(super) rv: u64,
    pub(super) release: Option<Release>,
    pub(super) labelled: bool,
    pub(super) drifted: bool,
    /// Grows with each change of what we own of it.
    pub(super) shape: u64,
    pub(super) foreign: bool,
    pub(super) phase: RollPhase,
    /// What is laid over it.
    pub(super) shown: Shown,
    /// Which data its pods were started with.
    pub(super) started: Option<Started>,
    /// What people ask of it.
    pub(super) asked: Option<Box<Asked>>,
    /// What somebody else's annotation on it asks for.
    pub(super) asks: Reconcile,
    /// The content whose rollout its controller says has failed: it goes on saying so until another got somewhere.
    pub(super) failed: Option<Hash>,
    /// Its pods, where they are not all there.
    pub(super) numbers: Option<Rolling>,
}

impl Thing {
    /// Returns one in its first version, that came to rest with this content of a revision.
    pub(super) fn settled(hash: Hash, revision: &str, rv: u64) -> Self {
        Self {
            uid: rv,
            rv,
            release: Some(Release { hash, revision: Revision::new(revision) }),
            labelled: true,
            drifted: false,
            shape: rv,
            foreign: false,
            phase: RollPhase::Settled,
            shown: Shown::Plain,
            started: None,
            asked: None,
            asks: Reconcile::Enabled,
            failed: None,
            numbers: None,
        }
    }

    fn restarted_by(&self, content: Hash, started: Option<Started>) -> bool {
        let hashed = |started: Option<Started>| started.and_then(Started::template);
        let released = self.release.as_ref().map(|release| release.hash);
        released != Some(content) || self.drifted || hashed(self.started) != hashed(started)
    }

    /// What decides whether its pods come up.
    pub(super) fn runs(&self) -> Option<Hash> {
        let data = self.started.map(|started| started.data);
        let content = self.release.as_ref().map(|release| release.hash)?;
        Some(data.map_or(content, |data| Hash::of_bytes(format!("{content} {data}").as_bytes())))
    }
}

/// What the audit log of the world shows of us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    Created(ObjectId),
    Changed(ObjectId),
    Deleted(ObjectId, u64),
    Nothing(ObjectId),
}

/// The cluster, and the watch events that have not been delivered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) things: BTreeMap<ObjectId, Thing>,
    pub(super) events: Vec<(ObjectId, Option<Thing>)>,
    pub(super) log: Vec<Wrote>,
    pub(super) clock: u64,
    /// The budget object.
    pub(super) book: Book,
    /// What the parent says of contents that failed.
    pub(super) rejections: Vec<Rejection>,
    /// What the parent says of that which people asked for.
    pub(super) acknowledged: Vec<Acknowledged>,
    /// What stands in the orders object.
    pub(super) orders: Vec<GivenOrder>,
    pub(super) paused: Option<Paused>,
    /// Contents whose pods never get ready.
    pub(super) bad: BTreeSet<Hash>,
    /// What the server says that contents do to pods, where that is not what the contents tell.
    pub(super) impacts: BTreeMap<Hash, ImpactKind>,
    /// How many dry runs were asked for.
    pub(super) dry_runs: usize,
}

impl World {
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn live(id: &ObjectId, thing: &Thing) -> Live {
        let owner = match (thing.foreign, thing.labelled) {
            (true, _) => Owner::Foreign("Flux Kustomization a/b".into()),
            (false, true) => Owner::Ours(SET.into()),
            (false, false) => Owner::Nobody,
        };
        Live {
            uid: Uid(thing.uid.to_string().into()),
            rv: Rv(thing.rv),
            generation: thing.shape.cast_signed(),
            gvk: gvk(id),
            owner,
            release: thing.release.clone(),
            claim: None,
            ours: thing.release.as_ref().map(|_| {
                let hashed = thing.started.and_then(Started::template).map_or("", |_| CONFIG_HASH);
                format!("{} {RELEASE} {hashed}", thing.shape).into()
            }),
            values: None,
            others: Arc::from([]),
            replicas_ceded: false,
            health: thing.failed.map_or(Health::current(), |content| {
                Health::new(Status::Failed, &format!("content {content} made no progress"))
            }),
            rolling: is_workload(id).then(|| {
                let all = Rolling { replicas: 3, updated: 3, ready: 3, available: 3, ..Rolling::default() };
                let failed_before = thing.failed.is_some() && thing.failed != thing.runs();
                Rolling { phase: thing.phase, failed_before, ..thing.numbers.unwrap_or(all) }
            }),
            shown: thing.shown,
            started: thing.started,
            finished: false,
            deleting: false,
            keep: Keep::No,
            asked: thing.asked.clone(),
            opt_out: (thing.asks == Reconcile::Disabled).then_some(crate::engine::RECONCILE),
        }
    }

    /// Announces the object as it is now; a watch by label does not show what lacks the label.
    pub(super) fn announce(&mut self, id: &ObjectId) {
        let shown = self.things.get(id).filter(|thing| thing.labelled && !thing.foreign).cloned();
        self.events.push((id.clone(), shown));
    }

    /// Whether nothing is claimed, and no unit is being released.
    pub(super) fn is_free(&self) -> bool {
        self.book.claims.is_empty() && self.book.units.is_empty()
    }

    /// Carries an action out as the API server would.
    pub(super) fn perform(&mut self, id: &ObjectId, action: &Action) -> Outcome {
        match action {
            Action::Apply(apply) => self.apply(id, apply),
            Action::Delete(uid, rv, _) => self.delete(id, uid, *rv),
            other => panic!("{other:?} is no write"),
        }
    }

    fn apply(&mut self, id: &ObjectId, apply: &Apply) -> Outcome {
        let known = self.things.get(id).cloned();
        match (&apply.guard, &known) {
            (Guard::Absent, Some(_)) => return Outcome::Failed(Failure::Conflict(Duration::ZERO)),
            (Guard::Uid(_) | Guard::Exact(..), None) => {
                return Outcome::Failed(Failure::Conflict(Duration::ZERO));
            }
            (Guard::Uid(uid) | Guard::Exact(uid, _), Some(thing)) if *uid.0 != thing.uid.to_string() => {
                return Outcome::Failed(Failure::Conflict(Duration::ZERO));
            }
            (Guard::Exact(_, rv), Some(thing)) if rv.0 != thing.rv => {
                return Outcome::Failed(Failure::Conflict(Duration::ZERO));
            }
            _ => {}
        }
        let release = Release { hash: apply.want.hash, revision: apply.revision.clone() };
        let same = |thing: &&Thing| {
            thing.release.as_ref() == Some(&release)
                && thing.shown == Shown::from(apply.form.overlay)
                && !thing.drifted
                && thing.started == apply.form.started
                && thing.labelled
        };
        if let Some(thing) = known.as_ref().filter(same) {
            self.log.push(Wrote::Nothing(id.clone()));
            return Outcome::Applied(Written { live: Self::live(id, thing) });
        }
        let rv = self.tick();
        let rolls = known.as_ref().is_some_and(|t| t.restarted_by(release.hash, apply.form.started));
        let phase = if is_workload(id) && rolls { RollPhase::Replacing } else { RollPhase::Settled };
        let thing = Thing {
            uid: known.as_ref().map_or(rv, |thing| thing.uid),
            shown: Shown::from(apply.form.overlay),
            started: apply.form.started,
            phase,
            asked: known.as_ref().and_then(|thing| thing.asked.clone()),
            asks: known.as_ref().map_or(Reconcile::Enabled, |thing| thing.asks),
            failed: known.as_ref().and_then(|thing| thing.failed),
            numbers: known.as_ref().and_then(|thing| thing.numbers),
            release: Some(release),
            ..Thing::settled(apply.want.hash, "", rv)
        };
        self.log.push(if known.is_some() { Wrote::Changed(id.clone()) } else { Wrote::Created(id.clone()) });
        let live = Self::live(id, &thing);
        self.things.insert(id.clone(), thing);
        self.announce(id);
        Outcome::Applied(Written { live })
    }

    fn delete(&mut self, id: &ObjectId, uid: &Uid, rv: Rv) -> Outcome {
        match self.things.get(id) {
            Some(thing) if *uid.0 == thing.uid.to_string() && rv.0 == thing.rv => {
                self.log.push(Wrote::Deleted(id.clone(), thing.uid));
                self.things.remove(id);
                self.tick();
                self.announce(id);
                Outcome::Deleted
            }
            Some(_) => Outcome::Failed(Failure::Conflict(Duration::ZERO)),
            None => Outcome::Deleted,
        }
    }
}
