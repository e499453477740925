//! Two daemons, each with its own source and the printed roles. The claims of one that is gone hold
//! the other one up as long as its workload rolls out, and no longer.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::support::{
    DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, run, source, until, yaml,
};

/// Claims of whoever is gone count until their workloads have rested for two minutes.
const RECLAIMED: Duration = Duration::from_mins(4);

/// One of two daemons on the same budget.
struct ClaimingDaemon<'a> {
    site: TestNamespace<'a>,
    file: PathBuf,
    repo: Repo,
    namespace: String,
    workload: (&'static str, &'static str),
}

impl<'a> ClaimingDaemon<'a> {
    fn new(site: &TestNamespace<'a>, name: &str, workload: (&'static str, &'static str)) -> Self {
        let namespace = format!("{}-{name}", site.name);
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        site.api.create("/api/v1/namespaces", "setup", &made);
        let mut own = site.with_empty_state();
        own.user = format!("{}-{name}", own.user);
        let repo = Repo::new(&[("it.yaml", yaml::workload(workload.0, workload.1, 2, "app:1", "{}"))]);
        let file = own.state.path().join("rhumb.yaml");
        let settings = "leases: never\nbudget: {maxWorkloads: 1, maxUnavailable: 100%, soak: 1s}";
        let text = format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{settings}\n---\n{}",
            source(&namespace, &namespace, repo.path(), "")
        );
        std::fs::write(&file, text).unwrap();
        Self { site: own, file, repo, namespace, workload }
    }

    /// Grants exactly what is printed.
    fn granted(mut self) -> Self {
        self.site.limited();
        let mut command = self.site.bare_command();
        command.args(["rbac", "--user", &self.site.user, "--config"]).arg(&self.file);
        let printed = run(command).ends(0).stdout;
        self.site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
        until("all is granted", || {
            let mut command = self.site.bare_command();
            command.args(["check", "--config"]).arg(&self.file);
            run(command).code == 0
        });
        self
    }

    fn check_says(&self, text: &str) {
        eventually("the check tells", DEFAULT_TIMEOUT, || {
            let mut command = self.site.bare_command();
            command.args(["check", "--config"]).arg(&self.file);
            let output = run(command);
            if output.stdout.contains(text) { Ok(()) } else { Err(output.all()) }
        });
    }

    fn start(&self) -> Daemon {
        let mut command = self.site.bare_command();
        command.args(["run", "-v", "--config"]).arg(&self.file);
        let daemon = Daemon::start(command);
        eventually("it is rolled out", DEFAULT_TIMEOUT, || {
            if self.is_done("app:1") { Ok(()) } else { Err("it is not") }
        });
        daemon
    }

    fn change(&self, annotations: &str) {
        let (kind, name) = self.workload;
        self.repo.change("it.yaml", &yaml::workload(kind, name, 2, "app:2", annotations));
    }

    fn has(&self, image: &str) -> bool {
        self.value("/spec/template/spec/containers/0/image") == image
    }

    fn value(&self, pointer: &str) -> serde_json::Value {
        let (kind, name) = self.workload;
        self.site.api.value(&at(kind, &self.namespace, name), pointer)
    }

    fn is_done(&self, image: &str) -> bool {
        self.has(image)
            && self.value("/status/observedGeneration") == self.value("/metadata/generation")
            && self.value("/status/updatedReplicas") == 2
            && self.value("/status/readyReplicas") == 2
            && self.value("/status/replicas") == 2
    }
}

#[test]
fn the_claim_of_a_daemon_that_is_gone_holds_nobody_up_for_ever_with_the_roles_that_are_printed() {
    let site = TestNamespace::new("rights-claims");
    let gone = ClaimingDaemon::new(&site, "gone", ("StatefulSet", "db")).granted();
    let stays = ClaimingDaemon::new(&site, "stays", ("Deployment", "web")).granted();
    let (mut first, second) = (gone.start(), stays.start());
    site.await_free_budget();
    let window = stays.site.window();
    gone.change("{controlplane/ready-delay: 5s}");
    until("it rolls", || gone.has("app:2"));
    first.kill();
    stays.change("{}");
    second
        .says(&["Deployment rights-claims-stays/web", "are rolling out: StatefulSet rights-claims-gone/db"]);
    let change = || if stays.has("app:2") { Ok(()) } else { Err(second.log()) };
    eventually("the other one rolls", RECLAIMED, change);
    let forbidden: Vec<_> = window.calls().into_iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

#[test]
fn who_may_not_look_at_what_another_daemon_has_claimed_is_informed() {
    let site = TestNamespace::new("claims-hidden");
    let gone = ClaimingDaemon::new(&site, "gone", ("StatefulSet", "db")).granted();
    let stays = ClaimingDaemon::new(&site, "stays", ("Deployment", "web")).granted();
    let (mut first, second) = (gone.start(), stays.start());
    site.await_free_budget();
    // As printed by an older version.
    let role = format!(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/rhumb:{}:{}",
        stays.site.system(),
        stays.namespace
    );
    let mut rules = site.api.value(&role, "/rules").as_array().unwrap().clone();
    let count = rules.len();
    rules.retain(|rule| !rule["resources"].as_array().unwrap().contains(&json!("statefulsets")));
    assert_eq!(rules.len(), count - 1, "{rules:#?}");
    site.api.merge(&role, "setup", &json!({"rules": rules}));
    stays.check_says("missing the right to list statefulsets.apps in the whole cluster");
    gone.change("{controlplane/ready-delay: 5s}");
    until("it rolls", || gone.has("app:2"));
    first.kill();
    stays.change("{}");
    let expected =
        ["not known whether StatefulSet claims-hidden-gone/db is still rolling out", "cannot list"];
    second.says(&[&["WARN", "the claim of another daemon counts"], &expected[1..]].concat());
    second.says(&[&["Deployment claims-hidden-stays/web"], &expected[..]].concat());
    eventually("it is reported why", DEFAULT_TIMEOUT, || {
        let mut command = stays.site.bare_command();
        command.args(["why", "Deployment/web", "-n", &stays.namespace, "--source", &stays.namespace]);
        let why = run(command);
        if expected.iter().all(|text| why.stdout.contains(text)) { Ok(()) } else { Err(why.all()) }
    });
}

#[test]
fn the_claim_of_a_daemon_that_is_gone_counts_as_long_as_its_workload_rolls() {
    let site = TestNamespace::new("claims-long");
    let gone = ClaimingDaemon::new(&site, "gone", ("Deployment", "db"));
    let stays = ClaimingDaemon::new(&site, "stays", ("Deployment", "web"));
    let (mut first, second) = (gone.start(), stays.start());
    site.await_free_budget();
    // Longer than a claim counts whose workload rests.
    gone.change("{controlplane/ready-delay: 75s}");
    until("it rolls", || gone.has("app:2"));
    first.kill();
    stays.change("{}");
    second.says(&["Deployment claims-long-stays/web", "are rolling out: Deployment claims-long-gone/db"]);
    let done = || if gone.is_done("app:2") { Ok(()) } else { Err(gone.value("/status").to_string()) };
    eventually("the first one is rolled out", RECLAIMED, done);
    assert!(!stays.has("app:2"), "both rolled at once, and one may: {}", second.log());
}
