//! The programs that encrypt files of secrets, built as those of the control plane are.

use std::path::PathBuf;

use crate::error::Error;
use crate::part::Program;
use crate::programs::{ProgramSet, Programs};

/// The variable that names a directory to take them from instead.
const DIRECTORY: &str = "RHUMB_ENCRYPTERS_BIN";

/// Where the programs are that encrypt: linked statically, at pinned versions.
#[derive(Debug, Clone)]
pub struct Encrypters {
    /// sops 3.
    pub sops: PathBuf,
    /// The program that makes age identities.
    pub age_keygen: PathBuf,
}

impl Encrypters {
    /// Finds them, and builds them if nobody did yet.
    pub fn find() -> Result<Self, Error> {
        let programs = match std::env::var_os(DIRECTORY).filter(|value| !value.is_empty()) {
            Some(directory) => Programs::given(DIRECTORY, directory, ProgramSet::ENCRYPTERS.programs)?,
            None => Programs::cached(ProgramSet::ENCRYPTERS)?,
        };
        Ok(Self { sops: programs.path(Program::Sops), age_keygen: programs.path(Program::AgeKeygen) })
    }
}
