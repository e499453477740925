//! The `rhumb` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    rhumb::cli::main(std::env::args_os())
}
