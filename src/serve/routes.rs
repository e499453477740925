//! The routes, and what an answer looks like.

use std::time::{Duration, Instant};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;

use crate::cluster::Measures;
use crate::daemon::Inquiries;
use crate::object::{GroupKind, ObjectId};
use crate::pulse::Pulses;
use crate::queue;
use crate::report::{self, Filter, MEDIA_TYPE, Metrics, ObjectStatus, Recorder, Service, Status, VERSION};

/// The loop answers within milliseconds: one that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// What stands for the namespace of a cluster-scoped object.
const NO_NAMESPACE: &str = "-";

/// What each answer says about itself: it is never kept, and runs nothing.
const HEADERS: [(header::HeaderName, HeaderValue); 4] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// All routes.
pub fn router(process: Process) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(counted))
        .route("/v1/status", get(status))
        .route("/v1/objects", get(objects))
        .route("/v1/objects/{kind}/{namespace}/{name}", get(object))
        .fallback(async || Failed(StatusCode::NOT_FOUND, "there is no such page".to_owned()))
        .layer(from_fn(answered))
        .with_state(process)
}

/// Whom the routes ask.
#[derive(Clone, Debug)]
pub struct Process {
    /// The loop that runs now; none before the first one, and another one after each new configuration.
    pub running: watch::Receiver<Option<Inquiries>>,
    /// Which parts make progress.
    pub pulses: Pulses,
    /// What is counted about the calls, also before there is a loop.
    pub calls: Measures,
    /// What the service manager hears, which knows of new configurations.
    pub service: Service,
    /// What happens, over all configurations.
    pub recorder: Recorder,
}

impl Process {
    fn inquiries(&self) -> Result<Inquiries, Failed> {
        let none = || Failed(StatusCode::SERVICE_UNAVAILABLE, "the loop has not begun yet".to_owned());
        self.running.borrow().clone().ok_or_else(none)
    }

    async fn status(&self) -> Result<Status, Failed> {
        asked(self.inquiries()?.status()).await
    }
}

/// Refuses all that is no question, whatever it is about.
async fn answered(request: Request, next: Next) -> Response {
    let mut response = if matches!(*request.method(), Method::GET | Method::HEAD) {
        next.run(request).await
    } else {
        let only = [(header::ALLOW, HeaderValue::from_static("GET, HEAD"))];
        (only, Failed(StatusCode::METHOD_NOT_ALLOWED, "nothing is changed here".to_owned())).into_response()
    };
    response.headers_mut().extend(HEADERS);
    response
}

/// An answer that tells why there is none.
struct Failed(StatusCode, String);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "apiVersion": VERSION, "kind": "Error", "message": self.1 }))).into_response()
    }
}

/// A list of objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Objects {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<ObjectStatus>,
}

/// One object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OneObject {
    api_version: &'static str,
    // `kind` is that of the object.
    #[serde(flatten)]
    object: ObjectStatus,
}

async fn asked<T>(answer: impl Future<Output = Option<T>>) -> Result<T, Failed> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(Failed(StatusCode::SERVICE_UNAVAILABLE, "the loop has ended".to_owned())),
        Err(_) => {
            let why = format!("the loop has not answered for {} s", PATIENCE.as_secs());
            Err(Failed(StatusCode::SERVICE_UNAVAILABLE, why))
        }
    }
}

/// Alive is what makes progress: the loop, what reads each source, and each watch.
async fn live(State(process): State<Process>) -> Result<&'static str, Failed> {
    let late = process.pulses.late(Instant::now());
    if late.is_empty() {
        return Ok("ok\n");
    }
    let names: Vec<&str> = late.iter().map(|sign| &*sign.name).collect();
    Err(Failed(StatusCode::SERVICE_UNAVAILABLE, format!("no progress: {}", names.join(", "))))
}

/// Ready is what has read all its sources once, and knows what rolls.
async fn ready(State(process): State<Process>) -> Result<&'static str, Failed> {
    let status = process.status().await?;
    match not_ready(&status) {
        None => Ok("ok\n"),
        Some(why) => Err(Failed(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

fn not_ready(status: &Status) -> Option<String> {
    let unread = status.sources.iter().find(|source| source.revision.is_none());
    match unread {
        Some(source) => {
            let why = source.incomplete.as_deref().unwrap_or("it has not been read yet");
            Some(format!("source {}: {why}", source.name))
        }
        None if !status.rollout.known => Some("the rollout budget has not been read yet".to_owned()),
        None => None,
    }
}

async fn status(State(process): State<Process>) -> Result<Json<Status>, Failed> {
    process.status().await.map(Json)
}

/// What is counted is told in any case: that the loop cannot begin is worth knowing.
async fn counted(State(process): State<Process>) -> Response {
    let running = process.running.borrow().clone();
    let (signs, now, reloads) = (process.pulses.signs(), Instant::now(), process.service.reloads());
    let beside = report::Process { signs: &signs, now, reloads };
    let text = match running {
        Some(running) => {
            let status = asked(running.status()).await.ok();
            running.metrics().text(status.as_ref(), &beside)
        }
        None => Metrics::new(process.calls, queue::Measures::default()).text(None, &beside),
    };
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response()
}

async fn objects(
    State(process): State<Process>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<Objects>, Failed> {
    let Query(filter) = filter.map_err(|rejection| Failed(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let items = asked(process.inquiries()?.objects(filter)).await?;
    Ok(Json(Objects { api_version: VERSION, kind: "ObjectList", items }))
}

async fn object(
    State(process): State<Process>,
    Path((kind, namespace, name)): Path<(String, String, String)>,
) -> Result<Json<OneObject>, Failed> {
    let namespace = (namespace != NO_NAMESPACE).then_some(namespace);
    let id = ObjectId::new(&GroupKind::parse(&kind), namespace.as_deref(), &name);
    let found = asked(process.inquiries()?.object(id.clone())).await?;
    let none = || Failed(StatusCode::NOT_FOUND, format!("no source of this process knows {id}"));
    Ok(Json(OneObject { api_version: VERSION, object: found.ok_or_else(none)? }))
}
