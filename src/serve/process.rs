//! The process that is asked about, and how long an answer of its loop is waited for.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::watch;

use super::answer::Failed;
use crate::daemon::{Fetch, Inquiries};
use crate::pulse::Pulses;
use crate::report::{Doors, Metrics, Recorder, Service, Status};

/// The loop answers within milliseconds: one that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whom the routes ask.
#[derive(Clone, Debug)]
pub struct Process {
    /// The loop that runs now; none before the first one, and another one after each new configuration.
    pub running: watch::Receiver<Option<Inquiries>>,
    /// Which parts make progress.
    pub pulses: Pulses,
    /// What is counted, over all loops.
    pub metrics: Metrics,
    /// What the service manager hears, which knows of new configurations.
    pub service: Service,
    /// What happens, over all configurations.
    pub recorder: Recorder,
    /// What is counted of those who ask.
    pub doors: Doors,
}

impl Process {
    pub(super) fn inquiries(&self) -> Result<Inquiries, Failed> {
        let none = || Failed(StatusCode::SERVICE_UNAVAILABLE, "the loop has not begun yet".to_owned());
        self.running.borrow().clone().ok_or_else(none)
    }

    /// Hints that a source has something new; none while no loop answers.
    pub(super) async fn fetch(&self, source: &str) -> Option<Fetch> {
        asked(self.inquiries().ok()?.fetch(source)).await.ok()
    }

    /// Whether the loop that runs has a source of this name.
    pub(super) async fn knows(&self, source: &str) -> bool {
        let Ok(inquiries) = self.inquiries() else { return false };
        asked(inquiries.knows(source)).await.unwrap_or(false)
    }

    pub(super) async fn status(&self) -> Result<Status, Failed> {
        asked(self.inquiries()?.status()).await
    }
}

pub(super) async fn asked<T>(answer: impl Future<Output = Option<T>>) -> Result<T, Failed> {
    asked_within(PATIENCE, "the loop", answer).await
}

pub(super) async fn asked_within<T>(
    time: Duration,
    who: &str,
    answer: impl Future<Output = Option<T>>,
) -> Result<T, Failed> {
    match tokio::time::timeout(time, answer).await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(Failed::new(StatusCode::SERVICE_UNAVAILABLE, "the loop has ended")),
        Err(_) => {
            let why = format!("{who} has not answered for {} s", time.as_secs());
            Err(Failed(StatusCode::SERVICE_UNAVAILABLE, why))
        }
    }
}
