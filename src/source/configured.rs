//! From a configured location to one that is read.

use super::commit_verifier::{SignatureVerification, VerifiedCommits};
use super::location::{GitLocation, ResolvedLocation};
use crate::config::{self, VerifyMode, VerifySpec};

impl From<&VerifySpec> for SignatureVerification {
    fn from(configured: &VerifySpec) -> Self {
        let commits = match configured.mode {
            VerifyMode::Head => VerifiedCommits::Head,
            VerifyMode::Range => VerifiedCommits::Range,
        };
        Self { keys: configured.keys.clone(), commits }
    }
}

impl From<&config::SourceLocation> for ResolvedLocation {
    fn from(configured: &config::SourceLocation) -> Self {
        match configured {
            config::SourceLocation::Directory(path) => Self::Directory(path.clone()),
            config::SourceLocation::Git { url, reference, path, interval, verify } => {
                Self::Git(GitLocation {
                    url: url.expose().to_owned(),
                    reference: reference.clone(),
                    path: (!path.is_root()).then(|| path.as_str().to_owned()),
                    interval: interval.get(),
                    verify: verify.as_ref().map(SignatureVerification::from),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_no_path() {
        let location = |path: &str| config::SourceLocation::Git {
            url: config::GitUrl::new("https://host/a"),
            reference: Some("main".to_owned()),
            path: path.parse().unwrap(),
            interval: config::PositiveDuration::from_seconds(9),
            verify: Some(VerifySpec { keys: "keys".into(), mode: VerifyMode::Range }),
        };
        let expected = GitLocation {
            reference: Some("main".to_owned()),
            interval: std::time::Duration::from_secs(9),
            verify: Some(SignatureVerification { keys: "keys".into(), commits: VerifiedCommits::Range }),
            ..GitLocation::new("https://host/a")
        };
        assert_eq!(ResolvedLocation::from(&location(".")), ResolvedLocation::Git(expected.clone()));
        let deeper = GitLocation { path: Some("a/b".to_owned()), ..expected };
        assert_eq!(ResolvedLocation::from(&location("a/b/")), ResolvedLocation::Git(deeper));
        let directory = config::SourceLocation::Directory("a".into());
        assert_eq!(ResolvedLocation::from(&directory), ResolvedLocation::Directory("a".into()));
    }
}
