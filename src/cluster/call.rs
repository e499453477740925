//! One call: admission, deadline, answer, error; and the client that is renewed when its
//! credentials are no longer accepted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::client::Body;
use tokio::sync::{Mutex, OnceCell, RwLock, watch};
use tokio::task::JoinHandle;

use super::classify;
use super::connect::{ConnectedClient, Connection, IN_CLUSTER_NAME, LOGIN_TIMEOUT, WatchTimeouts};
use super::credentials::CredentialFiles;
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::fence::{InFlightWrite, WriteFence};
use super::impersonation::{self, Impersonation, ServiceAccount};
use super::interner::Interner;
use super::plugin;
use super::rate_limit::{CallKind, CallLimiter};
pub(super) use super::request::{ApiRequest, ApiResponse, unreadable_error};
use super::request::{CallPriority, read_body, stream_body};
use crate::call_metrics::CallMetrics;
use crate::engine::Uid;
use crate::heartbeat::Heartbeats;

/// The slack after which a late informer counts as dead: its calls wait for their turn, and its
/// events until the loop takes them.
pub(super) const HEARTBEAT_SLACK: Duration = Duration::from_mins(1);

/// The longest answer that is read. Small pages of the largest objects are shorter. Somebody's
/// objects, or an aggregated API server, could take all memory by a longer one.
pub(super) const MAX_ANSWER_BYTES: usize = if cfg!(test) { 8 << 20 } else { 256 << 20 };
/// The header by which a server shows that it has priority and fairness (APF).
const FAIR_QUEUEING_HEADER: &str = "x-kubernetes-pf-flowschema-uid";
/// The shortest time between two renewals of refused credentials.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// The time before their expiry at which credentials are renewed.
const RENEWAL_MARGIN: SignedDuration = SignedDuration::from_secs(60);
/// The namespace whose uid identifies a cluster.
const KUBE_SYSTEM_PATH: &str = "/api/v1/namespaces/kube-system";
const CLUSTER_IDENTITY_SUBJECT: CallSubject = CallSubject::Server("the cluster's identity");

/// A cluster. Cheap to clone; all clones share one client, one rate limit and one interner.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<ClusterState>,
    /// The fence that its writes must not outlive.
    fence: Option<WriteFence>,
    /// The account that is impersonated; none for the user of the credentials.
    account: Option<ServiceAccount>,
}

struct ClusterState {
    connection: Connection,
    context: String,
    namespace: String,
    client: RwLock<ActiveClient>,
    /// The reason for which no call is made any more: the kubeconfig names another cluster now.
    wrong_cluster: watch::Sender<Option<Arc<str>>>,
    /// The time of the last renewal of the credentials, successful or not.
    renewed: Mutex<Option<Instant>>,
    rate_limiter: CallLimiter,
    interner: Arc<Interner>,
    uid: OnceCell<Uid>,
    watch_timeouts: WatchTimeouts,
    metrics: CallMetrics,
    heartbeats: Heartbeats,
}

/// A client, and host and port of the server that it talks to.
#[derive(Clone)]
struct ActiveClient {
    client: kube::Client,
    server: Arc<str>,
    credentials: CredentialFiles,
    /// The time at which its credentials expire.
    expires: Option<Timestamp>,
    /// The user as whom it acts.
    impersonation: Impersonation,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({})", self.inner.context)
    }
}

impl Cluster {
    /// Makes a client from flags, files and environment; may run a credential plugin, calls no
    /// server.
    ///
    /// # Errors
    ///
    /// Fails where the settings name no server, or where their files or a credential plugin are of
    /// no use.
    pub async fn connect(connection: &Connection) -> Result<Self, ClusterError> {
        Self::connect_watched(connection, CallMetrics::default(), Heartbeats::default()).await
    }

    /// Does the same as [`Cluster::connect`], with metrics and heartbeats that exist before the
    /// connection.
    pub(crate) async fn connect_watched(
        connection: &Connection,
        measures: CallMetrics,
        heartbeats: Heartbeats,
    ) -> Result<Self, ClusterError> {
        Self::build(connection, WatchTimeouts::default(), measures, heartbeats).await
    }

    /// Makes a client with other timeouts of watches.
    #[cfg(test)]
    pub(super) async fn connect_with(
        connection: &Connection,
        watch_timeouts: WatchTimeouts,
    ) -> Result<Self, ClusterError> {
        Self::build(connection, watch_timeouts, CallMetrics::default(), Heartbeats::default()).await
    }

    async fn build(
        connection: &Connection,
        watch_timeouts: WatchTimeouts,
        measures: CallMetrics,
        heartbeats: Heartbeats,
    ) -> Result<Self, ClusterError> {
        let ConnectedClient { client, context, namespace, server, credentials: seen, expires, impersonation } =
            connection.open(LOGIN_TIMEOUT).await?;
        Ok(Self {
            fence: None,
            account: None,
            inner: Arc::new(ClusterState {
                connection: connection.clone(),
                context,
                namespace,
                client: RwLock::new(ActiveClient {
                    client,
                    server,
                    credentials: seen,
                    expires,
                    impersonation,
                }),
                wrong_cluster: watch::Sender::new(None),
                renewed: Mutex::default(),
                rate_limiter: CallLimiter::new(connection),
                interner: Arc::default(),
                uid: OnceCell::new(),
                watch_timeouts,
                metrics: measures,
                heartbeats,
            }),
        })
    }

    /// Returns the same cluster, with writes that are refused as soon as the fence is closed.
    #[must_use]
    pub fn with_fence(&self, fence: WriteFence) -> Self {
        Self { fence: Some(fence), ..self.clone() }
    }

    /// Returns whether writes are refused once a fence is closed.
    pub fn is_fenced(&self) -> bool {
        self.fence.is_some()
    }

    /// Returns the same cluster, asked as this account; none for the user of the credentials.
    #[must_use]
    pub fn with_account(&self, account: Option<ServiceAccount>) -> Self {
        Self { account, ..self.clone() }
    }

    /// Returns the service account that is impersonated, if there is one.
    pub fn account(&self) -> Option<&ServiceAccount> {
        self.account.as_ref()
    }

    /// Returns whether the credentials are those that a pod is given.
    pub fn is_in_cluster(&self) -> bool {
        self.inner.context == IN_CLUSTER_NAME
    }

    /// Returns the name of the context, for messages; `in-cluster` in a pod.
    pub fn context_name(&self) -> &str {
        &self.inner.context
    }

    /// Returns the namespace that the context names; `default` where it names none.
    pub fn default_namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Reads what identifies the cluster: the uid of its namespace `kube-system`. Asked once.
    ///
    /// # Errors
    ///
    /// Fails where the server does not answer, or does not show its namespace `kube-system`.
    pub async fn uid(&self) -> Result<Uid, ClusterError> {
        let own = self.with_account(None);
        let read = async {
            cluster_identity(
                &own.call(ApiRequest::read(KUBE_SYSTEM_PATH.to_owned(), CLUSTER_IDENTITY_SUBJECT)).await?,
            )
        };
        self.inner.uid.get_or_try_init(|| read).await.cloned()
    }

    /// Waits until the kubeconfig turns out to name another cluster; for ever, where it never does.
    /// It is read again when the server refuses the credentials. From then on no call is made to
    /// either cluster.
    pub async fn wait_for_other_cluster(&self) -> ClusterError {
        let mut wrong_cluster = self.inner.wrong_cluster.subscribe();
        // The sender lives as long as this cluster, so there is always an end to wait for.
        match wrong_cluster.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()) {
            Some(why) => wrong_cluster_error(&why),
            None => std::future::pending().await,
        }
    }

    /// Asks for the server's version, for example `v1.36.4`.
    ///
    /// # Errors
    ///
    /// Fails where the server does not answer, or refuses it.
    pub async fn server_version(&self) -> Result<String, ClusterError> {
        let on = CallSubject::Server("the server's version");
        let answer = self.call(ApiRequest::read("/version".to_owned(), on.clone())).await?;
        let version: Info = answer.decode(&on)?;
        Ok(version.git_version)
    }

    /// Returns the parts that must make progress: each watch, and the parts that users of this
    /// cluster add.
    pub fn heartbeats(&self) -> &Heartbeats {
        &self.inner.heartbeats
    }

    /// Returns the longest time until a page of a list is read, or a call is answered, its waits
    /// included.
    pub(super) fn longest_call(&self) -> Duration {
        // The call, the one for a smaller page, and the one that judges renewed credentials.
        self.timeout() * 3 + LOGIN_TIMEOUT + HEARTBEAT_SLACK
    }

    /// Returns the texts that all records share.
    pub(super) fn interner(&self) -> &Arc<Interner> {
        &self.inner.interner
    }

    /// Returns the metrics of the calls.
    pub fn call_metrics(&self) -> &CallMetrics {
        &self.inner.metrics
    }

    /// Returns the rate limiter of all calls.
    #[cfg(test)]
    pub(super) fn rate_limiter(&self) -> &CallLimiter {
        &self.inner.rate_limiter
    }

    /// Returns how long watches last and may be silent.
    pub(super) fn watch_timeouts(&self) -> WatchTimeouts {
        self.inner.watch_timeouts
    }

    /// Returns the deadline of each call.
    pub(super) fn timeout(&self) -> Duration {
        self.inner.connection.timeout
    }

    /// Calls the server once. Waiting for the rate limiter does not count against the deadline.
    pub(super) async fn call(&self, ask: ApiRequest) -> Result<ApiResponse, ClusterError> {
        let call_kind = if ask.method == Method::GET { CallKind::Read } else { CallKind::Write };
        let (on, priority) = (ask.subject.clone(), ask.priority);
        let (method, path) = (ask.method.clone(), ask.path.clone());
        let mut request = ask.build_request(Body::from)?;
        let (_permit, deadline) = match priority {
            CallPriority::Normal => (self.inner.rate_limiter.admit(call_kind).await, self.timeout()),
            CallPriority::Urgent(deadline) => (None, deadline),
        };
        let active = match priority {
            CallPriority::Normal => self.active_client().await?,
            CallPriority::Urgent(within) => {
                let active = tokio::time::timeout(within, self.active_client()).await;
                active.unwrap_or_else(|_| Err(ClusterError::new(on.clone(), plugin::hanging_fault())))?
            }
        };
        self.impersonate(&active, &mut request, &on)?;
        // Judged last, right before it is sent.
        let in_flight = self.pass_fence(call_kind, &on)?;
        let deadline = in_flight.as_ref().map_or(deadline, |in_flight| deadline.min(in_flight.time_left()));
        let begun = Instant::now();
        let answered = self.exchange(&active, request, &on, deadline).await;
        if let Some(in_flight) =
            in_flight.filter(|_| !answered.as_ref().is_err_and(ClusterError::is_unreachable))
        {
            in_flight.mark_answered();
        }
        let code = answered.as_ref().ok().map(|(head, _)| head.status);
        self.inner.metrics.record_call(&method, code, begun.elapsed());
        match &answered {
            Ok(_) => self.inner.metrics.record_answer(),
            Err(error) if error.is_unreachable() => self.inner.metrics.record_silence(),
            Err(_) => {}
        }
        let (head, body) = answered?;
        tracing::trace!(code = head.status.as_u16(), ms = begun.elapsed().as_millis(), "{method} {path}");
        if head.headers.contains_key(FAIR_QUEUEING_HEADER) {
            self.inner.rate_limiter.note_server_queues();
        }
        if head.status.is_success() {
            return Ok(ApiResponse { status: head.status, headers: head.headers, body });
        }
        let error = self.name_actor(refusal_error(&head, &body, on));
        match priority {
            CallPriority::Normal => self.renew_if_refused(&error).await,
            CallPriority::Urgent(within) => {
                let _ = tokio::time::timeout(within, self.renew_if_refused(&error)).await;
            }
        }
        Err(error)
    }

    /// Sends one request and reads the whole answer, unless it is too long.
    async fn exchange(
        &self,
        active: &ActiveClient,
        request: Request<Body>,
        on: &CallSubject,
        deadline: Duration,
    ) -> Result<(http::response::Parts, Vec<u8>), ClusterError> {
        let exchange = async {
            let response = active.client.send(request).await?;
            let (head, body) = response.into_parts();
            Ok::<_, kube::Error>((head, read_body(body, MAX_ANSWER_BYTES).await?))
        };
        match tokio::time::timeout(deadline, exchange).await {
            Ok(Ok((head, Some(body)))) => Ok((head, body)),
            Ok(Ok((_, None))) => Err(too_long_error(on)),
            Ok(Err(error)) => Err(classify::classify_transport(&error, on.clone(), &active.server)),
            Err(_) => Err(timeout_error(active, on, deadline)),
        }
    }

    /// Adds the headers of impersonation, where there is an account.
    fn impersonate<B>(
        &self,
        active: &ActiveClient,
        request: &mut Request<B>,
        on: &CallSubject,
    ) -> Result<(), ClusterError> {
        let Some(account) = &self.account else { return Ok(()) };
        impersonation::set_impersonation(account, active.impersonation, request.headers_mut(), on)
    }

    /// Adds the account to an error, so that it names who lacks a right.
    fn name_actor(&self, error: ClusterError) -> ClusterError {
        match &self.account {
            Some(account) => impersonation::with_account_name(account, error),
            None => error,
        }
    }

    /// Lets a write through the fence, where there is one.
    fn pass_fence(
        &self,
        call_kind: CallKind,
        on: &CallSubject,
    ) -> Result<Option<InFlightWrite>, ClusterError> {
        match &self.fence {
            Some(fence) if call_kind == CallKind::Write => {
                fence.admit().map(Some).ok_or_else(|| ClusterError::new(on.clone(), ClusterFault::NotHeld))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Starts a watch; neither the rate limit nor the bounds of concurrency count it.
    pub(super) async fn open_watch(
        &self,
        path: String,
        on: &CallSubject,
    ) -> Result<(impl futures::AsyncBufRead + Send + use<>, Arc<str>), ClusterError> {
        let mut request = ApiRequest::read(path, on.clone()).build_request(Body::from)?;
        let active = self.active_client().await?;
        self.impersonate(&active, &mut request, on)?;
        let open = async {
            let (head, body) = active.client.send(request).await?.into_parts();
            let is_refused = head.status.is_client_error() || head.status.is_server_error();
            Ok::<_, kube::Error>(if is_refused {
                Err((head, read_body(body, MAX_ANSWER_BYTES).await?))
            } else {
                Ok(stream_body(body))
            })
        };
        let error = match tokio::time::timeout(self.timeout(), open).await {
            Ok(Ok(Ok(stream))) => {
                // A watch of what does not change may be silent for a minute.
                self.inner.metrics.record_answer();
                return Ok((stream, active.server));
            }
            Ok(Ok(Err((head, Some(body))))) => refusal_error(&head, &body, on.clone()),
            Ok(Ok(Err((_, None)))) => too_long_error(on),
            Ok(Err(error)) => classify::classify_transport(&error, on.clone(), &active.server),
            Err(_) => return Err(timeout_error(&active, on, self.timeout())),
        };
        let error = self.name_actor(error);
        self.renew_if_refused(&error).await;
        Err(error)
    }

    async fn active_client(&self) -> Result<ActiveClient, ClusterError> {
        let mut active = self.inner.client.read().await.clone();
        let left = active.expires.map(|expires| expires.duration_since(Timestamp::now()));
        if left.is_some_and(|left| left <= SignedDuration::ZERO) {
            let _ = self.spawn_renewal().await;
            active = self.inner.client.read().await.clone();
        } else if left.is_some_and(|left| left < RENEWAL_MARGIN) && self.inner.renewed.try_lock().is_ok() {
            // No call waits for that: the credentials in use are valid for a while.
            drop(self.spawn_renewal());
        }
        match &*self.inner.wrong_cluster.borrow() {
            Some(why) => Err(wrong_cluster_error(why)),
            None => Ok(active),
        }
    }

    /// Reads the credentials again after a 401. A token, a certificate or the kubeconfig may have
    /// been replaced, or a plugin's token may have expired.
    async fn renew_if_refused(&self, error: &ClusterError) {
        if *error.fault() == ClusterFault::Unauthorized {
            let _ = self.spawn_renewal().await;
        }
    }

    /// Renews the credentials in a task of its own. So a caller that stops waiting ends no plugin
    /// that others wait for.
    fn spawn_renewal(&self) -> JoinHandle<()> {
        let cluster = self.clone();
        tokio::spawn(async move { cluster.renew().await })
    }

    async fn renew(&self) {
        let mut renewed = self.inner.renewed.lock().await;
        if renewed.is_some_and(|last| last.elapsed() < MIN_RENEWAL_INTERVAL) {
            return;
        }
        let connected = self.inner.connection.open(LOGIN_TIMEOUT).await;
        let taken = match connected {
            Ok(connected) => self.take_over(connected).await,
            Err(error) => Err(error),
        };
        // Calls that waited for it meanwhile must not do the same again, one after the other.
        *renewed = Some(Instant::now());
        if let Err(error) = taken {
            tracing::warn!(%error, "the credentials cannot be renewed");
        }
    }

    /// Uses the new credentials. If they are for another cluster, no call is made any more.
    async fn take_over(&self, connected: ConnectedClient) -> Result<(), ClusterError> {
        if let Some(why) = self.use_renewed(connected).await? {
            self.inner.wrong_cluster.send_replace(Some(why.into()));
        }
        Ok(())
    }

    /// Uses the credentials of a changed file. Keeps those in use, and returns the reason, if the
    /// new ones are for another cluster.
    pub(super) async fn try_anew(&self) -> Result<Option<String>, ClusterError> {
        let connected = self.inner.connection.open(LOGIN_TIMEOUT).await?;
        self.use_renewed(connected).await
    }

    /// Uses a client from now on. Returns the reason if it is for another cluster.
    async fn use_renewed(&self, connected: ConnectedClient) -> Result<Option<String>, ClusterError> {
        let ConnectedClient { client, server, credentials: seen, expires, impersonation, .. } = connected;
        let renewed = ActiveClient { client, server, credentials: seen, expires, impersonation };
        if let Some(known) = self.inner.uid.get() {
            let request = ApiRequest::read(KUBE_SYSTEM_PATH.to_owned(), CLUSTER_IDENTITY_SUBJECT)
                .build_request(Body::from)?;
            let (head, body) =
                self.exchange(&renewed, request, &CLUSTER_IDENTITY_SUBJECT, self.timeout()).await?;
            if !head.status.is_success() {
                return Err(classify::classify_answer(
                    head.status.as_u16(),
                    None,
                    &body,
                    CLUSTER_IDENTITY_SUBJECT,
                ));
            }
            let found = cluster_identity(&ApiResponse { status: head.status, headers: head.headers, body })?;
            if found != *known {
                return Ok(Some(format!(
                    "the kubeconfig names another cluster now, at {}: the uid of its namespace kube-system is \
                     {found}, and {known} is that of the cluster which rhumb started on; nothing is written there",
                    renewed.server
                )));
            }
        }
        *self.inner.client.write().await = renewed;
        Ok(None)
    }

    /// Returns the files that the credentials in use come from.
    pub(super) async fn credential_files(&self) -> CredentialFiles {
        self.inner.client.read().await.credentials.clone()
    }
}

fn timeout_error(active: &ActiveClient, on: &CallSubject, after: Duration) -> ClusterError {
    ClusterError::new(on.clone(), ClusterFault::Timeout { server: active.server.clone(), after })
}

fn too_long_error(on: &CallSubject) -> ClusterError {
    ClusterError::new(on.clone(), ClusterFault::TooLong { mebibytes: MAX_ANSWER_BYTES >> 20 })
}

/// Returns the error of an answer with an error status.
fn refusal_error(head: &http::response::Parts, body: &[u8], on: CallSubject) -> ClusterError {
    let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    classify::classify_answer(head.status.as_u16(), after, body, on)
}

fn wrong_cluster_error(why: &str) -> ClusterError {
    ClusterError::new(CallSubject::Server("the cluster"), ClusterFault::Config { reason: why.to_owned() })
}

/// Returns the identity of a cluster.
fn cluster_identity(answer: &ApiResponse) -> Result<Uid, ClusterError> {
    let namespace: Namespace = answer.decode(&CLUSTER_IDENTITY_SUBJECT)?;
    let garbled = || {
        ClusterError::new(
            CLUSTER_IDENTITY_SUBJECT,
            ClusterFault::Garbled { reason: "kube-system has no uid".to_owned() },
        )
    };
    namespace.metadata.uid.map(|uid| Uid(uid.into())).ok_or_else(garbled)
}
