//! `rhumb run`.

use super::args::RunArgs;
use super::{CommandError, Exit, Terminal};
use crate::config::Config;
use crate::object::Class;

/// Carries the command out.
pub(super) fn carry_out(
    _args: &RunArgs,
    _config: Config,
    _terminal: &Terminal,
) -> Result<Exit, CommandError> {
    Err(CommandError::new(Class::Internal, "`rhumb run` is not part of this build"))
}
