//! The contents of sources, for commands that derive rights from them.

use std::path::Path;

use tempfile::TempDir;

use super::manifest_set::{ManifestSet, ReadScope};
use super::rendering::{SourceRendering, UnrenderedFiles, source_settings};
use super::{CommandError, exit, identities, session};
use crate::config::{SourceConfig, SourceLocation};
use crate::daemon::{GatheredManifests, SourceFiles, SourceObjects, gather_manifests};
use crate::input::VariableMode;
use crate::manifest::KindScopes;
use crate::object::ErrorClass;
use crate::source::{self, Source, VerificationRecord};

/// Reads what sources hold, in their order. Where objects live says any of them that defines their
/// kind, unless it is known already.
pub(super) async fn read(
    sources: &[SourceConfig],
    mut scopes: KindScopes,
) -> Result<Vec<Result<SourceObjects, CommandError>>, CommandError> {
    let folder = temporary_folder()?;
    let mut all = Vec::new();
    for source in sources {
        all.push(gather(source, &folder).await);
    }
    for gathered in all.iter().flatten() {
        gathered.add_scopes_to(&mut scopes);
    }
    let contents_of = |(source, gathered): (&SourceConfig, Result<GatheredManifests, CommandError>)| {
        gathered.map(|gathered| gathered.into_objects(&source.namespace, &source.allow, &scopes))
    };
    Ok(sources.iter().zip(all).map(contents_of).collect())
}

/// Returns a place for the clones of remote repositories, which are of no use later.
pub(super) fn temporary_folder() -> Result<TempDir, CommandError> {
    tempfile::tempdir().map_err(|error| {
        CommandError::new(
            ErrorClass::Internal,
            format!("no directory can be made: {}", exit::os_message(&error)),
        )
    })
}

/// Returns a repository whose newest commit is read. The accepted revision is not known here, so
/// only that commit is verified.
pub(super) fn open_newest(config: &SourceConfig, folder: &Path) -> Result<Source, CommandError> {
    let location = source::ResolvedLocation::from(&config.location);
    let settings = source_settings(config);
    let mut source = Source::open_with(&config.name, &location, &folder.join(&config.name), settings)?;
    source.record_verification(VerificationRecord::default());
    Ok(source)
}

/// Returns the manifests of a source. Of a repository that is the newest commit, which must be
/// signed where the source requires it.
pub(super) fn read_manifests(source: &SourceConfig) -> Result<ManifestSet, CommandError> {
    match &source.location {
        SourceLocation::Directory(path) => {
            ManifestSet::read(path, ReadScope::All, &SourceRendering::of(source))
        }
        SourceLocation::Git { path, .. } => session::start_runtime()?.block_on(async {
            let clone = temporary_folder()?;
            let decrypter = identities::of_source(source);
            let newest = open_newest(source, clone.path())?;
            ManifestSet::read_newest(
                newest,
                path.as_str(),
                &decrypter,
                VariableMode::of(source.substitution.as_ref()),
            )
            .await
        }),
    }
}

async fn gather(source: &SourceConfig, folder: &TempDir) -> Result<GatheredManifests, CommandError> {
    let decrypter = identities::of_source(source);
    Ok(gather_manifests(files(source, folder.path())?, decrypter).await?)
}

fn files(config: &SourceConfig, folder: &Path) -> Result<SourceFiles, CommandError> {
    Ok(match &config.location {
        SourceLocation::Directory(path) => {
            let files = UnrenderedFiles::read(path)?;
            SourceFiles::Snapshot(SourceRendering::of(config).render(&files)?)
        }
        SourceLocation::Git { .. } => SourceFiles::Source(open_newest(config, folder)?),
    })
}
