//! One writer per state directory, across processes.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::error::SourceError;

/// The interval at which a taken lock is tried again.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The right to write to a state directory; the system takes it back when the process ends.
#[derive(Debug)]
pub(super) struct StateLock {
    file: File,
}

impl StateLock {
    /// Returns a second hold on it: it is given back when both are dropped, be it by different
    /// processes.
    pub(super) fn share(&self) -> io::Result<Stdio> {
        self.file.try_clone().map(Stdio::from)
    }
}

/// Makes the folder, if it is missing, for its owner only, and takes its lock.
pub(super) async fn take(folder: &Path, timeout: Duration) -> Result<StateLock, SourceError> {
    let lock_error = |doing| move |error| SourceError::State { path: folder.to_owned(), doing, error };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(lock_error("cannot create"))?;
    let path = folder.join("lock");
    let start = Instant::now();
    loop {
        // Opened anew each time: the folder may have been deleted and made again meanwhile, and a
        // lock on a removed file locks nothing.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(lock_error("cannot write to"))?;
        match file.try_lock() {
            Ok(()) if is_at(&file, &path) => return Ok(StateLock { file }),
            Err(TryLockError::Error(error)) => return Err(lock_error("cannot lock")(error)),
            Ok(()) | Err(TryLockError::WouldBlock) if start.elapsed() >= timeout => {
                return Err(SourceError::Busy { path });
            }
            Ok(()) | Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_RETRY_DELAY).await,
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let there = std::fs::metadata(path).map(identity);
    matches!((file.metadata().map(identity), there), (Ok(held), Ok(there)) if held == there)
}
