//! The name of a source that was given none.

use std::time::Duration;

use super::args::GlobalArgs;
use super::session::{self, retry_when_throttled};
use super::{CommandError, ExitStatus};
use crate::cluster::{Cluster, InventoryObject};
use crate::config::{Config, DnsLabel};
use crate::object::ErrorClass;

/// The pauses before an API server is asked again that does not answer.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);

/// The origin of a source's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameOrigin {
    /// A person has said it.
    Explicit,
    /// It follows from where the source is.
    Derived,
}

impl NameOrigin {
    /// Returns the origin of the name: the flags, or none that says one.
    pub(super) fn of(global: &GlobalArgs) -> Self {
        if global.name.is_some() { Self::Explicit } else { Self::Derived }
    }
}

/// The choice between two names of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NameChoice {
    /// The derived one.
    Own,
    /// The default name of older versions.
    Former,
    /// The derived one is another location's.
    Taken(String),
}

/// Checks the name of the only source against the inventories: it has to be new, or that of this
/// location already. Without a `location` that of the source counts. Returns the notes to report.
///
/// # Errors
///
/// Another location goes by that name: its objects would be taken for this one's.
pub(super) async fn require_free_name(
    config: &mut Config,
    naming: NameOrigin,
    location: Option<&str>,
    cluster: &Cluster,
) -> Result<Option<String>, CommandError> {
    let namespace = config.namespace.clone();
    let (NameOrigin::Derived, Some(source)) = (naming, config.sources.first_mut()) else { return Ok(None) };
    let location = location.map_or_else(|| session::location(source), str::to_owned);
    let former = DnsLabel::unnamed();
    let read = async |name: &str| {
        match retry_when_throttled(|| cluster.read_inventory(&namespace, name)).await {
            // A missing right, or another object under that name, is reported by whatever needs the
            // inventory.
            Err(error) if matches!(error.class(), ErrorClass::Forbidden | ErrorClass::Config) => Ok(None),
            known => known,
        }
    };
    let before = if source.name == former.as_str() { None } else { read(former.as_str()).await? };
    let own = read(&source.name).await?;
    match choose_name(before.as_ref(), own.as_ref(), &location) {
        NameChoice::Own => Ok(None),
        NameChoice::Former => {
            let note = format!(
                "this location was applied as source {former} before, and stays that; --source {} would make a source of its own",
                source.name
            );
            source.name = former.into();
            Ok(Some(note))
        }
        NameChoice::Taken(other) => {
            let name = &source.name;
            let message = format!(
                "the name {name}, which follows from {location}, is that of the source that was made from {other}"
            );
            Err(CommandError::usage_error(message)
                .hint("give this one a name of its own with --source")
                .hint(format!("--source {name} says that it is the same source, which has moved")))
        }
    }
}

/// Does the same as [`require_free_name`] for a daemon: waits for an API server that does not
/// answer, and logs its notes.
pub(super) async fn settle_with_retries(
    config: &mut Config,
    naming: NameOrigin,
    cluster: &Cluster,
) -> Result<(), CommandError> {
    let mut wait = FIRST_RETRY_DELAY;
    loop {
        match require_free_name(config, naming, None, cluster).await {
            Err(error) if error.exit == ExitStatus::Unreachable => {
                tracing::warn!("{error}; retry in {} ms", wait.as_millis());
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(MAX_RETRY_DELAY);
            }
            note => return note.map(|note| note.iter().for_each(|note| tracing::info!("{note}"))),
        }
    }
}

fn choose_name(
    former: Option<&InventoryObject>,
    own: Option<&InventoryObject>,
    location: &str,
) -> NameChoice {
    if former.is_some_and(|inventory| inventory.is_made_from(location) == Some(true)) {
        return NameChoice::Former;
    }
    // One that holds nothing has nothing to lose.
    let holding = own.filter(|inventory| !inventory.kinds.is_empty());
    match holding.filter(|inventory| inventory.is_made_from(location) == Some(false)) {
        Some(inventory) => NameChoice::Taken(inventory.location().unwrap_or_default().to_owned()),
        None => NameChoice::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{GroupKind, annotations};

    fn made_from(location: &str, kinds: &[&str]) -> InventoryObject {
        let kinds = kinds.iter().map(|kind| GroupKind::parse(kind)).collect();
        let annotations = [(annotations::SOURCE.to_owned(), location.to_owned())].into();
        InventoryObject { kinds, annotations, ..InventoryObject::default() }
    }

    #[test]
    fn a_location_keeps_the_name_that_it_had_and_takes_none_from_another() {
        let check = |former: Option<InventoryObject>, own: Option<InventoryObject>, expected: NameChoice| {
            assert_eq!(choose_name(former.as_ref(), own.as_ref(), "/srv/a"), expected);
        };
        let (here, there) = (|| made_from("/srv/a", &["ConfigMap"]), || made_from("/srv/b", &["ConfigMap"]));
        check(None, None, NameChoice::Own);
        check(None, Some(here()), NameChoice::Own);
        check(None, Some(there()), NameChoice::Taken("/srv/b".to_owned()));
        check(None, Some(made_from("/srv/b and /srv/a", &["ConfigMap"])), NameChoice::Own);
        check(None, Some(made_from("/srv/b", &[])), NameChoice::Own);
        check(None, Some(InventoryObject { annotations: [].into(), ..there() }), NameChoice::Own);
        check(Some(here()), None, NameChoice::Former);
        check(Some(here()), Some(there()), NameChoice::Former);
        check(Some(made_from("/srv/b and /srv/a", &["ConfigMap"])), None, NameChoice::Former);
        check(Some(there()), None, NameChoice::Own);
        check(Some(there()), Some(there()), NameChoice::Taken("/srv/b".to_owned()));
    }
}
