//! What signals ask of `rhumb run`.

use std::io::IsTerminal as _;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::CommandError;
use super::exit::plain;
use crate::object::Class;
use crate::report::Service;

/// Who listens for SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hangup {
    /// It means to read the configuration again.
    Reloads,
    /// It means what it always does: the terminal is gone, and so is the program.
    Ends,
}

impl Hangup {
    /// Only a service has a file to read again. On a terminal, hanging up ends the program.
    pub(super) fn of_a_service_with(file: Option<&std::path::Path>) -> Self {
        if file.is_some() && !std::io::stdin().is_terminal() { Self::Reloads } else { Self::Ends }
    }
}

/// The signals from the start of the program on.
pub(super) struct Signals {
    stop: CancellationToken,
    abort: CancellationToken,
    reload: std::sync::Arc<Notify>,
}

impl Signals {
    /// Begins to listen. SIGTERM and Ctrl-C end the loop once the writes on their way are answered; a second
    /// one ends the program at once.
    pub(super) fn listen(hangup: Hangup, service: Service) -> Result<Self, CommandError> {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let reload = std::sync::Arc::new(Notify::new());
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = received(kind)?;
            let (stop, abort, service) = (stop.clone(), abort.clone(), service.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    if stop.is_cancelled() {
                        tracing::warn!("told to stop a second time: ending at once");
                        abort.cancel();
                        return;
                    }
                    tracing::info!("stopping");
                    service.stopping();
                    stop.cancel();
                }
            });
        }
        if hangup == Hangup::Reloads {
            let mut signals = received(SignalKind::hangup())?;
            let reload = reload.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    reload.notify_one();
                }
            });
        }
        Ok(Self { stop, abort, reload })
    }

    /// What is cancelled when the program is to end.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits for the second order to end.
    pub(super) async fn aborted(&self) {
        self.abort.cancelled().await;
    }

    /// Waits until the configuration is to be read again; one order is remembered while nobody waits.
    pub(super) async fn reload(&self) {
        self.reload.notified().await;
    }
}

/// A kind of signal, from now on.
pub(super) fn received(kind: SignalKind) -> Result<tokio::signal::unix::Signal, CommandError> {
    signal(kind).map_err(|error| {
        CommandError::new(Class::Internal, format!("signals cannot be received: {}", plain(&error)))
    })
}
