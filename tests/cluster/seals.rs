//! rhumb deletes only objects that are provably its own: the seal of the release annotation holds
//! for one object of one source.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, at, eventually, yaml};

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
    let (code, _) = seal.split_once(' ').unwrap();
    assert_eq!(code.len(), 32, "{annotation}");
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

/// Writes an object back as it was, marks and all, in rhumb's name.
#[track_caller]
fn write_back(site: &TestNamespace<'_>, kind: &str, name: &str, old: &Value) {
    let mut body = json!({
        "apiVersion": old["apiVersion"], "kind": kind,
        "metadata": {
            "name": name,
            "namespace": old["metadata"]["namespace"],
            "labels": old["metadata"]["labels"],
            "annotations": {"rhumb.dev/release": old["metadata"]["annotations"]["rhumb.dev/release"]},
        },
    });
    let part = if old["spec"].is_null() { "data" } else { "spec" };
    body[part] = old[part].clone();
    site.api.apply(&site.at(kind, name), "rhumb", &body);
}

#[test]
fn an_earlier_release_that_somebody_writes_back_does_not_end_what_is_kept() {
    let site = TestNamespace::new("seals-back");
    let keep = "  name: a\n  annotations: {rhumb.dev/prune: never}\n";
    let kept = yaml::config_map("a", "key", "two").replace("  name: a\n", keep);
    let mut files = vec![("a.yaml".to_owned(), yaml::config_map("a", "key", "one"))];
    let others = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    files.extend(others.map(|name| (format!("{name}.yaml"), yaml::config_map(name, "key", "one"))));
    let repo = Repo::new(&files);
    let mut daemon = site.daemon(repo.path());
    site.await_data("a", "key", "one");
    let old = site.get("ConfigMap", "a").unwrap();
    repo.change("a.yaml", &kept);
    site.await_data("a", "key", "two");
    eventually("the inventory says so", DEFAULT_TIMEOUT, || {
        let recorded = site.inventory().unwrap()["data"]["kept"].clone();
        if recorded == "never ConfigMap seals-back/a\n" { Ok(()) } else { Err(recorded) }
    });
    let remove = |name: &str| {
        repo.remove(&format!("{name}.yaml"));
        repo.commit(&format!("remove {name}"));
    };
    remove("a");
    remove("b");
    site.await_absence("ConfigMap", "b");
    write_back(&site, "ConfigMap", "a", &old);
    remove("c");
    site.await_absence("ConfigMap", "c");
    assert!(site.has("ConfigMap", "a"), "its word to be kept was taken from it");
    // Out of sight, so that the process forgets it.
    site.api.merge(&site.at("ConfigMap", "a"), "other", &json!({"metadata": {"labels": null}}));
    remove("d");
    site.await_absence("ConfigMap", "d");
    write_back(&site, "ConfigMap", "a", &old);
    remove("e");
    site.await_absence("ConfigMap", "e");
    assert!(site.has("ConfigMap", "a"), "it was forgotten");
    daemon.stop();
    write_back(&site, "ConfigMap", "a", &old);
    let new = site.with_empty_state();
    let _daemon = new.daemon(repo.path());
    remove("f");
    site.await_absence("ConfigMap", "f");
    assert!(site.has("ConfigMap", "a"), "a new process does not know");
}

#[test]
fn an_earlier_release_of_a_workload_that_somebody_writes_back_is_drift() {
    let site = TestNamespace::new("seals-web");
    let deployment = |tag: u32| yaml::deployment("web", 2, &format!("registry.example/web:{tag}"));
    let repo = Repo::new(&[("web.yaml", deployment(1))]);
    let daemon = site.daemon(repo.path());
    site.await_rollout("web");
    site.await_free_budget();
    let old = site.get("Deployment", "web").unwrap();
    repo.change("web.yaml", &deployment(2));
    let image = "/spec/template/spec/containers/0/image";
    eventually("the second is there", DEFAULT_TIMEOUT, || {
        let shown = site.value("Deployment", "web", image);
        if shown == "registry.example/web:2" { Ok(()) } else { Err(shown) }
    });
    site.await_rollout("web");
    site.await_free_budget();
    let (mark, newest) = (daemon.mark(), site.get("Deployment", "web").unwrap());
    write_back(&site, "Deployment", "web", &old);
    daemon.says_since(mark, &["drift repaired", "Deployment seals-web/web"]);
    let release = "/metadata/annotations/rhumb.dev~1release";
    eventually("the second is back", DEFAULT_TIMEOUT, || {
        let shown = site.get("Deployment", "web").unwrap();
        let is_back = [image, release].iter().all(|place| shown.pointer(place) == newest.pointer(place));
        if is_back { Ok(()) } else { Err(shown["metadata"]["annotations"].clone()) }
    });
}
