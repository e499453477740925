//! Attacks on encrypted files by a person who may write the repository and has no key. Each case
//! says what stops it.
//!
//! Two more are elsewhere. Texts in variables that would be more than a text are in
//! `src/input/variables/tests.rs`. Words of programs that quote an opened line are in `opened.rs`,
//! and those that quote a value of a plain Secret in `tests/cluster/canary.rs`.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::*;

const PLAIN: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\n  namespace: prod\nstringData:\n  \
                     admin: canary-5d20\n  guest: nothing\n";

/// Returns the text with the values of two keys in each other's place.
fn swapped(text: &str, one: &str, other: &str) -> String {
    let line = |key: &str| text.lines().find(|line| line.trim_start().starts_with(key)).unwrap();
    let value = |key: &str| line(key).split_once(": ").unwrap().1;
    let (first, second) = (value(one).to_owned(), value(other).to_owned());
    text.replace(&first, "\0").replace(&second, &first).replace('\0', &second)
}

fn without(text: &str, key: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim_start().starts_with(key)).collect()
}

#[test]
fn a_file_that_was_edited_after_it_was_encrypted_is_stopped_by_its_code() {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("app")).unwrap();
    fs::write(workshop.path("app/kustomization.yaml"), "resources: [shop.yaml]\n").unwrap();
    assert!(workshop.encrypt("app/shop.yaml", PLAIN.as_bytes(), RULES[1]));
    assert!(workshop.rhumb(&["validate", "app"]).0);
    let text = fs::read_to_string(workshop.path("app/shop.yaml")).unwrap();
    for (case, edited, stopped_by) in [
        ("another name", text.replace("name: shop", "name: bank"), "its `mac` does not fit its values"),
        ("another namespace", text.replace(": prod", ": attack"), "its `mac` does not fit its values"),
        ("a key less", without(&text, "guest:"), "its `mac` does not fit its values"),
        // The value is bound to its path, so that it does not open at all.
        (
            "keys that changed places",
            swapped(&text, "admin:", "guest:"),
            "was edited or moved to another key",
        ),
    ] {
        assert_ne!(edited, text, "{case}");
        fs::write(workshop.path("app/shop.yaml"), &edited).unwrap();
        fs::write(workshop.path("alone.yaml"), &edited).unwrap();
        for path in ["app", "alone.yaml"] {
            let (succeeds, said) = workshop.rhumb(&["validate", path]);
            assert!(
                !succeeds && said.contains(stopped_by) && !said.contains(CANARY),
                "{case} {path}: {said}"
            );
            let (succeeds, shown) = workshop.rhumb(&["render", path, "--show-secrets"]);
            assert!(!succeeds && !shown.contains(CANARY), "{case} {path}: {shown}");
        }
    }
}

#[test]
fn a_key_service_that_a_file_names_is_never_asked() {
    let workshop = Workshop::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let vault = format!(
        "    hc_vault:\n        - vault_address: http://{}\n          engine_path: transit\n          key_name: a\n          \
         created_at: \"2026-01-01T00:00:00Z\"\n          enc: vault:v1:AAAA\n",
        server.local_addr().unwrap()
    );
    assert!(workshop.encrypt("shop.yaml", PLAIN.as_bytes(), RULES[1]));
    let text = fs::read_to_string(workshop.path("shop.yaml")).unwrap();
    let beside = text.replace("sops:\n", &format!("sops:\n{vault}"));
    let age = beside.find("    age:\n").unwrap();
    let end = age + beside[age..].find("    lastmodified:").unwrap();
    let alone = format!("{}{}", &beside[..age], &beside[end..]);
    for (case, text, expected) in [
        // The key that is at hand opens it, and nobody else is asked.
        ("beside a key", beside, None),
        ("without a key", alone, Some("the file is encrypted for HashiCorp Vault, and not for age")),
    ] {
        fs::write(workshop.path("shop.yaml"), &text).unwrap();
        let (succeeds, said) = workshop.rhumb(&["validate", "shop.yaml"]);
        assert_eq!(succeeds, expected.is_none(), "{case}: {said}");
        assert!(said.contains(expected.unwrap_or("no errors")), "{case}: {said}");
        let asked = server.accept().map(|(_, address)| address).map_err(|error| error.kind());
        assert_eq!(asked.unwrap_err(), ErrorKind::WouldBlock, "{case}: the server was asked");
    }
}
