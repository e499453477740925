use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::engine::{ConfigData, HashKey, config_hash, has_restart_on_change, with_config_hash};
use crate::object::{ContentHash, GroupKind, ObjectId};

fn id(kind: &str, name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("", kind), Some("shop"), name)
}

fn key() -> HashKey {
    HashKey::of(b"0123456789abcdef").unwrap()
}

fn secret(object: Value) -> ConfigData {
    ConfigData::of(&id("Secret", "tls"), &object)
}

/// Compares a hash with the first 128 bits of SHA-256 over the HMAC.
#[test]
fn the_hash_is_the_hmac_of_the_standard() {
    let used = BTreeMap::from([(id("Secret", "tls"), None)]);
    let content = r#"[[["","Secret","shop","tls"],"absent"]]"#;
    for (secret, expected) in KNOWN {
        let key = HashKey::of(secret).unwrap();
        assert_eq!(config_hash(&key, &used).to_string(), *expected, "{content}");
    }
    assert!(HashKey::of(b"0123456789abcde").is_none());
    assert_eq!(format!("{:?}", key()), "Key(..)");
    assert_ne!(key().number(), HashKey::of(&[b'k'; 16]).unwrap().number());
}

#[test]
fn only_data_and_the_identity_count() {
    let one = secret(json!({"data": {"a": "MQ==", "b": "Mg=="}}));
    let labelled =
        json!({"metadata": {"labels": {"x": "y"}, "uid": "u"}, "data": {"b": "Mg==", "a": "MQ=="}});
    assert_eq!(secret(labelled), one);
    assert_ne!(secret(json!({"data": {"a": "MQ=="}})), one);
    assert_ne!(secret(json!({"data": {"a": "MQ==", "b": "MQ=="}})), one);
    assert_ne!(ConfigData::of(&id("Secret", "other"), &json!({"data": {"a": "MQ==", "b": "Mg=="}})), one);
    let text = ConfigData::of(&id("ConfigMap", "c"), &json!({"data": {"a": "1"}}));
    assert_ne!(ConfigData::of(&id("ConfigMap", "c"), &json!({"binaryData": {"a": "1"}})), text);
    let empty = secret(json!({}));
    assert_eq!(secret(json!({"data": null})), empty);
    assert_eq!(secret(json!({"data": {}})), empty);
    assert_eq!(format!("{one:?}"), "Data(..)", "a hash that is not keyed is as good as the data");
}

#[test]
fn what_is_missing_has_a_hash_of_its_own() {
    let used = |pairs: &[(&str, Option<ConfigData>)]| {
        let used: BTreeMap<_, _> = pairs.iter().map(|(name, data)| (id("ConfigMap", name), *data)).collect();
        config_hash(&key(), &used)
    };
    let data = |text: &str| Some(secret(json!({"data": {"a": text}})));
    let (one, two) = (data("MQ=="), data("Mg=="));
    let hashes = [
        used(&[]),
        used(&[("a", None)]),
        used(&[("b", None)]),
        used(&[("a", one)]),
        used(&[("a", two)]),
        used(&[("a", one), ("b", two)]),
        used(&[("a", two), ("b", one)]),
        used(&[("a", one), ("b", None)]),
    ];
    for (n, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..n].contains(hash), "{n}");
    }
    assert_eq!(used(&[("b", two), ("a", one)]), used(&[("a", one), ("b", two)]));
}

#[test]
fn the_hash_goes_into_the_template() {
    let hash = ContentHash::hash_bytes(b"x");
    let check = |content: Value, expected: Value| {
        let expected: Value =
            serde_json::from_str(&expected.to_string().replace("HASH", &hash.to_string())).unwrap();
        assert_eq!(with_config_hash(content, &hash), expected);
    };
    let hashed = || json!({"rhumb.dev/config-hash": "HASH"});
    check(
        json!({"spec": {"template": {"spec": {}}}}),
        json!({"spec": {"template": {"metadata": {"annotations": hashed()}, "spec": {}}}}),
    );
    check(
        json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}}}),
        json!({"spec": {"template": {"metadata": {"labels": {"a": "b"},
            "annotations": {"c": "d", "rhumb.dev/config-hash": "HASH"}}}}}),
    );
    check(json!({"spec": {"template": "hostile"}}), json!({"spec": {"template": "hostile"}}));
    check(json!({"data": {}}), json!({"data": {}}));
}

#[test]
fn a_restart_is_asked_for_by_one_word() {
    let asks = |text: &str| {
        has_restart_on_change(&json!({"metadata": {"annotations": {"rhumb.dev/restart-on-change": text}}}))
    };
    assert!(asks("true"));
    assert!(!asks("false") && !asks("yes"));
    assert!(!has_restart_on_change(&json!({})));
}

/// Secrets as short, as long and longer than a block, with what Python's `hmac` and `hashlib` make
/// of the content.
const KNOWN: &[(&[u8], &str)] = &[
    (&[b'k'; 16], "55161b15f2bff07f50fe1d685ae1b7b6"),
    (&[b'k'; 64], "db399f212e5164dc1b41eb8f3d6ef718"),
    (&[b'k'; 131], "d9f776fe930e4264e8128ca1418480a2"),
];
