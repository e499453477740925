//! A copy of the repository in which each mutant stands behind the switch, and its build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::site::{ChangedBytes, Mutant, Number, RewrittenFile, SWITCH, Site};

/// A file with mutants.
#[derive(Debug)]
pub(crate) struct DecisiveFile {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) sites: Vec<Site>,
}

/// The copy.
#[derive(Debug)]
pub(crate) struct CopiedTree {
    pub(crate) root: PathBuf,
    files: Vec<DecisiveFile>,
    /// Where the mutants are in the files of the copy.
    changed: BTreeMap<String, Vec<ChangedBytes>>,
    /// The file of the mutants that do not compile.
    refusals: PathBuf,
    /// Mutants that do not compile.
    pub(crate) left_out: BTreeSet<Number>,
}

impl CopiedTree {
    /// Copies what git tracks or would track in the current folder.
    ///
    /// # Errors
    ///
    /// Fails where git or the disk does.
    pub(crate) fn new(folder: &Path, files: Vec<DecisiveFile>) -> Result<Self, String> {
        let root = folder.join("tree");
        let listed: BTreeSet<PathBuf> = tracked_files()?.into_iter().map(PathBuf::from).collect();
        remove_others(&root, Path::new(""), &listed)?;
        let decisive: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        for path in &listed {
            // A rewritten file keeps its time where its text stays the same.
            let is_rewritten =
                path == Path::new("src/lib.rs") || path.to_str().is_some_and(|path| decisive.contains(path));
            if !is_rewritten && path.is_file() {
                let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
                write_changed(&root.join(path), &text)?;
            }
        }
        let refusals = folder.join("refused.txt");
        let left_out = known_refusals(&refusals, &files);
        Ok(Self { root, files, changed: BTreeMap::new(), refusals, left_out })
    }

    /// Builds the unit tests with all mutants that compile, and returns the program.
    ///
    /// # Errors
    ///
    /// Fails if cargo does not run, or if the code does not compile for another reason.
    pub(crate) fn build(&mut self, mutants: &[Mutant], jobs: usize) -> Result<PathBuf, String> {
        let library = fs::read_to_string("src/lib.rs").map_err(|error| format!("src/lib.rs: {error}"))?;
        let library = format!("#![allow(warnings)]\n{library}\npub(crate) mod mutant_switch;\n");
        write_changed(&self.root.join("src/lib.rs"), library.as_bytes())?;
        let switch = SWITCH.replace("COUNT", &(mutants.len() + 1).to_string());
        write_changed(&self.root.join("src/mutant_switch.rs"), switch.as_bytes())?;
        loop {
            for file in &self.files {
                let rewriting = RewrittenFile::new(&file.text, &file.sites, &self.left_out);
                write_changed(&self.root.join(&file.path), rewriting.written.as_bytes())?;
                self.changed.insert(file.path.clone(), rewriting.changed);
            }
            let (program, errors) = compile(&self.root, jobs)?;
            if let Some(program) = program {
                return Ok(program);
            }
            let refused: BTreeSet<Number> = errors.iter().flat_map(|error| self.mutants_at(error)).collect();
            println!("{} errors, {} mutants do not compile", errors.len(), refused.len());
            if refused.is_subset(&self.left_out) {
                let texts = errors.iter().filter_map(|error| error["rendered"].as_str());
                return Err(format!("the tests do not compile\n{}", texts.collect::<String>()));
            }
            self.left_out.extend(refused);
            let numbers =
                self.left_out.iter().fold(String::new(), |text, number| text + &format!("{number}\n"));
            let text = format!("{}\n{numbers}", state_of(&self.files));
            write_changed(&self.refusals, text.as_bytes())?;
        }
    }

    /// Returns the mutants of the smallest place around an error; its other spans are asked where
    /// the first is in none.
    fn mutants_at(&self, error: &Value) -> Vec<Number> {
        let spans = error["spans"].as_array().into_iter().flatten();
        let (first, others): (Vec<&Value>, Vec<&Value>) = spans.partition(|span| span["is_primary"] == true);
        let found = first.into_iter().chain(others).find_map(|span| {
            let at = |end: &str| span[end].as_u64().map(|byte| byte as usize);
            let (start, end) = (at("byte_start")?, at("byte_end")?);
            let places = self.changed.get(span["file_name"].as_str()?)?;
            let around = places.iter().filter(|place| place.range.start <= start && end <= place.range.end);
            around.min_by_key(|place| place.range.len())
        });
        found.map(|place| place.numbers.clone()).unwrap_or_default()
    }
}

/// Reads the mutants that did not compile in an earlier build of the same files.
fn known_refusals(path: &Path, files: &[DecisiveFile]) -> BTreeSet<Number> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines();
    let is_same = lines.next() == Some(&state_of(files));
    lines.filter(|_| is_same).filter_map(|line| line.parse().ok()).collect()
}

/// Returns what tells one state of the files from all others.
fn state_of(files: &[DecisiveFile]) -> String {
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file.path, &file.text).hash(&mut hasher);
    }
    hasher.finish().to_string()
}

/// Runs cargo, and returns the program or the errors.
fn compile(root: &Path, jobs: usize) -> Result<(Option<PathBuf>, Vec<Value>), String> {
    let output = Command::new("cargo")
        .args(["test", "--locked", "--lib", "--no-run", "--message-format=json", "--jobs"])
        .arg(jobs.to_string())
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let (mut program, mut errors) = (None, Vec::new());
    for message in output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
    {
        if message["reason"] == "compiler-message" && message["message"]["level"] == "error" {
            errors.push(message["message"].clone());
        }
        let is_test = message["profile"]["test"] == true && message["target"]["name"] == "rhumb";
        if let Some(path) = message["executable"].as_str().filter(|_| is_test) {
            program = Some(PathBuf::from(path));
        }
    }
    // The last error only counts the others.
    errors.retain(|error| error["spans"].as_array().is_some_and(|spans| !spans.is_empty()));
    if !output.status.success() && errors.is_empty() {
        return Err("cargo failed".to_owned());
    }
    Ok((program.filter(|_| output.status.success()), errors))
}

pub(crate) fn tracked_files() -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8(output.stdout).map_err(|error| format!("git: {error}"))?;
    Ok(text.split('\0').filter(|path| !path.is_empty()).map(ToOwned::to_owned).collect())
}

/// Removes what an earlier copy had and the repository does not.
fn remove_others(root: &Path, below: &Path, listed: &BTreeSet<PathBuf>) -> Result<(), String> {
    let folder = root.join(below);
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            remove_others(root, &path, listed)?;
        } else if !listed.contains(&path) && path != Path::new("src/mutant_switch.rs") {
            fs::remove_file(entry.path()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes a file where it has another text.
fn write_changed(path: &Path, text: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
