//! The state of something that has to be read, as a key or the data of an object.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The state of something that has to be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) enum ReadState<T> {
    /// It is being read.
    #[default]
    Reading,
    /// This.
    Value(T),
    /// It cannot be read, and why: nothing waits for it.
    Unreadable(Arc<str>),
}
