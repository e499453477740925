//! Variables that another tool was to fill in, as Flux' `${VAR}`.
//!
//! **Invariant:** only a scalar without white space counts. What runs in a pod, or is data for it, has `${VAR}` of its
//! own: that of a shell, of nginx, of a template. So has prose.

use serde_json::Value;

use super::ignore::asks_for_literals;
use crate::object::Object;

/// Fields whose values belong to programs, wherever they stand.
const OPAQUE: [&str; 8] =
    ["args", "binaryData", "command", "data", "description", "expression", "script", "stringData"];

/// A scalar with a variable in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfilled {
    /// The path of the field, as `spec.rules[0].host`.
    pub(super) path: String,
    /// The name of the variable.
    pub(super) variable: String,
}

/// Finds the first variable that nobody has filled in, unless the object says that it is meant as it stands.
///
/// A definition of a kind has patterns and prose alone.
pub(super) fn unfilled(object: &Object) -> Option<Unfilled> {
    if object.id.kind() == "CustomResourceDefinition" || asks_for_literals(&object.body) {
        return None;
    }
    let mut open = vec![(String::new(), &object.body as &Value)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::String(text) => {
                if let Some(variable) = variable(text) {
                    return Some(Unfilled { path, variable: variable.to_owned() });
                }
            }
            Value::Object(map) => {
                let named = map.contains_key("name") && path.contains("env[");
                let inner = map.iter().filter(|(key, _)| !OPAQUE.contains(&key.as_str()));
                let inner = inner.filter(|(key, _)| !(named && *key == "value"));
                let dot = if path.is_empty() { "" } else { "." };
                let inner: Vec<_> = inner.map(|(key, value)| (format!("{path}{dot}{key}"), value)).collect();
                open.extend(inner.into_iter().rev());
            }
            Value::Array(items) => {
                let inner: Vec<_> =
                    items.iter().enumerate().map(|(nth, value)| (format!("{path}[{nth}]"), value)).collect();
                open.extend(inner.into_iter().rev());
            }
            _ => {}
        }
    }
    None
}

/// The name of the first variable in a text: `${NAME}`, or with a default behind `:=`, `:-`, `=` or `-`.
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
    use crate::object::{GroupKind, Gvk, ObjectId, Origin};

    fn found(kind: &str, body: &Value) -> Option<(String, String)> {
        let object = Object {
            id: ObjectId::new(&GroupKind::new("", kind), Some("shop"), "a"),
            gvk: Gvk::new("", "v1", kind),
            body: Arc::new(body.clone()),
            origin: Origin { file: "a.yaml".into(), line: 1, column: 1 },
        };
        unfilled(&object).map(|unfilled| (unfilled.path, unfilled.variable))
    }

    #[test]
    fn a_variable_that_nobody_filled_in_is_found_where_the_api_takes_a_value() {
        fn check(body: &Value, path: &str, variable: &str) {
            assert_eq!(found("Ingress", body), Some((path.to_owned(), variable.to_owned())), "{body}");
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
            assert_eq!(found(kind, body), None, "{body}");
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
