//! `rhumb prune`.

use super::args::PruneCommand;
use super::{CommandError, Exit, Terminal};
use crate::config::{Config, Name};
use crate::object::Class;

/// Carries the command out, for the source of this name.
pub(super) fn carry_out(
    _command: &PruneCommand,
    _config: Config,
    _source: &Name,
    _terminal: &Terminal,
) -> Result<Exit, CommandError> {
    Err(CommandError::new(Class::Internal, "`rhumb prune` is not part of this build"))
}
