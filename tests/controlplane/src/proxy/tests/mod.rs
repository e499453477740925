//! Each fault as a client sees it, and what it leaves in the cluster.

mod client;

use std::time::{Duration, Instant};

use self::client::{Client, End};
use super::token::{ProxyUser, UserRights};
use super::{Answer, Fault, FaultProxy, Requests, ResponseCut, Rule, RuleUsage};
use crate::{Cluster, Part};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Silence of this length is taken for good.
const SILENCE: Duration = Duration::from_millis(1_500);
const LONG_TIMEOUT: Duration = Duration::from_secs(180);
/// An event that a watch streams is there within this time, and not at the end of the watch.
const STREAMED: Duration = Duration::from_secs(20);

fn rhumb() -> ProxyUser {
    ProxyUser { user: "rhumb".to_owned(), rank: UserRights::Master }
}

fn object(name: &str) -> String {
    format!(r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}"#)
}

fn exists(cluster: &Cluster, name: &str) -> bool {
    !cluster.kubectl(&["get", "configmap", name, "--ignore-not-found", "-o", "name"]).unwrap().is_empty()
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come true in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_proxy_spoils_what_it_is_asked_to() {
    let cluster = Cluster::builder().bare().audit().start().unwrap();
    let proxy = cluster.fault_proxy(1).unwrap();
    faults_of_writes(&cluster, &proxy);
    users(&cluster, &proxy);
    watches(&cluster, &proxy);
    counting(&cluster, &proxy);
    server_down(&cluster, &proxy);
}

/// Checks every fault: what the client sees, and whether the object was made.
fn faults_of_writes(cluster: &Cluster, proxy: &FaultProxy) {
    let pause = Duration::from_millis(300);
    let busy = Answer::error(429, "TooManyRequests").header("Retry-After", "7");
    for (name, fault, (status, end, body), made) in [
        ("pass", Fault::Pass, (201, End::Complete, None), true),
        ("refuse-close", Fault::Refuse(ResponseCut::Close), (0, End::Closed, None), false),
        ("refuse-reset", Fault::Refuse(ResponseCut::Reset), (0, End::Reset, None), false),
        ("blackhole", Fault::Refuse(ResponseCut::Silence), (0, End::Silent, None), false),
        ("delay", Fault::Delay(pause, pause * 2), (201, End::Complete, None), true),
        ("drop-close", Fault::DropAnswer(ResponseCut::Close), (0, End::Closed, None), true),
        ("drop-reset", Fault::DropAnswer(ResponseCut::Reset), (0, End::Reset, None), true),
        ("drop-silence", Fault::DropAnswer(ResponseCut::Silence), (0, End::Silent, None), true),
        ("cut-head", Fault::Cut(0, ResponseCut::Close), (201, End::Closed, Some(0)), true),
        ("cut-close", Fault::Cut(10, ResponseCut::Close), (201, End::Closed, Some(10)), true),
        ("cut-reset", Fault::Cut(10, ResponseCut::Reset), (201, End::Reset, Some(10)), true),
        ("cut-silence", Fault::Cut(10, ResponseCut::Silence), (201, End::Silent, Some(10)), true),
        ("truncate", Fault::Truncate(10), (201, End::Complete, Some(10)), true),
        ("duplicate", Fault::Duplicate, (409, End::Complete, None), true),
        ("replace", Fault::Replace(busy.clone()), (429, End::Complete, None), false),
        ("replace-after", Fault::ReplaceAfter(Answer::new(500, "oops")), (500, End::Complete, Some(4)), true),
    ] {
        let rule = proxy.add(Rule::new(Requests::any().method("POST"), fault).times(1));
        let mut client = Client::connect(proxy, &rhumb());
        match (&end, status) {
            (End::Silent, 0) => client.patience(SILENCE),
            (End::Silent, _) => client.patience_in_body(SILENCE),
            _ => {}
        }
        let begun = Instant::now();
        let seen = client.ask("POST", MAPS, &object(name));
        assert_eq!((seen.status, &seen.end), (status, &end), "{name}: {seen:?}");
        if let Some(length) = body {
            assert_eq!(seen.body.len(), length, "{name}: {seen:?}");
        }
        assert!(name != "delay" || begun.elapsed() >= pause, "{:?}", begun.elapsed());
        assert!(name != "replace" || seen.head.to_lowercase().contains("retry-after: 7"), "{}", seen.head);
        if end == End::Silent && made {
            wait_until(|| exists(cluster, name));
        }
        assert_eq!(exists(cluster, name), made, "{name}");
        assert_eq!(proxy.remove(rule), RuleUsage { matched: 1, fired: 1 }, "{name}");
        if end == End::Complete {
            // The connection goes on.
            let next = client.ask("GET", MAPS, "");
            assert_eq!((next.status, next.end), (200, End::Complete), "after {name}");
        }
    }
}

/// Checks that the API server sees the users, whoever they claim to be in other headers.
fn users(cluster: &Cluster, proxy: &FaultProxy) {
    let limited = ProxyUser { user: "nobody".to_owned(), rank: UserRights::Limited };
    assert_eq!(Client::connect(proxy, &limited).ask("GET", MAPS, "").status, 403);
    let name = proxy.kubeconfig("kubectl-user").unwrap();
    let output =
        cluster.kubectl_command().arg("--kubeconfig").arg(name).args(["get", "configmaps"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events = cluster.audit().unwrap();
    for user in ["rhumb", "nobody", "kubectl-user"] {
        assert!(events.iter().any(|event| event.user == user && event.resource == "configmaps"), "{user}");
    }
    assert!(events.iter().all(|event| event.user != "forged"));
    // A token that is none of the proxy's goes to the server, which does not know it.
    let mut stranger = Client::connect(proxy, &rhumb());
    stranger.token = "somebody".to_owned();
    assert_eq!(stranger.ask("GET", MAPS, "").status, 401);
    assert!(cluster.audit().unwrap().iter().any(|event| event.user.is_empty() && event.code == 401));
    let doubled = events.iter().filter(|event| event.name == "duplicate" && event.verb == "create");
    let mut doubled: Vec<_> = doubled.map(|event| (event.timestamp, event.code)).collect();
    doubled.sort_unstable();
    assert_eq!(doubled.iter().map(|(_, code)| *code).collect::<Vec<_>>(), [201, 409]);
}

/// Checks that watches stream, and can be ended while they run.
fn watches(cluster: &Cluster, proxy: &FaultProxy) {
    let all = Requests::any().watches();
    for (ending, expected) in [
        (ResponseCut::Close, Some(End::Closed)),
        (ResponseCut::Reset, Some(End::Reset)),
        (ResponseCut::Silence, Some(End::Silent)),
    ] {
        let name = format!("watched-{ending:?}").to_lowercase();
        let mut client = Client::connect(proxy, &rhumb());
        client.send("GET", &format!("{MAPS}?watch=true&fieldSelector=metadata.name%3D{name}"), "");
        let head = client.until("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        wait_until(|| proxy.open(&all) == 1);
        cluster.kubectl(&["create", "configmap", &name]).unwrap();
        let begun = Instant::now();
        let mut event = String::new();
        assert!(client.chunk(&mut event).unwrap());
        assert!(event.contains("ADDED") && event.contains(&name), "{event}");
        assert!(begun.elapsed() < STREAMED, "{:?}", begun.elapsed());

        if ending == ResponseCut::Silence {
            client.patience(SILENCE);
        }
        assert_eq!(proxy.end_open(&Requests::any().path_suffix("/secrets"), ending), 0);
        assert_eq!(proxy.end_open(&all, ending), 1);
        cluster.kubectl(&["delete", "configmap", &name]).unwrap();
        let error = client.chunk(&mut event).unwrap_err();
        let seen = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Some(End::Closed),
            std::io::ErrorKind::ConnectionReset => Some(End::Reset),
            std::io::ErrorKind::WouldBlock => Some(End::Silent),
            _ => None,
        };
        assert_eq!(seen, expected, "{ending:?}: {error}");
        drop(client);
        wait_until(|| proxy.open(&all) == 0);
    }

    let gone = Fault::Replace(Answer::watch_error(410, "Expired"));
    proxy.add(Rule::new(all, gone));
    let seen =
        Client::connect(proxy, &rhumb()).ask("GET", &format!("{MAPS}?watch=true&resourceVersion=1"), "");
    assert_eq!((seen.status, &seen.end), (200, &End::Complete));
    assert!(seen.body.contains("\"ERROR\"") && seen.body.contains("410"), "{}", seen.body);
    proxy.clear();
}

/// Checks that rules skip, count and end, and leave other requests alone.
fn counting(cluster: &Cluster, proxy: &FaultProxy) {
    let writes = Requests::any().method("POST").path_suffix("/configmaps").user("rhumb");
    let rule = proxy
        .add(Rule::new(writes, Fault::Replace(Answer::error(503, "ServiceUnavailable"))).skip(1).times(2));
    let mut client = Client::connect(proxy, &rhumb());
    let codes: Vec<u16> =
        (0..5).map(|number| client.ask("POST", MAPS, &object(&format!("counted-{number}"))).status).collect();
    assert_eq!(codes, [201, 503, 503, 201, 201]);
    assert_eq!(client.ask("GET", MAPS, "").status, 200);
    assert_eq!(proxy.hits(rule), RuleUsage { matched: 3, fired: 2 });
    assert!(!exists(cluster, "counted-1"));
    proxy.clear();
}

/// Checks that a dead server looks dead through the proxy, and that the proxy finds it again.
fn server_down(cluster: &Cluster, proxy: &FaultProxy) {
    let mut client = Client::connect(proxy, &rhumb());
    assert_eq!(client.ask("GET", MAPS, "").status, 200);
    cluster.kill(Part::Apiserver).unwrap();
    assert_eq!(client.ask("GET", MAPS, "").end, End::Closed);
    assert_eq!(Client::connect(proxy, &rhumb()).ask("GET", MAPS, "").end, End::Closed);
    cluster.start_apiserver().unwrap();
    assert_eq!(Client::connect(proxy, &rhumb()).ask("GET", MAPS, "").status, 200);
}
