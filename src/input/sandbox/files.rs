//! The sandbox around files and ports: Landlock's rules for one policy.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope, make_bitflags,
};

use super::executable::ProgramLinkage;
use super::policy::NetworkReach;

/// The newest of Landlock whose rules are known to fit: what the kernel does not have of it is left
/// out.
const LANDLOCK_ABI: ABI = ABI::V7;

/// Everything that can be done below a private folder. No device, socket, pipe or link is made
/// there, and nothing is run from there.
const PRIVATE_ACCESS: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir | Refer
});
/// Stands for a port that the kernel chooses.
const ANY_PORT: u16 = 0;
const READ_ACCESS: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
const READ_FILE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile});
const RUN_FILE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | Execute});
const READ_AND_WRITE_FILE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile});

/// The reason for a part of the sandbox that does not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum LandlockError {
    #[error(
        "the kernel does not know it, or the service or container does not let it be called: Linux 5.13 has it, and \
         the packaged unit names its calls in SystemCallFilter="
    )]
    NotImplemented,
    #[error("it is switched off: add `landlock` to the kernel's `lsm=` list")]
    NotEnabled,
    #[error("the kernel, the service or the container refuses it: {0}")]
    Refused(#[from] RulesetError),
    #[error("{0}")]
    Path(#[from] PathFdError),
}

/// The reach of a rule.
pub(super) struct ReachableFiles<'a> {
    pub(super) readable: Vec<&'a Path>,
    pub(super) private: &'a Path,
    pub(super) network: &'a NetworkReach,
    /// The program and how it is linked.
    pub(super) program: Option<(&'a Path, &'a ProgramLinkage)>,
}

/// Bounds this process, and what it becomes, to these files for ever, and returns the version of
/// Landlock that does it.
pub(super) fn restrict(files: &ReachableFiles<'_>) -> Result<u32, LandlockError> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    let status = with_rules(ruleset, files)?.restrict_self()?;
    match status.landlock {
        LandlockStatus::NotEnabled => Err(LandlockError::NotEnabled),
        LandlockStatus::Available { effective_abi, kernel_abi }
            if status.ruleset != RulesetStatus::NotEnforced && status.no_new_privs =>
        {
            Ok(kernel_abi.map_or(effective_abi as u32, i32::cast_unsigned))
        }
        _ => Err(LandlockError::NotImplemented),
    }
}

fn with_rules(
    mut ruleset: RulesetCreated,
    files: &ReachableFiles<'_>,
) -> Result<RulesetCreated, LandlockError> {
    let mut rules = vec![(files.private, PRIVATE_ACCESS), (Path::new("/dev/null"), READ_AND_WRITE_FILE)];
    rules.extend(files.readable.iter().map(|path| (*path, reading(path))));
    let libraries = files.program.map(|(_, linkage)| linkage.libraries()).unwrap_or_default();
    rules.extend(libraries.iter().map(|path| (&**path, reading(path))));
    if let Some((program, linkage)) = files.program {
        rules.push((program, RUN_FILE));
        if let ProgramLinkage::Loader(loader) = linkage {
            rules.push((loader, RUN_FILE));
        }
    }
    for (path, access) in rules {
        ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
    }
    if let NetworkReach::Ports(ports) = files.network {
        // Go binds a socket to any free port, to see whether this host speaks IPv6. Nothing listens.
        ruleset = ruleset.add_rule(NetPort::new(ANY_PORT, AccessNet::BindTcp))?;
        for port in ports {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(ruleset)
}

fn reading(path: &Path) -> BitFlags<AccessFs> {
    if path.is_dir() { READ_ACCESS } else { READ_FILE }
}
