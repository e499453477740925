//! Values read from files, and read again when the files have changed.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The version of a file: inodes are given again, and a time may not advance.
type FileVersion = Option<(u64, u64, i64, i64, u64)>;

/// The value that counts while the files are unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StaleFallback {
    /// Nothing.
    Nothing,
    /// The last usable value.
    LastUsable,
}

/// A value that is made of files.
pub(super) struct FileValue<T> {
    files: Vec<PathBuf>,
    meanwhile: StaleFallback,
    make: fn(&[PathBuf]) -> Result<T, String>,
    known: Mutex<FileValueState<T>>,
}

struct FileValueState<T> {
    stamps: Vec<FileVersion>,
    made: Option<Result<Arc<T>, String>>,
}

impl<T> fmt::Debug for FileValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> FileValue<T> {
    /// Returns the value of these files; nothing is read yet.
    pub(super) fn of(
        files: Vec<PathBuf>,
        meanwhile: StaleFallback,
        make: fn(&[PathBuf]) -> Result<T, String>,
    ) -> Arc<Self> {
        let known = Mutex::new(FileValueState { stamps: Vec::new(), made: None });
        Arc::new(Self { files, meanwhile, make, known })
    }

    /// Returns the present value, or the reason for which there is none. A disk that hangs delays
    /// nobody else.
    pub(super) async fn current_value(self: &Arc<Self>) -> Result<Arc<T>, String> {
        let kept = self.clone();
        let read = tokio::task::spawn_blocking(move || kept.read()).await;
        // A panic message may hold file contents.
        read.unwrap_or_else(|_| Err("its files could not be read".to_owned()))
    }

    fn read(&self) -> Result<Arc<T>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the files are read: what changes meanwhile is read again.
        let stamps: Vec<FileVersion> = self.files.iter().map(|file| file_version(file)).collect();
        if let (Some(made), true) = (&known.made, known.stamps == stamps) {
            return made.clone();
        }
        let last =
            known.made.take().and_then(Result::ok).filter(|_| self.meanwhile == StaleFallback::LastUsable);
        let made = match ((self.make)(&self.files).map(Arc::new), last) {
            (Err(why), Some(last)) => {
                tracing::warn!("{why}; what was read before stays in use");
                Ok(last)
            }
            (Err(why), None) => {
                tracing::warn!("{why}");
                Err(why)
            }
            (made, _) => made,
        };
        *known = FileValueState { stamps, made: Some(made.clone()) };
        made
    }
}

fn file_version(file: &Path) -> FileVersion {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec(), found.len()))
}
