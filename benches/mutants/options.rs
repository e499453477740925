//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// The words of the command line.
pub(crate) const USAGE: &str = "usage: cargo run --package mutants -- [--list] [--file PART]… [--again FILE] \
                                [--jobs 2] [--seconds 1] [--folder target/mutants]";

/// The options of a count.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Parts of the paths of the files; none means all files.
    files: Vec<String>,
    /// A table of mutants: only those in it are run.
    pub(crate) again: Option<PathBuf>,
    /// Processes at a time.
    pub(crate) jobs: usize,
    /// Longer tests are left out.
    pub(crate) longest_test: Duration,
    /// The folder of the changed copy and of the tables.
    pub(crate) folder: PathBuf,
    /// Lists the mutants, and runs none.
    pub(crate) is_list: bool,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            files: Vec::new(),
            again: None,
            jobs: 2,
            longest_test: Duration::from_secs(1),
            folder: PathBuf::from("target/mutants"),
            is_list: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value; {USAGE}"));
            let number = |text: String| {
                text.parse::<u32>().map_err(|_| format!("{word} {text}: not a number; {USAGE}"))
            };
            match word.as_str() {
                "--list" => options.is_list = true,
                "--file" => options.files.push(value()?),
                "--again" => options.again = Some(value()?.into()),
                "--jobs" => options.jobs = number(value()?)?.max(1) as usize,
                "--seconds" => options.longest_test = Duration::from_secs(number(value()?)?.into()),
                "--folder" => options.folder = value()?.into(),
                _ => return Err(format!("{word}: unknown; {USAGE}")),
            }
        }
        Ok(options)
    }

    /// Returns whether a file is asked for.
    pub(crate) fn wants(&self, path: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|part| path.contains(part.as_str()))
    }
}
