//! A proxy before the API server that spoils what goes through it.

mod connection;
mod ledger;
mod rule;
mod serve;
#[cfg(test)]
mod tests;
mod token;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::ServerConfig;
use tokio::sync::oneshot;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub use self::ledger::{RuleId, RuleUsage};
pub use self::rule::{Answer, Fault, Requests, ResponseCut, Rule};

use self::ledger::ProxyState;
use self::serve::Gate;
use self::token::{ProxyUser, UserRights};
use crate::cluster::Cluster;
use crate::error::{Context as _, Error};
use crate::flags::Layout;
use crate::http::{client_tls, identity};
use crate::kubeconfig::{self, Credential};

/// A TLS proxy before one cluster's API server; without rules it changes nothing.
///
/// It serves HTTP/1.1, and streams watches as they come. Dropping it cuts all its connections.
#[derive(Debug)]
pub struct FaultProxy {
    url: String,
    ca: String,
    layout: Layout,
    ledger: Arc<ProxyState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Cluster {
    /// Starts a fault proxy on a free loopback port; the seed decides all lots that its rules draw.
    pub fn fault_proxy(&self, seed: u64) -> Result<FaultProxy, Error> {
        FaultProxy::start(self, seed)
    }
}

impl FaultProxy {
    fn start(cluster: &Cluster, seed: u64) -> Result<Self, Error> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(|| "listen on loopback".to_owned())?;
        let port = listener.local_addr().context(|| "find the proxy's port".to_owned())?.port();
        listener.set_nonblocking(true).context(|| "set up the proxy's socket".to_owned())?;
        let ledger = Arc::new(ProxyState::new(seed));
        let gate = gate(cluster, Arc::clone(&ledger))?;
        // A thread of its own: a runtime must not be dropped inside of another, and tests may well
        // be async.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context(|| "start the proxy's runtime".to_owned())?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("fault-proxy".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                        tokio::select! {
                            () = serve::accept(listener, Arc::new(gate)) => {}
                            _ = stopped => {}
                        }
                    }
                });
            })
            .context(|| "start the proxy's thread".to_owned())?;
        Ok(Self {
            url: format!("https://127.0.0.1:{port}"),
            ca: cluster.ca_pem(),
            layout: cluster.layout.clone(),
            ledger,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the proxy's address, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a kubeconfig through the proxy for a user who may do everything.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf, Error> {
        self.write(user, UserRights::Master)
    }

    /// Returns a kubeconfig through the proxy for a user who may do only what RBAC objects grant to
    /// this name.
    pub fn kubeconfig_limited(&self, user: &str) -> Result<PathBuf, Error> {
        self.write(user, UserRights::Limited)
    }

    fn write(&self, user: &str, rank: UserRights) -> Result<PathBuf, Error> {
        let token = ProxyUser { user: user.to_owned(), rank }.token();
        let port = self.url.rsplit(':').next().unwrap_or_default();
        let name = format!("users/proxy-{port}-{token}.kubeconfig");
        self.layout.write(&name, &kubeconfig::text(&self.url, &self.ca, user, &Credential::Token(&token)))
    }

    /// Adds a rule; for each request the first rule that matches and is not used up decides alone.
    pub fn add(&self, rule: Rule) -> RuleId {
        self.ledger.add(rule)
    }

    /// Ends a rule and returns how often it was used.
    pub fn remove(&self, rule: RuleId) -> RuleUsage {
        self.ledger.remove(rule)
    }

    /// Ends all rules; answers that they hold back stay held back.
    pub fn clear(&self) {
        self.ledger.clear();
    }

    /// Returns how often a rule was used.
    pub fn hits(&self, rule: RuleId) -> RuleUsage {
        self.ledger.hits(rule)
    }

    /// Counts the answers that are under way, from when the server gets the request on: running
    /// watches, above all.
    pub fn open(&self, requests: &Requests) -> usize {
        self.ledger.count_open(requests)
    }

    /// Ends answers that are under way, such as running watches, and returns how many.
    pub fn end_open(&self, requests: &Requests, ending: ResponseCut) -> usize {
        self.ledger.end_open(requests, ending)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed where it happened.
            let _ = thread.join();
        }
    }
}

fn gate(cluster: &Cluster, ledger: Arc<ProxyState>) -> Result<Gate, Error> {
    let (certificates, key) = identity(&cluster.pki.server()?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    let client = client_tls(&cluster.ca_pem(), Some(&cluster.pki.front_proxy()?))?;
    Ok(Gate {
        acceptor: TlsAcceptor::from(Arc::new(server)),
        connector: TlsConnector::from(client),
        port: cluster.ports.apiserver.number(),
        ledger,
    })
}
