//! The program that puts variables into texts as Flux does, built as those of the control plane
//! are.

use std::path::PathBuf;

use crate::error::Error;
use crate::part::Program;
use crate::programs::{ProgramSet, Programs};

/// The variable that names a directory to take it from instead.
const DIRECTORY: &str = "RHUMB_EXPANDERS_BIN";

/// Where the program is that puts in variables: linked statically, at a pinned version.
#[derive(Debug, Clone)]
pub struct Expanders {
    /// Reads a list of `{text, variables}` and writes one of `{text, error}`, both as JSON.
    pub envsubst: PathBuf,
}

impl Expanders {
    /// Finds it, and builds it if nobody did yet.
    pub fn find() -> Result<Self, Error> {
        let programs = match std::env::var_os(DIRECTORY).filter(|value| !value.is_empty()) {
            Some(directory) => Programs::given(DIRECTORY, directory, ProgramSet::EXPANDERS.programs)?,
            None => Programs::cached(ProgramSet::EXPANDERS)?,
        };
        Ok(Self { envsubst: programs.path(Program::Envsubst) })
    }
}
