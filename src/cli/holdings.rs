//! What sources hold, for whoever asks which rights follow from it.

use std::path::Path;

use tempfile::TempDir;

use super::{CommandError, exit};
use crate::config::{Location, SourceConfig};
use crate::daemon::{Files, Gathered, Held, gathered};
use crate::manifest::Scopes;
use crate::object::Class;
use crate::source::{self, Source, read_disk};

/// Reads what sources hold, in their order. Where objects live says any of them that defines their kind, unless it is
/// known already.
pub(super) async fn read(
    sources: &[SourceConfig],
    mut scopes: Scopes,
) -> Result<Vec<Result<Held, CommandError>>, CommandError> {
    // A place for the clones of remote repositories, which are of no use later.
    let folder = tempfile::tempdir().map_err(|error| {
        CommandError::new(Class::Internal, format!("no directory can be made: {}", exit::plain(&error)))
    })?;
    let mut all = Vec::new();
    for source in sources {
        all.push(gather(source, &folder).await);
    }
    for gathered in all.iter().flatten() {
        gathered.teach(&mut scopes);
    }
    let held = |(source, gathered): (&SourceConfig, Result<Gathered, CommandError>)| {
        gathered.map(|gathered| gathered.held(&source.namespace, &scopes))
    };
    Ok(sources.iter().zip(all).map(held).collect())
}

async fn gather(source: &SourceConfig, folder: &TempDir) -> Result<Gathered, CommandError> {
    Ok(gathered(files(source, folder.path())?).await?)
}

fn files(config: &SourceConfig, folder: &Path) -> Result<Files, CommandError> {
    Ok(match &config.location {
        Location::Directory(path) => Files::Once(read_disk(path)?.into()),
        location @ Location::Git { .. } => {
            let location = source::Location::from(location);
            Files::Followed(Source::open(&config.name, &location, &folder.join(&config.name))?)
        }
    })
}
