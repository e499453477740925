//! The name of a source that was given none.

use std::time::Duration;

use super::args::Global;
use super::session::{self, patiently};
use super::{CommandError, Exit};
use crate::cluster::{Cluster, Parent};
use crate::config::{Config, Name};
use crate::daemon;
use crate::object::Class;

/// The pauses before an API server is asked again that does not answer.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Where the name of a source comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// A person has said it.
    Given,
    /// It follows from where the source is.
    Derived,
}

impl Naming {
    /// Whether the flags say a name.
    pub(super) fn of(global: &Global) -> Self {
        if global.name.is_some() { Self::Given } else { Self::Derived }
    }
}

/// Which of two names a source goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Settled {
    /// The derived one.
    Own,
    /// That under which all sources went that were given none, as older versions had it.
    Former,
    /// The derived one is another place's.
    Taken(String),
}

/// Holds the name of the only source against the inventories that there are: it is a new name, or was this place's before.
/// Without a `place` it is at its own. Returns what is to be told.
///
/// # Errors
///
/// Another place goes by that name: its objects would be taken for this one's.
pub(super) async fn settle(
    config: &mut Config,
    naming: Naming,
    place: Option<&str>,
    cluster: &Cluster,
) -> Result<Option<String>, CommandError> {
    let namespace = config.namespace.clone();
    let (Naming::Derived, Some(source)) = (naming, config.sources.first_mut()) else { return Ok(None) };
    let place = place.map_or_else(|| session::place(source), str::to_owned);
    let former = Name::unnamed();
    let read = async |name: &str| {
        match patiently(|| cluster.parent(&namespace, name)).await {
            // Whoever may not read it, or finds something else there, hears of it from whatever needs it.
            Err(error) if matches!(error.class(), Class::Forbidden | Class::Config) => Ok(None),
            known => known,
        }
    };
    let before = if source.name == former.as_str() { None } else { read(former.as_str()).await? };
    let own = read(&source.name).await?;
    match settled(before.as_ref(), own.as_ref(), &place) {
        Settled::Own => Ok(None),
        Settled::Former => {
            let note = format!(
                "this place was applied as source {former} before, and stays that; --name {} would make a source of its own",
                source.name
            );
            source.name = former.into();
            Ok(Some(note))
        }
        Settled::Taken(other) => {
            let name = &source.name;
            let message = format!(
                "the name {name}, which follows from {place}, is that of the source that was made from {other}"
            );
            Err(CommandError::usage(message)
                .hint("give this one a name of its own with --name")
                .hint(format!("--name {name} says that it is the same source, which has moved")))
        }
    }
}

/// As [`settle`] for whoever follows the source: waits for an API server that does not answer, and says in the log what is
/// to be told.
pub(super) async fn settle_patiently(
    config: &mut Config,
    naming: Naming,
    cluster: &Cluster,
) -> Result<(), CommandError> {
    let mut wait = FIRST_WAIT;
    loop {
        match settle(config, naming, None, cluster).await {
            Err(error) if error.exit == Exit::Unreachable => {
                tracing::warn!("{error}; asked again in {} ms", wait.as_millis());
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            told => return told.map(|note| note.iter().for_each(|note| tracing::info!("{note}"))),
        }
    }
}

fn settled(former: Option<&Parent>, own: Option<&Parent>, place: &str) -> Settled {
    if former.is_some_and(|parent| daemon::is_made_from(parent, place) == Some(true)) {
        return Settled::Former;
    }
    // One that holds nothing has nothing to lose.
    let holding = own.filter(|parent| !parent.kinds.is_empty());
    match holding.filter(|parent| daemon::is_made_from(parent, place) == Some(false)) {
        Some(parent) => Settled::Taken(daemon::place(parent).unwrap_or_default().to_owned()),
        None => Settled::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn made_from(place: &str, kinds: &[&str]) -> Parent {
        let kinds = kinds.iter().map(|kind| GroupKind::parse(kind)).collect();
        let annotations = [("rhumb.dev/source".to_owned(), place.to_owned())].into();
        Parent { kinds, annotations, ..Parent::default() }
    }

    #[test]
    fn a_place_keeps_the_name_that_it_had_and_takes_none_from_another() {
        let check = |former: Option<Parent>, own: Option<Parent>, expected: Settled| {
            assert_eq!(settled(former.as_ref(), own.as_ref(), "/srv/a"), expected);
        };
        let (here, there) = (|| made_from("/srv/a", &["ConfigMap"]), || made_from("/srv/b", &["ConfigMap"]));
        check(None, None, Settled::Own);
        check(None, Some(here()), Settled::Own);
        check(None, Some(there()), Settled::Taken("/srv/b".to_owned()));
        check(None, Some(made_from("/srv/b and /srv/a", &["ConfigMap"])), Settled::Own);
        check(None, Some(made_from("/srv/b", &[])), Settled::Own);
        check(None, Some(Parent { annotations: [].into(), ..there() }), Settled::Own);
        check(Some(here()), None, Settled::Former);
        check(Some(here()), Some(there()), Settled::Former);
        check(Some(made_from("/srv/b and /srv/a", &["ConfigMap"])), None, Settled::Former);
        check(Some(there()), None, Settled::Own);
        check(Some(there()), Some(there()), Settled::Taken("/srv/b".to_owned()));
    }
}
