//! Refusals: edits, missing keys, forms and sizes. No message has anything of a value.

use super::sealing::{DATA_KEY, age_file, identity, seal, sops_file, sops_file_for};
use super::*;
use crate::object::ErrorClass;

/// Opens a file for key 1.
fn outcome(name: &str, text: &str) -> Result<(), SopsError> {
    let identities = AgeIdentities::parse(&identity(1)).unwrap();
    open(&name.into(), text.as_bytes(), SopsFormat::of_name(name), &identities)
        .and_then(|opened| opened.plaintext(PlaintextLayout::SameLines))
        .map(|_| ())
}

fn error(name: &str, text: &str) -> String {
    outcome(name, text).unwrap_err().to_string()
}

#[test]
fn every_edit_of_what_sops_wrote_is_found() {
    let mac = "the file was edited after it was encrypted: its `mac` does not fit its values";
    let edited = "was edited or moved to another key, or belongs to another file";
    let regex = fixture("encrypted-regex.yaml");
    let only = fixture("only-encrypted.yaml");
    let line =
        |text: &str, start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    let password = line(regex, "    password: ENC");
    for (what, text, expected) in [
        ("a clear value", regex.replace("name: shop", "name: other"), format!("f.yaml:11: {mac}")),
        ("the kind", regex.replace("kind: Secret", "kind: ConfigMap"), format!("f.yaml:11: {mac}")),
        ("a clear value added", regex.replace("kind:", "type: x\nkind:"), format!("f.yaml:12: {mac}")),
        ("a value removed", regex.replacen(&format!("{password}\n"), "", 1), String::new()),
        (
            "a value moved",
            regex.replace("    password: ENC", "    other: ENC"),
            format!("data.other {edited}"),
        ),
        (
            "clear in place of encrypted",
            regex.replace(&password, "    password: canary"),
            "data.password is not encrypted, though the rules in the file's `sops` want it so".to_owned(),
        ),
        (
            "a rule",
            regex.replace("encrypted_regex: ^(data|stringData)$", "encrypted_regex: ^other$"),
            mac.to_owned(),
        ),
        (
            "the time",
            regex.replace("lastmodified: \"20", "lastmodified: \"21"),
            "its `mac` or `lastmodified` was edited".to_owned(),
        ),
        (
            "no MAC",
            regex.replace("    mac:", "    mat:"),
            "it has no `mac`, without which nobody knows what was changed".to_owned(),
        ),
        ("MAC over all", only.replace("    mac_only_encrypted: true\n", ""), mac.to_owned()),
        (
            "a value of two",
            only.replace("stringData:\n    password: ENC", "stringData:\n    passwords: ENC"),
            edited.to_owned(),
        ),
    ] {
        assert_ne!(text, regex, "{what}: nothing was edited");
        let error = opened("f.yaml", text.as_bytes(), PlaintextLayout::Sops).unwrap_err();
        assert!(error.contains(&expected) && !error.contains("canary"), "{what}: {error}");
    }
    // Values that the MAC leaves out may be edited, as the file itself says.
    let renamed = only.replace("name: shop", "name: other");
    assert!(opened("f.yaml", renamed.as_bytes(), PlaintextLayout::Sops).unwrap().contains("name: other"));
}

/// Changes one character of each encrypted value of each fixture, and swaps each with the next one.
#[test]
fn no_value_can_be_changed_or_swapped() {
    let mut tried = 0;
    for fixture in FIXTURES {
        let text = std::str::from_utf8(fixture.sealed).unwrap();
        let places: Vec<usize> = text.match_indices("ENC[AES256_GCM,data:").map(|(at, _)| at).collect();
        let end = |at: usize| at + text[at..].find(']').unwrap() + 1;
        for (number, &at) in places.iter().enumerate() {
            let value = &text[at..end(at)];
            // Comments are no data.
            let counts = |at: usize| !text[at..end(at)].ends_with("type:comment]");
            if !counts(at) {
                continue;
            }
            let data = at + "ENC[AES256_GCM,data:".len();
            let other = if &text[data..=data] == "A" { "B" } else { "A" };
            let mut edited = text.to_owned();
            edited.replace_range(data..=data, other);
            let mut all = vec![edited];
            if let Some(&next) = places.get(number + 1)
                && counts(next)
            {
                let (first, second) = (value, &text[next..end(next)]);
                let between = &text[end(at)..next];
                all.push(format!("{}{second}{between}{first}{}", &text[..at], &text[end(next)..]));
            }
            for edited in all {
                let error = opened(fixture.name, edited.as_bytes(), PlaintextLayout::Sops).unwrap_err();
                assert!(!error.contains("canary"), "{}: {error}", fixture.name);
                tried += 1;
            }
        }
    }
    assert!(tried > 80, "{tried}");
}

#[test]
fn files_for_others_say_for_whom() {
    let file = fixture("recipients.yaml").to_owned();
    let without_age = |with: &str| {
        let start = file.find("    age:").unwrap();
        let end = file.find("    lastmodified:").unwrap();
        format!("{}{with}{}", &file[..start], &file[end..])
    };
    let pgp = "    pgp:\n        - enc: x\n          fp: ABCD\n";
    for (what, text, expected) in [
        ("pgp", without_age(pgp), "f.yaml:2: the file is encrypted for PGP, and not for age"),
        (
            "clouds",
            without_age(
                "    kms:\n        - arn: x\n    gcp_kms:\n        - enc: x\n    azure_kv:\n        - enc: x\n    hc_vault:\n        - enc: x\n    hckms:\n        - enc: x\n",
            ),
            "f.yaml:2: the file is encrypted for AWS KMS and Google Cloud KMS and Huawei Cloud KMS and Azure Key Vault and HashiCorp Vault, and not for age",
        ),
        ("nobody", without_age(""), "f.yaml:2: the metadata below `sops` cannot be used: it names no keys"),
        (
            "groups",
            without_age(
                "    key_groups:\n        - age:\n            - recipient: age1a\n              enc: x\n        - pgp:\n            - fp: x\n    shamir_threshold: 2\n",
            ),
            "f.yaml:2: the metadata below `sops` cannot be used: the data key is split among several `key_groups`, which rhumb does not join",
        ),
    ] {
        assert_eq!(error("f.yaml", &text), expected, "{what}");
    }
    // One that we hold a key for opens the file, whoever else can.
    let both = file.replace("    lastmodified:", &format!("{pgp}    lastmodified:"));
    assert_eq!(opened("f.yaml", both.as_bytes(), PlaintextLayout::Sops).unwrap(), "password: canary-1\n");
    let stranger = error("f.yaml", &file);
    assert!(
        stranger.starts_with("f.yaml:2: no age identity at hand opens the file, which is encrypted for age1"),
        "{stranger}"
    );
    assert_eq!(stranger.matches("age1").count(), 3, "{stranger}");
    let diagnostic = outcome("f.yaml", &file).unwrap_err().diagnostic();
    assert_eq!((diagnostic.code, diagnostic.origin.line), ("no-key", 2));
    assert!(diagnostic.message.starts_with("no age identity"));
    assert!(diagnostic.hint.unwrap().starts_with("give rhumb the identity of one of them"));
    // The hint names nothing that would be refused.
    let mut others = file.clone();
    for line in file.lines().filter(|line| line.contains("recipient: ")) {
        let (before, _) = line.split_once("recipient: ").unwrap();
        others = others.replace(line, &format!("{before}recipient: age1yubikey1qqqqqq"));
    }
    let hint = outcome("f.yaml", &others).unwrap_err().diagnostic().hint.unwrap();
    assert!(hint.starts_with("none of them is of a kind that rhumb reads"), "{hint}");
    assert_eq!(outcome("f.yaml", &file).unwrap_err().class(), ErrorClass::Config);
}

#[test]
fn one_key_group_is_none() {
    let file = sops_file("a_unencrypted: 1\n", b"1", "");
    let grouped = file.replace("    age:\n", "    key_groups:\n      - age:\n");
    assert_eq!(outcome("f.yaml", &grouped), Ok(()));
}

#[test]
fn forms_that_sops_never_writes_are_refused_by_line() {
    for (content, expected) in [
        ("a: &x 1\nb: *x\n", "f.yaml:2: the encrypted file holds an alias, which SOPS never writes"),
        ("a:\n  <<: {b: 1}\n", "f.yaml:2: the encrypted file holds a merge key, which SOPS never writes"),
        ("1: a\n", "f.yaml:1: the encrypted file holds a key that is no text, which SOPS never writes"),
        ("[a]: a\n", "f.yaml:1: the encrypted file holds a key that is no text, which SOPS never writes"),
    ] {
        // The rule leaves all in the clear, so that nothing else is at fault.
        let file = sops_file(content, b"", "    encrypted_suffix: none\n");
        assert_eq!(error("f.yaml", &file), expected, "{content}");
    }
    let tagged = sops_file(&format!("a: !!str {}\n", seal("a:", "str", "x")), b"x", "");
    assert_eq!(
        error("f.yaml", &tagged),
        "f.yaml:1: the encrypted file holds an encrypted value with a tag, which SOPS never writes"
    );
    let second = sops_file("a_unencrypted: 1\n", b"1", "");
    assert_eq!(
        error("f.yaml", &format!("{second}---\n- x\n")),
        format!(
            "f.yaml:{}: the encrypted file holds a document that is no mapping, which SOPS never writes",
            second.lines().count() + 2
        )
    );
    assert_eq!(
        error("f.yaml", &format!("a: 1\n---\n{second}")),
        "f.yaml: the metadata below `sops` cannot be used: there is none in its first document"
    );
    let escaped = sops_file(&format!("a: \"\\x45{}\"\n", &seal("a:", "str", "x")[1..]), b"x", "");
    assert_eq!(
        error("f.yaml", &escaped),
        "f.yaml:1: the encrypted file holds an encrypted value in an unusual form, which SOPS never writes"
    );
}

#[test]
fn metadata_that_cannot_be_used_is_named() {
    let with = |more: &str| sops_file("a_unencrypted: 1\n", b"1", more);
    for (text, expected) in [
        (with("    encrypted_regex: \"(?=x)\"\n"), "its regular expression is not understood"),
        (
            with("    encrypted_suffix: x\n    encrypted_regex: x\n"),
            "it has more than one rule for what is encrypted",
        ),
        (with("    x: &y [*y]\n"), "it is not of the form that SOPS writes"),
        (with("    x: [[[[[[1]]]]]]\n"), "it is not of the form that SOPS writes"),
        (with("").replace("sops:", "sops: text\nb:"), "it is not of the form that SOPS writes"),
        (format!("sops: {{mac: x}}\n{}", with("")), "it is there twice"),
        (
            with("").replace("    age:\n", &format!("    age:\n{}", "        - enc: x\n".repeat(256))),
            "it names more than 256 recipients",
        ),
        (sops_file_for(&age_file(&[1], b"short"), "", b"", ""), "its data key has a wrong length"),
    ] {
        let error = error("f.yaml", &text);
        assert!(error.ends_with(expected), "{error}\n{text}");
    }
}

#[test]
fn a_data_key_that_was_bent_is_named() {
    let file = fixture("recipients.yaml");
    let identity = AgeIdentities::parse(include_str!("fixtures/other-identity.txt")).unwrap();
    let recipient = identity.recipients().next().unwrap();
    let at = file.find(&format!("recipient: {recipient}")).unwrap();
    let begin = file[..at].rfind("FILE-----\n").and_then(|end| file[..end].rfind("BEGIN AGE")).unwrap();
    let bent =
        format!("{}{}", &file[..begin], file[begin..].replacen("Ywd", "Yxd", 1).replacen("YWdl", "YWdm", 1));
    let error = open(&"f.yaml".into(), bent.as_bytes(), SopsFormat::Yaml, &identity).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "f.yaml:2: the data key for {recipient} cannot be read: its header is broken: it is not of age v1"
        )
    );
}

// The path of a value costs its length for each value: deep documents of many values would cost
// their square.
#[test]
fn work_and_size_are_bounded() {
    let deep = "k".repeat(900);
    let indented = |all: String, level| all + &" ".repeat(level) + &deep + ":\n";
    let mut content = (0..100).fold(String::new(), indented);
    let path = format!("{deep}:").repeat(100);
    let value = seal(&path, "str", "x");
    content.push_str(&format!("{}- {value}\n", " ".repeat(100)).repeat(800));
    let file = sops_file(&content, b"", "");
    assert!(
        error("f.yaml", &file)
            .ends_with("is one too many: the key paths of the file are too long for so many values")
    );

    let clear = content.replace(&value, "x");
    let file = sops_file(&clear, b"", "    encrypted_suffix: none\n");
    assert!(error("f.yaml", &file).ends_with("the encrypted file has more than 67108864 bytes of key paths"));
    let keys = (0..2000).fold(String::new(), |keys, number| keys + &format!("k{number}{deep}: 1\n"));
    let file = sops_file(&keys, b"", "    encrypted_regex: x\n");
    assert!(error("f.yaml", &file).ends_with("has more than 1048576 bytes of keys for a regular expression"));

    let many = (0..1100)
        .fold(String::new(), |all, _| all + "        - recipient: x\n          enc: |\n            ARMOR\n");
    let armor = age_file(&[2; 200], &DATA_KEY).trim_end().replace('\n', "\n            ");
    let file = sops_file("a_unencrypted: 1\n", b"1", "").replace(
        "    age:\n",
        &format!(
            "    age:\n{}",
            many.lines().take(3 * 20).collect::<Vec<_>>().join("\n").replace("ARMOR", &armor) + "\n"
        ),
    );
    assert!(error("f.yaml", &file).ends_with("to look for its key would take more than 1024 attempts"));

    let large = vec![b'a'; MAX_MANIFEST_BYTES as usize + 1];
    let refused = open(&"f.yaml".into(), &large, SopsFormat::Yaml, &AgeIdentities::default()).unwrap_err();
    assert_eq!(refused.to_string(), "f.yaml: the encrypted file has more than 16777216 bytes");
    assert!(!is_encrypted(&large, SopsFormat::Yaml));
}

#[test]
fn values_without_a_form_in_the_format_are_refused() {
    let binary = seal("a:", "str", b"canary\xff");
    let yaml = sops_file(&format!("a: {binary}\n"), b"canary\xff", "");
    assert_eq!(opened_for_key_1("f.yaml", &yaml).as_deref(), Ok("a: !!binary Y2FuYXJ5/w==\n"));
    let braces = |value: &str, coded: &[u8]| {
        let block = sops_file("", coded, "");
        let (_, metadata) = block.split_once("sops:\n").unwrap();
        let field = |name: &str| {
            metadata
                .lines()
                .find_map(|line| line.trim().strip_prefix(name))
                .unwrap()
                .trim_matches('"')
                .to_owned()
        };
        let armor = age_file(&[1], &DATA_KEY).replace('\n', "\\n");
        let (mac, modified) = (field("mac: "), field("lastmodified: "));
        format!(
            "{{\"a\": \"{value}\", \"sops\": {{\"age\": [{{\"enc\": \"{armor}\"}}], \"mac\": \"{mac}\", \"lastmodified\": \"{modified}\"}}}}"
        )
    };
    assert_eq!(
        opened_for_key_1("f.json", &braces(&seal("a:", "str", "x<"), b"x<")).as_deref(),
        Ok("{\"a\": \"x\\u003c\"}")
    );
    for (value, coded, expected) in [
        (
            binary,
            b"canary\xff".as_slice(),
            "is binary, so it cannot be text of a manifest: put it below `data`, in base64",
        ),
        (seal("a:", "float", "+Inf"), b"+Inf", "is no number that JSON has"),
    ] {
        let error = opened_for_key_1("f.json", &braces(&value, coded)).unwrap_err();
        assert_eq!(error, format!("f.json:1: the encrypted value of a {expected}"));
    }
}

#[test]
fn dotenv_that_is_none_is_refused_by_line() {
    assert_eq!(
        error("f.env", "A=1\nnothing\nsops_mac=x\n"),
        "f.env:2: this is not dotenv: the line has no `=`"
    );
    assert_eq!(
        error("f.env", "A=1\n"),
        "f.env: the metadata below `sops` cannot be used: there is none in its first document"
    );
    for bad in [
        "sops_age__list_99999__map_enc=x\n",
        "sops_a__map_b__map_c__map_d__map_e__map_f__map_g=x\n",
        "sops_a=1\nsops_a__map_b=1\n",
    ] {
        assert_eq!(
            error("f.env", bad),
            "f.env: the metadata below `sops` cannot be used: it is not of the form that SOPS writes",
            "{bad}"
        );
    }
    let many = |count: usize, line: &str| {
        let numbered = |number: usize| line.replace('N', &number.to_string());
        (0..count).map(numbered).collect::<String>()
    };
    for (count, line) in [
        (1_000, "sops_aN__list_1023=x\n"),
        (1_000, "sops_aN__map_b__list_200=x\n"),
        (20_000, "sops_aN=x\n"),
        (20_000, "sops_a__map_N=x\n"),
    ] {
        let bad = many(count, line);
        assert_eq!(
            error("f.env", &bad),
            "f.env: the metadata below `sops` cannot be used: it has more keys and items than SOPS writes",
        );
    }
    let edited = fixture("values.env").replace("HOST_unencrypted=plain", "HOST_unencrypted=other");
    let error = opened("f.env", edited.as_bytes(), PlaintextLayout::Sops).unwrap_err();
    assert_eq!(error, "f.env: the file was edited after it was encrypted: its `mac` does not fit its values");
}
