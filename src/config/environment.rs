//! The surroundings that a configuration depends on, as values.

use std::path::{Path, PathBuf};

/// The surroundings: the directory that relative paths start from, and a few environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Relative paths start here; empty for the working directory.
    pub directory: PathBuf,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$STATE_DIRECTORY`, which systemd sets; may be several, joined by `:`.
    pub state_directory: Option<PathBuf>,
    /// `$XDG_STATE_HOME`.
    pub xdg_state_home: Option<PathBuf>,
    /// `$XDG_CACHE_HOME`.
    pub xdg_cache_home: Option<PathBuf>,
    /// `$RUNTIME_DIRECTORY`, which systemd sets; may be several, joined by `:`.
    pub runtime_directory: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`: of a person who is logged in, readable by nobody else.
    pub xdg_runtime_directory: Option<PathBuf>,
    /// `$RHUMB_SOCKET`: the socket of the daemon, for whoever runs more than one.
    pub socket: Option<PathBuf>,
    /// The file `serve-token` in `$CREDENTIALS_DIRECTORY`, where there is one.
    pub serve_token: Option<PathBuf>,
    /// `webhook-secret` in `$CREDENTIALS_DIRECTORY`, whether or not there is such a file.
    pub webhook_secret: Option<PathBuf>,
}

/// No place for caches is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no state directory: neither stateDirectory nor $STATE_DIRECTORY, $XDG_STATE_HOME or $HOME is set")]
pub struct StateDirectoryError;

impl Environment {
    /// Returns a path that starts in the folder of the configuration; `~/` is the home directory.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => self.directory.join(path),
        }
    }

    /// Returns the folder of a service for files that are gone with it, which is in memory.
    pub(crate) fn service_runtime_directory(&self) -> Option<PathBuf> {
        self.runtime_directory.as_deref().and_then(first_of_list)
    }

    /// Returns the folder of a person who is logged in for such files, which is in memory too.
    pub(crate) fn personal_runtime_directory(&self) -> Option<PathBuf> {
        // The XDG specification: a relative path is invalid and ignored.
        self.xdg_runtime_directory.clone().filter(|path| path.is_absolute())
    }

    /// Returns the path of the daemon's socket: `$RHUMB_SOCKET`, else in systemd's runtime
    /// directory, else in a folder of its own in XDG's. None of them is set for a system user
    /// outside of a service.
    pub fn socket_path(&self) -> Option<PathBuf> {
        let of_person = || self.personal_runtime_directory().map(|path| path.join("rhumb"));
        let directory = || self.service_runtime_directory().or_else(of_person);
        self.socket.clone().or_else(|| directory().map(|path| path.join(super::SOCKET_FILE)))
    }

    /// Returns the directory for caches: the configured one, else systemd's, else `rhumb` in XDG's
    /// state home.
    ///
    /// # Errors
    ///
    /// None of them is set.
    pub fn state_directory(&self, configured: Option<&Path>) -> Result<PathBuf, StateDirectoryError> {
        if let Some(configured) = configured {
            return Ok(configured.to_owned());
        }
        if let Some(first) = self.state_directory.as_deref().and_then(first_of_list) {
            return Ok(first);
        }
        // The XDG specification: a relative path is invalid and ignored.
        let xdg = self.xdg_state_home.clone().filter(|path| path.is_absolute());
        let home = self.home.as_ref().filter(|home| !home.as_os_str().is_empty());
        xdg.or_else(|| home.map(|home| home.join(".local/state")))
            .map(|state| state.join("rhumb"))
            .ok_or(StateDirectoryError)
    }

    /// Returns the directory for charts of servers: below systemd's state directory, else below
    /// `rhumb` in XDG's cache home; none where none of them is set.
    pub(crate) fn chart_directory(&self) -> Option<PathBuf> {
        if let Some(state) = self.state_directory.as_deref().and_then(first_of_list) {
            return Some(state.join("charts"));
        }
        let cache = self.xdg_cache_home.clone().or_else(|| Some(self.home.as_ref()?.join(".cache")));
        cache.map(|cache| cache.join("rhumb").join("charts"))
    }
}

fn first_of_list(paths: &Path) -> Option<PathBuf> {
    std::env::split_paths(paths).next().filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    // The daemon and the commands that ask it look for it by the same rule.
    #[test]
    fn the_socket_has_one_place_in_each_environment() {
        let check = |socket: &str, service: &str, person: &str, expected: Option<&str>| {
            let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
            let environment = Environment {
                socket: path(socket),
                runtime_directory: path(service),
                xdg_runtime_directory: path(person),
                ..Environment::default()
            };
            assert_eq!(environment.socket_path(), expected.map(PathBuf::from), "{environment:?}");
        };
        check("/my/socket", "/run/rhumb", "/run/user/7", Some("/my/socket"));
        check("", "/run/rhumb", "/run/user/7", Some("/run/rhumb/rhumb.sock"));
        check("", "/run/first:/run/second", "", Some("/run/first/rhumb.sock"));
        check("", "", "/run/user/7", Some("/run/user/7/rhumb/rhumb.sock"));
        check("", "", "user/7", None);
        check("", "", "", None);
    }
}
