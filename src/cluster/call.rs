//! One call: admission, deadline, answer, error; and the client that is renewed when its credentials are
//! no longer accepted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, OnceCell, RwLock, watch};
use tokio::task::JoinHandle;

use super::account::{self, Guise, ServiceAccount};
use super::classify;
use super::connect::{Connection, IN_CLUSTER, LOGIN, Link, Patience};
use super::credentials::Seen;
use super::error::{Error, Fault, On};
use super::fence::{Fence, Underway};
use super::gate::{Gate, Traffic};
use super::interner::Interner;
use super::measures::Measures;
use super::plugin;
use crate::engine::Uid;
use crate::pulse::Pulses;

/// So much later than it should be, an informer still counts as alive: its calls wait for their turn, and its
/// news until the loop takes them.
pub(super) const SLACK: Duration = Duration::from_mins(1);

/// The server that shows this header queues fairly by itself.
const FAIR_QUEUES: &str = "x-kubernetes-pf-flowschema-uid";
/// Credentials that were refused are read again at most this often.
const RENEWAL: Duration = Duration::from_secs(5);
/// Credentials that run out are renewed so long before.
const EARLY: SignedDuration = SignedDuration::from_secs(60);
/// The namespace whose uid identifies a cluster.
const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";
const IDENTITY: On = On::Server("the cluster's identity");

/// A cluster. Cheap to clone; all clones share one client, one rate limit and one interner.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
    /// What its writes must not outlive.
    fence: Option<Fence>,
    /// As whom it is asked; none for whoever the credentials are of.
    account: Option<ServiceAccount>,
}

struct Inner {
    connection: Connection,
    context: String,
    namespace: String,
    line: RwLock<Line>,
    /// Why nothing is asked any more: the kubeconfig names another cluster now.
    astray: watch::Sender<Option<Arc<str>>>,
    /// When the credentials had been read again last, whatever came of it.
    renewed: Mutex<Option<Instant>>,
    gate: Gate,
    interner: Arc<Interner>,
    uid: OnceCell<Uid>,
    patience: Patience,
    measures: Measures,
    pulses: Pulses,
}

/// A client, and host and port of the server that it talks to.
#[derive(Clone)]
struct Line {
    client: kube::Client,
    server: Arc<str>,
    seen: Seen,
    /// Until when its credentials hold.
    expires: Option<Timestamp>,
    /// Whom its user acts as.
    guise: Guise,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({})", self.inner.context)
    }
}

/// One request, without what all requests have in common.
pub(super) struct Ask {
    method: Method,
    path: String,
    accept: &'static str,
    content: Option<&'static str>,
    body: Vec<u8>,
    on: On,
    lane: Lane,
}

/// Which way a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// Through the gate, with the usual deadline.
    Queued,
    /// Past all others, and answered within this time.
    Ahead(Duration),
}

impl Ask {
    /// A GET.
    pub(super) fn read(path: String, on: On) -> Self {
        let (method, accept, lane) = (Method::GET, "application/json", Lane::Queued);
        Self { method, path, accept, content: None, body: Vec::new(), on, lane }
    }

    /// A write, with a body of this content type.
    pub(super) fn write(method: Method, path: String, content: &'static str, body: Vec<u8>, on: On) -> Self {
        let (accept, lane) = ("application/json", Lane::Queued);
        Self { method, path, accept, content: Some(content), body, on, lane }
    }

    /// Lets it wait for no other call, and no longer than this for its answer.
    pub(super) fn ahead(self, within: Duration) -> Self {
        Self { lane: Lane::Ahead(within), ..self }
    }

    /// Asks for another form of the answer.
    pub(super) fn accept(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    fn request<B>(self, body: impl FnOnce(Vec<u8>) -> B) -> Result<Request<B>, Error> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(ACCEPT, self.accept)
            .header(USER_AGENT, concat!("rhumb/", env!("CARGO_PKG_VERSION")));
        if let Some(content) = self.content {
            request = request.header(CONTENT_TYPE, content);
        }
        request.body(body(self.body)).map_err(|error| {
            Error::new(self.on, Fault::Garbled { reason: format!("no valid request: {error}") })
        })
    }
}

/// An answer with a good status.
pub(super) struct Answer {
    /// HTTP status.
    pub(super) status: StatusCode,
    /// Headers.
    pub(super) headers: HeaderMap,
    /// The body, as sent.
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// Reads the body; its text reaches no error.
    pub(super) fn decode<T: DeserializeOwned>(&self, on: &On) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable(on, &error))
    }

    /// The body as text.
    pub(super) fn text(&self, on: &On) -> Result<&str, Error> {
        std::str::from_utf8(&self.body).map_err(|_| {
            Error::new(on.clone(), Fault::Garbled { reason: "the answer is not UTF-8".to_owned() })
        })
    }
}

/// An answer that is no JSON, or not the JSON that it should be. Only the position is told.
pub(super) fn unreadable(on: &On, error: &serde_json::Error) -> Error {
    let reason = format!("the answer cannot be read (line {}, column {})", error.line(), error.column());
    Error::new(on.clone(), Fault::Garbled { reason })
}

impl Cluster {
    /// Makes a client from flags, files and environment; may run a credential plugin, calls no server.
    pub async fn connect(connection: &Connection) -> Result<Self, Error> {
        Self::connect_watched(connection, Measures::default(), Pulses::default()).await
    }

    /// As [`Cluster::connect`], for whoever is asked for measures and signs of life before there is a connection.
    pub async fn connect_watched(
        connection: &Connection,
        measures: Measures,
        pulses: Pulses,
    ) -> Result<Self, Error> {
        Self::made(connection, Patience::default(), measures, pulses).await
    }

    /// Makes a client whose watches are given up sooner or later than usual.
    #[cfg(test)]
    pub(super) async fn connect_with(connection: &Connection, patience: Patience) -> Result<Self, Error> {
        Self::made(connection, patience, Measures::default(), Pulses::default()).await
    }

    async fn made(
        connection: &Connection,
        patience: Patience,
        measures: Measures,
        pulses: Pulses,
    ) -> Result<Self, Error> {
        let Link { client, context, namespace, server, seen, expires, guise } =
            connection.open(LOGIN).await?;
        Ok(Self {
            fence: None,
            account: None,
            inner: Arc::new(Inner {
                connection: connection.clone(),
                context,
                namespace,
                line: RwLock::new(Line { client, server, seen, expires, guise }),
                astray: watch::Sender::new(None),
                renewed: Mutex::default(),
                gate: Gate::new(connection),
                interner: Arc::default(),
                uid: OnceCell::new(),
                patience,
                measures,
                pulses,
            }),
        })
    }

    /// The same cluster, with writes that are refused as soon as the fence is closed.
    #[must_use]
    pub fn fenced(&self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self.clone() }
    }

    /// Whether writes are refused once a fence is closed.
    pub fn is_fenced(&self) -> bool {
        self.fence.is_some()
    }

    /// The same cluster, asked as this account; none for whoever the credentials are of.
    #[must_use]
    pub fn acting_as(&self, account: Option<ServiceAccount>) -> Self {
        Self { account, ..self.clone() }
    }

    /// As whom it is asked, where that is not whoever the credentials are of.
    pub fn account(&self) -> Option<&ServiceAccount> {
        self.account.as_ref()
    }

    /// Whether the credentials are those that a pod is given.
    pub fn is_of_a_pod(&self) -> bool {
        self.inner.context == IN_CLUSTER
    }

    /// The name of the context, for messages; `in-cluster` in a pod.
    pub fn context(&self) -> &str {
        &self.inner.context
    }

    /// The namespace that the context names; `default` where it names none.
    pub fn default_namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Reads what identifies the cluster: the uid of its namespace `kube-system`. Asked once.
    pub async fn uid(&self) -> Result<Uid, Error> {
        let own = self.acting_as(None);
        let read = async { identity(&own.ask(Ask::read(KUBE_SYSTEM.to_owned(), IDENTITY)).await?) };
        self.inner.uid.get_or_try_init(|| read).await.cloned()
    }

    /// Waits until the kubeconfig, which is read again when the server refuses the credentials, turns out to
    /// name another cluster: for ever, where it never does. From then on no call is made, to neither of them.
    pub async fn gone_astray(&self) -> Error {
        let mut astray = self.inner.astray.subscribe();
        // The sender lives as long as this cluster, so there is always an end to wait for.
        match astray.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()) {
            Some(why) => elsewhere(&why),
            None => std::future::pending().await,
        }
    }

    /// Asks for the server's version, as `v1.36.4`.
    pub async fn server_version(&self) -> Result<String, Error> {
        let on = On::Server("the server's version");
        let answer = self.ask(Ask::read("/version".to_owned(), on.clone())).await?;
        let version: Info = answer.decode(&on)?;
        Ok(version.git_version)
    }

    /// The parts that must make progress: each watch, and what else whoever works with this cluster adds.
    pub fn pulses(&self) -> &Pulses {
        &self.inner.pulses
    }

    /// How long the answer to one call may take, with all that it may wait for before.
    pub(super) fn longest_call(&self) -> Duration {
        // Both the call and the one that judges renewed credentials.
        self.timeout() * 2 + LOGIN + SLACK
    }

    /// The texts that all records share.
    pub(super) fn interner(&self) -> &Arc<Interner> {
        &self.inner.interner
    }

    /// What is counted about the calls.
    pub fn measures(&self) -> &Measures {
        &self.inner.measures
    }

    /// The gate of all calls.
    #[cfg(test)]
    pub(super) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// How long watches last and may be silent.
    pub(super) fn patience(&self) -> Patience {
        self.inner.patience
    }

    /// The deadline of each call.
    pub(super) fn timeout(&self) -> Duration {
        self.inner.connection.timeout
    }

    /// Calls the server once. Waiting for the gate does not count against the deadline.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        let traffic = if ask.method == Method::GET { Traffic::Read } else { Traffic::Write };
        let (on, way) = (ask.on.clone(), ask.lane);
        let (method, path) = (ask.method.clone(), ask.path.clone());
        let mut request = ask.request(Body::from)?;
        let (_permit, deadline) = match way {
            Lane::Queued => (self.inner.gate.admit(traffic).await, self.timeout()),
            Lane::Ahead(deadline) => (None, deadline),
        };
        let line = match way {
            Lane::Queued => self.line().await?,
            Lane::Ahead(within) => {
                let line = tokio::time::timeout(within, self.line()).await;
                line.unwrap_or_else(|_| Err(Error::new(on.clone(), plugin::hangs())))?
            }
        };
        self.act(&line, &mut request, &on)?;
        // Judged last, right before it is sent.
        let underway = self.pass_fence(traffic, &on)?;
        let deadline = underway.as_ref().map_or(deadline, |underway| deadline.min(underway.left()));
        let begun = Instant::now();
        let answered = self.exchange(&line, request, &on, deadline).await;
        if let Some(underway) = underway.filter(|_| !answered.as_ref().is_err_and(Error::is_unreachable)) {
            underway.answered();
        }
        let code = answered.as_ref().ok().map(|(head, _)| head.status);
        self.inner.measures.called(&method, code, begun.elapsed());
        match &answered {
            Ok(_) => self.inner.measures.heard(),
            Err(error) if error.is_unreachable() => self.inner.measures.missed(),
            Err(_) => {}
        }
        let (head, body) = answered?;
        tracing::trace!(code = head.status.as_u16(), ms = begun.elapsed().as_millis(), "{method} {path}");
        if head.headers.contains_key(FAIR_QUEUES) {
            self.inner.gate.server_queues();
        }
        if head.status.is_success() {
            return Ok(Answer { status: head.status, headers: head.headers, body });
        }
        let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let error = self.told(classify::answer(head.status.as_u16(), after, &body, on));
        match way {
            Lane::Queued => self.renew_if_refused(&error).await,
            Lane::Ahead(within) => {
                let _ = tokio::time::timeout(within, self.renew_if_refused(&error)).await;
            }
        }
        Err(error)
    }

    /// Sends one request and reads the whole answer.
    async fn exchange(
        &self,
        line: &Line,
        request: Request<Body>,
        on: &On,
        deadline: Duration,
    ) -> Result<(http::response::Parts, Vec<u8>), Error> {
        let exchange = async {
            let response = line.client.send(request).await?;
            let (head, body) = response.into_parts();
            Ok::<_, kube::Error>((head, body.collect_bytes().await?))
        };
        match tokio::time::timeout(deadline, exchange).await {
            Ok(Ok((head, body))) => Ok((head, body.into())),
            Ok(Err(error)) => Err(classify::transport(&error, on.clone(), &line.server)),
            Err(_) => Err(silent(line, on, deadline)),
        }
    }

    /// Has the server judge a request by the rights of the account, where there is one.
    fn act<B>(&self, line: &Line, request: &mut Request<B>, on: &On) -> Result<(), Error> {
        let Some(account) = &self.account else { return Ok(()) };
        account::act_as(account, line.guise, request.headers_mut(), on)
    }

    /// Has an error say who lacks a right.
    fn told(&self, error: Error) -> Error {
        match &self.account {
            Some(account) => account::told_of(account, error),
            None => error,
        }
    }

    /// Lets a write through the fence, where there is one.
    fn pass_fence(&self, traffic: Traffic, on: &On) -> Result<Option<Underway>, Error> {
        match &self.fence {
            Some(fence) if traffic == Traffic::Write => {
                fence.pass().map(Some).ok_or_else(|| Error::new(on.clone(), Fault::NotHeld))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Starts a watch; neither the rate limit nor the bounds of concurrency count it.
    pub(super) async fn stream(
        &self,
        path: String,
        on: &On,
    ) -> Result<(impl futures::AsyncBufRead + Send + use<>, Arc<str>), Error> {
        let mut request = Ask::read(path, on.clone()).request(|body| body)?;
        let line = self.line().await?;
        self.act(&line, &mut request, on)?;
        match tokio::time::timeout(self.timeout(), line.client.request_stream(request)).await {
            Ok(Ok(stream)) => {
                // A watch of what does not change may be silent for a minute.
                self.inner.measures.heard();
                Ok((stream, line.server))
            }
            Ok(Err(error)) => {
                let error = self.told(classify::transport(&error, on.clone(), &line.server));
                self.renew_if_refused(&error).await;
                Err(error)
            }
            Err(_) => Err(silent(&line, on, self.timeout())),
        }
    }

    async fn line(&self) -> Result<Line, Error> {
        let mut line = self.inner.line.read().await.clone();
        let left = line.expires.map(|expires| expires.duration_since(Timestamp::now()));
        if left.is_some_and(|left| left <= SignedDuration::ZERO) {
            let _ = self.renewal().await;
            line = self.inner.line.read().await.clone();
        } else if left.is_some_and(|left| left < EARLY) && self.inner.renewed.try_lock().is_ok() {
            // Nobody waits for that: what is in use holds a while.
            drop(self.renewal());
        }
        match &*self.inner.astray.borrow() {
            Some(why) => Err(elsewhere(why)),
            None => Ok(line),
        }
    }

    /// Reads the credentials again after a 401: a token, a certificate or the kubeconfig itself may have
    /// been replaced, or a plugin's token may have run out.
    async fn renew_if_refused(&self, error: &Error) {
        if *error.fault() == Fault::Unauthorized {
            let _ = self.renewal().await;
        }
    }

    /// Renews the credentials, to the end: whoever stops waiting for it ends no plugin that others wait for.
    fn renewal(&self) -> JoinHandle<()> {
        let cluster = self.clone();
        tokio::spawn(async move { cluster.renew().await })
    }

    async fn renew(&self) {
        let mut renewed = self.inner.renewed.lock().await;
        if renewed.is_some_and(|last| last.elapsed() < RENEWAL) {
            return;
        }
        let link = self.inner.connection.open(LOGIN).await;
        let taken = match link {
            Ok(link) => self.take_over(link).await,
            Err(error) => Err(error),
        };
        // Those who waited for it meanwhile are not to do the same again, one after the other.
        *renewed = Some(Instant::now());
        if let Err(error) = taken {
            tracing::warn!(%error, "the credentials cannot be renewed");
        }
    }

    /// Uses what the kubeconfig names now, once it is known to be the cluster that everything so far was about.
    async fn take_over(&self, link: Link) -> Result<(), Error> {
        if let Some(why) = self.renewed(link).await? {
            self.inner.astray.send_replace(Some(why.into()));
        }
        Ok(())
    }

    /// As [`Self::take_over`], where nothing but the file has changed: what is in use goes on being used if it is of
    /// no use. Tells why it is not.
    pub(super) async fn try_anew(&self) -> Result<Option<String>, Error> {
        let link = self.inner.connection.open(LOGIN).await?;
        self.renewed(link).await
    }

    /// Uses a client from now on, unless it is for another cluster: then it tells so.
    async fn renewed(&self, link: Link) -> Result<Option<String>, Error> {
        let Link { client, server, seen, expires, guise, .. } = link;
        let renewed = Line { client, server, seen, expires, guise };
        if let Some(known) = self.inner.uid.get() {
            let request = Ask::read(KUBE_SYSTEM.to_owned(), IDENTITY).request(Body::from)?;
            let (head, body) = self.exchange(&renewed, request, &IDENTITY, self.timeout()).await?;
            if !head.status.is_success() {
                return Err(classify::answer(head.status.as_u16(), None, &body, IDENTITY));
            }
            let found = identity(&Answer { status: head.status, headers: head.headers, body })?;
            if found != *known {
                return Ok(Some(format!(
                    "the kubeconfig names another cluster now, at {}: the uid of its namespace kube-system is \
                     {found}, and {known} is that of the cluster which rhumb started on; nothing is written there",
                    renewed.server
                )));
            }
        }
        *self.inner.line.write().await = renewed;
        Ok(None)
    }

    /// The files that the credentials in use come from.
    pub(super) async fn seen(&self) -> Seen {
        self.inner.line.read().await.seen.clone()
    }
}

fn silent(line: &Line, on: &On, after: Duration) -> Error {
    Error::new(on.clone(), Fault::Timeout { server: line.server.clone(), after })
}

fn elsewhere(why: &str) -> Error {
    Error::new(On::Server("the cluster"), Fault::Config { reason: why.to_owned() })
}

/// What identifies a cluster.
fn identity(answer: &Answer) -> Result<Uid, Error> {
    let namespace: Namespace = answer.decode(&IDENTITY)?;
    let garbled = || Error::new(IDENTITY, Fault::Garbled { reason: "kube-system has no uid".to_owned() });
    namespace.metadata.uid.map(|uid| Uid(uid.into())).ok_or_else(garbled)
}
