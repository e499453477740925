//! An object beside what is asked for, and a whole source likewise: masked, as text.

use serde::{Deserialize, Serialize};

use super::ObjectStatus;

/// What an object shows, and what a write would make of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compared {
    /// What the cluster shows, as YAML; none where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// What the API server would make of it by the newest revision, as YAML; none where no source asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The difference of the two, as a unified diff without names of files; empty where there is none.
    pub difference: String,
    /// Why one of them is not known, or not from the API server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An object that is not as asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Differing {
    /// Which, and why not.
    #[serde(flatten)]
    pub object: ObjectStatus,
    /// What would change.
    pub difference: String,
    /// Why that is not known, or not from the API server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
