//! The fate of the volume claims of a `StatefulSet` that is deleted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{GroupKind, text_at};

/// The fate of the claims of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum VolumeClaimRetention {
    /// They stay, or there are none.
    #[default]
    Retain,
    /// They are deleted with it.
    Delete,
}

impl VolumeClaimRetention {
    /// Reads it off a content or a live object; of these only
    /// `spec.persistentVolumeClaimRetentionPolicy` is read.
    pub(crate) fn of(kind: &GroupKind, object: &Value) -> Self {
        let policy = ["spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"];
        let goes = kind.is("apps", "StatefulSet") && text_at(object, &policy) == "Delete";
        if goes { Self::Delete } else { Self::Retain }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_claims_of_a_deleted_stateful_set_go_with_it() {
        let check = |group: &str, kind: &str, policy: Value, expected: VolumeClaimRetention| {
            let object = json!({ "spec": { "persistentVolumeClaimRetentionPolicy": policy } });
            assert_eq!(
                VolumeClaimRetention::of(&GroupKind::new(group, kind), &object),
                expected,
                "{kind} {object}"
            );
        };
        let of_set = |policy: Value, expected| check("apps", "StatefulSet", policy, expected);
        of_set(Value::Null, VolumeClaimRetention::Retain);
        of_set(json!({ "whenDeleted": "Retain", "whenScaled": "Delete" }), VolumeClaimRetention::Retain);
        of_set(json!({ "whenDeleted": "Delete" }), VolumeClaimRetention::Delete);
        check("example.org", "StatefulSet", json!({ "whenDeleted": "Delete" }), VolumeClaimRetention::Retain);
    }
}
