//! The process that is asked about, and how long an answer of its loop is waited for.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::watch;

use super::answer::ErrorResponse;
use crate::daemon::{FetchResult, LoopQueries};
use crate::heartbeat::Heartbeats;
use crate::report::{DaemonStatus, EndpointMetrics, EventRecorder, Metrics, SystemdService};

/// The loop answers within milliseconds: one that takes longer is stuck.
const LOOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The process behind the routes.
#[derive(Clone, Debug)]
pub(crate) struct ProcessHandle {
    /// The loop that runs now; none before the first one, and another one after each new
    /// configuration.
    pub running: watch::Receiver<Option<LoopQueries>>,
    /// The heartbeats.
    pub heartbeats: Heartbeats,
    /// The metrics, over all loops.
    pub metrics: Metrics,
    /// The service manager's view, which knows of new configurations.
    pub service: SystemdService,
    /// The events, over all configurations.
    pub recorder: EventRecorder,
    /// The metrics of the endpoints.
    pub endpoints: EndpointMetrics,
}

impl ProcessHandle {
    /// Returns a handle whose endpoints have not answered anything yet.
    pub(crate) fn new(
        running: watch::Receiver<Option<LoopQueries>>,
        heartbeats: &Heartbeats,
        metrics: Metrics,
        service: SystemdService,
        recorder: EventRecorder,
    ) -> Self {
        let (heartbeats, endpoints) = (heartbeats.clone(), EndpointMetrics::default());
        Self { running, heartbeats, metrics, service, recorder, endpoints }
    }

    pub(super) fn queries(&self) -> Result<LoopQueries, ErrorResponse> {
        let none =
            || ErrorResponse(StatusCode::SERVICE_UNAVAILABLE, "the loop has not started yet".to_owned());
        self.running.borrow().clone().ok_or_else(none)
    }

    /// Hints that a source has something new; none while no loop answers.
    pub(super) async fn fetch(&self, source: &str) -> Option<FetchResult> {
        wait_for_loop(self.queries().ok()?.fetch(source)).await.ok()
    }

    /// Returns whether the loop that runs has a source of this name.
    pub(super) async fn has_source(&self, source: &str) -> bool {
        let Ok(queries) = self.queries() else { return false };
        wait_for_loop(queries.has_source(source)).await.unwrap_or(false)
    }

    pub(super) async fn status(&self) -> Result<DaemonStatus, ErrorResponse> {
        wait_for_loop(self.queries()?.status()).await
    }
}

pub(super) async fn wait_for_loop<T>(answer: impl Future<Output = Option<T>>) -> Result<T, ErrorResponse> {
    wait_within(LOOP_TIMEOUT, "the loop", answer).await
}

pub(super) async fn wait_within<T>(
    time: Duration,
    who: &str,
    answer: impl Future<Output = Option<T>>,
) -> Result<T, ErrorResponse> {
    match tokio::time::timeout(time, answer).await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "the loop has ended")),
        Err(_) => {
            let why = format!("{who} has not answered for {} s", time.as_secs());
            Err(ErrorResponse(StatusCode::SERVICE_UNAVAILABLE, why))
        }
    }
}
