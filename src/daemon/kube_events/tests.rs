//! The API server's possible answers to an Event, and their consequences.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::cluster::Connection;
use crate::engine::Uid;
use crate::object::{Gvk, ObjectId};
use crate::report::{EventDraft, EventReason, RegardingObjects};

/// A writer, and an API server that gives each Event the next of these answers.
struct WriterFixture {
    writer: EventWriter,
    recorder: EventRecorder,
    objects_with_intents: Arc<Mutex<Vec<String>>>,
}

impl WriterFixture {
    async fn new(answers: &[(u16, Value)]) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (heard, answers) = (asked.clone(), Arc::new(Mutex::new(answers.to_vec())));
        let answer = move |method: Method, uri: Uri| {
            let is_event = uri.path().contains("/events");
            let mut answers = answers.lock().unwrap();
            let (code, body) = if is_event && !answers.is_empty() {
                answers.remove(0)
            } else {
                (201, json!({"kind": "Event"}))
            };
            if is_event {
                heard.lock().unwrap().push(format!("{method} {code}"));
            }
            async move { (StatusCode::from_u16(code).unwrap(), body.to_string()) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router: Router = Router::new().fallback(answer);
        tokio::spawn(async move {
            loop {
                let stream = hyper_util::rt::TokioIo::new(listener.accept().await.unwrap().0);
                let service = hyper_util::service::TowerToHyperService::new(router.clone());
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("config");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig), ..Connection::default() };
        let cluster = Cluster::connect(&connection).await.unwrap();
        let (_, terms) = watch::channel(None);
        let correlator = EventCorrelator::new("rhumb-system");
        let writer = EventWriter { cluster, terms, correlator, denied: HashMap::new(), rest: None };
        Self { writer, recorder: EventRecorder::new(Timestamp::UNIX_EPOCH), objects_with_intents: asked }
    }

    fn happens(&mut self, name: &str) {
        let gvk = Gvk::new("apps", "v1", "Deployment");
        let id = ObjectId::new(&gvk.group_kind(), Some("shop"), name);
        let draft = EventDraft {
            reason: EventReason::Refused,
            source: "shop".into(),
            object: Some(id.clone()),
            regarding: Some(RegardingObjects {
                object: Some((id, gvk, Some(Uid("u".into())))),
                inventory: None,
            }),
            message: "no".to_owned().into(),
            revision: None,
            author: None,
            subject: None,
        };
        self.recorder.record(Timestamp::UNIX_EPOCH, draft);
        let last = self.recorder.subscribe_after(0).backlog.pop().unwrap();
        self.writer.correlator.offer(&last, Instant::now());
    }

    /// Writes all that may be written, a while later; what was asked of the server.
    async fn write(&mut self) -> Vec<String> {
        while let Some(write) = self.writer.next(Instant::now() + OUTAGE_RETRY_DELAY * 2) {
            self.writer.carry_out(write).await;
        }
        std::mem::take(&mut *self.objects_with_intents.lock().unwrap())
    }
}

fn status(code: u16, message: &str, causes: Value) -> (u16, Value) {
    let details = json!({"causes": causes});
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "details": details,
    });
    (code, status)
}

/// Refuses the credentials once, as happens while a token is replaced.
#[tokio::test]
async fn credentials_that_are_not_accepted_are_tried_again() {
    let mut fixture = WriterFixture::new(&[status(401, "Unauthorized", json!([]))]).await;
    fixture.happens("web");
    assert_eq!(fixture.write().await, ["POST 401", "POST 201"]);
    fixture.happens("api");
    assert_eq!(
        (fixture.write().await, fixture.writer.correlator.take_unreported_count()),
        (vec!["POST 201".to_owned()], 0)
    );
}

// Another one may have its name at once.
#[tokio::test]
async fn a_namespace_that_goes_silences_no_other_of_its_name() {
    let causes = json!([{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated"}]);
    let gone =
        status(403, "unable to create new content in namespace shop because it is being terminated", causes);
    let mut fixture = WriterFixture::new(&[gone]).await;
    fixture.happens("web");
    assert_eq!(fixture.write().await, ["POST 403"]);
    fixture.happens("api");
    assert_eq!(fixture.write().await, ["POST 201"]);
}

#[tokio::test]
async fn where_no_events_may_be_made_the_server_is_asked_once() {
    let words = "events is forbidden: User \"rhumb\" cannot create resource \"events\"";
    let mut fixture = WriterFixture::new(&[status(403, words, json!([]))]).await;
    for name in ["web", "api", "db"] {
        fixture.happens(name);
    }
    assert_eq!(
        (fixture.write().await, fixture.writer.correlator.take_unreported_count()),
        (vec!["POST 403".to_owned()], 0)
    );
    // Later it may be allowed.
    fixture.writer.denied.clear();
    fixture.happens("web");
    assert_eq!(fixture.write().await, ["POST 201"], "nobody has made it before");
}

#[tokio::test]
async fn what_the_server_refuses_for_good_is_counted() {
    let mut fixture = WriterFixture::new(&[status(422, "Event \"web.1\" is invalid", json!([]))]).await;
    fixture.happens("web");
    assert_eq!(
        (fixture.write().await, fixture.writer.correlator.take_unreported_count()),
        (vec!["POST 422".to_owned()], 1)
    );
}
