//! The event stream: server-sent events (WHATWG HTML, section 9.2).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use super::answer::{ErrorResponse, require_query};
use crate::report::{EventRecord, EventRecorder};

/// The maximum number of listeners at each endpoint: they hold a connection each, and others ask
/// too.
const MAX_LISTENERS: usize = 16;

/// The time without any event after which a comment shows that the connection is still open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The time for which a client that lost its connection waits before it connects again, in
/// milliseconds.
const RECONNECT_HINT: &str = "retry: 2000\n\n";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The events for listeners.
#[derive(Clone, Debug)]
pub(super) struct EventStreams {
    recorder: EventRecorder,
    free: Arc<Semaphore>,
}

impl EventStreams {
    /// Returns where these events are heard.
    pub(super) fn of(recorder: EventRecorder) -> Self {
        Self { recorder, free: Arc::new(Semaphore::new(MAX_LISTENERS)) }
    }
}

/// The query of a listener.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    source: Option<String>,
    after: Option<u64>,
    #[serde(default)]
    follow: EventStreamMode,
}

/// Indicates whether the answer goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum EventStreamMode {
    /// It sends each event as it happens.
    #[default]
    #[serde(rename = "yes")]
    Follow,
    /// It ends with what has happened.
    #[serde(rename = "no")]
    End,
}

/// Somebody who listens.
struct EventListener {
    source: Option<String>,
    backlog: VecDeque<Arc<EventRecord>>,
    live: Option<broadcast::Receiver<Arc<EventRecord>>>,
    retry_hint_sent: bool,
    _permit: OwnedSemaphorePermit,
}

/// Streams what has happened after an event (of those that are kept), and from then on what
/// happens.
pub(super) async fn stream_events(
    State(state): State<EventStreams>,
    headers: HeaderMap,
    query: Result<Query<EventQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let query = require_query(query)?;
    let Ok(permit) = state.free.clone().try_acquire_owned() else {
        // A refused listener must not keep a connection from others.
        let full = ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "too many clients listen already");
        return Ok(([(header::CONNECTION, "close")], full).into_response());
    };
    // A client that connects again says by the header where it was; a parameter keeps its first
    // value.
    let last =
        headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let events = state.recorder.subscribe_after(last.or(query.after).unwrap_or(0));
    let listener = EventListener {
        source: query.source,
        backlog: events.backlog.into(),
        live: (query.follow == EventStreamMode::Follow).then_some(events.live),
        retry_hint_sent: false,
        _permit: permit,
    };
    let events = stream::unfold(listener, async |mut listener| {
        listener.next().await.map(|text| (Ok::<_, Infallible>(text), listener))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        // For proxies that would gather some before they pass anything on.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

impl EventListener {
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.retry_hint_sent, true) {
            return Some(RECONNECT_HINT.to_owned());
        }
        while let Some(event) = self.backlog.pop_front() {
            if self.is_interested(&event) {
                return text(&event);
            }
        }
        loop {
            let live = self.live.as_mut()?;
            match tokio::time::timeout(KEEP_ALIVE_INTERVAL, live.recv()).await {
                Err(_) => return Some(":\n\n".to_owned()),
                Ok(Ok(event)) if self.is_interested(&event) => return text(&event),
                Ok(Ok(_)) => {}
                // It ends, and whoever connects again hears what is still kept.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return None,
            }
        }
    }

    fn is_interested(&self, event: &EventRecord) -> bool {
        self.source.as_ref().is_none_or(|source| *source == event.source)
    }
}

/// Returns an event in the form of the stream. JSON has no line ends, and so is one line.
fn text(event: &EventRecord) -> Option<String> {
    let data = serde_json::to_string(event).ok()?;
    Some(format!("id: {}\nevent: event\ndata: {data}\n\n", event.number))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::Request;
    use axum::routing::get;
    use futures::StreamExt as _;
    use jiff::Timestamp;

    use super::*;
    use crate::report::{EventDraft, EventReason};

    fn draft(source: &str, message: &str) -> EventDraft {
        EventDraft {
            reason: EventReason::RevisionRead,
            source: source.into(),
            object: None,
            regarding: None,
            message: message.to_owned().into(),
            revision: None,
            author: None,
            subject: None,
        }
    }

    async fn answer(state: &EventStreams, path: &str, last: Option<u64>) -> Response {
        use hyper::service::Service as _;
        let router: Router = Router::new().route("/", get(stream_events)).with_state(state.clone());
        let mut request = Request::get(path);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let service = hyper_util::service::TowerToHyperService::new(router);
        service.call(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    async fn read_stream(state: &EventStreams, path: &str, last: Option<u64>) -> String {
        let body = answer(state, path, last).await.into_body();
        String::from_utf8(axum::body::to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap()
    }

    fn messages(text: &str) -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = lines.map(|line| serde_json::from_str::<EventRecord>(line).unwrap());
        events.map(|event| event.message).collect()
    }

    #[tokio::test]
    async fn who_connects_again_goes_on_where_it_was() {
        let state = EventStreams::of(EventRecorder::new(Timestamp::UNIX_EPOCH));
        for (source, message) in [("shop", "a"), ("ops", "b\nid: 99"), ("shop", "c")] {
            state.recorder.record(Timestamp::UNIX_EPOCH, draft(source, message));
        }
        let all = read_stream(&state, "/?follow=no", None).await;
        assert_eq!(messages(&all), ["a", "b\nid: 99", "c"]);
        let ids: Vec<u64> =
            all.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect();
        assert_eq!(ids.len(), 3, "a message makes no lines of its own: {all}");
        assert_eq!(messages(&read_stream(&state, "/?follow=no", Some(ids[1])).await), ["c"]);
        assert_eq!(
            messages(&read_stream(&state, &format!("/?follow=no&after={}", ids[0]), None).await).len(),
            2
        );
        let again = format!("/?follow=no&after={}", ids[0]);
        assert_eq!(messages(&read_stream(&state, &again, Some(ids[2])).await).len(), 0);
        assert_eq!(messages(&read_stream(&state, "/?follow=no&source=shop", None).await), ["a", "c"]);
        assert_eq!(answer(&state, "/?folow=no", None).await.status(), 400);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_reported_and_news_come_at_once() {
        let state = EventStreams::of(EventRecorder::new(Timestamp::UNIX_EPOCH));
        let mut body = answer(&state, "/", None).await.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), RECONNECT_HINT);
        assert_eq!(body.next().await.unwrap().unwrap(), ":\n\n");
        state.recorder.record(Timestamp::UNIX_EPOCH, draft("shop", "news"));
        let news = body.next().await.unwrap().unwrap();
        assert_eq!(messages(std::str::from_utf8(&news).unwrap()), ["news"]);
        // A listener too far behind is let go, and finds the kept events.
        for _ in 0..5000 {
            state.recorder.record(Timestamp::UNIX_EPOCH, draft("shop", "many"));
        }
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn so_many_listen_and_no_more() {
        let state = EventStreams::of(EventRecorder::new(Timestamp::UNIX_EPOCH));
        let mut open = Vec::new();
        for _ in 0..MAX_LISTENERS {
            open.push(answer(&state, "/", None).await);
        }
        let refused = answer(&state, "/", None).await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers().get(header::CONNECTION).unwrap(), "close", "who waits takes no place");
        open.pop();
        assert_eq!(answer(&state, "/", None).await.status(), 200);
    }
}
