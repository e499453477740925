//! Manifests without a cluster: what `validate` and `render` look at.

use std::path::Path;
use std::sync::Arc;

use super::one_shot_input::{STANDARD_INPUT, STDIN_FILE_NAME, read_standard_input};
use super::{CommandError, ExitStatus};
use crate::manifest::{self, ManifestFile, ManifestItem};
use crate::object::{Diagnostic, ErrorClass};
use crate::source::{self, Snapshot, Source, SourceError};

/// The objects of a file that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadScope {
    /// All that can be told, also behind a document that does not parse.
    All,
    /// Those that kubectl would show.
    Shown,
}

/// All that stands below a path.
#[derive(Debug)]
pub(super) struct ManifestSet {
    /// In the order of files and lines.
    pub(super) items: Vec<ManifestItem>,
    /// The findings in each file by itself.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The number of files.
    pub(super) files: usize,
    /// Indicates whether every file was read and every document understood.
    pub(super) understood: bool,
}

impl Default for ManifestSet {
    fn default() -> Self {
        Self { items: Vec::new(), diagnostics: Vec::new(), files: 0, understood: true }
    }
}

impl ManifestSet {
    /// Reads a directory, a file, or standard input. Findings name files as they are reached from
    /// here.
    pub(super) fn read(path: &Path, extent: ReadScope) -> Result<Self, CommandError> {
        let mut manifests = Self::default();
        if path == Path::new(STANDARD_INPUT) {
            let bytes = read_standard_input()?;
            manifests.take(manifest::read(&Arc::from(STDIN_FILE_NAME), &bytes), extent);
            return Ok(manifests);
        }
        let disk = source::read_disk(path).map_err(without_cluster_advice)?;
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
        manifests.add_refused(disk.snapshot, shown);
        Ok(manifests)
    }

    /// Reads the newest commit of a repository. Findings name files with the folder that the source
    /// is in.
    pub(super) async fn read_newest(mut source: Source, folder: &str) -> Result<Self, CommandError> {
        let observed = source.observe().await?;
        let reader = source.reader();
        let snapshot = reader.snapshot(&observed.revision)?;
        let mut manifests = Self::default();
        let shown = |file: &str| -> Arc<str> { Arc::from(Path::new(folder).join(file).to_string_lossy()) };
        for file in &snapshot.files {
            manifests.take(manifest::read(&shown(&file.path), &reader.read(file.blob)?), ReadScope::All);
        }
        manifests.add_refused(snapshot, shown);
        Ok(manifests)
    }

    fn add_refused(&mut self, snapshot: Snapshot, shown: impl Fn(&str) -> Arc<str>) {
        self.understood &= snapshot.is_complete();
        self.diagnostics.extend(snapshot.refused.into_iter().map(|mut found| {
            found.origin.file = shown(&found.origin.file);
            found
        }));
    }

    fn take(&mut self, reading: ManifestFile, extent: ReadScope) {
        self.files += 1;
        self.understood &= reading.understood;
        match extent {
            ReadScope::All => self.items.extend(reading.items),
            ReadScope::Shown => self.items.extend(reading.readable_items().cloned()),
        }
        self.diagnostics.extend(reading.diagnostics);
    }
}

/// Returns how a command ends that found this.
pub(super) fn exit_status_of(found: &[Diagnostic]) -> ExitStatus {
    if found.iter().any(Diagnostic::is_error) { ExitStatus::Differs } else { ExitStatus::Done }
}

/// Returns a source's error, without what only matters to those who follow one.
fn without_cluster_advice(error: SourceError) -> CommandError {
    match error {
        SourceError::Empty { place, .. } => {
            CommandError::new(ErrorClass::Source, format!("{place}: no *.yaml, *.yml or *.json file in it"))
        }
        other => other.into(),
    }
}
