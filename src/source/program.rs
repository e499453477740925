//! The version of the installed `git`, and which of them are safe.

use std::fmt;

/// A version of git, as `git --version` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GitVersion(u32, u32, u32);

/// The oldest that runs no command that a foreign repository's configuration names (CVE-2024-32004,
/// CVE-2024-32465).
const MIN_GIT_VERSION: GitVersion = GitVersion(2, 39, 4);

/// The first of each line above the floor that has the same repair. Distributions repair older ones
/// too, without another number, so that these are only warned of.
const REPAIRED_VERSIONS: [GitVersion; 6] = [
    GitVersion(2, 40, 2),
    GitVersion(2, 41, 1),
    GitVersion(2, 42, 2),
    GitVersion(2, 43, 4),
    GitVersion(2, 44, 1),
    GitVersion(2, 45, 1),
];

impl GitVersion {
    /// The oldest that is used.
    pub(crate) const MIN_GIT_VERSION: Self = MIN_GIT_VERSION;

    /// Reads the first numbers in a text, as `git version 2.39.5` has them.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let mut numbers = text.get(start..)?.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self(major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)))
    }

    /// Returns whether it is used.
    pub(crate) fn is_safe(self) -> bool {
        self >= MIN_GIT_VERSION
    }

    /// Returns the version that repairs what this one lets a local repository do, where it needs
    /// one.
    pub(crate) fn repaired_version(self) -> Option<Self> {
        REPAIRED_VERSIONS
            .into_iter()
            .find(|repaired| (repaired.0, repaired.1) == (self.0, self.1) && self < *repaired)
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_a_repositorys_commands_is_not_used() {
        #[track_caller]
        fn check(said: &str, safe: bool, repaired_by: Option<&str>) {
            let version = GitVersion::read(said).unwrap();
            let repaired = version.repaired_version().map(|version| version.to_string());
            assert_eq!((version.is_safe(), repaired.as_deref()), (safe, repaired_by), "{said}");
        }
        check("git version 2.39.3", false, None);
        check("git version 2.39.4", true, None);
        check("git version 2.39.5 (Apple Git-154)", true, None);
        check("git version 2.39", false, None);
        check("git version 2.43.0", true, Some("2.43.4"));
        check("git version 2.45.1.windows.1", true, None);
        check("git version 2.47.rc1", true, None);
        check("git version 3.0.0", true, None);
        assert_eq!(GitVersion::read("git version next"), None);
    }
}
