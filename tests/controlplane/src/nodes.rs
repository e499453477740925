//! Nodes with a kubelet and containers, in private namespaces.
//!
//! The program `real-node` (in `node/`) runs them as one part of the cluster. It forwards between
//! the loopback outside, where the API server is, and the network inside, where pods are.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::{Context as _, Error};
use crate::flags::Layout;
use crate::kubeconfig::{self, Credential};
use crate::packages;
use crate::part::Program;
use crate::pki::Pki;
use crate::programs::{ProgramSet, Programs};

/// The label of every real node is this, with the value `real`.
pub(crate) const LABEL: &str = "controlplane/node";

/// The annotation of the nodes that KWOK plays beside real ones.
pub(crate) const PLAYED: &str = "kwok.x-k8s.io/node";

/// The address of the first real node, where pods find the API server.
pub(crate) const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 245, 0, 1);

/// The time limit of a connection to a pod.
const LIMIT: Duration = Duration::from_secs(60);

/// The hierarchies of control groups that a node is made of.
const HIERARCHIES: [&str; 6] = ["cpu", "cpuset", "devices", "freezer", "memory", "pids"];

/// The capabilities needed, by number: `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
const CAPABILITIES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Returns the reason for which this machine runs no real node, if there is one.
pub fn find_obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root runs real nodes".to_owned());
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let rights = u64::from_str_radix(rights.trim(), 16).unwrap_or_default();
    if let Some((_, name)) = CAPABILITIES.iter().find(|(number, _)| rights & (1 << number) == 0) {
        return Some(format!("root has no {name} here"));
    }
    let mounts = read("/proc/mounts");
    if let Some(name) = HIERARCHIES.iter().find(|name| !has_hierarchy(&mounts, name)) {
        return Some(format!("no writable hierarchy of control groups (version 1) for {name}"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let missing = ["ip", "apt-get", "dpkg-deb"].into_iter().find(|name| !is_there(name));
    missing.map(|name| format!("there is no {name}"))
}

fn has_hierarchy(mounts: &str, controller: &str) -> bool {
    mounts.lines().any(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, "cgroup", options, ..] = fields[..] else { return false };
        options.split(',').any(|option| option == controller) && options.starts_with("rw")
    })
}

/// The programs of real nodes.
#[derive(Debug, Clone)]
pub(crate) struct NodePrograms {
    built: Programs,
    unpacked: PathBuf,
}

impl NodePrograms {
    /// Finds them; builds and downloads what nobody did yet.
    pub(crate) fn find() -> Result<Self, Error> {
        if let Some(reason) = find_obstacle() {
            return Err(Error::NoRealNodes(reason));
        }
        Ok(Self { built: Programs::cached(ProgramSet::REAL_NODES)?, unpacked: packages::unpacked()? })
    }

    /// Returns the program that runs the nodes.
    pub(crate) fn program(&self) -> PathBuf {
        self.built.path(Program::RealNode)
    }

    /// Writes everything that the nodes read.
    pub(crate) fn write_files(&self, layout: &Layout, pki: &Pki, node: NodeFiles<'_>) -> Result<(), Error> {
        let addresses: Vec<Ipv4Addr> = (0..node.count).map(address).collect();
        let serving = pki.kubelet(&addresses)?;
        let client = pki.user("kube-apiserver-kubelet-client", &[])?;
        for (name, text) in [
            ("pki/kubelet.crt", &serving.certificate),
            ("pki/kubelet.key", &serving.key),
            ("pki/kubelet-client.crt", &client.certificate),
            ("pki/kubelet-client.key", &client.key),
        ] {
            layout.write(name, text)?;
        }
        let mut users = vec![("kube-proxy".to_owned(), "system:kube-proxy".to_owned(), None)];
        users.extend((0..node.count).map(|index| {
            let name = name(index);
            (name.clone(), format!("system:node:{name}"), Some("system:nodes"))
        }));
        for (file, user, group) in users {
            let pair = pki.user(&user, group.as_slice())?;
            let text = kubeconfig::text(node.url, &pki.ca_pem(), &user, &Credential::Certificate(&pair));
            layout.write(&format!("run/{file}.kubeconfig"), &text)?;
        }
        let egress = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": {
                "proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": layout.inward()}},
            }}],
        });
        layout.write("egress.json", &egress.to_string())?;
        let settings = json!({
            "directory": layout.root(), "programs": self.built.directory(), "packages": self.unpacked,
            "port": node.port, "nodes": node.count,
        });
        layout.write("real-node.json", &settings.to_string())?;
        Ok(())
    }
}

/// The nodes of one cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeFiles<'a> {
    pub(crate) count: usize,
    /// The API server.
    pub(crate) url: &'a str,
    pub(crate) port: u16,
}

fn name(index: usize) -> String {
    format!("real-{}", index + 1)
}

fn address(index: usize) -> Ipv4Addr {
    match u8::try_from(index) {
        Ok(0) | Err(_) => FIRST_ADDRESS,
        Ok(index) => Ipv4Addr::new(10, 246, 0, index),
    }
}

impl Cluster {
    /// Connects with an address of the network that real nodes, their pods and the services share:
    /// `10.96.0.1:443`.
    pub fn connect_inside(&self, address: &str) -> Result<UnixStream, Error> {
        let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let mut stream = self.send_inside(&request)?;
        let answer = read_head(&mut stream).context(|| format!("connect with {address}"))?;
        if answer.starts_with("HTTP/1.1 200 ") {
            return Ok(stream);
        }
        Err(Error::Api { request: format!("CONNECT {address}"), answer: answer.trim().to_owned() })
    }

    /// Sends a signal to a process of the real nodes: `STOP`, `CONT` or `KILL` to `kubelet-0`,
    /// `containerd-0` or `kube-proxy`. One that is killed is started again.
    pub fn signal_inside(&self, process: &str, signal: &str) -> Result<(), Error> {
        let path = format!("/signal/{process}/{signal}");
        let request = format!("POST {path} HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\n\r\n");
        let mut stream = self.send_inside(&request)?;
        let answer = read_head(&mut stream).context(|| format!("signal {process}"))?;
        if answer.starts_with("HTTP/1.1 204 ") {
            return Ok(());
        }
        Err(Error::Api { request: format!("POST {path}"), answer: answer.trim().to_owned() })
    }

    /// Lets pods reach a server on this machine's loopback, and returns the address by which they do.
    /// There is one such server at a time.
    pub fn expose_to_pods(&self, port: u16) -> Result<String, Error> {
        self.layout.write("run/exposed.port", &port.to_string())?;
        Ok(format!("{FIRST_ADDRESS}:443"))
    }

    /// Gives the registry of the nodes an image of this name, under every tag. It is one layer, an
    /// archive of `tar`, and has these settings: the `config` of an image of OCI.
    pub fn add_image(&self, name: &str, layer: &Path, settings: &Value) -> Result<(), Error> {
        let copy = self.layout.root().join("images").join(name).join("layer.tar");
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(copy.parent().unwrap_or(&copy))?;
            fs::copy(layer, &copy).map(drop)
        };
        write().context(|| format!("copy {} to {}", layer.display(), copy.display()))?;
        // The registry takes an image for whole once these are there.
        self.layout.write(&format!("images/{name}/settings.json"), &settings.to_string()).map(drop)
    }

    fn send_inside(&self, request: &str) -> Result<UnixStream, Error> {
        let path = self.layout.inward();
        let open = || -> std::io::Result<UnixStream> {
            let mut stream = UnixStream::connect(&path)?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.set_write_timeout(Some(LIMIT))?;
            stream.write_all(request.as_bytes())?;
            Ok(stream)
        };
        open().context(|| format!("reach the nodes by {}", path.display()))
    }
}

/// Reads an answer up to its body, and nothing of what comes after it.
fn read_head(stream: &mut UnixStream) -> std::io::Result<String> {
    // One byte at a time: a reader with a buffer would keep the first bytes of the peer.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            break;
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /a cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup /b cgroup ro,relatime,memory 0 0\n";
        for (controller, expected) in [("cpu", true), ("cpuset", false), ("memory", false)] {
            assert_eq!(has_hierarchy(mounts, controller), expected, "{controller}");
        }
    }
}
