//! The routes, and what an answer looks like.

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

use super::answer::{Failed, understood};
use super::events::{Stage, events};
use super::guard::{Guard, guarded};
use super::hook::{Hooks, hook};
use super::page;
use super::process::{Process, asked, asked_within};
use crate::daemon::Inquiries;
use crate::object::{GroupKind, ObjectId};
use crate::report::{self, Compared, Differing, Filter, MEDIA_TYPE, ObjectStatus, Status, VERSION};

/// The longest time that comparing with the cluster may take, and with whom.
const COMPARISON: Duration = Duration::from_mins(1);
const SERVER: &str = "the API server";

/// What stands for the namespace of a cluster-scoped object.
const NO_NAMESPACE: &str = "-";

/// What each answer says about itself: it is never kept, and runs nothing.
const HEADERS: [(header::HeaderName, HeaderValue); 4] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// At which door somebody asks.
#[derive(Clone, Debug)]
pub enum Door {
    /// One where a guard lets in: the Unix socket, TCP.
    Guarded(Guard),
    /// That of the kubelet: everybody may ask whether it lives and is ready, and hears nothing else.
    Probes,
}

/// All that is answered at a door.
pub fn router(process: Process, hooks: Arc<Hooks>, door: Door) -> Router {
    let questions = match door {
        Door::Guarded(guard) => {
            questions(process.clone()).layer(from_fn_with_state((guard, process.doors.clone()), guarded))
        }
        Door::Probes => return probes(process).layer(from_fn(described)),
    };
    let heard = Router::new().route("/hook/{source}", any(hook)).with_state((hooks, process));
    // Webhooks show by their signature who they are.
    questions.merge(heard).layer(from_fn(described))
}

fn questions(process: Process) -> Router {
    let stage = Stage::of(process.recorder.clone());
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(counted))
        .route("/v1/status", get(status))
        .route("/v1/objects", get(objects))
        .route("/v1/objects/{kind}/{namespace}/{name}", get(object))
        .route("/v1/diff", get(diff))
        .merge(Router::new().route("/v1/events", get(events)).with_state(stage))
        .route("/openapi.json", get(described_by))
        .route("/", get(page::index))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .route("/icon.svg", get(page::icon))
        .fallback(nowhere)
        .layer(from_fn(asked_only))
        .with_state(process)
}

fn probes(process: Process) -> Router {
    let bare = async |answer: Result<&'static str, Failed>| {
        answer.map_err(|failed| Failed::new(failed.0, "not now"))
    };
    let (living, being_ready) = (
        async move |state: State<Process>| bare(live(state).await).await,
        // What is wrong is not told to everybody.
        async move |state: State<Process>| bare(ready(state).await.map(|_| "ok\n")).await,
    );
    Router::new()
        .route("/livez", get(living))
        .route("/readyz", get(being_ready))
        .fallback(nowhere)
        .layer(from_fn(asked_only))
        .with_state(process)
}

async fn nowhere() -> Failed {
    Failed::new(StatusCode::NOT_FOUND, "there is no such page")
}

/// Refuses all that is no question, whatever it is about.
async fn asked_only(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let only = [(header::ALLOW, HeaderValue::from_static("GET, HEAD"))];
    (only, Failed::new(StatusCode::METHOD_NOT_ALLOWED, "nothing is changed here")).into_response()
}

/// Adds what each answer says about itself, unless it says otherwise.
async fn described(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
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

/// One object beside what is asked for.
#[derive(Serialize)]
struct ComparedObject {
    #[serde(flatten)]
    object: OneObject,
    #[serde(flatten)]
    compared: Compared,
}

/// What is not as asked for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Differing>,
    more: usize,
}

/// How an object is shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    view: Option<View>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum View {
    /// As YAML, beside what is asked for.
    Yaml,
}

/// Whose differences are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfSource {
    source: Option<String>,
}

async fn described_by() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json"))
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
async fn ready(State(process): State<Process>) -> Result<String, Failed> {
    let status = process.status().await?;
    match not_ready(&status) {
        None => Ok(describe_readiness(&status)),
        Some(why) => Err(Failed(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

/// What stays ready where only a person can help, as nothing is mended by starting it anew; it is told all the same.
fn describe_readiness(status: &Status) -> String {
    match &status.rollout.unreadable {
        Some(why) => format!("ready, but {why}\n"),
        None => "ok\n".to_owned(),
    }
}

fn not_ready(status: &Status) -> Option<String> {
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

async fn status(State(process): State<Process>) -> Result<Json<Status>, Failed> {
    process.status().await.map(Json)
}

/// What is counted is told in any case: that the loop cannot begin is worth knowing.
async fn counted(State(process): State<Process>) -> Response {
    let running = process.running.borrow().clone();
    let (signs, now, reloads) = (process.pulses.signs(), Instant::now(), process.service.reloads());
    let beside = report::Process { signs: &signs, now, reloads, doors: &process.doors };
    let status = match running {
        Some(running) => asked(running.status()).await.ok(),
        None => None,
    };
    let text = process.metrics.text(status.as_ref(), &beside);
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response()
}

async fn objects(
    State(process): State<Process>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<Objects>, Failed> {
    let filter = understood(filter)?;
    let items = asked(process.inquiries()?.objects(filter)).await?;
    Ok(Json(Objects { api_version: VERSION, kind: "ObjectList", items }))
}

async fn object(
    State(process): State<Process>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    look: Result<Query<Look>, QueryRejection>,
) -> Result<Response, Failed> {
    let Path((kind, namespace, name)) =
        path.map_err(|rejection| Failed(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let look = understood(look)?;
    let namespace = (namespace != NO_NAMESPACE).then_some(namespace);
    let inquiries = process.inquiries()?;
    let id = meant(&inquiries, &kind, namespace.as_deref(), &name).await?;
    let none = || Failed(StatusCode::NOT_FOUND, format!("no source of this process knows {id}"));
    let one = |object| OneObject { api_version: VERSION, object };
    if look.view == Some(View::Yaml) {
        let compared = inquiries.compared(id.clone());
        let (object, compared) = asked_within(COMPARISON, SERVER, compared).await?.ok_or_else(none)?;
        return Ok(Json(ComparedObject { object: one(object), compared }).into_response());
    }
    let found = asked(inquiries.object(id.clone())).await?;
    Ok(Json(one(found.ok_or_else(none)?)).into_response())
}

/// The object whose kind may be named without its group, and in any case.
async fn meant(
    inquiries: &Inquiries,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<ObjectId, Failed> {
    let exact = ObjectId::new(&GroupKind::parse(kind), namespace, name);
    if asked(inquiries.object(exact.clone())).await?.is_some() {
        return Ok(exact);
    }
    let of_kind = Filter { kind: Some(kind.to_owned()), ..Filter::default() };
    let all = asked(inquiries.objects(of_kind)).await?.into_iter().map(|object| object.object.id());
    let mut named = all.filter(|id| (id.namespace(), id.name()) == (namespace, name));
    let Some(first) = named.next() else { return Ok(exact) };
    match named.next() {
        None => Ok(first),
        Some(second) => {
            let (one, other) = (first.group_kind(), second.group_kind());
            Err(Failed(StatusCode::BAD_REQUEST, format!("{kind} may be {one} or {other}: name its group")))
        }
    }
}

async fn diff(
    State(process): State<Process>,
    of: Result<Query<OfSource>, QueryRejection>,
) -> Result<Json<Difference>, Failed> {
    let source = understood(of)?.source;
    let inquiries = process.inquiries()?;
    if let Some(name) = &source {
        let status = asked(inquiries.status()).await?;
        if !status.sources.iter().any(|known| known.name == *name) {
            return Err(Failed(StatusCode::NOT_FOUND, format!("there is no source {name}")));
        }
    }
    let (items, more) = asked_within(COMPARISON, SERVER, inquiries.differing(source)).await?;
    Ok(Json(Difference { api_version: VERSION, kind: "Difference", items, more }))
}
