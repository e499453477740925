//! The arguments of each part, and the files that they name.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::audit;
use crate::builder::{Audit, Builder};
use crate::error::{Context as _, Error};
use crate::kubeconfig::{self, Credential};
use crate::nodes;
use crate::part::Part;
use crate::pki::{FRONT_PROXY, MASTERS, Pki};
use crate::ports::Port;

/// The behaviour of nodes, pods and volumes.
const STAGES: [(&str, &str); 4] = [
    ("node.yaml", include_str!("../stages/node.yaml")),
    ("pod.yaml", include_str!("../stages/pod.yaml")),
    ("volume.yaml", include_str!("../stages/volume.yaml")),
    ("service.yaml", include_str!("../stages/service.yaml")),
];

/// The ports of one cluster.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: Port,
    pub(crate) etcd_peer: Port,
    pub(crate) apiserver: Port,
    pub(crate) controller_manager: Port,
    pub(crate) scheduler: Port,
}

impl Ports {
    pub(crate) fn reserve() -> Result<Self, Error> {
        Ok(Self {
            etcd: Port::reserve()?,
            etcd_peer: Port::reserve()?,
            apiserver: Port::reserve()?,
            controller_manager: Port::reserve()?,
            scheduler: Port::reserve()?,
        })
    }
}

/// The files of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn file(&self, name: &str) -> String {
        self.root.join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.root.join("audit.log")
    }

    /// Returns the socket that leads to what runs on real nodes.
    pub(crate) fn inward(&self) -> PathBuf {
        self.root.join("run/inward.sock")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Writes a file that only this user may read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.root.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).context(|| format!("create {}", folder.display()))?;
        }
        fs::write(&path, text).context(|| format!("write {}", path.display()))?;
        let private = Permissions::from_mode(0o600);
        fs::set_permissions(&path, private).context(|| format!("protect {}", path.display()))?;
        Ok(path)
    }
}

/// Writes every file that the parts read.
pub(crate) fn write_files(layout: &Layout, pki: &Pki, url: &str, audit: Audit) -> Result<(), Error> {
    let server = pki.server()?;
    let front = pki.front_proxy()?;
    let (account_key, account_public) = pki.account_keys();
    for (name, text) in [
        ("pki/ca.crt", &pki.ca_pem()),
        ("pki/front-ca.crt", &pki.front_ca_pem()),
        ("pki/server.crt", &server.certificate),
        ("pki/server.key", &server.key),
        ("pki/front.crt", &front.certificate),
        ("pki/front.key", &front.key),
        ("pki/accounts.key", &account_key),
        ("pki/accounts.pub", &account_public),
    ] {
        layout.write(name, text)?;
    }
    for (file, user, groups) in [
        ("kubeconfig", "admin", &[MASTERS][..]),
        ("run/kube-controller-manager.kubeconfig", "system:kube-controller-manager", &[]),
        ("run/kube-scheduler.kubeconfig", "system:kube-scheduler", &[]),
        ("run/kwok.kubeconfig", "kwok", &[MASTERS]),
    ] {
        let pair = pki.user(user, groups)?;
        layout.write(file, &kubeconfig::text(url, &pki.ca_pem(), user, &Credential::Certificate(&pair)))?;
    }
    for (name, text) in STAGES {
        layout.write(&format!("stages/{name}"), text)?;
    }
    if let Some(policy) = audit::policy(audit) {
        layout.write("audit-policy.json", &policy)?;
    }
    fs::create_dir_all(layout.home()).context(|| format!("create {}", layout.home().display()))
}

/// Returns the arguments of a part.
pub(crate) fn arguments(part: Part, layout: &Layout, ports: &Ports, shape: &Builder) -> Vec<String> {
    let has_real_nodes = shape.real_nodes > 0;
    match part {
        Part::Etcd => etcd(layout, ports),
        Part::Apiserver if has_real_nodes => {
            let mut arguments = apiserver(layout, ports, shape.audit);
            arguments.extend(kubelet_client(layout));
            arguments
        }
        Part::Apiserver => {
            let mut arguments = apiserver(layout, ports, shape.audit);
            arguments.push("--authorization-mode=RBAC".to_owned());
            arguments
        }
        Part::ControllerManager if has_real_nodes => controller_manager(layout, ports),
        Part::ControllerManager => {
            let mut arguments = controller_manager(layout, ports);
            // Nodes outlive a server that is down or a test that is held up for minutes; else all
            // pods would be unready then.
            arguments.push("--node-monitor-grace-period=1h".to_owned());
            arguments
        }
        Part::Scheduler => scheduler(layout, ports),
        Part::Kwok if has_real_nodes => {
            let mut arguments = kwok(layout);
            arguments.push("--manage-all-nodes=false".to_owned());
            arguments.push(format!("--manage-nodes-with-annotation-selector={}=fake", nodes::PLAYED));
            arguments
        }
        Part::Kwok => {
            let mut arguments = kwok(layout);
            arguments.push("--manage-all-nodes=true".to_owned());
            arguments
        }
        Part::RealNodes => vec!["run".to_owned(), layout.file("real-node.json")],
    }
}

/// Returns the flags by which the API server lets kubelets in and reaches them.
fn kubelet_client(layout: &Layout) -> Vec<String> {
    vec![
        "--authorization-mode=Node,RBAC".to_owned(),
        format!("--kubelet-certificate-authority={}", layout.file("pki/ca.crt")),
        format!("--kubelet-client-certificate={}", layout.file("pki/kubelet-client.crt")),
        format!("--kubelet-client-key={}", layout.file("pki/kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--egress-selector-config-file={}", layout.file("egress.json")),
    ]
}

fn etcd(layout: &Layout, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd.number());
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer.number());
    vec![
        "--name=cp".to_owned(),
        format!("--data-dir={}", layout.file("etcd")),
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=cp={peer}"),
        // A lone member need not wait for others before it leads.
        "--heartbeat-interval=50".to_owned(),
        "--election-timeout=250".to_owned(),
        "--quota-backend-bytes=4294967296".to_owned(),
        "--auto-compaction-retention=5m".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver(layout: &Layout, ports: &Ports, audit: Audit) -> Vec<String> {
    let file = |name: &str| layout.file(name);
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd.number()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.apiserver.number()),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        format!("--tls-cert-file={}", file("pki/server.crt")),
        format!("--tls-private-key-file={}", file("pki/server.key")),
        format!("--client-ca-file={}", file("pki/ca.crt")),
        "--anonymous-auth=false".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("pki/accounts.pub")),
        format!("--service-account-signing-key-file={}", file("pki/accounts.key")),
        format!("--requestheader-client-ca-file={}", file("pki/front-ca.crt")),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", file("pki/front.crt")),
        format!("--proxy-client-key-file={}", file("pki/front.key")),
        "--allow-privileged=true".to_owned(),
        "--profiling=false".to_owned(),
        "--shutdown-delay-duration=0s".to_owned(),
    ];
    if audit != Audit::Off {
        arguments.extend([
            format!("--audit-policy-file={}", file("audit-policy.json")),
            format!("--audit-log-path={}", layout.audit_log().to_string_lossy()),
            "--audit-log-mode=blocking".to_owned(),
            // The reader follows one file.
            "--audit-log-maxsize=0".to_owned(),
        ]);
    }
    arguments
}

fn controller_manager(layout: &Layout, ports: &Ports) -> Vec<String> {
    let mut arguments = serving(layout, ports.controller_manager.number());
    arguments.extend(identity(layout, Part::ControllerManager));
    arguments.extend([
        format!("--service-account-private-key-file={}", layout.file("pki/accounts.key")),
        format!("--root-ca-file={}", layout.file("pki/ca.crt")),
        // Without it the controllers have almost no rights, and only their log shows it.
        "--use-service-account-credentials=true".to_owned(),
        "--controllers=*,-bootstrap-signer-controller,-token-cleaner-controller".to_owned(),
    ]);
    arguments
}

fn scheduler(layout: &Layout, ports: &Ports) -> Vec<String> {
    let mut arguments = serving(layout, ports.scheduler.number());
    arguments.extend(identity(layout, Part::Scheduler));
    arguments
}

/// Returns the listening flags of the controller manager and the scheduler; their own certificates
/// would take time to make.
fn serving(layout: &Layout, port: u16) -> Vec<String> {
    vec![
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", layout.file("pki/server.crt")),
        format!("--tls-private-key-file={}", layout.file("pki/server.key")),
        "--profiling=false".to_owned(),
    ]
}

/// Returns the flags by which the controller manager and the scheduler reach the API server.
fn identity(layout: &Layout, part: Part) -> Vec<String> {
    let kubeconfig = layout.file(&format!("run/{}.kubeconfig", part.name()));
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".to_owned(),
        // The default limits are for production, and slow down every rollout of more than a few
        // pods.
        "--kube-api-qps=2000".to_owned(),
        "--kube-api-burst=4000".to_owned(),
    ]
}

fn kwok(layout: &Layout) -> Vec<String> {
    let mut arguments = vec![
        format!("--kubeconfig={}", layout.file("run/kwok.kubeconfig")),
        "--node-lease-duration-seconds=40".to_owned(),
        "--node-ip=127.0.0.1".to_owned(),
        "--cidr=10.244.0.0/16".to_owned(),
    ];
    arguments.extend(STAGES.map(|(name, _)| format!("--config={}", layout.file(&format!("stages/{name}")))));
    arguments
}
