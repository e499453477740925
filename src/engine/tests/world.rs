//! A cluster of a few objects, as far as the engine can tell it from a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    pub(super) paused: Option<Paused>,
    /// Contents whose pods never get ready.
    pub(super) bad: BTreeSet<Hash>,
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
            gvk: gvk(id),
            owner,
            release: thing.release.clone(),
            ours: thing.release.as_ref().map(|_| {
                let hashed = thing.started.and_then(Started::template).map_or("", |_| CONFIG_HASH);
                format!("{} {RELEASE} {hashed}", thing.shape).into()
            }),
            others: Arc::from([]),
            replicas_ceded: false,
            health: thing.failed.map_or(Health::current(), |content| {
                Health::new(Status::Failed, &format!("content {content} made no progress"))
            }),
            rolling: is_workload(id).then(|| {
                let all = Rolling { replicas: 3, updated: 3, ready: 3, available: 3, ..Rolling::default() };
                Rolling { phase: thing.phase, ..thing.numbers.unwrap_or(all) }
            }),
            shown: thing.shown,
            started: thing.started,
            finished: false,
            deleting: false,
            keep: Keep::No,
            asked: thing.asked.clone(),
            reconcile: thing.asks,
        }
    }

    /// Announces the object as it is now; a watch by label does not show what lacks the label.
    pub(super) fn announce(&mut self, id: &ObjectId) {
        let shown = self.things.get(id).filter(|thing| thing.labelled && !thing.foreign).cloned();
        self.events.push((id.clone(), shown));
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
        if let Some(thing) = known.as_ref().filter(|t| {
            t.release.as_ref() == Some(&release)
                && !t.drifted
                && t.labelled
                && t.started == apply.form.started
        }) {
            self.log.push(Wrote::Nothing(id.clone()));
            return Outcome::Applied(Written { live: Self::live(id, thing) });
        }
        let rv = self.tick();
        let rolls = known.as_ref().is_some_and(|t| t.restarted_by(release.hash, apply.form.started));
        let phase = if is_workload(id) && rolls { RollPhase::Replacing } else { RollPhase::Settled };
        let thing = Thing {
            uid: known.as_ref().map_or(rv, |thing| thing.uid),
            rv,
            release: Some(release),
            labelled: true,
            drifted: false,
            shape: rv,
            foreign: false,
            shown: Shown::from(apply.form.overlay),
            started: apply.form.started,
            phase,
            asked: known.as_ref().and_then(|thing| thing.asked.clone()),
            asks: known.as_ref().map_or(Reconcile::Enabled, |thing| thing.asks),
            failed: known.as_ref().and_then(|thing| thing.failed),
            numbers: known.as_ref().and_then(|thing| thing.numbers),
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

/// An engine with one source over a world, driven without a loop.
#[derive(Clone)]
pub(super) struct Rig {
    pub(super) engine: Engine,
    pub(super) world: World,
    pub(super) now: Instant,
    /// Contents that older revisions can still give.
    pub(super) history: BTreeMap<Hash, Shared>,
    /// All revisions, each with what it says.
    pub(super) commits: Vec<(Revision, BTreeMap<Arc<str>, Shared>)>,
}

impl Rig {
    pub(super) fn new(most: u32) -> Self {
        let mut rig = Self {
            engine: Engine::new(budget(most)),
            world: World::default(),
            now: Instant::now(),
            history: BTreeMap::new(),
            commits: Vec::new(),
        };
        rig.engine = rig.fresh(most);
        rig
    }

    /// A process that has just started: it knows what the cluster and the source tell, and nothing else.
    pub(super) fn fresh(&self, most: u32) -> Engine {
        self.fresh_with(budget(most))
    }

    /// As [`Rig::fresh`], with any budget.
    pub(super) fn fresh_with(&self, budget: Budget) -> Engine {
        let mut engine = Engine::new(budget);
        engine.add_source(Source::new(
            "test",
            SET,
            Adopt::IfUnowned,
            Prune::On,
            BlastRadius { count: 100, percent: 100 },
        ));
        let kinds = ["ConfigMap", "Deployment.apps"].map(GroupKind::parse);
        let rejections = self.world.rejections.clone();
        let inventory = Inventory {
            kinds: kinds.clone().into(),
            rejections,
            acknowledged: self.world.acknowledged.clone(),
            paused: self.world.paused.clone(),
            ..Inventory::default()
        };
        engine.inventory(0, inventory);
        engine.clock(self.now, jiff::Timestamp::UNIX_EPOCH);
        for kind in &kinds {
            engine.served(Gvk::new(&kind.group, "v1", &kind.kind), Served::Yes);
            engine.list_started(kind);
        }
        engine.book(self.world.book.clone());
        for (id, thing) in self.world.things.iter().filter(|(_, thing)| thing.labelled && !thing.foreign) {
            engine.seen(id, World::live(id, thing));
        }
        for kind in &kinds {
            engine.list_complete(kind);
        }
        engine
    }

    pub(super) fn read(&mut self, reading: Reading) {
        for (_, facts) in &reading.files {
            for shared in facts.iter().flat_map(|facts| &facts.objects) {
                self.history.insert(shared.hash, shared.clone());
            }
        }
        let revision = reading.revision.clone().unwrap_or_else(|| Revision::new(""));
        let mut files = self.commits.last().map(|(_, files)| files.clone()).unwrap_or_default();
        for (file, facts) in &reading.files {
            match facts.iter().flat_map(|facts| &facts.objects).next() {
                Some(shared) => drop(files.insert(file.clone(), shared.clone())),
                None => drop(files.remove(file)),
            }
        }
        if self.commits.last().is_none_or(|(last, _)| *last != revision) {
            self.commits.push((revision, files));
        }
        self.engine.read(0, reading);
    }

    /// What a way back leads to, as git tells it.
    fn past(&self, undo: &Undo) -> Result<Past, String> {
        let place = |name: &str| self.commits.iter().position(|(revision, _)| revision.as_str() == name);
        let before = || place(undo.from.as_str())?.checked_sub(1);
        let place = undo.to.as_ref().map_or_else(before, |to| place(to));
        let (revision, files) = &self.commits[place.ok_or("there is no such revision")?];
        let named = files.values().filter(|content| undo.objects.contains(&content.id));
        let contents = named.map(|content| (content.id.clone(), content.clone())).collect();
        Ok(Past { revision: revision.clone(), contents })
    }

    /// Carries out what people have ordered, as the loop does at the beginning of each turn.
    pub(super) fn carry_out(&mut self) {
        self.engine.carry_out_orders();
        for undo in self.engine.undos().cloned().collect::<Vec<_>>() {
            let past = self.past(&undo);
            self.engine.looked_back(&undo.token, past);
        }
    }

    /// Delivers the oldest events.
    pub(super) fn deliver(&mut self, count: usize) {
        let count = count.min(self.world.events.len());
        for (id, thing) in self.world.events.drain(..count).collect::<Vec<_>>() {
            match thing {
                Some(thing) => self.engine.seen(&id, World::live(&id, &thing)),
                None => self.engine.gone(&id),
            }
        }
    }

    /// Decides about one object; what is to be claimed for that is claimed first.
    pub(super) fn decide(&mut self, id: &ObjectId) -> Decision {
        self.engine.advance(self.now);
        let decision = self.engine.decide(id, self.now);
        if decision.reason != Some(Reason::Claiming) {
            return decision;
        }
        self.keep_book();
        self.engine.decide(id, self.now)
    }

    /// Writes the budget object and the parent, as the loop does at the end of each turn.
    pub(super) fn keep_book(&mut self) {
        self.tell_failures();
        self.resolve();
        self.keep_claims();
        self.keep_parents();
    }

    /// Nothing more is known about what failed.
    pub(super) fn tell_failures(&mut self) {
        for id in self.engine.take_failed().into_keys() {
            self.engine.told_more(&id, &[]);
        }
    }

    /// Writes the budget object.
    pub(super) fn keep_claims(&mut self) {
        if let Some(book) = self.engine.next_book() {
            self.world.book = book.clone();
            self.engine.book(book);
        }
    }

    /// Writes the parent.
    pub(super) fn keep_parents(&mut self) {
        for source in 0..self.engine.sources().len() {
            let rejections = self.engine.next_rejections(source);
            let acknowledged = self.engine.next_acknowledged(source);
            if rejections.is_some() || acknowledged.is_some() {
                let mut inventory = self.engine.source(source).inventory.clone().unwrap_or_default();
                inventory.rejections = rejections.unwrap_or(inventory.rejections);
                inventory.acknowledged = acknowledged.unwrap_or(inventory.acknowledged);
                self.world.rejections.clone_from(&inventory.rejections);
                self.world.acknowledged.clone_from(&inventory.acknowledged);
                self.engine.inventory(source, inventory);
            }
        }
    }

    /// Decides about one object and does what is decided; tells whether it was a write.
    pub(super) fn step(&mut self, id: &ObjectId) -> Option<Action> {
        let decision = self.decide(id);
        self.act(id, decision)
    }

    /// Does what was decided about one object; tells whether it was a write.
    pub(super) fn act(&mut self, id: &ObjectId, decision: Decision) -> Option<Action> {
        match decision.action {
            Action::Nothing => None,
            Action::Forget => {
                self.engine.forget(id);
                None
            }
            Action::Look => {
                let looked = match self.world.things.get(id) {
                    Some(thing) => Looked::Found(Box::new(World::live(id, thing))),
                    None => Looked::Absent,
                };
                self.engine.looked(id, looked);
                None
            }
            Action::Compare(want, form) | Action::Inspect(want, form) => {
                self.compare(id, &want, form);
                None
            }
            Action::Resolve => {
                self.resolve();
                None
            }
            action @ (Action::Apply(_) | Action::Delete(..)) => {
                self.engine.dispatched(id, &action, self.now);
                let outcome = self.world.perform(id, &action);
                self.engine.outcome(id, &action, outcome, self.now);
                Some(action)
            }
        }
    }

    fn compare(&mut self, id: &ObjectId, want: &Shared, form: Form) {
        let shape = self.engine.shown(id).and_then(|live| live.ours.clone());
        // The verdict is a function of the view: the entry that is not the newest of ours has lost a path.
        let thing = self.world.things.get(id);
        let same =
            thing.is_some_and(|t| !t.drifted && shape.as_deref() == World::live(id, t).ours.as_deref());
        let lost = if is_workload(id) { Lost::Template } else { Lost::InPlace };
        let cover = if same { Cover::Whole } else { Cover::Lost(lost) };
        let (content, overlay) = (form.hash(want), form.overlay);
        self.engine.verified(id, Verified { content, overlay, started: form.started, shape, cover });
    }

    pub(super) fn resolve(&mut self) {
        for (revision, wanted) in self.engine.unresolved() {
            for (id, hash) in wanted {
                let release = Release { hash, revision: revision.clone() };
                self.engine.resolved(&id, &release, self.history.get(&hash).cloned());
            }
        }
    }

    /// Goes on, all events delivered at once and rollouts ending as they begin, until nothing is left.
    pub(super) fn settle(&mut self) {
        for _ in 0..400 {
            self.deliver(usize::MAX);
            self.finish_rollouts();
            self.deliver(usize::MAX);
            self.carry_out();
            self.engine.advance(self.now);
            self.keep_book();
            self.engine.settle();
            let dirty: BTreeSet<ObjectId> = self.engine.take_dirty().into_iter().collect();
            if dirty.is_empty() && self.world.events.is_empty() {
                return;
            }
            for id in dirty {
                self.step(&id);
            }
        }
        panic!("it never comes to rest: {:#?}", self.world.log);
    }

    /// Goes on by one thing: an event, the end of a rollout, a record, or a decision.
    pub(super) fn turn(&mut self) {
        if !self.world.events.is_empty() {
            return self.deliver(1);
        }
        self.carry_out();
        self.engine.advance(self.now);
        let (book, rejections) = (self.world.book.clone(), self.world.rejections.clone());
        let acknowledged = self.world.acknowledged.clone();
        self.keep_book();
        if (&book, &rejections, &acknowledged)
            != (&self.world.book, &self.world.rejections, &self.world.acknowledged)
        {
            return;
        }
        self.engine.settle();
        let mut dirty = self.engine.take_dirty();
        dirty.sort();
        dirty.dedup();
        match dirty.split_first() {
            Some((first, rest)) => {
                for id in rest {
                    self.engine.mark(id);
                }
                self.step(&first.clone());
            }
            None => self.finish_rollouts(),
        }
    }

    pub(super) fn finish_rollouts(&mut self) {
        let rolling: Vec<ObjectId> = self
            .world
            .things
            .iter()
            .filter(|(_, t)| t.phase != RollPhase::Settled)
            .filter(|(_, t)| t.failed.is_none() || t.failed != t.runs())
            .map(|(id, _)| id.clone())
            .collect();
        for id in rolling {
            let rv = self.world.tick();
            if let Some(thing) = self.world.things.get_mut(&id) {
                let content = thing.release.as_ref().map(|release| release.hash);
                let bad =
                    [content, thing.runs()].into_iter().flatten().any(|it| self.world.bad.contains(&it));
                (thing.failed, thing.rv) = (thing.runs().filter(|_| bad), rv);
                if thing.failed.is_none() {
                    thing.phase = RollPhase::Settled;
                }
            }
            self.world.announce(&id);
        }
    }

    pub(super) fn pass_time(&mut self, time: Duration) {
        self.now += time;
    }
}
