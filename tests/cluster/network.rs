//! The network between rhumb and the API server fails in every way. rhumb converges soon after,
//! deletes nothing, and does not ask in a loop meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use controlplane::{Answer, Fault, FaultProxy, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, in_time, until, yaml,
};

/// The time after the end of an outage by which everything must be settled, on a busy machine.
const RETURN: Duration = Duration::from_secs(45);

/// The duration of the outages.
const OUTAGE_DURATION: Duration = Duration::from_millis(2500);

/// The number of calls that is no hot loop: two objects and three kinds that are tried again with
/// growing pauses.
const MAX_CALM_CALLS: u64 = 60;

const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

fn writes() -> Requests {
    WRITES.into_iter().fold(Requests::any(), Requests::method)
}

struct NetworkFixture {
    site: TestNamespace<'static>,
    repo: Repo,
    proxy: FaultProxy,
    daemon: Daemon,
    /// The calls after the beginning.
    sent: AuditWindow<'static>,
}

/// Starts a daemon behind a proxy, and waits until it is at rest.
fn fixture(name: &str) -> NetworkFixture {
    let mut site = TestNamespace::new(name);
    let proxy = site.cluster.fault_proxy(7).unwrap();
    site.through(&proxy);
    let repo = Repo::new(&[
        ("follows.yaml", yaml::config_map("follows", "a", "1")),
        ("defended.yaml", yaml::config_map("defended", "a", "1")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", yaml::service("web", "web")),
    ]);
    let daemon = site.configured(&site.configuration(repo.path(), "api: {timeout: 2s}"));
    site.await_object("Service", "web");
    site.await_object("Secret", "key");
    for name in ["follows", "defended"] {
        site.await_data(name, "a", "1");
    }
    let sent = site.window();
    NetworkFixture { site, repo, proxy, daemon, sent }
}

impl NetworkFixture {
    /// Makes a commit and a foreign write.
    fn disturb(&self) {
        self.repo.change("follows.yaml", &yaml::config_map("follows", "a", "2"));
        self.site.api.merge(
            &self.site.at("ConfigMap", "defended"),
            "them",
            &json!({"data": {"a": "theirs"}}),
        );
    }

    /// Asserts all that a daemon at rest must bring about after it was disturbed.
    #[track_caller]
    fn converges(&mut self, since: Instant) {
        let left = || RETURN.saturating_sub(since.elapsed());
        self.site.await_data_within(left(), "follows", "a", "2");
        self.site.await_data_within(left(), "defended", "a", "1");
        // The watches are there again too.
        self.site.api.delete(&self.site.at("Secret", "key"));
        let probe = || if self.site.has("Secret", "key") { Ok(()) } else { Err("it is gone") };
        eventually("the deleted Secret is there again", left(), probe);
        assert!(self.daemon.is_running());
    }
}

/// Spoils these requests for a while, with a commit and a foreign write in the middle of it.
fn survives(name: &str, requests: &Requests, fault: Fault) -> NetworkFixture {
    let mut fixture = fixture(name);
    let rule = fixture.proxy.add(Rule::new(requests.clone(), fault));
    fixture.proxy.end_open(&Requests::any().watches(), ResponseCut::Close);
    fixture.disturb();
    thread::sleep(OUTAGE_DURATION);
    let hits = fixture.proxy.remove(rule);
    assert!(hits.fired > 0, "the fault met nothing");
    assert!(hits.fired <= MAX_CALM_CALLS, "{hits:?} calls within {OUTAGE_DURATION:?}");
    fixture.converges(Instant::now());
    fixture.sent.assert_no_deletes();
    fixture
}

#[test]
fn a_connection_that_is_refused() {
    survives("net-refused", &Requests::any(), Fault::Refuse(ResponseCut::Reset));
}

#[test]
fn watches_that_are_cut_again_and_again() {
    survives("net-cut", &Requests::any().watches(), Fault::Cut(100, ResponseCut::Reset));
}

#[test]
fn watches_that_end_at_once() {
    survives("net-end", &Requests::any().watches(), Fault::Truncate(0));
}

#[test]
fn watches_whose_version_is_gone() {
    let expired = Answer::watch_error(410, "Expired");
    survives(
        "net-expired",
        &Requests::any().watches().query_lacks("sendInitialEvents"),
        Fault::Replace(expired),
    );
}

#[test]
fn credentials_that_are_not_accepted() {
    let mut fixture =
        survives("net-401", &Requests::any(), Fault::Replace(Answer::error(401, "Unauthorized")));
    fixture.daemon.says(&["does not accept the credentials (401)"]);
    assert!(fixture.daemon.is_running());
}

#[test]
fn a_server_that_asks_to_slow_down_is_given_the_time_that_it_asks_for() {
    let busy = Answer::error(429, "TooManyRequests").header("Retry-After", "2");
    let fixture = fixture("net-429");
    // Writes about the source go elsewhere.
    let objects = writes().path_contains("/namespaces/net-429/configmaps/");
    let rule = fixture.proxy.add(Rule::new(objects, Fault::Replace(busy)));
    let since = Instant::now();
    fixture.disturb();
    until("a write is answered so", || fixture.proxy.hits(rule).fired > 0);
    thread::sleep(OUTAGE_DURATION);
    let hits = fixture.proxy.remove(rule);
    // Two objects, each at 0 seconds and every 2 seconds after that.
    let most = 2 * (1 + since.elapsed().as_secs() / 2);
    assert!((1..=most).contains(&hits.fired), "{hits:?}, not up to {most}");
    let mut fixture = fixture;
    fixture.converges(Instant::now());
    fixture.sent.assert_no_deletes();
}

#[test]
fn an_error_after_the_write_took_effect_repeats_nothing() {
    let mut fixture = fixture("net-500");
    let broken = Answer::error(500, "InternalError");
    let rule = fixture.proxy.add(Rule::new(writes(), Fault::ReplaceAfter(broken)).times(3));
    fixture.disturb();
    fixture.repo.change("new.yaml", &yaml::config_map("new", "a", "1"));
    fixture.site.await_data("new", "a", "1");
    fixture.converges(Instant::now());
    assert!(fixture.proxy.remove(rule).fired >= 2);
    fixture.sent.assert_no_deletes();
    for name in ["follows", "defended", "new"] {
        let sent = fixture.sent.to("configmaps", name);
        assert!(sent.len() <= 2, "{name}: {sent:#?}");
    }
    let created: Vec<_> =
        fixture.sent.to("configmaps", "new").into_iter().filter(|e| e.code == 201).collect();
    assert_eq!(created.len(), 1, "{created:#?}");
}

#[test]
fn an_answer_that_never_comes() {
    survives("net-silent", &Requests::any(), Fault::Refuse(ResponseCut::Silence));
}

#[test]
fn an_answer_that_is_lost_after_the_write_took_effect() {
    let fixture = survives("net-lost", &writes(), Fault::DropAnswer(ResponseCut::Silence));
    let sent = fixture.sent.to("configmaps", "defended");
    // One that repaired it, and one at most that could not know that.
    assert!(sent.len() <= 2, "{sent:#?}");
}

#[test]
fn a_write_that_reaches_the_server_twice() {
    survives("net-twice", &writes(), Fault::Duplicate);
}

#[test]
fn a_slow_server() {
    let slow = Fault::Delay(Duration::from_millis(300), Duration::from_millis(1500));
    survives("net-slow", &Requests::any(), slow);
}

#[test]
fn one_kind_that_fails_holds_up_only_its_own_objects() {
    let mut fixture = fixture("net-kind");
    let secrets = Requests::any().path_suffix("/secrets");
    let of_one = Requests::any().path_suffix("/secrets/key");
    let forbidden = || Fault::Replace(Answer::error(403, "Forbidden"));
    let (list, one) = (
        fixture.proxy.add(Rule::new(secrets, forbidden())),
        fixture.proxy.add(Rule::new(of_one, forbidden())),
    );
    fixture.proxy.end_open(&Requests::any().watches().path_suffix("/secrets"), ResponseCut::Close);
    fixture.site.api.merge(&fixture.site.at("Secret", "key"), "them", &json!({"data": {"token": "eA=="}}));
    let since = Instant::now();
    fixture.disturb();
    // The one kind fails all the time.
    fixture.site.await_data("follows", "a", "2");
    fixture.site.await_data("defended", "a", "1");
    thread::sleep(OUTAGE_DURATION.saturating_sub(since.elapsed()));
    assert!(fixture.proxy.remove(list).fired + fixture.proxy.remove(one).fired <= MAX_CALM_CALLS);
    let back = Instant::now();
    eventually("the Secret is repaired", RETURN, || {
        let token = fixture.site.value("Secret", "key", "/data/token");
        if token == "cmlnaHQ=" { Ok(()) } else { Err(token.to_string()) }
    });
    fixture.converges(back);
    fixture.sent.assert_no_deletes();
}

/// The time after a role was granted by which everything must be settled: twice the longest pause
/// between two tries.
const GRANT: Duration = Duration::from_secs(30);

/// The pause after the first try that the user was not allowed. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest such pause.
const MAX_PAUSE: Duration = Duration::from_secs(15);

fn grant(site: &TestNamespace<'_>, name: &str, group: &str, resources: &[&str]) {
    grant_verbs(site, name, group, resources, &["*"]);
}

fn grant_verbs(site: &TestNamespace<'_>, name: &str, group: &str, resources: &[&str], verbs: &[&str]) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": resources, "verbs": verbs}]});
    site.api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", "setup", &role);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name}, "subjects": [{"kind": "User", "name": site.user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
    site.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "setup", &binding);
}

/// Grants what seals need, and no other Secret: what is written without a seal is never pruned.
fn grant_key(site: &TestNamespace<'_>) {
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["config-key.rhumb.dev"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]);
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let place = format!("/apis/{version}/namespaces/{}", site.system());
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": {"name": "key"}, "rules": rules});
    site.api.create(&format!("{place}/roles"), "setup", &role);
    let binding = json!({"apiVersion": version, "kind": "RoleBinding", "metadata": {"name": "key"},
        "subjects": [{"kind": "User", "name": site.user, "apiGroup": group}],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "key"}});
    site.api.create(&format!("{place}/rolebindings"), "setup", &binding);
}

#[test]
fn a_kind_that_the_user_may_not_touch_waits_with_the_reason_and_is_taken_up_when_it_may() {
    let mut site = TestNamespace::new("net-rbac");
    site.limited();
    grant(&site, "net-rbac-basic", "", &["configmaps", "namespaces", "services"]);
    grant_key(&site);
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("old.yaml", yaml::config_map("old", "a", "1")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", yaml::service("web", "web")),
    ]);
    let daemon = site.daemon(repo.path());
    site.await_data("env", "a", "1");
    site.await_object("Service", "web");
    let window = site.window();
    daemon.says(&["Secret", "the user may not do this"]);
    // The rest is followed and defended; nothing is pruned while not everything can be seen.
    repo.remove("old.yaml");
    repo.change("env.yaml", &yaml::config_map("env", "a", "2"));
    site.await_data("env", "a", "2");
    site.api.delete(&site.at("Service", "web"));
    site.await_object("Service", "web");
    assert!(!site.has("Secret", "key"));
    assert!(site.has("ConfigMap", "old"));
    window.assert_no_deletes();
    grant(&site, "net-rbac-secrets", "", &["secrets"]);
    eventually("the Secret is there", GRANT, || site.get("Secret", "key").ok_or("it is not"));
    // Now it is known that only one of four objects is to go.
    eventually("what was removed is pruned", DEFAULT_TIMEOUT, || {
        if site.has("ConfigMap", "old") { Err("it is there") } else { Ok(()) }
    });
    let deletes = window.deletes();
    assert_eq!(deletes.iter().filter(|event| event.code == 200).count(), 1, "{deletes:#?}");
}

#[test]
fn what_the_user_may_read_and_not_write_is_tried_less_and_less_and_written_soon_after_he_may() {
    let mut site = TestNamespace::new("net-read");
    site.limited();
    grant(&site, "net-read-basic", "", &["configmaps", "namespaces"]);
    grant_verbs(&site, "net-read-secrets", "", &["secrets"], &["get", "list", "watch"]);
    let names: Vec<String> = (0..5).map(|n| format!("key{n}")).collect();
    let files: Vec<_> =
        names.iter().map(|name| (format!("{name}.yaml"), yaml::secret(name, "a", "b"))).collect();
    let repo = Repo::new(&files);
    let daemon = site.daemon(repo.path());
    let window = site.window();
    daemon.says(&["WARN", "refused", "key4", "may not do this"]);
    for name in &names {
        // The pause after the last one would be longer than what may pass, if nothing bounded it.
        let tries = in_time(&format!("{name} is tried again and again"), GRANT * 3, || {
            let tries = window.to("secrets", name);
            if tries.len() >= 8 { Ok(tries) } else { Err(format!("{} tries", tries.len())) }
        });
        for (number, pair) in tries.windows(2).enumerate() {
            // Up to a fifth less than the doubled pause, by chance.
            let least = FIRST_PAUSE.saturating_mul(1 << number).min(MAX_PAUSE).mul_f64(0.75);
            // It is longer than the pause by the first request. The log notes an answer some moments
            // after it was sent, so that counts from no known time.
            let pause = pair[1].timestamp.duration_since(pair[0].timestamp).unsigned_abs();
            assert!(pause >= least, "{name}: {pause:?} after try {number}, not {least:?}");
        }
    }
    grant(&site, "net-read-all", "", &["secrets"]);
    let all = || names.iter().find(|name| !site.has("Secret", name)).map_or(Ok(()), |name| Err(name.clone()));
    eventually("all are there", GRANT, all);
    window.assert_no_deletes();
}
