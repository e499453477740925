//! Waiting for a condition, with a deadline.

use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::{Duration, Instant};

/// The time limit of anything that happens at once: generous, because the machine may be busy.
/// Speed is measured, not waited for.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(3);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Does as [`eventually`], for looks that cost much, as those into the audit log.
#[track_caller]
pub(crate) fn in_time<T, E: Display>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<T, E>,
) -> T {
    eventually(what, limit, || probe().inspect_err(|_| thread::sleep(PAUSE * 30)))
}

/// Looks until there is something; fails with the last reason why there was not.
#[track_caller]
pub(crate) fn eventually<T, E: Display>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        match probe() {
            Ok(found) => return found,
            Err(why) if Instant::now() >= deadline => panic!("not within {limit:?}: {what}: {why}"),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Looks until something is true.
#[track_caller]
pub(crate) fn until(what: &str, mut probe: impl FnMut() -> bool) {
    eventually(what, DEFAULT_TIMEOUT, || if probe() { Ok(()) } else { Err("it is not so") });
}

/// Waits for the next message on a socket; none at the end of its time limit. A signal is no end: a
/// read with a time limit is not begun anew by itself after one (`signal(7)`).
pub(crate) fn receive(socket: &UnixDatagram) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Some(buffer);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
