mod documents;
mod objects;
mod refusals;
pub(crate) mod sealing;

use super::*;

/// A fixture: its name, the encrypted file, and what is in it.
pub(super) struct Fixture {
    pub(super) name: &'static str,
    pub(super) sealed: &'static [u8],
    plain: &'static [u8],
}

macro_rules! fixture {
    ($name:literal, $extension:literal) => {
        Fixture {
            name: concat!($name, ".", $extension),
            sealed: include_bytes!(concat!("fixtures/", $name, ".", $extension)),
            plain: include_bytes!(concat!("fixtures/", $name, ".plain.", $extension)),
        }
    };
}

/// Files that sops 3.13.3 wrote (`fixtures/make.sh`).
pub(super) const FIXTURES: [Fixture; 15] = [
    fixture!("values", "yaml"),
    fixture!("values", "json"),
    fixture!("values", "env"),
    fixture!("blob", "bin"),
    fixture!("empty", "txt"),
    fixture!("documents", "yaml"),
    fixture!("comments", "yaml"),
    fixture!("recipients", "yaml"),
    fixture!("encrypted-regex", "yaml"),
    fixture!("unencrypted-regex", "yaml"),
    fixture!("encrypted-suffix", "yaml"),
    fixture!("unencrypted-suffix", "yaml"),
    fixture!("encrypted-comment-regex", "yaml"),
    fixture!("unencrypted-comment-regex", "yaml"),
    fixture!("only-encrypted", "yaml"),
];

pub(super) fn fixture(name: &str) -> &'static str {
    let fixture = FIXTURES.iter().find(|fixture| fixture.name == name).unwrap();
    std::str::from_utf8(fixture.sealed).unwrap()
}

pub(super) fn identities() -> AgeIdentities {
    AgeIdentities::parse(include_str!("fixtures/identity.txt")).unwrap()
}

/// Opens a file, and returns the decrypted text, or the error.
pub(super) fn opened(name: &str, bytes: &[u8], layout: PlaintextLayout) -> Result<String, String> {
    opened_with(&identities(), name, bytes, layout)
}

/// Opens a file for key 1, and returns what `sops decrypt` would give.
pub(super) fn opened_for_key_1(name: &str, text: &str) -> Result<String, String> {
    let identities = AgeIdentities::parse(&sealing::identity(1)).unwrap();
    opened_with(&identities, name, text.as_bytes(), PlaintextLayout::Sops)
}

fn opened_with(
    identities: &AgeIdentities,
    name: &str,
    bytes: &[u8],
    layout: PlaintextLayout,
) -> Result<String, String> {
    let file: Arc<str> = name.into();
    open(&file, bytes, SopsFormat::of_name(name), identities)
        .and_then(|opened| opened.plaintext(layout))
        .map(|plain| String::from_utf8_lossy(&plain).into_owned())
        .map_err(|error| error.to_string())
}

#[test]
fn what_sops_wrote_is_opened_to_the_byte() {
    for fixture in FIXTURES {
        let file: Arc<str> = fixture.name.into();
        let format = SopsFormat::of_name(fixture.name);
        assert!(is_encrypted(fixture.sealed, format), "{}", fixture.name);
        let opened = open(&file, fixture.sealed, format, &identities()).unwrap();
        let plain = opened.plaintext(PlaintextLayout::Sops).unwrap();
        let (found, expected) = (String::from_utf8_lossy(&plain), String::from_utf8_lossy(fixture.plain));
        assert_eq!(found, expected, "{}", fixture.name);
        assert_eq!(*plain, fixture.plain, "{}", fixture.name);
    }
}

/// Reads the same values in both layouts: the module itself holds each against what it opened.
#[test]
fn every_value_keeps_its_line_where_lines_matter() {
    for fixture in FIXTURES
        .iter()
        .filter(|fixture| matches!(SopsFormat::of_name(fixture.name), SopsFormat::Yaml | SopsFormat::Json))
    {
        let sealed = std::str::from_utf8(fixture.sealed).unwrap();
        let open = opened(fixture.name, fixture.sealed, PlaintextLayout::SameLines).unwrap();
        assert_eq!(sealed.lines().count(), open.lines().count(), "{}", fixture.name);
        let mut keys = 0;
        for (sealed, open) in sealed.lines().zip(open.lines()).filter(|(_, open)| open.contains(": ")) {
            let key = |line: &str| line.split(": ").next().map(str::to_owned);
            assert_eq!(key(sealed), key(open), "{}", fixture.name);
            keys += 1;
        }
        assert!(keys > 0, "{}", fixture.name);
    }
}

#[test]
fn a_file_that_git_gave_other_line_ends_is_opened() {
    for name in ["values.yaml", "comments.yaml", "documents.yaml", "values.json", "values.env"] {
        let (sealed, plain) =
            (fixture(name), opened(name, fixture(name).as_bytes(), PlaintextLayout::Sops).unwrap());
        let crlf = opened(name, sealed.replace('\n', "\r\n").as_bytes(), PlaintextLayout::Sops).unwrap();
        assert_eq!(crlf.replace("\r\n", "\n"), plain, "{name}");
        let marked = opened(name, format!("\u{feff}{sealed}").as_bytes(), PlaintextLayout::Sops).unwrap();
        assert_eq!(marked, plain, "{name}");
    }
}

/// Reads values as other tools write what SOPS wrote: quoted, in blocks, in brackets, indented
/// otherwise.
#[test]
fn encrypted_values_are_found_in_every_style() {
    let value = sealing::seal("a:b:", "str", "one\ntwo");
    for (content, expected) in [
        (format!("a:\n  b: {value}\n"), "a:\n  b: |-\n    one\n    two\n"),
        (format!("a:\n  b: '{value}'\n"), "a:\n  b: |-\n    one\n    two\n"),
        (format!("a:\n  b: \"{value}\" # why\n"), "a:\n  b: |- # why\n    one\n    two\n"),
        (format!("a:\n  b: >-\n    {value}\n"), "a:\n  b: |-\n    one\n    two\n"),
        (format!("a: {{b: '{value}'}}\n"), "a: {b: \"one\\ntwo\"}\n"),
        (format!("a:\n  b:\n  - {value}\n"), "a:\n  b:\n  - |-\n    one\n    two\n"),
        (format!("a:\n  b: ['{value}']\n"), "a:\n  b: [\"one\\ntwo\"]\n"),
    ] {
        let file = sealing::sops_file(&content, b"one\ntwo", "");
        assert_eq!(opened_for_key_1("f.yaml", &file).as_deref(), Ok(expected), "{content}");
    }
}

#[test]
fn comments_of_lists_are_items_no_more() {
    let (comment, item) = (sealing::seal("a:", "comment", " why"), sealing::seal("a:", "str", "x"));
    for (content, coded, expected) in [
        (format!("a:\n    - {comment}\n    - {item}\n"), "x", "a:\n    # why\n    - x\n"),
        (format!("a:\n    - {comment}\n"), "", "a:\n      [] # why\n"),
        (format!("a:\n- {comment}\n- {comment}\n"), "", "a:\n# why\n  [] # why\n"),
        (format!("a: ['{comment}', '{item}']\n"), "x", "a: [ \"x\"]\n"),
        (format!("a: ['{item}', '{comment}']\n"), "x", "a: [\"x\"]\n"),
    ] {
        let file = sealing::sops_file(&content, coded.as_bytes(), "");
        assert_eq!(opened_for_key_1("f.yaml", &file).as_deref(), Ok(expected), "{content}");
    }
}

// A comment is text that anybody with the recipients can write.
#[test]
fn no_comment_becomes_a_value() {
    let comment = sealing::seal("a:", "comment", " x\nkey: value");
    let file = sealing::sops_file(&format!("a:\n    #{comment}\n    b_unencrypted: 1\n"), b"1", "");
    assert_eq!(opened_for_key_1("f.yaml", &file).as_deref(), Ok("a:\n    #\n    b_unencrypted: 1\n"));
}

#[test]
fn only_files_with_the_metadata_count_as_encrypted() {
    for (name, text, expected) in [
        ("a.yaml", "a: 1\n", false),
        ("a.yaml", "a: sops\n", false),
        ("a.yaml", "sops: text\n", false),
        ("a.yaml", "sops: {other: 1}\n", false),
        ("a.yaml", "spec:\n  sops: {mac: x}\n", false),
        ("a.yaml", "a: 1\nsops:\n  mac: x\n", true),
        ("a.yaml", "a: 1\n---\nsops:\n  lastmodified: x\n", true),
        ("a.yaml", "a: [\nsops: {mac: x}\n", false),
        ("a.json", "{\"sops\": {\"mac\": \"x\"}}", true),
        ("a.env", "A=1\nsops_mac=x\n", true),
        ("a.env", "A=sops_mac=x\n", false),
        ("a.bin", "{\"data\": \"\", \"sops\": {\"version\": \"3\"}}", true),
        ("a.bin", "sops mac", false),
    ] {
        assert_eq!(is_encrypted(text.as_bytes(), SopsFormat::of_name(name)), expected, "{name}: {text}");
    }
    assert!(!is_encrypted(b"\xff sops", SopsFormat::Yaml));
    let ini = "[db]\nuser = a\n\n[sops]\nversion = 3.13.3\nmac       = ENC[AES256_GCM,data:a]\n";
    for (text, expected) in
        [(ini, true), (&*ini.replace("[sops]", "[a]"), false), (&*ini.replace("ENC[", "a"), false)]
    {
        assert_eq!(is_encrypted_ini(text.as_bytes()), expected, "{text}");
        assert_eq!(is_encrypted(text.as_bytes(), SopsFormat::Binary), expected, "{text}");
    }
}

#[test]
fn formats_are_known_by_name() {
    for (name, expected) in [
        ("a.yaml", SopsFormat::Yaml),
        ("a.yml", SopsFormat::Yaml),
        ("a.json", SopsFormat::Json),
        (".env", SopsFormat::Dotenv),
        ("prod.env", SopsFormat::Dotenv),
        ("a.txt", SopsFormat::Binary),
        ("yaml", SopsFormat::Binary),
    ] {
        assert_eq!(SopsFormat::of_name(name), expected, "{name}");
    }
}

#[test]
fn nothing_shows_itself_to_a_debugger() {
    let (file, identities) = ("values.yaml".into(), identities());
    let opened = open(&file, fixture("values.yaml").as_bytes(), SopsFormat::Yaml, &identities).unwrap();
    let shown = format!("{opened:?} {identities:?} {:?}", opened.keys[0].key);
    assert_eq!(shown, "OpenedFile(..) AgeIdentities(..) DataKey(..)");
}
