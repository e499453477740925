//! Dry runs over objects that other sources of the cluster want.

use controlplane::{Answer, Fault, Requests, Rule};

use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, eventually, yaml};

/// Serves by another process a source that waits for an object of this one.
#[test]
fn a_diff_deletes_nothing_that_another_source_waits_for_and_says_who_may_come_to_want_it() {
    let mut site = TestNamespace::new("others-diff");
    let map = |name: &str| (format!("{name}.yaml"), yaml::config_map(name, "a", "one"));
    let folder = Folder::new(&["env", "old", "kept", "more"].map(map));
    site.apply(folder.path(), &[]).ends(0);
    let repo = Repo::new(&["env", "theirs"].map(map));
    let other = crate::support::source("others-theirs", "others-diff", repo.path(), "");
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n";
    let _daemon = site.configured(&format!("{head}---\n{other}"));
    site.await_object("ConfigMap", "theirs");
    eventually("it claims what it waits for", DEFAULT_TIMEOUT, || {
        let says = site.inventory_of("others-theirs").unwrap_or_default()["data"]["handover"].clone();
        let claims = says.as_str().and_then(|says| says.lines().nth(1)).unwrap_or_default().to_owned();
        if claims.split(' ').count() == 2 { Ok(()) } else { Err(claims) }
    });
    folder.remove("env.yaml");
    folder.remove("old.yaml");
    let flags = ["--blast-radius", "100"];
    let planned = site.diff(folder.path(), &flags).ends(1);
    planned.says(&["ConfigMap others-diff/env"]);
    planned.says(&["waits: not pruned now: source others-theirs wants it"]);
    planned.says(&["- ConfigMap others-diff/old"]);
    planned.says(&["no longer wanted; source others-theirs may still come to want it"]);
    assert!(!planned.stdout.contains("- ConfigMap others-diff/env"), "{planned:#?}");
    // A user who may not read the claims of the others gets a message.
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let lists =
        Requests::any().path_contains("/namespaces/others-diff-rhumb/configmaps").path_lacks("configmaps/");
    proxy.add(Rule::new(lists, Fault::Replace(Answer::error(403, "Forbidden"))));
    let planned = site.diff(folder.path(), &flags).ends(1);
    planned.says(&["- ConfigMap others-diff/env"]);
    planned.says(&["what other sources of the cluster want is not known"]);
}

// An inventory without objects would hold up the deletions of all others.
#[test]
fn an_apply_that_writes_nothing_leaves_no_inventory() {
    let site = TestNamespace::new("others-nothing");
    let flux = "metadata:\n  labels: {kustomize.toolkit.fluxcd.io/name: apps, \
                kustomize.toolkit.fluxcd.io/namespace: flux}\n";
    let theirs = yaml::config_map("theirs", "a", "1").replace("metadata:\n", flux);
    site.cluster.kubectl_in(&["apply", "-n", &site.name, "-f", "-"], &theirs).unwrap();
    let check = |text: &str, refusal: &str| {
        let folder = Folder::new(&[("one.yaml", text.to_owned())]);
        let ended = site.apply(folder.path(), &[]).ends(1);
        ended.says(&[refusal]);
        assert!(site.inventory().is_none(), "{ended:#?}");
    };
    check(&yaml::config_map("theirs", "a", "2"), "Flux Kustomization flux/apps");
    check(&yaml::service("web", "web").replace("port: 80", "port: 700000"), "Service");
    check("kind: [", "one.yaml");
    // An object that was written is looked for again.
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    site.apply(folder.path(), &[]).ends(0);
    assert!(site.inventory().is_some());
}
