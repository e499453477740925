//! From flags and files to a client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::classify;
use super::credentials::{self, CredentialFiles, MAX_BEARER_TOKEN_BYTES, is_token, stamp_files};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::impersonation::Impersonation;
use super::plugin;
use super::proxy;
use crate::config::ApiSpec;
use crate::fields::mask_likely_secrets;
use crate::secret;

/// A TCP and TLS handshake that takes longer than this fails, whatever the deadline of the call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A credential plugin may ask a person to log in, but not for ever.
pub(super) const LOGIN_TIMEOUT: Duration = Duration::from_mins(1);

const CONNECTION_SUBJECT: CallSubject = CallSubject::Server("connection");
/// The maximum size of a kubeconfig, in bytes.
const MAX_KUBECONFIG_BYTES: u64 = 16 << 20;
/// The files that a pod is given.
const IN_CLUSTER_VARIABLES: [&str; 2] = [
    "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
    "/var/run/secrets/kubernetes.io/serviceaccount/token",
];

/// The name in place of the context in a pod.
pub(super) const IN_CLUSTER_NAME: &str = "in-cluster";

/// The address of the API server, and the limits of requests to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// A kubeconfig file; without it `$KUBECONFIG`, `~/.kube/config` and the pod's own service
    /// account are tried in this order.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it the current one.
    pub context: Option<String>,
    /// The deadline of each call.
    pub timeout: Duration,
    /// Calls per second in the long run.
    pub qps: f32,
    /// Calls at once after a quiet time.
    pub burst: u32,
    /// Reads, and likewise writes, in flight at once.
    pub concurrency: usize,
}

impl Connection {
    /// Returns the server of the environment, with the limits of a configuration.
    pub(crate) fn of(limits: &ApiSpec) -> Self {
        Self {
            kubeconfig: None,
            context: None,
            timeout: limits.timeout.get(),
            qps: limits.qps as f32,
            burst: limits.burst,
            concurrency: limits.concurrency as usize,
        }
    }
}

/// The server of the environment, with the limits of a configuration that has none.
impl Default for Connection {
    fn default() -> Self {
        Self::of(&ApiSpec::default())
    }
}

/// The time limits of watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchTimeouts {
    /// The server ends each watch within this time, less jitter. Some load balancers cut at five
    /// minutes.
    pub(super) lifetime: Duration,
    /// The time without a word after its end at which a watch counts as dead.
    pub(super) grace: Duration,
    /// The server sends a bookmark every minute; once one was seen, this much silence means dead.
    pub(super) silence: Duration,
}

impl Default for WatchTimeouts {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(290),
            grace: Duration::from_secs(5),
            silence: Duration::from_secs(100),
        }
    }
}

/// A client and the name of the place that it talks to.
pub(super) struct ConnectedClient {
    /// The client.
    pub(super) client: kube::Client,
    /// The context's name, or `in-cluster`.
    pub(super) context: String,
    /// The namespace that the context names.
    pub(super) namespace: String,
    /// Host and port of the server.
    pub(super) server: Arc<str>,
    /// The files that it was made from.
    pub(super) credentials: CredentialFiles,
    /// The time at which a credential plugin's answer expires.
    pub(super) expires: Option<Timestamp>,
    /// The user as whom it acts.
    pub(super) impersonation: Impersonation,
}

/// The contents of the kubeconfig files.
struct LoadedKubeconfig {
    config: kube::Config,
    context: String,
    credentials: CredentialFiles,
}

/// Returns the printable part of a server's address: neither a path nor a password.
fn host_and_port(url: &http::Uri) -> Arc<str> {
    let usual = if url.scheme_str() == Some("http") { 80 } else { 443 };
    format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(usual)).into()
}

impl Connection {
    /// Makes a client; reads files and may run a credential plugin, but calls no server.
    pub(super) async fn open(&self, timeout: Duration) -> Result<ConnectedClient, ClusterError> {
        let LoadedKubeconfig { mut config, context, credentials: seen } = self.load_config().await?;
        let login = plugin::run_plugin(&mut config.auth_info, timeout).await;
        let expires = login.map_err(|fault| ClusterError::new(CONNECTION_SUBJECT, fault))?;
        // The retries of the client would hide up to 15 attempts in one call, and its read timeout
        // would cut quiet watches.
        config.default_retry = false;
        config.read_timeout = None;
        config.connect_timeout = Some(self.timeout.min(CONNECT_TIMEOUT));
        let namespace = config.default_namespace.clone();
        let server = host_and_port(&config.cluster_url);
        let user = &config.auth_info;
        let acts = user.impersonate.is_some()
            || user.impersonate_groups.is_some()
            || user.impersonate_uid.is_some()
            || user.impersonate_user_extra.is_some();
        let impersonation = if acts { Impersonation::Other } else { Impersonation::None };
        // Runs the credential plugin, which may hang.
        let made =
            tokio::task::spawn_blocking(move || ClientBuilder::try_from(config).map(ClientBuilder::build));
        let client = match tokio::time::timeout(timeout, made).await {
            Ok(Ok(Ok(client))) => client,
            Ok(Ok(Err(kube::Error::Auth(error)))) => {
                return Err(ClusterError::new(CONNECTION_SUBJECT, classify::classify_auth(&error)));
            }
            Ok(Ok(Err(
                kube::Error::ProxyProtocolUnsupported { proxy_url }
                | kube::Error::ProxyProtocolDisabled { proxy_url, .. },
            ))) => {
                let scheme = proxy_url.scheme_str().unwrap_or("no scheme");
                return Err(kubeconfig_error(format!(
                    "a proxy by {scheme} cannot be used: use http:// or https://"
                )));
            }
            Ok(Ok(Err(error))) => {
                return Err(kubeconfig_error(mask_likely_secrets(&classify::error_chain(&error))));
            }
            Ok(Err(_)) => return Err(kubeconfig_error("the client could not be made".to_owned())),
            Err(_) => return Err(kubeconfig_error("the client could not be made in time".to_owned())),
        };
        Ok(ConnectedClient { client, context, namespace, server, credentials: seen, expires, impersonation })
    }

    async fn load_config(&self) -> Result<LoadedKubeconfig, ClusterError> {
        let mut seen = stamp_files(self.files());
        let Some(kubeconfig) = self.load_kubeconfig()? else {
            if let Some(context) = &self.context {
                return Err(kubeconfig_error(format!(
                    "there is no kubeconfig to take the context {context:?} from"
                )));
            }
            seen.extend(credentials::stamp_files(IN_CLUSTER_VARIABLES.map(PathBuf::from).to_vec()));
            let mut config = kube::Config::incluster().map_err(|_| {
                kubeconfig_error(
                    "there is no kubeconfig: neither --kubeconfig nor $KUBECONFIG names one, nothing is at \
                     ~/.kube/config, and this is no pod with a service account"
                        .to_owned(),
                )
            })?;
            take_token(&mut config)?;
            return Ok(LoadedKubeconfig { config, context: IN_CLUSTER_NAME.to_owned(), credentials: seen });
        };
        let context = chosen_context(&kubeconfig, self.context.as_deref())?;
        let named = named_files(&kubeconfig, &context);
        seen.extend(credentials::stamp_files(named.clone()));
        for file in named {
            secret::open_regular(&file).map_err(|error| unreadable_file_error("file", &file, &error))?;
        }
        let has_proxy = has_proxy_url(&kubeconfig, &context);
        let options = KubeConfigOptions { context: self.context.clone(), cluster: None, user: None };
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
                kubeconfig_error(format!(
                    "kubeconfig: {}",
                    mask_likely_secrets(&classify::error_chain(&error))
                ))
            })?;
        if !has_proxy {
            let proxy = proxy::of(&config.cluster_url, |name| std::env::var(name).ok());
            // It may have a password in it.
            let none =
                |_| kubeconfig_error("the environment names a proxy by what is no valid address".to_owned());
            config.proxy_url = proxy.map(|text| text.parse().map_err(none)).transpose()?;
        }
        take_token(&mut config)?;
        Ok(LoadedKubeconfig { config, context, credentials: seen })
    }

    /// Returns the kubeconfig's files, be they there or not.
    fn files(&self) -> Vec<PathBuf> {
        if let Some(path) = &self.kubeconfig {
            return vec![path.clone()];
        }
        let named = kubeconfig_paths();
        if named.is_empty() {
            std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect()
        } else {
            named
        }
    }

    fn load_kubeconfig(&self) -> Result<Option<Kubeconfig>, ClusterError> {
        if let Some(path) = &self.kubeconfig {
            return read(path).map(Some);
        }
        let paths = kubeconfig_paths();
        if paths.is_empty() {
            let home = home_kubeconfig();
            return if home.is_file() { read(&home).map(Some) } else { Ok(None) };
        }
        merge_kubeconfigs(&paths).map(Some)
    }

    /// Returns whether it takes the credentials that a pod is given: there is no kubeconfig.
    pub fn is_in_cluster(&self) -> bool {
        self.kubeconfig.is_none() && kubeconfig_paths().is_empty() && !home_kubeconfig().is_file()
    }
}

fn home_kubeconfig() -> PathBuf {
    std::env::home_dir().unwrap_or_default().join(".kube/config")
}

/// Returns the files that `$KUBECONFIG` names.
fn kubeconfig_paths() -> Vec<PathBuf> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Merges several kubeconfigs as kubectl does: a file may be missing, and the first to name a thing
/// wins.
pub(super) fn merge_kubeconfigs(paths: &[PathBuf]) -> Result<Kubeconfig, ClusterError> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let next = read(path)?;
        merged = Some(match merged {
            None => next,
            Some(first) => first.merge(next).map_err(|error| {
                kubeconfig_error(format!("{}: {}", path.display(), classify::error_chain(&error)))
            })?,
        });
    }
    merged.ok_or_else(|| {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        kubeconfig_error(format!("KUBECONFIG names no file that exists: {}", paths.join(", ")))
    })
}

/// Returns the context that is asked for, or the current one; it must be there.
fn chosen_context(kubeconfig: &Kubeconfig, requested: Option<&str>) -> Result<String, ClusterError> {
    let current = || kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
    let known = match names[..] {
        [] => "it has no context at all".to_owned(),
        _ => format!("it has {}", names.join(", ")),
    };
    let Some(name) = requested.or_else(current) else {
        return Err(kubeconfig_error(format!("the kubeconfig names no current context; {known}")));
    };
    if names.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(kubeconfig_error(format!("the kubeconfig has no context {name}; {known}")))
    }
}

/// Returns whether the context's cluster has a `proxy-url` of its own.
fn has_proxy_url(kubeconfig: &Kubeconfig, context: &str) -> bool {
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| &context.cluster);
    kubeconfig
        .clusters
        .iter()
        .filter(|named| Some(&named.name) == cluster)
        .filter_map(|named| named.cluster.as_ref()?.proxy_url.as_deref())
        .any(|url| !url.is_empty())
}

fn read(path: &Path) -> Result<Kubeconfig, ClusterError> {
    let text = secret::read_regular(path, MAX_KUBECONFIG_BYTES + 1);
    let text = text.map_err(|error| unreadable_file_error("kubeconfig", path, &error))?;
    if text.len() as u64 > MAX_KUBECONFIG_BYTES {
        return Err(kubeconfig_error(format!(
            "the kubeconfig {} is larger than {} MiB",
            path.display(),
            MAX_KUBECONFIG_BYTES >> 20
        )));
    }
    Kubeconfig::read_from(path).map_err(|error| {
        let message = classify::error_chain(&error);
        // A YAML reader draws the place below its first line.
        let message = mask_likely_secrets(message.lines().next().unwrap_or_default());
        kubeconfig_error(format!("the kubeconfig {} is not usable: {message}", path.display()))
    })
}

/// Returns the files that a context of the kubeconfig names, with tokens, keys and certificates.
fn named_files(kubeconfig: &Kubeconfig, context: &str) -> Vec<PathBuf> {
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let Some(context) = named.and_then(|named| named.context.as_ref()) else { return Vec::new() };
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster);
    let user = kubeconfig.auth_infos.iter().find(|named| Some(&named.name) == context.user.as_ref());
    let cluster = cluster.and_then(|named| named.cluster.as_ref());
    let user = user.and_then(|named| named.auth_info.as_ref());
    // Where the data are in the kubeconfig itself, they count.
    let authority = cluster
        .filter(|cluster| cluster.certificate_authority_data.is_none())
        .and_then(|cluster| cluster.certificate_authority.as_ref());
    let certificate = user
        .filter(|user| user.client_certificate_data.is_none())
        .and_then(|user| user.client_certificate.as_ref());
    let key = user.filter(|user| user.client_key_data.is_none()).and_then(|user| user.client_key.as_ref());
    let token = user.and_then(|user| user.token_file.as_ref());
    let files = [authority, certificate, key, token].into_iter().flatten();
    files.filter(|file| !file.is_empty()).map(PathBuf::from).collect()
}

/// Puts the token in place of its file, which is followed here. kube would read it right in the
/// loop, whatever it is, and send the end of its line too.
fn take_token(config: &mut kube::Config) -> Result<(), ClusterError> {
    let Some(file) = config.auth_info.token_file.take().filter(|file| !file.is_empty()) else {
        return Ok(());
    };
    let file = Path::new(&file);
    let bytes = secret::read_regular(file, MAX_BEARER_TOKEN_BYTES + 1);
    let bytes = bytes.map_err(|error| unreadable_file_error("token file", file, &error))?;
    let text = std::str::from_utf8(&bytes).ok().map(|text| text.trim_start_matches('\u{feff}').trim());
    let Some(token) = text.filter(|text| is_token(text)) else {
        let problem = if text.is_some_and(str::is_empty) { "is empty" } else { "holds no single token" };
        return Err(kubeconfig_error(format!("the token file {} {problem}", file.display())));
    };
    config.auth_info.token = Some(token.to_owned().into());
    Ok(())
}

fn unreadable_file_error(subject: &str, file: &Path, error: &std::io::Error) -> ClusterError {
    let message = classify::without_errno(&error.to_string()).to_lowercase();
    kubeconfig_error(format!("the {subject} {} cannot be read: {message}", file.display()))
}

fn kubeconfig_error(reason: String) -> ClusterError {
    ClusterError::new(CONNECTION_SUBJECT, ClusterFault::Config { reason })
}
