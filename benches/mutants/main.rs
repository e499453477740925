//! Counts the small bugs that the unit tests notice, in the code that decides about deletion,
//! budget and rollback.
//!
//! All bugs are in one build, each behind a switch that a variable of the environment turns.

mod areas;
mod copied_tree;
mod finder;
mod journal;
mod options;
mod site;
mod table;
mod unit_tests;
mod values;

use std::fs;
use std::process::ExitCode;

use copied_tree::{CopiedTree, DecisiveFile};
use finder::FoundMutants;
use options::Options;
use site::{Mutant, Number};
use unit_tests::{UnitTests, Verdict};

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| count(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the mutants, runs them, and writes the tables.
fn count(options: &Options) -> Result<(), String> {
    let mut found = FoundMutants::default();
    let files = decisive_files(options, &mut found)?;
    println!("{} mutants in {} files", found.mutants.len(), files.len());
    let mutants: Vec<(Number, &Mutant)> = (1..).zip(&found.mutants).collect();
    if options.is_list {
        for (_, mutant) in &mutants {
            println!("{}", table::line_of(mutant));
        }
        return Ok(());
    }
    let temporary = options.folder.join("temporary");
    fs::create_dir_all(&temporary).map_err(|error| format!("{}: {error}", temporary.display()))?;
    let folder = options.folder.canonicalize().map_err(|error| error.to_string())?;
    let mut tree = CopiedTree::new(&folder, files)?;
    let program = tree.build(&found.mutants, options.jobs)?;
    let root = tree.root.clone();
    let unit_tests = UnitTests { program, root, folder: folder.clone(), jobs: options.jobs };
    let tests = unit_tests.record(options.longest_test)?;
    println!("{} tests take less than {} s", tests.len(), options.longest_test.as_secs());
    let asked = table::asked_for(options.again.as_deref())?;
    let (left_out, chosen): (Vec<_>, Vec<_>) = mutants
        .into_iter()
        .filter(|(_, mutant)| asked.as_ref().is_none_or(|lines| lines.contains(&table::line_of(mutant))))
        .partition(|(number, _)| tree.left_out.contains(number));
    let verdicts = unit_tests.judge(&chosen, &tests)?;
    let mut judged: Vec<(&Mutant, Verdict)> =
        chosen.iter().map(|(_, mutant)| *mutant).zip(verdicts).collect();
    judged.extend(left_out.iter().map(|(_, mutant)| (*mutant, Verdict::NotCompiled)));
    let list = if asked.is_some() { "again.tsv" } else { "mutants.tsv" };
    table::write(&folder, list, &judged)?;
    print!("{}", table::table(&judged));
    let _ = fs::remove_dir_all(unit_tests.temporary());
    Ok(())
}

/// Reads the files that decide, and finds their mutants.
fn decisive_files(options: &Options, found: &mut FoundMutants) -> Result<Vec<DecisiveFile>, String> {
    let mut files = Vec::new();
    for path in copied_tree::tracked_files()? {
        if areas::area_of(&path).is_none() || !options.wants(&path) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let sites = found.find(&path, &text)?;
        files.push(DecisiveFile { path, text, sites });
    }
    Ok(files)
}
