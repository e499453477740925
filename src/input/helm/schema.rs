//! The schema of a chart's values, as far as it says that another schema must be fetched.

use serde_json::Value;

/// The name of the file.
pub(super) const SCHEMA_FILE: &str = "values.schema.json";

/// The place of the schemas for schemas, which helm brings along.
const BUILT_IN: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// Values of a schema that are looked at: more than any real one has.
const MAX_NODES: usize = 1_000_000;

/// Returns the first reference that leads out of the schema. One that helm cannot read leads
/// nowhere.
pub(super) fn remote_reference(bytes: &[u8]) -> Option<String> {
    let schema: Value = serde_json::from_slice(bytes).ok()?;
    let mut own = vec![String::new()];
    visit(&schema, &["$id", "id"], |id| own.push(without_fragment(id).to_owned()));
    let mut found = None;
    visit(&schema, &["$ref", "$dynamicRef", "$recursiveRef", "$schema"], |reference| {
        if found.is_none() && !is_local(reference, &own) {
            found = Some(reference.to_owned());
        }
    });
    found
}

/// Gives each text under one of these keys to a visitor.
fn visit(schema: &Value, keys: &[&str], mut visitor: impl FnMut(&str)) {
    let mut left = vec![schema];
    let mut count = 0;
    while let Some(value) = left.pop() {
        count += 1;
        match value {
            _ if count > MAX_NODES => return,
            Value::Array(items) => left.extend(items),
            Value::Object(entries) => {
                for (key, value) in entries {
                    match value {
                        Value::String(text) if keys.contains(&key.as_str()) => visitor(text),
                        // An example may be anything.
                        _ if matches!(key.as_str(), "default" | "examples" | "const" | "enum") => {}
                        value => left.push(value),
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_local(reference: &str, own: &[String]) -> bool {
    let target = without_fragment(reference);
    let is_part =
        |id: &String| id == target || (!target.contains(':') && id.ends_with(&format!("/{target}")));
    // helm passes over a URN that it does not know.
    target.starts_with("urn:")
        || BUILT_IN.iter().any(|place| target.starts_with(place))
        || own.iter().any(is_part)
}

fn without_fragment(reference: &str) -> &str {
    reference.split_once('#').map_or(reference, |(target, _)| target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_out_of_the_schema_is_found() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(remote_reference(text.as_bytes()).as_deref(), expected, "{text}");
        };
        check(
            r##"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/$defs/a"}}}"##,
            None,
        );
        check(r#"{"allOf": [{"$ref": "https://example.com/a.json"}]}"#, Some("https://example.com/a.json"));
        check(r#"{"$ref": "file:///etc/passwd#/a"}"#, Some("file:///etc/passwd#/a"));
        check(r#"{"$ref": "other.json"}"#, Some("other.json"));
        check(
            r#"{"$id": "https://a/b.json", "x": {"$ref": "https://a/b.json#/c"}, "y": {"$ref": "b.json"}}"#,
            None,
        );
        check(r#"{"$id": "https://a/b.json", "x": {"$ref": "c.json"}}"#, Some("c.json"));
        check(r#"{"$schema": "https://example.com/meta"}"#, Some("https://example.com/meta"));
        check(r#"{"$ref": "urn:example:a"}"#, None);
        check(r#"{"properties": {"a": {"default": {"$ref": "https://a"}}}}"#, None);
        check("{", None);
    }
}
