//! The routes, and the bodies of their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::answer::{ErrorResponse, require_query};
use super::events::{EventStreams, stream_events};
use super::guard::{RequestGuard, check_request};
use super::page;
use super::process::{ProcessHandle, wait_for_loop, wait_within};
use super::webhook::{WebhookReceiver, answer_webhook};
use crate::daemon::LoopQueries;
use crate::object::{GroupKind, ObjectId};
use crate::report::{
    self, DaemonStatus, DifferingObject, MEDIA_TYPE, ObjectComparison, ObjectFilter, ObjectStatus,
    STATUS_VERSION,
};

/// The time limit for a comparison with the cluster, and the name of the server in its error.
const COMPARISON_TIMEOUT: Duration = Duration::from_mins(1);
const COMPARISON_SUBJECT: &str = "the API server";

/// The word in place of the namespace of a cluster-scoped object.
const CLUSTER_SCOPE_WORD: &str = "-";

/// The headers of each response: it is never stored, and runs nothing.
const RESPONSE_HEADERS: [(header::HeaderName, HeaderValue); 4] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// The routes of an endpoint.
#[derive(Clone, Debug)]
pub(crate) enum RouteSet {
    /// All routes, behind a guard: the Unix socket, TCP.
    Guarded(RequestGuard),
    /// The kubelet's probes alone. Anybody may ask, so they give no details.
    Probes,
}

/// Returns the routes of a listener.
pub(crate) fn router(process: ProcessHandle, webhooks: Arc<WebhookReceiver>, door: RouteSet) -> Router {
    let questions = match door {
        RouteSet::Guarded(guard) => question_routes(process.clone())
            .layer(from_fn_with_state((guard, process.endpoints.clone()), check_request)),
        RouteSet::Probes => return probe_routes(process).layer(from_fn(describe_response)),
    };
    let heard = Router::new().route("/hook/{source}", any(answer_webhook)).with_state((webhooks, process));
    // Webhooks show by their signature who they are.
    questions.merge(heard).layer(from_fn(describe_response))
}

fn question_routes(process: ProcessHandle) -> Router {
    let event_streams = EventStreams::of(process.recorder.clone());
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics_text))
        .route("/v1/status", get(status))
        .route("/v1/objects", get(objects))
        .route("/v1/objects/{kind}/{namespace}/{name}", get(object))
        .route("/v1/diff", get(diff_source))
        .merge(Router::new().route("/v1/events", get(stream_events)).with_state(event_streams))
        .route("/openapi.json", get(openapi_document))
        .route("/", get(page::page_html))
        .route("/page.js", get(page::page_script))
        .route("/page.css", get(page::page_style))
        .route("/icon.svg", get(page::page_icon))
        .fallback(not_found)
        .layer(from_fn(reject_writes))
        .with_state(process)
}

fn probe_routes(process: ProcessHandle) -> Router {
    let bare = async |answer: Result<&'static str, ErrorResponse>| {
        answer.map_err(|failed| ErrorResponse::new(failed.0, "not now"))
    };
    let (living, being_ready) = (
        async move |state: State<ProcessHandle>| bare(live(state).await).await,
        // The reason is not for everybody.
        async move |state: State<ProcessHandle>| bare(readiness(state).await.map(|_| "ok\n")).await,
    );
    Router::new()
        .route("/livez", get(living))
        .route("/readyz", get(being_ready))
        .fallback(not_found)
        .layer(from_fn(reject_writes))
        .with_state(process)
}

async fn not_found() -> ErrorResponse {
    ErrorResponse::new(StatusCode::NOT_FOUND, "there is no such page")
}

/// Refuses every request that is neither GET nor HEAD.
async fn reject_writes(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let only = [(header::ALLOW, HeaderValue::from_static("GET, HEAD"))];
    (only, ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here")).into_response()
}

/// Adds the headers of each response, unless it has its own.
async fn describe_response(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in RESPONSE_HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// A list of objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectListBody {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<ObjectStatus>,
}

/// One object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectBody {
    api_version: &'static str,
    // `kind` is that of the object.
    #[serde(flatten)]
    object: ObjectStatus,
}

/// A live object, beside its desired content.
#[derive(Serialize)]
struct ComparedObjectBody {
    #[serde(flatten)]
    object: ObjectBody,
    #[serde(flatten)]
    compared: ObjectComparison,
}

/// The differences of a source.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DifferenceBody {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<DifferingObject>,
    more: usize,
}

/// The form in which an object is shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectQuery {
    view: Option<ObjectView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ObjectView {
    /// As YAML, beside its desired content.
    Yaml,
}

/// The source of the differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DifferenceQuery {
    source: Option<String>,
}

async fn openapi_document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], super::OPENAPI_DOCUMENT)
}

/// Answers whether the loop, the reader of each source and each watch make progress.
async fn live(State(process): State<ProcessHandle>) -> Result<&'static str, ErrorResponse> {
    let late = process.heartbeats.overdue_parts(Instant::now());
    if late.is_empty() {
        return Ok("ok\n");
    }
    let names: Vec<&str> = late.iter().map(|sign| &*sign.name).collect();
    Err(ErrorResponse(StatusCode::SERVICE_UNAVAILABLE, format!("no progress: {}", names.join(", "))))
}

/// Answers whether all sources and the rollout ledger have been read once.
async fn readiness(State(process): State<ProcessHandle>) -> Result<String, ErrorResponse> {
    let status = process.status().await?;
    match unready_reason(&status) {
        None => Ok(describe_readiness(&status)),
        Some(why) => Err(ErrorResponse(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

/// Returns the notes of a ready process that needs a person. It counts as ready, as a restart would
/// repair nothing.
fn describe_readiness(status: &DaemonStatus) -> String {
    let reported: Vec<&str> =
        status.rollout.unreadable.iter().chain(&status.unreadable).map(String::as_str).collect();
    if reported.is_empty() { "ok\n".to_owned() } else { format!("ready, but {}\n", reported.join("\nand ")) }
}

fn unready_reason(status: &DaemonStatus) -> Option<String> {
    let unread = status.sources.iter().find(|source| source.revision.is_none());
    match unread {
        Some(source) => {
            let why = source.incomplete.as_deref().unwrap_or("it has not been read yet");
            Some(format!("source {}: {why}", source.name))
        }
        None if !status.rollout.known => {
            let unread = || "the rollout budget has not been read yet".to_owned();
            Some(status.rollout.unreadable.clone().unwrap_or_else(unread))
        }
        None => None,
    }
}

async fn status(State(process): State<ProcessHandle>) -> Result<Json<DaemonStatus>, ErrorResponse> {
    process.status().await.map(Json)
}

/// Returns the metrics, also while the loop cannot begin.
async fn metrics_text(State(process): State<ProcessHandle>) -> Response {
    let running = process.running.borrow().clone();
    let (heartbeats, now, reloads) =
        (process.heartbeats.statuses(), Instant::now(), process.service.reload_counts());
    let facts = report::ProcessFacts { heartbeats: &heartbeats, now, reloads, endpoints: &process.endpoints };
    let status = match running {
        Some(running) => wait_for_loop(running.status()).await.ok(),
        None => None,
    };
    let text = process.metrics.text(status.as_ref(), &facts);
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response()
}

async fn objects(
    State(process): State<ProcessHandle>,
    filter: Result<Query<ObjectFilter>, QueryRejection>,
) -> Result<Json<ObjectListBody>, ErrorResponse> {
    let filter = require_query(filter)?;
    let items = wait_for_loop(process.queries()?.objects(filter)).await?;
    Ok(Json(ObjectListBody { api_version: STATUS_VERSION, kind: "ObjectList", items }))
}

async fn object(
    State(process): State<ProcessHandle>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    query: Result<Query<ObjectQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let Path((kind, namespace, name)) =
        path.map_err(|rejection| ErrorResponse(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let query = require_query(query)?;
    let namespace = (namespace != CLUSTER_SCOPE_WORD).then_some(namespace);
    let queries = process.queries()?;
    let id = resolve_object(&queries, &kind, namespace.as_deref(), &name).await?;
    let none = || ErrorResponse(StatusCode::NOT_FOUND, format!("no source of this process knows {id}"));
    let one = |object| ObjectBody { api_version: STATUS_VERSION, object };
    if query.view == Some(ObjectView::Yaml) {
        let compared = queries.compare_object(id.clone());
        let (object, compared) =
            wait_within(COMPARISON_TIMEOUT, COMPARISON_SUBJECT, compared).await?.ok_or_else(none)?;
        return Ok(Json(ComparedObjectBody { object: one(object), compared }).into_response());
    }
    let found = wait_for_loop(queries.object(id.clone())).await?;
    Ok(Json(one(found.ok_or_else(none)?)).into_response())
}

/// Returns the object. Its kind may be named without the group, and in upper or lower case.
async fn resolve_object(
    queries: &LoopQueries,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<ObjectId, ErrorResponse> {
    let exact = ObjectId::new(&GroupKind::parse(kind), namespace, name);
    if wait_for_loop(queries.object(exact.clone())).await?.is_some() {
        return Ok(exact);
    }
    let of_kind = ObjectFilter { kind: Some(kind.to_owned()), ..ObjectFilter::default() };
    let all = wait_for_loop(queries.objects(of_kind)).await?.into_iter().map(|object| object.object.id());
    let mut named = all.filter(|id| (id.namespace(), id.name()) == (namespace, name));
    let Some(first) = named.next() else { return Ok(exact) };
    match named.next() {
        None => Ok(first),
        Some(second) => {
            let (one, other) = (first.group_kind(), second.group_kind());
            Err(ErrorResponse(
                StatusCode::BAD_REQUEST,
                format!("{kind} may be {one} or {other}: name its group"),
            ))
        }
    }
}

async fn diff_source(
    State(process): State<ProcessHandle>,
    of: Result<Query<DifferenceQuery>, QueryRejection>,
) -> Result<Json<DifferenceBody>, ErrorResponse> {
    let source = require_query(of)?.source;
    let queries = process.queries()?;
    if let Some(name) = &source {
        let status = wait_for_loop(queries.status()).await?;
        if !status.sources.iter().any(|known| known.name == *name) {
            return Err(ErrorResponse(StatusCode::NOT_FOUND, format!("there is no source {name}")));
        }
    }
    let (items, more) =
        wait_within(COMPARISON_TIMEOUT, COMPARISON_SUBJECT, queries.differing_objects(source)).await?;
    Ok(Json(DifferenceBody { api_version: STATUS_VERSION, kind: "Difference", items, more }))
}
