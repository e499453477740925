//! The signals that `rhumb run` obeys.

use std::io::IsTerminal as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::CommandError;
use super::exit::os_message;
use crate::object::ErrorClass;
use crate::report::SystemdService;

/// The action on SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HangupAction {
    /// The configuration is read again.
    Reloads,
    /// The program ends, as its terminal is gone.
    Ends,
}

impl HangupAction {
    /// Returns the action on a hangup. Only a service has a file to read again; on a terminal,
    /// hanging up ends the program.
    pub(super) fn of_a_service_with(file: Option<&std::path::Path>) -> Self {
        if file.is_some() && !std::io::stdin().is_terminal() { Self::Reloads } else { Self::Ends }
    }
}

/// The signals from the start of the program on.
pub(super) struct Signals {
    stop: CancellationToken,
    abort: CancellationToken,
    reload: Arc<Notify>,
    end: StopTime,
}

/// The moment of the first order to end. Every wait at the end counts from it, or the waits would
/// add up. Cheap to clone; all clones share the moment.
#[derive(Clone, Debug, Default)]
pub(super) struct StopTime(Arc<OnceLock<Instant>>);

impl StopTime {
    /// Returns the rest of a time limit; all of it before the order to end.
    pub(super) fn time_left(&self, of: Duration) -> Duration {
        self.0.get().map_or(of, |since| of.saturating_sub(since.elapsed()))
    }

    fn begin(&self, now: Instant) {
        let _ = self.0.set(now);
    }
}

impl Signals {
    /// Begins to listen. SIGTERM and Ctrl-C end the loop once the writes on their way are answered;
    /// a second one ends the program at once.
    pub(super) fn listen(hangup: HangupAction, service: SystemdService) -> Result<Self, CommandError> {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let (reload, end) = (Arc::new(Notify::new()), StopTime::default());
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = listen_for(kind)?;
            let (stop, abort, service, end) = (stop.clone(), abort.clone(), service.clone(), end.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    if stop.is_cancelled() {
                        tracing::warn!("second signal: stopping at once");
                        abort.cancel();
                        return;
                    }
                    end.begin(Instant::now());
                    tracing::info!("stopping");
                    service.notify_stopping();
                    stop.cancel();
                }
            });
        }
        if hangup == HangupAction::Reloads {
            let mut signals = listen_for(SignalKind::hangup())?;
            let reload = reload.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    reload.notify_one();
                }
            });
        }
        Ok(Self { stop, abort, reload, end })
    }

    /// Returns the token that is cancelled when the program is to end.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns when the first order to end came.
    pub(super) fn end(&self) -> &StopTime {
        &self.end
    }

    /// Waits until the first order to end is so old.
    pub(super) async fn wait_until_overdue(&self, age: Duration) {
        self.stop.cancelled().await;
        tokio::time::sleep(self.end.time_left(age)).await;
    }

    /// Waits for the second order to end.
    pub(super) async fn wait_for_abort(&self) {
        self.abort.cancelled().await;
    }

    /// Waits until the configuration is to be read again; one order is remembered while nobody
    /// waits.
    pub(super) async fn reload(&self) {
        self.reload.notified().await;
    }
}

/// Returns a kind of signal, from now on.
pub(super) fn listen_for(kind: SignalKind) -> Result<tokio::signal::unix::Signal, CommandError> {
    signal(kind).map_err(|error| {
        CommandError::new(ErrorClass::Internal, format!("signals cannot be received: {}", os_message(&error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_counts_from_the_first_order() {
        let (end, second) = (StopTime::default(), Duration::from_secs(1));
        assert_eq!(end.time_left(second * 5), second * 5);
        let Some(before) = Instant::now().checked_sub(second * 4) else { return };
        end.clone().begin(before);
        end.begin(Instant::now());
        assert_eq!(end.time_left(second * 3), Duration::ZERO);
        // Counted from the second order, more than a minute would be left.
        assert!((second..=second * 60).contains(&end.time_left(second * 64)));
    }
}
