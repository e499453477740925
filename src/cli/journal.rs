//! Lines for the journal, each as a message for people and fields for machines.
//!
//! What is sent is the journal's native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>). Other layers give it the
//! message alone, and leave out of it what the line is about; here the message is the whole line.

use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::FormatFields as _;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::Context;

use super::log::ForPeople;

/// Where the journal listens.
const SOCKET: &str = "/run/systemd/journal/socket";

/// A value of an entry that is too long for one datagram is cut to so many bytes: four of them fit in any.
const LONGEST: usize = 16 << 10;

/// Writes to the journal.
#[derive(Debug)]
pub(super) struct Journal {
    socket: UnixDatagram,
    /// Whoever listens there may be another one tomorrow.
    path: PathBuf,
}

impl Journal {
    /// Fails where nobody listens.
    pub(super) fn open() -> io::Result<Self> {
        Self::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        // The journal takes no notice of an entry without any field.
        socket.send_to(&[], path)?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// There is nobody who could be told that the journal is away.
    fn send(&self, entry: &Entry) {
        let sent = self.socket.send_to(&entry.bytes(usize::MAX), &self.path);
        if sent.is_err_and(|error| error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())) {
            let _ = self.socket.send_to(&entry.bytes(LONGEST), &self.path);
        }
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = String::new();
        if ForPeople.format_fields(Writer::new(&mut line), event).is_err() {
            return;
        }
        let metadata = event.metadata();
        let mut entry = Entry::default();
        entry.add("MESSAGE", line);
        entry.add("PRIORITY", priority(*metadata.level()).to_owned());
        entry.add("SYSLOG_IDENTIFIER", "rhumb".to_owned());
        entry.add("TARGET", metadata.target().to_owned());
        event.record(&mut entry);
        self.send(&entry);
    }
}

/// As syslog has it: 3 is an error, 7 is for finding faults.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        _ => "7",
    }
}

/// Names and values.
#[derive(Debug, Default)]
struct Entry(Vec<(String, String)>);

impl Entry {
    fn add(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    /// `NAME=value` in a line each, and one of several lines behind its length; no longer than that.
    fn bytes(&self, longest: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in &self.0 {
            let value = &value[..value.floor_char_boundary(longest)];
            bytes.extend_from_slice(name.as_bytes());
            if value.contains('\n') {
                bytes.push(b'\n');
                bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
            } else {
                bytes.push(b'=');
            }
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if let Some(name) = named(field.name()) {
            self.add(&name, value.to_owned());
        }
    }
}

/// `OBJECT_KIND` for `object.kind`; none for the message, which is the whole line, and for names that the journal takes for
/// its own.
fn named(field: &str) -> Option<String> {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = field.trim_start_matches("r#").chars().map(letter).collect();
    let is_ours = name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_taken = ["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "TARGET"].contains(&&*name);
    (is_ours && !is_taken && name.len() <= 64).then_some(name)
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn names_are_those_of_the_journal() {
        fn check(field: &str, expected: Option<&str>) {
            assert_eq!(named(field).as_deref(), expected);
        }
        check("object.kind", Some("OBJECT_KIND"));
        check("message_id", Some("MESSAGE_ID"));
        check("r#type", Some("TYPE"));
        for taken in ["message", "priority", "_pid", "1st", ""] {
            check(taken, None);
        }
        check(&"a".repeat(64), Some(&"A".repeat(64)));
        check(&"a".repeat(65), None);
    }

    #[test]
    fn a_message_is_the_whole_line_and_one_that_is_too_long_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let layers = Registry::default().with(Journal::at(&path).unwrap());
        let heard = || {
            let mut buffer = vec![0; 1 << 20];
            let length = listener.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        };
        assert_eq!(heard(), "");
        tracing::subscriber::with_default(layers, || {
            tracing::warn!(object = "web", action = "refuse", "no: {}", "a\nb");
            let entry = heard();
            assert!(entry.starts_with("MESSAGE\n\u{14}\0\0\0\0\0\0\0no: a\nb object=\"web\"\n"), "{entry:?}");
            for field in ["\nPRIORITY=4\n", "\nACTION=refuse\n"] {
                assert!(entry.contains(field), "{entry:?}");
            }
            tracing::info!(long = "é".repeat(1 << 20), "so");
            assert!((LONGEST..3 * LONGEST).contains(&heard().len()));
        });
    }
}
