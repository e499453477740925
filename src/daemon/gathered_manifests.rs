//! The objects of a source as its files say them, for whoever asks what it holds.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::setup::SourceFiles;
use crate::engine::AllowList;
use crate::input::sandbox::RenderProgram;
use crate::input::{Decrypter, needed_programs, read_manifest};
use crate::manifest::{self, KindScopes, ManifestItem, assemble};
use crate::object::{Diagnostic, Object};
use crate::render::describe_violation;
use crate::source::{self, SnapshotFile, Source};

/// The objects of a source.
#[derive(Debug)]
pub(crate) struct SourceObjects {
    /// Its objects, as far as it may have them.
    pub objects: Vec<Object>,
    /// The diagnostics of the others.
    pub refused: Vec<Diagnostic>,
    /// Indicates whether every file was read and understood, and no object is held back for an
    /// error in it.
    pub complete: bool,
    /// The programs that render its roots, or would.
    pub programs: BTreeSet<RenderProgram>,
}

/// The manifests of a source, before the scope of each kind is known.
#[derive(Debug)]
pub(crate) struct GatheredManifests {
    items: Vec<ManifestItem>,
    complete: bool,
    programs: BTreeSet<RenderProgram>,
}

/// Reads a source once, at its newest revision.
pub(crate) async fn gather_manifests(
    files: SourceFiles,
    decrypter: Arc<Decrypter>,
) -> Result<GatheredManifests, source::SourceError> {
    let (items, complete, programs) = match files {
        SourceFiles::Snapshot(disk) => {
            let bytes = |file: &SnapshotFile| disk.read(file.blob).unwrap_or_default();
            let read = disk.snapshot.files.iter().map(|file| read_manifest(file, bytes(file), &decrypter));
            let (items, complete) = gather(read, disk.snapshot.is_complete());
            (items, complete, needed_programs(&disk.snapshot))
        }
        SourceFiles::Source(source) => read_followed(source, decrypter).await?,
    };
    Ok(GatheredManifests { items, complete, programs })
}

impl GatheredManifests {
    /// Adds the scopes of those kinds that the source defines.
    pub(crate) fn add_scopes_to(&self, scopes: &mut KindScopes) {
        for item in &self.items {
            scopes.add_definition(item);
        }
    }

    /// Returns the objects. This namespace is for those that live in one and name none.
    pub(crate) fn into_objects(
        self,
        namespace: &str,
        allow: &AllowList,
        scopes: &KindScopes,
    ) -> SourceObjects {
        let assembled = assemble(self.items, scopes, namespace);
        let complete = self.complete && !assembled.diagnostics.iter().any(Diagnostic::is_error);
        let (mut objects, mut refused) = (Vec::new(), Vec::new());
        for object in assembled.objects {
            match allow.violation(&object.id, scopes.get(&object.id.group_kind())) {
                Some(violation) => refused.push(describe_violation(&violation, &object.id, &object.origin)),
                None => objects.push(object),
            }
        }
        SourceObjects { objects, refused, complete, programs: self.programs }
    }
}

async fn read_followed(
    mut source: Source,
    decrypter: Arc<Decrypter>,
) -> Result<(Vec<ManifestItem>, bool, BTreeSet<RenderProgram>), source::SourceError> {
    let observed = source.observe().await?;
    let gather_all = move |reader: &source::RevisionReader| {
        let snapshot = reader.snapshot(&observed.revision)?;
        let mut readings = Vec::new();
        for file in &snapshot.files {
            readings.push(read_manifest(file, &reader.read(file.blob)?, &decrypter));
        }
        let (items, complete) = gather(readings.into_iter(), snapshot.is_complete());
        Ok((items, complete, needed_programs(&snapshot)))
    };
    source.read_bounded(gather_all).await
}

fn gather(
    readings: impl Iterator<Item = manifest::ManifestFile>,
    complete: bool,
) -> (Vec<ManifestItem>, bool) {
    readings.fold((Vec::new(), complete), |(mut items, complete), reading| {
        let understood = reading.understood && !reading.diagnostics.iter().any(Diagnostic::is_error);
        items.extend(reading.items);
        (items, complete && understood)
    })
}
