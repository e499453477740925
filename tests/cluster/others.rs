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
