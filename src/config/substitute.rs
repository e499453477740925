//! The variables of a source: those that its spec holds, and the objects that hold others.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::allow::require_value;
use super::{DnsLabel, ObjectName};

/// The name of a variable: `[_a-zA-Z][_a-zA-Z0-9]*`, at most 253 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct VariableName(String);

impl VariableName {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Finds variables by texts that may be no name of any.
impl std::borrow::Borrow<str> for VariableName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that no variable is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a variable: letters, digits and _, at most 253, with no digit in front")]
pub struct ParseVariableNameError;

impl FromStr for VariableName {
    type Err = ParseVariableNameError;

    fn from_str(text: &str) -> Result<Self, ParseVariableNameError> {
        let plain = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        let right = (1..=253).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with(|first: char| first.is_ascii_digit());
        right.then(|| Self(text.to_owned())).ok_or(ParseVariableNameError)
    }
}

impl<'de> Deserialize<'de> for VariableName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(VariableNameVisitor)
    }
}

struct VariableNameVisitor;

impl Visitor<'_> for VariableNameVisitor {
    type Value = VariableName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a variable: letters, digits and _, with no digit in front")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<VariableName, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The kind of an object that holds variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum VariableHolderKind {
    /// Its values may be shown.
    ConfigMap,
    /// Its values are shown nowhere, unless its entry says that they are no secrets.
    Secret,
}

impl VariableHolderKind {
    /// Returns the kind as Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the name of the kind in URLs and roles.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

impl fmt::Display for VariableHolderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object that holds variables, as a `Source` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with kind and name")]
pub(crate) struct SubstituteFromSpec {
    /// Its kind.
    pub kind: VariableHolderKind,
    /// Its name.
    pub name: ObjectName,
    /// Its namespace; none for that of the source's objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<DnsLabel>,
    /// Indicates whether it may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Indicates whether its values are secrets; for a Secret alone, whose values are unless this
    /// says otherwise.
    #[serde(default, deserialize_with = "require_value", skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<bool>,
}

impl SubstituteFromSpec {
    /// Returns whether it calls the values of a ConfigMap secrets, which nothing keeps so.
    pub(super) fn is_sensitive_config_map(&self) -> bool {
        self.kind == VariableHolderKind::ConfigMap && self.sensitive == Some(true)
    }

    fn secrecy(&self) -> VariableSecrecy {
        match (self.kind, self.sensitive) {
            (VariableHolderKind::ConfigMap, _) | (VariableHolderKind::Secret, Some(false)) => {
                VariableSecrecy::Open
            }
            (VariableHolderKind::Secret, None | Some(true)) => VariableSecrecy::Secret,
        }
    }
}

/// The variables that a source puts into its manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubstitutionConfig {
    /// Variables of the spec itself; they win over all others.
    pub values: BTreeMap<VariableName, String>,
    /// The objects that hold others, in their order: a later one wins over an earlier one.
    pub from: Vec<VariableHolder>,
}

/// A variable holder: a `ConfigMap` or Secret whose data are variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableHolder {
    /// Its kind.
    pub kind: VariableHolderKind,
    /// Its namespace.
    pub namespace: DnsLabel,
    /// Its name.
    pub name: ObjectName,
    /// Indicates whether a source is rendered without it.
    pub need: VariableHolderNeed,
    /// The secrecy of its values.
    pub secrecy: VariableSecrecy,
}

/// The secrecy of a variable: who may see its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSecrecy {
    /// Everybody who sees what it is put into.
    Open,
    /// Nobody: it comes from a Secret.
    Secret,
}

/// Indicates whether a source is rendered without an object that holds variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableHolderNeed {
    /// The object must be there.
    Required,
    /// The source is rendered without the variables of a missing object.
    Optional,
}

/// `ConfigMap shop/cluster-vars`.
impl fmt::Display for VariableHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl SubstitutionConfig {
    /// Returns the checked form; none where the spec has neither key. A key without any entry asks
    /// for substitution too, as a manifest may have defaults for all of its variables.
    pub(super) fn of(
        values: Option<BTreeMap<VariableName, String>>,
        from: Option<Vec<SubstituteFromSpec>>,
        namespace: &DnsLabel,
    ) -> Option<Self> {
        if values.is_none() && from.is_none() {
            return None;
        }
        let holder = |spec: SubstituteFromSpec| VariableHolder {
            secrecy: spec.secrecy(),
            kind: spec.kind,
            namespace: spec.namespace.unwrap_or_else(|| namespace.clone()),
            name: spec.name,
            need: if spec.optional { VariableHolderNeed::Optional } else { VariableHolderNeed::Required },
        };
        let from = from.unwrap_or_default().into_iter().map(holder).collect();
        Some(Self { values: values.unwrap_or_default(), from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_those_of_flux() {
        let long = "a".repeat(253);
        for right in ["a", "_", "A1", "_1", "cluster_name", &long] {
            assert_eq!(right.parse::<VariableName>().map(|name| name.to_string()).as_deref(), Ok(right));
        }
        for wrong in ["", "1", "1a", "a-b", "a.b", "ä", "a b", "a\n", &format!("{long}a")] {
            assert_eq!(wrong.parse::<VariableName>(), Err(ParseVariableNameError), "{wrong}");
        }
    }

    #[test]
    fn a_holder_without_a_namespace_is_in_that_of_the_source() {
        let from: Vec<SubstituteFromSpec> = serde_json::from_value(serde_json::json!([
            { "kind": "ConfigMap", "name": "cluster.vars" },
            { "kind": "Secret", "name": "b", "namespace": "flux-system", "optional": true },
        ]))
        .unwrap();
        let config = SubstitutionConfig::of(None, Some(from), &"shop".parse().unwrap()).unwrap();
        let named: Vec<_> = config.from.iter().map(|holder| (holder.to_string(), holder.need)).collect();
        assert_eq!(
            named,
            [
                ("ConfigMap shop/cluster.vars".to_owned(), VariableHolderNeed::Required),
                ("Secret flux-system/b".to_owned(), VariableHolderNeed::Optional),
            ]
        );
    }

    #[test]
    fn the_values_of_a_secret_alone_are_secrets_unless_its_entry_says_otherwise() {
        use VariableSecrecy::{Open, Secret};
        let check = |entry: serde_json::Value, expected: VariableSecrecy| {
            let from: SubstituteFromSpec = serde_json::from_value(entry.clone()).unwrap();
            assert_eq!(from.secrecy(), expected, "{entry}");
            assert_eq!(serde_json::to_value(&from).unwrap(), entry);
        };
        check(serde_json::json!({ "kind": "ConfigMap", "name": "a" }), Open);
        check(serde_json::json!({ "kind": "ConfigMap", "name": "a", "sensitive": false }), Open);
        check(serde_json::json!({ "kind": "Secret", "name": "a" }), Secret);
        check(serde_json::json!({ "kind": "Secret", "name": "a", "sensitive": true }), Secret);
        check(serde_json::json!({ "kind": "Secret", "name": "a", "sensitive": false }), Open);
        let empty = serde_json::json!({ "kind": "Secret", "name": "a", "sensitive": null });
        assert!(serde_json::from_value::<SubstituteFromSpec>(empty).is_err());
    }

    #[test]
    fn a_key_without_entries_asks_for_substitution_too() {
        let namespace = DnsLabel::unnamed();
        assert_eq!(SubstitutionConfig::of(None, None, &namespace), None);
        let empty = Some(SubstitutionConfig::default());
        assert_eq!(SubstitutionConfig::of(Some(BTreeMap::new()), None, &namespace), empty);
        assert_eq!(SubstitutionConfig::of(None, Some(Vec::new()), &namespace), empty);
    }
}
