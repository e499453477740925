//! `rhumb generate`: man pages, completions and `docs/reference/`. Hidden: nobody but a packager
//! needs it.

mod manual;
mod reference;

use std::fs;
use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;

use super::args::{self, GenerateArgs, GenerateTarget};
use super::exit::os_message;
use super::{CommandError, ExitStatus};
use crate::object::ErrorClass;

/// The section of pages about commands for administrators.
const MAN_SECTION: &str = "8";

/// The name of the program.
const PROGRAM_NAME: &str = "rhumb";

/// Carries the command out.
pub(super) fn carry_out(args: &GenerateArgs) -> Result<ExitStatus, CommandError> {
    let made = match args.target {
        GenerateTarget::Man => write_manuals(&args.directory),
        GenerateTarget::Completions => write_completions(&args.directory),
        GenerateTarget::Reference => write_references(&args.directory),
    };
    made.map(|()| ExitStatus::Done).map_err(|error| {
        let directory = args.directory.display();
        CommandError::new(ErrorClass::Config, format!("{directory}: {}", os_message(&error)))
    })
}

/// Returns the command line without what is hidden.
fn visible_command() -> clap::Command {
    let root_command = args::command_line();
    let subcommands: Vec<clap::Command> =
        root_command.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let mut shown = clap::Command::new(PROGRAM_NAME).version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = root_command.get_about() {
        shown = shown.about(about.clone());
    }
    shown
        .args(root_command.get_arguments().cloned().collect::<Vec<_>>())
        .subcommands(subcommands)
        .subcommand_required(true)
}

fn write_completions(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = visible_command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, PROGRAM_NAME, folder)?;
    }
    Ok(())
}

fn write_manuals(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut root_command = visible_command().disable_help_subcommand(true);
    root_command.build();
    write_page(folder, &root_command, PROGRAM_NAME)?;
    fs::write(folder.join("rhumb.yaml.5"), manual::configuration())
}

fn write_references(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut root_command = visible_command().disable_help_subcommand(true);
    root_command.build();
    for (name, text) in reference::pages(&root_command) {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Writes the page of a command, and those of its subcommands.
fn write_page(folder: &Path, command: &clap::Command, name: &str) -> std::io::Result<()> {
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    for subcommand in subcommands {
        write_page(folder, subcommand, &format!("{name}-{}", subcommand.get_name()))?;
    }
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section(MAN_SECTION)
        .source(concat!("rhumb ", env!("CARGO_PKG_VERSION")))
        .manual("rhumb");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if name == PROGRAM_NAME {
        text.extend(manual::program_sections().into_bytes());
    } else {
        text.extend(manual::help_after_flags(command).into_bytes());
    }
    fs::write(folder.join(format!("{name}.{MAN_SECTION}")), text)
}
