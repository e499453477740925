//! The count by area, and the lists of mutants.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::areas::{AREAS, area_of};
use crate::site::Mutant;
use crate::unit_tests::Verdict;

/// Returns a mutant as a line of a list.
pub(crate) fn line_of(mutant: &Mutant) -> String {
    format!("{}\t{}\t{}\t{}", mutant.file, mutant.line, mutant.function, mutant.kind)
}

/// Reads the mutants of a list; none where no list is given.
///
/// # Errors
///
/// Fails if the list cannot be read.
pub(crate) fn asked_for(list: Option<&Path>) -> Result<Option<BTreeSet<String>>, String> {
    let Some(path) = list else { return Ok(None) };
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().map(|line| line.split('\t').take(4).collect::<Vec<_>>().join("\t"));
    Ok(Some(lines.collect()))
}

/// Writes the mutants into a list of this name, and those that no test noticed into another one,
/// each with its verdict.
///
/// # Errors
///
/// Fails where the disk does.
pub(crate) fn write(folder: &Path, name: &str, judged: &[(&Mutant, Verdict)]) -> Result<(), String> {
    let is_missed = |verdict: &Verdict| matches!(verdict, Verdict::Survived | Verdict::NotReached);
    let (mut all, mut missed) = (String::new(), String::new());
    for (mutant, verdict) in judged {
        let line = format!("{}\t{}\n", line_of(mutant), verdict.word());
        all.push_str(&line);
        if is_missed(verdict) {
            missed.push_str(&line);
        }
    }
    for (name, text) in [(name, all), ("missed.tsv", missed)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Returns the counts by area, as a table of a document.
pub(crate) fn table(judged: &[(&Mutant, Verdict)]) -> String {
    let mut text = "| code | mutants | killed | of 100 | not reached |\n|---|---|---|---|---|\n".to_owned();
    for (index, area) in AREAS.iter().enumerate() {
        let own: Vec<Verdict> = judged
            .iter()
            .filter(|(mutant, _)| area_of(&mutant.file) == Some(index))
            .map(|(_, verdict)| *verdict)
            .collect();
        row(&mut text, area.name, &own);
    }
    let all: Vec<Verdict> = judged.iter().map(|(_, verdict)| *verdict).collect();
    row(&mut text, "all", &all);
    let count = |wanted| all.iter().filter(|verdict| **verdict == wanted).count();
    let _ = writeln!(
        text,
        "{} do not compile; {} of the killed never end",
        count(Verdict::NotCompiled),
        count(Verdict::Endless)
    );
    text
}

fn row(text: &mut String, name: &str, verdicts: &[Verdict]) {
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let all = verdicts.len() - count(Verdict::NotCompiled);
    let killed = count(Verdict::Killed) + count(Verdict::Endless);
    let share = killed as f64 * 100.0 / all.max(1) as f64;
    let _ = writeln!(text, "| {name} | {all} | {killed} | {share:.1} | {} |", count(Verdict::NotReached));
}
