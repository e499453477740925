//! The log in the journal: a line for each change of state, with fields that can be asked for.

use std::collections::BTreeMap;
use std::io::{Write as _, stderr};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, receive, yaml};

/// The journal's socket, for one process alone: the program sees another `/run` than the others.
const SEE: &str = r#"
    mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal && mount --bind "$0" /run/systemd/journal || exit 77
    JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"
"#;

type JournalEntry = BTreeMap<String, String>;

struct Journal {
    dir: TempDir,
    messages: Receiver<Vec<u8>>,
}

impl Journal {
    /// Binds the socket of a journal; none where this user may have no mounts of their own.
    fn new() -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let socket = UnixDatagram::bind(dir.path().join("socket")).unwrap();
        let (to, messages) = channel();
        // Taken at once: a full socket would hold up the program, which gives up after a while.
        thread::spawn(move || {
            while let Some(message) = receive(&socket) {
                if to.send(message).is_err() {
                    return;
                }
            }
        });
        let journal = Self { dir, messages };
        let may = journal.seen_by(&Command::new("true")).status().is_ok_and(|status| status.success());
        if !may {
            let _ = writeln!(
                stderr(),
                "SKIPPED: no namespaces: nothing can be mounted (`unshare --map-root-user --mount`)"
            );
        }
        may.then_some(journal)
    }

    /// Returns the same command, for which this is the journal.
    fn seen_by(&self, command: &Command) -> Command {
        let mut seen = Command::new("unshare");
        seen.args(["--map-root-user", "--mount", "sh", "-c", SEE]).arg(self.dir.path());
        seen.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => seen.env(name, value),
                None => seen.env_remove(name),
            };
        }
        seen
    }

    /// Waits for the next entry with these fields.
    #[track_caller]
    fn has(&self, fields: &[(&str, &str)]) -> JournalEntry {
        let deadline = Instant::now() + DEFAULT_TIMEOUT;
        let mut others = Vec::new();
        let left = || deadline.saturating_duration_since(Instant::now());
        while let Ok(message) = self.messages.recv_timeout(left()) {
            let entry = entry(&message);
            if fields.iter().all(|(name, value)| entry.get(*name).is_some_and(|found| found == value)) {
                return entry;
            }
            others.push(entry);
        }
        panic!("no entry has {fields:?}, but there are {others:#?}");
    }
}

/// Parses an entry (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>): `NAME=value`, or a name, a
/// length and a value.
fn entry(mut bytes: &[u8]) -> JournalEntry {
    let mut entry = JournalEntry::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let (line, rest) = (std::str::from_utf8(&bytes[..end]).unwrap(), &bytes[end + 1..]);
        let (name, value, rest) = if let Some((name, value)) = line.split_once('=') {
            (name, value.as_bytes(), rest)
        } else {
            let (length, rest) = rest.split_first_chunk().unwrap();
            let (value, rest) = rest.split_at(usize::try_from(u64::from_le_bytes(*length)).unwrap());
            (line, value, &rest[1..])
        };
        entry.insert(name.to_owned(), String::from_utf8(value.to_vec()).unwrap());
        bytes = rest;
    }
    entry
}

#[test]
fn the_journal_gets_fields_and_a_number_for_each_kind_of_event() {
    let Some(journal) = Journal::new() else { return };
    let site = TestNamespace::new("journal");
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("web.yaml", yaml::deployment("web", 1, "web:1")),
    ]);
    std::fs::write(site.state.path().join("rhumb.yaml"), site.configuration(repo.path(), "")).unwrap();
    let mut command = site.bare_command();
    command.arg("run").arg("--config").arg(site.state.path().join("rhumb.yaml"));
    let mut daemon = Daemon::start(journal.seen_by(&command));
    let head = repo.head();
    let of = |name: &str, value: &str| {
        let entry = journal.has(&[(name, value), ("OBJECT_NAME", "web")]);
        for (name, value) in [
            ("OBJECT_GROUP", "apps"),
            ("OBJECT_KIND", "Deployment"),
            ("OBJECT_NAMESPACE", &*site.name),
            ("SOURCE", &*site.name),
            ("PRIORITY", "6"),
            ("SYSLOG_IDENTIFIER", "rhumb"),
        ] {
            assert_eq!(entry.get(name).map(String::as_str), Some(value), "{entry:#?}");
        }
        entry
    };
    journal.has(&[
        ("MESSAGE_ID", "8b10c66cb2ad40da87258f8a8c2d5cf8"),
        ("REVISION", &head),
        ("SOURCE", &site.name),
    ]);
    let created = of("ACTION", "create");
    let line = format!("created object=Deployment {0}/web source={0} revision={head}", site.name);
    assert_eq!((&*created["MESSAGE"], &*created["REVISION"]), (&*line, &*head));
    assert_eq!(created["MESSAGE_ID"], "7476e089eaee48099bdc61f6b38e1f4c");
    journal.has(&[("MESSAGE_ID", "aaf8cfd3c9c643cda4b3d554835f5f3e"), ("REVISION", &head)]);
    // A rollout begins, and ends.
    repo.change("web.yaml", &yaml::deployment("web", 1, "web:2"));
    let head = repo.head();
    for number in ["7901a209f33d47898aff00f19f20d794", "b11df7a795364c918f19aa83d211f6a4"] {
        let entry = of("MESSAGE_ID", number);
        assert_eq!((&*entry["REVISION"], &*entry["AUTHOR"]), (&*head, "Ann"));
    }
    // Drift.
    site.kubectl(&["patch", "deployment", "web", "-p", r#"{"spec":{"replicas":3}}"#]);
    assert_eq!(of("ACTION", "repair")["MESSAGE_ID"], "ef1e11c4a4354e04a88142b05b4cc992");
    // A wish that cannot be had.
    repo.change("env.yaml", &yaml::config_map("env", "no such key", "1"));
    journal.has(&[("ACTION", "refuse"), ("OBJECT_NAME", "env"), ("PRIORITY", "4")]);
    assert_eq!(daemon.stop().code(), Some(0));
    assert_eq!(daemon.full_log(), "", "nothing is written beside the journal");
}
