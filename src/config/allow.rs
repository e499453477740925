//! The allow-list of a source, as the configuration writes it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::DnsLabel;
use crate::engine::{AllowList, ClusterScopeRule, KindPattern};

/// The key `allow` of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub struct AllowSpec {
    /// The namespaces of its objects; none for any.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "require_value")]
    pub namespaces: Option<BTreeSet<DnsLabel>>,
    /// Their kinds; none for any.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "require_value")]
    pub kinds: Option<BTreeSet<KindPattern>>,
    /// The objects without a namespace that it may have. By default none where namespaces are
    /// named, else any.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "require_value")]
    pub cluster_scoped: Option<ClusterScopedSpec>,
}

/// Reads a key that must have a value: without one it is a mistake, and must not allow everything.
pub(super) fn require_value<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The objects without a namespace that a source may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterScopedSpec {
    /// All, or none.
    All(bool),
    /// Objects of these kinds.
    Kinds(BTreeSet<KindPattern>),
}

impl Serialize for ClusterScopedSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All(all) => serializer.serialize_bool(*all),
            Self::Kinds(kinds) => kinds.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ClusterScopedSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ClusterScopedSpecVisitor)
    }
}

struct ClusterScopedSpecVisitor;

impl<'de> Visitor<'de> for ClusterScopedSpecVisitor {
    type Value = ClusterScopedSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, or a list of kinds, for example [Namespace]")
    }

    fn visit_bool<E: de::Error>(self, all: bool) -> Result<ClusterScopedSpec, E> {
        Ok(ClusterScopedSpec::All(all))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ClusterScopedSpec, A::Error> {
        BTreeSet::deserialize(SeqAccessDeserializer::new(items)).map(ClusterScopedSpec::Kinds)
    }
}

impl From<AllowSpec> for AllowList {
    fn from(spec: AllowSpec) -> Self {
        let cluster_scoped = match spec.cluster_scoped {
            Some(ClusterScopedSpec::Kinds(kinds)) => ClusterScopeRule::Kinds(kinds),
            Some(ClusterScopedSpec::All(true)) => ClusterScopeRule::Any,
            None if spec.namespaces.is_none() => ClusterScopeRule::Any,
            Some(ClusterScopedSpec::All(false)) | None => ClusterScopeRule::None,
        };
        let namespaces = spec.namespaces.map(|names| names.iter().map(|name| name.as_str().into()).collect());
        Self { namespaces, kinds: spec.kinds, cluster_scoped, outer: None, system: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn objects_outside_of_namespaces_are_allowed_unless_namespaces_are_named() {
        #[track_caller]
        fn check(spec: Value, expected: ClusterScopeRule) {
            let read: AllowSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), spec);
            assert_eq!(AllowList::from(read).cluster_scoped, expected);
        }
        check(json!({}), ClusterScopeRule::Any);
        check(json!({ "kinds": ["ConfigMap", "apps/*"] }), ClusterScopeRule::Any);
        check(json!({ "namespaces": ["shop"] }), ClusterScopeRule::None);
        check(json!({ "namespaces": ["shop"], "clusterScoped": true }), ClusterScopeRule::Any);
        check(json!({ "clusterScoped": false }), ClusterScopeRule::None);
        let namespace = BTreeSet::from(["Namespace".parse().unwrap()]);
        check(
            json!({ "namespaces": ["shop"], "clusterScoped": ["Namespace"] }),
            ClusterScopeRule::Kinds(namespace),
        );
    }

    #[test]
    fn a_mistake_never_allows_everything() {
        #[track_caller]
        fn check(spec: Value) {
            let read = serde_json::from_value::<AllowSpec>(spec);
            assert!(read.is_err(), "{read:?}");
        }
        check(Value::Null);
        check(json!({ "namespaces": null }));
        check(json!({ "kinds": null }));
        check(json!({ "clusterScoped": null }));
        check(json!({ "clusterScoped": "Namespace" }));
        check(json!({ "namespaces": ["shop-*"] }));
        check(json!({ "namespaces": "shop" }));
        check(json!({ "kinds": ["*"] }));
        check(json!({ "namespace": ["shop"] }));
        let nothing: AllowSpec = serde_json::from_value(json!({ "namespaces": [] })).unwrap();
        assert_eq!(AllowList::from(nothing).namespaces, Some(BTreeSet::new()));
    }
}
