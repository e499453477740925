//! The schema of a chart's values, as far as it says that another schema must be fetched.

use serde_json::Value;

/// The name of the file.
pub(super) const SCHEMA_FILE: &str = "values.schema.json";

/// The place of the schemas for schemas, which helm brings along.
const BUILTIN_SCHEMA_PREFIXES: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// Values of a schema that are looked at: more than any real one has.
const MAX_SCHEMA_NODES: usize = 1_000_000;

/// Returns the first reference that leads out of the schema. One that helm cannot read leads
/// nowhere.
pub(super) fn remote_reference(bytes: &[u8]) -> Option<String> {
    let schema: Value = serde_json::from_slice(bytes).ok()?;
    let mut own = OwnNames::default();
    visit(&schema, &["$id", "id"], |id| own.add(id));
    own.sort();
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
            _ if count > MAX_SCHEMA_NODES => return,
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

fn is_local(reference: &str, own: &OwnNames) -> bool {
    let target = without_fragment(reference);
    // helm passes over a URN that it does not know.
    target.starts_with("urn:")
        || BUILTIN_SCHEMA_PREFIXES.iter().any(|position| target.starts_with(position))
        || target.is_empty()
        || own.has(target)
}

/// The names that a schema and its parts have, from their ends on, in order. So the one which ends
/// with a text is found without a look at all of them.
#[derive(Default)]
struct OwnNames(Vec<Vec<u8>>);

impl OwnNames {
    fn add(&mut self, id: &str) {
        self.0.push(without_fragment(id).bytes().rev().collect());
    }

    fn sort(&mut self) {
        self.0.sort_unstable();
    }

    /// Returns whether a text is one of the names, or the end of one behind a slash.
    fn has(&self, target: &str) -> bool {
        let mut wanted: Vec<u8> = target.bytes().rev().collect();
        if self.0.binary_search(&wanted).is_ok() {
            return true;
        }
        wanted.push(b'/');
        let at = self.0.partition_point(|name| *name < wanted);
        !target.contains(':') && self.0.get(at).is_some_and(|name| name.starts_with(&wanted))
    }
}

fn without_fragment(reference: &str) -> &str {
    reference.split_once('#').map_or(reference, |(target, _)| target)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each reference compared with each name would take minutes.
    #[test]
    fn many_names_and_references_are_compared_at_once() {
        let ids: Vec<String> = (0..100_000).map(|number| format!("{{\"id\":\"a/{number}\"}}")).collect();
        let references = |extra: &str| {
            let all = (0..100_000).map(|number| format!("{{\"$ref\":\"{number}\"}}"));
            let all: Vec<String> = all.chain([format!("{{\"$ref\":\"{extra}\"}}")]).collect();
            format!("{{\"a\":[{}],\"b\":[{}]}}", ids.join(","), all.join(","))
        };
        assert_eq!(remote_reference(references("a/7").as_bytes()), None);
        assert_eq!(remote_reference(references("b/7").as_bytes()).as_deref(), Some("b/7"));
        assert_eq!(remote_reference(references("99999x").as_bytes()).as_deref(), Some("99999x"));
    }

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
