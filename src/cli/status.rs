//! `rhumb status`.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::{GlobalArgs, StatusArgs, StatusOutputFormat};
use super::cluster_status::read_cluster_status;
use super::overview::{self, DetailLevel, Overview};
use super::settings::{self, StatusSource};
use super::socket::{DaemonSocket, SocketError};
use super::status_view::{self, StatusView};
use super::target::ClusterSession;
use super::{CommandError, ExitStatus, ObjectArgument, Terminal, rollout, session};
use crate::object::ErrorClass;
use crate::report::{ObjectStatus, STATUS_VERSION};

/// The polling interval: the daemon computes an answer in milliseconds, the cluster lists objects.
const DAEMON_POLL_INTERVAL: Duration = Duration::from_secs(1);
const CLUSTER_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The reader of the status.
pub(super) enum StatusReader {
    /// A daemon.
    Daemon(DaemonSocket),
    /// The cluster alone.
    Cluster(ClusterSession),
}

impl StatusReader {
    /// Finds out who answers. That it is not the daemon is said on standard error.
    pub(super) async fn find(
        global: &GlobalArgs,
        socket: Option<&std::path::Path>,
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        let origin = settings::status_source(global, socket)?;
        if let StatusSource::Daemon(path) | StatusSource::DaemonOrCluster(path) = &origin {
            let socket = DaemonSocket::new(path);
            match (socket.get("/v1/status").await, &origin) {
                (Ok(_), _) => return Ok(Self::Daemon(socket)),
                (Err(why), StatusSource::Daemon(_)) => return Err(why.into()),
                (Err(why), _) => terminal.report(&format!("{why}; read from the cluster\n")),
            }
        }
        rollout::open_session(global).await.map(Self::Cluster)
    }

    /// Reads everything but the objects that are well.
    pub(super) async fn read_view(&self) -> Result<StatusView, CommandError> {
        match self {
            Self::Daemon(socket) => Ok(StatusView::of_daemon(socket).await?),
            Self::Cluster(session) => {
                let mut view = read_cluster_status(session).await?;
                view.objects.retain(|object| !object.phase.is_well());
                Ok(view)
            }
        }
    }

    /// Returns all objects, those among them that are as they should be too, with the rollout
    /// budget beside them.
    async fn objects(&self) -> Result<StatusView, CommandError> {
        match self {
            Self::Daemon(socket) => {
                let mut view = StatusView::of_daemon(socket).await?;
                view.objects = status_view::objects(socket).await?;
                Ok(view)
            }
            Self::Cluster(session) => read_cluster_status(session).await,
        }
    }

    /// Returns how often it is asked.
    pub(super) fn poll_interval(&self) -> Duration {
        match self {
            Self::Daemon(_) => DAEMON_POLL_INTERVAL,
            Self::Cluster(_) => CLUSTER_POLL_INTERVAL,
        }
    }
}

impl From<SocketError> for CommandError {
    fn from(why: SocketError) -> Self {
        let hint = match &why {
            SocketError::Unreachable { .. } => {
                "is `rhumb run` up, and may you connect? In a service the group of the unit may"
            }
            SocketError::Refused(_) => "its log says more",
        };
        Self::new(ErrorClass::Transient, why.to_string()).hint(hint)
    }
}

/// The printed status, and whether everything is healthy.
struct StatusOutput {
    text: String,
    overview: Option<Overview>,
    healthy: bool,
}

/// Carries the command out.
pub(super) fn carry_out(
    args: &StatusArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    session::start_runtime()?.block_on(async {
        let reader = StatusReader::find(global, args.socket.socket.as_deref(), terminal).await?;
        let first = read_status(&reader, args, global, terminal).await?;
        let healthy = first.healthy;
        if args.watch {
            watch(&reader, args, global, terminal, first).await?;
        } else {
            print(terminal, args, &first.text)?;
        }
        Ok(if args.exit_code && !healthy { ExitStatus::Differs } else { ExitStatus::Done })
    })
}

fn print(terminal: &Terminal, args: &StatusArgs, text: &str) -> Result<(), CommandError> {
    match args.output {
        StatusOutputFormat::Json => terminal.write_output(text),
        StatusOutputFormat::Text | StatusOutputFormat::Wide => terminal.print(text),
    }
}

/// Shows each change, until the program is ended or nobody reads any more.
async fn watch(
    reader: &StatusReader,
    args: &StatusArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
    first: StatusOutput,
) -> Result<(), CommandError> {
    let redraws = terminal.is_redrawing() && args.output != StatusOutputFormat::Json;
    let mut last = first;
    let mut reported = String::new();
    if redraws {
        terminal.redraw(&last.text)?;
    } else {
        print(terminal, args, &last.text)?;
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(reader.poll_interval()) => {}
            () = terminal.wait_until_closed() => return Err(CommandError::closed_output()),
        }
        let now = match read_status(reader, args, global, terminal).await {
            Ok(now) => now,
            // It may be down for a moment, or for good, or be back and know nothing yet: whoever
            // watches is reported once.
            Err(error) if matches!(error.exit, ExitStatus::Unreachable | ExitStatus::Unreadable) => {
                let why = error.to_string();
                if reported != why {
                    terminal.report(&format!("{why}; retrying\n"));
                    reported = why;
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        reported.clear();
        if now.text != last.text {
            match (&now.overview, &last.overview) {
                _ if redraws => terminal.redraw(&now.text)?,
                (Some(now), Some(last)) => {
                    for line in now.new_lines(last) {
                        terminal.print(&format!("{line}\n"))?;
                    }
                }
                _ => print(terminal, args, &now.text)?,
            }
        }
        last = now;
    }
}

async fn read_status(
    reader: &StatusReader,
    args: &StatusArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<StatusOutput, CommandError> {
    let about = args.about.as_ref();
    if let Some(name) = about.filter(|name| name.source().is_none()) {
        return object(reader, name, args, global, terminal).await;
    }
    let view = reader.read_view().await?;
    let view = match about.and_then(ObjectArgument::source) {
        None => view,
        Some(name) => view.of_source(name).ok_or_else(|| {
            CommandError::usage_error(format!("there is no source {name}")).hint("`rhumb status` lists them")
        })?,
    };
    let healthy = view.is_healthy();
    let detail = if args.output == StatusOutputFormat::Wide { DetailLevel::Wide } else { DetailLevel::Short };
    let overview = Overview::of(&view, detail);
    let text = match (args.output, reader) {
        (StatusOutputFormat::Json, StatusReader::Daemon(socket)) if about.is_none() => {
            socket.get("/v1/status").await?.trim_end().to_owned() + "\n"
        }
        (StatusOutputFormat::Json, _) => status_json(&view).to_string() + "\n",
        _ => overview.text(terminal.palette()),
    };
    let overview = (args.output != StatusOutputFormat::Json).then_some(overview);
    Ok(StatusOutput { text, overview, healthy })
}

/// Returns the form of the daemon's answer. From the cluster alone there is no process in it.
fn status_json(view: &StatusView) -> Value {
    let mut form = json!({
        "apiVersion": STATUS_VERSION,
        "kind": "Status",
        "at": view.at,
        "sources": view.sources,
        "rollout": view.rollout,
    });
    if let Some(process) = &view.process {
        form["process"] = json!(process);
    }
    form
}

async fn object(
    reader: &StatusReader,
    name: &ObjectArgument,
    args: &StatusArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<StatusOutput, CommandError> {
    let view = reader.objects().await?;
    let found = match status_view::matching_objects(&view.objects, name, global.namespace.as_ref())[..] {
        [] => {
            return Err(CommandError::usage_error(format!("no source has {name}"))
                .hint("name its namespace with -n, or before it: shop/deployment.apps/web"));
        }
        [one] => one.clone(),
        [..] => {
            return Err(CommandError::usage_error(format!("{name} is there more than once"))
                .hint("name its namespace with -n, and its group behind its kind"));
        }
    };
    let text = match (args.output, reader) {
        (StatusOutputFormat::Json, StatusReader::Daemon(socket)) => {
            socket.get(&status_view::object_page(&found.object)).await?.trim_end().to_owned() + "\n"
        }
        (StatusOutputFormat::Json, StatusReader::Cluster(_)) => object_json(&found).to_string() + "\n",
        _ => overview::object_text(&found, &view.rollout, terminal.palette()),
    };
    Ok(StatusOutput { text, overview: None, healthy: found.phase.is_well() })
}

fn object_json(object: &ObjectStatus) -> Value {
    let mut form = json!(object);
    form["apiVersion"] = STATUS_VERSION.into();
    form
}
