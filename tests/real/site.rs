//! One cluster with a real node, and a namespace on it for each test.

use std::io::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use controlplane::{Cluster, find_real_node_obstacle};
use serde_json::{Value, json};

use crate::support::{Daemon, Repo, TestNamespace, eventually};
use crate::workload::Workload;

/// Real pods start and end in seconds, on a busy machine in many.
pub(crate) const SLOW_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) const BUDGET: &str =
    "budget: {maxWorkloads: 2, maxUnavailable: 2, startsPerMinute: 1000, soak: 0s, deadline: 90s}";

const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// Returns the cluster that the tests share; none where it cannot be, which it says.
fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
    let found = CLUSTER.get_or_init(|| match find_real_node_obstacle() {
        Some(reason) => Err(reason),
        None => Ok(Cluster::builder().nodes(0).real_nodes(1).audit().start().unwrap()),
    });
    // Past the harness, which would keep it to itself.
    found.as_ref().map_err(|why| writeln!(std::io::stderr(), "SKIPPED: no real node: {why}")).ok()
}

/// A namespace with a repository and a daemon that follows it.
pub(crate) struct RealSite {
    pub(crate) site: TestNamespace<'static>,
    pub(crate) repo: Repo,
    _daemon: Daemon,
}

impl RealSite {
    /// Makes a site whose repository has these files. None where no real node can be.
    pub(crate) fn new(name: &str, files: &[(String, String)]) -> Option<Self> {
        let site = TestNamespace::on(cluster()?, name);
        let repo = Repo::new(files);
        let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
        Some(Self { site, repo, _daemon: daemon })
    }

    /// Commits these files together.
    pub(crate) fn push(&self, files: &[(String, String)], subject: &str) {
        for (name, text) in files {
            self.repo.write(name, text);
        }
        self.repo.commit(subject);
    }

    /// Waits until a workload has an image and all its pods run it and are Ready. No other pod of it
    /// may be left, not even one that ends.
    #[track_caller]
    pub(crate) fn await_image(&self, workload: &Workload, image: &str) {
        let name = workload.name();
        eventually(&format!("{name} runs {image}"), SLOW_TIMEOUT, || {
            let wanted = self.site.value(workload.kind(), name, IMAGE);
            let pods = self.pods(name);
            let is_done = wanted == json!(image)
                && pods.len() == workload.pods()
                && pods.iter().all(|pod| is_ready(pod) && pod["spec"]["containers"][0]["image"] == wanted);
            if is_done { Ok(()) } else { Err(format!("it wants {wanted}: {}", summary(&pods))) }
        });
    }

    pub(crate) fn pods(&self, name: &str) -> Vec<Value> {
        let all = self.site.api.list(&self.site.at("Pod", ""));
        all.into_iter().filter(|pod| pod["metadata"]["labels"]["app"] == name).collect()
    }

    /// Waits until the inventory names something as rejected, and returns the records.
    #[track_caller]
    pub(crate) fn await_rejection(&self, texts: &[&str]) -> String {
        eventually(&format!("it is rejected: {texts:?}"), SLOW_TIMEOUT, || {
            let records = self.site.records();
            if texts.iter().all(|text| records.contains(text)) { Ok(records) } else { Err(records) }
        })
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

fn summary(pods: &[Value]) -> String {
    let each = |pod: &Value| {
        let status = &pod["status"];
        format!("{} {} {}", pod["metadata"]["name"], status["phase"], status["containerStatuses"][0]["state"])
    };
    pods.iter().map(each).collect::<Vec<_>>().join("; ")
}
