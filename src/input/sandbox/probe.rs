//! The parts of the sandbox that this host has, found by setting them up.

use std::path::Path;

use super::error::SandboxError;
use super::policy::{NetworkReach, SandboxLimits, SandboxPolicy};
use super::run::Sandbox;
use super::words::StartReport;
use crate::config::SandboxMode;

/// The parts of the sandbox that can be set up on this host, in this container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The version of Landlock's interface, or why there is none.
    pub landlock: Result<u32, String>,
    /// The reason for which system calls cannot be bounded, if there is one.
    pub seccomp: Result<(), String>,
}

impl SandboxSupport {
    /// Sets up the whole sandbox around a process that does nothing, with this folder as its
    /// private one.
    ///
    /// # Errors
    /// Fails where that process cannot be started, which says nothing about the sandbox.
    pub async fn probe(sandbox: &Sandbox, private: &Path) -> Result<Self, SandboxError> {
        let seccomp = test_sandbox(sandbox, private, SandboxMode::Seccomp).await?.map(drop);
        let landlock = match &seccomp {
            Ok(()) => test_sandbox(sandbox, private, SandboxMode::Full).await?,
            Err(reason) => Err(reason.clone()),
        };
        Ok(Self { landlock, seccomp })
    }

    /// Checks that programs can be run in this mode.
    ///
    /// # Errors
    /// Fails with the reason why the kernel or this process cannot set them up.
    pub fn allows(&self, mode: SandboxMode) -> Result<(), &str> {
        let landlock = match mode {
            SandboxMode::Full => self.landlock.as_ref().map(drop),
            SandboxMode::Seccomp => Ok(()),
        };
        landlock.and(self.seccomp.as_ref().copied()).map_err(String::as_str)
    }
}

async fn test_sandbox(
    sandbox: &Sandbox,
    private: &Path,
    mode: SandboxMode,
) -> Result<Result<u32, String>, SandboxError> {
    let policy = SandboxPolicy {
        mode,
        readable: Vec::new(),
        private: private.to_owned(),
        network: NetworkReach::None,
        limits: SandboxLimits::default(),
    };
    Ok(match sandbox.test_sandbox(&policy).await? {
        StartReport::Works { landlock } => Ok(landlock),
        StartReport::Unsupported { part, reason } => Err(format!("{part}: {reason}")),
        StartReport::NoProgram(reason) | StartReport::Failed(reason) => Err(reason),
        StartReport::Started => Err("it was asked for something else".to_owned()),
    })
}
