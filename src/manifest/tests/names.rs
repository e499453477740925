//! Names, namespaces, labels and annotations, by the rules of the API server for each kind.

use std::sync::Arc;

use super::{account, read, read_text};

/// Returns the codes of what is said of an object with this metadata.
fn codes(kind: &str, metadata: &serde_json::Value) -> Vec<&'static str> {
    let (api_version, kind) = kind.rsplit_once(' ').unwrap();
    let object = serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    let reading = read(&Arc::from("a.json"), object.to_string().as_bytes());
    assert_eq!(reading.items.len(), 1, "{:?}", reading.diagnostics);
    reading.diagnostics.iter().map(|found| found.code).collect()
}

#[track_caller]
fn check_name(kinds: &[&str], fit: &[&str], unfit: &[&str]) {
    for kind in kinds {
        for name in fit {
            assert!(codes(kind, &serde_json::json!({"name": name})).is_empty(), "{kind} {name}");
        }
        for name in unfit {
            assert_eq!(codes(kind, &serde_json::json!({"name": name})), ["bad-name"], "{kind} {name}");
        }
    }
}

/// Returns a domain of so many characters in all, in labels of allowed lengths.
fn domain(length: usize) -> String {
    let name = ["a".repeat(50), "b".repeat(50), "c".repeat(50), "d".repeat(50)].join(".");
    format!("{name}.{}", "e".repeat(length - name.len() - 1))
}

#[test]
fn most_names_are_domains() {
    let kinds = [
        "v1 ConfigMap",
        "v1 Pod",
        "v1 Secret",
        "apps/v1 Deployment",
        "apps/v1 DaemonSet",
        "batch/v1 Job",
        "networking.k8s.io/v1 Ingress",
        "events.k8s.io/v1 Event",
        "example.org/v1 T",
    ];
    let (longest, longer) = (domain(253), domain(254));
    let fit = ["a", "0", "a.b", "a-b", "10.0.0.1", &"a".repeat(64), &longest];
    let unfit =
        ["A", "a_b", "-a", "a-", "a.", ".a", "a..b", "a-.b", "a b", "a/b", "a:b", "ä", "a\n", &longer];
    check_name(&kinds, &fit, &unfit);
}

#[test]
fn some_names_are_labels_of_domains() {
    let kinds = ["v1 Namespace", "v1 Service", "apps/v1 StatefulSet"];
    let fit = ["a", "a-b", &"a".repeat(63)];
    check_name(&kinds, &fit, &["a.b", "A", "a_b", "-a", "a-", "", &"a".repeat(64)][..5]);
    check_name(&kinds, &[], &[&"a".repeat(64)]);
    check_name(&["v1 Namespace", "apps/v1 StatefulSet"], &["0a"], &[]);
    assert_eq!(codes("v1 Service", &serde_json::json!({"name": "0a"})), ["service-name"]);
}

#[test]
fn the_name_of_a_cronjob_leaves_room_for_its_jobs() {
    check_name(&["batch/v1 CronJob"], &["a.b", &"a".repeat(52)], &["A", &"a".repeat(53)]);
}

#[test]
fn some_names_need_only_fit_into_a_url() {
    let kinds = [
        "rbac.authorization.k8s.io/v1 ClusterRole",
        "rbac.authorization.k8s.io/v1 RoleBinding",
        "certificates.k8s.io/v1 CertificateSigningRequest",
        "policy/v1 PodDisruptionBudget",
        "v1 Event",
    ];
    check_name(&kinds, &["system:Node_A b", "ä", "...", &"a".repeat(300)], &[".", "..", "a/b", "a%b"]);
}

#[test]
fn namespaces_are_labels_of_domains() {
    let namespace = |name: &str| codes("v1 ConfigMap", &serde_json::json!({"name": "a", "namespace": name}));
    for name in ["a", "0-b", &"a".repeat(63), ""] {
        assert!(namespace(name).is_empty(), "{name}");
    }
    for name in ["a.b", "A", "a_b", "-a", "a-", &"a".repeat(64)] {
        assert_eq!(namespace(name), ["bad-namespace"], "{name}");
    }
}

#[test]
fn a_name_that_fits_is_offered() {
    let hint = |name: &str| {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{name}\"}}\n");
        let account = account(&[("a.yaml", &text)]);
        account.lines().find_map(|line| line.strip_prefix("  hint: ").map(str::to_owned))
    };
    for (name, near) in
        [("My_App", "my-app"), ("-web server-", "web-server"), ("a..B", "a-b"), ("team/Web:1", "team-web-1")]
    {
        assert_eq!(hint(name), Some(format!("a name that fits: {near}")), "{name}");
    }
    for name in ["ä", "___", &"A".repeat(300)] {
        assert_eq!(hint(name), None, "{name}");
    }
}

#[test]
fn keys_of_labels_and_annotations_are_qualified_names() {
    let long = domain(253);
    let fit = ["a", "A", "a_b", "a.b", "0", "a.b/c", "a/B_c", &"a".repeat(63), &format!("{long}/a")];
    let unfit = [
        "",
        "-a",
        "a-",
        "a b",
        "a:b",
        "ä",
        "a/",
        "/a",
        "a/b/c",
        "a_b/c",
        "a..b/c",
        "a/-b",
        &"a".repeat(64),
        &format!("a/{}", "b".repeat(64)),
        &format!("{long}a/a"),
    ];
    for field in ["labels", "annotations"] {
        let said = |key: &str| codes("v1 ConfigMap", &serde_json::json!({"name": "a", field: {key: "x"}}));
        for key in fit {
            assert!(said(key).is_empty(), "{field} {key}");
        }
        for key in unfit {
            assert_eq!(said(key), ["bad-key"], "{field} {key}");
        }
    }
    let said = |field: &str| codes("v1 ConfigMap", &serde_json::json!({"name": "a", field: {"A.b/c": "x"}}));
    assert_eq!(said("labels"), ["bad-key"]);
    assert!(said("annotations").is_empty(), "the API takes upper case in the domain of an annotation");
}

#[test]
fn values_of_labels_are_short_and_plain_and_those_of_annotations_free() {
    let said = |field: &str, value: &str| {
        codes("v1 ConfigMap", &serde_json::json!({"name": "a", field: {"a": value}}))
    };
    for value in ["", "a", "1.2", "A.b_c-d", "a..b", &"a".repeat(63)] {
        assert!(said("labels", value).is_empty(), "{value}");
    }
    for value in ["a b", "-a", "a-", "_a", ".a", "a/b", "a:b", "ä", "a\n", &"a".repeat(64)] {
        assert_eq!(said("labels", value), ["bad-label"], "{value}");
        assert!(said("annotations", value).is_empty(), "{value}");
    }
}

#[test]
fn all_annotations_together_have_256_kib() {
    let annotations = |value: usize| {
        let (half, rest) = ("x".repeat(value / 2), "x".repeat(value - value / 2));
        codes("v1 ConfigMap", &serde_json::json!({"name": "a", "annotations": {"a": half, "b": rest}}))
    };
    assert!(annotations((256 << 10) - 2).is_empty());
    assert_eq!(annotations((256 << 10) - 1), ["annotations-too-large"]);
}

// A repository of kilobytes may have the same name of megabytes in many files.
#[test]
fn names_without_an_end_are_refused_and_quoted_within_a_bound() {
    let long = |most: usize| "n".repeat(most);
    let check = |text: &str, expected_items: usize, expected_message: &str| {
        let read = read_text(text);
        assert_eq!(read.items.len(), expected_items, "{expected_message}");
        let [found] = &read.diagnostics[..] else { panic!("{:?}", read.diagnostics) };
        let texts = [Some(&found.message), found.hint.as_ref(), found.excerpt.as_ref()];
        assert!(texts.into_iter().flatten().all(|text| text.len() < 1100), "{found:?}");
        assert!(found.message.contains(expected_message), "{}", found.message);
        assert_eq!(read.understood, expected_items == 1, "{expected_message}");
    };
    let config = |name: &str, rest: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{rest}")
    };
    check(&config(&long(1024), ""), 1, "cannot name a ConfigMap");
    check(&config(&long(1025), ""), 0, "metadata.name has 1025 bytes, and at most 1024 are read");
    check(&config(&long(3_000_000), ""), 0, "metadata.name has 3000000 bytes");
    let namespace =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {}}}\n", long(2000));
    check(&namespace, 0, "metadata.namespace has 2000 bytes");
    check(
        &format!("apiVersion: v1\nkind: {}\nmetadata: {{name: a}}\n", long(2000)),
        0,
        "kind has 2000 bytes",
    );
    let version = format!("apiVersion: {}/v1\nkind: A\nmetadata: {{name: a}}\n", long(2000));
    check(&version, 0, "apiVersion has 2003 bytes");
    // Other quotations are cut too, and the reason stays.
    let label =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, labels: {{? {} : b}}}}\n", long(5000));
    check(&label, 1, " … ");
}
