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

// The kinds that the inventory names are listed while the files are read, and not again after that.
#[test]
fn a_diff_lists_what_is_there_once() {
    let site = TestNamespace::new("quiet-diff");
    let folder = Folder::new(&[("web.yaml", yaml::deployment("web", 1, "one"))]);
    site.apply(folder.path(), &[]).ends(0);
    let window = site.window();
    site.diff(folder.path(), &[]).ends(0);
    let calls = window.calls();
    let is_list = |event: &&AuditEvent| event.verb == "list" && event.resource == "deployments";
    assert_eq!(calls.iter().filter(is_list).count(), 1, "{calls:#?}");
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

/// Objects of many kinds under one name. The server fills fields in, or stores them in another
/// form, and no pod comes of any.
const SHOP_OF_A_NAME: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {app: NAME}, annotations: {empty: \"\"}}
data: {a: b, long: \"0123456789\"}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME}
data: {a: b25l}
stringData: {b: two}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME}
rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}
subjects: [{kind: User, name: NAME}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: NAME}
spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: NAME}
spec: {defaultBackend: {service: {name: NAME, port: {number: 80}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: NAME}
spec: {minAvailable: 1, selector: {matchLabels: {app: NAME}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: NAME}
spec:
  schedule: '0 3 * * *'
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox, env: [], resources: {limits: {cpu: 1, memory: 1024Mi}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  strategy: {}
  template:
    metadata: {labels: {app: NAME}, creationTimestamp: null}
    spec:
      containers:
      - {name: main, image: nginx, command: null, ports: [{containerPort: 80}], resources: {requests: {cpu: 0.5}}}
      volumes: [{name: tmp, emptyDir: {}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME}
spec:
  replicas: 0
  serviceName: NAME
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: \"nginx:1\", envFrom: [{configMapRef: {name: NAME}}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {nodeSelector: {disk: nowhere}, containers: [{name: main, image: \"nginx:1\"}]}
";

/// The number of objects of [`SHOP_OF_A_NAME`], and of these names.
const KINDS: usize = 14;
const SHOPS: usize = 21;

#[test]
fn a_second_pass_over_many_objects_sends_nothing_and_a_daemon_writes_what_a_commit_changes() {
    let site = TestNamespace::new("quiet-many");
    let shops =
        (0..SHOPS).map(|n| (format!("shop{n}.yaml"), SHOP_OF_A_NAME.replace("NAME", &format!("shop{n}"))));
    let mut files: Vec<(String, String)> = shops.collect();
    files.push(("env.yaml".to_owned(), yaml::config_map("env", "a", "b")));
    let repo = Repo::new(&files);
    let all = KINDS * SHOPS + 1;
    site.apply(repo.path(), &["--ref", "HEAD"]).ends(0).says(&[&format!("{all} created")]);
    let window = site.window();
    let new = site.with_empty_state();
    let second = new.apply(repo.path(), &["--ref", "HEAD", "--prune"]).ends(0);
    second.says(&[&format!("0 created, 0 configured, 0 pruned, {all} unchanged")]);
    window.assert_silent();

    let window = site.window();
    let other = site.with_empty_state();
    let _daemon = other.configured(&site.configuration(repo.path(), "resync: 1s"));
    repo.change("env.yaml", &yaml::config_map("env", "a", "c"));
    site.await_data("env", "a", "c");
    in_time("two resyncs have passed", DEFAULT_TIMEOUT, || {
        let reads = count_reads(&window);
        if reads >= 4 { Ok(()) } else { Err(format!("{reads} reads of the inventory")) }
    });
    let written: Vec<String> = window.writes().into_iter().map(|event| event.name).collect();
    assert_eq!(written, ["env"]);
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
        let is_tidy =
            inventory["data"]["handover"].as_str().is_some_and(|text| text.contains("\"requests\":[]"));
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
