//! The mark of an object whose values a chart made up: which release it is of, and which render
//! made them.
//!
//! Values of two renders do not fit: a password of one does not open what was set up with the
//! other. So one object of a release is not created beside others that another render made.
//!
//! Somebody who may write an object may write its mark. So the mark is for people. The seal of the
//! release names the render too, and only that holds other objects back.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::object::ContentHash;

/// The most bytes of a mark that are read: a namespace, the name of a Helm release, and a number.
const MAX_MARK_BYTES: usize = 200;

/// The release of an object with made-up values, and the render that made them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GeneratedMark {
    /// The namespace and name of the Helm release.
    release: Box<str>,
    /// A random number, another one for each render.
    render: Box<str>,
}

impl GeneratedMark {
    /// Returns the mark of a render.
    pub(crate) fn new(release: &str, render: &str) -> Self {
        Self { release: release.into(), render: render.into() }
    }

    /// Reads the annotation; none where it says nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (release, render) = Some(text).filter(|text| text.len() <= MAX_MARK_BYTES)?.split_once(' ')?;
        Some(Self::new(release, render))
    }

    /// Returns the hash of the render, as a seal names it.
    pub(crate) fn render_hash(&self) -> ContentHash {
        ContentHash::hash_bytes(self.render.as_bytes())
    }

    /// Returns whether both are of one release.
    pub(crate) fn is_of_release(&self, other: &Self) -> bool {
        self.release == other.release
    }
}

/// The text of the annotation.
impl fmt::Display for GeneratedMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.release, self.render)
    }
}
