//! Files that the real `sops` encrypts, opened by rhumb and by `sops` itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

mod attacks;
mod killed;
mod opened;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use controlplane::{Encrypters, Renderers};
use rhumb::testing::input::sops::{AgeIdentities, PlaintextLayout, SopsFormat, is_encrypted, open};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with an identity, in which files are encrypted.
struct Workshop {
    programs: Encrypters,
    folder: TempDir,
    /// The folder of the person who runs rhumb, in memory.
    runtime: TempDir,
    recipient: String,
}

impl Workshop {
    fn new() -> Self {
        let (programs, folder) = (Encrypters::find().unwrap(), tempfile::tempdir().unwrap());
        let runtime = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut workshop = Self { programs, folder, runtime, recipient: String::new() };
        workshop.recipient = workshop.new_identity("key.txt");
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes an identity, and returns its recipient.
    fn new_identity(&self, name: &str) -> String {
        let run = |arguments: &[&Path]| {
            let output = Command::new(&self.programs.age_keygen).args(arguments).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(&[Path::new("-o"), &self.path(name)]);
        run(&[Path::new("-y"), &self.path(name)]).trim().to_owned()
    }

    fn identities(&self, name: &str) -> AgeIdentities {
        AgeIdentities::parse(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }

    fn sops(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.programs.sops);
        command.current_dir(self.folder.path()).env_clear().env("SOPS_AGE_KEY_FILE", self.path("key.txt"));
        command.env("HOME", self.folder.path()).args(arguments).output().unwrap()
    }

    /// Encrypts a file under a rule of the configuration. False when `sops` does not take it.
    fn encrypt(&self, name: &str, plain: &[u8], rule: &str) -> bool {
        let rules = format!("creation_rules:\n  - age: {}\n{rule}", self.recipient);
        fs::write(self.path(".sops.yaml"), rules).unwrap();
        fs::write(self.path(name), plain).unwrap();
        self.sops(&["encrypt", "--in-place", name]).status.success()
    }

    fn decrypt(&self, name: &str) -> Option<Vec<u8>> {
        let output = self.sops(&["decrypt", name]);
        output.status.success().then_some(output.stdout)
    }

    /// Runs rhumb with the identity. Returns whether it succeeds, and what it prints.
    fn rhumb(&self, arguments: &[&str]) -> (bool, String) {
        let renderers = Renderers::find().unwrap();
        let folders = [&renderers.kustomize, &renderers.helm].map(|program| program.parent().unwrap());
        let output = self.command(arguments, &folders).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    /// Returns a command of rhumb with the identity, which finds programs in these folders.
    fn command(&self, arguments: &[&str], programs: &[&Path]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.current_dir(self.folder.path()).env("SOPS_AGE_KEY_FILE", self.path("key.txt"));
        command.env("XDG_RUNTIME_DIR", self.runtime.path());
        command.env("PATH", std::env::join_paths(programs).unwrap()).args(arguments);
        command
    }

    /// Opens a file with the identities of another.
    fn open_with(&self, identities: &str, name: &str) -> Result<Vec<u8>, String> {
        let (file, bytes) = (name.into(), fs::read(self.path(name)).unwrap());
        let format = SopsFormat::of_name(name);
        assert!(is_encrypted(&bytes, format), "{name}");
        open(&file, &bytes, format, &self.identities(identities))
            .and_then(|opened| opened.plaintext(PlaintextLayout::Sops))
            .map(|plain| plain.to_vec())
            .map_err(|error| error.to_string())
    }

    fn open(&self, name: &str) -> Result<Vec<u8>, String> {
        self.open_with("key.txt", name)
    }

    /// Checks that a file opens as `sops` opens it, to the byte.
    fn check(&self, name: &str, plain: &[u8], rule: &str) {
        let case = || format!("{name} {rule}\n{}", String::from_utf8_lossy(plain));
        assert!(self.encrypt(name, plain, rule), "{}", case());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (found, expected) = (self.open(name).unwrap(), self.decrypt(name).unwrap());
        assert_eq!(text(&found), text(&expected), "{}", case());
        assert_eq!(found, expected, "{}", case());
    }
}

const RULES: [&str; 9] = [
    "",
    "    encrypted_regex: ^(data|stringData)$\n",
    "    unencrypted_regex: ^(metadata|kind|apiVersion)$\n",
    "    encrypted_suffix: _secret\n",
    "    unencrypted_suffix: _clear\n",
    "    encrypted_regex: ^(data|stringData)$\n    mac_only_encrypted: true\n",
    "    mac_only_encrypted: true\n",
    "    encrypted_comment_regex: seal\n",
    "    unencrypted_comment_regex: seal\n",
];

const DOCUMENT: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: shop, labels: {a_clear: 'yes', b_secret: off}}
data: {password: aHVudGVy, list: [a, [b, 1], {c: 0.10}]}
stringData:
  text: |
    several
      lines

  folded: >-
    a b
    c
  quoted: \"\\u2603 \\t \\x07\"
  empty: ''
  number: 0o17
  float: 1e3
  large: 12345678901234567890.5
  truth: True
  nothing: ~
  time: 2001-12-14t21:59:43.10-05:00
  day: 2002-12-14
  binary: !!binary aGVsbG8=
  anchor: &anchor {x: 1}
  alias: *anchor
empty: {map: {}, list: []}
";

#[test]
fn yaml_opens_under_every_rule_as_sops_opens_it() {
    let workshop = Workshop::new();
    for rule in RULES {
        workshop.check("one.yaml", DOCUMENT.as_bytes(), rule);
        let several = format!("{DOCUMENT}---\n{DOCUMENT}---\nlast_secret: x\n");
        workshop.check("several.yaml", several.as_bytes(), rule);
        workshop.check("crlf.yaml", DOCUMENT.replace('\n', "\r\n").as_bytes(), rule);
    }
}

#[test]
fn documents_that_were_encrypted_each_by_itself_open_as_sops_opens_each() {
    let workshop = Workshop::new();
    let (mut sealed, mut plain) = (Vec::new(), Vec::new());
    for (rule, number) in RULES.iter().zip(0..) {
        let name = format!("{number}.yaml");
        assert!(workshop.encrypt(&name, DOCUMENT.as_bytes(), rule), "{rule}");
        sealed.push(fs::read_to_string(workshop.path(&name)).unwrap());
        plain.push(String::from_utf8(workshop.decrypt(&name).unwrap()).unwrap());
    }
    fs::write(workshop.path("all.yaml"), sealed.join("---\n")).unwrap();
    assert!(workshop.decrypt("all.yaml").is_none(), "sops takes the metadata of the first for all");
    assert_eq!(String::from_utf8(workshop.open("all.yaml").unwrap()).unwrap(), plain.join("---\n"));
}

#[test]
fn json_dotenv_and_binary_open_as_sops_opens_them() {
    let workshop = Workshop::new();
    let json = r#"{"kind": "Secret", "data": {"a": "x\u0000<&>\u2028", "b": [1, -2.50, 1e30, true, null, {}, []]},
        "large": 9007199254740993, "a_secret": "", "empty": {}}"#;
    for rule in &RULES[..7] {
        workshop.check("a.json", json.as_bytes(), rule);
        workshop.check("a.env", b"# comment\nA=1\nB_secret=a\\nb\nC_clear=\nD=\"x = y\"\n", rule);
    }
    for bytes in [
        b"".as_slice(),
        b"text\r\n",
        b"\x00\xff\xfe\n\n",
        "caf\u{e9}".as_bytes(),
        b"sops",
        b"ENC[AES256_GCM,x]",
    ] {
        workshop.check("a.bin", bytes, "");
    }
}

#[test]
fn long_files_open_as_sops_opens_them() {
    let workshop = Workshop::new();
    let entries = (0..3000).map(|number| format!("  key{number}: value {number}\n"));
    let yaml = entries.fold("kind: Secret\nstringData:\n".to_owned(), |yaml, entry| yaml + &entry);
    workshop.check("long.yaml", yaml.as_bytes(), "");
    let text = (0..20_000).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    workshop.check("long.txt", text.as_bytes(), "");
    let yaml = format!("a: {}\n", serde_json::to_string(&text).unwrap());
    workshop.check("text.yaml", yaml.as_bytes(), "");
}

/// A stream of numbers that is always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// Returns a text of pieces that mean something to readers of YAML.
    fn text(&mut self) -> String {
        const PIECES: [&str; 42] = [
            "a",
            "b c",
            " ",
            "\n",
            "\n\n",
            ":",
            ": ",
            "#",
            " #",
            "-",
            "- ",
            "?",
            "\"",
            "'",
            "\\",
            "[",
            "]",
            "{",
            "}",
            ",",
            "&",
            "*",
            "!",
            "|",
            ">",
            "%",
            "@",
            "`",
            "é",
            "☃",
            "\u{1f600}",
            "0",
            "12:30",
            "yes",
            "null",
            "~",
            "true",
            "1e3",
            "0x1f",
            "2020-01-02",
            "---",
            "=",
        ];
        (0..self.below(6)).map(|_| self.of(&PIECES)).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 3 { 5 } else { 8 }) {
            0..=2 => Value::from(self.text()),
            3 => Value::from(self.below(1 << 30) as f64 / 1024.0),
            4 => [Value::Null, Value::Bool(true), Value::from(self.below(1000))][self.below(3)].clone(),
            5 => (0..self.below(4)).map(|_| self.value(depth + 1)).collect(),
            _ => {
                let keys = ["a", "b c", "data", "é", "a_clear", "b_secret", "yes", "12"];
                (0..self.below(5)).map(|_| (self.of(&keys).to_owned(), self.value(depth + 1))).collect()
            }
        }
    }
}

/// Returns whether SOPS writes a value so that it is read as the same: texts in lists that begin
/// with a blank are not.
fn is_written_well(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\n') || !text.starts_with([' ', '\n']),
        Value::Array(items) => items.iter().all(is_written_well),
        Value::Object(members) => members.values().all(is_written_well),
        _ => true,
    }
}

#[test]
fn any_values_open_as_sops_opens_them() {
    let workshop = Workshop::new();
    let mut numbers = Numbers(1);
    let mut checked = 0;
    while checked < 60 {
        let value = numbers.value(0);
        if value.as_object().is_none_or(serde_json::Map::is_empty) || !is_written_well(&value) {
            continue;
        }
        let text = value.to_string();
        let rule = numbers.of(&RULES[..7]);
        workshop.check("any.yaml", text.as_bytes(), rule);
        workshop.check("any.json", text.as_bytes(), rule);
        checked += 1;
    }
}

/// Checks values alone: comments stay in their places, where `sops` moves some.
#[test]
fn comments_move_no_value() {
    let workshop = Workshop::new();
    let commented = "\
# head
apiVersion: v1 # beside
kind: Secret # beside
# before metadata
metadata:
  # inside
  name: shop
  # at the end of it
stringData:
  password: hunter # beside
  lines: | # behind the header
    a
    b
  list:
  # before the first
  - a
  - b # beside
  # between
  - c: d # beside
    # inside an item
    e: |
      f
  # at the end
  only:
  # nothing else
# at the end
";
    for rule in RULES {
        assert!(workshop.encrypt("comments.yaml", commented.as_bytes(), rule), "{rule}");
        let found: Value = serde_yaml::from_slice(&workshop.open("comments.yaml").unwrap()).unwrap();
        let expected: Value = serde_yaml::from_slice(&workshop.decrypt("comments.yaml").unwrap()).unwrap();
        assert_eq!(found, expected, "{rule}");
    }
    assert!(workshop.encrypt("comments.yaml", commented.as_bytes(), ""));
    let opened = String::from_utf8(workshop.open("comments.yaml").unwrap()).unwrap();
    assert_eq!(opened.matches('#').count(), commented.matches('#').count(), "{opened}");
    assert!(!opened.contains("ENC["), "{opened}");
}

#[test]
fn another_data_key_or_recipient_changes_no_plaintext() {
    let workshop = Workshop::new();
    let friend = workshop.new_identity("friend.txt");
    assert!(workshop.encrypt("a.yaml", DOCUMENT.as_bytes(), RULES[1]));
    let (before, plain) = (fs::read(workshop.path("a.yaml")).unwrap(), workshop.open("a.yaml").unwrap());
    let refused = workshop.open_with("friend.txt", "a.yaml").unwrap_err();
    assert!(refused.contains("no age identity at hand opens the file"), "{refused}");
    let rotated = workshop.sops(&["rotate", "--in-place", "--add-age", &friend, "a.yaml"]);
    assert!(rotated.status.success(), "{rotated:?}");
    assert_ne!(fs::read(workshop.path("a.yaml")).unwrap(), before);
    for identities in ["key.txt", "friend.txt"] {
        assert_eq!(workshop.open_with(identities, "a.yaml").unwrap(), plain, "{identities}");
    }
}

#[test]
fn what_sops_refuses_is_refused() {
    let workshop = Workshop::new();
    assert!(workshop.encrypt("a.yaml", b"a: one\nb: two\nc_unencrypted: three\nd: {e: four}\n", ""));
    let good = fs::read_to_string(workshop.path("a.yaml")).unwrap();
    let line = |start: &str| good.lines().find(|line| line.starts_with(start)).unwrap();
    let (a, b) = (line("a: "), line("b: "));
    let swapped = good.replace(&format!("{a}\n{b}"), &format!("a: {}\nb: {}", &b[3..], &a[3..]));
    for (what, bad) in [
        ("a clear value", good.replace("three", "3")),
        ("a value less", good.replace(&format!("{a}\n"), "")),
        ("a value twice", good.replace(&format!("{a}\n"), &format!("{a}\nz_unencrypted: x\n"))),
        ("two values swapped", swapped),
        ("a key renamed", good.replace("    e: ENC", "    f: ENC")),
        ("a value in the clear", good.replace(a, "a: one")),
        ("no code", good.replace("    mac: ", "    other: ")),
        ("another time", good.replace("lastmodified: \"20", "lastmodified: \"21")),
        (
            "two rules",
            good.replace("    unencrypted_suffix", "    encrypted_suffix: x\n    unencrypted_suffix"),
        ),
    ] {
        assert_ne!(bad, good, "{what}");
        fs::write(workshop.path("a.yaml"), bad).unwrap();
        assert!(workshop.decrypt("a.yaml").is_none(), "{what}: sops opens it");
        assert!(workshop.open("a.yaml").is_err(), "{what}");
    }
}

/// A text that must not be shown where more than the data of a Secret is encrypted.
const CANARY: &str = "canary-5d20";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\n  annotations:\n    \
                      token: canary-5d20\nstringData:\n  password: canary-5d20\n";
const ANNOTATIONS: &str = "    encrypted_regex: ^(data|stringData|annotations)$\n";

fn list_of(object: &str) -> String {
    format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", object.trim_end().replace('\n', "\n  "))
}

/// Checks that an error holds back what would be shown of a path, or that all of it is rendered.
/// Returns the rendered text.
fn check_exposure(workshop: &Workshop, path: &str, error: Option<&str>) -> String {
    let (succeeds, said) = workshop.rhumb(&["validate", path]);
    assert_eq!(succeeds, error.is_none(), "{said}");
    assert!(said.contains(error.unwrap_or("no errors")) && !said.contains(CANARY), "{said}");
    let shown = workshop.rhumb(&["render", path, "--show-secrets"]).1;
    assert_eq!(shown.contains(CANARY), error.is_none(), "{shown}");
    shown
}

#[test]
fn what_sops_encrypted_beside_the_data_of_a_secret_is_named_and_not_shown() {
    let workshop = Workshop::new();
    let hidden_name = SECRET.replace("name: shop", "name: shop-canary-5d20");
    let clear = SECRET.replace("token: canary-5d20", "token: clear");
    for (plain, rule, found) in [
        (&*hidden_name, "", Some(": error: apiVersion is encrypted")),
        (SECRET, ANNOTATIONS, Some("shop.yaml:6:16: error: metadata.annotations.token is encrypted")),
        (
            &*list_of(SECRET),
            ANNOTATIONS,
            Some("shop.yaml:9:20: error: metadata.annotations.token is encrypted"),
        ),
        (&*list_of(SECRET), "", Some(": error: apiVersion is encrypted")),
        (&*clear, RULES[1], None),
        (&*list_of(&clear), RULES[1], None),
    ] {
        assert!(workshop.encrypt("shop.yaml", plain.as_bytes(), rule), "{rule}");
        check_exposure(&workshop, "shop.yaml", found);
    }
}

// kustomize takes a list apart, and the metadata that opens its values goes away with it.
#[test]
fn what_kustomize_makes_of_encrypted_files_is_judged_as_they_are() {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("app")).unwrap();
    fs::write(workshop.path("app/kustomization.yaml"), "resources: [shop.yaml]\n").unwrap();
    let clear = SECRET.replace("token: canary-5d20", "token: clear");
    for (plain, rule, found) in [
        (SECRET, ANNOTATIONS, Some("app/shop.yaml:1: error: metadata.annotations.token is encrypted")),
        (&*list_of(&clear), RULES[1], Some("app/shop.yaml:4:7: error: kustomize took this object out of")),
        (&*clear, RULES[1], None),
    ] {
        assert!(workshop.encrypt("app/shop.yaml", plain.as_bytes(), rule), "{rule}");
        let shown = check_exposure(&workshop, "app", found);
        assert!(found.is_some() || !shown.contains("ENC["), "{shown}");
    }
}
