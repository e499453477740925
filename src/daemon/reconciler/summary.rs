//! One line of where everything stands, kept current for whoever shows it.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Reconciler;
use crate::report::{Following, Summary};

/// It is made anew at most this often.
const PAUSE: Duration = Duration::from_secs(1);

/// Who is told, and when next.
#[derive(Debug, Default)]
pub(super) struct Telling {
    to: Option<watch::Sender<Summary>>,
    /// Not before this moment again.
    rest: Option<Instant>,
    /// When something is to be told that came too soon after the last.
    pub(super) due: Option<Instant>,
}

impl Reconciler {
    /// Keeps a summary current, from the first turn of the loop on.
    #[must_use]
    pub fn summed_up(mut self, to: watch::Sender<Summary>) -> Self {
        self.telling.to = Some(to);
        self
    }

    /// Tells how things stand after a turn.
    pub(super) fn tell_summary(&mut self, now: Instant) {
        let Some(to) = &self.telling.to else { return };
        if let Some(rest) = self.telling.rest.filter(|rest| *rest > now) {
            self.telling.due = Some(rest);
            return;
        }
        let summary = self.summary(now);
        to.send_if_modified(|known| {
            let changed = *known != summary;
            *known = summary;
            changed
        });
        (self.telling.rest, self.telling.due) = (Some(now + PAUSE), None);
    }

    fn summary(&self, now: Instant) -> Summary {
        let sources = self.engine.sources().iter().map(|source| Following {
            name: source.name.clone(),
            revision: source.head.clone(),
            incomplete: source.incomplete.is_some(),
        });
        let open = self.open.values().filter(|reason| !reason.is_as_asked());
        let wait = self.timers.resync.saturating_duration_since(now);
        let resync = jiff::Timestamp::now() + jiff::SignedDuration::try_from(wait).unwrap_or_default();
        Summary {
            sources: sources.collect(),
            objects: self.engine.entries().filter(|(_, entry)| !entry.wants.is_empty()).count(),
            unhealthy: self.unhealthy().len(),
            open: open.count(),
            rolling: self.engine.rolling(),
            // Made of two clocks: without its fraction it stays the same from turn to turn, nearly always.
            resync: resync.round(jiff::Unit::Second).unwrap_or(resync),
        }
    }
}
