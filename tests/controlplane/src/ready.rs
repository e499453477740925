//! The readiness of each part.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::Error;
use crate::flags::Ports;
use crate::http::{Answer, Client, client_tls};
use crate::logs;
use crate::nodes;
use crate::part::Part;
use crate::pki::Pair;
use crate::supervisor::{Process, Supervisor};

/// The time limit of a part; it takes about 3 s on a quiet machine, more on one that is building at
/// the same time.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);
/// The polling interval.
const PAUSE: Duration = Duration::from_millis(15);
/// The API server's gauge of the requests that it executes.
const EXECUTING: &str = "apiserver_flowcontrol_current_executing_requests{";
/// The flows of the controllers, the scheduler and their service accounts begin so.
const CONTROLLERS: &str = "flow_schema=\"kube-";

/// The parts' addresses.
pub(crate) struct Probes {
    etcd: Client,
    pub(crate) apiserver: Client,
    controller_manager: Client,
    scheduler: Client,
    real_nodes: usize,
}

impl Probes {
    pub(crate) fn new(ports: &Ports, ca: &str, own: &Pair, real_nodes: usize) -> Result<Self, Error> {
        let trusting = client_tls(ca, None)?;
        Ok(Self {
            etcd: Client::plain(ports.etcd.number()),
            apiserver: Client::tls(ports.apiserver.number(), client_tls(ca, Some(own))?),
            controller_manager: Client::tls(ports.controller_manager.number(), trusting.clone()),
            scheduler: Client::tls(ports.scheduler.number(), trusting),
            real_nodes,
        })
    }

    /// Asks a part whether it is ready; `Err` says what it answered instead.
    pub(crate) fn ask(&self, part: Part) -> Result<(), String> {
        match part {
            Part::Etcd => expect(self.etcd.get("/health"), "\"health\":\"true\""),
            Part::Apiserver => expect(self.apiserver.get("/readyz"), "ok"),
            Part::ControllerManager => expect(self.controller_manager.get("/healthz"), "ok"),
            Part::Scheduler => expect(self.scheduler.get("/healthz"), "ok"),
            Part::Kwok => self.nodes_are_kept(&self.nodes(NodeKind::Played)?),
            Part::RealNodes => self.real_nodes_are_there(),
        }
    }

    /// Checks that the API server executes no request of the controllers.
    pub(crate) fn controllers_are_answered(&self) -> Result<(), String> {
        let answer = self.apiserver.get("/metrics").map_err(|error| error.to_string())?;
        let is_theirs = |line: &&str| line.starts_with(EXECUTING) && line.contains(CONTROLLERS);
        let executing = answer.body.lines().filter(is_theirs).find(|line| !line.ends_with("} 0"));
        executing.map_or(Ok(()), |line| Err(line.to_owned()))
    }

    /// Checks that the real nodes have registered themselves.
    fn real_nodes_are_there(&self) -> Result<(), String> {
        let nodes = self.nodes(NodeKind::Real)?;
        if nodes.len() != self.real_nodes {
            return Err(format!("{} of {} nodes are registered", nodes.len(), self.real_nodes));
        }
        self.nodes_are_kept(&nodes)
    }

    fn nodes(&self, kind: NodeKind) -> Result<Vec<Value>, String> {
        let all = self.list("/api/v1/nodes")?;
        let is_real = |node: &Value| node["metadata"]["labels"][nodes::LABEL] == "real";
        Ok(all.into_iter().filter(|node| is_real(node) == (kind == NodeKind::Real)).collect())
    }

    /// Checks that every node has a Lease that somebody renews, is Ready, and takes pods.
    fn nodes_are_kept(&self, nodes: &[Value]) -> Result<(), String> {
        let leases = self.list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")?;
        for node in nodes {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            if !leases.iter().any(|lease| lease["metadata"]["name"] == name) {
                return Err(format!("node {name} has no Lease"));
            }
            let conditions = node["status"]["conditions"].as_array();
            let ready = json!({"type": "Ready", "status": "True"});
            let is_ready = |condition: &Value| {
                condition["type"] == ready["type"] && condition["status"] == ready["status"]
            };
            if !conditions.is_some_and(|conditions| conditions.iter().any(is_ready)) {
                return Err(format!("node {name} is not Ready"));
            }
            if node["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty()) {
                return Err(format!("node {name} is tainted"));
            }
        }
        Ok(())
    }

    fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let list = self.apiserver.call("GET", path, None).map_err(|error| error.to_string())?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    Played,
    Real,
}

fn expect(answer: std::io::Result<Answer>, text: &str) -> Result<(), String> {
    match answer {
        Ok(answer) if answer.status == 200 && answer.body.contains(text) => Ok(()),
        Ok(answer) => {
            let failing: Vec<_> = answer.body.lines().filter(|line| line.starts_with("[-]")).collect();
            let body = if failing.is_empty() { answer.body.trim().to_owned() } else { failing.join(", ") };
            Err(format!("{} {body}", answer.status))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Waits until a part fulfils a condition, as long as it lives.
pub(crate) fn wait(
    supervisor: &Supervisor,
    part: Part,
    process: &Process,
    what: &'static str,
    mut probe: impl FnMut() -> Result<(), String>,
) -> Result<(), Error> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let last = match probe() {
            Ok(()) => return Ok(()),
            Err(last) => last,
        };
        let log = || logs::tail(&supervisor.log(part));
        if !process.is_alive() {
            return Err(Error::Ended { part: part.name(), log: log() });
        }
        if Instant::now() >= deadline {
            return Err(Error::NotReady { part: part.name(), what, limit: LIMIT, last, log: log() });
        }
        thread::sleep(PAUSE);
    }
}
