//! Webhooks: who is heard, and that nobody else learns anything.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tokio::sync::watch;

use super::super::guard::RequestGuard;
use super::super::routes::{RouteSet, router};
use super::*;
use crate::heartbeat::Heartbeats;
use crate::report::{EndpointMetrics, EventRecorder, Metrics, ServiceNotifier, SystemdService};

const SECRET: &str = "It's a Secret to Everybody";
/// The example of GitHub's documentation: this secret and this body have this signature.
const BODY: &str = "Hello, World!";
const SIGNATURE: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

/// Returns a daemon whose loop has not begun, with these secrets.
fn served(secrets: &[(&str, &str)]) -> (TempDir, Router) {
    let dir = tempfile::tempdir().unwrap();
    for (name, secret) in secrets {
        fs::write(dir.path().join(name), secret).unwrap();
    }
    let process = ProcessHandle {
        running: watch::channel(None).1,
        heartbeats: Heartbeats::default(),
        metrics: Metrics::default(),
        service: SystemdService::new(ServiceNotifier::default()),
        recorder: EventRecorder::new(jiff::Timestamp::UNIX_EPOCH),
        endpoints: EndpointMetrics::default(),
    };
    let webhooks = WebhookReceiver::new(Some(dir.path().join("webhook-secret")), UnservedSources::Nobody);
    (dir, router(process, webhooks, RouteSet::Guarded(RequestGuard::of_socket(&[]))))
}

async fn post(router: &Router, path: &str, headers: &[(&str, &str)], body: Body) -> (u16, String) {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut router = router.clone();
    let answer = tower_answer(&mut router, request.body(body).unwrap()).await;
    let code = answer.status().as_u16();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn tower_answer(router: &mut Router, request: Request<Body>) -> Response {
    use hyper::service::Service as _;
    hyper_util::service::TowerToHyperService::new(router.clone()).call(request).await.unwrap()
}

#[test]
fn a_source_of_another_replica_is_no_error_and_one_of_nobody_is() {
    let check = |fetched, others, expected: Option<&str>| {
        let text = answer_text(fetched, others);
        assert_eq!(text.is_some(), expected.is_some());
        assert!(text.unwrap_or_default().contains(expected.unwrap_or_default()), "{text:?}");
    };
    check(Some(FetchResult::NoSource), UnservedSources::Nobody, None);
    check(Some(FetchResult::NoSource), UnservedSources::Replicas, Some("at its interval"));
    for others in [UnservedSources::Nobody, UnservedSources::Replicas] {
        check(Some(FetchResult::Begun), others, Some("is fetched"));
        check(None, others, Some("is fetched"));
    }
}

#[tokio::test]
async fn each_git_server_is_understood() {
    let hub = format!("sha256={SIGNATURE}");
    let mut wrong = SIGNATURE.replace('7', "8");
    for (header, value, expected) in [
        ("X-Hub-Signature-256", &*hub, 202),
        ("X-Hub-Signature", &hub, 202),
        ("X-Gitea-Signature", SIGNATURE, 202),
        ("X-Forgejo-Signature", &SIGNATURE.to_ascii_uppercase(), 202),
        ("X-Gitlab-Token", SECRET, 202),
        ("X-Gitea-Signature", &wrong.clone(), 403),
        ("X-Gitea-Signature", &hub, 403),
        ("X-Hub-Signature-256", SIGNATURE, 403),
        ("X-Hub-Signature", "sha1=0123", 403),
        ("X-Gitea-Signature", &SIGNATURE[..62], 403),
        ("X-Gitea-Signature", "", 403),
        ("X-Gitlab-Token", "", 403),
        ("X-Gitlab-Token", &SECRET[..25], 403),
        ("X-Unknown", SECRET, 403),
    ] {
        let (_dir, router) = served(&[("webhook-secret", SECRET)]);
        let (code, said) = post(&router, "/hook/shop", &[(header, value)], BODY.into()).await;
        assert_eq!(code, expected, "{header}: {value}: {said}");
        assert!(!said.contains(SECRET));
    }
    wrong.clear();
}

#[tokio::test]
async fn a_source_may_have_a_secret_of_its_own() {
    let (dir, router) = served(&[("webhook-secret.shop", SECRET)]);
    let token = [("X-Gitlab-Token", SECRET)];
    assert_eq!(post(&router, "/hook/shop", &token, BODY.into()).await.0, 202);
    // A source that is not there gets the same answer as a signature that is not right.
    let other = post(&router, "/hook/other", &token, BODY.into()).await;
    let wrong = post(&router, "/hook/shop", &[("X-Gitlab-Token", "wrong")], BODY.into()).await;
    let no_name = post(&router, "/hook/..%2Fshop", &token, BODY.into()).await;
    let no_text = post(&router, "/hook/%ff", &token, BODY.into()).await;
    assert_eq!(other.0, 403);
    assert_eq!((&other, &other, &other), (&wrong, &no_name, &no_text));
    // The file counts as it is now, and one that is too short counts for nothing.
    fs::write(dir.path().join("webhook-secret.shop"), "short\n").unwrap();
    assert_eq!(post(&router, "/hook/shop", &[("X-Gitlab-Token", "short")], BODY.into()).await.0, 403);
    fs::write(dir.path().join("webhook-secret.shop"), "").unwrap();
    assert_eq!(post(&router, "/hook/shop", &[("X-Gitlab-Token", "")], BODY.into()).await.0, 403);
    fs::write(dir.path().join("webhook-secret.shop"), "another secret of the day\r\n").unwrap();
    let token = [("X-Gitlab-Token", "another secret of the day")];
    assert_eq!(post(&router, "/hook/shop", &token, BODY.into()).await.0, 202);
}

// One of its own that is there and cannot be read is no leave to take the common one.
#[tokio::test]
async fn a_secret_that_cannot_be_read_is_replaced_by_no_other() {
    let token = [("X-Gitlab-Token", SECRET)];
    let (dir, router) = served(&[("webhook-secret", SECRET)]);
    let own = dir.path().join("webhook-secret.shop");
    mknodat(CWD, &own, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::create_dir(dir.path().join("webhook-secret.folder")).unwrap();
    std::os::unix::fs::symlink("nothing", dir.path().join("webhook-secret.link")).unwrap();
    for (source, expected) in [("shop", 403), ("folder", 403), ("link", 403), ("other", 202)] {
        let (code, said) = post(&router, &format!("/hook/{source}"), &token, BODY.into()).await;
        assert_eq!(code, expected, "{source}: {said}");
    }
    // A common one that cannot be read is not taken for none: the answer is the same.
    fs::remove_file(dir.path().join("webhook-secret")).unwrap();
    fs::create_dir(dir.path().join("webhook-secret")).unwrap();
    assert_eq!(post(&router, "/hook/other", &token, BODY.into()).await.0, 403);
    fs::remove_file(&own).unwrap();
    fs::write(&own, SECRET).unwrap();
    assert_eq!(post(&router, "/hook/shop", &token, BODY.into()).await.0, 202);
}

#[tokio::test]
async fn a_secret_of_blanks_is_none() {
    let blanks = " ".repeat(32);
    let mut code = <Mac as hmac::KeyInit>::new_from_slice(blanks.as_bytes()).unwrap();
    code.update(BODY.as_bytes());
    let bytes = code.finalize().into_bytes();
    let digits = bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"));
    let (_dir, router) = served(&[("webhook-secret", &blanks)]);
    let signed = [("X-Gitea-Signature", &*digits)];
    assert_eq!(post(&router, "/hook/shop", &signed, BODY.into()).await.0, 403);
}

#[tokio::test]
async fn who_asks_for_what_is_not_there_makes_no_new_series() {
    let (_dir, router) = served(&[("webhook-secret", SECRET)]);
    for name in ["shop", "other", "x%22%0Ay", "1", "2", "3"] {
        post(&router, &format!("/hook/{name}"), &[("X-Gitlab-Token", "wrong")], BODY.into()).await;
    }
    post(&router, "/hook/shop", &[("X-Gitlab-Token", SECRET)], BODY.into()).await;
    post(&router, "/hook/shop", &[("Content-Length", "2000000")], BODY.into()).await;
    for head in [("host", "evil.example.org"), ("origin", "http://evil.example.org")] {
        let asked = Request::get("/v1/status").header(head.0, head.1).body(Body::empty()).unwrap();
        tower_answer(&mut router.clone(), asked).await;
    }
    let asked = Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = tower_answer(&mut router.clone(), asked).await;
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let mut counted: Vec<&str> = text
        .lines()
        .filter(|line| {
            line.starts_with("rhumb_webhooks_total") || line.starts_with("rhumb_http_refused_total")
        })
        .collect();
    counted.sort_unstable();
    assert_eq!(
        counted,
        [
            "rhumb_http_refused_total{why=\"connections\"} 0",
            "rhumb_http_refused_total{why=\"name\"} 1",
            "rhumb_http_refused_total{why=\"site\"} 1",
            "rhumb_http_refused_total{why=\"token\"} 0",
            "rhumb_webhooks_total{source=\"other\",outcome=\"refused\"} 6",
            "rhumb_webhooks_total{source=\"other\",outcome=\"taken\"} 1",
            "rhumb_webhooks_total{source=\"other\",outcome=\"unreadable\"} 1",
        ]
    );
}

#[tokio::test]
async fn without_a_secret_there_are_no_hooks() {
    let (_dir, router) = served(&[]);
    let hook = post(&router, "/hook/shop", &[("X-Gitlab-Token", SECRET)], BODY.into()).await;
    let (code, said) = hook;
    assert_eq!(code, 404, "{said}");
    let mut router = router;
    let asked = Request::get("/hook/shop").body(Body::empty()).unwrap();
    assert_eq!(tower_answer(&mut router, asked).await.status(), 405);
    let asked = Request::post("/v1/status").body(Body::empty()).unwrap();
    assert_eq!(tower_answer(&mut router, asked).await.status(), 405);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let token = [("X-Gitlab-Token", SECRET)];
    let (_dir, router) = served(&[("webhook-secret", SECRET)]);
    assert_eq!(post(&router, "/hook/shop", &token, vec![0; MAX_WEBHOOK_BYTES].into()).await.0, 202);
    assert_eq!(post(&router, "/hook/shop", &token, vec![0; MAX_WEBHOOK_BYTES + 1].into()).await.0, 413);
    let parts = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0_u8; 1 << 16]));
    assert_eq!(post(&router, "/hook/shop", &token, Body::from_stream(parts)).await.0, 413);
    // A body that announces too much is not even read.
    let never = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let announced = [token[0], ("Content-Length", "99999999999999999999")];
    let more = [token[0], ("Content-Length", "1048577")];
    assert_eq!(post(&router, "/hook/shop", &more, Body::from_stream(never)).await.0, 413);
    assert_ne!(post(&router, "/hook/shop", &announced, BODY.into()).await.0, 500);
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_are_given_up() {
    let (_dir, router) = served(&[("webhook-secret", SECRET)]);
    let never = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    assert_eq!(post(&router, "/hook/shop", &[], Body::from_stream(never)).await.0, 408);
}

#[tokio::test]
async fn floods_end_before_the_body() {
    let (_dir, router) = served(&[("webhook-secret", SECRET)]);
    let flood = async |path: &str| {
        for sent in 0..1000 {
            let never = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
            // Too large to be read, and so answered without it.
            let headers = [("Content-Length", "9999999")];
            match post(&router, path, &headers, Body::from_stream(never)).await.0 {
                413 => {}
                429 => return sent,
                other => panic!("{other}"),
            }
        }
        panic!("no flood");
    };
    let of_shop = flood("/hook/shop").await;
    assert!(of_shop >= 10, "{of_shop}");
    // Another source is heard all the same.
    let token = [("X-Gitlab-Token", SECRET)];
    assert_eq!(post(&router, "/hook/another", &token, BODY.into()).await.0, 202);
}
