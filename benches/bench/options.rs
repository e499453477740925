//! The scenarios to measure, and their sizes.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::Outcome;

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    /// The server's own pace: prebuilt writes, no logic.
    Floor,
    /// The first apply.
    FirstApply,
    /// From a commit to the write that it asks for.
    Commit,
    /// From a foreign write to its repair.
    Drift,
    /// The daemon with nothing to do.
    Idle,
    /// A look at everything that finds nothing to do.
    Resync,
    /// A dry run, beside kubectl's.
    Diff,
    /// A change of every workload.
    Rollouts,
    /// Answers about many objects.
    Answers,
    /// Renders, beside the programs alone.
    Renders,
}

impl Scenario {
    const ALL: [(&'static str, Self); 10] = [
        ("floor", Self::Floor),
        ("s1", Self::FirstApply),
        ("s2", Self::Commit),
        ("s3", Self::Drift),
        ("s4", Self::Idle),
        ("s5", Self::Resync),
        ("s6", Self::Diff),
        ("s7", Self::Rollouts),
        ("s8", Self::Answers),
        ("s9", Self::Renders),
    ];
}

/// The command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// The scenarios.
    scenarios: BTreeSet<Scenario>,
    /// Objects of the small source.
    pub(crate) few: usize,
    /// Objects of the large source.
    pub(crate) many: usize,
    /// Commits, and foreign writes, of which the times are taken.
    pub(crate) samples: usize,
    /// The number of whole runs; their median counts.
    pub(crate) rounds: usize,
    /// Workloads of three pods that are rolled out, and a tenth of those of one pod.
    pub(crate) rollouts: usize,
    /// The time for which the idle daemon is watched.
    pub(crate) idle: Duration,
    /// The use that is made of the file of bounds.
    pub(crate) bounds: BoundsUse,
}

/// Indicates whether a missed bound fails the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundsUse {
    /// Nothing fails: the aim is beside the result.
    Ignored,
    /// It fails, and is named.
    Checked,
}

/// The words of the command line.
pub(crate) const USAGE: &str = "usage: cargo bench -- [floor] [s1] … [s9] [--few 1000] [--many 10000] \
                                [--samples 100] [--rounds 3] [--rollouts 100] [--idle 60] [--check]";

impl Options {
    /// Reads the command line; no scenario means all.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut options = Self {
            scenarios: BTreeSet::new(),
            few: 1_000,
            many: 10_000,
            samples: 100,
            rounds: 3,
            rollouts: 100,
            idle: Duration::from_mins(1),
            bounds: BoundsUse::Ignored,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut number = || -> Outcome<usize> {
                let value = words.next().ok_or_else(|| format!("{word} needs a number; {USAGE}"))?;
                value.parse().map_err(|_| format!("{word} {value}: not a number; {USAGE}").into())
            };
            match word.as_str() {
                // Cargo's own word.
                "--bench" => {}
                "--check" => options.bounds = BoundsUse::Checked,
                "--few" => options.few = number()?.max(20),
                "--many" => options.many = number()?.max(20),
                "--samples" => options.samples = number()?.max(1),
                "--rounds" => options.rounds = number()?.max(1),
                "--rollouts" => options.rollouts = number()?.max(1),
                "--idle" => options.idle = Duration::from_secs(number()? as u64),
                name => match Scenario::ALL.iter().find(|(known, _)| *known == name.to_ascii_lowercase()) {
                    Some((_, scenario)) => drop(options.scenarios.insert(*scenario)),
                    None => return Err(format!("{name}: unknown; {USAGE}").into()),
                },
            }
        }
        Ok(options)
    }

    /// Returns whether a scenario is asked for.
    pub(crate) fn is_selected(&self, scenario: Scenario) -> bool {
        self.scenarios.is_empty() || self.scenarios.contains(&scenario)
    }

    /// Returns whether a scenario is asked for, by its name.
    pub(crate) fn wants_named(&self, name: &str) -> bool {
        Scenario::ALL.iter().any(|(known, scenario)| *known == name && self.is_selected(*scenario))
    }
}
