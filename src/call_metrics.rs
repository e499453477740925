//! The metrics of calls to the API server, and the time since which it has not answered.
//!
//! `cluster` counts and `report` shows them, so that neither uses the other.

use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

/// Upper bounds of the histogram of calls, in seconds: the aims of the API server's own service
/// levels, and what is far from them.
const CALL_BUCKETS_SECONDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 30.0];

/// The code of a call that had no answer.
const NO_ANSWER_WORD: &str = "none";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    verb: String,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InformerLabels {
    kind: String,
}

/// Counters and histograms of all calls of one cluster; a clone counts the same.
#[derive(Clone, Debug)]
pub struct CallMetrics {
    calls: Family<CallLabels, Counter>,
    seconds: Family<VerbLabels, Histogram, fn() -> Histogram>,
    restarts: Family<InformerLabels, Counter>,
    unreachable_since: watch::Sender<Option<Timestamp>>,
}

impl Default for CallMetrics {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(CALL_BUCKETS_SECONDS)),
            restarts: Family::default(),
            unreachable_since: watch::Sender::new(None),
        }
    }
}

impl CallMetrics {
    /// Registers these metrics.
    pub fn register(&self, registry: &mut Registry) {
        let calls = "Calls to the API server by HTTP method and status code";
        registry.register("rhumb_api_requests", calls, self.calls.clone());
        let seconds = "Seconds until the whole answer of a call was there";
        registry.register("rhumb_api_request_seconds", seconds, self.seconds.clone());
        let restarts = "Watches that ended and were begun again";
        registry.register("rhumb_watch_restarts", restarts, self.restarts.clone());
    }

    /// Counts a call, with its answer if there was one.
    pub(crate) fn record_call(&self, method: &Method, code: Option<StatusCode>, took: Duration) {
        let verb = method.as_str().to_owned();
        let code = code.map_or_else(|| NO_ANSWER_WORD.to_owned(), |code| code.as_u16().to_string());
        self.calls.get_or_create(&CallLabels { verb: verb.clone(), code }).inc();
        self.seconds.get_or_create(&VerbLabels { verb }).observe(took.as_secs_f64());
    }

    /// Returns the time since which the server has not answered; none while it answers.
    pub fn unreachable_since(&self) -> watch::Receiver<Option<Timestamp>> {
        self.unreachable_since.subscribe()
    }

    /// Records that the server has answered.
    pub(crate) fn record_answer(&self) {
        self.unreachable_since.send_if_modified(|since| since.take().is_some());
    }

    /// Records that the server could not be reached, or did not answer in time.
    pub(crate) fn record_silence(&self) {
        self.unreachable_since.send_if_modified(|since| {
            let is_new = since.is_none();
            since.get_or_insert_with(Timestamp::now);
            is_new
        });
    }

    /// Counts a watch that ended and begins again.
    pub(crate) fn record_watch_restart(&self, kind: &str) {
        self.restarts.get_or_create(&InformerLabels { kind: kind.to_owned() }).inc();
    }
}
