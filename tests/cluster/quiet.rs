//! An object that is applied is left alone: nothing at all is sent.

use controlplane::AuditEvent;
use serde_json::json;

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, DedicatedCluster, Folder, Repo, TestNamespace, in_time, yaml,
};

/// Returns objects of many kinds, some with forms that the server stores otherwise.
fn shop() -> Vec<(String, String)> {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  \
                 accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1024Mi}}\n";
    let cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec:\n  schedule: '0 3 * * *'\n  \
                jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          \
                containers: [{name: main, image: busybox, env: [], resources: {limits: {cpu: 1, memory: 1024Mi}}}]\n";
    let odd = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: odd, annotations: {empty: \"\"}}\nspec:\n  \
               replicas: 1\n  selector: {matchLabels: {app: odd}}\n  strategy: {}\n  template:\n    metadata: {labels: \
               {app: odd}, creationTimestamp: null}\n    spec:\n      containers:\n      - name: main\n        image: \
               nginx\n        env: []\n        command: null\n        ports: [{containerPort: 80}]\n        resources: \
               {requests: {cpu: 0.5, memory: 1e3}}\n      volumes: [{name: tmp, emptyDir: {}}]\n";
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: web}\nrules:\n- {apiGroups: \
                [\"\"], resources: [pods], verbs: [get]}\n";
    let policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: closed}\nspec:\n  \
                  podSelector: {}\n  ingress: []\n";
    let both = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ndata: {a: b25l}\nstringData: {b: two}\n";
    let texts = [
        ("claim", claim.to_owned()),
        ("cron", cron.to_owned()),
        ("odd", odd.to_owned()),
        ("role", role.to_owned()),
        ("policy", policy.to_owned()),
        ("key", both.to_owned()),
        ("env", yaml::config_map("env", "a", "b")),
        ("service", yaml::service("web", "web")),
        ("web", yaml::deployment("web", 2, "nginx:1")),
        ("set", yaml::workload("StatefulSet", "set", 1, "nginx:1", "{}")),
        ("agent", yaml::workload("DaemonSet", "agent", 1, "nginx:1", "{}")),
    ];
    texts.into_iter().map(|(name, text)| (format!("{name}.yaml"), text)).collect()
}

#[test]
fn a_second_apply_without_a_state_directory_sends_nothing() {
    let site = TestNamespace::new("quiet-apply");
    let folder = Folder::new(&shop());
    site.apply(folder.path(), &["--wait"]).ends(0);
    let window = site.window();
    let new = site.with_empty_state();
    new.apply(folder.path(), &["--prune"]).ends(0).says(&["deployment.apps/odd", "unchanged"]);
    new.diff(folder.path(), &[]).ends(0);
    window.assert_silent();
}

/// Returns the number of reads of the inventory.
fn count_reads(window: &AuditWindow<'_>) -> usize {
    let is_read = |event: &&AuditEvent| event.verb == "get" && event.resource == "configmaps";
    window.calls().iter().filter(is_read).count()
}

#[test]
fn the_running_daemon_sends_nothing_for_what_is_applied() {
    let site = TestNamespace::new("quiet-run");
    let repo = Repo::new(&shop());
    site.apply(repo.path(), &["--ref", "HEAD", "--wait"]).ends(0);
    let window = site.window();
    let daemon = site.configured(&site.configuration(repo.path(), "resync: 1s"));
    daemon.says(&["read"]);
    // A commit that changes one object is answered by one write, several resyncs later still.
    for value in ["c", "d", "e"] {
        repo.change("env.yaml", &yaml::config_map("env", "a", value));
        site.await_data("env", "a", value);
    }
    let first_lists = window.calls().iter().filter(|event| event.verb == "list").count();
    in_time("two resyncs have passed", DEFAULT_TIMEOUT, || {
        let reads = count_reads(&window);
        if reads >= 4 { Ok(()) } else { Err(format!("{reads} reads of the inventory")) }
    });
    let writes = window.writes();
    assert!(writes.iter().all(|event| event.name == "env") && writes.len() == 3, "{writes:#?}");
    // And a resync is over what is known: it lists nothing again.
    let lists = window.calls().iter().filter(|event| event.verb == "list").count();
    assert_eq!(lists, first_lists);
}

#[test]
fn a_new_process_has_nothing_to_tell_of_what_is_as_unhealthy_as_before() {
    // Without controllers no Deployment ever becomes healthy.
    let cluster = DedicatedCluster::bare();
    let site = TestNamespace::on(&cluster, "quiet-new");
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 2, "one"))]);
    let configuration = site.configuration(repo.path(), "resync: 1s");
    // Once its inventory is tidy, so that nothing of what it made is claimed any more.
    let open = || {
        let inventory = site.inventory()?;
        let is_tidy = inventory["data"]["handover"].as_str().is_some_and(|text| text.contains("\nclaims\n"));
        let findings = inventory["data"]["not-as-wanted"].to_string();
        (is_tidy && findings.contains("Deployment")).then_some(findings)
    };
    let mut daemon = site.configured(&configuration);
    let before = in_time("it is reported what is not healthy", DEFAULT_TIMEOUT, || {
        open().ok_or("nothing is reported")
    });
    daemon.stop();
    let window = site.window();
    let _daemon = site.configured(&configuration);
    // As many as it takes until late reports are written.
    in_time("many resyncs have passed", DEFAULT_TIMEOUT, || {
        let reads = count_reads(&window);
        if reads >= 20 { Ok(()) } else { Err(format!("{reads} reads of the inventory")) }
    });
    assert_eq!(open(), Some(before));
    window.assert_no_writes();
}

#[test]
fn a_commit_that_changes_no_object_sends_nothing() {
    let site = TestNamespace::new("quiet-commit");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "b"))]);
    let daemon = site.daemon(repo.path());
    site.await_data("env", "a", "b");
    let window = site.window();
    let mark = daemon.mark();
    repo.change("env.yaml", &format!("# a comment\n{}", yaml::config_map("env", "a", "b")));
    daemon.says_since(mark, &["read"]);
    repo.git(&["mv", "env.yaml", "moved.yaml"]);
    let mark = daemon.mark();
    repo.commit("Move");
    daemon.says_since(mark, &["read"]);
    repo.change("other.yaml", &yaml::config_map("other", "a", "b"));
    site.await_data("other", "a", "b");
    assert!(window.to("configmaps", "env").is_empty());
    window.assert_no_deletes();
}

#[test]
fn an_empty_map_that_others_put_keys_into_is_applied() {
    let site = TestNamespace::new("quiet-empty");
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 1, "nginx:1"))]);
    site.apply(repo.path(), &["--wait"]).ends(0);
    // As `kubectl rollout restart` does: the manifest says `annotations: {}`.
    let restarted = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}});
    site.api.merge(&site.at("Deployment", "web"), "kubectl-rollout", &restarted);
    site.await_rollout("web");
    let window = site.window();
    site.with_empty_state().apply(repo.path(), &[]).ends(0).says(&["deployment.apps/web", "unchanged"]);
    site.diff(repo.path(), &[]).ends(0);
    window.assert_silent();
    // Another kind of value is drift, though the content is as empty.
    repo.change(
        "other.yaml",
        &yaml::deployment("other", 1, "nginx:1")
            .replace("    spec:\n", "    spec:\n      nodeSelector: {}\n"),
    );
    site.apply(repo.path(), &["--wait"]).ends(0);
    let selector = json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
    site.api.merge(&site.at("Deployment", "other"), "somebody", &selector);
    site.with_empty_state().apply(repo.path(), &[]).ends(0).says(&["deployment.apps/other", "configured"]);
    assert!(site.value("Deployment", "other", "/spec/template/spec/nodeSelector/a").is_null());
}
