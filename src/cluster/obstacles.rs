//! Obstacles in a ConfigMap that keep everybody from writing it, whatever their rights.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;

/// The obstacles to writing a ConfigMap that it shows itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteObstacles {
    /// Indicates whether it is immutable, which nobody can take back.
    pub immutable: bool,
    /// The keys of its binary data: none of them can be a key of its data too.
    pub binary_keys: BTreeSet<String>,
}

impl WriteObstacles {
    /// Reads them off a ConfigMap.
    pub(super) fn of(object: &ConfigMap) -> Self {
        Self {
            immutable: object.immutable == Some(true),
            binary_keys: object.binary_data.iter().flatten().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// Returns the first of these keys that can be no key of its data.
    pub(crate) fn first_binary<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        keys.iter().copied().find(|key| self.binary_keys.contains(*key))
    }

    /// Returns why none of these keys can be written; none where each can.
    pub(crate) fn reason(&self, keys: &[&str]) -> Option<String> {
        if self.immutable {
            return Some("it cannot be written: `immutable` is set".to_owned());
        }
        let key = self.first_binary(keys)?;
        Some(format!("it cannot be written: `{key}` is in its `binaryData`"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_can_write_is_told_from_what_only_looks_odd() {
        let check = |object: serde_json::Value, expected: Option<&str>| {
            let object: ConfigMap = serde_json::from_value(object).unwrap();
            let expected = expected.map(|why| format!("it cannot be written: {why}"));
            assert_eq!(WriteObstacles::of(&object).reason(&["claims", "status"]), expected);
        };
        check(json!({}), None);
        check(json!({ "immutable": false, "data": { "claims": "" } }), None);
        check(json!({ "binaryData": { "other": "" } }), None);
        check(json!({ "binaryData": { "status": "" } }), Some("`status` is in its `binaryData`"));
        check(json!({ "immutable": true }), Some("`immutable` is set"));
        check(json!({ "immutable": true, "binaryData": { "claims": "" } }), Some("`immutable` is set"));
    }
}
