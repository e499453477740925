//! The programs that render manifests, built as those of the control plane are.

use std::path::PathBuf;

use crate::error::Error;
use crate::part::Program;
use crate::programs::{ProgramSet, Programs};

/// The variable that names a directory to take them from instead.
const DIRECTORY: &str = "RHUMB_RENDERERS_BIN";
/// The variable that is 4 for Helm 4.
const HELM: &str = "RHUMB_HELM";

/// Where the programs are that render: linked statically, at pinned versions.
#[derive(Debug, Clone)]
pub struct Renderers {
    /// kustomize 5.
    pub kustomize: PathBuf,
    /// Helm 3, or Helm 4 where the variable `RHUMB_HELM` is 4.
    pub helm: PathBuf,
}

impl Renderers {
    /// Finds them, and builds them if nobody did yet.
    pub fn find() -> Result<Self, Error> {
        let programs = match std::env::var_os(DIRECTORY).filter(|value| !value.is_empty()) {
            Some(directory) => Programs::given(DIRECTORY, directory, ProgramSet::RENDERERS.programs)?,
            None => Programs::cached(ProgramSet::RENDERERS)?,
        };
        let helm = match std::env::var_os(HELM) {
            Some(version) if version == "4" => Self::helm4()?,
            _ => programs.path(Program::Helm3),
        };
        Ok(Self { kustomize: programs.path(Program::Kustomize), helm })
    }

    /// Finds Helm 4, and builds it if nobody did yet. That takes as long as Helm 3, with which it
    /// shares few packages, so no test asks for it by itself.
    pub fn helm4() -> Result<PathBuf, Error> {
        Ok(Programs::cached(ProgramSet::HELM4)?.path(Program::Helm4))
    }
}
