//! The HTTP endpoints.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::fault::ConfigFault;
use super::tree::ConfigNode;
use super::{Environment, ServeConfig, TlsFiles};

/// The name of the socket in the runtime directory.
pub(crate) const SOCKET_FILE: &str = "rhumb.sock";

/// The key `serve` of a `Configuration`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub(super) struct ServeSpec {
    socket: Option<PathBuf>,
    listen: Option<ListenAddress>,
    probes: Option<ListenAddress>,
    hosts: Vec<HostName>,
    tls: Option<TlsSpec>,
    token: Option<PathBuf>,
    hook: WebhookReceiverSpec,
}

/// A certificate and its key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with cert and key")]
pub(super) struct TlsSpec {
    cert: PathBuf,
    key: PathBuf,
}

/// The secret of webhooks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a mapping")]
pub(super) struct WebhookReceiverSpec {
    secret: Option<PathBuf>,
}

impl ServeSpec {
    /// Notes what must not be together; `document` is the one that it was read from.
    pub(super) fn check(
        &self,
        environment: &Environment,
        document: &ConfigNode,
        faults: &mut Vec<ConfigFault>,
    ) {
        let mark = |key| {
            let serve = document.get("serve");
            serve.and_then(|serve| serve.get(key)).or(serve).map_or(document.mark, |node| node.mark)
        };
        let token = self.token.is_some() || environment.serve_token.is_some();
        if let Some(ListenAddress(listen)) = self.listen
            && !listen.ip().is_loopback()
        {
            let missing = match (self.tls.is_some(), token) {
                (true, true) => None,
                (false, false) => Some("`tls` and `token`"),
                (false, true) => Some("`tls`"),
                (true, false) => Some("`token`"),
            };
            if let Some(missing) = missing {
                let message = format!("{listen} can be reached from other machines, which takes {missing}");
                let fault = ConfigFault::new("config-serve-open", message).with_mark(mark("listen"));
                faults.push(fault.hint(format!(
                    "set serve.tls and serve.token, or listen on 127.0.0.1:{}; for the kubelet's probes there is \
                     serve.probes",
                    listen.port()
                )));
            }
        }
        if let (Some(ListenAddress(listen)), Some(ListenAddress(probes))) = (self.listen, self.probes)
            && listen == probes
            && listen.port() != 0
        {
            let fault = ConfigFault::new("config-value", "`listen` and `probes` are the same address");
            faults.push(fault.with_mark(mark("probes")).hint("give each its own port"));
        }
    }

    /// Returns it with paths that are independent of the file's folder, and with what the
    /// environment adds.
    pub(super) fn resolve(self, environment: &Environment) -> ServeConfig {
        let resolve = |path: PathBuf| environment.resolve(&path);
        ServeConfig {
            socket: self.socket.map(resolve).or_else(|| environment.socket_path()),
            listen: self.listen.map(|address| address.0),
            probes: self.probes.map(|address| address.0),
            hosts: self.hosts.into_iter().map(|host| host.0).collect(),
            tls: self.tls.map(|tls| TlsFiles { cert: resolve(tls.cert), key: resolve(tls.key) }),
            token: self.token.map(resolve).or_else(|| environment.serve_token.clone()),
            hook_secret: self.hook.secret.map(resolve).or_else(|| environment.webhook_secret.clone()),
        }
    }
}

impl ServeConfig {
    /// Returns the endpoints without a file.
    pub fn of_environment(environment: &Environment) -> Self {
        ServeSpec::default().resolve(environment)
    }
}

/// An address with a port, never a name: what a name means may change.
#[derive(Clone, Copy, Debug)]
struct ListenAddress(SocketAddr);

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListenAddressVisitor;
        impl Visitor<'_> for ListenAddressVisitor {
            type Value = ListenAddress;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address with a port (for example 127.0.0.1:9090 or [::1]:9090)")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ListenAddress, E> {
                let address = text.parse().ok().map(ListenAddress);
                address.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(ListenAddressVisitor)
    }
}

/// A name under which browsers may reach the listener, in lower case and without a port.
#[derive(Clone, Debug)]
struct HostName(String);

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HostNameVisitor;
        impl Visitor<'_> for HostNameVisitor {
            type Value = HostName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a host (for example rhumb.example.org)")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<HostName, E> {
                let label = |label: &str| {
                    (1..=63).contains(&label.len())
                        && label
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
                };
                let right = text.len() <= 253 && text.split('.').all(label);
                let name = right.then(|| HostName(text.to_ascii_lowercase()));
                name.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(HostNameVisitor)
    }
}
