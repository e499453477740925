//! `rhumb diff`.

use super::args::DiffArgs;
use super::{CommandError, Exit, Terminal};
use crate::config::Config;
use crate::object::Class;

/// Carries the command out.
pub(super) fn carry_out(
    _args: &DiffArgs,
    _config: Config,
    _terminal: &Terminal,
) -> Result<Exit, CommandError> {
    Err(CommandError::new(Class::Internal, "`rhumb diff` is not part of this build"))
}
