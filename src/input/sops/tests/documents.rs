//! Files of several documents that were encrypted each by itself, and put together afterwards.

use super::*;

const NAMES: [&str; 4] = ["encrypted-regex.yaml", "comments.yaml", "documents.yaml", "only-encrypted.yaml"];

fn plain(name: &str) -> &'static str {
    let fixture = FIXTURES.iter().find(|fixture| fixture.name == name).unwrap();
    std::str::from_utf8(fixture.plain).unwrap()
}

#[test]
fn documents_that_were_encrypted_by_themselves_are_opened_by_their_own_keys() {
    let (sealed, expected) = (NAMES.map(fixture).join("---\n"), NAMES.map(plain).join("---\n"));
    assert_eq!(opened("a.yaml", sealed.as_bytes(), PlaintextLayout::Sops).as_deref(), Ok(expected.as_str()));
    let file: Arc<str> = "a.yaml".into();
    let open = || open(&file, sealed.as_bytes(), SopsFormat::Yaml, &identities()).unwrap();
    assert_eq!(open().into_keys().len(), NAMES.len());
    assert_eq!(open().into_seals().len(), NAMES.len());
    let twice = [fixture("documents.yaml"), fixture("encrypted-regex.yaml")].join("---\n");
    let opened = self::open(&file, twice.as_bytes(), SopsFormat::Yaml, &identities()).unwrap();
    assert_eq!(opened.into_keys().len(), 2, "both documents of the first file have one key");
}

#[test]
fn an_edit_in_any_of_them_is_found() {
    let sealed = NAMES.map(fixture).join("---\n");
    let refused = |text: &str| opened("a.yaml", text.as_bytes(), PlaintextLayout::Sops).unwrap_err();
    let mac = "its `mac` does not fit its values";
    let (first, rest) = sealed.split_at(fixture("encrypted-regex.yaml").len());
    assert!(refused(&format!("{}{rest}", first.replace("kind: Secret", "kind: ConfigMap"))).contains(mac));
    let between = sealed.replacen("\n---\n", "\n---\nkind: ConfigMap\n---\n", 1);
    assert!(refused(&between).contains(mac));
    let documents = fixture("documents.yaml");
    let second = documents.split_once("\n---\n").unwrap().1;
    let torn = [fixture("encrypted-regex.yaml"), second].join("---\n");
    assert!(refused(&torn).contains(mac));
    let without = refused(&["kind: ConfigMap\n", fixture("encrypted-regex.yaml")].join("---\n"));
    assert!(without.contains("there is none in its first document"), "{without}");
}
