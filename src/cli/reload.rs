//! Taking a new configuration over while the daemon runs.

use super::CommandError;
use super::settings::{Reading, Typed};
use crate::config::{Change, Config, changed};
use crate::report::{Reload, Service, Topic};

/// What becomes of the configuration in force.
pub(super) enum Reloaded {
    /// It stays.
    Kept,
    /// This one replaces it.
    Changed(Box<Config>),
}

/// Reads the configuration again. One that is not usable changes nothing, and neither do keys that take a new
/// process. `open` tries its sources.
pub(super) fn reload<T>(
    typed: Typed<'_>,
    known: &Config,
    service: &Service,
    open: impl Fn(&Config) -> Result<T, CommandError>,
) -> Reloaded {
    service.reloading();
    let read = typed.settings(Reading::Again).and_then(|newer| {
        let (newer, changes) = merged(known, newer);
        open(&newer).map(|_| (newer, changes))
    });
    let (newer, changes) = match read {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!("{error}; what was in force stays in force");
            service.tell(Topic::Configuration, format!("new configuration refused: {error}"));
            service.count(Reload::Refused);
            service.ready();
            return Reloaded::Kept;
        }
    };
    for change in changes.iter().filter(|change| !change.needs_restart()) {
        tracing::info!("new configuration: {change}");
    }
    let restart: Vec<&str> = changes.iter().filter_map(Change::key).collect();
    let restart = restart.join(", ");
    if !restart.is_empty() {
        tracing::warn!("new configuration: restart rhumb for {restart}; the rest is in force");
    }
    let words = if restart.is_empty() { String::new() } else { format!("restart needed for {restart}") };
    service.tell(Topic::Configuration, words);
    service.count(Reload::Taken);
    if changes.iter().all(Change::needs_restart) {
        if changes.is_empty() {
            tracing::info!("new configuration: nothing has changed");
        }
        service.ready();
        return Reloaded::Kept;
    }
    Reloaded::Changed(Box::new(newer))
}

/// The newer configuration as far as it can be in force now, and all that it changes.
fn merged(known: &Config, newer: Config) -> (Config, Vec<Change>) {
    let changes = changed(known, &newer);
    let connection = known.connection.clone();
    let (state_directory, namespace) = (known.state_directory.clone(), known.namespace.clone());
    let serve = known.serve.clone();
    let (leases, custom_sources) = (known.leases, known.custom_sources.clone());
    (Config { connection, state_directory, namespace, leases, custom_sources, serve, ..newer }, changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_new_process_stays_as_it_is() {
        let known = Config { namespace: "old".to_owned(), ..Config::default() };
        let mut newer = Config { namespace: "new".to_owned(), ..Config::default() };
        newer.connection.context = Some("other".to_owned());
        newer.budget.max_workloads = 9;
        let (merged, changes) = merged(&known, newer);
        assert_eq!(
            (&*merged.namespace, merged.connection.context, merged.budget.max_workloads),
            ("old", None, 9)
        );
        assert_eq!(changes, [Change::Restart("context"), Change::Restart("namespace"), Change::Budget]);
    }
}
