//! The number of a source in its engine.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// The number of a source in its engine, in the order in which sources were added.
///
/// Indexes each list that has one element for each source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceId(u32);

impl SourceId {
    /// Returns the id of the source that was added after `position` others.
    pub const fn new(position: usize) -> Self {
        Self(position as u32)
    }

    /// Returns the number of sources that were added before it.
    pub const fn position(self) -> usize {
        self.0 as usize
    }

    /// Returns the ids of the first `count` sources.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..count).map(Self::new)
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<T> Index<SourceId> for Vec<T> {
    type Output = T;

    fn index(&self, id: SourceId) -> &T {
        &self[id.position()]
    }
}

impl<T> IndexMut<SourceId> for Vec<T> {
    fn index_mut(&mut self, id: SourceId) -> &mut T {
        &mut self[id.position()]
    }
}

impl<T> Index<SourceId> for [T] {
    type Output = T;

    fn index(&self, id: SourceId) -> &T {
        &self[id.position()]
    }
}
