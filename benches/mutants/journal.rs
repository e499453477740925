//! The results of one build so far, with which a count that was broken off goes on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// A file with a line for each result.
#[derive(Debug)]
pub(crate) struct Journal {
    known: BTreeMap<String, String>,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of a program; one of another program begins anew.
    ///
    /// # Errors
    ///
    /// Fails where the disk does.
    pub(crate) fn open(path: &Path, program: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let head = build_of(program).map_err(failed)?;
        let text = fs::read_to_string(path).unwrap_or_default();
        // The last line may have been cut.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = complete.lines();
        let mut known = BTreeMap::new();
        if lines.next() == Some(&head) {
            let pairs = lines.filter_map(|line| line.split_once('\t'));
            known.extend(pairs.map(|(name, result)| (name.to_owned(), result.to_owned())));
        }
        let mut file = File::create(path).map_err(failed)?;
        let lines =
            known.iter().fold(String::new(), |text, (name, result)| text + &format!("{name}\t{result}\n"));
        file.write_all(format!("{head}\n{lines}").as_bytes()).map_err(failed)?;
        Ok(Self { known, file: Mutex::new(file) })
    }

    /// Returns the result of an earlier run.
    pub(crate) fn result_of(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(String::as_str)
    }

    /// Notes a result. One that cannot be written is only found once more.
    pub(crate) fn note(&self, name: &str, result: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = file.write_all(format!("{name}\t{result}\n").as_bytes());
    }
}

/// Returns what tells one build from all others.
fn build_of(program: &Path) -> std::io::Result<String> {
    let facts = fs::metadata(program)?;
    let time = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(format!("{} {time} {}", program.display(), facts.len()))
}
