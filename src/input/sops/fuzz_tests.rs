//! Encrypted files: whoever may push may change what is around the values.

use super::tests::{FIXTURES, identities};
use super::*;
use crate::fuzz_tests::{FuzzTarget, fuzz, shape};

const WORDS: &[&str] = &[
    "sops:\n",
    "sops_",
    "\"sops\": {",
    "ENC[AES256_GCM,data:",
    ",iv:",
    ",tag:",
    ",type:str]",
    ",type:comment]",
    "mac: ",
    "lastmodified: \"2030-01-01T00:00:00Z\"\n",
    "age:\n",
    "- recipient: ",
    "enc: |\n",
    "encrypted_regex: ^(a+)+$\n",
    "unencrypted_suffix: _unencrypted\n",
    "version: 3.13.3\n",
    "-----BEGIN AGE ENCRYPTED FILE-----",
    "---\n",
    "# ",
    "\u{feff}",
];

/// Returns the longer values of all fixtures: texts that no error may show.
fn plain_values(identities: &AgeIdentities) -> Vec<Vec<u8>> {
    let opened = FIXTURES.iter().flat_map(|fixture| {
        let file: Arc<str> = fixture.name.into();
        let opened = open(&file, fixture.sealed, SopsFormat::of_name(fixture.name), identities).unwrap();
        opened.values().into_iter().map(|value| value.to_vec()).collect::<Vec<_>>()
    });
    opened.filter(|value| value.len() >= 8).collect()
}

fn check(bytes: &[u8], format: SopsFormat, identities: &AgeIdentities, values: &[Vec<u8>]) -> u64 {
    let file: Arc<str> = "secret.yaml".into();
    let encrypted = is_encrypted(bytes, format);
    match open(&file, bytes, format, identities) {
        Ok(opened) => {
            let plain =
                [PlaintextLayout::Sops, PlaintextLayout::SameLines].map(|layout| opened.plaintext(layout));
            assert!(plain.iter().flatten().all(|plain| plain.len() <= 10 * bytes.len() + 1000));
            shape((encrypted, plain.map(|plain| plain.is_ok()), opened.values().len()))
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("secret.yaml") && text.len() <= 2000, "{text}");
            let shows = |value: &Vec<u8>| text.as_bytes().windows(value.len()).any(|piece| piece == value);
            // A text that is not encrypted in the file is no secret.
            let is_open = |value: &Vec<u8>| bytes.windows(value.len()).any(|piece| piece == value);
            assert!(!values.iter().any(|value| shows(value) && !is_open(value)), "{text}");
            shape((
                encrypted,
                text.split("secret.yaml")
                    .last()
                    .map(|text| text.chars().filter(|c| c.is_alphabetic()).take(40).collect::<String>()),
            ))
        }
    }
}

fn run(name: &str, extension: &str) {
    let format = SopsFormat::of_name(&format!("x.{extension}"));
    let (identities, of_format) = (identities(), |name: &str| SopsFormat::of_name(name) == format);
    let values = plain_values(&identities);
    let seeds =
        FIXTURES.iter().filter(|fixture| of_format(fixture.name)).map(|fixture| fixture.sealed.to_vec());
    let target = FuzzTarget { name, seeds: seeds.collect(), words: WORDS, inputs: 700 };
    fuzz(&target, |bytes| check(bytes, format, &identities, &values));
}

#[test]
fn sealed_yaml() {
    run("sealed_yaml", "yaml");
}

#[test]
fn sealed_json() {
    run("sealed_json", "json");
}

#[test]
fn sealed_dotenv() {
    run("sealed_dotenv", "env");
}

#[test]
fn sealed_binary() {
    run("sealed_binary", "bin");
}
