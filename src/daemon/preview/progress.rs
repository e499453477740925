//! The progress of a preview, for a command that shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of objects that a preview plans, and of those that it has planned. All clones share
/// the numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreviewProgress(Arc<ObjectCounters>);

#[derive(Debug, Default)]
struct ObjectCounters {
    planned: AtomicUsize,
    all: AtomicUsize,
}

impl PreviewProgress {
    /// Returns the number of objects that are planned.
    pub(crate) fn planned(&self) -> usize {
        self.0.planned.load(Ordering::Relaxed)
    }

    /// Returns the number of all objects that are known so far: each source adds its own when it has
    /// been read.
    pub(crate) fn all(&self) -> usize {
        self.0.all.load(Ordering::Relaxed)
    }

    /// Adds the objects of a source.
    pub(crate) fn add(&self, objects: usize) {
        self.0.all.fetch_add(objects, Ordering::Relaxed);
    }

    /// Notes that one more object is planned.
    pub(crate) fn finish_object(&self) {
        self.0.planned.fetch_add(1, Ordering::Relaxed);
    }
}
