//! The API server's answer to a dry run: the impact of one content on pods.

use serde::{Deserialize, Serialize};

use crate::change::Impact;
use crate::engine::Uid;
use crate::object::ContentHash;

/// The server's answer about one content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DryRunImpact {
    /// The content.
    pub content: ContentHash,
    /// The incarnation.
    pub uid: Uid,
    /// The generation of the object that it was compared with.
    pub generation: i64,
    /// The impact.
    pub impact: Impact,
}
