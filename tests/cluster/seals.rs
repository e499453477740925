//! rhumb deletes only objects that are provably its own: the seal of the release annotation holds
//! for one object of one source.

use serde_json::{Value, json};

use crate::orders::grant;
use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, at, eventually, until, yaml};

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

/// Returns how many objects a plan creates, changes and deletes, and how many wait.
#[track_caller]
fn planned_counts(site: &TestNamespace<'_>, folder: &Folder) -> [u64; 4] {
    let summary = site.diff(folder.path(), &["-o", "json"]).ends(1).json()["summary"].clone();
    ["create", "configure", "delete", "wait"].map(|verdict| summary[verdict].as_u64().unwrap())
}

// By RBAC, and not by a fault: such a user may do all that a plan needs, and read no Secret.
#[test]
fn a_plan_of_who_may_not_read_the_key_has_all_changes_and_no_deletion_and_says_why() {
    let site = TestNamespace::new("seals-plan");
    let files = ["changed", "drifted", "gone"];
    let files = files.map(|name| (format!("{name}.yaml"), yaml::config_map(name, "key", "one")));
    let folder = Folder::new(&files);
    site.apply(folder.path(), &["--prune"]).ends(0);
    folder.write("changed.yaml", &yaml::config_map("changed", "key", "two"));
    folder.write("new.yaml", &yaml::config_map("new", "key", "one"));
    folder.remove("gone.yaml");
    site.api.merge(&site.at("ConfigMap", "drifted"), "somebody", &json!({"data": {"key": "theirs"}}));
    assert_eq!(planned_counts(&site, &folder), [1, 2, 1, 0]);

    let mut limited = site.with_empty_state();
    limited.limited();
    let verbs = json!(["get", "list", "watch", "create", "patch"]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]);
    grant(&limited, &rules);
    let asked = format!("--as={}", limited.user);
    until("the rights are granted", || {
        limited.cluster.kubectl(&["auth", "can-i", "patch", "configmaps", "-n", &site.name, &asked]).is_ok()
    });
    let window = limited.window();
    assert_eq!(planned_counts(&limited, &folder), [1, 2, 0, 1]);
    let plan = limited.diff(folder.path(), &[]).ends(1);
    for line in
        ["+ ConfigMap seals-plan/new", "~ ConfigMap seals-plan/changed", "~ ConfigMap seals-plan/drifted"]
    {
        plan.says(&[line]);
    }
    plan.says(&["? ConfigMap seals-plan/gone"]);
    plan.says(&[
        "seals cannot be checked without the Secret config-key.rhumb.dev",
        "the user may not do this",
    ]);
    window.assert_no_writes();
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
        let is_there = recorded.as_str().is_some_and(|text| text.contains("\"ConfigMap/seals-back/a\""));
        if is_there { Ok(()) } else { Err(recorded) }
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

/// Two objects that are kept, and the folders of two sources of one repository.
struct KeptObjects<'s> {
    site: &'s TestNamespace<'s>,
    repo: Repo,
    /// As the first source made them.
    old: [Value; 2],
}

impl<'s> KeptObjects<'s> {
    /// Returns them as the source of `a` is to make them.
    fn make(site: &'s TestNamespace<'s>) -> Self {
        let file = |name: &str| yaml::config_map(name, "key", "one");
        let others = ["a", "b"].into_iter().flat_map(|folder| (0..12).map(move |number| (folder, number)));
        let mut files: Vec<(String, String)> = others
            .map(|(folder, number)| (format!("{folder}/{number}.yaml"), file(&format!("{folder}{number}"))))
            .collect();
        files.extend(["env", "own"].map(|name| (format!("a/{name}.yaml"), file(name))));
        let repo = Repo::new(&files);
        let old = [Value::Null, Value::Null];
        Self { site, repo, old }
    }

    /// Moves `env` to `b`, asks to keep both, and then names neither any more.
    fn keep(&mut self) {
        let names = ["env", "own"];
        for name in names {
            self.site.await_data(name, "key", "one");
        }
        self.site.await_object("ConfigMap", "b0");
        self.old = names.map(|name| self.site.get("ConfigMap", name).unwrap());
        let kept = |name: &str| {
            let keep = format!("  name: {name}\n  annotations: {{rhumb.dev/prune: never}}\n");
            yaml::config_map(name, "key", "two").replace(&format!("  name: {name}\n"), &keep)
        };
        self.repo.git(&["mv", "a/env.yaml", "b/env.yaml"]);
        self.repo.write("a/own.yaml", &kept("own"));
        self.repo.change("b/env.yaml", &kept("env"));
        for (source, name) in [("seals-moved-b", "env"), ("seals-moved-a", "own")] {
            self.site.await_data(name, "key", "two");
            eventually("the inventory says so", DEFAULT_TIMEOUT, || {
                let recorded = self.site.inventory_of(source).unwrap()["data"]["kept"].clone();
                let object = format!("\"ConfigMap/seals-moved/{name}\"");
                let is_there = recorded.as_str().is_some_and(|text| text.contains(&object));
                if is_there { Ok(()) } else { Err(recorded) }
            });
        }
        self.repo.remove("a/own.yaml");
        self.repo.remove("b/env.yaml");
        self.prune("b0");
    }

    fn source(&self, folder: &str) -> String {
        let (space, url) = (&self.site.name, self.repo.path().display());
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {space}-{folder}}}\nspec:\n  \
             namespace: {space}\n  pruneDelay: 1s\n  git: {{url: {url}, path: {folder}}}\n"
        )
    }

    /// Removes another object, and waits until it is deleted: so all else was judged too.
    #[track_caller]
    fn prune(&self, name: &str) {
        let (folder, number) = name.split_at(1);
        self.repo.remove(&format!("{folder}/{number}.yaml"));
        self.repo.commit(&format!("remove {name}"));
        self.site.await_absence("ConfigMap", name);
    }

    fn write_back(&self, name: &str, old: &Value) {
        write_back(self.site, "ConfigMap", name, old);
    }

    #[track_caller]
    fn assert_kept(&self, by: &str) {
        for name in ["env", "own"] {
            assert!(self.site.has("ConfigMap", name), "{by} deletes {name}");
        }
    }
}

// Neither to the process of that source, nor to one that serves both.
#[test]
fn an_earlier_release_of_another_source_that_somebody_writes_back_does_not_end_what_is_kept() {
    let site = TestNamespace::new("seals-moved");
    let mut objects = KeptObjects::make(&site);
    let [a, b] = ["a", "b"].map(|folder| objects.source(folder));
    // Each has a state of its own.
    let [site_a, site_b] = [site.with_empty_state(), site.with_empty_state()];
    let (mut daemon_a, mut daemon_b) = (site_a.configured(&a), site_b.configured(&b));
    objects.keep();
    let [old_env, old_own] = objects.old.clone();
    objects.write_back("env", &old_env);
    objects.prune("a0");
    objects.assert_kept("the process of its former source");
    daemon_a.stop();
    objects.write_back("env", &old_env);
    daemon_a = site_a.configured(&a);
    objects.prune("a1");
    objects.assert_kept("the next process of its former source");
    daemon_a.stop();
    daemon_b.stop();

    // Our own repair of what nobody wants is no reason to forget it.
    let both = format!("{a}---\n{b}");
    let mut daemon = site_a.configured(&both);
    objects.prune("a2");
    objects.write_back("env", &old_env);
    objects.prune("b1");
    // Nor is a label that the object never had: it is put back, for the source that made it.
    let mut relabelled = old_own.clone();
    relabelled["metadata"]["labels"] = site.get("ConfigMap", "b3").unwrap()["metadata"]["labels"].clone();
    relabelled["data"] = json!({"key": "three"});
    objects.write_back("own", &relabelled);
    site.await_data("own", "key", "two");
    site.api.merge(&site.at("ConfigMap", "own"), "other", &json!({"metadata": {"labels": null}}));
    objects.prune("a4");
    objects.write_back("own", &old_own);
    objects.prune("a5");
    objects.assert_kept("the source of a written label");
    daemon.stop();
    objects.write_back("env", &old_env);
    let _daemon = site_a.configured(&both);
    objects.prune("a3");
    objects.prune("b2");
    objects.assert_kept("a process of both sources");
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
