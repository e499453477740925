//! The programs of this host: where they are, their versions and digests.
//!
//! A file is read and asked once, and again when it is another one.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::policy::{NetworkReach, ProgramCommand, SandboxLimits, SandboxPolicy};
use super::program::{ProgramError, ProgramVersion, RenderProgram};
use super::run::Sandbox;
use crate::config::SandboxMode;

/// The time limit of a program for its version, which it knows.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// The bytes of a version.
const MAX_VERSION_OUTPUT_BYTES: usize = 4096;
/// The characters of an answer that names no version, as far as they are shown.
const MAX_SHOWN_OUTPUT_CHARS: usize = 100;

/// A program that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    /// The kind.
    pub program: RenderProgram,
    /// Its file, without links.
    pub path: PathBuf,
    /// The version that it prints.
    pub version: ProgramVersion,
    /// The SHA-256 of its file.
    pub digest: [u8; 32],
}

/// A file, as long as nobody writes another one in its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FileIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    fn new(path: PathBuf, found: &Metadata) -> Self {
        Self {
            path,
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

/// A finder of programs, which remembers what it found.
#[derive(Debug, Default)]
pub struct ProgramFinder {
    sandbox: Sandbox,
    known: Mutex<HashMap<RenderProgram, (FileIdentity, InstalledProgram)>>,
}

impl ProgramFinder {
    /// Returns one that asks programs for their versions in this sandbox.
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, known: Mutex::default() }
    }

    /// Returns a program that was found before, as long as its file is the same. Waits for nothing.
    pub fn find_known(
        &self,
        program: RenderProgram,
        program_lookup: ProgramLookup<'_>,
    ) -> Option<InstalledProgram> {
        let path = program_lookup.locate(program).ok()?;
        let found = fs::metadata(&path).ok()?;
        self.known_program(program, &FileIdentity::new(path, &found))
    }

    fn known_program(&self, program: RenderProgram, identity: &FileIdentity) -> Option<InstalledProgram> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, installed) = all.get(&program)?;
        (known == identity).then(|| installed.clone())
    }

    /// Finds a program: the configured file, or the first of its name in the search path.
    ///
    /// # Errors
    /// Fails where there is none, or where it is too old or cannot be run in the sandbox.
    pub async fn find(
        &self,
        program: RenderProgram,
        program_lookup: ProgramLookup<'_>,
        mode: SandboxMode,
    ) -> Result<InstalledProgram, ProgramError> {
        let path = program_lookup.locate(program)?;
        let unreadable = |error| ProgramError::Unreadable { program, path: path.clone(), error };
        let identity = FileIdentity::new(path.clone(), &fs::metadata(&path).map_err(unreadable)?);
        if let Some(installed) = self.known_program(program, &identity) {
            return Ok(installed);
        }
        let file = path.clone();
        let digest = tokio::task::spawn_blocking(move || digest(&file)).await;
        let digest = digest.map_err(io::Error::other).and_then(|digest| digest).map_err(unreadable)?;
        let version = self.version(program, &path, mode).await?;
        let installed = InstalledProgram { program, path, version, digest };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(program, (identity, installed.clone()));
        Ok(installed)
    }

    async fn version(
        &self,
        program: RenderProgram,
        path: &Path,
        mode: SandboxMode,
    ) -> Result<ProgramVersion, ProgramError> {
        let private = tempfile::TempDir::new().map_err(|error| ProgramError::Unreadable {
            program,
            path: std::env::temp_dir(),
            error,
        })?;
        let policy = SandboxPolicy {
            mode,
            readable: Vec::new(),
            private: private.path().to_owned(),
            network: NetworkReach::None,
            limits: SandboxLimits {
                deadline: VERSION_TIMEOUT,
                output: MAX_VERSION_OUTPUT_BYTES,
                ..SandboxLimits::default()
            },
        };
        let command =
            ProgramCommand::new(path, private.path()).arguments(program.version_arguments().iter().copied());
        let answer = self.sandbox.run(&policy, &command).await?;
        let output = String::from_utf8_lossy(&answer.output);
        match ProgramVersion::read(&output).filter(|_| answer.is_success()) {
            Some(found) if found < program.floor() => {
                Err(ProgramError::TooOld { program, path: path.to_owned(), found })
            }
            Some(version) => Ok(version),
            None => {
                let output = if output.trim().is_empty() { &answer.stderr } else { &*output };
                let output = output.trim().chars().take(MAX_SHOWN_OUTPUT_CHARS).collect();
                Err(ProgramError::NoVersion { program, path: path.to_owned(), output })
            }
        }
    }
}

/// The way in which a program is looked up.
#[derive(Clone, Copy, Debug)]
pub enum ProgramLookup<'a> {
    /// This file, as the configuration names it.
    File(&'a Path),
    /// The folders of a `PATH`.
    Search(&'a OsStr),
}

impl ProgramLookup<'_> {
    fn locate(self, program: RenderProgram) -> Result<PathBuf, ProgramError> {
        match self {
            Self::File(path) => {
                let unreadable = |error| ProgramError::Unreadable { program, path: path.to_owned(), error };
                fs::canonicalize(path).map_err(unreadable)
            }
            Self::Search(folders) => std::env::split_paths(folders)
                // A folder without a name would be the one that this process happens to be in.
                .filter(|folder| folder.is_absolute())
                .filter_map(|folder| fs::canonicalize(folder.join(program.name())).ok())
                .find(|path| can_be_run(path))
                .ok_or(ProgramError::Missing { program }),
        }
    }
}

fn can_be_run(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hash))?;
    Ok(hash.finalize().into())
}

/// A writer into a hash.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "program").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_that_can_be_run_is_found_without_its_links() {
        let dir = tempfile::TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        file(&root.join("data/helm"), 0o644);
        fs::create_dir_all(root.join("folder/helm")).unwrap();
        file(&root.join("opt/helm-3.18"), 0o755);
        fs::create_dir(root.join("linked")).unwrap();
        std::os::unix::fs::symlink("../opt/helm-3.18", root.join("linked/helm")).unwrap();
        file(&root.join("later/helm"), 0o755);
        let search = |folders: &[&str]| {
            let folders = folders.iter().map(|folder| root.join(folder));
            let path = std::env::join_paths(folders).unwrap();
            ProgramLookup::Search(&path).locate(RenderProgram::Helm)
        };
        assert_eq!(
            search(&["data", "folder", "none", "linked", "later"]).unwrap(),
            root.join("opt/helm-3.18")
        );
        assert_eq!(search(&["later", "linked"]).unwrap(), root.join("later/helm"));
        assert!(matches!(search(&["data", "folder"]), Err(ProgramError::Missing { .. })));
        let here = ProgramLookup::Search(OsStr::new(".:")).locate(RenderProgram::Helm);
        assert!(matches!(here, Err(ProgramError::Missing { .. })));
        let named = root.join("none/helm");
        let error = ProgramLookup::File(&named).locate(RenderProgram::Helm).unwrap_err();
        assert!(error.to_string().contains("none/helm cannot be read"), "{error}");
    }

    #[test]
    fn a_program_is_known_as_long_as_its_file_is_the_same() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().canonicalize().unwrap().join("helm");
        file(&path, 0o755);
        let finder = ProgramFinder::default();
        let find = || finder.find_known(RenderProgram::Helm, ProgramLookup::File(&path));
        assert_eq!(find(), None);
        let program = RenderProgram::Helm;
        let version = ProgramVersion(4, 0, 0);
        let installed = InstalledProgram { program, path: path.clone(), version, digest: [7; 32] };
        let identity = FileIdentity::new(path.clone(), &fs::metadata(&path).unwrap());
        finder.known.lock().unwrap().insert(program, (identity, installed.clone()));
        assert_eq!(find(), Some(installed));
        fs::write(&path, "another program").unwrap();
        assert_eq!(find(), None);
    }

    #[test]
    fn a_digest_is_that_of_the_whole_file() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "abc").unwrap();
        let expected = [0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea];
        assert_eq!(digest(&path).unwrap()[..8], expected);
    }
}
