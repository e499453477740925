//! The differences between the configuration in force and a newer one, and their consequences.

use std::fmt;

use super::Config;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigChange {
    /// A source is new.
    SourceAdded(String),
    /// A source is gone; its objects stay as they are.
    SourceRemoved(String),
    /// A source has another location or policy.
    SourceChanged(String),
    /// The resync interval differs.
    Resync,
    /// The rollout budget differs.
    Budget,
    /// Others are notified of what happens.
    Notify,
    /// Other programs render the sources, or their sandbox is another one.
    Renderers,
    /// This key can only take effect in a new process.
    Restart(&'static str),
}

impl ConfigChange {
    /// Returns whether a new process is needed for it.
    pub(crate) const fn is_restart_needed(&self) -> bool {
        self.key().is_some()
    }

    /// Returns the key that a new process is needed for.
    pub(crate) const fn key(&self) -> Option<&'static str> {
        match self {
            Self::Restart(key) => Some(key),
            _ => None,
        }
    }
}

/// `the source shop is new`.
impl fmt::Display for ConfigChange {
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
            Self::Renderers => f.write_str("programs or sandbox has changed"),
            Self::Restart(key) => write!(f, "{key} takes a new process"),
        }
    }
}

/// Returns all differences: the keys in the order of the file, then the sources in the order of the
/// newer file, then removed sources.
pub(crate) fn differences(old: &Config, new: &Config) -> Vec<ConfigChange> {
    // A policy that follows no source has no effect, whatever else is in it.
    let followed = |config: &Config| Some(&config.custom_sources).filter(|policy| policy.is_open()).cloned();
    let keys = [
        (old.connection.kubeconfig == new.connection.kubeconfig, ConfigChange::Restart("kubeconfig")),
        (old.connection.context == new.connection.context, ConfigChange::Restart("context")),
        (old.state_directory == new.state_directory, ConfigChange::Restart("stateDirectory")),
        (old.namespace == new.namespace, ConfigChange::Restart("namespace")),
        (old.resync == new.resync, ConfigChange::Resync),
        (old.connection.api == new.connection.api, ConfigChange::Restart("api")),
        (old.budget == new.budget, ConfigChange::Budget),
        (old.notify == new.notify, ConfigChange::Notify),
        (old.renderers == new.renderers, ConfigChange::Renderers),
        (old.leases == new.leases, ConfigChange::Restart("leases")),
        (followed(old) == followed(new), ConfigChange::Restart("customSources")),
        (old.serve == new.serve, ConfigChange::Restart("serve")),
    ];
    let keys = keys.into_iter().filter(|(same, _)| !same).map(|(_, change)| change);
    let named =
        |config: &Config, name: &str| config.sources.iter().find(|source| source.name == name).cloned();
    let present = new.sources.iter().filter_map(|source| match named(old, &source.name) {
        None => Some(ConfigChange::SourceAdded(source.name.clone())),
        Some(before) if before != *source => Some(ConfigChange::SourceChanged(source.name.clone())),
        Some(_) => None,
    });
    let gone = old.sources.iter().filter(|source| named(new, &source.name).is_none());
    keys.chain(present).chain(gone.map(|source| ConfigChange::SourceRemoved(source.name.clone()))).collect()
}
