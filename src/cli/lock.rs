//! `rhumb lock`.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::args::{GlobalArgs, LockArgs};
use super::exit::os_message;
use super::rendering::SourceRendering;
use super::settings::{self, FileRead};
use super::{CommandError, ExitStatus, Terminal};
use crate::config::{FetchConfig, RendererConfig, SourceMode};
use crate::input::{LockState, PinPolicy, RootLock, RootLocks, is_lock};
use crate::object::ErrorClass;
use crate::render;

/// Writes the versions and digests of charts of servers beside the roots that use them; needs no
/// cluster.
pub(super) fn carry_out(
    args: &LockArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let rendering = match &args.config {
        Some(file) => {
            settings::refuse_source_name(global)?;
            let config = settings::from_file(global, SourceMode::Enforce, file, FileRead::First, terminal)?;
            SourceRendering::of_locks(&config.renderers, &config.sources)
        }
        None => {
            SourceRendering::automatic(Path::new(""), &RendererConfig::default(), &FetchConfig::default())
        }
    };
    let policy = if args.update { PinPolicy::Update } else { PinPolicy::Fill };
    let here = [PathBuf::from(".")];
    let folders = if args.roots.is_empty() { &here[..] } else { &args.roots };
    let mut exit = ExitStatus::Done;
    let (mut found, mut count) = (RootLocks::default(), 0_usize);
    for folder in folders {
        let locks = rendering.find_locks(folder, policy)?;
        for lock in &locks.roots {
            exit = exit.worst(report_lock(lock, args, terminal)?);
            count += 1;
        }
        found.refused.extend(locks.refused);
        found.interrupted.extend(locks.interrupted);
    }
    if !found.refused.is_empty() {
        exit = exit.worst(ExitStatus::Differs);
    }
    if !found.interrupted.is_empty() {
        exit = exit.worst(ExitStatus::Unreachable);
    }
    let all = [found.refused, found.interrupted].concat();
    terminal.report(&render::diagnostics(&all, terminal.error_palette()));
    if count == 0 && all.is_empty() {
        terminal.report("no root uses a chart of a server\n");
    }
    Ok(exit)
}

/// Reports about one lock, and writes it where it has to be written.
fn report_lock(lock: &RootLock, args: &LockArgs, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
    let file = &lock.file;
    if lock.state == LockState::Current {
        terminal.print(&format!("{}: up to date\n", file.display()))?;
        return Ok(ExitStatus::Done);
    }
    if lock.text.is_none() && !is_lock_file(file) {
        terminal.print(&format!("{}: left alone, as it is no lock\n", file.display()))?;
        return Ok(ExitStatus::Done);
    }
    let state = if args.check { "not up to date" } else { "written" };
    let state =
        if lock.text.is_none() && !args.check { "deleted, no chart of a server is used" } else { state };
    let mut text = format!("{}: {state}\n", file.display());
    for change in &lock.changes {
        let _ = writeln!(text, "  {change}");
    }
    if args.check {
        terminal.print(&text)?;
        return Ok(ExitStatus::Differs);
    }
    let written = match &lock.text {
        Some(text) => replace(file, text),
        None => fs::remove_file(file),
    };
    written.map_err(|error| {
        let message = format!("{} cannot be written: {}", file.display(), os_message(&error));
        CommandError::new(ErrorClass::Internal, message)
    })?;
    terminal.print(&text)?;
    Ok(ExitStatus::Done)
}

/// Returns whether a file is a lock, by its beginning.
fn is_lock_file(file: &Path) -> bool {
    let mut begin = Vec::new();
    let opened = fs::File::open(file).and_then(|file| file.take(256).read_to_end(&mut begin));
    opened.is_ok() && is_lock(&begin)
}

/// Puts a file in the place of another one, so that nobody ever reads a part of it.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new().prefix(".rhumb.lock-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    new.as_file().set_permissions(permissions)?;
    new.persist(file).map(drop).map_err(|error| error.error)
}
