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
use crate::source::{self, Snapshot, SnapshotFile, Source};

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
    /// The first reason for which it is not, where one is known.
    pub first_error: Option<Diagnostic>,
    /// The programs that render its roots, or would.
    pub programs: BTreeSet<RenderProgram>,
}

/// The manifests of a source, before the scope of each kind is known.
#[derive(Debug)]
pub(crate) struct GatheredManifests {
    items: Vec<ManifestItem>,
    complete: bool,
    first_error: Option<Diagnostic>,
    programs: BTreeSet<RenderProgram>,
}

/// Reads a source once, at its newest revision.
pub(crate) async fn gather_manifests(
    files: SourceFiles,
    decrypter: Arc<Decrypter>,
) -> Result<GatheredManifests, source::SourceError> {
    match files {
        SourceFiles::Snapshot(disk) => {
            let bytes = |file: &SnapshotFile| disk.read(file.blob).unwrap_or_default();
            let read = disk.snapshot.files.iter().map(|file| read_manifest(file, bytes(file), &decrypter));
            Ok(gather(read, &disk.snapshot))
        }
        SourceFiles::Source(source) => read_followed(source, decrypter).await,
    }
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
        let error = assembled.diagnostics.into_iter().find(Diagnostic::is_error);
        let complete = self.complete && error.is_none();
        let (mut objects, mut refused) = (Vec::new(), Vec::new());
        for object in assembled.objects {
            match allow.violation(&object.id, scopes.get(&object.id.group_kind())) {
                Some(violation) => refused.push(describe_violation(&violation, &object.id, &object.origin)),
                None => objects.push(object),
            }
        }
        let first_error = self.first_error.or(error);
        SourceObjects { objects, refused, complete, first_error, programs: self.programs }
    }
}

async fn read_followed(
    mut source: Source,
    decrypter: Arc<Decrypter>,
) -> Result<GatheredManifests, source::SourceError> {
    let observed = source.observe().await?;
    let gather_all = move |reader: &source::RevisionReader| {
        let snapshot = reader.snapshot(&observed.revision)?;
        let mut readings = Vec::new();
        for file in &snapshot.files {
            readings.push(read_manifest(file, &reader.read(file.blob)?, &decrypter));
        }
        Ok(gather(readings.into_iter(), &snapshot))
    };
    source.read_bounded(gather_all).await
}

fn gather(readings: impl Iterator<Item = manifest::ManifestFile>, snapshot: &Snapshot) -> GatheredManifests {
    let mut gathered = GatheredManifests {
        items: Vec::new(),
        complete: snapshot.is_complete(),
        first_error: snapshot.refused.first().cloned(),
        programs: needed_programs(snapshot),
    };
    for reading in readings {
        let error = reading.diagnostics.into_iter().find(Diagnostic::is_error);
        gathered.complete &= reading.understood && error.is_none();
        gathered.first_error = gathered.first_error.take().or(error);
        gathered.items.extend(reading.items);
    }
    gathered
}
