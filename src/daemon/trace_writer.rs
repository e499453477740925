//! The file of a trace: a thread writes it, so that a slow or failing disk never stops the loop.
//!
//! **Invariant:** a trace has no gap. Where a part of it cannot be written it ends, and the daemon
//! goes on without.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cluster::ConfigKey;
use crate::engine::{TraceChunk, TraceRecorder};

/// The maximum size of a trace, in bytes. Its beginning is needed, so nothing is rotated away.
const MAX_TRACE_BYTES: u64 = 2 << 30;

/// The maximum number of chunks that wait for the disk.
const MAX_WAITING_CHUNKS: usize = 4096;

/// The maximum size of what waits for the disk, in bytes.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// The time limit for what waits for the disk at the end.
const END_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 300 });

/// Indicates whether a trace goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceState {
    /// The trace goes on.
    Open,
    /// The trace has ended, and why was logged.
    Ended,
}

/// Writes the trace of this process, over all its loops.
#[derive(Clone, Debug)]
pub(crate) struct TraceWriter(Arc<TraceFile>);

#[derive(Debug)]
struct TraceFile {
    name: String,
    start: Instant,
    /// The way to the thread; none once the trace has ended.
    chunks: Mutex<Option<SyncSender<Vec<u8>>>>,
    /// Ends with the thread.
    ended: Mutex<Receiver<()>>,
    size: AtomicU64,
    waiting: Arc<AtomicUsize>,
}

impl TraceWriter {
    /// Creates the file, which nobody else may read.
    ///
    /// # Errors
    ///
    /// It must not exist yet, and its thread must start.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let (chunks, received) = sync_channel(MAX_WAITING_CHUNKS);
        let (running, ended) = sync_channel(1);
        let waiting = Arc::new(AtomicUsize::new(0));
        let counter = waiting.clone();
        std::thread::Builder::new().name("trace".to_owned()).spawn(move || {
            // It is dropped with the thread.
            let _running: SyncSender<()> = running;
            write_chunks(file, &received, &counter);
        })?;
        Ok(Self(Arc::new(TraceFile {
            name: path.display().to_string(),
            start: Instant::now(),
            chunks: Mutex::new(Some(chunks)),
            ended: Mutex::new(ended),
            size: AtomicU64::new(0),
            waiting,
        })))
    }

    /// Returns a recorder for an engine. None where the trace has ended, or the system gives no
    /// random bytes.
    pub(crate) fn recorder(&self) -> Option<TraceRecorder> {
        if self.0.lock_chunks().is_none() {
            return None;
        }
        let key = ConfigKey::new_random().and_then(|random| random.key());
        if key.is_none() {
            self.end("the system gives no random bytes");
        }
        key.map(|key| TraceRecorder::new(self.0.start, key))
    }

    /// Writes lines behind those before.
    pub(crate) fn write(&self, chunk: TraceChunk) -> TraceState {
        let TraceChunk { lines, end_reason } = chunk;
        if !lines.is_empty()
            && let Err(why) = self.send(lines)
        {
            return self.end(&why);
        }
        match end_reason {
            Some(why) => self.end(&why),
            None => TraceState::Open,
        }
    }

    fn send(&self, lines: Vec<u8>) -> Result<(), String> {
        let bytes = lines.len();
        if self.0.size.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64 > MAX_TRACE_BYTES {
            return Err(format!("it would be larger than {MAX_TRACE_BYTES} bytes"));
        }
        if self.0.waiting.fetch_add(bytes, Ordering::Relaxed) > MAX_WAITING_BYTES {
            return Err("the disk is too slow".to_owned());
        }
        let chunks = self.0.lock_chunks();
        let sender = chunks.as_ref().ok_or_else(|| "it has ended".to_owned())?;
        sender.try_send(lines).map_err(|_| "the disk is too slow, or a write has failed".to_owned())
    }

    fn end(&self, why: &str) -> TraceState {
        if self.0.lock_chunks().take().is_some() {
            tracing::warn!(file = %self.0.name, "the trace ends here, and rhumb goes on without: {why}");
        }
        TraceState::Ended
    }
}

impl TraceFile {
    fn lock_chunks(&self) -> MutexGuard<'_, Option<SyncSender<Vec<u8>>>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the disk for some time: the process ends after it.
impl Drop for TraceFile {
    fn drop(&mut self) {
        drop(self.lock_chunks().take());
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // The process goes on when the thread has ended, and when the time is over.
        let _ = ended.recv_timeout(END_TIMEOUT);
    }
}

/// Writes what comes, until nothing more can come or a write fails.
fn write_chunks(mut file: File, chunks: &Receiver<Vec<u8>>, waiting: &AtomicUsize) {
    while let Ok(lines) = chunks.recv() {
        if let Err(error) = file.write_all(&lines) {
            tracing::warn!("the trace cannot be written: {error}");
            return;
        }
        waiting.fetch_sub(lines.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn chunk(lines: &str) -> TraceChunk {
        TraceChunk { lines: lines.as_bytes().to_vec(), end_reason: None }
    }

    #[test]
    fn chunks_are_written_in_their_order_to_a_new_file_that_nobody_else_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let writer = TraceWriter::create(&path).unwrap();
        assert_eq!(writer.write(chunk("one\n")), TraceState::Open);
        assert_eq!(writer.write(chunk("two\n")), TraceState::Open);
        drop(writer);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_existing_file_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, "mine").unwrap();
        let error = TraceWriter::create(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_full_disk_ends_the_thread_and_the_next_chunk_is_refused_at_once() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (chunks, received) = sync_channel(1);
        chunks.send(b"one\n".to_vec()).unwrap();
        write_chunks(file, &received, &AtomicUsize::new(4));
        drop(received);
        assert!(chunks.try_send(b"two\n".to_vec()).is_err());
    }

    #[test]
    fn a_trace_that_the_recorder_ends_takes_no_more_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let writer = TraceWriter::create(&path).unwrap();
        let last = TraceChunk { lines: b"one\n".to_vec(), end_reason: Some("a line is too long".to_owned()) };
        assert_eq!(writer.write(last), TraceState::Ended);
        assert!(writer.recorder().is_none());
        assert_eq!(writer.write(chunk("two\n")), TraceState::Ended);
        drop(writer);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    }
}
