//! Encrypted files, read as they are to be sent.

use sha2::{Digest as _, Sha256};

use super::super::sops::sealing;
use super::super::{Decrypter, read_manifest};
use crate::manifest::ManifestFile;
use crate::object::{ManifestOrigin, RenderOrigin};
use crate::source::SnapshotFile;

/// A value that must be shown nowhere.
const CANARY: &str = "canary-9b1e";

/// Encrypts each `<PATH=VALUE>` of a text at its key path; `<PATH#COMMENT>` is a comment. Returns
/// the bytes too that the code of the file is computed over.
fn sealed(text: &str) -> (String, Vec<u8>) {
    let (mut out, mut coded) = (String::new(), Sha256::digest("sops").to_vec());
    for part in text.split('>') {
        let (before, mark) = part.split_once('<').unwrap_or((part, ""));
        out.push_str(before);
        if let Some((path, value)) = mark.split_once('=') {
            out.push_str(&sealing::seal(path, "str", value));
            coded.extend_from_slice(value.as_bytes());
        } else if let Some((path, comment)) = mark.split_once('#') {
            out.push_str(&sealing::seal(path, "comment", comment));
        }
    }
    (out, coded)
}

/// Returns a file whose values are encrypted where their form says so. Its code is over these
/// alone.
fn sealed_file(text: &str) -> String {
    let (content, coded) = sealed(text);
    let (first, rest) = content.split_once("---\n").map_or((&*content, None), |(a, b)| (a, Some(b)));
    let rules = "    mac_only_encrypted: true\n    encrypted_comment_regex: x\n";
    let file = sealing::sops_file(first, &coded, rules);
    rest.map_or(file.clone(), |rest| format!("{file}---\n{rest}"))
}

fn decrypter() -> Decrypter {
    Decrypter::new(Vec::new(), Some(sealing::identity(1)))
}

fn read(text: &str, decrypter: &Decrypter) -> ManifestFile {
    read_manifest(&SnapshotFile::in_test("a.yaml"), sealed_file(text).as_bytes(), decrypter)
}

/// Returns the objects as `KIND NAME`, with a `-` before those that are held back.
fn objects(reading: &ManifestFile) -> Vec<String> {
    let mark = |valid: bool| if valid { "" } else { "-" };
    reading.items.iter().map(|item| format!("{}{} {}", mark(item.valid), item.gvk.kind, item.name)).collect()
}

fn findings(reading: &ManifestFile) -> Vec<String> {
    reading.diagnostics.iter().map(|found| format!("{}: {}", found.origin, found.message)).collect()
}

/// Checks the objects of a file and its findings. Nothing that is held back or found has a canary.
#[track_caller]
fn check(text: &str, expected: &[&str], found: &[&str]) {
    let reading = read(text, &decrypter());
    check_reading(&reading, text, expected, found);
}

#[track_caller]
fn check_reading(reading: &ManifestFile, text: &str, expected: &[&str], found: &[&str]) {
    assert_eq!(objects(reading), expected, "{text}");
    assert_eq!(findings(reading), found, "{text}");
    let held = reading.items.iter().filter(|item| !item.valid);
    let shown: Vec<String> = held.map(|item| item.body.to_string()).collect();
    let shown = format!("{shown:?} {:?} {:?}", reading.items, reading.diagnostics);
    assert!(!shown.contains(CANARY), "{text}: {shown}");
}

const SHOWN: &str = "is encrypted, and only data and stringData of a Secret are never shown";
const HEAD: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n";
const DATA: &str = "stringData:\n  x: <stringData:x:=canary-9b1e>\n";

#[test]
fn only_the_data_of_a_secret_is_opened() {
    check(&format!("{HEAD}{DATA}"), &["Secret a"], &[]);
    check(&format!("{HEAD}data:\n  x: <data:x:=Y2FuYXJ5>\n"), &["Secret a"], &[]);
    for (field, line, name) in [
        (
            "  annotations:\n    b.c/d: <metadata:annotations:b.c/d:=canary-9b1e>\n",
            6,
            "metadata.annotations[\"b.c/d\"]",
        ),
        ("  labels:\n    x: <metadata:labels:x:=canary-9b1e>\n", 6, "metadata.labels.x"),
        ("  finalizers:\n  - x\n  - <metadata:finalizers:=canary-9b1e>\n", 7, "metadata.finalizers[1]"),
        ("type: <type:=canary-9b1e>\n", 5, "type"),
        ("other:\n  data: <other:data:=canary-9b1e>\n", 6, "other.data"),
        ("\"data.x\": <data.x:=canary-9b1e>\n", 5, "[\"data.x\"]"),
    ] {
        let text = format!("{HEAD}{field}{DATA}");
        check(&text, &["-Secret a"], &[&format!("a.yaml:{line}: {name} {SHOWN}")]);
    }
}

#[test]
fn a_document_may_begin_with_its_metadata() {
    let check = |content: &str, expected: &str, shown: &str| {
        let file = sealed_file(content);
        let (content, metadata) = file.split_once("sops:\n").unwrap();
        let text = format!("sops:\n{metadata}{content}");
        let reading = read_manifest(&SnapshotFile::in_test("a.yaml"), text.as_bytes(), &decrypter());
        let line = text.lines().zip(1..).find(|(line, _)| line.starts_with("    x: ENC"));
        let found = line.map(|(_, number)| format!("a.yaml:{number}: {shown} {SHOWN}"));
        check_reading(&reading, &text, &[expected], &found.iter().map(String::as_str).collect::<Vec<_>>());
    };
    check(&format!("{HEAD}{DATA}"), "Secret a", "");
    let labelled = format!("{HEAD}  labels:\n    x: <metadata:labels:x:=canary-9b1e>\n{DATA}");
    check(&labelled, "-Secret a", "metadata.labels.x");
}

#[test]
fn what_is_encrypted_of_an_identity_is_no_name_of_anything() {
    for (object, found) in [
        // The name in the open is none that Kubernetes takes, which is not said.
        (
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: <metadata:name:=canary-9b1e_>\n",
            "4: metadata.name",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: <metadata:namespace:=canary-9b1e>\n",
            "5: metadata.namespace",
        ),
        ("apiVersion: v1\nkind: <kind:=canary-9b1e>\nmetadata: {name: a}\n", "2: kind"),
        ("apiVersion: <apiVersion:=canary-9b1e/v1>\nkind: Secret\nmetadata: {name: a}\n", "1: apiVersion"),
        ("apiVersion: v1\nkind: Secret\nmetadata: <metadata:=canary-9b1e>\n", "3: metadata"),
    ] {
        let text = format!("{object}{DATA}");
        check(&text, &[], &[&format!("a.yaml:{found} {SHOWN}")]);
        assert!(!read(&text, &decrypter()).understood, "{text}");
        let without_key = read(&text, &Decrypter::default());
        assert_eq!((objects(&without_key), without_key.understood), (Vec::new(), false), "{text}");
    }
}

#[test]
fn an_object_with_a_name_is_held_back_and_the_file_understood() {
    let text = format!("{HEAD}type: <type:=canary-9b1e>\n");
    for decrypter in [decrypter(), Decrypter::default()] {
        let reading = read(&text, &decrypter);
        assert_eq!((objects(&reading), reading.understood), (vec!["-Secret a".to_owned()], true));
    }
}

#[test]
fn each_object_of_a_file_is_judged_by_itself() {
    let other = HEAD.replace("name: a", "name: b");
    let item = |name: &str, field: &str| {
        format!("- {{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}, {field}}}\n")
    };
    let items = item("a", "type: '<items:type:=canary-9b1e>'")
        + &item("b", "stringData: {x: '<items:stringData:x:=canary-9b1e>'}");
    let texts = [
        format!("{HEAD}type: <type:=canary-9b1e>\n---\n{other}{DATA}"),
        format!("apiVersion: v1\nkind: List\nitems:\n{items}"),
    ];
    for (text, line) in texts.into_iter().zip([5, 4]) {
        check(&text, &["-Secret a", "Secret b"], &[&format!("a.yaml:{line}: type {SHOWN}")]);
        let opened = &read(&text, &decrypter()).items[1];
        assert_eq!(opened.body["stringData"]["x"], CANARY, "{text}");
        assert_eq!(opened.index, 1, "{text}");
    }
}

#[test]
fn findings_about_other_objects_stay() {
    let text = format!(
        "{HEAD}  labels: {{x: '<metadata:labels:x:=canary-9b1e_>'}}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: b_}}\n"
    );
    let found = findings(&read(&text, &decrypter()));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with(SHOWN) && found[1].contains("\"b_\" cannot name a Secret"), "{found:?}");
}

#[test]
fn a_list_that_is_encrypted_as_a_whole_gives_no_object() {
    let item = "{apiVersion: v1, kind: Secret, metadata: {name: '<items:metadata:name:=canary-9b1e>'}}";
    for (kind, version, found) in [
        ("<kind:=List>", "v1", format!("a.yaml:2: kind {SHOWN}")),
        ("List", "v1", format!("a.yaml:4: metadata.name {SHOWN}")),
    ] {
        let text = format!("apiVersion: {version}\nkind: {kind}\nitems:\n- {item}\n");
        check(&text, &[], &[&found]);
        assert!(!read(&text, &decrypter()).understood, "{text}");
    }
}

// No reader takes a text with several `/` for the version of an object.
#[test]
fn an_object_that_is_none_before_it_is_opened_is_dropped() {
    let version = |length| format!("{}/v1", "a".repeat(length));
    let slashes = |length| sealing::seal("apiVersion:", "str", version(length)).matches('/').count();
    let version = version((1..63).find(|length| slashes(*length) > 1).unwrap());
    let text = format!(
        "apiVersion: <apiVersion:={version}>\nkind: Secret\nmetadata: {{name: '<metadata:name:=canary-9b1e_>'}}\n"
    );
    check(&text, &[], &[&format!("a.yaml:1: apiVersion {SHOWN}")]);
    assert!(!read(&text, &decrypter()).understood);
}

#[test]
fn comments_are_no_fields() {
    check(
        &format!(
            "#<:#canary-9b1e>\n{HEAD}  finalizers:\n  - <metadata:finalizers:#canary-9b1e>\n  - a/b\n\
             stringData: {{x: '<stringData:x:=canary-9b1e>'}}\n"
        ),
        &["Secret a"],
        &[],
    );
}

#[test]
fn other_kinds_are_held_back_as_they_are_encrypted() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '<data:x:=canary-9b1e>'}\n";
    let found = "a.yaml:1: this ConfigMap is encrypted, and only the values of a Secret are never shown";
    check(text, &["-ConfigMap a"], &[found]);
}

#[test]
fn an_object_of_another_kind_is_shown_where_nothing_of_it_is_encrypted() {
    let space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    check(&format!("{space}---\n{HEAD}{DATA}"), &["Namespace shop", "Secret a"], &[]);
    let items = "- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n\
                 - {apiVersion: v1, kind: Secret, metadata: {name: a}, \
                 stringData: {x: '<items:stringData:x:=canary-9b1e>'}}\n";
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    check(&list, &["Namespace shop", "Secret a"], &[]);
}

#[test]
fn rendered_objects_are_judged_as_files_are() {
    let object = |extra: &str| {
        let text = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {{\"name\": \"a\"{extra}}}, \
             \"stringData\": {{\"x\": \"<stringData:x:=canary-9b1e>\"}}, "
        );
        let sops = sealed_file("x: 1\n");
        let sops: serde_json::Value =
            crate::manifest::read_documents(&"a".into(), sops.as_bytes()).documents[0].to_value();
        format!("{}\"sops\": {}}}", sealed(&text).0, sops["sops"])
    };
    let position = ManifestOrigin::new("secret.yaml".into(), 1, 1);
    let origin = RenderOrigin { root: "app".into(), renderer: "kustomize".into(), places: [position].into() };
    let file = SnapshotFile { origin: Some(origin.into()), ..SnapshotFile::in_test("app/Secret//a") };
    let label = ", \"labels\": {\"x\": \"<metadata:labels:x:=canary-9b1e>\"}";
    let found = format!("app (kustomize) ← secret.yaml:1: metadata.labels.x {SHOWN}");
    for (extra, expected, found) in [("", "Secret a", vec![]), (label, "-Secret a", vec![&*found])] {
        let text = object(extra);
        let reading = read_manifest(&file, text.as_bytes(), &decrypter());
        check_reading(&reading, &text, &[expected], &found);
        assert!(reading.understood, "{text}");
    }
}
