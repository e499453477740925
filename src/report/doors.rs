//! What is counted of those who ask over HTTP.
//!
//! Labels are closed words and names of sources: whoever asks for what is not there makes no new series.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::SourceStatus;

/// Stands for all names that no source has.
const OTHER: &str = "other";

/// Why somebody is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// They call it by a name that is not its own.
    Name,
    /// Another site's page asks.
    Site,
    /// They do not know the token.
    Token,
    /// They have as many connections as one may have.
    Connections,
}

/// What came of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The source is looked at.
    Taken,
    /// The signature is wrong, or there is no such source.
    Refused,
    /// Too many came.
    TooMany,
    /// Its body is too large, too slow or broken.
    Unreadable,
}

/// All of it.
const HEARD: [Heard; 4] = [Heard::Taken, Heard::Refused, Heard::TooMany, Heard::Unreadable];

impl Heard {
    const fn word(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused => "refused",
            Self::TooMany => "too-many",
            Self::Unreadable => "unreadable",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Hook {
    source: String,
    outcome: &'static str,
}

/// The counts; a clone counts the same.
#[derive(Clone, Debug)]
pub struct Doors {
    unanswered: Family<Why, Counter>,
    hooks: Family<Hook, Counter>,
    /// Of which sources webhooks are counted.
    sources: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for Doors {
    /// Each reason is there from the beginning, so that the first one shows as an increase.
    fn default() -> Self {
        let doors = Self { unanswered: Family::default(), hooks: Family::default(), sources: Arc::default() };
        for why in ["name", "site", "token", "connections"] {
            drop(doors.unanswered.get_or_create(&Why { why }));
        }
        doors
    }
}

impl Doors {
    /// Somebody was not answered.
    pub fn unanswered(&self, why: Unanswered) {
        let why = match why {
            Unanswered::Name => "name",
            Unanswered::Site => "site",
            Unanswered::Token => "token",
            Unanswered::Connections => "connections",
        };
        self.unanswered.get_or_create(&Why { why }).inc();
    }

    /// A webhook came, for a source of this name if there is one.
    pub fn hook(&self, source: Option<&str>, heard: Heard) {
        if let Some(source) = source {
            self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(source.to_owned());
        }
        let outcome = heard.word();
        self.hooks.get_or_create(&Hook { source: source.unwrap_or(OTHER).to_owned(), outcome }).inc();
    }

    /// Forgets the webhooks of sources that are gone.
    pub(super) fn forget_all_but(&self, sources: &[SourceStatus]) {
        let mut counted = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|name| {
            let stays = sources.iter().any(|source| source.name == *name);
            for heard in HEARD.into_iter().filter(|_| !stays) {
                self.hooks.remove(&Hook { source: name.clone(), outcome: heard.word() });
            }
            stays
        });
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let unanswered = "Requests and connections over HTTP that were not answered";
        registry.register("rhumb_http_refused", unanswered, self.unanswered.clone());
        registry.register("rhumb_hooks", "Webhooks by what came of them", self.hooks.clone());
    }
}
