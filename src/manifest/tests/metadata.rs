//! Metadata: what every object has, and what only the server writes.

use super::check;

#[test]
fn kinds_and_versions_are_names_that_a_server_can_have() {
    let read = |version: &str, kind: &str| {
        let text = serde_json::json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "a" } })
            .to_string();
        super::super::read(&"a.yaml".into(), text.as_bytes())
    };
    for (version, kind) in [("v1", "ConfigMap"), ("a.example.org/v1", "My-Kind"), ("x/v1beta1", "T")] {
        assert!(read(version, kind).understood, "{version} {kind}");
    }
    let longest = "K".repeat(64);
    for (version, kind, code) in [
        ("*/v1", "Secret", "bad-api-version"),
        ("v1*", "Secret", "bad-api-version"),
        ("Example.org/v1", "Secret", "bad-api-version"),
        ("v1", "*", "bad-kind"),
        ("v1", "Secret\n---\nkind: ClusterRole", "bad-kind"),
        ("v1", "secrets/status", "bad-kind"),
        ("v1", "9", "bad-kind"),
        ("v1", &longest, "bad-kind"),
    ] {
        let reading = read(version, kind);
        let codes: Vec<&str> = reading.diagnostics.iter().map(|found| found.code).collect();
        assert!(!reading.understood && codes.contains(&code), "{version} {kind}: {codes:?}");
    }
}

#[test]
fn an_object_has_a_name() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        ",
        "
        a.yaml:1:1: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
        ",
        "
        a.yaml:3:9: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {}
        ",
        "
        a.yaml:3:11: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
}

#[test]
fn an_empty_name_is_none() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: ""}
        "#,
        "
        a.yaml:3:11: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: ~}
        ",
        "
        a.yaml:3:11: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {namespace: shop}
        ",
        "
        a.yaml:3:11: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
}

#[test]
fn names_that_the_server_makes_up_are_refused() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          generateName: a-
        ",
        "
        a.yaml:4:17: error: generateName makes a new object at every apply: nothing could be compared with the repository
          hint: give it a fixed metadata.name
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          generateName: a-
        ",
        "
        a.yaml:5:17: error: generateName asks the server to make up a name, and this object has one
          hint: remove it: metadata.name is there
        held: ConfigMap default/a, its manifest has an error
        ",
    );
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          generateName: ""
        "#,
        "
        ConfigMap default/a
        ",
    );
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          generateName: ""
        "#,
        "
        a.yaml:4:3: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          generateName: ~
        ",
        "
        a.yaml:4:3: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        not understood
        ",
    );
}

#[test]
fn what_the_server_writes_is_left_out() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          creationTimestamp: "2026-01-01T00:00:00Z"
          deletionGracePeriodSeconds: 30
          deletionTimestamp: "2026-01-01T00:00:00Z"
          generation: 2
          managedFields: [{manager: x}]
          resourceVersion: "12"
          selfLink: /api
          uid: 3c1
        status: {phase: Active}
        "#,
        "
        a.yaml:5:3: warning: metadata.creationTimestamp is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:6:3: warning: metadata.deletionGracePeriodSeconds is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:7:3: warning: metadata.deletionTimestamp is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:8:3: warning: metadata.generation is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:9:3: warning: metadata.managedFields is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:10:3: warning: metadata.resourceVersion is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:11:3: warning: metadata.selfLink is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:12:3: warning: metadata.uid is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:13:1: warning: status is the server's to write: it is left out
          hint: remove it from the manifest
        ConfigMap default/a
        ",
    );
}

#[test]
fn empty_fields_of_generators_are_left_out_in_silence() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a, creationTimestamp: null, resourceVersion: "", uid: ""}
        status: {}
        "#,
        "
        ConfigMap default/a
        ",
    );
}

#[test]
fn owners_and_finalizers_are_wishes() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          finalizers: [example.org/keep]
          ownerReferences: []
        ",
        "
        ConfigMap default/a
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: b, uid: 3c1}]
        ",
        "
        a.yaml:5:3: warning: metadata.ownerReferences: the cluster deletes this object when no owner of that uid is there
          hint: remove it from the manifest: a uid changes when the owner is made anew
        ConfigMap default/a
        ",
    );
}

#[test]
fn metadata_is_a_mapping() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: text
        ",
        "
        a.yaml:3:11: error: metadata must be a mapping
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
        - name: a
        ",
        "
        a.yaml:4:1: error: metadata must be a mapping
        not understood
        ",
    );
}

#[test]
fn names_are_text() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: 12, namespace: true}
        ",
        "
        a.yaml:3:18: error: metadata.name must be text
          hint: put it in quotes
        a.yaml:3:33: error: metadata.namespace must be text
          hint: put it in quotes
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: [a]}
        ",
        "
        a.yaml:3:18: error: metadata.name must be text
        not understood
        ",
    );
}

#[test]
fn metadata_has_the_types_of_the_api() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          uid: 1
          generation: "1"
          finalizers: a
          labels: [a]
          annotations: text
        "#,
        "
        a.yaml:5:3: warning: metadata.uid is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:5:8: error: metadata.uid must be text
          hint: put it in quotes
        a.yaml:6:3: warning: metadata.generation is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:6:15: error: metadata.generation must be a whole number
        a.yaml:7:15: error: metadata.finalizers must be a list of texts
        a.yaml:8:11: error: metadata.labels must be a mapping of text to text
        a.yaml:9:16: error: metadata.annotations must be a mapping of text to text
          hint: each entry is a key, `:`, a blank and a value
        held: ConfigMap default/a, its manifest has an error
        ",
    );
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          creationTimestamp: "2026-01-01T00:00:00+01:00"
          deletionTimestamp: soon
          finalizers: [a, 1]
          ownerReferences: [a]
          managedFields: {}
        "#,
        "
        a.yaml:5:3: warning: metadata.creationTimestamp is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:6:3: warning: metadata.deletionTimestamp is the server's to write: it is left out
          hint: remove it from the manifest
        a.yaml:6:22: error: metadata.deletionTimestamp must be a time (for example 2006-01-02T15:04:05Z)
        a.yaml:7:15: error: metadata.finalizers must be a list of texts
        a.yaml:8:3: warning: metadata.ownerReferences: the cluster deletes this object when no owner of that uid is there
          hint: remove it from the manifest: a uid changes when the owner is made anew
        a.yaml:8:20: error: metadata.ownerReferences must be a list of mappings
        a.yaml:9:18: error: metadata.managedFields must be a list of mappings
        held: ConfigMap default/a, its manifest has an error
        ",
    );
}

#[test]
fn labels_and_annotations_are_text() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          labels: {a: 1, b: yes, c: [], d: {}, e: ~}
          annotations: {a: 1.5, yes: no}
        ",
        r#"
        a.yaml:5:15: error: metadata.labels: the value of "a" must be text, and this is a number
          hint: put it in quotes
        a.yaml:5:21: error: metadata.labels: the value of "b" must be text, and this is a boolean
          hint: put it in quotes
        a.yaml:5:29: error: metadata.labels: the value of "c" must be text, and this is a list
        a.yaml:5:36: error: metadata.labels: the value of "d" must be text, and this is a mapping
        a.yaml:6:20: error: metadata.annotations: the value of "a" must be text, and this is a number
          hint: put it in quotes
        a.yaml:6:25: warning: an unquoted yes, no, on, off, y or n is a boolean here: `yes` is read as true
          hint: write true or false, or quote it: other readers, kustomize among them, take it for text
        a.yaml:6:30: error: metadata.annotations: the value of "true" must be text, and this is a boolean
          hint: put it in quotes
        held: ConfigMap default/a, its manifest has an error
        "#,
    );
}

#[test]
fn contents_are_text() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data: {a: 1, b: true, c: x, d: ~}
        binaryData: {e: [x]}
        ",
        r#"
        a.yaml:4:11: error: data: the value of "a" must be text, and this is a number
          hint: put it in quotes
        a.yaml:4:17: error: data: the value of "b" must be text, and this is a boolean
          hint: put it in quotes
        a.yaml:5:17: error: binaryData: the value of "e" must be text, and this is a list
        held: ConfigMap default/a, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data: a:b
        ",
        "
        a.yaml:4:7: error: data must be a mapping of text to text
          hint: each entry is a key, `:`, a blank and a value
        held: ConfigMap default/a, its manifest has an error
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data: [a]
        ",
        "
        a.yaml:4:7: error: data must be a mapping of text to text
        held: ConfigMap default/a, its manifest has an error
        ",
    );
    check(
        "
        apiVersion: v1
        kind: Secret
        metadata: {name: a}
        stringData: {a: 0123}
        data: {b: 12}
        ",
        r#"
        a.yaml:4:17: error: stringData: the value of "a" must be text, and this is a number
          hint: put it in quotes
        a.yaml:5:11: error: data: the value of "b" must be text, and this is a number
          hint: put it in quotes
        held: Secret default/a, its manifest has an error
        "#,
    );
}

#[test]
fn a_file_that_is_encrypted_inside_a_secret_is_reported() {
    // The value is `a: ENC[AES256_GCM,data:x]` and `sops: {mac: x}`, each in a line.
    let value = "YTogRU5DW0FFUzI1Nl9HQ00sZGF0YTp4XQpzb3BzOiB7bWFjOiB4fQo=";
    let text = |kind: &str, field: &str, value: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n{field}:\n  a.yaml: {value}\n")
    };
    let found = |kind: &str, field: &str, value: &str| -> Vec<String> {
        let found = super::read_text(&text(kind, field, value)).diagnostics.into_iter();
        found
            .map(|found| format!("{} {}:{} {}", found.severity, found.origin.line, found.code, found.message))
            .collect()
    };
    assert_eq!(
        found("Secret", "data", value),
        ["warning 5:sops-file data: the value of \"a.yaml\" is a file that SOPS encrypted, and stays closed"]
    );
    assert_eq!(found("Secret", "stringData", value), [""; 0]);
    assert_eq!(found("ConfigMap", "binaryData", value), [""; 0]);
    // `sops: ENC`
    assert_eq!(found("Secret", "data", "c29wczogRU5D"), [""; 0]);
}

#[test]
fn keys_of_contents_are_plain() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data: {a b: x, ..c: x, .: x, .d: x, "": x}
        "#,
        "
        a.yaml:4:8: error: data: this cannot be a key: it has 1 to 253 characters: letters, digits, `-`, `_` and `.`, and neither is `.` nor begins with `..`
        a.yaml:4:16: error: data: this cannot be a key: it has 1 to 253 characters: letters, digits, `-`, `_` and `.`, and neither is `.` nor begins with `..`
        a.yaml:4:24: error: data: this cannot be a key: it has 1 to 253 characters: letters, digits, `-`, `_` and `.`, and neither is `.` nor begins with `..`
        a.yaml:4:37: error: data: this cannot be a key: it has 1 to 253 characters: letters, digits, `-`, `_` and `.`, and neither is `.` nor begins with `..`
        held: ConfigMap default/a, its manifest has an error
        ",
    );
}

#[test]
fn fields_of_pods_are_text() {
    check(
        r#"
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: a}
        spec:
          template:
            metadata: {labels: {app: 1}}
            spec:
              nodeSelector: {ssd: true}
              initContainers:
              - {name: a, args: [--port, 80]}
              containers:
              - name: b
                command: [sleep, "1"]
                env:
                - {name: A, value: "1"}
                - {name: B, value: 1}
                - {name: C, value: yes}
                - {name: D, valueFrom: {}}
        "#,
        r#"
        a.yaml:6:30: error: spec.template.metadata.labels: the value of "app" must be text, and this is a number
          hint: put it in quotes
        a.yaml:8:27: error: spec.template.spec.nodeSelector: the value of "ssd" must be text, and this is a boolean
          hint: put it in quotes
        a.yaml:10:34: error: an item of args must be text, and this is a number
          hint: put it in quotes
        a.yaml:16:28: error: env: the value of "B" must be text, and this is a number
          hint: put it in quotes
        a.yaml:17:28: error: env: the value of "C" must be text, and this is a boolean
          hint: put it in quotes
        held: Deployment default/a, its manifest has an error
        "#,
    );
}

#[test]
fn pods_are_made_by_several_kinds() {
    check(
        "
        apiVersion: v1
        kind: Pod
        metadata: {name: a}
        spec: {containers: [{name: a, env: [{name: A, value: 1}]}]}
        ",
        r#"
        a.yaml:4:54: error: env: the value of "A" must be text, and this is a number
          hint: put it in quotes
        held: Pod default/a, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: batch/v1
        kind: CronJob
        metadata: {name: a}
        spec: {jobTemplate: {metadata: {labels: {a: 1}}, spec: {template: {metadata: {labels: {-a: x}}, spec: {containers: [{env: [{name: A, value: 1}]}]}}}}}
        ",
        r#"
        a.yaml:4:45: error: spec.jobTemplate.metadata.labels: the value of "a" must be text, and this is a number
          hint: put it in quotes
        a.yaml:4:88: error: label key "-a": the name of a key has 1 to 63 characters: letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit; one `/` may separate a domain before it
        a.yaml:4:141: error: env: the value of "A" must be text, and this is a number
          hint: put it in quotes
        held: CronJob default/a, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a}
        spec: {template: {spec: {nodeSelector: {a: 1}}}}
        ",
        "
        T a
        ",
    );
}
