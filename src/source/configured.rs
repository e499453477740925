//! From a configured location to one that is read.

use super::location::{GitLocation, Location};
use crate::config;

impl From<&config::Location> for Location {
    fn from(configured: &config::Location) -> Self {
        match configured {
            config::Location::Directory(path) => Self::Directory(path.clone()),
            config::Location::Git { url, reference, path, interval } => Self::Git(GitLocation {
                url: url.expose().to_owned(),
                reference: reference.clone(),
                path: (!path.is_root()).then(|| path.as_str().to_owned()),
                interval: interval.get(),
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
        };
        let expected = GitLocation {
            reference: Some("main".to_owned()),
            interval: std::time::Duration::from_secs(9),
            ..GitLocation::new("https://host/a")
        };
        assert_eq!(Location::from(&location(".")), Location::Git(expected.clone()));
        let deeper = GitLocation { path: Some("a/b".to_owned()), ..expected };
        assert_eq!(Location::from(&location("a/b/")), Location::Git(deeper));
        let directory = config::Location::Directory("a".into());
        assert_eq!(Location::from(&directory), Location::Directory("a".into()));
    }
}
