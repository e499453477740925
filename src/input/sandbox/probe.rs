//! The walls that this host has, found by raising them.

use std::path::Path;

use super::error::SandboxError;
use super::policy::{Confinement, NetworkReach, SandboxLimits, SandboxPolicy};
use super::run::Sandbox;
use super::words::StartReport;

/// The walls that can be raised on this host, in this container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The version of Landlock's interface, or why there is none.
    pub landlock: Result<u32, String>,
    /// The reason for which system calls cannot be bounded, if there is one.
    pub seccomp: Result<(), String>,
}

impl SandboxSupport {
    /// Raises all walls around a process that does nothing, with this folder as its private one.
    ///
    /// # Errors
    /// Fails where that process cannot be started, which tells nothing of the walls.
    pub async fn probe(sandbox: &Sandbox, private: &Path) -> Result<Self, SandboxError> {
        let seccomp = rehearse(sandbox, private, Confinement::Seccomp).await?.map(drop);
        let landlock = match &seccomp {
            Ok(()) => rehearse(sandbox, private, Confinement::Full).await?,
            Err(reason) => Err(reason.clone()),
        };
        Ok(Self { landlock, seccomp })
    }

    /// Checks that programs can be run with these walls.
    ///
    /// # Errors
    /// Fails with the reason why the kernel or this process cannot set them up.
    pub fn allows(&self, confinement: Confinement) -> Result<(), &str> {
        let landlock = match confinement {
            Confinement::Full => self.landlock.as_ref().map(drop),
            Confinement::Seccomp => Ok(()),
        };
        landlock.and(self.seccomp.as_ref().copied()).map_err(String::as_str)
    }
}

async fn rehearse(
    sandbox: &Sandbox,
    private: &Path,
    confinement: Confinement,
) -> Result<Result<u32, String>, SandboxError> {
    let policy = SandboxPolicy {
        confinement,
        readable: Vec::new(),
        private: private.to_owned(),
        network: NetworkReach::None,
        limits: SandboxLimits::default(),
    };
    Ok(match sandbox.rehearse(&policy).await? {
        StartReport::Stands { landlock } => Ok(landlock),
        StartReport::NoWall { wall, reason } => Err(format!("{wall}: {reason}")),
        StartReport::NoProgram(reason) | StartReport::Failed(reason) => Err(reason),
        StartReport::Begins => Err("it was asked for something else".to_owned()),
    })
}
