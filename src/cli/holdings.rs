//! What sources hold, for whoever asks which rights follow from it.

use std::path::Path;

use tempfile::TempDir;

use super::{CommandError, exit};
use crate::config::{Location, SourceConfig};
use crate::daemon::{Files, Gathered, Held, gathered};
use crate::manifest::Scopes;
use crate::object::Class;
use crate::source::{self, Anchor, Settings, Source, read_disk};

/// Reads what sources hold, in their order. Where objects live says any of them that defines their kind, unless it is
/// known already.
pub(super) async fn read(
    sources: &[SourceConfig],
    mut scopes: Scopes,
) -> Result<Vec<Result<Held, CommandError>>, CommandError> {
    let folder = folder()?;
    let mut all = Vec::new();
    for source in sources {
        all.push(gather(source, &folder).await);
    }
    for gathered in all.iter().flatten() {
        gathered.teach(&mut scopes);
    }
    let held = |(source, gathered): (&SourceConfig, Result<Gathered, CommandError>)| {
        gathered.map(|gathered| gathered.held(&source.namespace, &source.allow, &scopes))
    };
    Ok(sources.iter().zip(all).map(held).collect())
}

/// A place for the clones of remote repositories, which are of no use later.
pub(super) fn folder() -> Result<TempDir, CommandError> {
    tempfile::tempdir().map_err(|error| {
        CommandError::new(Class::Internal, format!("no directory can be made: {}", exit::plain(&error)))
    })
}

/// A repository whose newest commit is read. What was accepted before is not known here, so that commit alone is verified.
pub(super) fn newest(config: &SourceConfig, folder: &Path) -> Result<Source, CommandError> {
    let location = source::Location::from(&config.location);
    let settings = Settings::of_service(&config.name, &config.credentials);
    let mut source = Source::open_with(&config.name, &location, &folder.join(&config.name), settings)?;
    source.anchor(Anchor::default());
    Ok(source)
}

async fn gather(source: &SourceConfig, folder: &TempDir) -> Result<Gathered, CommandError> {
    Ok(gathered(files(source, folder.path())?).await?)
}

fn files(config: &SourceConfig, folder: &Path) -> Result<Files, CommandError> {
    Ok(match &config.location {
        Location::Directory(path) => Files::Once(read_disk(path)?.into()),
        Location::Git { .. } => Files::Followed(newest(config, folder)?),
    })
}
