//! The programs of this host that render, and the place where they do.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use super::memory_folder::{self, MemoryFolder};
use super::program_slots::MAX_CONCURRENT_RENDERS;
use super::sandbox::{
    InstalledProgram, NetworkReach, ProgramError, ProgramFinder, ProgramLookup, RenderProgram, Sandbox,
    SandboxLimits, SandboxPolicy,
};
use crate::config::{ProgramSpec, RendererConfig, SandboxMode};

/// The remedy where no folder is in memory.
pub(super) const NO_MEMORY_HINT: &str =
    "set `RuntimeDirectory=` for the service, or name a folder on tmpfs by XDG_RUNTIME_DIR or TMPDIR";

/// The host of renders, which finds and runs its programs.
#[derive(Debug)]
pub struct RenderHost {
    programs: ProgramSpec,
    mode: SandboxMode,
    search: OsString,
    folder: PathBuf,
    sandbox: Sandbox,
    finder: ProgramFinder,
    limits: SandboxLimits,
}

impl RenderHost {
    /// Returns a host with these settings. Trees are written below the folder, which is the one of
    /// this service in memory, or that for temporary files.
    pub fn new(settings: &RendererConfig, search: OsString, folder: PathBuf) -> Self {
        Self::with_sandbox(settings, search, folder, Sandbox::default())
    }

    /// Does the same as [`RenderHost::new`], with another sandbox.
    pub fn with_sandbox(
        settings: &RendererConfig,
        search: OsString,
        folder: PathBuf,
        sandbox: Sandbox,
    ) -> Self {
        let (finder, limits) = (ProgramFinder::new(sandbox.clone()), SandboxLimits::default());
        let mode = settings.sandbox;
        let programs = settings.programs.clone();
        Self { programs, mode, search, folder, sandbox, finder, limits }
    }

    /// Finds a program.
    ///
    /// # Errors
    /// Fails where there is none, or where it cannot be used.
    pub(crate) async fn find(&self, program: RenderProgram) -> Result<InstalledProgram, ProgramError> {
        self.finder.find(program, self.program_lookup(program), self.mode).await
    }

    /// Returns a program that was found before, as long as its file is the same.
    pub(crate) fn find_known(&self, program: RenderProgram) -> Option<InstalledProgram> {
        self.finder.find_known(program, self.program_lookup(program))
    }

    fn program_lookup(&self, program: RenderProgram) -> ProgramLookup<'_> {
        let configured = match program {
            RenderProgram::Kustomize => &self.programs.kustomize,
            RenderProgram::Helm => &self.programs.helm,
        };
        match configured {
            Some(file) => ProgramLookup::File(file),
            None => ProgramLookup::Search(&self.search),
        }
    }

    /// Returns the sandbox.
    pub(crate) const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the folder below which trees are written.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Returns the folders below which files in the open may be written, as far as they are in
    /// memory.
    pub(super) fn memory_folders(&self) -> Vec<PathBuf> {
        memory_folder::candidates(&self.folder)
    }

    /// Returns why no file can be opened in memory for a render, and what to do; none where one can.
    pub(crate) fn memory_obstacle(&self) -> Option<String> {
        memory_obstacle(&self.memory_folders())
    }

    /// Removes what a process that was killed left in memory.
    pub(crate) fn remove_leftovers(&self) {
        memory_folder::remove_leftovers(&self.memory_folders());
    }

    /// Returns the sandbox of a render of the tree in one folder that may write another.
    pub(crate) fn policy(&self, tree: PathBuf, private: PathBuf) -> SandboxPolicy {
        SandboxPolicy {
            mode: self.mode,
            readable: vec![tree],
            private,
            network: NetworkReach::None,
            limits: self.limits,
        }
    }

    /// Returns the parts of the sandbox that a program must have.
    pub(crate) const fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// Returns how many renders of one source run at once: on all processors, as far as there are
    /// slots.
    pub(crate) fn parallel_renders() -> usize {
        thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_CONCURRENT_RENDERS)
    }
}

fn memory_obstacle(folders: &[PathBuf]) -> Option<String> {
    let why = MemoryFolder::obstacle(folders)?;
    Some(format!("encrypted files cannot be opened for a render, as {why}: {NO_MEMORY_HINT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_in_memory_is_named_with_a_remedy() {
        assert_eq!(
            memory_obstacle(&["/proc".into(), "/nowhere".into()]).as_deref(),
            Some(
                "encrypted files cannot be opened for a render, as neither of /proc and /nowhere is on tmpfs or \
                 ramfs: set `RuntimeDirectory=` for the service, or name a folder on tmpfs by XDG_RUNTIME_DIR or TMPDIR"
            )
        );
        assert_eq!(memory_obstacle(&["/proc".into(), "/dev/shm".into()]), None);
    }
}
