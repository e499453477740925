//! The questions about sources: what of others matters to them, what of theirs nobody watches,
//! and who made their revisions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::harness::{Harness, release_key, source};
use super::restart;
use super::world::{
    FIRST, SECOND, SET, World, WorldObject, budget, config, desired, following, naming, reading, start_time,
    workload,
};
use crate::engine::rollout::ledger_authors::AuthoredRevision;
use crate::engine::*;
use crate::manifest::{KindScope, KindScopes};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId, Revision};

const OTHER: &str = "applyset-other-v1";
const REPOSITORY: &str = "host/shop HEAD";

fn maps() -> GroupKind {
    config("a").group_kind()
}

fn follows(repository: &str, read: &str) -> SourceProgress {
    SourceProgress::Revision { repository: repository.into(), read: Some(Revision::new(read)) }
}

/// Returns a source of another process that has read this far and requests these objects.
fn peer(progress: SourceProgress, requests: &[&ObjectId]) -> PeerSource {
    let takeover_requests = TakeoverRequests::Listed(requests.iter().map(|id| object_hash(id)).collect());
    PeerSource {
        name: "other".into(),
        inventory_id: OTHER.into(),
        statement: Ok(SourceStatement { progress, takeover_requests, ..SourceStatement::default() }),
        kept: KeptObjects::default(),
        rejections: Vec::new(),
    }
}

/// Returns a source that follows the repository and has read its first revision, beside another one
/// of the process.
fn two() -> Engine {
    let repository = || RepositoryIdentity::Repository(REPOSITORY.into());
    let both = [("own", SET, repository()), ("second", "applyset-second-v1", repository())];
    let mut engine = following(&both, AdoptPolicy::IfUnowned);
    engine.read(FIRST, reading("c1", &[("a", Some(desired(&config("a"), 1, "a")))]));
    engine
}

#[test]
fn a_source_that_has_elsewhere_to_read_may_come_to_want_an_object() {
    let id = config("a");
    let check = |peers: Vec<PeerSource>, expected: Option<&str>| {
        let mut engine = two();
        engine.handle_now(Input::Peers(peers));
        assert_eq!(engine.view().possible_competitor(FIRST, &id).map(|name| &**name), expected);
    };
    check(Vec::new(), None);
    check(vec![peer(follows(REPOSITORY, "c1"), &[])], None);
    check(vec![peer(follows("host/other HEAD", "c1"), &[])], Some("other"));
    check(vec![peer(SourceProgress::Unversioned, &[])], Some("other"));
    // It does want it, which keeps the object anyway.
    check(vec![peer(follows("host/other HEAD", "c1"), &[&id])], None);
}

/// Returns a source that follows the repository, has the object `a` and wants it and `b`. Its
/// process serves no daemon, and asks others before it deletes anything.
fn stating(prune: PrunePolicy) -> Engine {
    let (mut engine, now) = (Engine::new(budget(3)), start_time());
    let mut own = source("own", SET);
    own.prune = prune;
    engine.add_source(own);
    engine.require_peer_consent();
    engine.handle(Input::Clock(jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(2)), now);
    let repository = RepositoryIdentity::Repository(REPOSITORY.into());
    engine.handle(Input::Repository { source: FIRST, repository }, now);
    engine.handle(Input::Inventory { source: FIRST, inventory: naming([maps()]) }, now);
    let files = ["a", "b"].map(|name| (name, Some(desired(&config(name), 1, name))));
    engine.read(FIRST, reading("c1", &files));
    let thing = WorldObject::settled(desired(&config("a"), 1, "a").hash, "c1", 1);
    engine.observe_object(&config("a"), World::live(&config("a"), &thing));
    engine.handle(Input::Peers(vec![peer(SourceProgress::Unversioned, &[])]), now);
    engine
}

#[test]
fn a_statement_says_since_when_all_that_it_releases_is_released() {
    let recorded = |names: &[&str]| SourceStatement {
        released: names.iter().map(|name| object_hash(&config(name))).collect(),
        released_since: Some(5),
        ..SourceStatement::default()
    };
    let since = |engine: &Engine, recorded: Option<&SourceStatement>| {
        engine.view().statement(FIRST, recorded).and_then(|statement| statement.released_since)
    };
    let mut engine = stating(PrunePolicy::On);
    assert_eq!(since(&engine, Some(&recorded(&[]))), None, "nothing is released");
    engine.read(FIRST, reading("c2", &[("a", None)]));
    assert_eq!(since(&engine, None), Some(7200));
    assert_eq!(since(&engine, Some(&recorded(&["a"]))), Some(5));
    assert_eq!(since(&engine, Some(&recorded(&["a", "c"]))), Some(5));
    assert_eq!(since(&engine, Some(&recorded(&["c"]))), Some(7200), "more is released than before");
}

#[test]
fn what_a_statement_requests_stays_until_it_lacks_something_and_is_known_to_be_too_much() {
    let listed = |names: &[&str]| {
        TakeoverRequests::Listed(names.iter().map(|name| object_hash(&config(name))).collect())
    };
    // The source has `a`, and requests `b`.
    let engine = stating(PrunePolicy::On);
    let check = |recorded: TakeoverRequests, expected: TakeoverRequests, is_too_much: bool| {
        let statement = SourceStatement { takeover_requests: recorded.clone(), ..SourceStatement::default() };
        let next = engine.view().statement(FIRST, Some(&statement)).unwrap();
        assert_eq!(next.takeover_requests, expected, "{recorded:?}");
        assert_eq!(engine.view().has_excess_requests(FIRST, &statement), is_too_much, "{recorded:?}");
    };
    check(listed(&[]), listed(&["b"]), false);
    check(listed(&["b"]), listed(&["b"]), false);
    check(listed(&["b", "c"]), listed(&["b", "c"]), true);
    check(listed(&["c"]), listed(&["b"]), true);
    check(TakeoverRequests::Unlisted, TakeoverRequests::Unlisted, true);
    // So does a request for an observation.
    let observation_request = Some(ObservationRequest::new("host-1", 7));
    let takeover_requests = listed(&["b"]);
    let statement = SourceStatement { takeover_requests, observation_request, ..SourceStatement::default() };
    let next = engine.view().statement(FIRST, Some(&statement)).unwrap();
    assert_eq!(next.observation_request, statement.observation_request);
    assert!(engine.view().has_excess_requests(FIRST, &statement));
}

#[test]
fn a_pass_over_some_files_says_no_more_of_the_others_than_was_known_and_takes_no_daemon_away() {
    let (complete, partial) = (SourceCompleteness::Complete, SourceCompleteness::Partial);
    let check = |prune: PrunePolicy, recorded: Option<SourceCompleteness>, expected: SourceCompleteness| {
        let recorded =
            recorded.map(|completeness| SourceStatement { completeness, ..SourceStatement::default() });
        let statement = stating(prune).view().statement(FIRST, recorded.as_ref()).unwrap();
        assert_eq!(statement.completeness, expected, "{prune:?} {recorded:?}");
    };
    for recorded in [None, Some(complete), Some(partial)] {
        check(PrunePolicy::On, recorded, complete);
    }
    check(PrunePolicy::Partial, None, complete);
    check(PrunePolicy::Partial, Some(complete), complete);
    check(PrunePolicy::Partial, Some(partial), partial);
    let mut engine = stating(PrunePolicy::On);
    let service = |engine: &Engine, recorded: Option<SourceService>| {
        let recorded = recorded.map(|service| SourceStatement { service, ..SourceStatement::default() });
        engine.view().statement(FIRST, recorded.as_ref()).map(|statement| statement.service)
    };
    assert_eq!(service(&engine, None), Some(SourceService::OneShot));
    assert_eq!(service(&engine, Some(SourceService::Daemon)), Some(SourceService::Daemon));
    let rules = PeerRules { inventory_namespace: "rhumb".into(), service: SourceService::Daemon };
    engine.handle_now(Input::PeerRules(rules));
    assert_eq!(service(&engine, Some(SourceService::OneShot)), Some(SourceService::Daemon));
}

#[test]
fn whoever_may_want_an_object_is_asked_ever_more_rarely_while_the_answer_is_the_same() {
    let (mut engine, id, now) = (stating(PrunePolicy::On), config("a"), start_time());
    engine.set_release_key(ReadState::Value(release_key()));
    let gvk = Gvk::new("", "v1", "ConfigMap");
    engine.handle(Input::Discovered { gvk, availability: KindAvailability::Served }, now);
    engine.end_list(&maps());
    engine.read(FIRST, reading("c2", &[("a", None)]));
    let rest = |engine: &mut Engine, read: &str| {
        engine.handle(Input::Peers(vec![peer(follows(REPOSITORY, read), &[])]), now);
        let decision = engine.decide(&id, now);
        assert!(matches!(decision.reason, Some(Reason::Prune(_))), "{decision:?}");
        decision.requeue_after.map(|rest| rest.as_secs())
    };
    for expected in [1, 2, 4, 8, 15, 15] {
        assert_eq!(rest(&mut engine, "c1"), Some(expected));
    }
    assert_eq!(rest(&mut engine, "c0"), Some(1), "it says something else");
}

#[test]
fn who_had_an_object_is_said_of_a_takeover_alone() {
    let id = config("a");
    let check = |purpose: ApplyPurpose, owner: ObjectOwner, expected: Option<&str>| {
        let mut engine = two();
        engine.handle_now(Input::SourceNames([("applyset-named-v1".into(), "named".into())].into()));
        engine.handle_now(Input::Peers(vec![peer(SourceProgress::Unversioned, &[])]));
        let content = desired(&id, 1, "a");
        let live = World::live(&id, &WorldObject::settled(content.hash, "c0", 1));
        let view = DirectView::Found(Box::new(LiveObject { owner: owner.clone(), ..live }));
        engine.handle_now(Input::LookedUp { id: id.clone(), view });
        let apply = ApplyRequest {
            desired: content,
            source: FIRST,
            revision: Revision::new("c1"),
            seal: None,
            precondition: Precondition::Absent,
            decided_on: None,
            variant: ApplyVariant::PLAIN,
            purpose,
            restarts: RestartRisk::Absent,
        };
        let found = engine.view().previous_owner(&apply).map(|found| found.to_string());
        assert_eq!(found.as_deref(), expected, "{purpose:?} {owner:?}");
    };
    let foreign = || ObjectOwner::Foreign("Flux Kustomization a/b".into());
    let set = |set: &str| ObjectOwner::Ours(set.into());
    check(ApplyPurpose::Adopt, foreign(), Some("Flux Kustomization a/b"));
    check(ApplyPurpose::Transfer, foreign(), Some("Flux Kustomization a/b"));
    for purpose in [ApplyPurpose::Create, ApplyPurpose::Change, ApplyPurpose::Repair, ApplyPurpose::Step] {
        check(purpose, foreign(), None);
    }
    check(ApplyPurpose::Adopt, ObjectOwner::Nobody, None);
    check(ApplyPurpose::Adopt, ObjectOwner::Controlled("Job shop/b".into()), Some("Job shop/b"));
    check(ApplyPurpose::Transfer, set("applyset-second-v1"), Some("source second"));
    check(ApplyPurpose::Transfer, set(OTHER), Some("source other"));
    check(ApplyPurpose::Adopt, ObjectOwner::Labelled(OTHER.into()), Some("source other"));
    check(ApplyPurpose::Adopt, set("applyset-named-v1"), Some("source named"));
    let unknown = "the ApplySet applyset-unknown-v1: `kubectl get configmaps,secrets -A -l \
                   applyset.kubernetes.io/id=applyset-unknown-v1` finds its parent";
    check(ApplyPurpose::Adopt, set("applyset-unknown-v1"), Some(unknown));
}

// A plan asks no others, and one whose questions went unanswered goes on without.
#[test]
fn a_process_that_asks_no_others_says_the_name_of_a_source_where_it_was_told() {
    let id = config("a");
    let owner_of = |set: &str, asks: bool| {
        let mut engine = two();
        if asks {
            engine.require_peer_consent();
        }
        engine.handle_now(Input::SourceNames([("applyset-named-v1".into(), "named".into())].into()));
        if asks {
            engine.handle_now(Input::PeersUnreadable);
        }
        let live = World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c0", 1));
        let owner = ObjectOwner::Ours(set.into());
        let view = DirectView::Found(Box::new(LiveObject { owner, ..live }));
        engine.handle_now(Input::LookedUp { id: id.clone(), view });
        let decision = engine.decide(&id, start_time());
        assert_eq!(decision.action, Action::Nothing);
        let Some(Reason::Owned(owner)) = decision.reason else { panic!("{decision:?}") };
        owner.to_string()
    };
    for asks in [false, true] {
        assert_eq!(owner_of("applyset-named-v1", asks), "source named");
        let unknown = owner_of("applyset-unknown-v1", asks);
        assert!(unknown.starts_with("the ApplySet applyset-unknown-v1"), "{unknown}");
    }
}

#[test]
fn revisions_of_contents_in_force_and_of_those_to_go_back_to_stay_readable() {
    let (mut engine, a) = (two(), config("a"));
    let revisions = |engine: &Engine| -> Vec<String> {
        engine.view().revisions().iter().map(ToString::to_string).collect()
    };
    assert_eq!(revisions(&engine), ["c1"]);
    let thing = WorldObject::settled(desired(&a, 1, "a").hash, "c0", 1);
    engine.observe_object(&a, World::live(&a, &thing));
    assert_eq!(revisions(&engine), ["c0", "c1"]);
    // The revision that failed need not be read again.
    let unit = |good: &str| {
        let good = ContentRef { hash: desired(&a, 1, "a").hash, revision: Revision::new(good) };
        let (content, rollback_target) = (Some(desired(&a, 2, "a").hash), RollbackTarget::Content(good));
        let members = [(a.clone(), UnitMember { content, rollback_target, restarted: None })].into();
        ReleaseUnit { inventory_id: SET.into(), revision: Revision::new("failed"), members }
    };
    let ledger = RolloutLedger { units: vec![unit("released")], ..RolloutLedger::default() };
    engine.handle_now(Input::Ledger(ledger));
    assert_eq!(revisions(&engine), ["c0", "c1", "released"]);
    let (unit, action) = (unit("rejected"), RejectionAction::RollBack);
    let rejections = vec![Rejection { unit, action, cause: "it failed".into() }];
    let known = engine.view().source(FIRST).inventory.clone().unwrap();
    engine.handle_now(Input::Inventory { source: FIRST, inventory: Inventory { rejections, ..known } });
    assert_eq!(revisions(&engine), ["c0", "c1", "rejected", "released"]);
}

#[test]
fn an_object_that_its_source_drops_is_unwanted_there_and_nowhere_else() {
    let (mut engine, id) = (two(), config("a"));
    let unwanted = |engine: &Engine| [FIRST, SECOND].map(|source| engine.view().has_unwanted(source));
    let live = World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1));
    engine.observe_object(&id, live);
    assert_eq!(unwanted(&engine), [false, false]);
    engine.read(FIRST, reading("c2", &[("a", None)]));
    assert_eq!(unwanted(&engine), [true, false]);
    engine.observe_absence(&id);
    assert_eq!(unwanted(&engine), [false, false]);
}

#[test]
fn objects_may_be_elsewhere_where_their_kind_has_namespaces_and_the_server_has_it() {
    let mut scopes = KindScopes::new();
    let (nodes, claims) = (GroupKind::new("", "Node"), GroupKind::new("", "PersistentVolumeClaim"));
    scopes.insert(nodes.clone(), KindScope::Cluster);
    scopes.insert(claims.clone(), KindScope::Namespaced);
    scopes.insert(maps(), KindScope::Namespaced);
    let mut engine = two();
    engine.handle_now(Input::Scopes(scopes));
    for (kind, expected) in
        [(maps(), true), (claims.clone(), true), (nodes, false), (GroupKind::new("x.org", "Unknown"), true)]
    {
        assert_eq!(engine.view().can_be_elsewhere(FIRST, &kind), expected, "{kind}");
    }
    engine.handle_now(Input::KindAbsent(claims.clone()));
    assert!(!engine.view().can_be_elsewhere(FIRST, &claims));
}

/// Returns an engine with one source that may watch one namespace, and has these in its inventory.
fn watching_one(namespaces: &[&str], state: KindState) -> Engine {
    let mut engine = Engine::new(budget(3));
    let informer_group = engine.add_informer_group(Some(["one".into()].into()));
    let mut watched = source("test", SET);
    watched.informer_group = informer_group;
    engine.add_source(watched);
    engine.read(FIRST, reading("r1", &[]));
    let namespaces = namespaces.iter().map(|name| Arc::from(*name)).collect();
    let inventory = Inventory { kinds: [maps()].into(), namespaces, ..Inventory::default() };
    engine.handle_now(Input::Inventory { source: FIRST, inventory });
    let listing = WatchScope { informer_group, kind: maps(), namespace: Some("one".into()) };
    engine.handle_now(Input::InformerState { listing, state });
    engine
}

#[test]
fn what_a_source_cannot_list_and_does_not_watch_is_noted_each() {
    let check = |namespaces: &[&str], state: KindState, expected: &[&str]| {
        let engine = watching_one(namespaces, state);
        let notes: Vec<String> = engine.view().inventory_notes(FIRST).map(|note| note.to_string()).collect();
        assert_eq!(notes.len(), expected.len(), "{notes:?}");
        assert!(notes.iter().zip(expected).all(|(note, words)| note.starts_with(*words)), "{notes:?}");
    };
    let forbidden = || KindState::Unobservable("denied".into(), ErrorClass::Forbidden);
    let (unlisted, unwatched) = (
        "nothing is pruned while ConfigMap cannot be listed: denied",
        "any objects of it in namespace three",
    );
    check(&["one"], KindState::Synced, &[]);
    check(&["one"], forbidden(), &[unlisted]);
    check(&["one", "three"], KindState::Synced, &[unwatched]);
    check(&["three"], forbidden(), &[unlisted, unwatched]);
}

#[test]
fn a_kind_of_an_inventory_that_its_source_may_not_have_is_not_watched() {
    let kinds = Some(BTreeSet::from(["apps/*".parse().unwrap()]));
    let mut engine = Engine::new(budget(3));
    let mut narrow = source("test", SET);
    narrow.allow = Arc::new(AllowList { kinds, ..AllowList::default() });
    engine.add_source(narrow);
    assert!(!engine.view().has_unwatched(FIRST), "nothing was read yet");
    let deployments = GroupKind::new("apps", "Deployment");
    for (kinds, expected) in
        [([deployments.clone()].into(), false), (BTreeSet::from([deployments, maps()]), true)]
    {
        let inventory = Inventory { kinds, ..Inventory::default() };
        engine.handle_now(Input::Inventory { source: FIRST, inventory });
        assert_eq!(engine.view().has_unwatched(FIRST), expected);
    }
    let allowed = [workload("web"), config("a")].map(|id| engine.view().is_allowed(FIRST, &id));
    assert_eq!(allowed, [true, false]);
}

// Data that change are a reason to try rejected content again.
#[test]
fn data_are_used_by_the_source_of_a_workload_whose_content_in_force_or_rejected_content_names_them() {
    let (tls, more) = (config("tls"), config("more"));
    let mut harness = restart::at_rest(3);
    let using = |harness: &Harness| {
        let view = harness.engine.view();
        [&tls, &more].map(|id| (view.sources_using(id), view.data_to_watch().contains(id)))
    };
    let (used, unused) = ((BTreeSet::from([FIRST]), true), (BTreeSet::new(), false));
    assert_eq!(using(&harness), [used.clone(), unused]);
    let bad = restart::web(2, &["more", "tls"]);
    harness.world.bad.insert(bad.hash);
    harness.read(reading("r2", &[("web", Some(bad.clone()))]));
    let data = ReadState::Value(Some(restart::data(&more, 1)));
    harness.engine.handle_now(Input::ConfigData { id: more.clone(), data });
    harness.settle();
    let shown = harness.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
    assert_eq!(shown, Some(restart::web(1, &["tls"]).hash), "it is back");
    assert_eq!(using(&harness), [used.clone(), used]);
}

#[test]
fn what_a_source_may_not_have_is_refused_to_it_as_long_as_a_file_names_it() {
    let mut engine = two();
    let refused = |engine: &Engine| -> Vec<(ObjectId, String)> {
        let all = engine.view().refused_manifests(FIRST).into_iter();
        all.map(|(id, manifest)| (id.clone(), manifest.reason.to_string())).collect()
    };
    assert_eq!(refused(&engine), []);
    let wanted = desired(&workload("web"), 1, "web");
    let (id, gvk, origin) = (wanted.id.clone(), wanted.gvk.clone(), wanted.origin.clone());
    let object = UnusableObject { id, gvk, origin, reason: "its kind is not allowed".into() };
    let facts = FileFacts { disallowed: vec![Arc::new(object)], ..FileFacts::default() };
    let files = vec![("web".into(), Some(facts))];
    engine.read(FIRST, SourceReading { files, ..reading("c2", &[]) });
    assert_eq!(refused(&engine), [(workload("web"), "its kind is not allowed".to_owned())]);
    engine.read(FIRST, reading("c3", &[("web", None)]));
    assert_eq!(refused(&engine), []);
}

/// Reads a revision that somebody made.
fn read_by(harness: &mut Harness, revision: &str, content: u32) {
    let authored = Some(Authorship::of("Ann", revision));
    let files = [("web", Some(desired(&workload("web"), content, "web")))];
    harness.read(SourceReading { authored, ..reading(revision, &files) });
}

#[test]
fn the_revisions_of_a_source_are_those_on_record_and_those_since_the_newest_first() {
    let mut harness = Harness::new(1);
    let known = |harness: &Harness, source: SourceId| -> Vec<String> {
        let commits = harness.engine.view().commits_of(source).into_iter();
        commits.map(|(revision, authored)| format!("{revision} {}", authored.subject)).collect()
    };
    assert!(known(&harness, FIRST).is_empty());
    for (revision, content) in [("r1", 1), ("r2", 2)] {
        read_by(&mut harness, revision, content);
        harness.settle();
    }
    assert_eq!(harness.world.ledger.commits.len(), 2);
    let mut ledger = harness.world.ledger.clone();
    ledger.commits.push(AuthoredRevision {
        inventory_id: OTHER.into(),
        revision: Revision::new("r9"),
        authored: Authorship::of("Bob", "r9"),
    });
    harness.engine.set_ledger(ledger);
    assert_eq!(known(&harness, FIRST), ["r2 r2", "r1 r1"]);
    read_by(&mut harness, "r3", 3);
    assert_eq!(known(&harness, FIRST), ["r3 r3", "r2 r2", "r1 r1"]);
    // Back at what is on record, it is named once.
    read_by(&mut harness, "r1", 1);
    assert_eq!(known(&harness, FIRST), ["r3 r3", "r2 r2", "r1 r1"]);
    assert!(known(&harness, SECOND).is_empty(), "there is no such source");
}
