//! What differs between the configuration in force and a newer one, and what that takes.

use std::fmt;

use super::Config;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A source is new.
    SourceAdded(String),
    /// A source is gone; its objects stay as they are.
    SourceRemoved(String),
    /// A source has another location or policy.
    SourceChanged(String),
    /// Another resync.
    Resync,
    /// Another rollout budget.
    Budget,
    /// Others are told of what happens.
    Notify,
    /// This key can only take effect in a new process.
    Restart(&'static str),
}

impl Change {
    /// Whether a new process is needed for it.
    pub const fn needs_restart(&self) -> bool {
        self.key().is_some()
    }

    /// The key that a new process is needed for.
    pub const fn key(&self) -> Option<&'static str> {
        match self {
            Self::Restart(key) => Some(key),
            _ => None,
        }
    }
}

/// `the source shop is new`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceAdded(name) => write!(f, "the source {name} is new"),
            Self::SourceRemoved(name) => {
                write!(f, "the source {name} is gone; its objects stay as they are")
            }
            Self::SourceChanged(name) => write!(f, "the source {name} has changed"),
            Self::Resync => f.write_str("resync has changed"),
            Self::Budget => f.write_str("the budget has changed"),
            Self::Notify => f.write_str("notify has changed"),
            Self::Restart(key) => write!(f, "{key} takes a new process"),
        }
    }
}

/// All differences: the keys in the order of the file, then the sources in the order of the newer file,
/// then those that are gone.
pub fn changed(old: &Config, new: &Config) -> Vec<Change> {
    let keys = [
        (old.connection.kubeconfig == new.connection.kubeconfig, Change::Restart("kubeconfig")),
        (old.connection.context == new.connection.context, Change::Restart("context")),
        (old.state_directory == new.state_directory, Change::Restart("stateDirectory")),
        (old.namespace == new.namespace, Change::Restart("namespace")),
        (old.resync == new.resync, Change::Resync),
        (old.connection.api == new.connection.api, Change::Restart("api")),
        (old.budget == new.budget, Change::Budget),
        (old.notify == new.notify, Change::Notify),
        (old.leases == new.leases, Change::Restart("leases")),
        (old.custom_sources == new.custom_sources, Change::Restart("customSources")),
        (old.serve == new.serve, Change::Restart("serve")),
    ];
    let keys = keys.into_iter().filter(|(same, _)| !same).map(|(_, change)| change);
    let named =
        |config: &Config, name: &str| config.sources.iter().find(|source| source.name == name).cloned();
    let present = new.sources.iter().filter_map(|source| match named(old, &source.name) {
        None => Some(Change::SourceAdded(source.name.clone())),
        Some(before) if before != *source => Some(Change::SourceChanged(source.name.clone())),
        Some(_) => None,
    });
    let gone = old.sources.iter().filter(|source| named(new, &source.name).is_none());
    keys.chain(present).chain(gone.map(|source| Change::SourceRemoved(source.name.clone()))).collect()
}
