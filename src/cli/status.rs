//! `rhumb status`.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::{Global, OverviewArgs, OverviewOutput};
use super::overview::{self, Detail, Overview};
use super::settings::{self, Asked};
use super::socket::{Socket, Unanswered};
use super::survey::survey;
use super::target::Desk;
use super::view::{self, View};
use super::{CommandError, Exit, ObjectName, Terminal, rollout, session};
use crate::object::Class;
use crate::report::{ObjectStatus, VERSION};

/// What is watched is looked at so often: the daemon computes an answer in milliseconds, the cluster reads lists.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_AT_CLUSTER: Duration = Duration::from_secs(5);

/// Who tells where things stand.
pub(super) enum Teller {
    /// A daemon.
    Daemon(Socket),
    /// The cluster alone.
    Cluster(Desk),
}

impl Teller {
    /// Finds out who answers. That it is not the daemon is told on standard error.
    pub(super) async fn find(
        global: &Global,
        socket: Option<&std::path::Path>,
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        let asked = settings::asked(global, socket)?;
        if let Asked::Daemon(path) | Asked::First(path) = &asked {
            let socket = Socket::at(path);
            match (socket.get("/v1/status").await, &asked) {
                (Ok(_), _) => return Ok(Self::Daemon(socket)),
                (Err(why), Asked::Daemon(_)) => return Err(why.into()),
                (Err(why), _) => terminal.tell(&format!("{why}; read from the cluster\n")),
            }
        }
        rollout::desk(global).await.map(Self::Cluster)
    }

    /// Everything, the objects that are as they should be left out.
    pub(super) async fn view(&self) -> Result<View, CommandError> {
        match self {
            Self::Daemon(socket) => Ok(View::of_daemon(socket).await?),
            Self::Cluster(desk) => {
                let mut view = survey(desk).await?;
                view.objects.retain(|object| !object.phase.is_well());
                Ok(view)
            }
        }
    }

    /// All objects, those among them that are as they should be too, with the rollout budget beside them.
    async fn objects(&self) -> Result<View, CommandError> {
        match self {
            Self::Daemon(socket) => {
                let mut view = View::of_daemon(socket).await?;
                view.objects = view::objects(socket).await?;
                Ok(view)
            }
            Self::Cluster(desk) => survey(desk).await,
        }
    }

    /// How often it is asked.
    pub(super) fn rhythm(&self) -> Duration {
        match self {
            Self::Daemon(_) => LOOK,
            Self::Cluster(_) => LOOK_AT_CLUSTER,
        }
    }
}

impl From<Unanswered> for CommandError {
    fn from(why: Unanswered) -> Self {
        let hint = match &why {
            Unanswered::Silent { .. } => {
                "is `rhumb run` up, and may you connect? In a service the group of the unit may"
            }
            Unanswered::Refused(_) => "its log says more",
        };
        Self::new(Class::Transient, why.to_string()).hint(hint)
    }
}

/// What is printed, and whether all of it is as it should be.
struct Shown {
    text: String,
    overview: Option<Overview>,
    healthy: bool,
}

/// Carries the command out.
pub(super) fn carry_out(
    args: &OverviewArgs,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    session::runtime()?.block_on(async {
        let teller = Teller::find(global, args.socket.socket.as_deref(), terminal).await?;
        let first = shown(&teller, args, global, terminal).await?;
        let healthy = first.healthy;
        if args.watch {
            watch(&teller, args, global, terminal, first).await?;
        } else {
            print(terminal, args, &first.text)?;
        }
        Ok(if args.exit_code && !healthy { Exit::Differs } else { Exit::Done })
    })
}

fn print(terminal: &Terminal, args: &OverviewArgs, text: &str) -> Result<(), CommandError> {
    match args.output {
        OverviewOutput::Json => terminal.hand_over(text),
        OverviewOutput::Text | OverviewOutput::Wide => terminal.print(text),
    }
}

/// Shows each change, until the program is ended or nobody reads any more.
async fn watch(
    teller: &Teller,
    args: &OverviewArgs,
    global: &Global,
    terminal: &Terminal,
    first: Shown,
) -> Result<(), CommandError> {
    let redraws = terminal.redraws() && args.output != OverviewOutput::Json;
    let mut last = first;
    let mut told = String::new();
    if redraws {
        terminal.redraw(&last.text)?;
    } else {
        print(terminal, args, &last.text)?;
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(teller.rhythm()) => {}
            () = terminal.unread() => return Err(CommandError::unread()),
        }
        let now = match shown(teller, args, global, terminal).await {
            Ok(now) => now,
            // It may be down for a moment, or for good, or be back and know nothing yet: whoever watches is told once.
            Err(error) if matches!(error.exit, Exit::Unreachable | Exit::Unreadable) => {
                let why = error.to_string();
                if told != why {
                    terminal.tell(&format!("{why}; asked again\n"));
                    told = why;
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        told.clear();
        if now.text != last.text {
            match (&now.overview, &last.overview) {
                _ if redraws => terminal.redraw(&now.text)?,
                (Some(now), Some(last)) => {
                    for line in now.news(last) {
                        terminal.print(&format!("{line}\n"))?;
                    }
                }
                _ => print(terminal, args, &now.text)?,
            }
        }
        last = now;
    }
}

async fn shown(
    teller: &Teller,
    args: &OverviewArgs,
    global: &Global,
    terminal: &Terminal,
) -> Result<Shown, CommandError> {
    let about = args.about.as_ref();
    if let Some(name) = about.filter(|name| name.source().is_none()) {
        return object(teller, name, args, global, terminal).await;
    }
    let view = teller.view().await?;
    let view = match about.and_then(ObjectName::source) {
        None => view,
        Some(name) => view.of_source(name).ok_or_else(|| {
            CommandError::usage(format!("there is no source {name}")).hint("`rhumb status` lists them")
        })?,
    };
    let healthy = view.is_healthy();
    let detail = if args.output == OverviewOutput::Wide { Detail::Wide } else { Detail::Short };
    let overview = Overview::of(&view, detail);
    let text = match (args.output, teller) {
        (OverviewOutput::Json, Teller::Daemon(socket)) if about.is_none() => {
            socket.get("/v1/status").await?.trim_end().to_owned() + "\n"
        }
        (OverviewOutput::Json, _) => form(&view).to_string() + "\n",
        _ => overview.text(terminal.palette()),
    };
    let overview = (args.output != OverviewOutput::Json).then_some(overview);
    Ok(Shown { text, overview, healthy })
}

/// The form of the daemon's answer. From the cluster alone there is no process in it.
fn form(view: &View) -> Value {
    let mut form = json!({
        "apiVersion": VERSION,
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
    teller: &Teller,
    name: &ObjectName,
    args: &OverviewArgs,
    global: &Global,
    terminal: &Terminal,
) -> Result<Shown, CommandError> {
    let view = teller.objects().await?;
    let found = match view::meant(&view.objects, name, global.namespace.as_ref())[..] {
        [] => {
            return Err(CommandError::usage(format!("no source has {name}"))
                .hint("name its namespace with -n, or before it: shop/deployment.apps/web"));
        }
        [one] => one.clone(),
        [..] => {
            return Err(CommandError::usage(format!("{name} is there more than once"))
                .hint("name its namespace with -n, and its group behind its kind"));
        }
    };
    let text = match (args.output, teller) {
        (OverviewOutput::Json, Teller::Daemon(socket)) => {
            socket.get(&view::page(&found.object)).await?.trim_end().to_owned() + "\n"
        }
        (OverviewOutput::Json, Teller::Cluster(_)) => object_form(&found).to_string() + "\n",
        _ => overview::one(&found, &view.rollout, terminal.palette()),
    };
    Ok(Shown { text, overview: None, healthy: found.phase.is_well() })
}

fn object_form(object: &ObjectStatus) -> Value {
    let mut form = json!(object);
    form["apiVersion"] = VERSION.into();
    form
}
