//! The command line.

use std::time::Duration;

/// The words of the command line.
pub(crate) const USAGE: &str = "usage: cargo bench --bench faults -- [--list] [--only NAME]… [--runs 10] [--seed 1] \
                                [--jobs 3] [--minutes 600]";

/// The rows to run, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Parts of the names of the rows; none means all rows.
    only: Vec<String>,
    /// Runs of each row.
    pub(crate) runs: u64,
    /// The seed of the first run; each further run has the next one.
    pub(crate) seed: u64,
    /// Runs at a time.
    pub(crate) jobs: u64,
    /// The time after which no further run begins.
    pub(crate) limit: Duration,
    /// Lists the rows, and runs none.
    pub(crate) is_list: bool,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let limit = Duration::from_hours(10);
        let mut options = Self { only: Vec::new(), runs: 10, seed: 1, jobs: 3, limit, is_list: false };
        let (mut runs, mut seed) = (None, None);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value; {USAGE}"));
            let number = |text: String| {
                text.parse::<u64>().map_err(|_| format!("{word} {text}: not a number; {USAGE}"))
            };
            match word.as_str() {
                // Cargo's own word.
                "--bench" => {}
                "--list" => options.is_list = true,
                "--only" => options.only.push(value()?),
                "--runs" => runs = Some(number(value()?)?.max(1)),
                "--seed" => seed = Some(number(value()?)?),
                "--jobs" => options.jobs = number(value()?)?.max(1),
                "--minutes" => options.limit = Duration::from_mins(number(value()?)?),
                _ => return Err(format!("{word}: unknown; {USAGE}")),
            }
        }
        // A seed alone repeats one run.
        options.runs = runs.unwrap_or(if seed.is_some() { 1 } else { options.runs });
        options.seed = seed.unwrap_or(options.seed);
        Ok(options)
    }

    /// Returns whether a row is asked for.
    pub(crate) fn is_selected(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}
