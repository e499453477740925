//! The metrics of the HTTP endpoints.
//!
//! Labels are closed words and names of sources: a request for something that is not there makes no
//! new series.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::SourceStatus;

/// Stands for all names that no source has.
const OTHER_SOURCE_LABEL: &str = "other";

/// The reason for a rejected request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRejection {
    /// The client uses a host name that is not rhumb's own.
    Name,
    /// A page of another site asks.
    Site,
    /// The client does not know the token.
    Token,
    /// The client has as many connections as one may have.
    Connections,
}

/// The outcome of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebhookOutcome {
    /// The source is checked.
    Taken,
    /// The signature is wrong, or there is no such source.
    Refused,
    /// Too many came.
    TooMany,
    /// Its body is too large, too slow or broken.
    Unreadable,
}

/// All of it.
const WEBHOOK_OUTCOMES: [WebhookOutcome; 4] =
    [WebhookOutcome::Taken, WebhookOutcome::Refused, WebhookOutcome::TooMany, WebhookOutcome::Unreadable];

impl WebhookOutcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused => "refused",
            Self::TooMany => "too-many",
            Self::Unreadable => "unreadable",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    source: String,
    outcome: &'static str,
}

/// The counts; a clone counts the same.
#[derive(Clone, Debug)]
pub(crate) struct EndpointMetrics {
    unanswered: Family<RejectionLabels, Counter>,
    webhooks: Family<WebhookLabels, Counter>,
    /// The sources whose webhooks are counted.
    sources: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for EndpointMetrics {
    /// Returns counters with each reason from the beginning, so that the first rejection shows as
    /// an increase.
    fn default() -> Self {
        let endpoints =
            Self { unanswered: Family::default(), webhooks: Family::default(), sources: Arc::default() };
        for why in ["name", "site", "token", "connections"] {
            drop(endpoints.unanswered.get_or_create(&RejectionLabels { why }));
        }
        endpoints
    }
}

impl EndpointMetrics {
    /// Counts a request that was rejected.
    pub(crate) fn count_rejection(&self, why: RequestRejection) {
        let why = match why {
            RequestRejection::Name => "name",
            RequestRejection::Site => "site",
            RequestRejection::Token => "token",
            RequestRejection::Connections => "connections",
        };
        self.unanswered.get_or_create(&RejectionLabels { why }).inc();
    }

    /// Counts a webhook, for a source of this name if there is one.
    pub(crate) fn count_webhook(&self, source: Option<&str>, heard: WebhookOutcome) {
        if let Some(source) = source {
            self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(source.to_owned());
        }
        let outcome = heard.label();
        self.webhooks
            .get_or_create(&WebhookLabels {
                source: source.unwrap_or(OTHER_SOURCE_LABEL).to_owned(),
                outcome,
            })
            .inc();
    }

    /// Forgets the webhooks of sources that are gone.
    pub(super) fn forget_all_but(&self, sources: &[SourceStatus]) {
        let mut counted = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|name| {
            let stays = sources.iter().any(|source| source.name == *name);
            for heard in WEBHOOK_OUTCOMES.into_iter().filter(|_| !stays) {
                self.webhooks.remove(&WebhookLabels { source: name.clone(), outcome: heard.label() });
            }
            stays
        });
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let unanswered = "Requests and connections over HTTP that were not answered";
        registry.register("rhumb_http_refused", unanswered, self.unanswered.clone());
        registry.register("rhumb_webhooks", "Webhooks by outcome", self.webhooks.clone());
    }
}
