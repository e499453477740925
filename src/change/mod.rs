//! Differences between objects, and their impact on running pods.
//!
//! Owns the list of differing fields ([`diff_fields`]), what a change does to pods
//! ([`change_impact`], [`can_touch_template`]), and the API's table of fields that cannot change
//! ([`immutable_fields`]). Also owns the printable forms of an object ([`present()`],
//! [`write_yaml`], [`unified_diff`]), and the differences of texts ([`diff_lines`],
//! [`word_similarity`]).
//!
//! Everything printable that leaves this module is masked.
//!
//! **Invariant:** knows no terminal, no cluster and no history: two trees in, a judgement out.

mod compare;
mod diff;
mod immutable;
mod line_diff;
mod lists;
mod pods;
mod present;
mod sequence_diff;
mod yaml;

pub(crate) use compare::is_other_at;
pub use diff::diff_fields;
pub use immutable::immutable_fields;
pub(crate) use line_diff::{DiffSide, diff_lines};
pub use pods::change_impact;
pub(crate) use pods::{can_release_pods, can_touch_template};
pub(crate) use present::{merge_content, present, present_pair, unified_diff};
pub(crate) use sequence_diff::word_similarity;
pub(crate) use yaml::write_yaml;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of impact that a change has on the pods of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ImpactKind {
    /// No change.
    None,
    /// Changes the object and no pod.
    InPlace,
    /// Adds or removes pods of the same template.
    Scale,
    /// Replaces pods by a rolling update.
    Restart,
    /// Deletes the object and creates it again.
    Recreate,
}

/// The impact of a change, with the number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impact {
    /// The kind of impact.
    pub kind: ImpactKind,
    /// Pods that are started, stopped or replaced.
    pub pods: u32,
}

/// One field that differs; the values of Secrets are masked already.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// The path as people write it: `.spec.template.spec.containers[name="web"].image`.
    pub path: String,
    /// The cluster's value; none where the field is absent.
    pub before: Option<Value>,
    /// The new value; none where the field goes away.
    pub after: Option<Value>,
}

#[cfg(test)]
mod immutable_tests;
#[cfg(test)]
mod line_diff_tests;
#[cfg(test)]
mod pods_tests;
#[cfg(test)]
mod sequence_diff_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod yaml_tests;
