//! `rhumb run`.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::args::{GlobalArgs, RunArgs};
use super::derived_name::{self, NameOrigin};
use super::exit::os_message;
use super::left_steps::left_step_text;
use super::process_sources::{ServedSources, SourceShare, is_shared};
use super::reload::{ReloadResult, reload};
use super::settings::{FileRead, Invocation};
use super::signals::{HangupAction, Signals, StopTime};
use super::{CommandError, ExitStatus, Terminal, session, settings};
use crate::announce::announce;
use crate::call_metrics::CallMetrics;
use crate::cluster::Cluster;
use crate::config::{Config, NotifyConfig, SourceConfig};
use crate::daemon::{self, LoopQueries, Reconciler, RunMode, SourceSetup, TraceWriter};
use crate::engine::{SourceLifecycle, SteppedWorkload};
use crate::heartbeat::Heartbeats;
use crate::object::ErrorClass;
use crate::queue;
use crate::report::{
    self, DaemonSummary, EventRecorder, LosslessSubscription, Metrics, ObjectEvent, StatusTopic,
    SystemdService, WatchdogGuard,
};
use crate::serve::{
    self, ListenEndpoint, ProcessHandle, RequestGuard, RouteSet, UnservedSources, WebhookReceiver,
};

/// The time limit for running tasks at the end.
const TASK_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The end comes within 5 s of the order. So long after it the Leases are not waited for any more;
/// nor is anything that this process still does; nor its threads.
const LEASE_RELEASE_DEADLINE: Duration = Duration::from_secs(4);
const SOURCE_STOP_DEADLINE: Duration = Duration::from_millis(4250);
const PROCESS_END_DEADLINE: Duration = Duration::from_millis(4500);

/// The time limit for a credential plugin at the start, with a margin.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(90);

/// The longest wait before a credential plugin that gave nothing is asked again.
const MAX_CREDENTIALS_DELAY: Duration = Duration::from_secs(15);

/// The silence after which a cluster counts as one to wait for.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval at which the kubeconfig is checked.
const KUBECONFIG_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Carries the command out.
pub(super) fn carry_out(
    args: &RunArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let typed = Invocation { args, global, terminal };
    let config = typed.read_settings(FileRead::First)?;
    let (service, interval) = settings::systemd_service();
    keep_memory_private();
    let runtime = session::start_runtime()?;
    let mut end = StopTime::default();
    let ended = runtime.block_on(async {
        let hangup = HangupAction::of_a_service_with(args.config.as_deref());
        let signals = Signals::listen(hangup, service.clone())?;
        let status_updates = tokio::spawn(service.clone().keep_current());
        let ended = tokio::select! {
            biased;
            () = signals.wait_for_abort() => Ok(ExitStatus::Aborted),
            ended = follow(typed, config, &signals, &service, interval) => ended,
            () = signals.wait_until_overdue(SOURCE_STOP_DEADLINE) => {
                tracing::warn!("not everything finished in time; nothing is lost by that");
                Ok(ExitStatus::Done)
            }
        };
        status_updates.abort();
        end = signals.end().clone();
        ended
    });
    // Ends git's processes. A thread that waits for a dead disk or a credential plugin is not
    // waited for.
    let aborted = matches!(ended, Ok(ExitStatus::Aborted));
    runtime.shutdown_timeout(if aborted {
        Duration::ZERO
    } else {
        end.time_left(PROCESS_END_DEADLINE).min(TASK_SHUTDOWN_TIMEOUT)
    });
    ended
}

/// Prevents core dumps, which would hold credentials. The limit covers dumps to files; the flag
/// covers dumps to programs and reads of this process' memory. Each call only fails where it holds
/// already.
fn keep_memory_private() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(Resource::Core, none);
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Runs the daemon from its start to its end, over all its configurations.
async fn follow(
    typed: Invocation<'_>,
    mut config: Config,
    signals: &Signals,
    service: &SystemdService,
    interval: Option<Duration>,
) -> Result<ExitStatus, CommandError> {
    let stop = signals.stop();
    let trace = typed.args.trace.as_deref().map(create_trace).transpose()?;
    let (heartbeats, measures) = (Heartbeats::default(), CallMetrics::default());
    let _watchdog = watch_over(service, &heartbeats, interval)?;
    let (running, seen) = watch::channel(None);
    let recorder = EventRecorder::new(jiff::Timestamp::now());
    let metrics = Metrics::new(measures.clone(), queue::QueueMetrics::default());
    let process =
        ProcessHandle::new(seen.clone(), &heartbeats, metrics.clone(), service.clone(), recorder.clone());
    serve_endpoints(&config, &process, stop);
    let patient = connect_when_ready(&config, &measures, &heartbeats, service);
    let Some(cluster) = stop.run_until_cancelled(patient).await else {
        return Ok(ExitStatus::Done);
    };
    let cluster = cluster.map_err(|error| typed.classify(error))?;
    let patient = wait_for_state(typed, &mut config, &cluster, signals, service);
    let Some(state) = stop.run_until_cancelled(Box::pin(patient)).await else {
        return Ok(ExitStatus::Done);
    };
    let state = state?;
    let naming =
        if typed.args.config.is_some() { NameOrigin::Explicit } else { NameOrigin::of(typed.global) };
    let Some(settled) =
        stop.run_until_cancelled(derived_name::settle_with_retries(&mut config, naming, &cluster)).await
    else {
        return Ok(ExitStatus::Done);
    };
    settled?;
    let _credentials =
        AbortOnDropHandle::new(tokio::spawn(cluster.watch_credentials(KUBECONFIG_CHECK_INTERVAL)));
    let (listener, object_events) = mpsc::unbounded_channel();
    let log = tokio::spawn(log(object_events, recorder.follow(report::has_line)));
    let (recipients, announced) = watch::channel(Vec::new());
    let _announcing = AbortOnDropHandle::new(tokio::spawn(announce(announced, recorder.clone())));
    let share = SourceShare::of(&config, &cluster, &seen);
    let namespace = config.namespace.clone();
    let events = daemon::write_events(cluster.clone(), share.lease_terms(), namespace, recorder.clone());
    let _events = AbortOnDropHandle::new(tokio::spawn(events));
    let silence = report_silence(service.clone(), cluster.call_metrics().unreachable_since());
    let _silence = AbortOnDropHandle::new(tokio::spawn(silence));
    let daemon = Daemon {
        invocation: typed,
        cluster,
        state,
        signals,
        service,
        listener,
        running,
        recorder,
        metrics,
        recipients,
        share,
        stepped: Cell::default(),
        trace,
    };
    let ended = loop {
        match Box::pin(daemon.follow(&config)).await {
            Ok(NextStep::Configuration(newer)) => config = *newer,
            Ok(NextStep::Share) => {}
            Ok(NextStep::End) => break Ok(ExitStatus::Done),
            Err(error) => break Err(error),
        }
    };
    let Daemon { listener, share, .. } = daemon;
    share.end(signals.end().time_left(LEASE_RELEASE_DEADLINE)).await;
    // The loop has ended and with it the only sender: what is left is written down.
    drop(listener);
    let _ = log.await;
    ended
}

/// Creates the file of a trace. One that exists is not written over: it may be the one that is
/// needed.
fn create_trace(file: &Path) -> Result<TraceWriter, CommandError> {
    TraceWriter::create(file).map_err(|error| {
        let failed = CommandError::new(
            ErrorClass::Config,
            format!("{}: the trace cannot be created: {}", file.display(), os_message(&error)),
        );
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                failed.hint("name a file that does not exist, or move this one away")
            }
            _ => failed,
        }
    })
}

/// Writes down what becomes of objects and what happens beside that, until no more events of
/// objects can come.
async fn log(mut object_events: mpsc::UnboundedReceiver<ObjectEvent>, events: LosslessSubscription) {
    let LosslessSubscription { backlog: past, live: mut coming } = events;
    for event in past {
        report::log_event(&event);
    }
    loop {
        tokio::select! {
            biased;
            event = object_events.recv() => match event {
                Some(event) => report::log(&event),
                None => break,
            },
            Some(event) = coming.recv() => report::log_event(&event),
        }
    }
    while let Ok(event) = coming.try_recv() {
        report::log_event(&event);
    }
}

/// Serves the configured endpoints. A listener that fails to bind does not stop the daemon.
fn serve_endpoints(config: &Config, process: &ProcessHandle, stop: &CancellationToken) {
    let spec = &config.serve;
    let is_of_a_pod = || session::cluster_connection(config).is_in_cluster();
    let others =
        if is_shared(config, is_of_a_pod) { UnservedSources::Replicas } else { UnservedSources::Nobody };
    let hooks = WebhookReceiver::new(spec.hook_secret.clone(), others);
    let guard = || RequestGuard::new(&spec.hosts, spec.token.clone());
    let socket = spec
        .socket
        .clone()
        .map(|path| (ListenEndpoint::Socket(path), RouteSet::Guarded(RequestGuard::of_socket(&spec.hosts))));
    let listen = |address| {
        let guard = if spec.tls.is_some() { guard().with_sign_in() } else { guard() };
        (ListenEndpoint::Address(address, spec.tls.clone()), RouteSet::Guarded(guard))
    };
    let probes = spec.probes.map(|address| (ListenEndpoint::Probes(address), RouteSet::Probes));
    for (endpoint, door) in [socket, spec.listen.map(listen), probes].into_iter().flatten() {
        let router = serve::router(process.clone(), hooks.clone(), door);
        tokio::spawn(serve::serve_endpoint(endpoint, router, process.endpoints.clone(), stop.clone()));
    }
}

/// The parts of the daemon that outlive a configuration.
struct Daemon<'a> {
    invocation: Invocation<'a>,
    cluster: Cluster,
    state: PathBuf,
    signals: &'a Signals,
    service: &'a SystemdService,
    listener: mpsc::UnboundedSender<ObjectEvent>,
    /// The queries of the running loop.
    running: watch::Sender<Option<LoopQueries>>,
    /// The events, over all configurations.
    recorder: EventRecorder,
    /// The metrics, over all configurations.
    metrics: Metrics,
    /// The recipients of notifications.
    recipients: watch::Sender<Vec<NotifyConfig>>,
    /// The sources that this process serves.
    share: SourceShare,
    /// The workloads that the last loop has left at a step.
    stepped: Cell<Vec<SteppedWorkload>>,
    /// The trace, over all configurations, where one is written.
    trace: Option<TraceWriter>,
}

/// The step after a loop has ended.
enum NextStep {
    /// Another configuration.
    Configuration(Box<Config>),
    /// Other sources of the same one.
    Share,
    /// The end.
    End,
}

impl Daemon<'_> {
    /// Follows one configuration to the end, or to what comes next.
    async fn follow(&self, config: &Config) -> Result<NextStep, CommandError> {
        let served = self.share.take(config, &self.cluster).await;
        self.warn_about_steps(&served);
        let sources = self.open_sources(&served).map_err(|error| self.invocation.classify(error))?;
        let mut setup = session::daemon_setup(&served.config, served.cluster.clone(), sources);
        setup.trace.clone_from(&self.trace);
        let (summary, summaries) = watch::channel(DaemonSummary::default());
        let mut status_task =
            Some(AbortOnDropHandle::new(tokio::spawn(report_status(self.service.clone(), summaries))));
        let stop = self.signals.stop().child_token();
        let reconciler = Reconciler::new(setup, RunMode::Daemon, self.listener.clone());
        let reconciler = reconciler.with_summary(summary).with_recorder(self.recorder.clone());
        let reconciler = reconciler.with_metrics(self.metrics.clone()).with_retired_sources(&served.retired);
        let reconciler = reconciler.with_end_token(self.signals.stop().clone());
        let recipients = served.config.recipients();
        let are_others = self.recipients.send_if_modified(|known| {
            let changed = *known != recipients;
            *known = recipients;
            changed
        });
        if are_others {
            config.commit_status_errors().iter().for_each(|unseen| tracing::warn!("{unseen}"));
        }
        self.running.send_replace(Some(reconciler.query_sender()));
        let mut running = std::pin::pin!(reconciler.run(stop.clone()));
        let mut next = None;
        let ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                () = self.signals.reload(), if next.is_none() => {
                    let open = |config: &Config| self.sources(config);
                    if let ReloadResult::Changed(newer) = reload(self.invocation, config, self.service, open) {
                        next = Some(NextStep::Configuration(newer));
                        // The next loop says when it runs, and not this one.
                        status_task = None;
                        // Its writes on their way are answered first, as at the end.
                        stop.cancel();
                    }
                }
                changed = self.share.wait_for_change(&served), if next.is_none() => {
                    changed?;
                    next = Some(NextStep::Share);
                    stop.cancel();
                }
            }
        };
        drop(status_task);
        self.share.stop_serving();
        self.stepped.set(ended?.stepped);
        Ok(next.filter(|_| !self.signals.stop().is_cancelled()).unwrap_or(NextStep::End))
    }

    /// Logs which workloads stay at a step, as this process serves their source no more, and nobody
    /// is to take it over.
    fn warn_about_steps(&self, served: &ServedSources) {
        for SteppedWorkload { source, id, shown } in self.stepped.take() {
            if served.retired.contains(&source)
                && let Some(text) = left_step_text(&id, shown)
            {
                tracing::warn!(%source, object = %id, "the source is no longer served: {text}");
            }
        }
    }

    /// Opens the served sources. A faulty source in the cluster harms none of the others.
    fn open_sources(&self, served: &ServedSources) -> Result<Vec<SourceSetup>, CommandError> {
        let opened = served.config.sources.iter().filter_map(|source| {
            if !served.is_custom(&source.name) {
                return Some(self.open(source));
            }
            let opened = match source.life {
                SourceLifecycle::Active => session::awaited_setup(source, &self.state),
                SourceLifecycle::Deleting => session::ending_setup(source, &self.state),
            };
            opened.inspect_err(|error| self.share.set_unusable(&source.name, error)).ok().map(Ok)
        });
        opened.collect()
    }

    /// Returns the sources of a file or the command line, ready to be followed.
    fn sources(&self, config: &Config) -> Result<Vec<SourceSetup>, CommandError> {
        config.sources.iter().map(|source| self.open(source)).collect()
    }

    fn open(&self, source: &SourceConfig) -> Result<SourceSetup, CommandError> {
        // A configured location has a declared kind; a path on the command line is inspected.
        let open = if self.invocation.args.config.is_some() {
            session::followed_setup
        } else {
            session::awaited_setup
        };
        open(source, &self.state)
    }
}

/// Reports to the service manager that all of these parts make progress.
fn watch_over(
    service: &SystemdService,
    heartbeats: &Heartbeats,
    interval: Option<Duration>,
) -> Result<WatchdogGuard, CommandError> {
    report::start_watchdog(service.clone(), heartbeats.clone(), interval).map_err(|error| {
        CommandError::new(ErrorClass::Internal, format!("no thread can be started: {error}"))
    })
}

/// Connects, and waits for a credential plugin that gives nothing yet: what it asks may be away as
/// the API server may.
async fn connect_when_ready(
    config: &Config,
    measures: &CallMetrics,
    heartbeats: &Heartbeats,
    service: &SystemdService,
) -> Result<Cluster, CommandError> {
    let mut wait = Duration::from_secs(1);
    let heartbeat = heartbeats.expect_part("the credential plugin of the kubeconfig", LOGIN_TIMEOUT);
    loop {
        heartbeat.record(LOGIN_TIMEOUT);
        service.extend(LOGIN_TIMEOUT);
        match session::connect_watched(config, measures, heartbeats).await {
            Err(error) if error.exit == ExitStatus::Unreachable => {
                tracing::warn!("{error}; retry in {} s", wait.as_secs());
                service.set_topic(StatusTopic::State, "waiting for the credential plugin of the kubeconfig");
                service.notify_ready();
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(MAX_CREDENTIALS_DELAY);
            }
            known => return known,
        }
    }
}

/// Waits for the cluster that the state is of. While it does not answer, the service is up all the
/// same, and takes a new configuration.
async fn wait_for_state(
    typed: Invocation<'_>,
    config: &mut Config,
    cluster: &Cluster,
    signals: &Signals,
    service: &SystemdService,
) -> Result<PathBuf, CommandError> {
    // Where the state is takes a new process.
    let first = config.clone();
    let mut answer = std::pin::pin!(session::wait_for_state(&first, cluster));
    if let Ok(answered) = tokio::time::timeout(FIRST_ANSWER_TIMEOUT, &mut answer).await {
        return answered;
    }
    service.set_topic(StatusTopic::State, "waiting for the API server");
    service.notify_ready();
    // Where nothing is: nobody knows yet whose state there will be.
    let nowhere = Path::new("/nonexistent");
    let open = |config: &Config| {
        let opened = config.sources.iter().map(|source| session::followed_setup(source, nowhere));
        opened.collect::<Result<Vec<_>, _>>()
    };
    loop {
        tokio::select! {
            answered = &mut answer => return answered,
            () = signals.reload() => {
                if let ReloadResult::Changed(newer) = reload(typed, config, service, open) {
                    *config = *newer;
                    service.notify_ready();
                }
            }
        }
    }
}

/// Says in the status line that the API server does not answer, while it does not.
async fn report_silence(service: SystemdService, mut silence: watch::Receiver<Option<Timestamp>>) {
    loop {
        let since = *silence.borrow_and_update();
        if let Some(since) = since {
            // One answer that is lost is no news.
            let brief = tokio::time::timeout(report::SILENCE_THRESHOLD, silence.changed()).await;
            match brief {
                Ok(Ok(())) => continue,
                Ok(Err(_)) => return,
                Err(_) => service.set_topic(StatusTopic::Server, report::silence_text(since)),
            }
        } else {
            service.set_topic(StatusTopic::Server, "");
        }
        if silence.changed().await.is_err() {
            return;
        }
    }
}

/// Keeps the status line current; the first summary shows that the loop runs.
async fn report_status(service: SystemdService, mut summaries: watch::Receiver<DaemonSummary>) {
    let mut is_first = true;
    while summaries.changed().await.is_ok() {
        let text = summaries.borrow_and_update().to_string();
        service.set_topic(StatusTopic::State, text);
        if std::mem::take(&mut is_first) {
            service.notify_ready();
        }
    }
}
