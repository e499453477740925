//! An object beside what is asked for, and a whole source likewise: masked, as text.

use serde::{Deserialize, Serialize};

use super::ObjectStatus;

/// A live object, and the result that a write would have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectComparison {
    /// The live object, as YAML; none where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// The API server's result for the newest revision, as YAML; none where no source asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// The difference of the two, as a unified diff without names of files; empty where there is
    /// none.
    pub difference: String,
    /// The reason for which one of them is not known, or not from the API server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An object whose live content differs from its desired one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DifferingObject {
    /// The object, and the reason.
    #[serde(flatten)]
    pub object: ObjectStatus,
    /// The change.
    pub difference: String,
    /// The reason for which that is not known, or not from the API server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
