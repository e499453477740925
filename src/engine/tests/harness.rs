//! An engine over a world of a few objects, driven without a loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::world::{FIRST, SET, World, budget, naming};
use crate::change::{Impact, ImpactKind};
use crate::engine::driver::carry_out;
use crate::engine::*;
use crate::object::{ContentHash, GroupKind, Gvk, ObjectId, Revision};

/// Returns the key by which releases of tests are sealed.
pub(super) fn release_key() -> HashKey {
    HashKey::of(&[7; 32]).unwrap()
}

/// An engine with one source over a world, driven without a loop.
#[derive(Clone)]
pub(super) struct Harness {
    pub(super) engine: Engine,
    pub(super) world: World,
    pub(super) now: Instant,
    /// The time of day 1970.
    pub(super) epoch: Instant,
    /// The ledger in flight, as long as its write is not answered.
    pub(super) in_flight: Option<RolloutLedger>,
    /// Contents that older revisions can still give.
    pub(super) history: BTreeMap<ContentHash, SharedDesiredObject>,
    /// All revisions, each with what it says.
    pub(super) commits: Vec<(Revision, BTreeMap<Arc<str>, SharedDesiredObject>)>,
}

/// Carries decisions out in the world, and answers them at once.
struct WorldExecutor<'a> {
    harness: &'a mut Harness,
    /// The write that was sent.
    written: Option<Action>,
}

impl DecisionExecutor for WorldExecutor<'_> {
    const WRITE_MODE: WriteMode = WriteMode::Sent;

    fn engine_mut(&mut self) -> &mut Engine {
        &mut self.harness.engine
    }

    fn admit(&mut self, _: &ObjectId, _: &Decision, _: Instant) -> Admission {
        Admission::Admitted
    }

    fn ask(&mut self, id: ObjectId, question: ObjectQuestion) {
        match question {
            ObjectQuestion::Existence => {
                let view = match self.harness.world.things.get(&id) {
                    Some(thing) => DirectView::Found(Box::new(World::live(&id, thing))),
                    None => DirectView::Absent,
                };
                self.harness.handle(Input::LookedUp { id, view });
            }
            ObjectQuestion::CachedComparison(desired, variant)
            | ObjectQuestion::LiveComparison(desired, variant) => {
                self.harness.compare(&id, &desired, variant);
            }
            ObjectQuestion::OlderContent => self.harness.read_contents(),
        }
    }

    fn write(&mut self, id: ObjectId, write: ObjectWrite, _: Option<Reason>) {
        if let ObjectWrite::DryRun(apply) = &write {
            self.harness.foresee(&id, apply);
            return;
        }
        let action = Action::from(write);
        let result = self.harness.world.perform(&id, &action);
        self.harness.handle(Input::Answered { id, action: Box::new(action.clone()), result });
        self.written = Some(action);
    }

    fn rest(&mut self, _: ObjectId, _: Option<Reason>) {}
}

/// Returns a source that adopts what nobody owns, and prunes all.
pub(super) fn source(name: &str, set: &str) -> SourceDeclaration {
    let radius = BlastRadius { count: 100, percent: 100 };
    SourceDeclaration::new(name, set, AdoptPolicy::IfUnowned, PrunePolicy::On, radius)
}

impl Harness {
    pub(super) fn new(most: u32) -> Self {
        let mut harness = Self {
            engine: Engine::new(budget(most)),
            world: World::default(),
            now: Instant::now(),
            epoch: Instant::now(),
            in_flight: None,
            history: BTreeMap::new(),
            commits: Vec::new(),
        };
        // Long ago, so that nobody waits for claims that others may still write.
        harness.world.ledger.begun = Some(jiff::Timestamp::UNIX_EPOCH - Duration::from_hours(1));
        harness.engine = harness.fresh(most);
        harness
    }

    /// Returns a process that has just started: it knows what the cluster and the source show, and
    /// nothing else.
    pub(super) fn fresh(&self, most: u32) -> Engine {
        self.fresh_with(budget(most))
    }

    /// Does the same as [`Harness::fresh`], with any budget.
    pub(super) fn fresh_with(&self, budget: Budget) -> Engine {
        let mut engine = self.started(budget);
        engine.set_release_key(ReadState::Value(release_key()));
        engine
    }

    /// Does the same as [`Harness::fresh`], before the key of seals was read.
    pub(super) fn fresh_without_key(&self) -> Engine {
        self.started(budget(3))
    }

    fn started(&self, budget: Budget) -> Engine {
        self.begin(Engine::new(budget))
    }

    /// Tells a new engine what the cluster and the source show.
    pub(super) fn begin(&self, mut engine: Engine) -> Engine {
        engine.add_source(source("test", SET));
        let kinds = ["ConfigMap", "DaemonSet.apps", "Deployment.apps", "Secret"].map(GroupKind::parse);
        let rejections = self.world.rejections.clone();
        let inventory = Inventory {
            rejections,
            acknowledged: self.world.acknowledged.clone(),
            paused: self.world.paused.clone(),
            ..naming(kinds.clone())
        };
        let (orders, ledger) = (self.world.orders.clone(), self.world.ledger.clone());
        let wall = jiff::Timestamp::UNIX_EPOCH + self.now.duration_since(self.epoch);
        engine.handle(Input::Inventory { source: FIRST, inventory }, self.now);
        engine.handle(Input::Ordered { source: FIRST, orders }, self.now);
        engine.handle(Input::Clock(wall), self.now);
        for kind in &kinds {
            let gvk = Gvk::new(&kind.group, "v1", &kind.kind);
            engine.handle(Input::Discovered { gvk, availability: KindAvailability::Served }, self.now);
            engine.begin_list(kind);
        }
        engine.handle(Input::Ledger(ledger), self.now);
        for (id, thing) in self.world.things.iter().filter(|(_, thing)| thing.labelled && !thing.foreign) {
            engine.observe_object(id, World::live(id, thing));
        }
        for kind in &kinds {
            engine.end_list(kind);
        }
        engine
    }

    pub(super) fn handle(&mut self, input: Input) {
        self.engine.handle(input, self.now);
    }

    pub(super) fn read(&mut self, reading: SourceReading) {
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
        self.handle(Input::Read { source: FIRST, reading });
    }

    /// Returns the target of a rollback, as git has it.
    fn past(&self, undo: &UndoRequest) -> Result<OlderRevision, String> {
        let place = |name: &str| self.commits.iter().position(|(revision, _)| revision.as_str() == name);
        let before = || place(undo.from.as_str())?.checked_sub(1);
        let place = undo.to.as_ref().map_or_else(before, |to| place(to));
        let (revision, files) = &self.commits[place.ok_or("there is no such revision")?];
        let named = files.values().filter(|content| undo.objects.contains(&content.id));
        let contents = named.map(|content| (content.id.clone(), content.clone())).collect();
        Ok(OlderRevision { revision: revision.clone(), contents })
    }

    /// Carries out what people have ordered, as the loop does at the beginning of each turn.
    pub(super) fn carry_out(&mut self) {
        self.engine.carry_out_orders();
        for undo in self.engine.undo_requests().cloned().collect::<Vec<_>>() {
            self.answer_undo(undo);
        }
    }

    /// Answers the lookup of the target of an undo.
    pub(super) fn answer_undo(&mut self, undo: UndoRequest) {
        let past = self.past(&undo);
        self.handle(Input::UndoTarget { undo: Box::new(undo), past });
    }

    /// Writes an order, as `<token> <verb> [argument]`, into the orders object, which its watch
    /// reports.
    pub(super) fn give(&mut self, id: &ObjectId, words: &str) {
        let mut words = words.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (token, verb, argument) = (word(), word(), word());
        let verb = OrderVerb::parse(verb, argument);
        let order = Order { token: token.into(), verb, object: id.clone(), by: "".into() };
        self.world.orders.push(order);
        self.show_orders();
    }

    fn show_orders(&mut self) {
        self.handle(Input::Ordered { source: FIRST, orders: self.world.orders.clone() });
    }

    /// Takes orders that are spent out of their object; returns whether any were.
    pub(super) fn remove_orders(&mut self) -> bool {
        let spent = self.engine.finished_orders(FIRST);
        self.world.orders.retain(|order| !spent.contains(&order.token));
        if !spent.is_empty() {
            self.show_orders();
        }
        !spent.is_empty()
    }

    /// Delivers the oldest events.
    pub(super) fn deliver(&mut self, count: usize) {
        let count = count.min(self.world.events.len());
        for (id, thing) in self.world.events.drain(..count).collect::<Vec<_>>() {
            match thing {
                Some(thing) => self.engine.observe_object(&id, World::live(&id, &thing)),
                None => self.engine.observe_absence(&id),
            }
        }
    }

    /// Answers what a write would do, as the API server would.
    fn foresee(&mut self, id: &ObjectId, apply: &ApplyRequest) {
        self.world.dry_runs += 1;
        let result = match self.world.things.get(id) {
            None => ActionResult::Failed(WriteFailure::Conflict(Duration::ZERO)),
            Some(thing) => {
                let shown = thing.release.as_ref().and_then(|release| self.history.get(&release.hash));
                let same =
                    shown.is_some_and(|shown| shown.template == apply.desired.template) && !thing.drifted;
                let likely = if same { ImpactKind::InPlace } else { ImpactKind::Restart };
                let kind = self.world.impacts.get(&apply.desired.hash).copied().unwrap_or(likely);
                let impact = Impact { kind, pods: 3 };
                let uid = Uid(thing.uid.to_string().into());
                ActionResult::DryRun(DryRunImpact {
                    content: apply.desired.hash,
                    uid,
                    generation: thing.shape.cast_signed(),
                    impact,
                })
            }
        };
        let action = Box::new(Action::DryRun(apply.clone()));
        self.handle(Input::Answered { id: id.clone(), action, result });
    }

    /// Decides about one object; what is asked and what is to be claimed for that is claimed first.
    pub(super) fn decide(&mut self, id: &ObjectId) -> Decision {
        self.engine.advance(self.now);
        let mut decision = self.engine.decide(id, self.now);
        if let Action::DryRun(apply) = &decision.action {
            self.foresee(id, apply);
            decision = self.engine.decide(id, self.now);
        }
        if decision.reason != Some(Reason::Claiming) {
            return decision;
        }
        self.keep_ledger();
        self.engine.decide(id, self.now)
    }

    /// Writes the rollout ledger and the inventory, as the loop does at the end of each turn.
    pub(super) fn keep_ledger(&mut self) {
        self.deliver_failures();
        self.read_contents();
        self.keep_claims();
        self.sync_inventories();
    }

    /// Answers the questions about failures: no Event says more.
    pub(super) fn deliver_failures(&mut self) {
        for id in self.engine.take_failed().into_keys() {
            self.handle(Input::FailureEvents { id, events: Vec::new() });
        }
    }

    /// Writes the rollout ledger.
    pub(super) fn keep_claims(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        if let Some(ledger) = self.engine.next_ledger() {
            self.handle(Input::LedgerSent(ledger.clone()));
            self.world.ledger = ledger.clone();
            self.handle(Input::Ledger(ledger));
        }
    }

    /// Writes the inventory.
    pub(super) fn sync_inventories(&mut self) {
        for source in self.engine.source_ids() {
            let rejections = self.engine.next_rejections(source);
            let acknowledged = self.engine.next_acknowledged(source);
            if rejections.is_some() || acknowledged.is_some() {
                let mut inventory = self.engine.source(source).inventory.clone().unwrap_or_default();
                inventory.rejections = rejections.unwrap_or(inventory.rejections);
                inventory.acknowledged = acknowledged.unwrap_or(inventory.acknowledged);
                self.world.rejections.clone_from(&inventory.rejections);
                self.world.acknowledged.clone_from(&inventory.acknowledged);
                self.handle(Input::Inventory { source, inventory });
            }
        }
    }

    /// Decides about one object and does what is decided; returns whether it was a write.
    pub(super) fn step(&mut self, id: &ObjectId) -> Option<Action> {
        let decision = self.decide(id);
        self.act(id, decision)
    }

    /// Does what was decided about one object; returns whether it was a write.
    pub(super) fn act(&mut self, id: &ObjectId, decision: Decision) -> Option<Action> {
        let now = self.now;
        let mut executor = WorldExecutor { harness: self, written: None };
        carry_out(&mut executor, id.clone(), decision, now);
        executor.written
    }

    pub(super) fn compare(&mut self, id: &ObjectId, desired: &SharedDesiredObject, variant: ApplyVariant) {
        let shown = self.engine.live_object(id);
        let (managed_fields, value_digest) =
            (shown.and_then(|live| live.our_fields.clone()), shown.and_then(|live| live.value_digest));
        // The verdict is a function of the view: the entry that is not the newest of ours has lost
        // a path.
        let thing = self.world.things.get(id);
        let same = thing.is_some_and(|t| {
            !t.drifted && managed_fields.as_deref() == World::live(id, t).our_fields.as_deref()
        });
        let lost = if is_workload(id) { RepairImpact::Template } else { RepairImpact::InPlace };
        let cover = if same { FieldOwnership::Complete } else { FieldOwnership::Lost(lost) };
        let (content, overlay) = (variant.hash(desired), variant.overlay);
        let verified = VerifiedOwnership {
            content,
            overlay,
            config_stamp: variant.config_stamp.map(Box::new),
            managed_fields,
            value_digest,
            cover,
        };
        self.handle(Input::Compared { id: id.clone(), verified });
    }

    pub(super) fn read_contents(&mut self) {
        for (revision, wanted) in self.engine.unread_contents() {
            for (id, hash) in wanted {
                let release = ContentRef { hash, revision: revision.clone() };
                let content = self.history.get(&hash).cloned();
                self.handle(Input::OlderContent { id, release, content });
            }
        }
    }

    /// Goes on, all events delivered at once and rollouts ending as they begin, until nothing is
    /// left.
    pub(super) fn settle(&mut self) {
        for _ in 0..400 {
            self.deliver_all();
            self.carry_out();
            self.engine.advance(self.now);
            self.keep_ledger();
            self.remove_orders();
            self.engine.process_changes();
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
        let (ledger, rejections) = (self.world.ledger.clone(), self.world.rejections.clone());
        let acknowledged = self.world.acknowledged.clone();
        self.keep_ledger();
        if (&ledger, &rejections, &acknowledged)
            != (&self.world.ledger, &self.world.rejections, &self.world.acknowledged)
        {
            return;
        }
        if self.remove_orders() {
            return;
        }
        self.engine.process_changes();
        let mut dirty = self.engine.take_dirty();
        dirty.sort();
        dirty.dedup();
        match dirty.split_first() {
            Some((first, rest)) => {
                for id in rest {
                    self.handle(Input::Marked(id.clone()));
                }
                self.step(&first.clone());
            }
            None => self.finish_rollouts(),
        }
    }

    /// Delivers all events, and those of the ends of rollouts.
    pub(super) fn deliver_all(&mut self) {
        self.deliver(usize::MAX);
        self.finish_rollouts();
        self.deliver(usize::MAX);
    }

    /// Returns the objects to be decided about, once all is delivered and recorded.
    pub(super) fn next_marked(&mut self) -> Vec<ObjectId> {
        self.deliver_all();
        self.engine.advance(self.now);
        self.keep_ledger();
        self.engine.process_changes();
        self.engine.take_dirty()
    }

    pub(super) fn finish_rollouts(&mut self) {
        let rolling: Vec<ObjectId> = self
            .world
            .things
            .iter()
            .filter(|(_, t)| t.phase != WorkloadPhase::Settled)
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
                    thing.phase = WorkloadPhase::Settled;
                }
            }
            self.world.announce(&id);
        }
    }

    pub(super) fn pass_time(&mut self, time: Duration) {
        self.now += time;
    }
}
