//! One request to the API server, and its answer.

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::{AsyncBufRead, TryStreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Body as _;
use kube::client::Body;
use serde::de::DeserializeOwned;

use super::error::{CallSubject, ClusterError, ClusterFault};

/// One request, without what all requests have in common.
pub(super) struct ApiRequest {
    /// The method.
    pub(super) method: Method,
    /// The path on the server.
    pub(super) path: String,
    accept: &'static str,
    content: Option<&'static str>,
    body: Vec<u8>,
    /// The subject of its errors.
    pub(super) subject: CallSubject,
    /// The priority.
    pub(super) priority: CallPriority,
}

/// The priority of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPriority {
    /// Through the rate limiter, with the usual deadline.
    Normal,
    /// Past all others, and answered within this time.
    Urgent(Duration),
}

impl ApiRequest {
    /// Returns a GET.
    pub(super) fn read(path: String, on: CallSubject) -> Self {
        let (method, accept, priority) = (Method::GET, "application/json", CallPriority::Normal);
        Self { method, path, accept, content: None, body: Vec::new(), subject: on, priority }
    }

    /// Returns a write, with a body of this content type.
    pub(super) fn write(
        method: Method,
        path: String,
        content: &'static str,
        body: Vec<u8>,
        on: CallSubject,
    ) -> Self {
        let (accept, priority) = ("application/json", CallPriority::Normal);
        Self { method, path, accept, content: Some(content), body, subject: on, priority }
    }

    /// Lets it wait for no other call, and no longer than this for its answer.
    pub(super) fn with_priority(self, within: Duration) -> Self {
        Self { priority: CallPriority::Urgent(within), ..self }
    }

    /// Asks for another form of the answer.
    pub(super) fn accept(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// Returns the request as it is sent.
    ///
    /// # Errors
    /// Fails where the path makes no valid request.
    pub(super) fn build_request<B>(
        self,
        body: impl FnOnce(Vec<u8>) -> B,
    ) -> Result<Request<B>, ClusterError> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(ACCEPT, self.accept)
            .header(USER_AGENT, concat!("rhumb/", env!("CARGO_PKG_VERSION")));
        if let Some(content) = self.content {
            request = request.header(CONTENT_TYPE, content);
        }
        request.body(body(self.body)).map_err(|error| {
            ClusterError::new(
                self.subject,
                ClusterFault::Garbled { reason: format!("no valid request: {error}") },
            )
        })
    }
}

/// An answer with a good status.
pub(super) struct ApiResponse {
    /// HTTP status.
    pub(super) status: StatusCode,
    /// Headers.
    pub(super) headers: HeaderMap,
    /// The body, as sent.
    pub(super) body: Vec<u8>,
}

impl ApiResponse {
    /// Reads the body; its text reaches no error.
    pub(super) fn decode<T: DeserializeOwned>(&self, on: &CallSubject) -> Result<T, ClusterError> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable_error(on, &error))
    }

    /// Returns the body as text.
    pub(super) fn text(&self, on: &CallSubject) -> Result<&str, ClusterError> {
        std::str::from_utf8(&self.body).map_err(|_| {
            ClusterError::new(
                on.clone(),
                ClusterFault::Garbled { reason: "the answer is not UTF-8".to_owned() },
            )
        })
    }
}

/// Reads a body to its end. Returns none where it is longer than this; then the rest is not read.
pub(super) async fn read_body(body: Body, max_bytes: usize) -> Result<Option<Vec<u8>>, kube::Error> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if data.len() > max_bytes - bytes.len() {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes))
}

/// Returns a body as it comes. Nothing bounds its length.
pub(super) fn stream_body(mut body: Body) -> impl AsyncBufRead + Send {
    stream::poll_fn(move |context| Pin::new(&mut body).poll_frame(context))
        .try_filter_map(|frame| ready(Ok::<_, kube::Error>(frame.into_data().ok())))
        .map_err(std::io::Error::other)
        .into_async_read()
}

/// Returns the error for an answer that is no JSON, or not the JSON that it should be. Only the
/// position is reported.
pub(super) fn unreadable_error(on: &CallSubject, error: &serde_json::Error) -> ClusterError {
    let reason = format!("the answer cannot be read (line {}, column {})", error.line(), error.column());
    ClusterError::new(on.clone(), ClusterFault::Garbled { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_to_its_end_or_not_at_all() {
        for (length, expected) in [(0, true), (7, true), (8, true), (9, false), (4096, false)] {
            let bytes = vec![b'x'; length];
            let read = read_body(Body::from(bytes.clone()), 8).await.unwrap();
            assert_eq!(read, expected.then_some(bytes), "{length}");
        }
    }
}
