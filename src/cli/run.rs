//! `rhumb run`.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::args::RunArgs;
use super::exit::plain;
use super::{CommandError, Exit, Terminal, session, settings};
use crate::config::Config;
use crate::daemon::{Reconciler, Until};
use crate::object::Class;
use crate::{report, serve};

/// How long the end waits for what still runs.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// Carries the command out.
pub(super) fn carry_out(args: &RunArgs, config: Config, _terminal: &Terminal) -> Result<Exit, CommandError> {
    let runtime = session::runtime()?;
    let ended = runtime.block_on(run(args, &config));
    // Ends git's processes. A thread that waits for a dead disk or a credential plugin is not waited for.
    runtime.shutdown_timeout(SHUTDOWN);
    ended
}

async fn run(args: &RunArgs, config: &Config) -> Result<Exit, CommandError> {
    let stop = CancellationToken::new();
    stop_on_signals(&stop)?;
    let Some(cluster) = stop.run_until_cancelled(session::connect(config)).await else {
        return Ok(Exit::Done);
    };
    let cluster = cluster?;
    let Some(state) = stop.run_until_cancelled(session::patient_state(config, &cluster)).await else {
        return Ok(Exit::Done);
    };
    let state = state?;
    // What a file configures says what it is, a path on the command line shows it.
    let open = if args.config.is_some() { session::followed } else { session::awaited };
    let sources = config.sources.iter().map(|source| open(source, &state));
    let setup = session::daemon(config, cluster, sources.collect::<Result<_, _>>()?);
    let (listener, mut told) = mpsc::unbounded_channel();
    let log = tokio::spawn(async move {
        while let Some((id, told)) = told.recv().await {
            report::log(&id, &told);
        }
    });
    let reconciler = Reconciler::new(setup, Until::Stopped, listener);
    serve_socket(&reconciler, &stop).await;
    let ended = reconciler.run(stop).await;
    // The loop has ended and with it the only sender: what is left is written down.
    let _ = log.await;
    ended?;
    Ok(Exit::Done)
}

/// Answers on the socket in the service's runtime directory; without one there is none. What keeps it from opening
/// keeps nothing else from running.
async fn serve_socket(reconciler: &Reconciler, stop: &CancellationToken) {
    let Some(path) = settings::socket() else { return };
    match serve::bind(&path).await {
        Ok(listener) => {
            let router = serve::router(reconciler.inquiries(), reconciler.metrics());
            tokio::spawn(serve::serve(listener, router, stop.clone()));
        }
        Err(error) => tracing::warn!("nothing is answered about the status: {error}"),
    }
}

/// SIGTERM and Ctrl-C end the loop once the writes on their way are answered.
fn stop_on_signals(stop: &CancellationToken) -> Result<(), CommandError> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signals = signal(kind).map_err(|error| {
            CommandError::new(Class::Internal, format!("signals cannot be received: {}", plain(&error)))
        })?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            tracing::info!("stopping");
            stop.cancel();
        });
    }
    Ok(())
}
