//! The stand-ins of hashes that could be guessed.
//!
//! A hash of a Secret's content is as good as a weak password, as that is found by trying. So is a
//! digest of a file or of live values. A stand-in is made by a key of the trace that nobody keeps:
//! equal hashes look equal, and nobody can try a content.

use std::collections::HashSet;

use serde_json::Value;

use crate::engine::facts::config_hash::HashKey;
use crate::object::serial::{DIGEST_MARK, HASH_MARK};
use crate::object::{ContentHash, hex_text};

/// The fields that name the object which the others of a record are about.
const ID_FIELDS: [&str; 3] = ["id", "of", "object"];

/// The stand-ins of one trace.
#[derive(Clone, Debug)]
pub(super) struct StandIns {
    /// The key; none where the trace is read, and has stand-ins already.
    key: Option<HashKey>,
    /// The hashes of Secrets' contents that were seen, in digits.
    secret_hashes: HashSet<Box<str>>,
}

/// The object that a part of a line is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Secret,
    Other,
}

impl StandIns {
    /// Returns those under a key that nobody else has.
    pub(super) fn of(key: HashKey) -> Self {
        Self { key: Some(key), secret_hashes: HashSet::new() }
    }

    /// Returns those of a trace that is read: all stay as they are.
    pub(super) fn of_trace() -> Self {
        Self { key: None, secret_hashes: HashSet::new() }
    }

    /// Puts stand-ins into a part of a line.
    pub(super) fn put_into(&mut self, value: &mut Value) {
        if let Some(key) = self.key.clone() {
            self.put_by(&key, value, Subject::Other);
        }
    }

    fn put_by(&mut self, key: &HashKey, value: &mut Value, subject: Subject) {
        match value {
            Value::String(text) => {
                if let Some(stand_in) = self.stand_in(key, text, subject) {
                    *text = stand_in;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.put_by(key, item, subject)),
            Value::Object(fields) => {
                let names_secret = ID_FIELDS
                    .iter()
                    .any(|field| fields.get(*field).and_then(Value::as_str).is_some_and(is_secret_id));
                let subject = if names_secret { Subject::Secret } else { subject };
                for (name, field) in fields {
                    let is_secret = is_secret_id(name);
                    self.put_by(key, field, if is_secret { Subject::Secret } else { subject });
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn stand_in(&mut self, key: &HashKey, text: &str, subject: Subject) -> Option<String> {
        let is_hex = |digits: &&str| {
            matches!(digits.len(), 32 | 40) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        if let Some(digits) = text.strip_prefix(DIGEST_MARK).filter(is_hex) {
            return Some(keyed_hash(key, DIGEST_MARK, digits));
        }
        let digits = text.strip_prefix(HASH_MARK).filter(is_hex)?;
        if ContentHash::parse(digits) == Some(ContentHash::UNREADABLE) {
            return None;
        }
        if subject == Subject::Secret {
            self.secret_hashes.insert(digits.into());
        }
        self.secret_hashes.contains(digits).then(|| keyed_hash(key, HASH_MARK, digits))
    }
}

/// Returns whether a text begins as the id of an object whose kind is called Secret, in any group.
fn is_secret_id(text: &str) -> bool {
    text.strip_prefix("Secret").is_some_and(|rest| rest.starts_with(['/', '.']))
}

/// Returns the keyed hash of a hash, in as many digits.
fn keyed_hash(key: &HashKey, mark: char, digits: &str) -> String {
    let mut made = hex_text(&key.sign(digits.as_bytes()));
    made.truncate(digits.len());
    format!("{mark}{made}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HASH: &str = "#00112233445566778899aabbccddeeff";
    const DIGEST: &str = "!00112233445566778899aabbccddeeff";

    /// Returns a value with stand-ins in it.
    fn put(mut value: Value) -> Value {
        StandIns::of(HashKey::of(&[9; 32]).unwrap()).put_into(&mut value);
        value
    }

    #[test]
    fn a_hash_of_a_secret_and_each_digest_have_a_stand_in() {
        #[track_caller]
        fn check(value: Value, place: &str, is_replaced: bool) {
            let before = value.pointer(place).cloned().unwrap();
            let after = put(value).pointer(place).cloned().unwrap();
            assert_eq!(before != after, is_replaced, "{after}");
        }
        check(json!({ "id": "Secret/shop/login", "hash": HASH }), "/hash", true);
        check(json!({ "id": "Secret/shop/login", "live": { "release": [HASH] } }), "/live/release/0", true);
        check(
            json!({ "members": { "Secret/shop/login": { "content": HASH } } }),
            "/members/Secret~1shop~1login/content",
            true,
        );
        check(json!({ "id": "Secret.example.org/shop/login", "hash": HASH }), "/hash", true);
        check(json!({ "id": "SecretStore.example.org/shop/login", "hash": HASH }), "/hash", false);
        check(json!({ "id": "ConfigMap/shop/web", "hash": HASH }), "/hash", false);
        check(json!({ "id": "ConfigMap/shop/web", "digest": DIGEST }), "/digest", true);
        check(json!({ "id": "Secret/shop/login", "hash": "#a sentence" }), "/hash", false);
        let unreadable = format!("#{}", ContentHash::UNREADABLE);
        check(json!({ "id": "Secret/shop/login", "hash": unreadable }), "/hash", false);
    }

    #[test]
    fn a_hash_of_a_secret_has_its_stand_in_wherever_it_is_shown_later() {
        let put = put(json!([{ "id": "Secret/shop/login", "hash": HASH }, HASH]));
        assert_eq!(put.pointer("/0/hash"), put.pointer("/1"));
        assert_ne!(put.pointer("/1").and_then(Value::as_str), Some(HASH));
    }
}
