//! A server that does not report which kinds it has.

use controlplane::{Answer, Fault, Requests, Rule};

use crate::support::{Repo, TestNamespace, yaml};

#[test]
fn who_is_denied_discovery_sees_that_and_not_that_the_source_is_unread() {
    let mut site = TestNamespace::new("discovery-denied");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let discovery = Requests::any().path_prefix("/apis").path_lacks("/apis/");
    let rule = proxy.add(Rule::new(discovery, Fault::Replace(Answer::error(403, "Forbidden"))));
    let path = repo.path().to_str().unwrap();
    for arguments in [
        &["apply", path][..],
        &["apply", path, "--wait=60s"],
        &["apply", path, "-o", "json"],
        &["apply", path, "--dry-run"],
        &["diff", path],
    ] {
        let output = site.rhumb(arguments).ends(3);
        output.says(&["error: discovery", "Forbidden"]);
        assert!(!output.all().contains("not read"), "{arguments:?}: {output:#?}");
    }
    assert!(!site.has("ConfigMap", "env"));
    proxy.remove(rule);
    site.apply(repo.path(), &[]).ends(0);
}
