//! `rhumb events`.

use axum::body::Body;
use futures::StreamExt as _;

use super::args::{EventsArgs, EventsOutput, GlobalArgs};
use super::overview::clean_text;
use super::settings::{self, StatusSource};
use super::socket::{DaemonSocket, SocketError};
use super::{CommandError, ExitStatus, Terminal, session};
use crate::object::ErrorClass;
use crate::render::{Palette, TextStyle};
use crate::report::{DaemonStatus, EventRecord};

/// The longest line that is taken, in bytes: an event has some 2000.
const MAX_EVENT_LINE_BYTES: usize = 1 << 20;

/// The hint for a missing daemon.
const NO_DAEMON_HINT: &str = "`kubectl get events -A --field-selector reportingComponent=rhumb` shows what a daemon left in the cluster";

/// Carries the command out.
pub(super) fn carry_out(
    args: &EventsArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let (StatusSource::Daemon(path) | StatusSource::DaemonOrCluster(path)) =
        settings::status_source(global, args.socket.socket.as_deref())?
    else {
        return Err(CommandError::usage_error("only the daemon has events, and these flags name a cluster")
            .hint(NO_DAEMON_HINT));
    };
    let socket = DaemonSocket::new(&path);
    session::start_runtime()?.block_on(async {
        let mut page = format!("/v1/events?follow={}", if args.follow { "yes" } else { "no" });
        if let Some(source) = &args.source {
            page.push_str("&source=");
            page.push_str(source.as_str());
            // A source that is gone may have left events, and one that comes will have some.
            let status = socket.read::<DaemonStatus>("/v1/status").await;
            if status.is_ok_and(|status| status.sources.iter().all(|known| known.name != source.as_str())) {
                terminal.report(&format!(
                    "the daemon has no source {source} now; `rhumb status` lists them. It knows its own events \
                     alone: {NO_DAEMON_HINT}\n"
                ));
            }
        }
        let body = socket.open(&page).await.map_err(|why| CommandError::from(why).hint(NO_DAEMON_HINT))?;
        print_events(body, args.output, terminal).await?;
        if args.follow {
            return Err(CommandError::new(ErrorClass::Transient, "the daemon ended the stream")
                .hint("it stopped, or this client was too slow: start again"));
        }
        Ok(ExitStatus::Done)
    })
}

/// Returns the events after this number; 0 for all that are kept.
pub(super) async fn events_after(
    socket: &DaemonSocket,
    number: u64,
) -> Result<Vec<EventRecord>, SocketError> {
    let text = socket.get(&format!("/v1/events?follow=no&after={number}")).await?;
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    Ok(events.filter_map(|data| serde_json::from_str(data).ok()).collect())
}

/// Prints each event as it comes.
async fn print_events(body: Body, output: EventsOutput, terminal: &Terminal) -> Result<(), CommandError> {
    let mut coming = body.into_data_stream();
    let mut lines = EventStreamLines::default();
    loop {
        let bytes = tokio::select! {
            bytes = coming.next() => bytes,
            () = terminal.wait_until_closed() => return Err(CommandError::closed_output()),
        };
        let Some(bytes) = bytes else { return Ok(()) };
        // The daemon ended in the middle of something.
        let Ok(bytes) = bytes else { return Ok(()) };
        for data in lines.take(&bytes) {
            match (output, serde_json::from_str::<EventRecord>(&data)) {
                (EventsOutput::Json, _) => terminal.write_output(&format!("{data}\n"))?,
                (EventsOutput::Text, Ok(event)) => terminal.print(&line(&event, terminal.palette()))?,
                (EventsOutput::Text, Err(error)) => {
                    tracing::debug!("an event in no form that this version knows: {error}");
                }
            }
        }
    }
}

/// Returns one line about an event: when, what, on what, and by whom.
fn line(event: &EventRecord, palette: Palette) -> String {
    let at = event.at.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let style = if event.reason.is_warning() { TextStyle::Error } else { TextStyle::Strong };
    let reason = event.reason.to_string();
    let by = author_text(event).map(|by| format!(" {by}")).unwrap_or_default();
    let (at, by) = (palette.paint(TextStyle::Faint, &at), palette.paint(TextStyle::Faint, &by));
    format!("{at} {} {}{by}\n", palette.paint(style, &reason), describe(event))
}

/// Returns the object of an event and its message.
pub(super) fn describe(event: &EventRecord) -> String {
    let text = clean_text(&event.to_string());
    let rest = text.strip_prefix(&*event.reason.to_string()).map(|rest| rest.trim_start().to_owned());
    rest.unwrap_or(text)
}

/// Returns the revision and author behind an event.
pub(super) fn author_text(event: &EventRecord) -> Option<String> {
    let (revision, author) = (event.revision.as_ref()?, event.author.as_ref()?);
    let short = crate::object::Revision::new(revision).short_name().to_owned();
    Some(format!("({} {})", clean_text(&short), clean_text(author)))
}

/// The `data:` lines of a stream of server-sent events.
#[derive(Debug, Default)]
struct EventStreamLines {
    rest: Vec<u8>,
}

impl EventStreamLines {
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if let Some(data) = String::from_utf8_lossy(&line).strip_prefix("data: ") {
                found.push(data.trim_end().to_owned());
            }
        }
        if self.rest.len() > MAX_EVENT_LINE_BYTES {
            self.rest.clear();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_any_pieces() {
        let text =
            "retry: 2000\n\nid: 1\nevent: event\ndata: {\"a\": \"\u{e4}\"}\n\n:\n\ndata: two\n\ndata: thr";
        for size in [1, 2, 7, text.len()] {
            let mut lines = EventStreamLines::default();
            let found: Vec<String> =
                text.as_bytes().chunks(size).flat_map(|piece| lines.take(piece)).collect();
            assert_eq!(found, ["{\"a\": \"\u{e4}\"}", "two"], "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_is_a_line() {
        let event: EventRecord = serde_json::from_value(serde_json::json!({
            "number": 7, "at": "2030-01-02T03:04:05Z", "reason": "RolloutFailed", "source": "shop",
            "object": {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "message": "it does\nnot come up \u{1b}[2J", "revision": "0123456789abcdef", "author": "Ada",
        }))
        .unwrap();
        let expected = "2030-01-02 03:04:05 RolloutFailed Deployment shop/web: it does not come up \u{fffd}[2J \
                        (0123456789ab Ada)\n";
        assert_eq!(line(&event, Palette::Plain), expected);
    }
}
