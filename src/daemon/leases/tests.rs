//! A keeper of Leases beside a server that keeps them as the API server does.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::cluster::tests::fake::{FakeApiServer, ReceivedCall, ScriptedReply};

const NAMESPACE: &str = "rhumb-system";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/rhumb-system/leases";
/// The name of an object whose write is never answered.
const UNANSWERED: &str = "unanswered";

#[test]
fn each_process_has_a_name_of_its_own_that_can_be_a_leases() {
    let (one, other) = (process_identity(), process_identity());
    assert_ne!(one, other);
    let parts: Vec<&str> = one.split('.').collect();
    assert_eq!(parts.len(), 2, "{one}");
    assert!(parts.iter().all(|part| part.parse::<crate::config::DnsLabel>().is_ok()), "{one}");
    assert!(parts[1].len() == 12 && u64::from_str_radix(parts[1], 16).is_ok(), "{one}");
}

/// The Leases that the server has, by name.
#[derive(Default)]
struct ServerState {
    leases: BTreeMap<String, Value>,
    version: u64,
    refuses_writes: bool,
    /// Has a new value with each call.
    calls: watch::Sender<()>,
}

impl ServerState {
    /// Writes the spec of a Lease, as anybody may.
    fn put(&mut self, name: &str, spec: &Value) -> Value {
        self.version += 1;
        let lease = self.leases.entry(name.to_owned()).or_insert_with(|| json!({ "spec": {} }));
        for (key, value) in spec.as_object().unwrap() {
            lease["spec"][key] = value.clone();
        }
        lease["metadata"] = json!({ "name": name, "uid": format!("uid-{name}"), "resourceVersion": self.version.to_string() });
        lease.clone()
    }

    fn answer(&mut self, asked: &ReceivedCall) -> ScriptedReply {
        let reply = self.reply(asked);
        self.calls.send_replace(());
        reply
    }

    fn reply(&mut self, asked: &ReceivedCall) -> ScriptedReply {
        let reply = |code: u16, body: &Value| ScriptedReply::Complete(code, "", body.to_string());
        let conflict = || reply(409, &json!({ "code": 409, "reason": "Conflict" }));
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let path = asked.path.split('?').next().unwrap_or_default();
        let name = path.strip_prefix(LEASES).unwrap().trim_start_matches('/').to_owned();
        if name == UNANSWERED {
            return ScriptedReply::Silence;
        }
        let has = |version: &Value| {
            let known = self.leases.get(&name).map(|lease| &lease["metadata"]["resourceVersion"]);
            known == Some(version)
        };
        match asked.method.as_str() {
            "GET" => reply(200, &json!({ "items": self.leases.values().collect::<Vec<_>>() })),
            _ if self.refuses_writes => reply(503, &json!({ "code": 503 })),
            "POST" => {
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                if self.leases.contains_key(&name) {
                    return conflict();
                }
                reply(201, &self.put(&name, &body["spec"]))
            }
            "PATCH" if has(&body["metadata"]["resourceVersion"]) => {
                reply(200, &self.put(&name, &body["spec"]))
            }
            "DELETE" if has(&body["preconditions"]["resourceVersion"]) => {
                self.leases.remove(&name);
                reply(200, &json!({ "kind": "Status" }))
            }
            _ => conflict(),
        }
    }
}

/// A keeper without its loop, and what it sees.
struct LeaseFixture {
    server: Arc<Mutex<ServerState>>,
    fake: FakeApiServer,
    keeper: LeaseKeeper,
    wish: watch::Sender<SourceNames>,
    run: watch::Sender<SourceNames>,
    share: watch::Receiver<SourceNames>,
}

fn names(names: &[&str]) -> SourceNames {
    names.iter().map(|name| (*name).into()).collect()
}

async fn start_server() -> (Arc<Mutex<ServerState>>, FakeApiServer) {
    let server: Arc<Mutex<ServerState>> = Arc::default();
    let state = server.clone();
    let fake = FakeApiServer::start(move |_, asked| state.lock().unwrap().answer(asked)).await;
    (server, fake)
}

impl LeaseFixture {
    /// Returns a replica alone that wants source a, and serves nothing yet.
    async fn new() -> Self {
        let (server, fake) = start_server().await;
        let (wish, wished) = watch::channel(names(&["a"]));
        let (run, runs) = watch::channel(SourceNames::new());
        let (published, share) = watch::channel(SourceNames::new());
        let own: Arc<str> = "own.1".into();
        let keeper = LeaseKeeper {
            cluster: fake.cluster.clone(),
            namespace: NAMESPACE.to_owned(),
            shares: LeaseShares::new(&own),
            own,
            terms: LeaseTerms::default(),
            wished,
            run: runs,
            published,
            running: watch::channel(None).1,
            records: BTreeMap::new(),
            leaving: SourceNames::new(),
            lapsed: SourceNames::new(),
            own_renewed: None,
            failure_log: LeaseFailureLog::default(),
            heartbeat: fake.cluster.heartbeats().expect_part("the Leases", MAX_BEAT_DURATION),
        };
        Self { server, fake, keeper, wish, run, share }
    }

    /// Returns one that has taken the Lease of a, and whose loop serves it.
    async fn serving() -> Self {
        let mut fixture = Self::new().await;
        fixture.keeper.renew_and_list().await;
        assert_eq!((fixture.holder(), fixture.published()), ("own.1".to_owned(), names(&["a"])));
        fixture.run.send_replace(names(&["a"]));
        fixture
    }

    /// Returns the holder of the Lease of a on the server; empty where it was released.
    fn holder(&self) -> String {
        let server = self.server.lock().unwrap();
        server.leases["rhumb-a"]["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }

    /// Writes another holder into the Lease of a.
    fn hand_over(&self, holder: &str) {
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 10, "renewTime": holder });
        self.server.lock().unwrap().put("rhumb-a", &spec);
    }

    /// Makes the Lease of a due for renewal.
    fn make_due(&mut self) {
        let source: Arc<str> = "a".into();
        let sent = Instant::now().checked_sub(LEASE_LIST_INTERVAL * 3).unwrap();
        self.keeper.shares.note_loss(&source);
        self.keeper.shares.note_renewal(&source, sent);
    }

    /// Shows a replica that was first seen so long ago, and has renewed its Lease never since.
    fn show_replica(&mut self, id: &str, age: Duration) {
        let spec = json!({ "holderIdentity": id, "leaseDurationSeconds": 60, "renewTime": "then" });
        self.server.lock().unwrap().put(&format!("{REPLICA_LEASE_PREFIX}{id}"), &spec);
        let (holder, duration) = (Some(id.into()), Duration::from_mins(1));
        let snapshot = LeaseSnapshot { holder, renewed: "then".into(), duration };
        let first_seen = Instant::now().checked_sub(age).unwrap();
        self.keeper.shares.update(BTreeMap::new(), BTreeMap::from([(id.into(), snapshot)]), first_seen);
    }

    fn published(&self) -> SourceNames {
        self.share.borrow().clone()
    }

    /// Returns whether a write for a passes the fence.
    async fn may_write(&self) -> bool {
        let fenced = self.fake.cluster.with_fence(self.keeper.terms.new_fence(names(&["a"])));
        let record = self.keeper.records.get("rhumb-probe");
        let renewal = LeaseWrite::Renew("probe", LEASE_DURATION);
        let Err(error) = fenced.save_lease(NAMESPACE, "rhumb-probe", record, renewal).await else {
            self.server.lock().unwrap().leases.remove("rhumb-probe");
            return true;
        };
        assert_eq!(*error.fault(), ClusterFault::NotHeld);
        false
    }
}

#[tokio::test]
async fn a_lost_lease_is_taken_again_only_when_the_loop_has_ended_that_served_it() {
    let mut fixture = LeaseFixture::serving().await;
    assert!(fixture.may_write().await);
    fixture.hand_over("other.2");
    fixture.keeper.renew_and_list().await;
    assert_eq!(fixture.published(), names(&[]));
    assert!(!fixture.may_write().await, "its term ends with it");
    // The loop still runs when the other one is done, and its facts are from before.
    fixture.hand_over("");
    fixture.keeper.renew_and_list().await;
    assert_eq!((fixture.holder(), fixture.published()), (String::new(), names(&[])));
    fixture.run.send_replace(names(&[]));
    fixture.keeper.renew_and_list().await;
    assert_eq!((fixture.holder(), fixture.published()), ("own.1".to_owned(), names(&["a"])));
}

#[tokio::test]
async fn a_renewal_that_is_answered_late_gives_nothing() {
    let mut fixture = LeaseFixture::new().await;
    let source: Arc<str> = "a".into();
    let (cluster, own) = (fixture.fake.cluster.clone(), fixture.keeper.own.clone());
    let renewal = LeaseWrite::Renew(&own, LEASE_DURATION);
    let record = cluster.save_lease(NAMESPACE, "rhumb-a", None, renewal).await.unwrap();
    let tick = LeaseTerms::tick();
    let late = Instant::now().checked_sub(WRITE_TERM).unwrap();
    fixture.keeper.record_renewal(&source, late, tick, Ok(record.clone()));
    assert!(!fixture.keeper.shares.has_lease("a"));
    assert!(!fixture.may_write().await);
    fixture.keeper.record_renewal(&source, Instant::now(), tick, Ok(record));
    assert!(fixture.keeper.shares.has_lease("a"));
    assert!(fixture.may_write().await);
}

// An answer may be slow: whoever takes the Lease over counts from what the server has written.
#[tokio::test]
async fn a_term_counts_from_before_its_renewal_reaches_the_server() {
    let mut fixture = LeaseFixture::new().await;
    let arrived: Arc<Mutex<Option<(TermStart, Instant)>>> = Arc::default();
    let seen = arrived.clone();
    let server = FakeApiServer::start(move |_, _| {
        *seen.lock().unwrap() = Some((LeaseTerms::tick(), Instant::now()));
        let lease =
            json!({ "metadata": { "name": "rhumb-a", "uid": "1", "resourceVersion": "1" }, "spec": {} });
        ScriptedReply::Complete(201, "", lease.to_string())
    });
    fixture.keeper.cluster = server.await.cluster;
    let answers = fixture.keeper.save(vec!["a".into()]).await;
    assert!(answers[0].answer.is_ok(), "{:?}", answers[0].answer);
    let (tick, sent) = arrived.lock().unwrap().unwrap();
    assert!(answers[0].tick <= tick && answers[0].sent <= sent, "{:?}", (answers[0].tick, tick));
}

#[tokio::test]
async fn a_lease_is_released_only_when_no_loop_serves_its_source_any_more() {
    // By whoever takes it over, and by nobody, as no configuration wants it.
    for wanted in [names(&["a"]), names(&[])] {
        let mut fixture = LeaseFixture::serving().await;
        fixture.wish.send_replace(wanted.clone());
        fixture.keeper.leaving.insert("a".into());
        fixture.keeper.renew_and_list().await;
        assert_eq!(fixture.holder(), "own.1", "{wanted:?}");
        assert_eq!(fixture.published(), names(&[]), "the loop is to end: {wanted:?}");
        assert!(fixture.may_write().await, "until then it writes: {wanted:?}");
        fixture.run.send_replace(names(&[]));
        fixture.keeper.release().await;
        assert!(!fixture.may_write().await, "{wanted:?}");
        let there = fixture.server.lock().unwrap().leases.contains_key("rhumb-a");
        assert_eq!(there, wanted.contains("a"));
        assert!(!there || fixture.holder().is_empty(), "{wanted:?}");
    }
}

#[tokio::test]
async fn a_lease_under_which_a_write_went_unanswered_is_not_released_and_runs_out() {
    let mut fixture = LeaseFixture::serving().await;
    let fenced = fixture.fake.cluster.with_fence(fixture.keeper.terms.new_fence(names(&["a"])));
    let renewal = LeaseWrite::Renew("probe", LEASE_DURATION);
    let before = fixture.keeper.records["rhumb-a"].clone();
    fenced.save_lease(NAMESPACE, UNANSWERED, Some(&before), renewal).await.unwrap_err();
    fixture.run.send_replace(names(&[]));
    fixture.keeper.leaving.insert("a".into());
    fixture.keeper.release().await;
    assert_eq!(fixture.holder(), "own.1", "the server may still carry it out");
    assert!(!fixture.keeper.shares.has_lease("a"));
}

/// Returns a fixture whose Lease of a was not renewed in time, as the server refused that.
async fn lapsed() -> LeaseFixture {
    let mut fixture = LeaseFixture::serving().await;
    fixture.server.lock().unwrap().refuses_writes = true;
    fixture.keeper.shares.note_loss("a");
    let source: Arc<str> = "a".into();
    fixture.keeper.shares.note_renewal(&source, Instant::now().checked_sub(WRITE_TERM).unwrap());
    fixture.keeper.renew_and_list().await;
    assert!(!fixture.may_write().await);
    assert_eq!(fixture.published(), names(&["a"]), "its loop goes on, and writes nothing");
    fixture
}

#[tokio::test]
async fn a_lapsed_lease_that_nobody_else_had_is_taken_again_under_its_loop() {
    let mut fixture = lapsed().await;
    fixture.server.lock().unwrap().refuses_writes = false;
    fixture.keeper.renew_and_list().await;
    assert!(fixture.may_write().await);
    assert_eq!((fixture.holder(), fixture.published()), ("own.1".to_owned(), names(&["a"])));
}

#[tokio::test]
async fn a_lapsed_lease_that_somebody_else_had_ends_its_loop() {
    let mut fixture = lapsed().await;
    fixture.hand_over("other.2");
    fixture.keeper.renew_and_list().await;
    assert_eq!(fixture.published(), names(&[]));
    fixture.server.lock().unwrap().refuses_writes = false;
    fixture.hand_over("");
    fixture.keeper.renew_and_list().await;
    assert!(!fixture.may_write().await);
    assert_eq!((fixture.holder(), fixture.published()), (String::new(), names(&[])), "its loop runs");
}

// Others see by it how many there are, and take over at once when it is gone.
#[tokio::test]
async fn a_replica_has_a_lease_of_its_own_until_it_has_released_all() {
    let mut fixture = LeaseFixture::serving().await;
    let own = format!("{REPLICA_LEASE_PREFIX}{}", fixture.keeper.own);
    let is_announced =
        |fixture: &LeaseFixture| fixture.server.lock().unwrap().leases.contains_key(own.as_str());
    assert!(is_announced(&fixture));
    fixture.run.send_replace(names(&[]));
    fixture.keeper.release_all().await;
    assert!(!is_announced(&fixture));
    assert_eq!(fixture.holder(), "");
    assert!(!fixture.may_write().await);
}

/// Follows a source from the wish to serve it until it is served no more, without a look inside.
#[tokio::test]
async fn a_source_is_served_while_it_is_wanted_and_is_free_once_its_loop_has_ended() {
    let (server, fake) = start_server().await;
    let mut calls = server.lock().unwrap().calls.subscribe();
    let holder = || {
        let server = server.lock().unwrap();
        server.leases.get("rhumb-a").map(|lease| lease["spec"]["holderIdentity"].clone())
    };
    let leases = Leases::keep(fake.cluster.clone(), NAMESPACE, watch::channel(None).1);
    let fenced = fake.cluster.with_fence(leases.fence(&names(&["a"])));
    let may_write = async || {
        let renewal = LeaseWrite::Renew("probe", LEASE_DURATION);
        let written = fenced.save_lease(NAMESPACE, "probe", None, renewal).await;
        written.is_ok_and(|_| server.lock().unwrap().leases.remove("probe").is_some())
    };
    assert_eq!((leases.share(), may_write().await), (names(&[]), false));
    leases.set_wanted_sources(names(&["a"]));
    assert!(leases.wait_for_change(&names(&[])).await);
    assert_eq!((leases.share(), may_write().await), (names(&["a"]), true));
    leases.set_served_sources(names(&["a"]));
    leases.set_wanted_sources(names(&["b"]));
    // Nothing has been taken anew at this moment, and what is not wanted is not to be served.
    assert_eq!(leases.share(), names(&[]));
    assert!(leases.wait_for_change(&names(&["a"])).await);
    // Its loop has not ended before this.
    assert!(holder().is_some() && may_write().await);
    leases.set_served_sources(names(&[]));
    while holder().is_some() {
        calls.changed().await.unwrap();
    }
    assert!(!may_write().await);
    assert!(leases.wait_for_change(&names(&[])).await);
    let of_b = fake.cluster.with_fence(leases.lease_terms().new_fence(names(&["b"])));
    let may_write_b = async || {
        let renewal = LeaseWrite::Renew("probe", LEASE_DURATION);
        let written = of_b.save_lease(NAMESPACE, "probe", None, renewal).await;
        written.is_ok_and(|_| server.lock().unwrap().leases.remove("probe").is_some())
    };
    assert!(may_write_b().await);
    leases.end().await;
    let left: Vec<Value> = {
        let server = server.lock().unwrap();
        server.leases.values().map(|lease| lease["spec"]["holderIdentity"].clone()).collect()
    };
    assert_eq!(left, [json!("")], "b is free, and the replica is gone");
    assert!(!may_write_b().await);
}

#[tokio::test]
async fn only_another_wish_wakes_whoever_keeps_the_leases() {
    let (_, fake) = start_server().await;
    let leases = Leases::keep(fake.cluster.clone(), NAMESPACE, watch::channel(None).1);
    let mut wished = leases.wish.subscribe();
    let mut wakes = |sources: &[&str]| {
        leases.set_wanted_sources(names(sources));
        let wakes = wished.has_changed().unwrap();
        wished.mark_unchanged();
        wakes
    };
    assert_eq!([wakes(&[]), wakes(&["a"]), wakes(&["a"]), wakes(&["b"])], [false, true, false, true]);
}

// Without it a Lease would be released while its source is still written for.
#[tokio::test]
async fn whoever_keeps_the_leases_is_informed_of_what_the_loop_serves() {
    let (_, fake) = start_server().await;
    let leases = Leases::keep(fake.cluster.clone(), NAMESPACE, watch::channel(None).1);
    let served = leases.runs.subscribe();
    for sources in [names(&["a", "b"]), names(&[])] {
        leases.set_served_sources(sources.clone());
        assert_eq!(*served.borrow(), sources);
    }
}

#[tokio::test]
async fn a_replica_with_too_much_gives_away_what_does_not_roll_out() {
    use crate::report::status_fixture::{daemon_status, source_status};
    let rolling = |source: &str| {
        json!({
            "group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "source": source,
            "replicas": 1, "updated": 0, "available": 1, "unavailable": 0,
        })
    };
    let check = async |running: Option<&[Value]>, expected: &[&str]| {
        let mut fixture = LeaseFixture::new().await;
        fixture.wish.send_replace(names(&["a", "b"]));
        fixture.keeper.renew_and_list().await;
        assert_eq!(fixture.published(), names(&["a", "b"]));
        let sources = ["a", "b"].map(|name| source_status(name, &json!({})));
        let queries = running.map(|rolling| LoopQueries::of_status(daemon_status(&sources, rolling)));
        fixture.keeper.running = watch::channel(queries).1;
        fixture.run.send_replace(names(&["a", "b"]));
        fixture.keeper.choose_surplus(1).await;
        fixture.keeper.publish();
        assert_eq!(fixture.published(), names(expected), "{running:?}");
    };
    check(Some(&[]), &["a"]).await;
    check(Some(&[rolling("b")]), &["b"]).await;
    check(Some(&[rolling("a"), rolling("b")]), &["a", "b"]).await;
    // Nobody knows of the rollouts.
    check(None, &["a", "b"]).await;
}

#[tokio::test]
async fn a_round_gives_away_what_another_replica_has_room_for() {
    use crate::report::status_fixture::{daemon_status, source_status};
    let mut fixture = LeaseFixture::new().await;
    fixture.wish.send_replace(names(&["a", "b"]));
    fixture.keeper.renew_and_list().await;
    fixture.run.send_replace(names(&["a", "b"]));
    let sources = ["a", "b"].map(|name| source_status(name, &json!({})));
    let queries = LoopQueries::of_status(daemon_status(&sources, &[]));
    fixture.keeper.running = watch::channel(Some(queries)).1;
    fixture.keeper.renew_and_list().await;
    assert_eq!(fixture.published(), names(&["a", "b"]), "it is alone");
    fixture.show_replica("other.2", LEASE_DURATION);
    fixture.keeper.renew_and_list().await;
    assert_eq!(fixture.published(), names(&["a"]));
}

#[tokio::test]
async fn the_lease_of_a_replica_that_is_long_gone_is_removed() {
    let check = async |age: Duration, expected: bool| {
        let mut fixture = LeaseFixture::serving().await;
        fixture.show_replica("gone.3", age);
        fixture.keeper.renew_and_list().await;
        let is_there = fixture.server.lock().unwrap().leases.contains_key("rhumb-replica.gone.3");
        assert_eq!(is_there, expected, "{age:?}");
    };
    check(Duration::from_secs(90), true).await;
    check(Duration::from_mins(2), false).await;
}

#[tokio::test]
async fn a_renewal_that_fails_is_an_error_of_leases() {
    let mut fixture = LeaseFixture::serving().await;
    fixture.make_due();
    fixture.server.lock().unwrap().refuses_writes = true;
    fixture.keeper.renew_and_list().await;
    assert!(fixture.keeper.failure_log.is_met);
}

#[tokio::test]
async fn a_list_that_fails_is_an_error_of_leases_unless_nothing_is_there_to_list() {
    let check = async |code: u16, expected: bool| {
        let details = json!({ "name": NAMESPACE, "kind": "leases" });
        let answer = json!({ "kind": "Status", "code": code, "details": details }).to_string();
        let server = FakeApiServer::start(move |_, _| ScriptedReply::Complete(code, "", answer.clone()));
        let mut fixture = LeaseFixture::new().await;
        fixture.keeper.cluster = server.await.cluster;
        fixture.keeper.list().await;
        assert_eq!(fixture.keeper.failure_log.is_met, expected, "{code}");
    };
    check(404, false).await;
    check(503, true).await;
}

#[tokio::test]
async fn an_error_of_leases_is_logged_once_until_a_round_is_without_one() {
    let mut fixture = LeaseFixture::serving().await;
    let mut round = async |refuses: bool, expected: bool| {
        fixture.server.lock().unwrap().refuses_writes = refuses;
        // The Lease and that of the replica are due.
        fixture.keeper.own_renewed = None;
        fixture.keeper.renew_and_list().await;
        assert_eq!(fixture.keeper.failure_log.is_logged, expected, "{refuses}");
    };
    round(false, false).await;
    round(true, true).await;
    round(true, true).await;
    round(false, false).await;
}

// Each round would otherwise write it.
#[tokio::test]
async fn a_replica_renews_its_own_lease_only_when_that_is_due() {
    let mut fixture = LeaseFixture::serving().await;
    let version = |fixture: &LeaseFixture| {
        let name = format!("{REPLICA_LEASE_PREFIX}{}", fixture.keeper.own);
        fixture.server.lock().unwrap().leases[&name]["metadata"]["resourceVersion"].clone()
    };
    let before = version(&fixture);
    for age in [Duration::ZERO, LEASE_LIST_INTERVAL] {
        fixture.keeper.own_renewed = Instant::now().checked_sub(age);
        fixture.keeper.renew_and_list().await;
        assert_eq!(version(&fixture), before, "{age:?}");
    }
    fixture.keeper.own_renewed = Instant::now().checked_sub(LEASE_LIST_INTERVAL * 2);
    fixture.keeper.renew_and_list().await;
    assert_ne!(version(&fixture), before);
}

/// Writes Leases that somebody else has written meanwhile: nothing is wrong.
#[tokio::test]
async fn a_conflict_is_no_error_of_leases() {
    let mut fixture = LeaseFixture::serving().await;
    fixture.keeper.own_renewed = None;
    fixture.hand_over("other.2");
    let own = format!("{REPLICA_LEASE_PREFIX}{}", fixture.keeper.own);
    fixture.server.lock().unwrap().put(&own, &json!({ "renewTime": "by somebody" }));
    fixture.make_due();
    fixture.keeper.renew_and_list().await;
    assert!(!fixture.keeper.failure_log.is_met);
}
