//! The status of everything in one line.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{DaemonStatus, Phase, SourceStatus};
use crate::object::{Revision, count_text};

/// The maximum number of sources named; of more, only their number.
const MAX_NAMED_SOURCES: usize = 3;

/// The silence of the API server after which it is reported: one answer that is lost is no news.
pub(crate) const SILENCE_THRESHOLD: Duration = Duration::from_secs(5);

/// Says since when the API server has answered nothing.
pub(crate) fn silence_text(since: Timestamp) -> String {
    format!("the API server has not answered since {}", since.strftime("%H:%M:%S UTC"))
}

/// The status of everything, for one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DaemonSummary {
    /// The sources, in the order of the configuration.
    pub sources: Vec<SourceSummary>,
    /// Objects of the sources.
    pub objects: usize,
    /// Objects that are applied, and not healthy.
    pub unhealthy: usize,
    /// Objects at their content from before a failed one.
    pub rolled_back: usize,
    /// Objects that stay at a failed content.
    pub quarantined: usize,
    /// Objects whose content the API server or rhumb refuses.
    pub refused: usize,
    /// Objects that wait.
    pub waiting: usize,
    /// Objects that an annotation takes out of our hands, in git or on the live object.
    pub left_alone: usize,
    /// Workloads whose pods are being replaced.
    pub rolling: usize,
    /// The time of the next resync, whatever happens before.
    pub resync: Timestamp,
}

/// One source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceSummary {
    /// Its name.
    pub name: Arc<str>,
    /// The newest revision that was read; none before the first read.
    pub revision: Option<Revision>,
    /// Indicates whether its newest state was incomplete.
    pub incomplete: bool,
}

/// Returns the number of objects that an annotation takes out of our hands.
pub(crate) fn left_alone_count(sources: &[SourceStatus]) -> usize {
    let left_alone = [Phase::LeftAlone, Phase::OptedOut, Phase::Held];
    let of = |source: &SourceStatus| {
        left_alone.iter().filter_map(|phase| source.objects.get(phase)).sum::<usize>()
    };
    sources.iter().map(of).sum()
}

impl DaemonSummary {
    /// Returns the summary of a status.
    pub(crate) fn of(status: &DaemonStatus) -> Self {
        let sources = status.sources.iter().map(|source| SourceSummary {
            name: source.name.as_str().into(),
            revision: source.revision.as_deref().map(Revision::new),
            incomplete: !source.complete,
        });
        let count = |phases: &[Phase]| {
            let of = |phase| status.sources.iter().filter_map(move |source| source.objects.get(phase));
            phases.iter().flat_map(of).sum()
        };
        let all = status.sources.iter().flat_map(|source| source.objects.values());
        let resync = status.process.next_resync;
        Self {
            sources: sources.collect(),
            objects: all.sum(),
            unhealthy: count(&[Phase::Progressing, Phase::Failed]),
            rolled_back: count(&[Phase::RolledBack]),
            quarantined: count(&[Phase::Quarantined]),
            refused: count(&[Phase::Refused]),
            waiting: count(&[Phase::Waiting, Phase::Paused, Phase::PruneWaiting]),
            left_alone: left_alone_count(&status.sources),
            rolling: count(&[Phase::RollingOut]),
            // Made of two clocks: without its fraction it stays the same from turn to turn, nearly
            // always.
            resync: resync.round(jiff::Unit::Second).unwrap_or(resync),
        }
    }
}

/// `shop at 1a2b3c4d5e6f: 20 objects, 1 rolled back, 1 rolling; next resync 12:05:10 UTC`.
impl fmt::Display for DaemonSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sources[..] {
            [] => f.write_str("serves no source now")?,
            named if named.len() <= MAX_NAMED_SOURCES => {
                for (number, source) in named.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    write!(f, "{comma}{source}")?;
                }
            }
            many => {
                f.write_str(&count_text(many.len(), "source"))?;
                let troubled = many.iter().filter(|source| source.incomplete).count();
                if troubled > 0 {
                    write!(f, ", {troubled} incomplete")?;
                }
            }
        }
        write!(f, ": {}", count_text(self.objects, "object"))?;
        for (count, words) in [
            (self.unhealthy, "not healthy"),
            (self.rolled_back, "rolled back"),
            (self.quarantined, "failed and held"),
            (self.refused, "refused"),
            (self.rolling, "rolling"),
            (self.waiting, "waiting"),
            (self.left_alone, "left alone by annotation"),
        ] {
            if count > 0 {
                write!(f, ", {count} {words}")?;
            }
        }
        write!(f, "; next resync {}", self.resync.strftime("%H:%M:%S UTC"))
    }
}

impl fmt::Display for SourceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.revision {
            Some(revision) => write!(f, "{} at {}", self.name, revision.short_name())?,
            None => return write!(f, "{} not read yet", self.name),
        }
        f.write_str(if self.incomplete { " (incomplete)" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::PHASES;
    use crate::report::status_fixture::{daemon_status, source_status};

    fn source(name: &str, revision: Option<&str>, incomplete: bool) -> SourceSummary {
        SourceSummary { name: name.into(), revision: revision.map(Revision::new), incomplete }
    }

    /// Returns the status of two sources with these objects. The second one is incomplete.
    fn status(one: &serde_json::Value, other: &serde_json::Value) -> DaemonStatus {
        let mut incomplete = source_status("ops", other);
        incomplete["complete"] = json!(false);
        daemon_status(&[source_status("shop", one), incomplete], &[])
    }

    #[test]
    fn each_phase_is_counted_once_and_what_is_left_alone_by_itself() {
        let each = |number: usize| {
            let counts = PHASES.into_iter().map(|phase| (phase.to_string(), json!(number)));
            serde_json::Value::Object(counts.collect())
        };
        let summary = DaemonSummary::of(&status(&each(1), &each(10)));
        let DaemonSummary { objects, unhealthy, waiting, left_alone, rolling, .. } = &summary;
        let failed = [summary.rolled_back, summary.quarantined, summary.refused];
        assert_eq!(([*unhealthy, *waiting, *left_alone, *rolling], failed), ([22, 33, 33, 11], [11; 3]));
        assert_eq!(*objects - unhealthy - waiting - left_alone - rolling - 33, 11, "the settled ones alone");
        let sources = [source("shop", None, false), source("ops", None, true)];
        assert_eq!(summary.sources, sources);
        assert_eq!(summary.resync.to_string(), "2030-01-02T03:04:06Z");
        for phase in [Phase::LeftAlone, Phase::OptedOut, Phase::Held] {
            let summary = DaemonSummary::of(&status(&json!({phase.to_string(): 2}), &json!({"Settled": 1})));
            assert_eq!((summary.left_alone, summary.objects), (2, 3), "{phase}");
        }
    }

    #[test]
    fn one_line_says_it_all() {
        fn check(sources: Vec<SourceSummary>, counts: [usize; 8], expected: &str) {
            let [objects, unhealthy, rolled_back, quarantined, refused, rolling, waiting, left_alone] =
                counts;
            let resync = "2030-01-02T03:04:05Z".parse().unwrap();
            let summary = DaemonSummary {
                sources,
                objects,
                unhealthy,
                rolled_back,
                quarantined,
                refused,
                waiting,
                left_alone,
                rolling,
                resync,
            };
            assert_eq!(summary.to_string(), expected);
        }
        let shop = || source("shop", Some("0123456789abcdef0123456789abcdef01234567"), false);
        check(Vec::new(), [0; 8], "serves no source now: 0 objects; next resync 03:04:05 UTC");
        check(
            vec![shop(), source("ops", None, true)],
            [20, 1, 4, 5, 6, 2, 3, 2],
            "shop at 0123456789ab, ops not read yet: 20 objects, 1 not healthy, 4 rolled back, 5 failed and held, 6 refused, 2 rolling, 3 waiting, 2 left alone by annotation; next resync 03:04:05 UTC",
        );
        check(
            vec![SourceSummary { incomplete: true, ..shop() }],
            [9, 0, 0, 0, 0, 0, 0, 0],
            "shop at 0123456789ab (incomplete): 9 objects; next resync 03:04:05 UTC",
        );
        check(
            vec![shop(), shop(), shop(), source("a", None, true)],
            [1, 0, 0, 0, 0, 0, 0, 0],
            "4 sources, 1 incomplete: 1 object; next resync 03:04:05 UTC",
        );
    }
}
