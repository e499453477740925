//! One control plane: starting it, its users, its end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::audit::{self, AuditEvent};
use crate::builder::{Audit, Builder};
use crate::error::{Context as _, Error};
use crate::flags::{self, Layout, Ports};
use crate::kubeconfig::{self, Credential};
use crate::nodes::{self, NodeFiles, NodePrograms};
use crate::part::{Part, Program};
use crate::pki::{MASTERS, Pki};
use crate::programs::Programs;
use crate::ready::{self, Probes};
use crate::supervisor::{DirectoryFate, Process, Supervisor};

/// The variable that keeps the cluster's directory (logs, certificates, data) after its end.
const KEEP: &str = "RHUMB_CONTROLPLANE_KEEP";

/// The time after which the API server gives up a request, whoever sent it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of starts when somebody else took one of the ports.
const ATTEMPTS: u32 = 4;

/// A running control plane; dropping it kills all its processes and removes its directory.
///
/// It may be shared by threads, and left in a static: its processes also end when this process
/// does.
pub struct Cluster {
    shape: Builder,
    programs: Programs,
    node_programs: Option<NodePrograms>,
    pub(crate) layout: Layout,
    pub(crate) ports: Ports,
    pub(crate) pki: Pki,
    probes: Probes,
    url: String,
    kubeconfig: PathBuf,
    processes: Mutex<BTreeMap<Part, Process>>,
    /// The parts that [`Self::pause`] was called for.
    paused: Mutex<BTreeSet<Part>>,
    audit: Mutex<audit::Reader>,
    users: Mutex<()>,
    supervisor: Supervisor,
    /// `None` if it is kept.
    directory: Option<TempDir>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("url", &self.url).field("dir", &self.dir()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts a whole cluster with 3 nodes and waits until it is ready for use.
    pub fn start() -> Result<Self, Error> {
        Self::builder().start()
    }

    /// Describes a cluster to start.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn start_with(shape: &Builder) -> Result<Self, Error> {
        let played = shape.parts.iter().filter(|part| **part != Part::RealNodes);
        let needed: Vec<Program> = played.map(|part| part.program()).collect();
        let programs = Programs::find(&needed)?;
        let nodes = (shape.real_nodes > 0).then(NodePrograms::find).transpose()?;
        for _ in 1..ATTEMPTS {
            match Self::try_start(shape, &programs, nodes.as_ref()) {
                Err(error) if error.is_bad_luck() => {}
                outcome => return outcome,
            }
        }
        Self::try_start(shape, &programs, nodes.as_ref())
    }

    fn try_start(shape: &Builder, programs: &Programs, nodes: Option<&NodePrograms>) -> Result<Self, Error> {
        let (root, directory, afterwards) = new_directory()?;
        // First of all, so that the directory goes even if this process is killed in the next line.
        let supervisor = Supervisor::start(&root, afterwards)?;
        let layout = Layout::new(root);
        let ports = Ports::reserve()?;
        let pki = Pki::new()?;
        let url = format!("https://127.0.0.1:{}", ports.apiserver.number());
        flags::write_files(&layout, &pki, &url, shape.audit)?;
        if let Some(nodes) = nodes {
            let files = NodeFiles { count: shape.real_nodes, url: &url, port: ports.apiserver.number() };
            nodes.write_files(&layout, &pki, files)?;
            supervisor
                .run_at_end(&nodes.program(), &["end".to_owned(), layout.root().display().to_string()])?;
        }
        let own = pki.user(audit::OWN_USER, &[MASTERS])?;
        let cluster = Self {
            probes: Probes::new(&ports, &pki.ca_pem(), &own, shape.real_nodes)?,
            supervisor,
            audit: Mutex::new(audit::Reader::new(layout.audit_log())),
            shape: shape.clone(),
            programs: programs.clone(),
            node_programs: nodes.cloned(),
            processes: Mutex::default(),
            paused: Mutex::default(),
            kubeconfig: layout.kubeconfig(),
            users: Mutex::default(),
            layout,
            ports,
            pki,
            url,
            directory,
        };
        cluster.bring_up()?;
        Ok(cluster)
    }

    fn bring_up(&self) -> Result<(), Error> {
        for part in [Part::Etcd, Part::Apiserver] {
            self.launch(part)?;
            self.await_ready(part)?;
        }
        let others: Vec<Part> = self
            .shape
            .parts
            .iter()
            .copied()
            .filter(|part| !matches!(part, Part::Etcd | Part::Apiserver))
            .collect();
        for part in &others {
            self.launch(*part)?;
        }
        if others.contains(&Part::Kwok) {
            self.create_nodes()?;
            self.create_pod_guard()?;
            self.create_storage_class()?;
        }
        if others.contains(&Part::RealNodes) {
            self.create_apiserver_endpoint()?;
        }
        for part in &others {
            self.await_ready(*part)?;
        }
        if others.contains(&Part::ControllerManager) {
            // Without it no pod is admitted.
            self.await_that(Part::ControllerManager, "the ServiceAccount default/default exists", || {
                let path = "/api/v1/namespaces/default/serviceaccounts/default";
                self.probes.apiserver.call("GET", path, None).map(drop).map_err(|error| error.to_string())
            })?;
        }
        Ok(())
    }

    fn create_nodes(&self) -> Result<(), Error> {
        for number in 1..=self.shape.nodes {
            let name = format!("node-{number}");
            let labels = json!({
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": format!("zone-{}", (number - 1) % 3 + 1),
            });
            let annotations = json!({nodes::PLAYED: "fake"});
            let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata});
            self.probes.apiserver.call("POST", "/api/v1/nodes", Some(&node))?;
        }
        Ok(())
    }

    /// Leads the Service `kubernetes` to where real nodes have the API server.
    fn create_apiserver_endpoint(&self) -> Result<(), Error> {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [nodes::FIRST_ADDRESS], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": self.ports.apiserver.number(), "protocol": "TCP"}],
        });
        let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        self.probes.apiserver.call("POST", path, Some(&slice)).map(drop)
    }

    /// Lets KWOK delete only pods that somebody else has deleted.
    ///
    /// It deletes by name, once for each version of a deleted pod that it saw. On a busy machine it
    /// lags, and would delete the pod that was made under the same name since.
    fn create_pod_guard(&self) -> Result<(), Error> {
        let name = "only-deleted-pods-go";
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]});
        let validation = json!({
            "expression": "has(oldObject.metadata.deletionTimestamp)",
            "message": "this pod is not the one that was deleted",
        });
        let of_kwok = json!({"name": "kwok", "expression": "request.userInfo.username == 'kwok'"});
        let policy = json!({
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [of_kwok],
            "validations": [validation],
        });
        let binding = json!({"policyName": name, "validationActions": ["Deny"]});
        for (kind, resource, spec) in [
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", policy),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", binding),
        ] {
            let version = "admissionregistration.k8s.io/v1";
            let object =
                json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
            self.probes.apiserver.call("POST", &format!("/apis/{version}/{resource}"), Some(&object))?;
        }
        Ok(())
    }

    fn create_storage_class(&self) -> Result<(), Error> {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": "standard",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "controlplane",
            "reclaimPolicy": "Delete",
            "allowVolumeExpansion": true,
            "volumeBindingMode": "Immediate",
        });
        self.probes.apiserver.call("POST", "/apis/storage.k8s.io/v1/storageclasses", Some(&class)).map(drop)
    }

    /// Returns the API server's address, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the certificate of the cluster's authority.
    pub fn ca_pem(&self) -> String {
        self.pki.ca_pem()
    }

    /// Returns the cluster's directory, with `log/`, `audit.log` and the certificates; it goes when
    /// the cluster does.
    pub fn dir(&self) -> &Path {
        self.layout.root()
    }

    /// Returns the directory that has the programs: `kubectl`, `kube-apiserver` and so on.
    pub fn programs(&self) -> &Path {
        self.programs.directory()
    }

    pub(crate) fn program(&self, program: Program) -> PathBuf {
        self.programs.path(program)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.layout.home()
    }

    /// Returns the kubeconfig of the user `admin`, who may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the kubeconfig of a user of any name who may do everything; the audit log names each
    /// user.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf, Error> {
        self.user_kubeconfig(user, "masters", &[MASTERS])
    }

    /// Returns the kubeconfig of a user who may do only what RBAC objects grant to this name: at
    /// first nearly nothing.
    pub fn kubeconfig_limited(&self, user: &str) -> Result<PathBuf, Error> {
        self.user_kubeconfig(user, "limited", &[])
    }

    fn user_kubeconfig(&self, user: &str, kind: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        let _writing = lock(&self.users);
        let name = format!("users/{kind}/{}.kubeconfig", user.replace('/', "_"));
        let path = self.layout.root().join(&name);
        if path.exists() {
            return Ok(path);
        }
        let pair = self.pki.user(user, groups)?;
        let text = kubeconfig::text(&self.url, &self.pki.ca_pem(), user, &Credential::Certificate(&pair));
        self.layout.write(&name, &text)
    }

    /// Returns all requests that the API server has got, in the order in which they ended.
    ///
    /// Every request that was answered before the call is there. A watch is there from its start,
    /// once. A request that the server was killed over is there too, with stage
    /// [`Stage::Received`](crate::Stage::Received). Reads by the parts themselves are not logged,
    /// nor are the requests of this crate.
    pub fn audit(&self) -> Result<Vec<AuditEvent>, Error> {
        if self.shape.audit == Audit::Off {
            return Err(Error::Absent("an audit log"));
        }
        let mut reader = lock(&self.audit);
        if !self.is_running(Part::Apiserver) {
            reader.server_ended()?;
            return Ok(reader.events());
        }
        let mark = reader.next_mark();
        self.probes.apiserver.call("GET", &mark, None)?;
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        loop {
            match reader.is_complete(&mark)? {
                Ok(()) => return Ok(reader.events()),
                Err(missing) if Instant::now() >= deadline => {
                    return Err(Error::Api { request: "the audit log".to_owned(), answer: missing });
                }
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Returns whether a part runs; a paused one does.
    pub fn is_running(&self, part: Part) -> bool {
        lock(&self.processes).get(&part).is_some_and(Process::is_alive)
    }

    /// Returns the number of a part's process.
    pub fn pid(&self, part: Part) -> Option<u32> {
        lock(&self.processes).get(&part).filter(|process| process.is_alive()).map(Process::pid)
    }

    /// Returns the file that a part logs to.
    pub fn log(&self, part: Part) -> PathBuf {
        self.supervisor.log(part)
    }

    /// Kills a part with SIGKILL and waits until it is gone.
    ///
    /// While etcd or the API server is down, the parts that are their clients are stopped. They
    /// would back off, and then come back up to a minute later than the server, which no test wants
    /// to wait for.
    pub fn kill(&self, part: Part) -> Result<(), Error> {
        self.check(part)?;
        let mut processes = lock(&self.processes);
        self.hold_clients(&processes, part)?;
        self.supervisor.kill(part)?;
        processes.remove(&part);
        lock(&self.paused).remove(&part);
        Ok(())
    }

    /// Starts a part again that was killed, on the same port and the kept data, and waits until it
    /// is ready.
    pub fn start_part(&self, part: Part) -> Result<(), Error> {
        self.check(part)?;
        if self.is_running(part) {
            return Err(Error::Running { part: part.name() });
        }
        match part {
            Part::Apiserver if self.shape.audit != Audit::Off => lock(&self.audit).server_ended()?,
            // A new KWOK is another holder to its old Leases, and would wait until they run out.
            Part::Kwok => {
                let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
                self.probes.apiserver.call("DELETE", path, None)?;
            }
            _ => {}
        }
        self.launch(part)?;
        self.await_ready(part)?;
        self.release_clients(part)
    }

    /// Stops a part with SIGSTOP: it keeps its connections and answers nothing. Its clients are
    /// held as in [`Self::kill`].
    pub fn pause(&self, part: Part) -> Result<(), Error> {
        self.check(part)?;
        let processes = lock(&self.processes);
        self.hold_clients(&processes, part)?;
        self.supervisor.signal(part, "STOP")?;
        lock(&self.paused).insert(part);
        Ok(())
    }

    /// Lets a paused part go on.
    pub fn resume(&self, part: Part) -> Result<(), Error> {
        self.check(part)?;
        self.supervisor.signal(part, "CONT")?;
        lock(&self.paused).remove(&part);
        self.release_clients(part)
    }

    /// Stops the running clients of a server.
    fn hold_clients(&self, processes: &BTreeMap<Part, Process>, server: Part) -> Result<(), Error> {
        for client in server.clients() {
            if processes.get(client).is_some_and(Process::is_alive) {
                self.supervisor.signal(*client, "STOP")?;
            }
        }
        Ok(())
    }

    /// Lets the clients of a server go on, but for those that were paused by themselves, once all
    /// that they need is up.
    fn release_clients(&self, server: Part) -> Result<(), Error> {
        if server.clients().is_empty() || !self.is_up(Part::Etcd) || !self.is_up(Part::Apiserver) {
            return Ok(());
        }
        self.await_ready(Part::Apiserver)?;
        for client in server.clients() {
            if self.is_up(*client) {
                self.supervisor.signal(*client, "CONT")?;
            }
        }
        Ok(())
    }

    /// Returns whether a part runs and was not paused.
    fn is_up(&self, part: Part) -> bool {
        self.is_running(part) && !lock(&self.paused).contains(&part)
    }

    /// Kills the API server and waits until it is gone.
    ///
    /// The controllers have the answers to all that they had begun. One whose answer is lost makes or
    /// deletes a pod once more, and no budget of anybody else covers that.
    pub fn kill_apiserver(&self) -> Result<(), Error> {
        let part = Part::Apiserver;
        if self.is_up(part) {
            self.hold_clients(&lock(&self.processes), part)?;
            self.await_that(part, "the controllers are answered", || self.probes.controllers_are_answered())?;
        }
        self.kill(part)
    }

    /// Starts the API server again and waits until it is ready.
    pub fn start_apiserver(&self) -> Result<(), Error> {
        self.start_part(Part::Apiserver)
    }

    fn check(&self, part: Part) -> Result<(), Error> {
        if self.shape.parts.contains(&part) { Ok(()) } else { Err(Error::Absent(part.name())) }
    }

    fn launch(&self, part: Part) -> Result<(), Error> {
        let arguments = flags::arguments(part, &self.layout, &self.ports, &self.shape);
        let program = match (&self.node_programs, part) {
            (Some(programs), Part::RealNodes) => programs.program(),
            _ => self.program(part.program()),
        };
        let process = self.supervisor.spawn(part, &program, &arguments)?;
        lock(&self.processes).insert(part, process);
        Ok(())
    }

    fn await_ready(&self, part: Part) -> Result<(), Error> {
        self.await_that(part, "it is ready", || self.probes.ask(part))
    }

    fn await_that(
        &self,
        part: Part,
        what: &'static str,
        probe: impl FnMut() -> Result<(), String>,
    ) -> Result<(), Error> {
        let process = lock(&self.processes).get(&part).cloned();
        let process = process.ok_or(Error::NotRunning { part: part.name() })?;
        ready::wait(&self.supervisor, part, &process, what, probe)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The parts must be gone before their directory is.
        self.supervisor.stop();
        drop(self.directory.take());
    }
}

/// Makes the cluster's directory: in memory if there is room, since etcd and the logs are thrown
/// away anyway.
fn new_directory() -> Result<(PathBuf, Option<TempDir>, DirectoryFate), Error> {
    let base = base_directory();
    let directory = tempfile::Builder::new()
        .prefix("controlplane-")
        .tempdir_in(&base)
        .context(|| format!("create a directory in {}", base.display()))?;
    if std::env::var_os(KEEP).is_some_and(|value| value == "1") {
        let path = directory.keep();
        crate::programs::progress(&format!("{KEEP}=1: {} is kept", path.display()));
        return Ok((path, None, DirectoryFate::Keep));
    }
    Ok((directory.path().to_owned(), Some(directory), DirectoryFate::Remove))
}

fn base_directory() -> PathBuf {
    /// Enough for etcd's files and the logs of a large test; containers often have only 64 MiB.
    const ROOM: u64 = 1 << 30;
    let memory = Path::new("/dev/shm");
    let has_room =
        rustix::fs::statvfs(memory).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) >= ROOM);
    if has_room && rustix::fs::access(memory, rustix::fs::Access::WRITE_OK).is_ok() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
