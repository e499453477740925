//! Letters, held against what each recipient takes, and their way to a server on this machine.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::config::{Forge, NotificationEvent, NotifiedSources, Recipient, UrlSource};
use crate::object::{GroupKind, ObjectId};
use crate::report::{EventDraft, EventReason};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const SECRET: &str = "canary-in-a-token";

/// One request that a server received.
#[derive(Clone, Debug, PartialEq)]
struct ReceivedRequest {
    path: String,
    token: String,
    body: Value,
}

/// A server that answers with these codes, one after another, and then with 200.
struct ScriptedServer {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ScriptedServer {
    async fn start(codes: &[u16]) -> Self {
        let sent: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let codes = Arc::new(Mutex::new(codes.to_vec()));
        let heard = sent.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let text = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            let token = text("authorization").or(text("private-token")).unwrap_or_default();
            let body = serde_json::from_slice(&body).unwrap();
            assert_eq!((method, text("content-type").as_deref()), (Method::POST, Some("application/json")));
            heard.lock().unwrap().push(ReceivedRequest { path: uri.to_string(), token, body });
            let mut codes = codes.lock().unwrap();
            let code = if codes.is_empty() { 200 } else { codes.remove(0) };
            async move { StatusCode::from_u16(code).unwrap() }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum_serve(listener, Router::new().fallback(answer)).await });
        Self { address, sent }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until so many notifications have come.
    async fn await_sent(&self, count: usize) -> Vec<ReceivedRequest> {
        let come = async {
            while self.sent.lock().unwrap().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), come).await.unwrap();
        self.sent.lock().unwrap().clone()
    }
}

async fn axum_serve(listener: tokio::net::TcpListener, router: Router) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(hyper_util::rt::TokioIo::new(stream), service),
        );
    }
}

fn draft(reason: EventReason, message: &str) -> EventDraft {
    EventDraft {
        reason,
        source: "shop".into(),
        object: Some(ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web")),
        regarding: None,
        message: message.to_owned().into(),
        revision: Some(COMMIT.to_owned()),
        author: Some("Ann".to_owned()),
        subject: Some("Use <b> & \"c\"".to_owned()),
    }
}

fn event(reason: EventReason, message: &str) -> EventRecord {
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    recorder.record(Timestamp::UNIX_EPOCH, draft(reason, message));
    (*recorder.subscribe_after(0).backlog[0]).clone()
}

fn all() -> BTreeSet<NotificationEvent> {
    NotificationEvent::ALL.into()
}

fn secret(dir: &TempDir, text: &str) -> std::path::PathBuf {
    let file = dir.path().join("secret");
    std::fs::write(&file, format!("{text}\n")).unwrap();
    file
}

fn forge(forge: Forge, url: &str, token: &Path) -> Recipient {
    Recipient::Forge {
        forge,
        url: url.to_owned(),
        repository: "acme/shop".to_owned(),
        token: token.to_owned(),
        context: "rhumb/{source}".to_owned(),
    }
}

#[test]
fn each_recipient_is_notified_in_its_own_words() {
    fn check(to: &Recipient, occasion: NotificationEvent, expected: (&str, Value)) {
        let failed = event(EventReason::RolloutFailed, "revision 0123456789ab: no progress for 60s");
        let notification = notification(to, occasion, &failed).unwrap();
        assert_eq!((&*notification.path, notification.body), expected);
    }
    let file = Path::new("/etc/rhumb/token");
    let description = "revision 0123456789ab: no progress for 60s";
    let words =
        "shop: Deployment shop/web: revision 0123456789ab: no progress for 60s (Ann: Use <b> & \"c\")";
    check(
        &Recipient::Webhook { url: UrlSource::Url("https://h/x".to_owned()), token: None },
        NotificationEvent::Failed,
        (
            "",
            json!({
                "apiVersion": "notification.rhumb.dev/v1", "kind": "Notification", "occasion": "failed", "text": words,
                "number": 1, "at": "1970-01-01T00:00:00Z", "reason": "RolloutFailed", "source": "shop",
                "object": {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"},
                "message": description, "revision": COMMIT, "author": "Ann", "subject": "Use <b> & \"c\"",
            }),
        ),
    );
    let text = format!(":warning: {}", words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    check(&Recipient::Slack { url: file.into() }, NotificationEvent::Failed, ("", json!({ "text": text })));
    let description_text = format!("Deployment shop/web: {description}");
    let status =
        |key: &str, state: &str| json!({"state": state, key: "rhumb/shop", "description": description_text});
    let path = |before: &str, name: &str| format!("{before}/{name}/statuses/{COMMIT}");
    check(
        &forge(Forge::GitHub, "https://api.github.com", file),
        NotificationEvent::Failed,
        (&path("/repos", "acme/shop"), status("context", "failure")),
    );
    check(
        &forge(Forge::Gitea, "https://git.example.org/", file),
        NotificationEvent::Succeeded,
        (&path("/api/v1/repos", "acme/shop"), status("context", "success")),
    );
    check(
        &forge(Forge::GitLab, "https://gitlab.com", file),
        NotificationEvent::RolledBack,
        (&path("/api/v4/projects", "acme%2Fshop"), status("name", "failed")),
    );
}

#[test]
fn a_forge_hears_of_commits_alone() {
    let to = forge(Forge::GitHub, "https://api.github.com", Path::new("/t"));
    assert!(
        notification(&to, NotificationEvent::PruneWaiting, &event(EventReason::PruneWaiting, "3 deletions"))
            .is_none()
    );
    let folder =
        EventRecord { author: None, subject: None, ..event(EventReason::RevisionSettled, "all well") };
    assert!(notification(&to, NotificationEvent::Succeeded, &folder).is_none());
    let long = event(EventReason::RolloutFailed, &"é".repeat(400));
    let notification = notification(&to, NotificationEvent::Failed, &long).unwrap();
    assert_eq!(notification.body["description"].as_str().unwrap().chars().count(), 140);
}

// Pods and people write what they like.
#[test]
fn no_words_of_others_steer_or_summon() {
    let hostile = event(EventReason::RolledBack, "Deployment shop/web: \0<!channel>\n\u{202e}no");
    let to = forge(Forge::GitLab, "https://gitlab.com", Path::new("/t"));
    let status = notification(&to, NotificationEvent::RolledBack, &hostile).unwrap();
    let shown = "Deployment shop/web: \u{fffd}<!channel>\u{fffd}\u{fffd}no";
    assert_eq!(status.body["description"], json!(shown), "its name is there once");
    let slack = notification(&Recipient::Slack { url: "/t".into() }, NotificationEvent::RolledBack, &hostile)
        .unwrap();
    let text = slack.body["text"].as_str().unwrap();
    assert!(text.contains("\u{fffd}&lt;!channel&gt;\u{fffd}\u{fffd}no (Ann: "), "{text}");
}

/// A collector of what is logged.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Ends the worker as a process that ends does, and as a configuration that names others does.
#[tokio::test]
async fn what_is_left_at_the_end_is_said() {
    let page = LogCapture::default();
    let to = page.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(lines);
    // While there is only one subscriber, another thread that comes to a line first decides for all
    // that nobody wants it.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let server = ScriptedServer::start(&[503; 9]).await;
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let announcing = announcing(vec![webhook(&server)], &recorder, &[Duration::from_hours(1)]);
    until_listening(&recorder).await;
    for message in ["one", "two", "three"] {
        recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, message));
    }
    server.await_sent(1).await;
    announcing.abort();
    let _ = announcing.await;
    let come = async {
        while page.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), come).await.unwrap();
    let said = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    let expected = format!("the webhook at {}: a notification was not delivered", server.address);
    assert!(said.contains(&expected) && said.contains("left=3"), "{said}");
}

#[tokio::test]
async fn what_happens_is_brought_with_its_token() {
    let (server, dir) = (ScriptedServer::start(&[]).await, TempDir::new().unwrap());
    let file = secret(&dir, SECRET);
    let recipients = [Forge::GitHub, Forge::Gitea, Forge::GitLab].map(|kind| NotifyConfig {
        to: forge(kind, &server.url(), &file),
        sources: NotifiedSources::Named(vec!["shop".to_owned()]),
        on: all(),
    });
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let announcing = announcing(recipients.into(), &recorder, &[]);
    until_listening(&recorder).await;
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RevisionSettled, "all well"));
    let mut tokens: Vec<String> = server.await_sent(3).await.into_iter().map(|sent| sent.token).collect();
    tokens.sort();
    assert_eq!(tokens, [format!("Bearer {SECRET}"), SECRET.to_owned(), format!("token {SECRET}")]);
    announcing.abort();
}

/// Notifies of thousands of objects in one turn of the loop.
#[tokio::test]
async fn what_is_asked_for_is_not_lost_among_thousands() {
    let server = ScriptedServer::start(&[]).await;
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let announcing = announcing(vec![webhook(&server)], &recorder, &[]);
    until_listening(&recorder).await;
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, "the one"));
    (0..5000).for_each(|_| recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::Created, "of many")));
    assert_eq!(server.await_sent(1).await[0].body["message"], json!("the one"));
    announcing.abort();
}

// The last status is the one that stays.
#[tokio::test]
async fn the_newest_is_sent_although_too_much_waits() {
    let server = ScriptedServer::start(&[]).await;
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let announcing = announcing(vec![webhook(&server)], &recorder, &[]);
    until_listening(&recorder).await;
    for number in 1..=200 {
        recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, &number.to_string()));
    }
    let sent = server.await_sent(64).await;
    assert_eq!(sent.last().unwrap().body["message"], json!("200"));
    announcing.abort();
}

#[tokio::test]
async fn who_stays_keeps_what_waits_for_it() {
    let (staying, new) = (ScriptedServer::start(&[503]).await, ScriptedServer::start(&[]).await);
    let to = |server: &ScriptedServer, on: &[NotificationEvent]| NotifyConfig {
        to: Recipient::Webhook { url: UrlSource::Url(server.url()), token: None },
        sources: NotifiedSources::All,
        on: on.iter().copied().collect(),
    };
    let (recipients, current) = watch::channel(vec![to(&staying, &NotificationEvent::ALL)]);
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let heard = recorder.clone();
    let announcing = tokio::spawn(async move {
        announce_with(current, &heard, &[Duration::from_secs(1)]).await;
    });
    until_listening(&recorder).await;
    for message in ["one", "two"] {
        recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, message));
    }
    staying.await_sent(1).await;
    recipients
        .send_replace(vec![to(&new, &NotificationEvent::ALL), to(&staying, &[NotificationEvent::Failed])]);
    // At once: whoever is configured before it happens is notified of it.
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, "three"));
    let messages = |sent: Vec<ReceivedRequest>| {
        sent.into_iter().map(|sent| sent.body["message"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(messages(new.await_sent(1).await), ["three"]);
    assert_eq!(messages(staying.await_sent(4).await), ["one", "one", "two", "three"]);
    drop(recipients);
    announcing.await.unwrap();
}

/// Distinguishes two clusters that follow one repository.
#[test]
fn a_status_has_the_context_that_is_configured() {
    let mut to = forge(Forge::GitHub, "https://api.github.com", Path::new("/t"));
    if let Recipient::Forge { context, .. } = &mut to {
        *context = "eu/{source}/{source}".to_owned();
    }
    let status =
        |reason, message| notification(&to, NotificationEvent::Failed, &event(reason, message)).unwrap();
    let (first, second) = (status(EventReason::RolloutFailed, "a"), status(EventReason::RolledBack, "b"));
    assert_eq!(first.body["context"], json!("eu/shop/shop"));
    assert!(second.supersedes(&first));
}

/// Reports a fault in a recipient's files before anything happens.
#[test]
fn files_are_looked_at_before_they_are_needed() {
    let dir = TempDir::new().unwrap();
    let to = forge(Forge::GitHub, "https://api.github.com", &dir.path().join("none"));
    let said = delivery_obstacle(&to).unwrap();
    assert!(said.starts_with("acme/shop at api.github.com cannot be notified: "), "{said}");
    assert!(said.contains("none: ") && said.ends_with("No such file or directory (os error 2)"), "{said}");
    let slack = |text: &str| Recipient::Slack { url: secret(&dir, text) };
    assert!(
        delivery_obstacle(&slack(&format!("http://example.org/{SECRET}"))).unwrap().ends_with("this machine")
    );
    assert_eq!(delivery_obstacle(&slack(&format!("https://example.org/{SECRET}"))), None);
    let of = |name: &str| Recipient::Webhook {
        url: UrlSource::Url("https://h".into()),
        token: Some(dir.path().join(name)),
    };
    assert_eq!(delivery_obstacle(&of("secret")), None);
    assert!(delivery_obstacle(&of("gone")).is_some());
}

#[tokio::test]
async fn only_what_is_asked_for_is_sent() {
    let server = ScriptedServer::start(&[]).await;
    let to = Recipient::Webhook { url: UrlSource::Url(server.url()), token: None };
    let recipient = |source: &str, on: &[NotificationEvent]| NotifyConfig {
        to: to.clone(),
        sources: NotifiedSources::Named(vec![source.to_owned()]),
        on: on.iter().copied().collect(),
    };
    let recipients =
        vec![recipient("shop", &[NotificationEvent::Failed]), recipient("other", &NotificationEvent::ALL)];
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, "before it began"));
    let announcing = announcing(recipients, &recorder, &[]);
    until_listening(&recorder).await;
    for (reason, message) in [
        (EventReason::RevisionSettled, "not asked for"),
        (EventReason::DriftRepaired, "reported nowhere"),
        (EventReason::RolloutFailed, "told"),
    ] {
        recorder.record(Timestamp::UNIX_EPOCH, draft(reason, message));
    }
    let sent = server.await_sent(1).await;
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0].body["message"], &sent[0].body["occasion"]), (&json!("told"), &json!("failed")));
    announcing.abort();
}

#[tokio::test]
async fn a_server_in_trouble_is_tried_again_and_one_that_refuses_is_not() {
    let server = ScriptedServer::start(&[503, 429, 401, 200, 404, 200]).await;
    let dir = TempDir::new().unwrap();
    let to = Recipient::Slack { url: secret(&dir, &format!("{}/services/{SECRET}", server.url())) };
    let recipients = vec![NotifyConfig { to, sources: NotifiedSources::All, on: all() }];
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let rests = [Duration::from_millis(1); 5];
    let announcing = announcing(recipients, &recorder, &rests);
    until_listening(&recorder).await;
    for message in ["one", "two", "three"] {
        recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, message));
    }
    let sent = server.await_sent(6).await;
    let said = |sent: &ReceivedRequest| {
        let text = sent.body["text"].as_str().unwrap().to_owned();
        ["one", "two", "three"].into_iter().find(|word| text.contains(*word)).unwrap()
    };
    assert_eq!(sent.iter().map(said).collect::<Vec<_>>(), ["one", "one", "one", "one", "two", "three"]);
    assert!(sent.iter().all(|sent| sent.path == format!("/services/{SECRET}")));
    announcing.abort();
}

#[tokio::test]
async fn no_failure_shows_a_secret() {
    async fn check(notification: Notification, expected: &str) {
        let failed = NotificationClient::new().deliver(&notification).await.unwrap_err();
        let words = format!("{failed:?}");
        assert!(words.contains(expected), "{words}");
        assert!(!words.contains(SECRET), "{words}");
    }
    let dir = TempDir::new().unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = |url: &str| Notification {
        url: UrlSource::File(secret(&dir, url)),
        path: String::new(),
        token: None,
        body: json!({}),
        status: None,
    };
    check(to(&format!("http://{closed}/{SECRET}")), "it cannot be reached: Connection refused").await;
    check(to(&format!("http://192.0.2.1/{SECRET}")), "not https").await;
    check(to(&format!("two words {SECRET}")), "a single word").await;
    check(to(&format!("https://user:{SECRET}@example.org/")), "not https").await;
    let gone = Notification { url: UrlSource::File(dir.path().join("none")), ..to("") };
    check(gone, "No such file").await;
    let name = notification::name(&Recipient::Webhook {
        url: UrlSource::Url(format!("https://h:1/{SECRET}")),
        token: None,
    });
    assert_eq!(name, "the webhook at h:1");
}

fn announcing(
    recipients: Vec<NotifyConfig>,
    recorder: &EventRecorder,
    rests: &[Duration],
) -> tokio::task::JoinHandle<()> {
    let (recorder, rests) = (recorder.clone(), rests.to_vec());
    tokio::spawn(async move {
        let (_recipients, current) = watch::channel(recipients);
        announce_with(current, &recorder, &rests).await;
    })
}

#[tokio::test]
async fn others_are_notified_after_a_new_configuration() {
    let (before, after) = (ScriptedServer::start(&[]).await, ScriptedServer::start(&[]).await);
    let to = |server: &ScriptedServer| NotifyConfig {
        to: Recipient::Webhook { url: UrlSource::Url(server.url()), token: None },
        sources: NotifiedSources::All,
        on: all(),
    };
    let (recipients, current) = watch::channel(vec![to(&before)]);
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let announcing = tokio::spawn(announce(current, recorder.clone()));
    until_listening(&recorder).await;
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, "one"));
    before.await_sent(1).await;
    recipients.send_replace(vec![to(&after)]);
    // No event shows when the new ones listen: what happens before is not sent to them.
    let come = async {
        while after.sent.lock().unwrap().is_empty() {
            recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, "two"));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), come).await.unwrap();
    drop(recipients);
    announcing.await.unwrap();
}

/// Notifies one entry of failures and another one of the rest, where both set the same status.
#[tokio::test]
async fn two_entries_for_one_repository_keep_the_order_of_its_statuses() {
    let (server, dir) = (ScriptedServer::start(&[503]).await, TempDir::new().unwrap());
    let to = forge(Forge::GitHub, &server.url(), &secret(&dir, SECRET));
    let only = |on: NotificationEvent| NotifyConfig {
        to: to.clone(),
        sources: NotifiedSources::All,
        on: [on].into(),
    };
    let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
    let entries = vec![
        only(NotificationEvent::Failed),
        only(NotificationEvent::Succeeded),
        only(NotificationEvent::Succeeded),
    ];
    // Longer than it takes to record what follows, also on a busy machine.
    let announcing = announcing(entries, &recorder, &[Duration::from_secs(2)]);
    until_listening(&recorder).await;
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RolloutFailed, "bad"));
    server.await_sent(1).await;
    recorder.record(Timestamp::UNIX_EPOCH, draft(EventReason::RevisionSettled, "well"));
    let other =
        EventDraft { revision: Some(COMMIT.replace('0', "f")), ..draft(EventReason::RolloutFailed, "next") };
    recorder.record(Timestamp::UNIX_EPOCH, other);
    let states: Vec<Value> =
        server.await_sent(3).await.into_iter().map(|sent| sent.body["description"].clone()).collect();
    let expected = ["bad", "well", "next"].map(|words| json!(format!("Deployment shop/web: {words}")));
    assert_eq!(states, expected, "the failure that was refused once does not come after the success");
    announcing.abort();
}

/// Returns a webhook at a server that is notified of everything.
fn webhook(server: &ScriptedServer) -> NotifyConfig {
    let to = Recipient::Webhook { url: UrlSource::Url(server.url()), token: None };
    NotifyConfig { to, sources: NotifiedSources::All, on: all() }
}

/// Waits until somebody listens.
async fn until_listening(recorder: &EventRecorder) {
    while recorder.followers() == 0 {
        tokio::task::yield_now().await;
    }
}
