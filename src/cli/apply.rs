//! `rhumb apply`.

use super::args::ApplyArgs;
use super::{CommandError, Exit, Terminal};
use crate::config::Config;
use crate::object::Class;

/// Carries the command out.
pub(super) fn carry_out(
    _args: &ApplyArgs,
    _config: Config,
    _terminal: &Terminal,
) -> Result<Exit, CommandError> {
    Err(CommandError::new(Class::Internal, "`rhumb apply` is not part of this build"))
}
