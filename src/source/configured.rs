//! From a configured location to one that is read.

use super::guard::{Verification, VerifiedCommits};
use super::location::{GitLocation, Location};
use crate::config::{self, VerifyMode, VerifySpec};

impl From<&VerifySpec> for Verification {
    fn from(configured: &VerifySpec) -> Self {
        let extent = match configured.mode {
            VerifyMode::Head => VerifiedCommits::Head,
            VerifyMode::Range => VerifiedCommits::Range,
        };
        Self { keys: configured.keys.clone(), extent }
    }
}

impl From<&config::Location> for Location {
    fn from(configured: &config::Location) -> Self {
        match configured {
            config::Location::Directory(path) => Self::Directory(path.clone()),
            config::Location::Git { url, reference, path, interval, verify } => Self::Git(GitLocation {
                url: url.expose().to_owned(),
                reference: reference.clone(),
                path: (!path.is_root()).then(|| path.as_str().to_owned()),
                interval: interval.get(),
                verify: verify.as_ref().map(Verification::from),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_no_path() {
        let location = |path: &str| config::Location::Git {
            url: config::GitUrl::new("https://host/a"),
            reference: Some("main".to_owned()),
            path: path.parse().unwrap(),
            interval: config::Duration::seconds(9),
            verify: Some(VerifySpec { keys: "keys".into(), mode: VerifyMode::Range }),
        };
        let expected = GitLocation {
            reference: Some("main".to_owned()),
            interval: std::time::Duration::from_secs(9),
            verify: Some(Verification { keys: "keys".into(), extent: VerifiedCommits::Range }),
            ..GitLocation::new("https://host/a")
        };
        assert_eq!(Location::from(&location(".")), Location::Git(expected.clone()));
        let deeper = GitLocation { path: Some("a/b".to_owned()), ..expected };
        assert_eq!(Location::from(&location("a/b/")), Location::Git(deeper));
        let directory = config::Location::Directory("a".into());
        assert_eq!(Location::from(&directory), Location::Directory("a".into()));
    }
}
