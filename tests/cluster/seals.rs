//! rhumb deletes only objects that are provably its own: the seal of the release annotation holds
//! for one object of one source.

use serde_json::{Value, json};

use crate::support::{Folder, TestNamespace, at, yaml};

/// Returns a ConfigMap as somebody applies it in rhumb's name, with the marks of another one.
fn in_our_name(name: &str, namespace: &str, like: &Value, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": like["metadata"]["labels"],
            "annotations": annotations,
        },
        "data": like["data"],
    })
}

#[test]
fn copies_and_objects_without_a_seal_are_never_pruned_and_cost_no_write() {
    let site = TestNamespace::new("seals");
    let files = ["a", "b", "c"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "key", "one")));
    let folder = Folder::new(&files);
    site.apply(folder.path(), &["--prune"]).ends(0);
    // Somebody who may write ConfigMaps of another namespace copies one there, marks and all.
    let other = "seals-elsewhere";
    site.api.create("/api/v1/namespaces", "somebody", &json!({"metadata": {"name": other}}));
    let a = site.get("ConfigMap", "a").unwrap();
    let copy = in_our_name("a", other, &a, &a["metadata"]["annotations"]);
    site.api.apply(&at("ConfigMap", other, "a"), "rhumb", &copy);
    // An older version left no seal.
    let b = site.get("ConfigMap", "b").unwrap();
    let annotation = b["metadata"]["annotations"]["rhumb.dev/release"].as_str().unwrap();
    let (plain, seal) = annotation.split_once(' ').unwrap();
    assert_eq!(seal.len(), 32, "{annotation}");
    let old = in_our_name("b", "seals", &b, &json!({"rhumb.dev/release": plain}));
    site.api.apply(&site.at("ConfigMap", "b"), "rhumb", &old);
    let window = site.window();
    site.apply(folder.path(), &["--prune"]).ends(0);
    assert_eq!(window.to("configmaps", "a").len(), 0, "neither the object nor its copy is written");
    assert_eq!(window.to("configmaps", "b").len(), 0, "it is applied");
    // Of what no file holds any more, only that which is sealed goes.
    folder.remove("b.yaml");
    folder.remove("c.yaml");
    site.apply(folder.path(), &["--prune"]).says(&["configmap/b", "(seals)", "no valid seal"]);
    site.await_absence("ConfigMap", "c");
    assert!(site.has("ConfigMap", "b") && site.api.get(&at("ConfigMap", other, "a")).is_some());
}

#[test]
fn where_the_key_is_lost_nothing_is_written_anew_and_nothing_is_pruned() {
    let site = TestNamespace::new("seals-lost");
    let files = ["a", "b"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "key", "one")));
    let folder = Folder::new(&files);
    site.apply(folder.path(), &["--prune"]).ends(0);
    site.api.delete(&at("Secret", &site.system(), "config-key.rhumb.dev"));
    folder.remove("b.yaml");
    let diff = site.diff(folder.path(), &[]);
    diff.says(&["seals cannot be checked"]);
    let window = site.window();
    site.apply(folder.path(), &["--prune"]).says(&["no valid seal"]);
    assert!(site.has("ConfigMap", "b"));
    window.assert_no_deletes();
    assert_eq!(window.to("configmaps", "a").len(), 0);
    // The next content carries a seal of the new key, and so can be pruned again.
    folder.write("a.yaml", &yaml::config_map("a", "key", "two"));
    folder.write("c.yaml", &yaml::config_map("c", "key", "one"));
    site.apply(folder.path(), &["--prune"]).ends(0);
    folder.remove("a.yaml");
    site.apply(folder.path(), &["--prune"]).ends(0);
    site.await_absence("ConfigMap", "a");
}

// A pass over a directory has no history in which it could read the last manifest.
#[test]
fn whoever_takes_the_word_to_keep_off_an_object_does_not_get_it_deleted() {
    let site = TestNamespace::new("seals-keep");
    let kept = yaml::config_map("kept", "key", "one")
        .replace("metadata:\n", "metadata:\n  annotations: {rhumb.dev/prune: never}\n");
    let files = [("kept.yaml", kept), ("other.yaml", yaml::config_map("other", "key", "one"))];
    let folder = Folder::new(&files);
    site.apply(folder.path(), &["--prune"]).ends(0);
    let off = json!({"metadata": {"annotations": {"rhumb.dev/prune": null}}});
    site.api.merge(&site.at("ConfigMap", "kept"), "somebody", &off);
    folder.remove("kept.yaml");
    let run = site.apply(folder.path(), &["--prune"]);
    run.says(&["configmap/kept", "kept, as an annotation of it asks"]);
    assert!(site.has("ConfigMap", "kept"));
    site.rhumb(&["uninstall", "seals-keep", "--delete-objects", "--count", "1"]).ends(0);
    assert!(site.has("ConfigMap", "kept") && !site.has("ConfigMap", "other"));
}

#[test]
fn a_secret_without_a_key_is_reported_with_the_command_that_mends_it() {
    let site = TestNamespace::new("seals-garbled");
    let folder = Folder::new(&[("a.yaml", yaml::config_map("a", "key", "one"))]);
    site.apply(folder.path(), &[]).ends(0);
    let secret = at("Secret", &site.system(), "config-key.rhumb.dev");
    site.api.delete(&secret);
    let garbled = json!({"metadata": {"name": "config-key.rhumb.dev"}, "data": {"key": "AAAA"}});
    site.api.create(&format!("/api/v1/namespaces/{}/secrets", site.system()), "somebody", &garbled);
    let remedy = format!("`kubectl -n {} delete secret config-key.rhumb.dev`", site.system());
    site.apply(folder.path(), &[]).says(&["is missing, or shorter than 16 bytes", &remedy]);
    site.rhumb(&["check", folder.path().to_str().unwrap()])
        .says(&["is missing, or shorter than 16 bytes", &remedy]);
    site.api.delete(&secret);
    let run = site.rhumb(&["check", folder.path().to_str().unwrap()]);
    assert!(!run.all().contains("shorter than 16 bytes"), "{}", run.all());
}
