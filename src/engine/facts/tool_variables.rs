//! Variables that stay as they are because their source puts in none, as Flux' `${VAR}`.
//!
//! **Invariant:** only a scalar without white space, outside of fields that programs read, holds
//! its object back. Programs and data in a pod have `${VAR}` of their own: those of a shell, of
//! nginx, of a template. So has prose.

use serde_json::Value;

use crate::manifest::has_substitution_disabled;
use crate::object::Object;

/// Fields whose values belong to programs, wherever they are.
const PROGRAM_FIELDS: [&str; 8] =
    ["args", "binaryData", "command", "data", "description", "expression", "script", "stringData"];

/// A scalar with a variable in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct LiteralVariable {
    /// The path of the field, for example `spec.rules[0].host`.
    pub(in crate::engine) path: String,
    /// The name of the variable; `…` where it may be a part of a secret.
    pub(in crate::engine) variable: String,
    /// The use of the field.
    pub(in crate::engine) role: LiteralRole,
}

/// The use of a field with a variable in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum LiteralRole {
    /// The API takes it as a value.
    Value,
    /// Programs or people read it.
    Text,
}

/// Finds the first variable that is put in nowhere: one in a value, else one in a text. None where
/// the object says that it is meant literally.
///
/// A definition of a kind has patterns and prose alone.
pub(in crate::engine) fn find_literal(object: &Object) -> Option<LiteralVariable> {
    if object.id.kind() == "CustomResourceDefinition"
        || !has_sign(&object.body)
        || has_substitution_disabled(&object.body)
    {
        return None;
    }
    let found = |wanted| first_variable(&object.body, wanted);
    let mut found = found(LiteralRole::Value).or_else(|| found(LiteralRole::Text))?;
    if object.id.kind() == "Secret" && ["data.", "stringData."].iter().any(|map| found.path.starts_with(map))
    {
        "…".clone_into(&mut found.variable);
    }
    Some(found)
}

/// Returns whether any text may have a variable. Paths are made only where there is something to
/// name.
fn has_sign(body: &Value) -> bool {
    let mut open = vec![body];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if text.contains("${") => return true,
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

/// A part of an object that is still to be searched.
struct PendingPart<'v> {
    path: String,
    /// Indicates that its maps are environment variables of a container.
    is_env: bool,
    role: LiteralRole,
    value: &'v Value,
}

/// Finds the first text of this role with a variable, in the order of the object.
fn first_variable(body: &Value, wanted: LiteralRole) -> Option<LiteralVariable> {
    let mut open =
        vec![PendingPart { path: String::new(), is_env: false, role: LiteralRole::Value, value: body }];
    while let Some(PendingPart { path, is_env, role, value }) = open.pop() {
        let begin = open.len();
        match value {
            Value::String(text) => {
                let is_word = role == LiteralRole::Value && !text.contains(char::is_whitespace);
                let role = if is_word { LiteralRole::Value } else { LiteralRole::Text };
                if let Some(variable) = variable(text).filter(|_| role == wanted) {
                    return Some(LiteralVariable { path, variable: variable.to_owned(), role });
                }
            }
            Value::Object(map) => {
                let dot = if path.is_empty() { "" } else { "." };
                let is_named = is_env && map.contains_key("name");
                open.extend(map.iter().map(|(key, value)| PendingPart {
                    path: format!("{path}{dot}{key}"),
                    is_env: key == "env",
                    role: if PROGRAM_FIELDS.contains(&key.as_str()) || is_named && key == "value" {
                        LiteralRole::Text
                    } else {
                        role
                    },
                    value,
                }));
            }
            Value::Array(items) => {
                let part = |(nth, value)| PendingPart { path: format!("{path}[{nth}]"), is_env, role, value };
                open.extend(items.iter().enumerate().map(part));
            }
            _ => {}
        }
        open[begin..].reverse();
    }
    None
}

/// Returns the name of the first variable in a text: `${NAME}`, or with a default behind `:=`,
/// `:-`, `=` or `-`.
fn variable(text: &str) -> Option<&str> {
    text.match_indices("${").find_map(|(at, _)| {
        // `$${NAME}` is the escape for a text that stays.
        let is_escaped = text[..at].ends_with('$');
        let rest = &text[at + 2..];
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let end = rest.find(|c: char| !is_name(c))?;
        let (name, after) = rest.split_at(end);
        let begins = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
        let ends = ["}", ":=", ":-", "=", "-"].iter().any(|end| after.starts_with(end));
        (!is_escaped && begins && ends && after.contains('}')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::object::{GroupKind, Gvk, ManifestOrigin, ObjectId};

    fn find_variable(kind: &str, body: &Value) -> Option<(String, String)> {
        let object = Object {
            id: ObjectId::new(&GroupKind::new("", kind), Some("shop"), "a"),
            gvk: Gvk::new("", "v1", kind),
            body: Arc::new(body.clone()),
            origin: ManifestOrigin::new("a.yaml".into(), 1, 1),
        };
        let found = find_literal(&object).filter(|found| found.role == LiteralRole::Value);
        found.map(|found| (found.path, found.variable))
    }

    #[test]
    fn a_variable_that_nobody_filled_in_is_found_where_the_api_takes_a_value() {
        fn check(body: &Value, path: &str, variable: &str) {
            assert_eq!(
                find_variable("Ingress", body),
                Some((path.to_owned(), variable.to_owned())),
                "{body}"
            );
        }
        check(&json!({"spec": {"rules": [{"host": "shop.${DOMAIN}"}]}}), "spec.rules[0].host", "DOMAIN");
        check(&json!({"spec": {"replicas": "${REPLICAS:=2}"}}), "spec.replicas", "REPLICAS");
        check(&json!({"spec": {"storage": "${size:-10Gi}"}}), "spec.storage", "size");
        check(
            &json!({"metadata": {"annotations": {"dns/host": "${HOST}.example.com"}}}),
            "metadata.annotations.dns/host",
            "HOST",
        );
        check(
            &json!({"spec": {"containers": [{"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "${ENV}"}}}]}]}}),
            "spec.containers[0].env[0].valueFrom.configMapKeyRef.name",
            "ENV",
        );
        check(&json!({"spec": {"image": "registry/web:${TAG}"}}), "spec.image", "TAG");
    }

    #[test]
    fn what_is_meant_for_a_program_is_left_as_it_is() {
        fn check(kind: &str, body: &Value) {
            assert_eq!(find_variable(kind, body), None, "{body}");
        }
        check("ConfigMap", &json!({"data": {"run.sh": "${HOME}", "b": "cd ${HOME}"}}));
        check("Secret", &json!({"stringData": {"url": "${URL}"}}));
        let container =
            json!({"command": ["${SHELL}"], "args": ["${A}"], "env": [{"name": "A", "value": "${B}"}]});
        check("Pod", &json!({"spec": {"containers": [container]}}));
        check("Pod", &json!({"spec": {"livenessProbe": {"exec": {"command": ["${A}"]}}}}));
        // A sentence, an expression, another tool's form, an escape, and what is no name.
        for text in
            ["say ${A} please", "${schema.spec.name}", "${env:HOME}", "$${A}", "${1A}", "${A", "$A", "$(A)"]
        {
            check("Ingress", &json!({"spec": {"host": text}}));
        }
        let literal = json!({"annotations": {"kustomize.toolkit.fluxcd.io/substitute": "disabled"}});
        check("Ingress", &json!({"metadata": literal, "spec": {"host": "${A}"}}));
        check("CustomResourceDefinition", &json!({"spec": {"pattern": "${A}"}}));
    }

    #[test]
    fn of_the_texts_that_others_read_the_first_is_reported() {
        #[track_caller]
        fn check(kind: &str, body: Value, path: &str, variable: &str) {
            let object = Object {
                id: ObjectId::new(&GroupKind::new("", kind), Some("shop"), "a"),
                gvk: Gvk::new("", "v1", kind),
                body: Arc::new(body),
                origin: ManifestOrigin::new("a.yaml".into(), 1, 1),
            };
            let role = LiteralRole::Text;
            let expected = LiteralVariable { path: path.to_owned(), variable: variable.to_owned(), role };
            assert_eq!(find_literal(&object), Some(expected));
        }
        let data = json!({"data": {"run.sh": "cd ${HOME}", "z": "${A}"}});
        check("ConfigMap", data, "data.run.sh", "HOME");
        let env = json!({"spec": {"containers": [{"env": [{"name": "A", "value": "${B}"}]}]}});
        check("Pod", env, "spec.containers[0].env[0].value", "B");
        check("Ingress", json!({"spec": {"host": "say ${A} please"}}), "spec.host", "A");
        // The name may be a part of the secret.
        let secret = json!({"stringData": {"url": "pass${word}"}});
        check("Secret", secret, "stringData.url", "…");
    }
}
