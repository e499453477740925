//! The table of all rows, and what is printed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use crate::fault::Fault;
use crate::invariant::Invariant;
use crate::options::Options;
use crate::runs::Run;

/// The counts of a row.
#[derive(Debug, Default)]
struct Row {
    name: &'static str,
    place: &'static str,
    runs: u64,
    void: u64,
    skipped: Option<String>,
    /// The runs that broke an invariant, and the seed of the first of them.
    violations: BTreeMap<Invariant, (u64, u64)>,
    slowest: Duration,
}

/// All rows, by their number.
#[derive(Debug)]
pub(crate) struct Table {
    rows: BTreeMap<usize, Row>,
}

impl Table {
    /// Returns rows without runs.
    pub(crate) fn new(faults: &[(usize, &Fault)]) -> Self {
        let row = |fault: &Fault| Row { name: fault.name, place: fault.place, ..Row::default() };
        Self { rows: faults.iter().map(|(number, fault)| (*number, row(fault))).collect() }
    }

    /// Counts a run.
    pub(crate) fn add(&mut self, number: usize, run: &Run) {
        let Some(row) = self.rows.get_mut(&number) else { return };
        match run {
            Run::Void(_) => row.void += 1,
            Run::Skipped(why) => row.skipped = Some(why.clone()),
            Run::Judged { convergence, violations, seed } => {
                row.runs += 1;
                row.slowest = row.slowest.max(convergence.unwrap_or_default());
                let mut broken: Vec<Invariant> = violations.iter().map(|one| one.invariant).collect();
                broken.sort_unstable();
                broken.dedup();
                for invariant in broken {
                    row.violations.entry(invariant).or_insert((0, *seed)).0 += 1;
                }
            }
        }
    }

    /// Returns whether each row was tested, or skipped aloud, and nothing was violated.
    pub(crate) fn is_good(&self) -> bool {
        let is_good = |row: &Row| row.violations.is_empty() && (row.runs > 0 || row.skipped.is_some());
        self.rows.values().all(is_good)
    }

    /// Prints all rows as a Markdown table.
    pub(crate) fn print(&self, options: &Options, spent: Duration) {
        let runs: u64 = self.rows.values().map(|row| row.runs).sum();
        let broken: u64 =
            self.rows.values().flat_map(|row| row.violations.values()).map(|(count, _)| count).sum();
        let tested = self.rows.values().filter(|row| row.runs > 0).count();
        let mut text = format!(
            "\nrhumb {}, {} faults, {runs} runs with seeds from {}, {} at a time, in {} min: {broken} violations\n\n| fault \
             | where | runs | violations | slowest return |\n|---|---|---|---|---|\n",
            env!("CARGO_PKG_VERSION"),
            tested,
            options.seed,
            options.jobs,
            spent.as_secs() / 60,
        );
        for row in self.rows.values() {
            text.push_str(&row.line());
        }
        let _ = write!(std::io::stdout(), "{text}");
    }
}

impl Row {
    fn line(&self) -> String {
        let Self { name, place, runs, void, .. } = self;
        let runs = match &self.skipped {
            Some(why) => format!("skipped: {why}"),
            None if *void > 0 => format!("{runs}, and {void} in which it met nothing"),
            None => runs.to_string(),
        };
        let broken = self.violations.iter();
        let broken: Vec<String> = broken
            .map(|(invariant, (count, seed))| format!("{count} × {invariant:?} (seed {seed})"))
            .collect();
        let violations = if broken.is_empty() { "0".to_owned() } else { broken.join(", ") };
        format!("| {name} | {place} | {runs} | {violations} | {:.1} s |\n", self.slowest.as_secs_f64())
    }
}

/// Prints the names of rows.
pub(crate) fn list(faults: &[(usize, &Fault)]) {
    let lines: Vec<String> =
        faults.iter().map(|(_, fault)| format!("{}: {}", fault.name, fault.place)).collect();
    let _ = writeln!(std::io::stdout(), "{}", lines.join("\n"));
}

/// Prints a line of progress on standard error.
pub(crate) fn progress(text: &str) {
    let _ = writeln!(std::io::stderr(), "  {text}");
}
