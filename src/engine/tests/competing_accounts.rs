//! Sources of different accounts: what one of them may not write delays no other, and takes no name
//! from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, following, reading};
use crate::engine::decide::competing_accounts::COMPETITOR_RETRY_DELAY;
use crate::engine::*;
use crate::object::{GroupKind, Gvk, ObjectId};

const OTHER: &str = "applyset-other-v1";

/// Returns two sources of one process, each with the account that its objects are written as.
fn sources(accounts: [Option<&str>; 2]) -> Engine {
    let nowhere = || RepositoryIdentity::None;
    let mut engine = following(&[("one", SET, nowhere()), ("two", OTHER, nowhere())], AdoptPolicy::IfUnowned);
    for (source, account) in [FIRST, SECOND].into_iter().zip(accounts) {
        engine.sources[source].declared.account = account.map(Into::into);
    }
    engine
}

/// Returns content that a source wants, in a file with the source's name.
fn wanted(source: SourceId, id: &ObjectId, change: impl FnOnce(&mut DesiredObject)) -> SharedDesiredObject {
    let mut content = DesiredObject::clone(&desired(id, 1, if source == FIRST { "one" } else { "two" }));
    content.body.source = source;
    change(&mut content);
    Arc::new(content)
}

fn read(engine: &mut Engine, source: SourceId, contents: &[SharedDesiredObject]) {
    let files: Vec<_> =
        contents.iter().map(|desired| (&*desired.origin.file, Some(desired.clone()))).collect();
    engine.set_reading(source, reading("c1", &files));
}

/// Shows an object as a source, by its inventory, has put it there.
fn show(engine: &mut Engine, desired: &SharedDesiredObject, set: &str) {
    let live = World::live(&desired.id, &WorldObject::settled(desired.hash, "c1", 1));
    engine.observe_object(&desired.id, LiveObject { owner: ObjectOwner::Ours(set.into()), ..live });
}

/// Returns the source that an object is written for, and reports that it may not.
#[track_caller]
fn deny(engine: &mut Engine, id: &ObjectId, now: Instant) -> SourceId {
    let decision = engine.decide(id, now);
    let Action::Apply(apply) = &decision.action else { panic!("{decision:?}") };
    let why = WriteFailure::Refused("no".into(), RefusalRule::Rights, Some(Duration::from_mins(1)));
    engine.record_result(id, &decision.action, ActionResult::Failed(why), now);
    apply.source
}

fn needs(id: &ObjectId) -> impl FnOnce(&mut DesiredObject) + use<> {
    let id = id.clone();
    move |content| content.needs = [id].into()
}

#[test]
fn what_another_account_wants_and_does_not_have_holds_up_nothing() {
    #[track_caller]
    fn check(accounts: [Option<&str>; 2], owner: Option<&str>, expected: Option<&str>) {
        let (env, web) = (config("env"), config("web"));
        let mut engine = sources(accounts);
        let first = wanted(FIRST, &env, |content| content.hash = desired(&env, 2, "").hash);
        read(&mut engine, FIRST, &[first]);
        read(&mut engine, SECOND, &[wanted(SECOND, &web, needs(&env))]);
        if let Some(set) = owner {
            // It has an older content, which is to be changed before the pods that use it.
            show(&mut engine, &wanted(FIRST, &env, |_| ()), set);
        } else {
            engine.record_lookup(&env, DirectView::Absent);
        }
        engine.record_lookup(&web, DirectView::Absent);
        let decision = engine.decide(&web, Instant::now());
        let why = decision.reason.map(|reason| reason.to_string());
        let expected = expected.map(|why| format!("needs {env}, which {why}"));
        assert_eq!(why, expected, "{accounts:?} {owner:?}");
    }
    check([None, None], None, Some("is not there yet"));
    check([Some("a"), Some("a")], None, Some("is not there yet"));
    check([Some("a"), Some("b")], None, None);
    check([Some("a"), None], None, None);
    // It has the object, so that it may change it.
    check([Some("a"), Some("b")], Some(SET), Some("is not changed yet"));
    check([Some("a"), Some("b")], Some("applyset-unknown-v1"), None);
}

#[test]
fn an_object_of_another_account_that_may_not_change_it_any_more_holds_up_nothing() {
    let (env, web) = (config("env"), config("web"));
    let mut engine = sources([Some("a"), Some("b")]);
    let now = Instant::now();
    show(&mut engine, &wanted(FIRST, &env, |_| ()), SET);
    let newer = wanted(FIRST, &env, |content| content.hash = desired(&env, 2, "").hash);
    read(&mut engine, FIRST, &[newer]);
    read(&mut engine, SECOND, &[wanted(SECOND, &web, needs(&env))]);
    engine.record_lookup(&web, DirectView::Absent);
    assert!(engine.decide(&web, now).reason.is_some());
    assert_eq!(deny(&mut engine, &env, now), FIRST);
    assert_eq!(engine.decide(&web, now).reason, None);
}

#[test]
fn a_dependency_that_a_source_asks_for_itself_is_awaited_whoever_wants_it() {
    let (env, web) = (config("env"), config("web"));
    let mut engine = sources([Some("a"), Some("b")]);
    read(&mut engine, FIRST, &[wanted(FIRST, &env, |_| ())]);
    let web_after = wanted(SECOND, &web, |content| content.depends_on = [env.clone()].into());
    read(&mut engine, SECOND, &[web_after]);
    for id in [&env, &web] {
        engine.record_lookup(id, DirectView::Absent);
    }
    let why = engine.decide(&web, Instant::now()).reason.unwrap().to_string();
    assert_eq!(why, format!("needs {env}, which is not there yet"));
}

#[test]
fn a_definition_that_another_account_names_and_does_not_have_holds_up_no_object_of_its_kind() {
    #[track_caller]
    fn check(accounts: [Option<&str>; 2], expected: bool) {
        let crd =
            ObjectId::new(&GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None, "x");
        let kind = GroupKind::new("example.org", "Widget");
        let widget = ObjectId::new(&kind, Some("shop"), "w");
        let mut engine = sources(accounts);
        let definition = wanted(FIRST, &crd, |content| content.defines = Some(Box::new(kind)));
        read(&mut engine, FIRST, &[definition]);
        let content = wanted(SECOND, &widget, |_| ());
        read(&mut engine, SECOND, std::slice::from_ref(&content));
        assert_eq!(engine.definition_blocker(SECOND, &content).is_some(), expected, "{accounts:?}");
    }
    check([None, None], true);
    check([Some("a"), None], false);
}

#[test]
fn a_cycle_is_made_by_sources_of_one_account_only() {
    #[track_caller]
    fn check(accounts: [Option<&str>; 2], expected: usize) {
        let (env, web) = (config("env"), config("web"));
        let mut engine = sources(accounts);
        let after = wanted(FIRST, &env, |content| content.depends_on = [web.clone()].into());
        read(&mut engine, FIRST, &[after]);
        read(&mut engine, SECOND, &[wanted(SECOND, &web, needs(&env))]);
        assert_eq!(engine.blockers.cycles.len(), expected, "{accounts:?}");
    }
    check([None, None], 2);
    check([Some("a"), Some("b")], 0);
}

/// Returns two sources that want one object that nobody has.
fn rivals(accounts: [Option<&str>; 2]) -> (Engine, ObjectId) {
    let id = config("a");
    let mut engine = sources(accounts);
    for source in [FIRST, SECOND] {
        read(&mut engine, source, &[wanted(source, &id, |_| ())]);
    }
    engine.record_lookup(&id, DirectView::Absent);
    (engine, id)
}

#[test]
fn of_several_accounts_the_first_that_may_write_an_object_has_it() {
    let (mut engine, id) = rivals([Some("a"), Some("b")]);
    let now = Instant::now();
    assert_eq!(deny(&mut engine, &id, now), FIRST);
    // Both ask for the same content, of which the other one's is not refused.
    assert_eq!(deny(&mut engine, &id, now), SECOND);
    let decision = engine.decide(&id, now);
    assert_eq!(decision.action, Action::Nothing);
    let why = decision.reason.unwrap().to_string();
    assert!(why.contains("2 sources want it: one:1 and two:1; no"), "{why}");
    assert!(decision.requeue_after.is_some());
    // Later each is tried again.
    assert_eq!(deny(&mut engine, &id, now + Duration::from_mins(2)), FIRST);
}

#[test]
fn a_competitor_whose_write_the_server_fails_on_does_not_keep_the_other_from_the_object() {
    let (mut engine, id) = rivals([Some("a"), Some("b")]);
    let now = Instant::now();
    let fail = |engine: &mut Engine, now: Instant| {
        let decision = engine.decide(&id, now);
        let Action::Apply(apply) = &decision.action else { panic!("{decision:?}") };
        let why = WriteFailure::Unknown("the server failed (status 500)".into(), Duration::ZERO);
        engine.record_result(&id, &decision.action, ActionResult::Failed(why), now);
        apply.source
    };
    assert_eq!(fail(&mut engine, now), FIRST);
    // The write may have been carried out: then the object is the first one's.
    assert_eq!(engine.decide(&id, now).action, Action::Lookup);
    engine.record_lookup(&id, DirectView::Absent);
    assert_eq!(fail(&mut engine, now), SECOND);
    engine.record_lookup(&id, DirectView::Absent);
    // Where the server fails on all of them, they go on in their order.
    let later = now + COMPETITOR_RETRY_DELAY;
    assert_eq!(fail(&mut engine, later), FIRST);
}

#[test]
fn of_several_accounts_one_that_is_refused_or_writes_nothing_does_not_keep_the_others_from_an_object() {
    let first_choice = |change: &dyn Fn(&mut Engine, &ObjectId)| {
        let (mut engine, id) = rivals([Some("a"), Some("b")]);
        change(&mut engine, &id);
        let decision = engine.decide(&id, Instant::now());
        let Action::Apply(apply) = decision.action else { panic!("{decision:?}") };
        apply.source
    };
    assert_eq!(first_choice(&|_, _| ()), FIRST);
    assert_eq!(
        first_choice(&|engine, _| engine.sources[FIRST].declared.writes = SourceWrites::Observed),
        SECOND
    );
    let paused = |engine: &mut Engine, _: &ObjectId| {
        let inventory = engine.sources[FIRST].inventory.clone().unwrap();
        let paused = PauseIntent::parse("1-a fair");
        assert!(paused.is_some());
        engine.set_inventory(FIRST, Inventory { paused, ..inventory });
    };
    assert_eq!(first_choice(&paused), SECOND);
    let refused = |engine: &mut Engine, id: &ObjectId| {
        let decision = engine.decide(id, Instant::now());
        let why = WriteFailure::Refused("invalid".into(), RefusalRule::Other, None);
        engine.record_result(id, &decision.action, ActionResult::Failed(why), Instant::now());
    };
    assert_eq!(first_choice(&refused), SECOND);
    // It was chosen, and has something else to wait for since.
    let waits = |engine: &mut Engine, id: &ObjectId| {
        engine.decide(id, Instant::now());
        let never = wanted(FIRST, id, |content| content.depends_on = [config("nobody")].into());
        read(engine, FIRST, &[never]);
    };
    assert_eq!(first_choice(&waits), SECOND);
}

#[test]
fn a_competitor_that_waits_for_something_else_does_not_keep_the_other_from_the_object() {
    let (mut engine, id) = rivals([Some("a"), Some("b")]);
    let never = wanted(FIRST, &id, |content| content.depends_on = [config("nobody")].into());
    read(&mut engine, FIRST, &[never]);
    let decision = engine.decide(&id, Instant::now());
    assert!(matches!(&decision.action, Action::Apply(apply) if apply.source == SECOND), "{decision:?}");
}

#[test]
fn of_one_account_none_makes_what_both_want() {
    let (mut engine, id) = rivals([Some("a"), Some("a")]);
    let decision = engine.decide(&id, Instant::now());
    assert_eq!((decision.action, decision.requeue_after), (Action::Nothing, None));
}

#[test]
fn the_wish_of_another_account_is_among_its_own_findings_alone() {
    let (mut engine, id) = rivals([Some("a"), Some("b")]);
    let desired = wanted(SECOND, &id, |_| ());
    show(&mut engine, &desired, OTHER);
    let now = Instant::now();
    let decision = engine.decide(&id, now);
    let Action::CompareCached(content, variant) = decision.action else { panic!("{decision:?}") };
    assert_eq!(content.body.source, SECOND);
    let managed_fields = engine.informer_object(&id).and_then(|live| live.our_fields.clone());
    let content = variant.hash(&content);
    let (overlay, config_stamp, value_digest, cover) = (None, None, None, FieldOwnership::Complete);
    let verified = VerifiedOwnership { content, overlay, config_stamp, managed_fields, value_digest, cover };
    engine.record_coverage(&id, verified);
    assert_eq!(engine.decide(&id, now).reason, None);
    let refused = |source| {
        let refused = engine.refused_manifests(source).into_iter();
        refused.map(|(id, manifest)| (id.clone(), manifest.reason.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(refused(FIRST), [(id.clone(), format!("{id} is not applied: source two has it"))]);
    assert_eq!(refused(SECOND), []);
}

#[test]
fn a_right_of_one_account_is_none_of_another() {
    let (a, b) = (config("a"), config("b"));
    let mut engine = sources([Some("a"), Some("b")]);
    let now = Instant::now();
    read(&mut engine, FIRST, &[wanted(FIRST, &a, |_| ())]);
    read(&mut engine, SECOND, &[wanted(SECOND, &b, |_| ())]);
    for id in [&a, &b] {
        engine.record_lookup(id, DirectView::Absent);
    }
    assert_eq!(deny(&mut engine, &a, now), FIRST);
    let decision = engine.decide(&b, now);
    let mut live = World::live(&b, &WorldObject::settled(desired(&b, 1, "b").hash, "c1", 2));
    live.owner = ObjectOwner::Ours(OTHER.into());
    let written = ActionResult::Applied(WriteResult { live });
    engine.record_result(&b, &decision.action, written, now);
    assert_eq!(engine.count_denied(), 1);
    assert!(matches!(engine.decide(&a, now).reason, Some(Reason::Refused(..))));
}

#[test]
fn a_competitor_whose_content_is_never_written_does_not_keep_the_other_from_the_object() {
    #[track_caller]
    fn check(name: &str, change: impl FnOnce(&mut DesiredObject)) {
        let (mut engine, id) = rivals([Some("a"), Some("b")]);
        read(&mut engine, FIRST, &[wanted(FIRST, &id, change)]);
        let targets = engine.entry(&id).map(|entry| entry.targets.clone()).unwrap_or_default();
        let is_usable = |(_, state): &(SourceId, DesiredState)| matches!(state, DesiredState::Object(_));
        assert!(targets.len() == 2 && targets.iter().all(is_usable), "{name}: {targets:?}");
        let decision = engine.decide(&id, Instant::now());
        let is_second = matches!(&decision.action, Action::Apply(apply) if apply.source == SECOND);
        assert!(is_second, "{name}: {decision:?}");
    }
    check("a version that is not served", |content| content.gvk = Gvk::new("", "v9", "ConfigMap"));
    check("not to be reconciled", |content| content.traits.reconcile = ReconcilePolicy::Disabled);
}

#[test]
fn a_namespace_that_another_account_names_and_does_not_have_holds_up_nothing_in_it() {
    #[track_caller]
    fn check(accounts: [Option<&str>; 2], expected: bool) {
        let namespace = ObjectId::new(&GroupKind::new("", "Namespace"), None, "shop");
        let web = config("web");
        let mut engine = sources(accounts);
        read(&mut engine, FIRST, &[wanted(FIRST, &namespace, |_| ())]);
        read(&mut engine, SECOND, &[wanted(SECOND, &web, |_| ())]);
        engine.record_lookup(&web, DirectView::Absent);
        let decision = engine.decide(&web, Instant::now());
        assert_eq!(decision.reason.is_some(), expected, "{accounts:?} {decision:?}");
    }
    check([Some("a"), Some("a")], true);
    check([Some("a"), Some("b")], false);
}

#[test]
fn a_definition_of_another_account_does_not_replace_an_own_one() {
    let definition = |name: &str| {
        let kind = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        ObjectId::new(&kind, None, name)
    };
    let kind = GroupKind::new("example.org", "Widget");
    let widget = wanted(SECOND, &ObjectId::new(&kind, Some("shop"), "w"), |_| ());
    let define = |source: SourceId, name: &str| {
        wanted(source, &definition(name), |content| content.defines = Some(Box::new(kind.clone())))
    };
    let mut engine = sources([Some("a"), Some("b")]);
    read(&mut engine, SECOND, &[define(SECOND, "widgets.example.org")]);
    let own = engine.definition_blocker(SECOND, &widget);
    assert!(own.is_some());
    let other = define(FIRST, "other.example.org");
    read(&mut engine, FIRST, std::slice::from_ref(&other));
    assert_eq!(engine.definition_blocker(SECOND, &widget), own, "beside the other");
    engine.set_reading(FIRST, reading("c2", &[(&*other.origin.file, None)]));
    assert_eq!(engine.definition_blocker(SECOND, &widget), own, "without the other");
}
