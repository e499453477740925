//! Variables that another tool was to fill in, as Flux' `${VAR}`.
//!
//! **Invariant:** only a scalar without white space counts. Programs and data in a pod have
//! `${VAR}` of their own: those of a shell, of nginx, of a template. So has prose.

use serde_json::{Map, Value};

use crate::engine::facts::ignore_fields::has_literal_request;
use crate::object::Object;

/// Fields whose values belong to programs, wherever they stand.
const PROGRAM_FIELDS: [&str; 8] =
    ["args", "binaryData", "command", "data", "description", "expression", "script", "stringData"];

/// A scalar with a variable in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct UnfilledVariable {
    /// The path of the field, as `spec.rules[0].host`.
    pub(in crate::engine) path: String,
    /// The name of the variable.
    pub(in crate::engine) variable: String,
}

/// Finds the first variable that nobody has filled in, unless the object says that it is meant as
/// it stands.
///
/// A definition of a kind has patterns and prose alone.
pub(in crate::engine) fn find_unfilled(object: &Object) -> Option<UnfilledVariable> {
    if object.id.kind() == "CustomResourceDefinition" || has_literal_request(&object.body) {
        return None;
    }
    // Paths are made only where there is something to name.
    let is_there = scalars(&object.body).any(|text| variable(text).is_some());
    is_there.then(|| first_variable(&object.body)).flatten()
}

/// Returns the fields of a map that no program reads.
fn unread_fields(
    map: &Map<String, Value>,
    is_variable_of_container: bool,
) -> impl Iterator<Item = (&String, &Value)> {
    let is_named = is_variable_of_container && map.contains_key("name");
    map.iter()
        .filter(move |(key, _)| !(PROGRAM_FIELDS.contains(&key.as_str()) || is_named && *key == "value"))
}

/// Returns each text in a value, those that programs read left out.
fn scalars(value: &Value) -> impl Iterator<Item = &str> {
    let mut open = vec![(false, value)];
    std::iter::from_fn(move || {
        while let Some((is_env, value)) = open.pop() {
            match value {
                Value::String(text) => return Some(text.as_str()),
                Value::Object(map) => {
                    open.extend(unread_fields(map, is_env).map(|(key, value)| (key == "env", value)));
                }
                Value::Array(items) => open.extend(items.iter().map(|item| (is_env, item))),
                _ => {}
            }
        }
        None
    })
}

/// Finds the first text with a variable, in the order of the object.
fn first_variable(value: &Value) -> Option<UnfilledVariable> {
    let mut open = vec![(String::new(), false, value)];
    while let Some((path, is_env, value)) = open.pop() {
        let begin = open.len();
        match value {
            Value::String(text) => {
                if let Some(variable) = variable(text) {
                    return Some(UnfilledVariable { path, variable: variable.to_owned() });
                }
            }
            Value::Object(map) => {
                let dot = if path.is_empty() { "" } else { "." };
                open.extend(
                    unread_fields(map, is_env)
                        .map(|(key, value)| (format!("{path}{dot}{key}"), key == "env", value)),
                );
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(nth, value)| (format!("{path}[{nth}]"), is_env, value)));
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
    if text.contains(char::is_whitespace) {
        return None;
    }
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
        find_unfilled(&object).map(|unfilled| (unfilled.path, unfilled.variable))
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
    fn what_is_meant_for_a_program_is_left_as_it_stands() {
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
}
