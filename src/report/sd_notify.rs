//! The protocol of the service manager, `sd_notify`(3): datagrams of `KEY=value` lines.
//!
//! No crate: `sd-notify` reads the socket's address from the environment at each call. Here the
//! environment is read in one place only, and a test must not change that of the whole process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time for which a message waits for a service manager whose queue is full.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(1);

/// The least time between two status lines.
const STATUS_LINE_INTERVAL: Duration = Duration::from_secs(1);

/// The bytes to which the status line is cut.
const MAX_STATUS_LINE_BYTES: usize = 1024;

/// The bytes to which each part of it is cut, so that the others are seen too.
const MAX_STATUS_PART_BYTES: usize = 512;

/// The way to the service manager. Without one, all that is reported is lost on purpose.
#[derive(Debug, Default)]
pub(crate) struct ServiceNotifier {
    sockets: Option<NotifySockets>,
}

#[derive(Debug)]
struct NotifySockets {
    address: SocketAddr,
    /// For changes of state, which wait for a manager whose queue is full.
    patient: UnixDatagram,
    /// For messages that can be sent later as well: their sender has other things to do.
    hasty: UnixDatagram,
}

/// The way in which a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendMode {
    Blocking,
    NonBlocking,
}

impl ServiceNotifier {
    /// Returns the way to this address, as `$NOTIFY_SOCKET` names it: a path, or `@` before an
    /// abstract name.
    ///
    /// # Errors
    ///
    /// An address that is neither, or no socket to send from.
    pub(crate) fn connect(address: &OsStr) -> io::Result<Self> {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(Path::new(address))?,
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "it is no Unix socket")),
        };
        let (patient, hasty) = (UnixDatagram::unbound()?, UnixDatagram::unbound()?);
        patient.set_write_timeout(Some(NOTIFY_TIMEOUT))?;
        hasty.set_nonblocking(true)?;
        Ok(Self { sockets: Some(NotifySockets { address, patient, hasty }) })
    }

    /// Sends lines as one message, and returns whether the manager has got it. The answer makes no
    /// difference to the service.
    fn send(&self, message: &str, haste: SendMode) -> bool {
        let Some(NotifySockets { address, patient, hasty }) = &self.sockets else { return true };
        let socket = if haste == SendMode::Blocking { patient } else { hasty };
        let sent = socket.send_to_addr(message.as_bytes(), address);
        if let Err(error) = &sent {
            tracing::debug!("the service manager could not be notified of {message:?}: {error}");
        }
        sent.is_ok()
    }
}

/// The topic of a part of the status line; the parts are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StatusTopic {
    /// The parts that make no progress.
    Progress,
    /// A configuration that is not in force.
    Configuration,
    /// The API server, where it does not answer.
    Server,
    /// The status of everything.
    State,
}

/// The outcome of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReloadOutcome {
    /// It is in force, as far as it can be without a new process.
    Taken,
    /// It is not usable; the one before stays in force.
    Refused,
}

/// The number of configurations taken over, and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReloadCounts {
    /// See [`ReloadOutcome::Taken`].
    pub taken: u64,
    /// See [`ReloadOutcome::Refused`].
    pub refused: u64,
}

/// The service as its manager sees it. Cheap to clone; all clones are the same service.
#[derive(Clone, Debug)]
pub(crate) struct SystemdService(Arc<ServiceState>);

#[derive(Debug)]
struct ServiceState {
    notifier: ServiceNotifier,
    line: Mutex<StatusLine>,
    changed: tokio::sync::Notify,
    taken: AtomicU64,
    refused: AtomicU64,
}

/// Indicates whether the manager waits to hear that the service is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReadyState {
    /// The manager waits, and the service is not up.
    #[default]
    Starting,
    /// The manager waits, and the service is up: it could not be told yet.
    Unsent,
    /// The manager was told.
    Sent,
}

#[derive(Debug, Default)]
struct StatusLine {
    parts: BTreeMap<StatusTopic, String>,
    sent: String,
    ready: ReadyState,
}

impl StatusLine {
    fn text(&self) -> String {
        let short = |part: &String| {
            let end = part.floor_char_boundary(MAX_STATUS_PART_BYTES);
            part.get(..end).unwrap_or_default().to_owned()
        };
        let parts: Vec<String> = self.parts.values().map(short).collect();
        let mut text = parts.join("; ").replace(char::is_control, " ");
        text.truncate(text.floor_char_boundary(MAX_STATUS_LINE_BYTES));
        text
    }
}

impl SystemdService {
    /// Returns a service that reports to this manager.
    pub(crate) fn new(notifier: ServiceNotifier) -> Self {
        let (line, changed) = (Mutex::default(), tokio::sync::Notify::new());
        let (taken, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(ServiceState { notifier, line, changed, taken, refused }))
    }

    /// Counts a new configuration.
    pub(crate) fn count(&self, reload: ReloadOutcome) {
        let counter = match reload {
            ReloadOutcome::Taken => &self.0.taken,
            ReloadOutcome::Refused => &self.0.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many new configurations there were.
    pub(crate) fn reload_counts(&self) -> ReloadCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReloadCounts { taken: count(&self.0.taken), refused: count(&self.0.refused) }
    }

    /// Reports that the service is up, or done with its new configuration; once for each of the
    /// two.
    pub(crate) fn notify_ready(&self) {
        let mut line = self.line();
        if line.ready == ReadyState::Starting {
            line.ready = ReadyState::Unsent;
        }
        if !self.send_line(&mut line, SendMode::Blocking) {
            self.0.changed.notify_one();
        }
    }

    /// Reports that a new configuration is taken over; [`SystemdService::notify_ready`] follows.
    pub(crate) fn notify_reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        let mut line = self.line();
        // Should the service not be up yet, that is what is reported next.
        line.ready = ReadyState::Starting;
        let text = line.text();
        let message = format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS={text}");
        if self.0.notifier.send(&message, SendMode::Blocking) {
            line.sent = text;
        }
    }

    /// Reports that the service ends.
    pub(crate) fn notify_stopping(&self) {
        self.0.notifier.send("STOPPING=1\nSTATUS=stopping", SendMode::Blocking);
    }

    /// Asks for more time to start, from now on.
    pub(crate) fn extend(&self, more: Duration) {
        self.0.notifier.send(&format!("EXTEND_TIMEOUT_USEC={}", more.as_micros()), SendMode::Blocking);
    }

    /// Reports that each part makes progress.
    pub(super) fn notify_alive(&self) {
        self.0.notifier.send("WATCHDOG=1", SendMode::Blocking);
    }

    /// Sets a part of the status line; an empty text takes it out. [`SystemdService::keep_current`]
    /// sends it.
    pub(crate) fn set_topic(&self, topic: StatusTopic, text: impl Into<String>) {
        let text = text.into();
        let mut line = self.line();
        if text.is_empty() {
            line.parts.remove(&topic);
        } else {
            line.parts.insert(topic, text);
        }
        drop(line);
        self.0.changed.notify_one();
    }

    /// Sends the status line at once, where it has changed. A line that could not be sent is tried
    /// again.
    pub(super) fn flush(&self) {
        if !self.send_line(&mut self.line(), SendMode::NonBlocking) {
            self.0.changed.notify_one();
        }
    }

    /// Sends the status line each time that it changes, at most once a second. Never ends.
    pub(crate) async fn keep_current(self) {
        loop {
            self.0.changed.notified().await;
            self.flush();
            tokio::time::sleep(STATUS_LINE_INTERVAL).await;
        }
    }

    /// Sends what the manager does not know yet, and returns whether it knows it then.
    fn send_line(&self, line: &mut StatusLine, haste: SendMode) -> bool {
        let text = line.text();
        let state = if line.ready == ReadyState::Unsent { "READY=1\n" } else { "" };
        if state.is_empty() && text == line.sent {
            return true;
        }
        let sent = self.0.notifier.send(&format!("{state}STATUS={text}"), haste);
        if sent {
            line.sent = text;
            line.ready = if line.ready == ReadyState::Unsent { ReadyState::Sent } else { line.ready };
        }
        sent
    }

    fn line(&self) -> MutexGuard<'_, StatusLine> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A service manager that hears.
    pub(in crate::report) struct Manager {
        _dir: TempDir,
        socket: UnixDatagram,
    }

    impl Manager {
        /// Returns a manager, and a service that reports to it.
        pub(in crate::report) fn with_service() -> (Self, SystemdService) {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("notify");
            let socket = UnixDatagram::bind(&path).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let service = SystemdService::new(ServiceNotifier::connect(path.as_os_str()).unwrap());
            (Self { _dir: dir, socket }, service)
        }

        /// Returns the next message.
        pub(in crate::report) fn hears(&self) -> String {
            let mut buffer = [0; 4096];
            loop {
                match self.socket.recv(&mut buffer) {
                    // A read with a time limit ends at any signal, such as that of a child's end.
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    received => return String::from_utf8(buffer[..received.unwrap()].to_vec()).unwrap(),
                }
            }
        }

        /// Returns all messages that are there.
        pub(in crate::report) fn heard(&self) -> Vec<String> {
            let mut heard = Vec::new();
            self.socket.set_nonblocking(true).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(length) = self.socket.recv(&mut buffer) {
                heard.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
            }
            self.socket.set_nonblocking(false).unwrap();
            heard
        }
    }

    #[test]
    fn states_are_reported_with_the_status_line() {
        let (manager, service) = Manager::with_service();
        service.set_topic(StatusTopic::State, "waiting\nfor godot");
        service.notify_ready();
        assert_eq!(manager.hears(), "READY=1\nSTATUS=waiting for godot");
        service.flush();
        service.set_topic(StatusTopic::Configuration, "a new one is refused");
        service.flush();
        assert_eq!(manager.hears(), "STATUS=a new one is refused; waiting for godot");
        service.set_topic(StatusTopic::Configuration, "");
        service.notify_reloading();
        let reloading = manager.hears();
        let rest = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        let (micros, status) = rest.split_once('\n').unwrap();
        let now = clock_gettime(ClockId::Monotonic);
        let age = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000 - micros.parse::<i64>().unwrap();
        assert!((0..60_000_000).contains(&age), "{age}");
        assert_eq!(status, "STATUS=waiting for godot");
        service.extend(Duration::from_secs(90));
        assert_eq!(manager.hears(), "EXTEND_TIMEOUT_USEC=90000000");
        service.notify_stopping();
        assert_eq!(manager.hears(), "STOPPING=1\nSTATUS=stopping");
    }

    #[test]
    fn a_long_status_is_cut_between_characters() {
        let (manager, service) = Manager::with_service();
        service.set_topic(StatusTopic::State, "ä".repeat(MAX_STATUS_LINE_BYTES));
        service.flush();
        assert_eq!(manager.hears(), format!("STATUS={}", "ä".repeat(MAX_STATUS_PART_BYTES / 2)));
        // Nobody's words keep the rest from being seen.
        service.set_topic(StatusTopic::Progress, "a".repeat(MAX_STATUS_LINE_BYTES));
        service.set_topic(StatusTopic::State, "all is well");
        service.flush();
        assert_eq!(manager.hears(), format!("STATUS={}; all is well", "a".repeat(MAX_STATUS_PART_BYTES)));
    }

    #[test]
    fn it_is_up_once_and_after_each_new_configuration_once() {
        let (manager, service) = Manager::with_service();
        service.set_topic(StatusTopic::State, "a");
        service.notify_ready();
        service.set_topic(StatusTopic::State, "b");
        service.notify_ready();
        service.notify_ready();
        assert_eq!(manager.heard(), ["READY=1\nSTATUS=a", "STATUS=b"]);
        service.notify_reloading();
        service.flush();
        service.notify_reloading();
        service.notify_ready();
        service.notify_ready();
        let heard = manager.heard();
        let begins: Vec<&str> = heard.iter().filter_map(|text| text.split('=').next()).collect();
        assert_eq!(begins, ["RELOADING", "RELOADING", "READY"]);
    }

    // A manager that is busy, or not there for a moment, hears it later; and the service does not
    // wait for it.
    #[tokio::test(start_paused = true)]
    async fn what_the_manager_cannot_hear_is_reported_later() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("notify");
        let service = SystemdService::new(ServiceNotifier::connect(path.as_os_str()).unwrap());
        service.set_topic(StatusTopic::State, "here");
        service.notify_ready();
        let updates = tokio::spawn(service.clone().keep_current());
        tokio::time::sleep(STATUS_LINE_INTERVAL * 3).await;
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        tokio::time::sleep(STATUS_LINE_INTERVAL * 2).await;
        let next = || {
            let mut buffer = [0; 4096];
            let length = socket.recv(&mut buffer).ok()?;
            Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
        };
        assert_eq!(next().as_deref(), Some("READY=1\nSTATUS=here"));
        assert_eq!(next(), None);
        // Its queue is full when a sender who has sent nothing yet has no room; what one may have
        // on its way is bounded.
        let send = |sender: &UnixDatagram| sender.send_to(b"X=1", &path).is_ok();
        let sender = || {
            let sender = UnixDatagram::unbound().unwrap();
            sender.set_nonblocking(true).unwrap();
            send(&sender).then_some(sender)
        };
        let senders: Vec<_> = std::iter::from_fn(sender).inspect(|sender| while send(sender) {}).collect();
        assert!(!senders.is_empty());
        service.set_topic(StatusTopic::State, "there");
        tokio::time::sleep(STATUS_LINE_INTERVAL * 3).await;
        let mut heard: Vec<String> = std::iter::from_fn(next).collect();
        heard.retain(|text| text != "X=1");
        assert_eq!(heard, [""; 0]);
        tokio::time::sleep(STATUS_LINE_INTERVAL * 2).await;
        assert_eq!(next().as_deref(), Some("STATUS=there"));
        updates.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_is_reported_at_most_once_a_second_and_only_when_it_changes() {
        let (manager, service) = Manager::with_service();
        let updates = tokio::spawn(service.clone().keep_current());
        let moment = Duration::from_millis(100);
        for number in 0..30 {
            service.set_topic(StatusTopic::State, format!("{}", number.min(25)));
            tokio::time::sleep(moment).await;
        }
        // 3 s of changes: at once, after one second, after two; the last when the third is over.
        tokio::time::sleep(STATUS_LINE_INTERVAL * 10).await;
        assert_eq!(manager.heard(), ["STATUS=0", "STATUS=10", "STATUS=20", "STATUS=25"]);
        updates.abort();
    }

    #[test]
    fn abstract_sockets_and_no_socket_at_all() {
        let name = format!("rhumb-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let service = SystemdService::new(ServiceNotifier::connect(OsStr::new(&format!("@{name}"))).unwrap());
        service.notify_alive();
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"WATCHDOG=1");
        assert!(ServiceNotifier::connect(OsStr::new("vsock:2:1234")).is_err());
        // Nobody listens, or nobody ever did: neither is the service's trouble.
        drop(socket);
        service.notify_ready();
        SystemdService::new(ServiceNotifier::default()).notify_ready();
    }
}
