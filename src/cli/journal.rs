//! Lines for the journal, each as a message for people and fields for machines.
//!
//! Speaks the journal's native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>). Other
//! layers give it the message alone, and leave out of it what the line is about; here the message
//! is the whole line.

use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::FormatFields as _;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::Context;

use super::log_line::TextFields;

/// The socket of the journal.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// The bytes to which values are cut in an entry that is too long for one datagram. Four such
/// values fit in any.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// The longest time for which a journal that hangs delays a writer.
const JOURNAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The lines that it has to take at once before it is waited for again.
const LINES_BEFORE_NEXT_WAIT: u32 = 100;

/// The writer to the journal. Where that takes nothing any more, lines are lost and counted: the
/// loop does not wait for them.
#[derive(Debug)]
pub(super) struct JournalWriter {
    /// Blocks until there is room, as long as no line is lost. It is the only socket: each one has
    /// a buffer of its own.
    socket: UnixDatagram,
    /// The path, kept because another process may listen there later.
    path: PathBuf,
    backlog: Mutex<JournalBacklog>,
}

#[derive(Debug, Default)]
struct JournalBacklog {
    /// The number of lines lost since the journal last took one.
    lost: u64,
    /// The number of lines that the journal has to take before it is waited for again.
    hasty: u32,
}

impl JournalWriter {
    /// Fails where nobody listens.
    pub(super) fn open() -> io::Result<Self> {
        Self::open_at(Path::new(JOURNAL_SOCKET))
    }

    fn open_at(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(JOURNAL_TIMEOUT))?;
        // The journal takes no notice of an entry without any field.
        socket.send_to(&[], path)?;
        Ok(Self { socket, path: path.to_owned(), backlog: Mutex::default() })
    }

    /// Sends an entry to the journal. While the journal is away, losses are counted, and logged to
    /// it once it is back.
    fn send(&self, entry: &JournalEntry) {
        let lost = std::mem::take(&mut self.backlog().lost);
        if lost > 0 && !self.can_take(&JournalEntry::loss_entry(lost)) {
            return self.add_missed(lost.saturating_add(1));
        }
        if !self.can_take(entry) {
            return self.add_missed(1);
        }
        let mut backlog = self.backlog();
        if backlog.hasty > 0 {
            backlog.hasty -= 1;
            if backlog.hasty == 0 {
                let _ = self.socket.set_nonblocking(false);
            }
        }
    }

    fn add_missed(&self, count: u64) {
        let mut backlog = self.backlog();
        backlog.lost = backlog.lost.saturating_add(count);
        backlog.hasty = LINES_BEFORE_NEXT_WAIT;
        let _ = self.socket.set_nonblocking(true);
    }

    fn backlog(&self) -> MutexGuard<'_, JournalBacklog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn can_take(&self, entry: &JournalEntry) -> bool {
        let sent = self.socket.send_to(&entry.bytes(usize::MAX), &self.path);
        match sent.map_err(|error| error.raw_os_error()) {
            Err(Some(code)) if code == Errno::MSGSIZE.raw_os_error() => {
                self.socket.send_to(&entry.bytes(MAX_VALUE_BYTES), &self.path).is_ok()
            }
            sent => sent.is_ok(),
        }
    }
}

impl<S: Subscriber> Layer<S> for JournalWriter {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = String::new();
        if TextFields.format_fields(Writer::new(&mut line), event).is_err() {
            return;
        }
        let metadata = event.metadata();
        let mut entry = JournalEntry::new(line, *metadata.level(), metadata.target());
        event.record(&mut entry);
        self.send(&entry);
    }
}

/// Returns the priority of syslog for a level: 3 is an error, 7 is for debugging.
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
struct JournalEntry(Vec<(String, String)>);

impl JournalEntry {
    fn new(message: String, level: Level, target: &str) -> Self {
        let mut entry = Self::default();
        entry.add("MESSAGE", message);
        entry.add("PRIORITY", priority(level).to_owned());
        entry.add("SYSLOG_IDENTIFIER", "rhumb".to_owned());
        entry.add("TARGET", target.to_owned());
        entry
    }

    fn loss_entry(lost: u64) -> Self {
        let message = format!("lines before this one are lost, as the journal did not take them: {lost}");
        Self::new(message, Level::WARN, module_path!())
    }

    fn add(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    /// Encodes the entry: `NAME=value` in a line each, and a value of several lines behind its
    /// length. No value is longer than `longest` bytes.
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

impl Visit for JournalEntry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if let Some(name) = journal_field(field.name()) {
            self.add(&name, value.to_owned());
        }
    }
}

/// Returns the journal's name of a field, as `OBJECT_KIND` for `object.kind`. Returns none for the
/// message, which is the whole line, and for names that the journal keeps for itself.
fn journal_field(field: &str) -> Option<String> {
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
            assert_eq!(journal_field(field).as_deref(), expected);
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

    // Were each of them waited for, this would take half an hour.
    #[test]
    fn a_journal_that_hangs_is_waited_for_once_and_gets_what_it_missed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let journal = JournalWriter::open_at(&path).unwrap();
        let lost = || journal.backlog().lost;
        let send = |text: &str| journal.send(&JournalEntry::new(text.to_owned(), Level::INFO, "rhumb"));
        while lost() == 0 {
            send("before");
        }
        (0..2000).for_each(|_| send("lost"));
        assert_eq!(lost(), 2001);
        listener.set_nonblocking(true).unwrap();
        let mut buffer = [0; 4096];
        let mut heard = || {
            let length = listener.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        assert_eq!(heard().unwrap(), "");
        while let Some(entry) = heard() {
            assert!(entry.starts_with("MESSAGE=before\n"), "{entry:?}");
        }
        send("after");
        let (first, second) = (heard().unwrap(), heard().unwrap());
        assert!(first.starts_with("MESSAGE=lines before this one are lost"), "{first:?}");
        assert!(first.contains(" them: 2001\nPRIORITY=4\n"), "{first:?}");
        assert!(second.starts_with("MESSAGE=after\n"), "{second:?}");
        assert_eq!((lost(), heard()), (0, None));
        // One that is away is not waited for at all, and gets the same line when it is back.
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        send("away");
        assert_eq!(lost(), 1);
        let listener = UnixDatagram::bind(&path).unwrap();
        send("back");
        let length = listener.recv(&mut buffer).unwrap();
        assert!(String::from_utf8_lossy(&buffer[..length]).contains(" them: 1\n"));
        assert_eq!(lost(), 0);
    }

    #[test]
    fn a_message_is_the_whole_line_and_one_that_is_too_long_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let layers = Registry::default().with(JournalWriter::open_at(&path).unwrap());
        let heard = || {
            let mut buffer = vec![0; 1 << 20];
            let length = listener.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        };
        assert_eq!(heard(), "");
        tracing::subscriber::with_default(layers, || {
            tracing::warn!(object = "web", action = "refuse", author = "a\nACTION=b", "no: {}", "a\nb");
            let entry = heard();
            assert!(entry.starts_with("MESSAGE=no: a b object=\"web\"\n"), "{entry:?}");
            let framed = "\nAUTHOR\n\u{a}\0\0\0\0\0\0\0a\nACTION=b\n";
            for field in ["\nPRIORITY=4\n", "\nACTION=refuse\n", framed] {
                assert!(entry.contains(field), "{entry:?}");
            }
            tracing::info!(long = "é".repeat(1 << 20), "so");
            assert!((MAX_VALUE_BYTES..3 * MAX_VALUE_BYTES).contains(&heard().len()));
        });
    }
}
