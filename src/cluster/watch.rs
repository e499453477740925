//! One watch: a stream of lines, each an event, with a clock that notices when it falls silent.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use kube::core::response::Status;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::backoff::jitter;
use super::call::{Cluster, unreadable_error};
use super::classify;
use super::connect::WatchTimeouts;
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::path::{self, ListSelector};

/// An event larger than any object that etcd stores is no event.
const MAX_WATCH_LINE_BYTES: usize = 64 << 20;

/// The start of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WatchStart {
    /// With the events after a version.
    AtVersion(String),
    /// With every object that there is, then a bookmark, then the events after it (KEP-3157).
    All,
}

/// One event of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum WatchEvent<T> {
    /// The object was made or changed, or was there at the start.
    Apply(T),
    /// The object is gone, or the selector no longer matches it.
    Delete(T),
    /// Nothing happened up to this version.
    Bookmark {
        /// The version.
        version: String,
        /// Indicates whether it ends the objects that were there at the start.
        ends_list: bool,
    },
}

/// One line of the stream.
#[derive(Deserialize)]
struct WatchLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

/// A running watch.
pub(super) struct Watch {
    lines: Pin<Box<dyn AsyncBufRead + Send>>,
    subject: CallSubject,
    /// Host and port of the server.
    server: Arc<str>,
    line: Vec<u8>,
    heard_bookmark: bool,
    timeouts: WatchTimeouts,
    /// The time for which it may be silent now.
    limit: Duration,
}

impl Cluster {
    /// Starts a watch over a kind.
    pub(super) async fn watch(
        &self,
        kind: &ServedKind,
        selector: &ListSelector,
        start: &WatchStart,
    ) -> Result<Watch, ClusterError> {
        let on = CallSubject::Kind(kind.gvk.group_kind());
        let timeouts = self.watch_timeouts();
        let seconds = jitter(timeouts.lifetime).as_secs().max(1).to_string();
        let mut parameters =
            vec![("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", &seconds)];
        match start {
            WatchStart::AtVersion(version) => parameters.push(("resourceVersion", version)),
            // No version: the newest state, read as consistently as a list.
            WatchStart::All => {
                parameters.extend([("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]);
            }
        }
        let selected = selector.parameters();
        parameters.extend(selected.iter().map(|(name, value)| (*name, &**value)));
        let url = path::with_query(path::collection_path(kind, selector.namespace()), &parameters);
        let (lines, server) = self.open_watch(url, &on).await?;
        let lines = Box::pin(lines);
        // Until its list has ended, a watch that says nothing is a server that does not know this
        // form.
        let limit = match start {
            WatchStart::AtVersion(_) => timeouts.lifetime + timeouts.grace,
            WatchStart::All => self.timeout(),
        };
        Ok(Watch { lines, subject: on, server, line: Vec::new(), heard_bookmark: false, timeouts, limit })
    }
}

impl Watch {
    /// Waits for the next event and reads its object with `project`; none at the end of the watch.
    /// An object that cannot be read is left out.
    ///
    /// A watch that broke, or on which no event is complete for too long, is an error.
    pub(super) async fn next<T>(
        &mut self,
        project: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<WatchEvent<T>>, ClusterError> {
        // Otherwise a byte now and then, or an object that cannot be read, lasts for ever.
        let deadline = Instant::now() + self.limit;
        loop {
            if !self.read_line(deadline).await? {
                return Ok(None);
            }
            let line: WatchLine<'_> = match serde_json::from_slice(&self.line) {
                Ok(line) => line,
                // The connection was cut in the middle of a line.
                Err(error) if error.is_eof() => return Ok(None),
                Err(error) => return Err(unreadable_error(&self.subject, &error)),
            };
            let object = line.object.get();
            match line.kind {
                "ADDED" | "MODIFIED" | "DELETED" => {
                    let Some(object) = project(object) else {
                        tracing::debug!(kind = %self.subject, "an object cannot be read");
                        continue;
                    };
                    let gone = line.kind == "DELETED";
                    return Ok(Some(if gone {
                        WatchEvent::Delete(object)
                    } else {
                        WatchEvent::Apply(object)
                    }));
                }
                "BOOKMARK" => {
                    let mark: Bookmark =
                        serde_json::from_str(object).map_err(|e| unreadable_error(&self.subject, &e))?;
                    let ends_list = mark.metadata.annotations.contains_key("k8s.io/initial-events-end");
                    self.take_bookmark(ends_list);
                    return Ok(Some(WatchEvent::Bookmark {
                        version: mark.metadata.resource_version,
                        ends_list,
                    }));
                }
                _ => {
                    let status: Status = serde_json::from_str(object).unwrap_or_default();
                    return Err(classify::status(&status, self.subject.clone()));
                }
            }
        }
    }

    /// Returns how long it may be silent now.
    pub(super) fn silence_limit(&self) -> Duration {
        self.limit
    }

    fn take_bookmark(&mut self, ends_list: bool) {
        // The bookmark that ends the list proves nothing about later ones.
        self.heard_bookmark |= !ends_list;
        let WatchTimeouts { lifetime, grace, silence } = self.timeouts;
        self.limit = if self.heard_bookmark { silence } else { lifetime + grace };
    }

    /// Returns the error of a watch that broke.
    pub(super) fn broken_watch_error(&self, reason: String) -> ClusterError {
        ClusterError::new(
            self.subject.clone(),
            ClusterFault::Unreachable { server: self.server.clone(), reason },
        )
    }

    /// Reads one line; false at the end of the stream.
    async fn read_line(&mut self, deadline: Instant) -> Result<bool, ClusterError> {
        self.line.clear();
        loop {
            let chunk = match tokio::time::timeout_at(deadline, self.lines.fill_buf()).await {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(error)) => {
                    let reason = format!("the watch broke: {}", classify::error_chain(&error));
                    return Err(self.broken_watch_error(reason));
                }
                Err(_) => {
                    let (server, after) = (self.server.clone(), self.limit);
                    return Err(ClusterError::new(
                        self.subject.clone(),
                        ClusterFault::Timeout { server, after },
                    ));
                }
            };
            if chunk.is_empty() {
                return Ok(!self.line.is_empty());
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.line.extend_from_slice(chunk.get(..used).unwrap_or_default());
            self.lines.as_mut().consume(used);
            if end.is_some() {
                return Ok(true);
            }
            if self.line.len() > MAX_WATCH_LINE_BYTES {
                let reason = "an event of the watch has no end".to_owned();
                return Err(ClusterError::new(self.subject.clone(), ClusterFault::Garbled { reason }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{TryStreamExt as _, stream};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_never_complete_is_given_up_in_time() {
        let check = async |text: &'static str| {
            let drip = stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                Some((Ok::<_, std::io::Error>(text), ()))
            });
            let mut watch = Watch {
                lines: Box::pin(Box::pin(drip).into_async_read()),
                subject: CallSubject::Server("the test"),
                server: "double".into(),
                line: Vec::new(),
                heard_bookmark: false,
                timeouts: WatchTimeouts::default(),
                limit: Duration::from_secs(10),
            };
            let begun = Instant::now();
            let error = watch.next(|_| None::<()>).await.unwrap_err();
            assert!(matches!(error.fault(), ClusterFault::Timeout { .. }), "{text}: {error}");
            assert_eq!(begun.elapsed().as_secs(), 10, "{text}");
        };
        // A byte now and then, or objects that cannot be read.
        check("x").await;
        check("{\"type\":\"ADDED\",\"object\":5}\n").await;
    }
}
