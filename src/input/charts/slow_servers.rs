//! The servers of charts that a fetch was waiting for in vain.
//!
//! A source fetches its charts one after the other, and nothing of it advances meanwhile. So after
//! such a wait no other chart of that server is asked for in the same pass. The chart itself is
//! left alone for longer than two passes are apart. So the others get their turn before it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::pull::PulledChart;

/// A fetch that fails after this time was waiting for its server.
const MIN_WAIT: Duration = Duration::from_mins(1);
/// The time for which a server is left alone: longer than what is left of a pass.
const SERVER_PAUSE: Duration = Duration::from_mins(1);
/// The time for which a chart is left alone: longer than the longest pause between two passes.
const CHART_PAUSE: Duration = Duration::from_mins(6);
/// The servers and charts that are remembered: more than the charts of one root.
const MAX_REMEMBERED: usize = 1_000;

/// A server, or a chart of it with its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SlowPart {
    Server(String),
    Chart([String; 3]),
}

impl SlowPart {
    fn of(chart: PulledChart<'_>) -> [Self; 2] {
        let PulledChart { address, name, version } = chart;
        let repository = address.to_string();
        [Self::Server(address.host()), Self::Chart([repository, name.to_owned(), version.to_owned()])]
    }
}

/// The servers and charts that are left alone, and until when.
#[derive(Debug, Default)]
pub(super) struct SlowServers(BTreeMap<SlowPart, Instant>);

impl SlowServers {
    /// Notes that a fetch failed, which had begun at `start`.
    pub(super) fn note_failure(&mut self, chart: PulledChart<'_>, start: Instant, now: Instant) {
        if now.saturating_duration_since(start) < MIN_WAIT {
            return;
        }
        self.0.retain(|_, until| *until > now);
        if self.0.len() < MAX_REMEMBERED {
            self.0.extend(SlowPart::of(chart).into_iter().zip([now + SERVER_PAUSE, now + CHART_PAUSE]));
        }
    }

    /// Returns whether a chart is not asked for now.
    pub(super) fn is_left_alone(&self, chart: PulledChart<'_>, now: Instant) -> bool {
        SlowPart::of(chart).iter().any(|part| self.0.get(part).is_some_and(|until| now < *until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ChartAddress;

    #[test]
    fn a_server_and_its_slow_chart_is_left_alone_for_a_while() {
        let [stable, other_folder, other_port] = [
            "https://charts.example.org/stable",
            "https://charts.example.org/other",
            "https://charts.example.org:8443/stable",
        ]
        .map(|text| text.parse::<ChartAddress>().unwrap());
        let chart = |address, name| PulledChart { address, name, version: "1.0.0" };
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut servers = SlowServers::default();
        servers.note_failure(chart(&stable, "quick"), start, after(59));
        assert!(!servers.is_left_alone(chart(&stable, "quick"), after(59)));
        servers.note_failure(chart(&stable, "slow"), start, after(120));
        let check = |address, name, seconds, expected| {
            assert_eq!(
                servers.is_left_alone(chart(address, name), after(seconds)),
                expected,
                "{address} {name} {seconds}"
            );
        };
        check(&stable, "slow", 120, true);
        check(&stable, "other", 179, true);
        check(&other_folder, "slow", 179, true);
        check(&other_port, "slow", 120, false);
        // The next pass goes on with the others.
        check(&stable, "other", 180, false);
        check(&stable, "slow", 180, true);
        check(&stable, "slow", 479, true);
        check(&stable, "slow", 480, false);
    }
}
