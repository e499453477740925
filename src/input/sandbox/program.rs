//! The programs that render, and which versions of them are used.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::error::SandboxError;
use crate::object::ErrorClass;

/// A program that renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RenderProgram {
    /// `kustomize`.
    Kustomize,
    /// `helm`.
    Helm,
}

impl RenderProgram {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kustomize, Self::Helm];

    /// Returns the name of its file, and of its key below `programs`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kustomize => "kustomize",
            Self::Helm => "helm",
        }
    }

    /// Returns the oldest version that is used.
    pub const fn floor(self) -> ProgramVersion {
        match self {
            // Before it, fields that are followed here have another meaning.
            Self::Kustomize => ProgramVersion(5, 0, 0),
            // Older ones are not repaired any more.
            Self::Helm => ProgramVersion(3, 18, 0),
        }
    }

    /// Returns the arguments on which it prints its version and does nothing else.
    pub(super) const fn version_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Kustomize => &["version"],
            Self::Helm => &["version", "--short"],
        }
    }

    /// Returns what brings it.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Kustomize => {
                "`go install sigs.k8s.io/kustomize/kustomize/v5@latest`, `brew install kustomize`, or a release from \
                 https://github.com/kubernetes-sigs/kustomize/releases"
            }
            Self::Helm => {
                "`go install helm.sh/helm/v3/cmd/helm@latest`, `brew install helm`, or a release from \
                 https://github.com/helm/helm/releases"
            }
        }
    }
}

impl fmt::Display for RenderProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A version: major, minor and patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramVersion(pub u32, pub u32, pub u32);

impl ProgramVersion {
    /// Reads the first version in a text, as `v3.18.4+gd80839c` or `{Version:kustomize/v5.0.1 …}`
    /// have it.
    pub fn read(text: &str) -> Option<Self> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
            let mut numbers = word.split('.').map(str::parse::<u32>);
            let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some(Self(major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)))
        })
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The reason for a program that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not installed.
    #[error("there is no {program} in PATH; it comes by {}; or name its file as `programs.{program}`", .program.source())]
    Missing {
        /// The program.
        program: RenderProgram,
    },
    /// The configured file cannot be read.
    #[error("{program}: {} cannot be read: {error}", .path.display())]
    Unreadable {
        /// The program.
        program: RenderProgram,
        /// The path.
        path: PathBuf,
        /// The system's message.
        error: io::Error,
    },
    /// It is older than the oldest that is used.
    #[error(
        "{program}: {} is version {found}, and {} or newer is needed: it comes by {}",
        .path.display(), .program.floor(), .program.source()
    )]
    TooOld {
        /// The program.
        program: RenderProgram,
        /// The path.
        path: PathBuf,
        /// Its version.
        found: ProgramVersion,
    },
    /// It does not print its version.
    #[error(
        "{program}: {} names no version: {output}; name a release of {program} as `programs.{program}`",
        .path.display()
    )]
    NoVersion {
        /// The program.
        program: RenderProgram,
        /// The path.
        path: PathBuf,
        /// The beginning of what it said.
        output: String,
    },
    /// It cannot be run in the sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl ProgramError {
    /// Returns what kind of error it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Sandbox(error) => error.class(),
            _ => ErrorClass::Config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Option<ProgramVersion>) {
            assert_eq!(ProgramVersion::read(text), expected, "{text}");
        }
        check("v5.8.2\n", Some(ProgramVersion(5, 8, 2)));
        check("v3.18.4+gd80839c\n", Some(ProgramVersion(3, 18, 4)));
        check("v3.22", Some(ProgramVersion(3, 22, 0)));
        check("v4.0.0-rc.1", Some(ProgramVersion(4, 0, 0)));
        check(
            "{Version:kustomize/v5.0.1 GitCommit:1 BuildDate:2023-03-14T01:32:48Z}",
            Some(ProgramVersion(5, 0, 1)),
        );
        check("(devel)", None);
        check("", None);
        check("v99999999999.1", None);
    }

    #[test]
    fn versions_have_an_order() {
        assert!(ProgramVersion(3, 18, 0) <= ProgramVersion(3, 18, 4));
        assert!(ProgramVersion(3, 9, 9) < ProgramVersion(3, 18, 0));
        assert!(RenderProgram::Helm.floor() < ProgramVersion(4, 0, 0));
    }

    #[test]
    fn a_missing_program_names_what_brings_it() {
        for program in RenderProgram::ALL {
            let text = ProgramError::Missing { program }.to_string();
            for word in [program.name(), "PATH", "go install", &format!("`programs.{program}`")] {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
    }
}
