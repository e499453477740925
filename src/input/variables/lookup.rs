//! The objects that hold variables: in the source itself, or in the cluster.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::config::{VariableHolder, VariableHolderKind};
use crate::manifest::has_substitution_disabled;
use crate::object::text_at;
use crate::source::BlobId;

use super::table::HolderAnswer;

/// The fields of a ConfigMap or Secret with texts in the open.
const TEXT_FIELDS: [&str; 2] = ["data", "stringData"];

/// An object of the source that may hold variables. It has no `Debug`, as it may have been opened.
pub(crate) struct HolderBody {
    /// The object, in the open.
    pub(crate) object: Value,
    /// The encrypted file that it was opened from. Nothing in the object can say this.
    pub(crate) opened_from: Option<BlobId>,
    /// Indicates whether a text has an expression in the manifest. Of one that is unescaped nobody
    /// sees that any more.
    has_expression: bool,
}

impl HolderBody {
    /// Takes an object as its manifest has it.
    pub(crate) fn new(object: Value, opened_from: Option<BlobId>) -> Self {
        let has_expression = has_expression(&object);
        Self { object, opened_from, has_expression }
    }

    /// Makes the texts of a manifest those that the applied object has: `$$` is one sign there. An
    /// object that gets no variables stays as it is. Base64 has no such sign.
    pub(crate) fn unescape(&mut self) {
        if has_substitution_disabled(&self.object) {
            return;
        }
        for field in TEXT_FIELDS {
            let texts = self.object.get_mut(field).and_then(Value::as_object_mut);
            for value in texts.into_iter().flat_map(Map::values_mut) {
                if let Value::String(text) = value
                    && text.contains("$$")
                {
                    *text = text.replace("$$", "$");
                }
            }
        }
    }
}

/// The variables of one object.
#[derive(Default)]
pub(crate) struct ObjectVariables {
    values: BTreeMap<String, Zeroizing<Vec<u8>>>,
    /// The encrypted file that they were opened from.
    opened_from: Option<BlobId>,
}

impl ObjectVariables {
    /// Returns variables by their keys.
    #[cfg(test)]
    pub(crate) fn new(values: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let values = values.into_iter().map(|(key, value)| (key, Zeroizing::new(value))).collect();
        Self { values, opened_from: None }
    }

    /// Reads a ConfigMap or Secret: from a manifest or from the API server, as both have `data`.
    ///
    /// # Errors
    /// Fails where it is not as the API takes it, or still encrypted.
    pub(crate) fn read(kind: VariableHolderKind, body: &Value) -> Result<Self, HolderFault> {
        if body.get("sops").is_some() {
            return Err(HolderFault::Encrypted);
        }
        let mut held = Self::default();
        let texts = |field: &str| match body.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(_) => Err(HolderFault::Form),
        };
        match kind {
            VariableHolderKind::ConfigMap => held.add(texts("data")?, |text| Some(text.into()))?,
            VariableHolderKind::Secret => {
                held.add(texts("data")?, |text| STANDARD.decode(text.replace(['\n', '\r'], "")).ok())?;
                // `stringData` wins, as in the API server.
                held.add(texts("stringData")?, |text| Some(text.into()))?;
            }
        }
        Ok(held)
    }

    fn add(
        &mut self,
        texts: Option<&Map<String, Value>>,
        decode: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), HolderFault> {
        for (key, value) in texts.into_iter().flatten() {
            let text = match value {
                Value::Null => "",
                value => value.as_str().ok_or(HolderFault::Form)?,
            };
            let bytes = decode(text).ok_or(HolderFault::Form)?;
            self.values.insert(key.clone(), Zeroizing::new(bytes));
        }
        Ok(())
    }

    /// Returns the values by their keys.
    pub(super) fn into_values(self) -> impl Iterator<Item = (String, Zeroizing<Vec<u8>>)> {
        self.values.into_iter()
    }

    /// Returns the encrypted file that they were opened from.
    pub(super) const fn opened_from(&self) -> Option<BlobId> {
        self.opened_from
    }
}

/// Shows the keys alone, because the values may be secret.
impl fmt::Debug for ObjectVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// The reason for which an object of the source gives no variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HolderFault {
    /// Its data is none that the API takes.
    #[error("its data is no mapping of texts")]
    Form,
    /// It is encrypted, and was not opened.
    #[error("it is encrypted by SOPS, and is not opened")]
    Encrypted,
    /// Its values have variables in them, which may be its own.
    #[error("its values have `${{` in them: what another variable makes of them is not known yet")]
    Variable,
    /// It is defined more than once in the source.
    #[error("it is defined more than once in the source")]
    Ambiguous,
}

impl HolderFault {
    /// Returns the remedy.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::Form => "write each value as a text, those below `data` of a Secret as Base64",
            Self::Encrypted => {
                "only a Secret that an age identity opens gives variables, and only its data may be encrypted"
            }
            Self::Variable => {
                "write the values out; where `${` is meant literally, annotate the object with \
                 rhumb.dev/substitute: disabled"
            }
            Self::Ambiguous => "remove all but one",
        }
    }
}

/// The origin of the variables of one object.
#[derive(Debug)]
pub(crate) enum VariableLookup {
    /// The source itself has the object.
    Source(Result<ObjectVariables, HolderFault>),
    /// The cluster is asked for it, by its name.
    Cluster(VariableHolder),
}

/// The origins of variables, in the order of the objects that were named.
#[derive(Debug, Default)]
pub(crate) struct LookupPlan {
    /// One for each object.
    pub(crate) lookups: Vec<VariableLookup>,
}

impl LookupPlan {
    /// Returns the objects that the cluster is asked for.
    pub(crate) fn holders_to_read(&self) -> impl Iterator<Item = &VariableHolder> {
        self.lookups.iter().filter_map(|lookup| match lookup {
            VariableLookup::Cluster(holder) => Some(holder),
            VariableLookup::Source(_) => None,
        })
    }

    /// Returns what became of each search, in the order of the objects that were named. The cluster
    /// answers for those that the source does not have.
    pub(crate) fn answers(
        self,
        mut cluster: impl FnMut(&VariableHolder) -> HolderAnswer,
    ) -> Vec<HolderAnswer> {
        let answer = |lookup| match lookup {
            VariableLookup::Source(Ok(held)) => HolderAnswer::Found(held),
            VariableLookup::Source(Err(fault)) => HolderAnswer::Unusable(fault),
            VariableLookup::Cluster(holder) => cluster(&holder),
        };
        self.lookups.into_iter().map(answer).collect()
    }
}

/// Returns whether an object is one that holds variables.
pub(crate) fn is_holder(holder: &VariableHolder, body: &Value, default_namespace: &str) -> bool {
    let namespace = match text_at(body, &["metadata", "namespace"]) {
        "" => default_namespace,
        namespace => namespace,
    };
    text_at(body, &["apiVersion"]) == "v1"
        && text_at(body, &["kind"]) == holder.kind.as_str()
        && text_at(body, &["metadata", "name"]) == holder.name.as_str()
        && namespace == holder.namespace.as_str()
}

/// Says which of the objects are answered from the manifests of the source, and which must be asked
/// from the cluster. Bodies are those of the source, opened where they were encrypted; those that
/// name no namespace are in the given one.
pub(crate) fn plan_lookups<'o>(
    holders: &[VariableHolder],
    bodies: impl IntoIterator<Item = &'o HolderBody>,
    default_namespace: &str,
) -> LookupPlan {
    let mut found: Vec<Vec<&HolderBody>> = vec![Vec::new(); holders.len()];
    for body in bodies {
        let is_named = |holder: &VariableHolder| is_holder(holder, &body.object, default_namespace);
        for (bodies, _) in found.iter_mut().zip(holders).filter(|(_, holder)| is_named(holder)) {
            bodies.push(body);
        }
    }
    let lookup = |(bodies, holder): (Vec<&HolderBody>, &VariableHolder)| match bodies.as_slice() {
        [] => VariableLookup::Cluster(holder.clone()),
        [body] => VariableLookup::Source(read_own(holder.kind, body)),
        _ => VariableLookup::Source(Err(HolderFault::Ambiguous)),
    };
    LookupPlan { lookups: found.into_iter().zip(holders).map(lookup).collect() }
}

fn read_own(kind: VariableHolderKind, body: &HolderBody) -> Result<ObjectVariables, HolderFault> {
    let held =
        ObjectVariables { opened_from: body.opened_from, ..ObjectVariables::read(kind, &body.object)? };
    let is_literal = has_substitution_disabled(&body.object);
    if body.has_expression && !is_literal { Err(HolderFault::Variable) } else { Ok(held) }
}

/// Returns whether a text of an object has an expression. Nothing is put into Base64, whatever it
/// stands for.
fn has_expression(object: &Value) -> bool {
    let texts = TEXT_FIELDS.iter().filter_map(|field| object.get(*field)?.as_object()).flat_map(Map::values);
    // From the left, as each sign is escaped by the one before it.
    texts.filter_map(Value::as_str).any(|text| text.replace("$$", "").contains("${"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{VariableHolderNeed, VariableSecrecy};

    fn holder(kind: VariableHolderKind, namespace: &str, name: &str) -> VariableHolder {
        VariableHolder {
            kind,
            namespace: namespace.parse().unwrap(),
            name: name.parse().unwrap(),
            need: VariableHolderNeed::Required,
            secrecy: VariableSecrecy::Open,
        }
    }

    fn plain(objects: impl IntoIterator<Item = Value>) -> Vec<HolderBody> {
        objects.into_iter().map(|object| HolderBody::new(object, None)).collect()
    }

    fn describe(plan: LookupPlan) -> Vec<String> {
        let tell = |lookup| match lookup {
            VariableLookup::Cluster(holder) => format!("cluster: {holder}"),
            VariableLookup::Source(Err(fault)) => format!("fault: {fault}"),
            VariableLookup::Source(Ok(held)) => held
                .into_values()
                .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(&value)))
                .collect::<Vec<_>>()
                .join(" "),
        };
        plan.lookups.into_iter().map(tell).collect()
    }

    #[test]
    fn what_the_source_has_is_read_from_it_and_all_else_is_asked_for() {
        use VariableHolderKind::{ConfigMap, Secret};
        let map = |namespace: Value, name: &str, data: Value| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace }, "data": data,
            })
        };
        let bodies = [
            map(json!("shop"), "a", json!({ "A": "1" })),
            map(Value::Null, "b", json!({ "B": "2", "C": null })),
            map(json!("other"), "c", json!({ "C": "3" })),
            json!({ "apiVersion": "a.example/v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "shop" } }),
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "t", "namespace": "shop" },
                "data": { "D": "NA==", "E": "bm8=" }, "stringData": { "E": "5" },
            }),
        ];
        let holders = [
            holder(ConfigMap, "shop", "a"),
            holder(ConfigMap, "default", "b"),
            holder(ConfigMap, "shop", "c"),
            holder(Secret, "shop", "a"),
            holder(Secret, "shop", "s"),
            holder(Secret, "shop", "t"),
            holder(ConfigMap, "shop", "a"),
        ];
        let plan = plan_lookups(&holders, &plain(bodies), "default");
        let asked: Vec<String> = plan.holders_to_read().map(ToString::to_string).collect();
        assert_eq!(asked, ["ConfigMap shop/c", "Secret shop/a", "Secret shop/s"]);
        assert_eq!(
            describe(plan),
            [
                "A=1",
                "B=2 C=",
                "cluster: ConfigMap shop/c",
                "cluster: Secret shop/a",
                "cluster: Secret shop/s",
                "D=4 E=5",
                "A=1",
            ]
        );
    }

    #[test]
    fn an_object_of_the_source_that_gives_no_variables_says_why() {
        #[track_caller]
        fn check(kind: VariableHolderKind, fields: Value, expected: &str) {
            let mut body = json!({ "apiVersion": "v1", "kind": kind.as_str(), "metadata": { "name": "a", "namespace": "shop" } });
            body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let plan = plan_lookups(&[holder(kind, "shop", "a")], &plain([body.clone()]), "shop");
            assert_eq!(describe(plan), [expected], "{body}");
        }
        let form = "fault: its data is no mapping of texts";
        check(VariableHolderKind::ConfigMap, json!({ "data": { "a": 1 } }), form);
        check(VariableHolderKind::ConfigMap, json!({ "data": ["a"] }), form);
        check(VariableHolderKind::Secret, json!({ "data": { "a": "?" } }), form);
        let sealed = json!({ "stringData": { "a": "ENC[]" }, "sops": {} });
        check(VariableHolderKind::Secret, sealed, "fault: it is encrypted by SOPS, and is not opened");
        let variable =
            "fault: its values have `${` in them: what another variable makes of them is not known yet";
        check(VariableHolderKind::ConfigMap, json!({ "data": { "a": "x${B}" } }), variable);
        check(VariableHolderKind::ConfigMap, json!({ "data": { "a": "x$$${B}" } }), variable);
        let metadata = json!({ "name": "a", "namespace": "shop", "annotations": { "rhumb.dev/substitute": "disabled" } });
        let literal = json!({ "data": { "a": "x${B}" }, "metadata": metadata });
        check(VariableHolderKind::ConfigMap, literal, "a=x${B}");
    }

    #[test]
    fn nothing_is_put_into_base64() {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "A": "eCR7Qn0=" },
        });
        let plan = plan_lookups(&[holder(VariableHolderKind::Secret, "shop", "a")], &plain([body]), "shop");
        assert_eq!(describe(plan), ["A=x${B}"]);
    }

    #[test]
    fn two_signs_of_a_manifest_are_one_once_it_is_applied() {
        let check = |metadata: Value, expected: [&str; 2]| {
            let object = json!({
                "metadata": metadata, "data": { "A": "pa$$word" }, "stringData": { "A": "$$$", "B": 1 },
            });
            let mut body = HolderBody::new(object, None);
            body.unescape();
            let texts = TEXT_FIELDS.map(|field| text_at(&body.object, &[field, "A"]));
            assert_eq!(texts, expected, "{metadata}");
        };
        check(json!({ "name": "a" }), ["pa$word", "$$"]);
        let literal = json!({ "annotations": { "rhumb.dev/substitute": "disabled" } });
        check(literal, ["pa$$word", "$$$"]);
    }

    #[test]
    fn what_is_meant_literally_in_a_manifest_is_no_expression() {
        let check = |text: &str, expected: &str| {
            let body = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "A": text },
            });
            let mut bodies = plain([body]);
            bodies.iter_mut().for_each(HolderBody::unescape);
            let plan = plan_lookups(&[holder(VariableHolderKind::ConfigMap, "shop", "a")], &bodies, "shop");
            let found = describe(plan);
            assert!(found[0].starts_with(expected), "{text}: {found:?}");
        };
        check("x$${B}", "A=x${B}");
        check("x$$$${B}", "A=x$${B}");
        check("x$$${B}", "fault: its values have `${` in them");
        check("x$$y${B}", "fault: its values have `${` in them");
    }

    #[test]
    fn an_object_that_is_defined_twice_is_not_chosen_from() {
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let holders = [holder(VariableHolderKind::ConfigMap, "shop", "a")];
        let plan = plan_lookups(&holders, &plain([body.clone(), body]), "shop");
        assert_eq!(describe(plan), ["fault: it is defined more than once in the source"]);
    }

    #[test]
    fn no_word_of_an_object_says_that_it_was_opened() {
        let id = BlobId::of(b"sealed").to_string();
        let mut object =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": {} });
        for name in ["rhumb-opened-from", "openedFrom", "opened_from"] {
            object[name] = json!(id);
        }
        let holders = [holder(VariableHolderKind::Secret, "shop", "a")];
        let opened_from = |body: HolderBody| {
            let plan = plan_lookups(&holders, &[body], "shop");
            match plan.lookups.into_iter().next() {
                Some(VariableLookup::Source(Ok(held))) => held.opened_from(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(opened_from(HolderBody::new(object.clone(), None)), None);
        let file = Some(BlobId::of(b"another"));
        assert_eq!(opened_from(HolderBody::new(object.clone(), file)), file);
        let asked = ObjectVariables::read(VariableHolderKind::Secret, &object).unwrap();
        assert_eq!(asked.opened_from(), None, "an object of the cluster neither");
    }

    #[test]
    fn no_value_is_shown() {
        let body = json!({ "data": { "A": "canary" } });
        let held = ObjectVariables::read(VariableHolderKind::ConfigMap, &body).unwrap();
        assert_eq!(format!("{held:?}"), r#"{"A"}"#);
    }
}
