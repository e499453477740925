//! Deletion of what is no longer wanted, and its guards.

use serde_json::json;

use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, at, eventually, until, yaml};

fn many(count: u32) -> Vec<(String, String)> {
    (0..count)
        .map(|n| (format!("c{n:03}.yaml"), yaml::config_map(&format!("c{n:03}"), "key", "one")))
        .collect()
}

/// Returns the number of the source's ConfigMaps.
fn count(site: &TestNamespace<'_>) -> usize {
    site.api.list(&format!("{}?labelSelector=applyset.kubernetes.io/part-of", site.at("ConfigMap", ""))).len()
}

/// Waits until the source has so many ConfigMaps: all are written side by side, in no order.
#[track_caller]
fn await_count(site: &TestNamespace<'_>, expected: usize) {
    eventually(&format!("{expected} are there"), DEFAULT_TIMEOUT, || match count(site) {
        found if found == expected => Ok(()),
        other => Err(other.to_string()),
    });
}

fn listed(site: &TestNamespace<'_>) -> Vec<String> {
    let list = site.rhumb(&["prune", "list", "-o", "name"]).ends(0);
    list.stdout.lines().map(str::to_owned).collect()
}

fn confirm(site: &TestNamespace<'_>, names: &[String]) {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    site.rhumb(&[&["prune", "confirm"], &names[..]].concat()).ends(0);
}

#[test]
fn half_of_a_hundred_files_removed_by_a_commit_waits_for_a_person() {
    let site = TestNamespace::new("half");
    let repo = Repo::new(&many(100));
    let _daemon = site.daemon(repo.path());
    await_count(&site, 100);
    let window = site.window();
    for n in 0..50 {
        repo.remove(&format!("c{n:03}.yaml"));
    }
    repo.change("c099.yaml", &yaml::config_map("c099", "key", "two"));
    site.await_data("c099", "key", "two");
    let names = eventually("the deletions are listed", DEFAULT_TIMEOUT, || match listed(&site) {
        names if names.len() == 50 => Ok(names),
        names => Err(format!("{} names", names.len())),
    });
    assert!(names.contains(&"half/configmap/c000".to_owned()), "{names:?}");
    let list = site.rhumb(&["prune", "list"]).ends(0);
    list.says(&["half/configmap/c049", "50 of 100 objects", "blast radius"]);
    assert_eq!(count(&site), 100);
    window.assert_no_deletes();
    // One confirmed, one deletion; its fellows still wait, and are still defended.
    confirm(&site, &names[..1]);
    site.await_absence("ConfigMap", "c000");
    site.api.merge(&site.at("ConfigMap", "c001"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("c001", "key", "one");
    assert_eq!(window.deletes().len(), 1);
    confirm(&site, &names[1..]);
    eventually("all confirmed are gone", DEFAULT_TIMEOUT, || match count(&site) {
        50 => Ok(()),
        other => Err(other.to_string()),
    });
    assert_eq!(window.deletes().len(), 50);
    eventually("nothing waits", DEFAULT_TIMEOUT, || {
        if listed(&site).is_empty() { Ok(()) } else { Err("something does") }
    });
}

#[test]
fn apply_leaves_what_a_guard_holds_and_says_so_by_its_exit_code() {
    let site = TestNamespace::new("half-apply");
    let folder = Folder::new(&many(20));
    site.apply(folder.path(), &[]).ends(0);
    for n in 0..10 {
        folder.remove(&format!("c{n:03}.yaml"));
    }
    let window = site.window();
    site.apply(folder.path(), &[]).ends(0);
    site.apply(folder.path(), &["--prune"]).ends(4).says(&[
        "configmap/c003",
        "10 of 20 objects",
        "rhumb prune list",
    ]);
    window.assert_no_deletes();
    assert_eq!(listed(&site).len(), 10);
    confirm(&site, &listed(&site)[..4]);
    site.apply(folder.path(), &["--prune"]).ends(4).says(&["configmap/c000", "pruned"]);
    assert_eq!(count(&site), 16);
    site.apply(folder.path(), &["--prune", "--yes"]).ends(0);
    assert_eq!(count(&site), 10);
    assert_eq!(listed(&site), Vec::<String>::new());
}

#[test]
fn what_asks_for_a_confirmation_waits_for_one() {
    let site = TestNamespace::new("confirm-asked");
    let asking = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: asking\n  annotations: \
                  {argocd.argoproj.io/sync-options: Prune=confirm}\ndata: {a: \"1\"}\n";
    let mut files = many(30);
    files.push(("asking.yaml".to_owned(), asking.to_owned()));
    let repo = Repo::new(&files);
    let _daemon = site.daemon(repo.path());
    await_count(&site, 31);
    repo.remove("asking.yaml");
    repo.remove("c000.yaml");
    repo.commit("Remove");
    // Its fellow goes, and it stays and is defended.
    site.await_absence("ConfigMap", "c000");
    site.api.merge(&site.at("ConfigMap", "asking"), "somebody", &json!({"data": {"a": "foreign"}}));
    site.await_data("asking", "a", "1");
    let names = eventually("its deletion is listed", DEFAULT_TIMEOUT, || match listed(&site) {
        names if names.len() == 1 => Ok(names),
        names => Err(format!("{names:?}")),
    });
    assert_eq!(names, ["confirm-asked/configmap/asking"]);
    let list = site.rhumb(&["prune", "list"]).ends(0);
    list.says(&["confirm-asked/configmap/asking", "its annotation asks for a confirmation"]);
    confirm(&site, &names);
    site.await_absence("ConfigMap", "asking");
}

/// Checks that an object whose deletion loses data waits when its file is removed, while all else
/// goes on, and that a confirmation deletes it.
fn waits_for_a_person(site: &TestNamespace<'_>, kind: &str, name: &str, file: &str) {
    let mut files = many(30);
    files.push(("data.yaml".to_owned(), file.to_owned()));
    let repo = Repo::new(&files);
    let _daemon = site.daemon(repo.path());
    let path = at(kind, "", name);
    until("it is there", || site.api.get(&path).is_some());
    site.await_data("c029", "key", "one");
    let window = site.window();
    repo.remove("data.yaml");
    repo.change("c000.yaml", &yaml::config_map("c000", "key", "two"));
    site.await_data("c000", "key", "two");
    let names = eventually("its deletion is listed", DEFAULT_TIMEOUT, || match listed(site) {
        names if names.len() == 1 => Ok(names),
        names => Err(format!("{names:?}")),
    });
    let (word, label) = names[0].split_once('/').unwrap();
    assert_eq!((word.split('.').next().unwrap(), label), (kind.to_lowercase().as_str(), name));
    let reason = format!("a {kind} is deleted only after a confirmation");
    site.rhumb(&["prune", "list"]).ends(0).says(&[name, &reason]);
    site.rhumb(&["why", &names[0]]).ends(0).says(&[&reason]);
    window.assert_no_deletes();
    assert!(site.api.get(&path).is_some());
    confirm(site, &names);
    until("it is gone", || site.api.get(&path).is_none());
    let deleted: Vec<String> = window.deletes().into_iter().map(|event| event.name).collect();
    assert_eq!(deleted, [name]);
}

#[test]
fn a_volume_that_leaves_git_waits_for_a_person() {
    let file = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: gone-volume-disk}\nspec: \
                {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}\n";
    let site = TestNamespace::new("gone-volume");
    waits_for_a_person(&site, "PersistentVolume", "gone-volume-disk", file);
}

#[test]
fn a_definition_that_leaves_git_waits_for_a_person() {
    let file = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
                metadata: {name: widgets.gone-crd.example.org}\nspec:\n  group: gone-crd.example.org\n  \
                names: {kind: Widget, plural: widgets}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, \
                storage: true, schema: {openAPIV3Schema: {type: object}}}\n";
    let site = TestNamespace::new("gone-crd");
    waits_for_a_person(&site, "CustomResourceDefinition", "widgets.gone-crd.example.org", file);
}

#[test]
fn a_name_that_says_more_than_a_name_is_confirmed_as_it_is() {
    let site = TestNamespace::new("confirm-odd");
    let odd = ["it's $(a) 2 of 7", "b\u{1b}]0;c\u{7}\n\u{202e} configmap d"];
    let folder = Folder::new(&many(2));
    for (number, name) in odd.iter().enumerate() {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [],
            "metadata": {"name": name, "annotations": {"argocd.argoproj.io/sync-options": "Prune=confirm"}},
        });
        folder.write(&format!("role{number}.json"), &role.to_string());
    }
    site.apply(folder.path(), &[]).ends(0);
    folder.remove("role0.json");
    folder.remove("role1.json");
    site.apply(folder.path(), &["--prune"]).ends(4);
    let shown = site.rhumb(&["prune", "list"]).ends(0);
    assert_eq!(shown.stdout.lines().count(), 2, "{shown:#?}");
    assert!(!shown.all().contains(|c: char| c == '\u{202e}' || (c.is_control() && c != '\n')), "{shown:#?}");
    let names = listed(&site);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.iter().all(|name| name.split_whitespace().count() == 1 && !name.contains('\'')),
        "{names:?}"
    );
    confirm(&site, &names);
    site.apply(folder.path(), &["--prune"]).ends(0);
    let left = site.api.list(&format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", site.name));
    assert_eq!(left.len(), 0, "{left:#?}");
}

#[test]
fn a_confirmation_names_what_waits() {
    let site = TestNamespace::new("confirm-unknown");
    let folder = Folder::new(&many(4));
    site.rhumb(&["prune", "list"]).ends(2).says(&["there is no source confirm-unknown"]);
    site.apply(folder.path(), &[]).ends(0);
    site.rhumb(&["prune", "list"]).ends(0).says(&["no pending deletions"]);
    let wrong = site.rhumb(&["prune", "confirm", "confirm-unknown/configmap/c000"]).ends(2);
    wrong.says(&["no pending deletion of confirm-unknown/configmap/c000"]);
}

#[test]
fn few_objects_go_at_once() {
    let site = TestNamespace::new("few");
    let repo = Repo::new(&many(20));
    let _daemon = site.daemon(repo.path());
    await_count(&site, 20);
    repo.remove("c000.yaml");
    repo.remove("c001.yaml");
    repo.commit("Remove two of twenty");
    site.await_absence("ConfigMap", "c000");
    site.await_absence("ConfigMap", "c001");
    assert_eq!(count(&site), 18);
}

#[test]
fn another_repository_under_the_same_name_prunes_nothing_until_it_is_confirmed() {
    let site = TestNamespace::new("other-place");
    let one = Repo::new(&[
        ("a.yaml", yaml::config_map("a", "key", "one")),
        ("b.yaml", yaml::config_map("b", "key", "one")),
    ]);
    let mut daemon = site.daemon(one.path());
    await_count(&site, 2);
    daemon.stop();
    let other = Repo::new(&[
        ("b.yaml", yaml::config_map("b", "key", "two")),
        ("c.yaml", yaml::config_map("c", "key", "two")),
    ]);
    let window = site.window();
    let _daemon = site.with_empty_state().daemon(other.path());
    site.await_data("c", "key", "two");
    site.await_data("b", "key", "two");
    let names = eventually("the deletion is listed", DEFAULT_TIMEOUT, || match listed(&site) {
        names if names.is_empty() => Err("it is not"),
        names => Ok(names),
    });
    assert_eq!(names, ["other-place/configmap/a"]);
    site.rhumb(&["prune", "list"]).ends(0).says(&["was made from", one.path().to_str().unwrap()]);
    assert!(site.has("ConfigMap", "a"));
    window.assert_no_deletes();
    confirm(&site, &names);
    site.await_absence("ConfigMap", "a");
    // From now on the new place is the source's own.
    eventually("the place is the new one", DEFAULT_TIMEOUT, || {
        let inventory = site.inventory().unwrap_or_default();
        let place = &inventory["metadata"]["annotations"]["rhumb.dev/source"];
        if *place == other.path().to_str().unwrap() { Ok(()) } else { Err(place.clone()) }
    });
}

#[test]
fn who_goes_back_to_the_repository_before_is_asked_about_what_came_from_the_other() {
    let site = TestNamespace::new("place-before");
    let shared = ("b.yaml", yaml::config_map("b", "key", "one"));
    let one = Repo::new(&[("a.yaml", yaml::config_map("a", "key", "one")), shared.clone()]);
    let other = Repo::new(&[shared, ("c.yaml", yaml::config_map("c", "key", "two"))]);
    let made_from = || site.inventory().unwrap()["metadata"]["annotations"]["rhumb.dev/source"].clone();
    let mut daemon = site.daemon(one.path());
    await_count(&site, 2);
    eventually("all is settled", DEFAULT_TIMEOUT, || match made_from() {
        place if place == one.path().to_str().unwrap() => Ok(()),
        place => Err(place),
    });
    daemon.stop();
    let window = site.window();
    let mut daemon = site.daemon(other.path());
    site.await_data("c", "key", "two");
    daemon.kill();
    let both = format!("{} and {}", one.path().display(), other.path().display());
    assert_eq!(made_from(), both.as_str());
    let _daemon = site.daemon(one.path());
    let names = eventually("the deletion is listed", DEFAULT_TIMEOUT, || match listed(&site) {
        names if names == ["place-before/configmap/c"] => Ok(names),
        names => Err(format!("{names:?}")),
    });
    site.rhumb(&["prune", "list"]).ends(0).says(&["was made from", &both]);
    window.assert_no_deletes();
    confirm(&site, &names);
    site.await_absence("ConfigMap", "c");
    eventually("the place is the one alone", DEFAULT_TIMEOUT, || match made_from() {
        place if place == one.path().to_str().unwrap() => Ok(()),
        place => Err(place),
    });
    assert!(site.has("ConfigMap", "a") && site.has("ConfigMap", "b"));
}

#[test]
fn a_repository_that_is_checked_out_anew_each_time_is_one_place() {
    let site = TestNamespace::new("checked-out");
    let repo = Repo::new(&many(3));
    let (_bare, origin) = repo.bare();
    let builds = tempfile::tempdir().unwrap();
    let check_out = |name: &str| {
        repo.git(&["push", "--quiet", "origin", "main"]);
        let path = builds.path().join(name).join("repo");
        repo.git(&["clone", "--quiet", "--branch=main", origin.to_str().unwrap(), path.to_str().unwrap()]);
        path
    };
    site.apply(&check_out("build-1"), &["--prune"]).ends(0);
    let gone = repo.git(&["ls-files"]).lines().next().unwrap().to_owned();
    repo.remove(&gone);
    repo.commit("Remove one");
    site.apply(&check_out("build-2"), &["--prune"]).ends(0).says(&["pruned"]);
    // And so it is where its commits are followed.
    site.apply(&origin, &["--prune", "--ref", "main"]).ends(0);
    let inventory = site.inventory().unwrap().to_string();
    assert!(inventory.contains(&*origin.canonicalize().unwrap().to_string_lossy()), "{inventory}");
}

#[test]
fn another_directory_under_the_same_name_is_a_guard_for_apply() {
    let site = TestNamespace::new("other-directory");
    let one = Folder::new(&many(3));
    site.apply(one.path(), &[]).ends(0);
    let other = Folder::new(&[("d.yaml", yaml::config_map("d", "key", "two"))]);
    site.apply(other.path(), &["--prune"]).ends(4).says(&["configmap/c000", "was made from"]);
    site.apply(other.path(), &["--prune", "--yes"]).ends(4);
    assert_eq!(count(&site), 4);
}

#[test]
fn an_object_that_asks_to_be_kept_is_kept() {
    let site = TestNamespace::new("kept");
    let kept = |name: &str, annotation: &str| {
        let line = format!("  name: {name}\n  annotations: {{{annotation}}}\n");
        yaml::config_map(name, "key", "one").replace(&format!("  name: {name}\n"), &line)
    };
    let folder = Folder::new(&[
        ("ours.yaml", kept("ours", "rhumb.dev/prune: never")),
        ("flux.yaml", kept("flux", "kustomize.toolkit.fluxcd.io/prune: disabled")),
        ("argo.yaml", kept("argo", "argocd.argoproj.io/sync-options: Prune=false")),
        ("end.yaml", kept("end", "argocd.argoproj.io/sync-options: 'Delete=false'")),
        ("helm.yaml", kept("helm", "helm.sh/resource-policy: keep")),
        ("detach.yaml", kept("detach", "client.lifecycle.config.k8s.io/deletion: detach")),
        ("kapp.yaml", kept("kapp", "kapp.k14s.io/delete-strategy: orphan")),
        ("none.yaml", yaml::config_map("none", "key", "one")),
        ("rest.yaml", yaml::config_map("rest", "key", "one")),
    ]);
    site.apply(folder.path(), &[]).ends(0);
    let all = ["ours", "flux", "argo", "end", "helm", "detach", "kapp"];
    for file in all.into_iter().chain(["none"]) {
        folder.remove(&format!("{file}.yaml"));
    }
    let apply = site.apply(folder.path(), &["--prune"]).ends(0);
    apply.says(&["configmap/ours (kept) kept: ", "as an annotation of it asks"]);
    apply.says(&["1 pruned, 1 unchanged, 7 kept"]);
    for name in all.into_iter().chain(["rest"]) {
        assert!(site.has("ConfigMap", name), "{name}: {apply:#?}");
    }
    assert!(!site.has("ConfigMap", "none"), "{apply:#?}");
    let confirm = site.rhumb(&["prune", "confirm", "configmap/ours"]).ends(2);
    confirm.says(&["configmap/ours is kept, as an annotation of it asks: no confirmation deletes it"]);
    // As it was asked for: no difference.
    let diff = site.diff(folder.path(), &[]).ends(0);
    diff.says(&["= ConfigMap kept/argo"]);
    diff.says(&["= all 7 are kept: ", "as an annotation of it asks"]);
    diff.says(&["0 to delete, 1 unchanged, 7 kept"]);
}

#[test]
fn a_user_is_deleted_before_what_it_uses() {
    let site = TestNamespace::new("order");
    let volumes = "      volumes: [{name: env, configMap: {name: env}}]\n";
    let used = [
        ("account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n".to_owned()),
        ("env.yaml", yaml::config_map("env", "key", "one")),
        ("web.yaml", yaml::deployment("web", 1, "nginx:1") + "      serviceAccountName: web\n" + volumes),
        ("rest.yaml", yaml::config_map("rest", "key", "one")),
    ];
    let repo = Repo::new(&used);
    let _daemon = site.daemon_with(repo.path(), &["--blast-radius", "90%"]);
    site.await_rollout("web");
    let window = site.window();
    for file in ["account", "env", "web"] {
        repo.remove(&format!("{file}.yaml"));
    }
    repo.commit("Remove the workload");
    site.await_absence("ConfigMap", "env");
    site.await_absence("ServiceAccount", "web");
    let deleted: Vec<String> = window.deletes().into_iter().map(|event| event.resource).collect();
    assert_eq!(deleted.len(), 3, "{deleted:?}");
    assert_eq!(deleted[0], "deployments", "{deleted:?}");
}

#[test]
fn a_label_that_somebody_takes_away_is_put_back_and_nothing_is_pruned() {
    let site = TestNamespace::new("label");
    let repo = Repo::new(&many(2));
    let _daemon = site.daemon(repo.path());
    await_count(&site, 2);
    let window = site.window();
    let stripped = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    site.api.merge(&site.at("ConfigMap", "c000"), "somebody", &stripped);
    eventually("the label is back", DEFAULT_TIMEOUT, || match count(&site) {
        2 => Ok(()),
        other => Err(other.to_string()),
    });
    window.assert_no_deletes();
    assert_eq!(window.to("configmaps", "c000").len(), 1);
}

#[test]
fn a_label_that_is_gone_from_an_object_that_is_not_wanted_any_more_saves_it() {
    let site = TestNamespace::new("label-unwanted");
    let folder = Folder::new(&many(2));
    site.apply(folder.path(), &[]).ends(0);
    let stripped = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    site.api.merge(&site.at("ConfigMap", "c000"), "somebody", &stripped);
    folder.remove("c000.yaml");
    site.apply(folder.path(), &["--prune", "--yes"]).ends(0);
    assert!(site.has("ConfigMap", "c000"));
}

#[test]
fn a_copy_of_an_object_with_its_labels_is_not_pruned() {
    let site = TestNamespace::new("copy");
    let folder = Folder::new(&many(2));
    site.apply(folder.path(), &[]).ends(0);
    let mut copy = site.get("ConfigMap", "c000").unwrap();
    copy["metadata"] = json!({"name": "copy", "labels": copy["metadata"]["labels"],
        "annotations": copy["metadata"]["annotations"]});
    site.api.create(&site.at("ConfigMap", ""), "somebody", &copy);
    let window = site.window();
    site.apply(folder.path(), &["--prune", "--yes"]).ends(0);
    assert!(site.has("ConfigMap", "copy"));
    window.assert_no_deletes();
}

#[test]
fn a_kind_that_left_the_repository_is_still_pruned_by_a_new_process() {
    let site = TestNamespace::new("last-of-kind");
    let folder = Folder::new(&many(2));
    folder.write("service.yaml", &yaml::service("web", "web"));
    site.apply(folder.path(), &[]).ends(0);
    folder.remove("service.yaml");
    let new = site.with_empty_state();
    new.apply(folder.path(), &["--prune"]).ends(0).says(&["service/web", "pruned"]);
    assert!(!site.has("Service", "web"));
    // Its kind leaves the inventory with it.
    let inventory = site.inventory().unwrap().to_string();
    assert!(!inventory.contains("Service"), "{inventory}");
}

#[test]
fn what_holds_data_is_deleted_only_when_it_is_confirmed_by_name() {
    let site = TestNamespace::new("precious");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  \
                 accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    let folder = Folder::new(&many(20));
    folder.write("claim.yaml", claim);
    site.apply(folder.path(), &[]).ends(0);
    folder.remove("claim.yaml");
    for flags in [&["--prune"][..], &["--prune", "--yes"]] {
        let apply = site.apply(folder.path(), flags).ends(4);
        apply.says(&["persistentvolumeclaim/data", "deleted only after a confirmation"]);
    }
    assert!(site.has("PersistentVolumeClaim", "data"));
    confirm(&site, &["precious/persistentvolumeclaim/data".to_owned()]);
    site.apply(folder.path(), &["--prune"]).ends(0);
    site.await_absence("PersistentVolumeClaim", "data");
}

#[test]
fn an_inventory_whose_place_was_lost_prunes_nothing_unasked() {
    let site = TestNamespace::new("prune-lost");
    let map = |name: &str| (format!("{name}.yaml"), yaml::config_map(name, "a", "1"));
    let first = Folder::new(&["a", "b", "c", "d", "e"].map(map));
    site.apply(first.path(), &[]).ends(0);
    let inventory = at("ConfigMap", &site.system(), &site.name);
    site.api.delete(&inventory);
    let window = site.window();
    let second = Folder::new(&["b", "c", "d", "e", "z"].map(map));
    let apply = site.apply(second.path(), &["--prune"]).ends(4);
    apply.says(&["configmap/a", "made from a location that is not recorded"]);
    assert!(site.has("ConfigMap", "z"));
    window.assert_no_deletes();
    // Nor does a second try, which finds the inventory that the first one made.
    site.apply(second.path(), &["--prune"]).ends(4);
    window.assert_no_deletes();
    site.rhumb(&["prune", "confirm", "configmap/a"]).ends(0);
    site.apply(second.path(), &["--prune"]).ends(0);
    assert!(!site.has("ConfigMap", "a"));
}

#[test]
fn a_daemon_that_knows_the_place_prunes_though_the_inventory_was_lost_meanwhile() {
    let site = TestNamespace::new("prune-known");
    let files =
        ["a", "b", "c", "d", "e"].map(|name| (format!("{name}.yaml"), yaml::config_map(name, "a", "1")));
    let repo = Repo::new(&files);
    let _daemon = site.daemon(repo.path());
    await_count(&site, files.len());
    let inventory = at("ConfigMap", &site.system(), &site.name);
    until("the inventory tells its place", || {
        site.api.value(&inventory, "/metadata/annotations/rhumb.dev~1source").is_string()
    });
    site.api.delete(&inventory);
    repo.remove("a.yaml");
    repo.commit("Remove a");
    site.await_absence("ConfigMap", "a");
    assert!(["b", "c", "d", "e"].iter().all(|name| site.has("ConfigMap", name)));
}

#[test]
fn a_count_confirms_all_pending_deletions_of_a_source_only_where_there_are_exactly_so_many() {
    let site = TestNamespace::new("confirm-count");
    let repo = Repo::new(&many(20));
    let _daemon = site.daemon(repo.path());
    await_count(&site, 20);
    let orders = format!("orders.{}.rhumb.dev", site.name);
    let path = at("ConfigMap", &site.system(), &orders);
    until("the orders object is made", || site.api.get(&path).is_some());
    for n in 0..10 {
        repo.remove(&format!("c{n:03}.yaml"));
    }
    repo.commit("Remove half of them");
    eventually("the deletions are listed", DEFAULT_TIMEOUT, || match listed(&site).len() {
        10 => Ok(()),
        other => Err(other),
    });
    let window = site.window();
    let confirm_count =
        |count: &str| site.rhumb(&["prune", "confirm", "--source", "confirm-count", "--count", count]);
    for count in ["9", "11"] {
        let refused = confirm_count(count).ends(2);
        refused.says(&[&format!(
            "source confirm-count has 10 pending deletions, not {count}: none is confirmed"
        )]);
    }
    let mut ordered = window.all_writes();
    ordered.retain(|event| event.name == orders);
    assert!(ordered.is_empty(), "{ordered:#?}");
    repo.change("c019.yaml", &yaml::config_map("c019", "key", "two"));
    site.await_data("c019", "key", "two");
    window.assert_no_deletes();
    confirm_count("10").ends(0);
    await_count(&site, 10);
    let mut deleted: Vec<String> = window.deletes().into_iter().map(|event| event.name).collect();
    deleted.sort_unstable();
    assert_eq!(deleted, (0..10).map(|n| format!("c{n:03}")).collect::<Vec<_>>());
}

#[test]
fn a_list_without_room_for_all_says_how_many_it_leaves_out() {
    let site = TestNamespace::new("prune-many");
    let all: Vec<String> = (0..2_010).map(|n| yaml::config_map(&format!("c{n:04}"), "a", "1")).collect();
    let folder = Folder::new(&[("all.yaml", yaml::documents(&all))]);
    site.apply(folder.path(), &[]).ends(0);
    folder.write("all.yaml", &all[0]);
    site.apply(folder.path(), &["--prune"]).ends(4);
    let list = site.rhumb(&["prune", "list"]).ends(0);
    assert_eq!(list.stdout.lines().filter(|line| line.contains("prune-many/configmap/c")).count(), 2_000);
    let reported =
        "2000 of 2009 deletions of source prune-many are shown; the others are once these are deleted";
    assert!(list.stderr.contains(reported), "{}", list.stderr);
    // Exactly those that were shown.
    site.rhumb(&["prune", "confirm", "--count", "2009"]).ends(0);
    site.apply(folder.path(), &["--prune", "--yes"]).ends(0);
    assert_eq!(count(&site), 1);
}
