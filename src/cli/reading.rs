//! Manifests without a cluster: what `validate` and `render` look at.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::exit::plain;
use super::{CommandError, Exit};
use crate::manifest::{self, Item, Reading};
use crate::object::{Class, Diagnostic};
use crate::source::{self, Error};

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Which objects of a file count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All that can be told, also behind a document that does not parse.
    All,
    /// Those that kubectl would show.
    Shown,
}

/// All that stands below a path.
#[derive(Debug)]
pub(super) struct Manifests {
    /// In the order of files and lines.
    pub(super) items: Vec<Item>,
    /// What is wrong or doubtful with each alone.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// How many files were read.
    pub(super) files: usize,
    /// Whether every file was read and every document understood.
    pub(super) understood: bool,
}

impl Manifests {
    /// Reads a directory, a file, or standard input. Findings name files as they are reached from here.
    pub(super) fn read(path: &Path, extent: Extent) -> Result<Self, CommandError> {
        let mut manifests = Self { items: Vec::new(), diagnostics: Vec::new(), files: 0, understood: true };
        if path == Path::new(STANDARD_INPUT) {
            let bytes = standard_input()?;
            manifests.take(manifest::read(&Arc::from("<stdin>"), &bytes), extent);
            return Ok(manifests);
        }
        let disk = source::read_disk(path).map_err(without_cluster)?;
        let single = path.is_file();
        let shown = |file: &str| -> Arc<str> {
            let whole = if single { path.to_owned() } else { path.join(file) };
            Arc::from(whole.strip_prefix(".").unwrap_or(&whole).to_string_lossy())
        };
        for file in &disk.snapshot.files {
            if let Some(bytes) = disk.read(file.blob) {
                manifests.take(manifest::read(&shown(&file.path), bytes), extent);
            }
        }
        manifests.understood &= disk.snapshot.complete();
        manifests.diagnostics.extend(disk.snapshot.refused.into_iter().map(|mut found| {
            found.origin.file = shown(&found.origin.file);
            found
        }));
        Ok(manifests)
    }

    fn take(&mut self, reading: Reading, extent: Extent) {
        self.files += 1;
        self.understood &= reading.understood;
        match extent {
            Extent::All => self.items.extend(reading.items),
            Extent::Shown => self.items.extend(reading.shown().cloned()),
        }
        self.diagnostics.extend(reading.diagnostics);
    }
}

/// How a command ends that found this.
pub(super) fn verdict(found: &[Diagnostic]) -> Exit {
    if found.iter().any(Diagnostic::is_error) { Exit::Differs } else { Exit::Done }
}

fn standard_input() -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(manifest::MAX_FILE + 1).read_to_end(&mut bytes);
    let size = read.map_err(|error| {
        CommandError::new(Class::Source, format!("cannot read standard input: {}", plain(&error)))
    })?;
    if size as u64 > manifest::MAX_FILE {
        let limit = manifest::MAX_FILE >> 20;
        return Err(CommandError::new(Class::Source, format!("standard input has more than {limit} MiB"))
            .hint("put the manifests into files of a directory"));
    }
    Ok(bytes)
}

/// A source's error, without what only matters to those who follow one.
fn without_cluster(error: Error) -> CommandError {
    match error {
        Error::Empty { place, .. } => {
            CommandError::new(Class::Source, format!("{place}: no *.yaml, *.yml or *.json file in it"))
        }
        other => other.into(),
    }
}
