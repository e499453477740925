//! Takes a new configuration over while the daemon runs.

use super::CommandError;
use super::settings::{FileRead, Invocation};
use crate::config::{Config, ConfigChange, differences};
use crate::report::{ReloadOutcome, StatusTopic, SystemdService};

/// The result of a reload.
pub(super) enum ReloadResult {
    /// It stays.
    Kept,
    /// This one replaces it.
    Changed(Box<Config>),
}

/// Reads the configuration again. One that is not usable changes nothing, and neither do keys that
/// take a new process. `open` tries its sources.
pub(super) fn reload<T>(
    typed: Invocation<'_>,
    known: &Config,
    service: &SystemdService,
    open: impl Fn(&Config) -> Result<T, CommandError>,
) -> ReloadResult {
    service.notify_reloading();
    let read = typed.read_settings(FileRead::Again).and_then(|newer| {
        let (newer, changes) = merge_config(known, newer);
        open(&newer).map(|_| (newer, changes))
    });
    let (newer, changes) = match read {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!("{error}; what was in force stays in force");
            service.set_topic(StatusTopic::Configuration, format!("new configuration refused: {error}"));
            service.count(ReloadOutcome::Refused);
            service.notify_ready();
            return ReloadResult::Kept;
        }
    };
    for change in changes.iter().filter(|change| !change.is_restart_needed()) {
        tracing::info!("new configuration: {change}");
    }
    let restart: Vec<&str> = changes.iter().filter_map(ConfigChange::key).collect();
    let restart = restart.join(", ");
    if !restart.is_empty() {
        tracing::warn!("new configuration: restart rhumb for {restart}; the rest is in force");
    }
    let words = if restart.is_empty() { String::new() } else { format!("restart needed for {restart}") };
    service.set_topic(StatusTopic::Configuration, words);
    service.count(ReloadOutcome::Taken);
    if changes.iter().all(ConfigChange::is_restart_needed) {
        if changes.is_empty() {
            tracing::info!("new configuration: no changes");
        }
        service.notify_ready();
        return ReloadResult::Kept;
    }
    ReloadResult::Changed(Box::new(newer))
}

/// Returns the newer configuration as far as it can be in force now, and all that it changes.
fn merge_config(known: &Config, newer: Config) -> (Config, Vec<ConfigChange>) {
    let changes = differences(known, &newer);
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
        let (merged, changes) = merge_config(&known, newer);
        assert_eq!(
            (&*merged.namespace, merged.connection.context, merged.budget.max_workloads),
            ("old", None, 9)
        );
        assert_eq!(
            changes,
            [ConfigChange::Restart("context"), ConfigChange::Restart("namespace"), ConfigChange::Budget]
        );
    }
}
