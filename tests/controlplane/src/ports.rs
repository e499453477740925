//! Free loopback ports that stay this cluster's own, also while the part behind one is down.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use crate::error::{Context as _, Error};

/// Ports outside of the range that systems hand out for outgoing connections (from 32768 on Linux).
///
/// A port of that range could be taken by any connection while a part is down. It could even be
/// taken by the very client that tries to reach the part: on loopback such a connection succeeds,
/// with itself.
const RANGE: std::ops::Range<u16> = 20_000..32_000;
const MAX_PORT_TRIES: u32 = 500;

/// A port with the lock that keeps other clusters of this user from it.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a port that nobody listens on.
    pub(crate) fn reserve() -> Result<Self, Error> {
        let directory = lock_directory()?;
        let random = RandomState::new();
        for attempt in 0..MAX_PORT_TRIES {
            let width = u64::from(RANGE.end - RANGE.start);
            let offset = random.hash_one(attempt) % width;
            let number = RANGE.start + u16::try_from(offset).unwrap_or_default();
            let path = directory.join(number.to_string());
            let lock = File::options()
                .create(true)
                .append(true)
                .open(&path)
                .context(|| format!("open {}", path.display()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        Err(Error::Io {
            action: format!("find a free port in {RANGE:?}"),
            source: std::io::ErrorKind::AddrNotAvailable.into(),
        })
    }

    /// Returns the port's number.
    pub(crate) const fn number(&self) -> u16 {
        self.number
    }
}

fn lock_directory() -> Result<PathBuf, Error> {
    let user = rustix::process::getuid().as_raw();
    let directory = std::env::temp_dir().join(format!("rhumb-controlplane-ports-{user}"));
    fs::create_dir_all(&directory).context(|| format!("create {}", directory.display()))?;
    Ok(directory)
}
