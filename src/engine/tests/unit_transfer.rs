//! A workload that moves to another source in the middle of its rollout is still judged. The record
//! of its unit and its claim go with it.

use std::time::{Duration, Instant};

use super::safety::engine;
use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, reading, workload};
use crate::change::{Impact, ImpactKind};
use crate::engine::*;
use crate::health::{Health, HealthStatus};
use crate::object::{ObjectId, Revision};

const OTHER: &str = "applyset-other-v1";
const REPOSITORY: &str = "host/shop HEAD";

/// A process with its sources, and the time.
struct TestProcess {
    engine: Engine,
    now: Instant,
}

impl TestProcess {
    fn serving(sets: &[&str]) -> Self {
        let kinds = [workload("web"), config("env")].map(|id| id.group_kind().clone());
        let (mut engine, now) = (engine(sets, &kinds), Instant::now());
        engine.set_holder(&sets.concat());
        engine.set_clock(now, jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(2));
        let begun = Some(jiff::Timestamp::UNIX_EPOCH);
        engine.set_ledger(RolloutLedger { begun, ..RolloutLedger::default() });
        for source in engine.source_ids() {
            engine.set_repository(source, RepositoryIdentity::Repository(REPOSITORY.into()));
        }
        Self { engine, now }
    }

    /// Reads a revision: the content of each object, or none where it is removed.
    fn read(&mut self, source: SourceId, revision: &str, contents: &[(&ObjectId, Option<u32>)]) {
        let file = |(id, content): &(&ObjectId, Option<u32>)| {
            let name = format!("{}/{}", source, id.name());
            (name.clone(), content.map(|content| desired(id, content, &name)))
        };
        let files: Vec<(String, Option<SharedDesiredObject>)> = contents.iter().map(file).collect();
        let files: Vec<(&str, Option<SharedDesiredObject>)> =
            files.iter().map(|(name, content)| (name.as_str(), content.clone())).collect();
        self.engine.set_reading(source, reading(revision, &files));
    }

    /// Decides until something is written or waited for. The ledger is written meanwhile.
    fn decide(&mut self, id: &ObjectId) -> Decision {
        for _ in 0..10 {
            self.engine.advance(self.now);
            let decision = self.engine.decide(id, self.now);
            match &decision.action {
                Action::DryRun(apply) => self.answer_dry_run(id, &apply.clone()),
                Action::CompareCached(content, variant) => self.answer_comparison(id, content, *variant),
                _ if decision.reason == Some(Reason::Claiming) => {
                    let Some(next) = self.engine.next_ledger() else { return decision };
                    self.engine.note_ledger_write(&next);
                    self.engine.set_ledger(next);
                }
                _ => return decision,
            }
        }
        panic!("{id} is never decided on");
    }

    /// Says that the cluster shows a content as it is.
    fn answer_comparison(&mut self, id: &ObjectId, content: &SharedDesiredObject, variant: ApplyVariant) {
        let live = self.engine.live_object(id).unwrap();
        let verified = VerifiedOwnership {
            content: variant.hash(content),
            overlay: variant.overlay,
            config_stamp: variant.config_stamp.map(Box::new),
            managed_fields: live.our_fields.clone(),
            value_digest: live.value_digest,
            cover: FieldOwnership::Complete,
        };
        self.engine.record_coverage(id, verified);
    }

    fn answer_dry_run(&mut self, id: &ObjectId, apply: &ApplyRequest) {
        let live = self.engine.live_object(id).unwrap().clone();
        let same = live.shown_release().is_some_and(|release| release.hash == apply.desired.hash);
        let kind = if same { ImpactKind::InPlace } else { ImpactKind::Restart };
        let impact = Impact { kind, pods: if same { 0 } else { 3 } };
        let answer = DryRunImpact {
            content: apply.desired.hash,
            uid: live.uid.clone(),
            generation: live.generation,
            impact,
        };
        let action = Action::DryRun(apply.clone());
        self.engine.record_result(id, &action, ActionResult::DryRun(answer), self.now);
    }

    /// Writes what is decided, which the cluster shows then.
    fn write(&mut self, id: &ObjectId, shown: LiveObject) -> ApplyRequest {
        let decision = self.decide(id);
        let Action::Apply(apply) = &decision.action else { panic!("{decision:?}") };
        self.engine.note_dispatch(id, &decision.action);
        let answer = ActionResult::Applied(WriteResult { live: shown.clone() });
        self.engine.record_result(id, &decision.action, answer, self.now);
        self.engine.observe_object(id, shown);
        apply.clone()
    }

    /// Decides on a takeover, for which the ledger is read once more, and then the inventories of
    /// the others.
    fn decide_after_read(&mut self, id: &ObjectId, peers: Vec<PeerSource>) -> Decision {
        assert_eq!(self.decide(id).reason, Some(Reason::Claiming));
        self.engine.note_ledger_call();
        self.engine.set_ledger(self.ledger().clone());
        self.decide_after_peers(id, peers)
    }

    fn decide_after_peers(&mut self, id: &ObjectId, peers: Vec<PeerSource>) -> Decision {
        assert_eq!(self.decide(id).reason, Some(Reason::ReadingPeers));
        self.engine.set_peers(peers, self.now);
        self.decide(id)
    }

    fn ledger(&self) -> &RolloutLedger {
        self.engine.known_ledger().unwrap()
    }

    /// Returns the inventory of an object's claim, and those of the units that it is in.
    fn recorded(&self, id: &ObjectId) -> (Option<&str>, Vec<&str>) {
        let ledger = self.ledger();
        let units = ledger.units.iter().filter(|unit| unit.members.contains_key(id));
        let claim = ledger.claims.get(id).map(|claim| &*claim.inventory_id);
        (claim, units.map(|unit| &*unit.inventory_id).collect())
    }

    /// Lets the rollout of a workload fail. Returns the rejection that a source's inventory is to
    /// record, and records it.
    fn fail(&mut self, source: SourceId, id: &ObjectId) -> Vec<Rejection> {
        let mut live = self.engine.live_object(id).unwrap().clone();
        (live.rv, live.health) =
            (ResourceVersion(live.rv.0 + 1), Health::new(HealthStatus::Failed, "it crashes"));
        self.engine.observe_object(id, live);
        self.engine.advance(self.now);
        for id in self.engine.take_failed().into_keys() {
            self.engine.propose_rollout_rejection(&id, &[]);
        }
        let rejections = self.engine.next_rejections(source).unwrap_or_default();
        let inventory = self.engine.source(source).inventory.clone().unwrap_or_default();
        self.engine.set_inventory(source, Inventory { rejections: rejections.clone(), ..inventory });
        rejections
    }
}

/// Returns an object with a content of a revision, in an inventory.
fn live(id: &ObjectId, set: &str, content: u32, revision: &str, rv: u64, phase: WorkloadPhase) -> LiveObject {
    let thing =
        WorldObject { uid: 1, phase, ..WorldObject::settled(desired(id, content, "").hash, revision, rv) };
    LiveObject { owner: ObjectOwner::Ours(set.into()), ..World::live(id, &thing) }
}

fn good(id: &ObjectId, content: u32, revision: &str) -> RollbackTarget {
    RollbackTarget::Content(ContentRef {
        hash: desired(id, content, "").hash,
        revision: Revision::new(revision),
    })
}

/// Returns the first content of an object, as the first source released it.
fn good_of_first(id: &ObjectId) -> RollbackTarget {
    let content = good(id, 1, "c1").content_ref().unwrap().clone();
    RollbackTarget::FormerContent { content, inventory_id: SET.into() }
}

/// Returns a process of these sources in which the first one rolls out the second content of a
/// workload.
fn rolling(sets: &[&str]) -> (TestProcess, ObjectId) {
    let (mut process, web) = (TestProcess::serving(sets), workload("web"));
    process.read(FIRST, "c1", &[(&web, Some(1))]);
    process.engine.observe_object(&web, live(&web, SET, 1, "c1", 1, WorkloadPhase::Settled));
    process.read(FIRST, "c2", &[(&web, Some(2))]);
    for source in process.engine.source_ids().skip(1) {
        process.read(source, "c2", &[]);
    }
    let written = process.write(&web, live(&web, SET, 2, "c2", 2, WorkloadPhase::Replacing));
    assert_eq!((written.purpose, written.restarts), (ApplyPurpose::Change, RestartRisk::Possible));
    assert_eq!(process.recorded(&web), (Some(SET), vec![SET]));
    (process, web)
}

/// Lets the rollout fail, and checks that the source that has it now goes back to the first
/// content.
fn check_rollback(process: &mut TestProcess, source: SourceId, id: &ObjectId) {
    let rejections = process.fail(source, id);
    let [rejection] = &rejections[..] else { panic!("{rejections:?}") };
    assert_eq!(rejection.action, RejectionAction::RollBack);
    assert_eq!(rejection.unit.members[id].rollback_target, good_of_first(id));
    let release = ContentRef { hash: desired(id, 1, "").hash, revision: Revision::new("c1") };
    assert_eq!(process.engine.unread_contents().into_keys().next(), Some(release.revision.clone()));
    assert_eq!(process.engine.former_inventory_of(id).as_deref(), Some(SET));
    // The same content has another hash in this source.
    let content = desired(id, 10, "");
    process.engine.record_older_content(id, &release, Some(content.clone()));
    process.engine.process_changes();
    let decision = process.decide(id);
    let Action::Apply(apply) = &decision.action else { panic!("{decision:?}") };
    assert_eq!((apply.source, apply.desired.hash), (source, content.hash));
    assert_eq!(apply.revision, release.revision);
}

#[test]
fn a_rollout_that_moves_to_another_source_of_the_process_goes_back_when_it_fails() {
    let (mut process, web) = rolling(&[SET, OTHER]);
    process.read(FIRST, "c3", &[(&web, None)]);
    process.read(SECOND, "c3", &[(&web, Some(2))]);
    let written = process.write(&web, live(&web, OTHER, 2, "c3", 3, WorkloadPhase::Replacing));
    assert_eq!((written.purpose, written.source), (ApplyPurpose::Transfer, SECOND));
    assert_eq!(process.recorded(&web), (Some(OTHER), vec![SET, OTHER]));
    let kept = process.engine.next_ledger().unwrap_or_else(|| process.ledger().clone());
    assert_eq!(&*kept.claims[&web].inventory_id, OTHER, "nothing takes it back");
    check_rollback(&mut process, SECOND, &web);
}

#[test]
fn a_content_that_the_repository_of_the_new_source_never_had_is_not_called_lost() {
    let (mut process, web) = rolling(&[SET, OTHER]);
    process.read(FIRST, "c3", &[(&web, None)]);
    process.read(SECOND, "d1", &[(&web, Some(2))]);
    process.write(&web, live(&web, OTHER, 2, "d1", 3, WorkloadPhase::Replacing));
    process.fail(SECOND, &web);
    let release = ContentRef { hash: desired(&web, 1, "").hash, revision: Revision::new("c1") };
    process.engine.record_older_content(&web, &release, None);
    process.engine.process_changes();
    process.decide(&web);
    let rejections = process.engine.next_rejections(SECOND).unwrap_or_default();
    let [rejection] = &rejections[..] else { panic!("{rejections:?}") };
    assert_eq!(rejection.action, RejectionAction::Quarantine);
    let words = format!("as revision c1 of {web} of another source is not in the repository of this one");
    assert!(rejection.cause.ends_with(&words), "{}", rejection.cause);
}

#[test]
fn a_rollout_that_had_failed_unjudged_when_it_moved_goes_back_too() {
    let (mut process, web) = rolling(&[SET, OTHER]);
    process.read(FIRST, "c3", &[(&web, None)]);
    let mut failed = live(&web, SET, 2, "c2", 3, WorkloadPhase::Replacing);
    failed.health = Health::new(HealthStatus::Failed, "it crashes");
    process.engine.observe_object(&web, failed);
    process.engine.advance(process.now);
    for id in process.engine.take_failed().into_keys() {
        process.engine.propose_rollout_rejection(&id, &[]);
    }
    process.read(SECOND, "c3", &[(&web, Some(2))]);
    let written = process.write(&web, live(&web, OTHER, 2, "c3", 4, WorkloadPhase::Replacing));
    assert_eq!((written.purpose, written.source), (ApplyPurpose::Transfer, SECOND));
    // It gave its slot back when it failed.
    assert_eq!(process.recorded(&web), (None, vec![SET, OTHER]));
    process.engine.advance(process.now);
    process.now += Duration::from_hours(1);
    process.engine.advance(process.now);
    check_rollback(&mut process, SECOND, &web);
}

/// Returns what a source reads that wants these with their second content.
fn wants<'a>(ids: &[&'a ObjectId]) -> Vec<(&'a ObjectId, Option<u32>)> {
    ids.iter().map(|id| (*id, Some(2))).collect()
}

/// Returns the statement of the source that gives these up.
fn giving_up(ids: &[&ObjectId]) -> Vec<PeerSource> {
    let progress =
        SourceProgress::Revision { repository: REPOSITORY.into(), read: Some(Revision::new("c3")) };
    let statement = SourceStatement {
        progress,
        released: ids.iter().map(|id| object_hash(id)).collect(),
        ..SourceStatement::default()
    };
    let kept = KeptObjects::default();
    vec![PeerSource {
        name: "first".into(),
        inventory_id: SET.into(),
        statement: Ok(statement),
        kept,
        rejections: Vec::new(),
    }]
}

/// Returns a process that is about to take a workload over as a lookup shows it.
fn taking_over(id: &ObjectId, shown: LiveObject) -> TestProcess {
    let mut process = TestProcess::serving(&[OTHER]);
    process.engine.require_peer_consent();
    process.read(FIRST, "c3", &[(id, Some(2))]);
    assert_eq!(process.decide(id).action, Action::Lookup);
    process.engine.record_lookup(id, DirectView::Found(Box::new(shown)));
    process.engine.set_peers(giving_up(&[id]), process.now);
    process
}

#[test]
fn a_rollout_that_moves_to_a_source_of_another_process_goes_back_when_it_fails() {
    let (mut former, web) = rolling(&[SET]);
    former.read(FIRST, "c3", &[(&web, None)]);
    let mut process = taking_over(&web, live(&web, SET, 2, "c2", 2, WorkloadPhase::Replacing));
    // The ledger that it knows is older than the unit.
    assert_eq!(process.decide(&web).reason, Some(Reason::Claiming));
    assert!(process.engine.is_ledger_read_needed());
    process.engine.note_ledger_call();
    process.engine.set_ledger(former.ledger().clone());
    assert!(!process.engine.is_ledger_read_needed());
    let decision = process.decide_after_peers(&web, giving_up(&[&web]));
    assert!(matches!(&decision.action, Action::Apply(apply) if apply.purpose == ApplyPurpose::Transfer));
    assert_eq!(process.recorded(&web), (Some(OTHER), vec![SET, OTHER]));
    // The former source leaves the claim where it is, before and after the takeover.
    former.engine.set_ledger(process.ledger().clone());
    assert_eq!(former.engine.next_ledger().map(|next| next.claims), None);
    let shown = live(&web, OTHER, 2, "c3", 3, WorkloadPhase::Replacing);
    process.write(&web, shown);
    former.engine.observe_absence(&web);
    let ended = former.engine.next_ledger().unwrap();
    assert_eq!(&*ended.claims[&web].inventory_id, OTHER);
    assert_eq!(ended.units.iter().map(|unit| &*unit.inventory_id).collect::<Vec<_>>(), [OTHER]);
    process.engine.set_ledger(ended);
    check_rollback(&mut process, FIRST, &web);
}

#[test]
fn a_workload_at_rest_is_taken_over_after_one_read_of_the_ledger_and_of_the_others() {
    let web = workload("web");
    let mut process = taking_over(&web, live(&web, SET, 2, "c2", 2, WorkloadPhase::Settled));
    let decision = process.decide_after_read(&web, giving_up(&[&web]));
    assert!(matches!(&decision.action, Action::Apply(apply) if apply.purpose == ApplyPurpose::Transfer));
    assert_eq!(process.recorded(&web), (None, vec![]));
}

// Only a lookup shows it, and its former source may change it after that.
#[test]
fn a_workload_that_was_changed_before_its_dry_run_is_looked_up_once_more_and_not_tried_for_ever() {
    let web = workload("web");
    let shown = live(&web, SET, 2, "c2", 2, WorkloadPhase::Settled);
    let mut process = taking_over(&web, shown.clone());
    process.read(FIRST, "c4", &[(&web, Some(3))]);
    process.engine.advance(process.now);
    let decision = process.engine.decide(&web, process.now);
    let Action::DryRun(apply) = &decision.action else { panic!("{decision:?}") };
    let answer = DryRunImpact {
        content: apply.desired.hash,
        uid: shown.uid.clone(),
        generation: shown.generation + 1,
        impact: Impact { kind: ImpactKind::Restart, pods: 3 },
    };
    process.engine.record_result(&web, &decision.action, ActionResult::DryRun(answer), process.now);
    assert_eq!(process.engine.decide(&web, process.now).action, Action::Lookup);
    let changed = LiveObject { generation: shown.generation + 1, rv: ResourceVersion(3), ..shown };
    process.engine.record_lookup(&web, DirectView::Found(Box::new(changed)));
    let next = process.engine.decide(&web, process.now);
    assert!(!matches!(next.action, Action::Lookup | Action::DryRun(_)), "{next:?}");
}

/// Returns the unit of the first source in which the second contents of these are released.
fn unit_of(ids: &[&ObjectId]) -> ReleaseUnit {
    let member = |id: &ObjectId| UnitMember {
        content: Some(desired(id, 2, "").hash),
        rollback_target: good(id, 1, "c1"),
        restarted: None,
    };
    ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("c2"),
        members: ids.iter().map(|id| ((*id).clone(), member(id))).collect(),
    }
}

/// Returns a process of two sources, of which the first one has both in the middle of a rollout.
fn both_rolling(web: &ObjectId, env: &ObjectId) -> TestProcess {
    let mut process = TestProcess::serving(&[SET, OTHER]);
    let ledger = RolloutLedger { units: vec![unit_of(&[web, env])], ..process.ledger().clone() };
    process.engine.set_ledger(ledger);
    for (id, rv) in [(web, 1), (env, 2)] {
        process.engine.observe_object(id, live(id, SET, 2, "c2", rv, WorkloadPhase::Replacing));
    }
    process
}

#[test]
fn a_rollout_of_which_something_stays_behind_does_not_go_back_without_that() {
    let (web, env) = (workload("web"), config("env"));
    let check = |moves: &[&ObjectId], expected: RollbackTarget| {
        let mut process = both_rolling(&web, &env);
        let (stay, go): (Vec<_>, Vec<_>) = [&web, &env].into_iter().partition(|id| !moves.contains(id));
        process.read(FIRST, "c3", &wants(&stay));
        process.read(SECOND, "c3", &wants(&go));
        let decision = process.decide(&web);
        assert!(matches!(&decision.action, Action::Apply(apply) if apply.source == SECOND), "{decision:?}");
        let unit = process.ledger().unit_of(OTHER, &web).unwrap();
        assert_eq!(unit.members.len(), moves.len());
        assert_eq!(unit.members[&web].rollback_target, expected);
    };
    check(&[&web, &env], good_of_first(&web));
    check(&[&web], RollbackTarget::Unknown);
}

/// Returns a workload whose pods wait at a step, as far as the controller is concerned.
fn at_step(id: &ObjectId, rv: u64) -> LiveObject {
    let overlay = RolloutOverlayState::Overlaid(RolloutOverlay::Partition { from: 2, step: 1 });
    LiveObject { overlay, ..live(id, SET, 2, "c2", rv, WorkloadPhase::Settled) }
}

// Without its manifest nobody here knows the steps: pods that wait are no end of a rollout.
#[test]
fn a_step_whose_workload_is_dropped_is_neither_done_nor_failed_until_another_source_has_it() {
    let web = workload("web");
    let mut former = TestProcess::serving(&[SET]);
    let unit = unit_of(&[&web]);
    former.engine.observe_object(&web, at_step(&web, 3));
    former.read(FIRST, "c2", &[(&web, Some(2))]);
    former.engine.set_inventory(FIRST, Inventory::default());
    let ledger = RolloutLedger { units: vec![unit], ..former.ledger().clone() };
    former.engine.set_ledger(ledger);
    former.read(FIRST, "c3", &[(&web, None)]);
    for _ in 0..3 {
        former.engine.process_changes();
        former.engine.advance(former.now);
        former.now += Duration::from_hours(1);
    }
    let units = |process: &TestProcess| {
        let next = process.engine.next_ledger().unwrap_or_else(|| process.ledger().clone());
        (next.units.len(), next.history.len())
    };
    assert!(former.engine.take_failed().is_empty());
    assert_eq!(units(&former), (1, 0));
    former.engine.observe_absence(&web);
    former.engine.advance(former.now);
    assert_eq!(units(&former), (0, 0), "nobody has judged it here");
}

/// Looks a workload up that no record says anything of, and that has another content here.
#[test]
fn a_content_of_another_source_is_good_only_where_its_rollout_has_ended() {
    let check = |change: &dyn Fn(&mut LiveObject), expected: bool| {
        let web = workload("web");
        let mut shown = live(&web, SET, 2, "c2", 2, WorkloadPhase::Settled);
        change(&mut shown);
        let mut process = taking_over(&web, shown.clone());
        process.read(FIRST, "c4", &[(&web, Some(3))]);
        let decision = process.decide_after_read(&web, giving_up(&[&web]));
        assert!(matches!(decision.action, Action::Apply(_)), "{decision:?}");
        let target = process.ledger().unit_of(OTHER, &web).unwrap().members[&web].rollback_target.clone();
        let content = good(&web, 2, "c2").content_ref().unwrap().clone();
        let good = RollbackTarget::FormerContent { content, inventory_id: SET.into() };
        assert_eq!(target, if expected { good } else { RollbackTarget::Unknown }, "{shown:?}");
    };
    let phase = |phase: WorkloadPhase| {
        move |live: &mut LiveObject| live.replica_status.as_mut().unwrap().phase = phase
    };
    check(&|_| (), true);
    check(&phase(WorkloadPhase::Recovering), true);
    check(&phase(WorkloadPhase::Replacing), false);
    check(&|live| live.overlay = at_step(&workload("web"), 2).overlay, false);
}

// Its own inventory alone says what was good before it.
#[test]
fn a_content_that_failed_in_another_process_and_was_left_moves_with_its_last_good_one() {
    let web = workload("web");
    let mut process = taking_over(&web, live(&web, SET, 2, "c2", 2, WorkloadPhase::Replacing));
    let unit = unit_of(&[&web]);
    let failed = Rejection { unit, action: RejectionAction::Quarantine, cause: "it crashes".into() };
    let peers =
        giving_up(&[&web]).into_iter().map(|peer| PeerSource { rejections: vec![failed.clone()], ..peer });
    let decision = process.decide_after_read(&web, peers.collect());
    assert!(matches!(decision.action, Action::Apply(_)), "{decision:?}");
    let unit = process.ledger().unit_of(OTHER, &web).unwrap();
    assert_eq!(unit.members[&web].rollback_target, good_of_first(&web));
}

#[test]
fn a_rollout_that_is_changed_as_it_moves_does_not_go_back_without_what_stays_behind() {
    let (web, env) = (workload("web"), config("env"));
    let check = |moves: &[&ObjectId], expected: RollbackTarget| {
        let mut process = both_rolling(&web, &env);
        process.read(FIRST, "c2", &wants(&[&web, &env]));
        let (stay, go): (Vec<_>, Vec<_>) = [&web, &env].into_iter().partition(|id| !moves.contains(id));
        let left: Vec<_> = wants(&stay).into_iter().chain(go.iter().map(|id| (*id, None))).collect();
        process.read(FIRST, "c3", &left);
        let changed: Vec<_> = go.iter().map(|id| (*id, Some(3))).collect();
        process.read(SECOND, "c3", &changed);
        let decision = process.decide(&web);
        assert!(matches!(&decision.action, Action::Apply(apply) if apply.source == SECOND), "{decision:?}");
        let unit = process.ledger().unit_of(OTHER, &web).unwrap();
        assert_eq!(unit.members[&web].rollback_target, expected, "{moves:?}");
    };
    check(&[&web, &env], good_of_first(&web));
    check(&[&web], RollbackTarget::Unknown);
}

// The other source has had it since, and its content is the last good one.
#[test]
fn an_older_record_of_the_same_source_says_nothing_of_what_another_source_had_meanwhile() {
    let web = workload("web");
    let mut process = taking_over(&web, live(&web, SET, 2, "c2", 2, WorkloadPhase::Settled));
    let member = UnitMember {
        content: Some(desired(&web, 9, "").hash),
        rollback_target: good(&web, 8, "c0"),
        restarted: None,
    };
    let outdated = ReleaseUnit {
        inventory_id: OTHER.into(),
        revision: Revision::new("c0"),
        members: [(web.clone(), member)].into(),
    };
    let ledger = RolloutLedger { units: vec![outdated], ..process.ledger().clone() };
    process.engine.set_ledger(ledger);
    process.read(FIRST, "c4", &[(&web, Some(3))]);
    let decision = process.decide_after_read(&web, giving_up(&[&web]));
    assert!(matches!(decision.action, Action::Apply(_)), "{decision:?}");
    let unit = process.ledger().unit_of(OTHER, &web).unwrap();
    let content = good(&web, 2, "c2").content_ref().unwrap().clone();
    let expected = RollbackTarget::FormerContent { content, inventory_id: SET.into() };
    assert_eq!(unit.members[&web].rollback_target, expected);
}

/// Returns what a lookup shows of an object at rest that another source has.
fn at_rest(id: &ObjectId, rv: u64) -> DirectView {
    DirectView::Found(Box::new(live(id, SET, 2, "c2", rv, WorkloadPhase::Settled)))
}

/// Returns a process that has looked up the data of a workload before the workload itself. Both are
/// changed, and another source gives these up.
fn data_looked_up(web: &ObjectId, env: &ObjectId, given_up: &[&ObjectId]) -> TestProcess {
    let mut process = TestProcess::serving(&[OTHER]);
    process.engine.require_peer_consent();
    let mut uses = (*desired(web, 3, "web")).clone();
    uses.needs = [env.clone()].into();
    let files = [("web", Some(SharedDesiredObject::from(uses))), ("env", Some(desired(env, 3, "env")))];
    process.engine.set_reading(FIRST, reading("c3", &files));
    assert_eq!(process.decide(env).action, Action::Lookup);
    process.engine.record_lookup(env, at_rest(env, 1));
    process.engine.set_peers(giving_up(given_up), process.now);
    let decision = process.decide(env);
    assert_eq!(decision.reason, Some(Reason::Reading(web.clone())), "{decision:?}");
    process
}

#[test]
fn data_of_another_source_wait_for_a_workload_beside_them_that_was_not_looked_up() {
    let (web, env) = (workload("web"), config("env"));
    let mut process = data_looked_up(&web, &env, &[&web, &env]);
    process.engine.record_lookup(&web, at_rest(&web, 2));
    let decision = process.decide(&env);
    assert_eq!(decision.reason, Some(Reason::UnitWorkload(web.clone())), "{decision:?}");
    for id in [&web, &env] {
        let shown = good(id, 2, "c2").content_ref().unwrap().clone();
        process.engine.record_older_content(id, &shown, Some(desired(id, 2, "")));
    }
    process.decide(&web);
    process.engine.note_ledger_call();
    process.engine.set_ledger(process.ledger().clone());
    process.decide(&web);
    process.engine.set_peers(giving_up(&[&web, &env]), process.now);
    process.decide(&env);
    process.decide(&web);
    let unit = process.ledger().unit_of(OTHER, &env).unwrap();
    assert_eq!(unit.members.keys().collect::<Vec<_>>(), [&env, &web]);
}

#[test]
fn data_of_another_source_go_on_where_a_workload_beside_them_is_not_there() {
    let (web, env) = (workload("web"), config("env"));
    let mut process = data_looked_up(&web, &env, &[&env]);
    assert_eq!(process.decide(&web).action, Action::Lookup);
    process.engine.record_lookup(&web, DirectView::Absent);
    let decision = process.decide(&env);
    assert!(matches!(decision.action, Action::Apply(_)), "{decision:?}");
}
