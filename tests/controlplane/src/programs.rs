//! The directory of programs: one that the environment names, or the cache, filled by a build on
//! first use.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use crate::build::{self, Toolchain};
use crate::error::{Context as _, Error};
use crate::part::{self, Program};

/// The variables that name a directory of programs, the first one set counts.
const VARIABLES: [&str; 2] = ["RHUMB_CONTROLPLANE_BIN", "KUBEBUILDER_ASSETS"];

/// Programs that are built together and kept in one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramSet {
    pub(crate) programs: &'static [Program],
    /// How long it takes.
    duration: &'static str,
}

impl ProgramSet {
    /// The control plane and its kubectl.
    pub(crate) const CONTROL_PLANE: Self = Self { programs: &Program::ALL, duration: "6 minutes" };
    /// The programs that encrypt files, and make the keys.
    pub(crate) const ENCRYPTERS: Self =
        Self { programs: &[Program::Sops, Program::AgeKeygen], duration: "4 minutes" };
    /// The program that puts variables into texts.
    pub(crate) const EXPANDERS: Self = Self { programs: &[Program::Envsubst], duration: "10 seconds" };
    /// The programs that render, in the version that most have.
    pub(crate) const RENDERERS: Self =
        Self { programs: &[Program::Kustomize, Program::Helm3], duration: "3 minutes" };
    /// The program that keeps charts.
    pub(crate) const REGISTRY: Self = Self { programs: &[Program::Registry], duration: "4 minutes" };
    /// The programs of a node with containers, and of the images.
    pub(crate) const REAL_NODES: Self = Self {
        programs: &[Program::RealNode, Program::App, Program::KubeProxy, Program::Kubelet],
        duration: "5 minutes",
    };
    /// The next version of one of them.
    pub(crate) const HELM4: Self = Self { programs: &[Program::Helm4], duration: "3 minutes" };
}

/// A directory with the programs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    directory: PathBuf,
}

impl Programs {
    /// Finds the programs, and builds them if nobody did yet; only `needed` ones are asked of a
    /// directory that the environment names.
    pub(crate) fn find(needed: &[Program]) -> Result<Self, Error> {
        for variable in VARIABLES {
            if let Some(directory) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
                return Self::given(variable, directory, needed);
            }
        }
        Self::cached(ProgramSet::CONTROL_PLANE)
    }

    /// Takes them from a directory that a variable names.
    pub(crate) fn given(
        variable: &'static str,
        directory: OsString,
        needed: &[Program],
    ) -> Result<Self, Error> {
        let directory = PathBuf::from(directory);
        let missing: Vec<_> =
            needed.iter().copied().filter(|program| !directory.join(program.file_name()).is_file()).collect();
        if missing.is_empty() {
            let directory =
                fs::canonicalize(&directory).context(|| format!("find {}", directory.display()))?;
            Ok(Self { directory })
        } else {
            Err(Error::Missing { variable, dir: directory, missing: part::names(&missing) })
        }
    }

    /// Finds a set in the cache, and builds it if nobody did yet.
    pub(crate) fn cached(set: ProgramSet) -> Result<Self, Error> {
        let toolchain = Toolchain::find()?;
        let root = cache_root()?;
        let directory = root.join(key(&toolchain, set)?);
        if !directory.is_dir() {
            fs::create_dir_all(&root).context(|| format!("create {}", root.display()))?;
            let lock = lock(&root.join("lock"))?;
            if !directory.is_dir() {
                build_into(&toolchain, set, &root, &directory)?;
            }
            drop(lock);
        }
        Ok(Self { directory })
    }

    /// Returns where a program is, whether or not it is there.
    pub(crate) fn path(&self, program: Program) -> PathBuf {
        self.directory.join(program.file_name())
    }

    /// Returns the directory that has the programs.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Prints a line of progress; never captured by the test harness, so that a long first build is
/// seen.
pub(crate) fn progress(line: &str) {
    // Nobody is served by a failure to say that a build goes on.
    let _ = writeln!(io::stderr().lock(), "controlplane: {line}");
}

pub(crate) fn cache_root() -> Result<PathBuf, Error> {
    let absolute = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .ok_or(Error::NoDirectory {
            what: "the cache",
            why: "neither XDG_CACHE_HOME nor HOME is an absolute path",
        })?;
    Ok(cache.join("rhumb-controlplane"))
}

/// Names a build by everything that goes into it.
fn key(toolchain: &Toolchain, set: ProgramSet) -> Result<String, Error> {
    let mut hash = Sha256::new();
    hash.update(toolchain.identity());
    for program in set.programs.iter().copied() {
        let module = build::module_directory(program);
        for path in [module.join("go.mod"), module.join("go.sum")].into_iter().chain(sources(&module)?) {
            // A program of our own may need nobody else's.
            if path.exists() {
                hash.update(fs::read(&path).context(|| format!("read {}", path.display()))?);
            }
        }
        hash.update(build::ldflags(program)?);
    }
    let digest: [u8; 32] = hash.finalize().into();
    Ok(hex(&digest[..8]))
}

/// Returns the files of Go in a folder, of which only a program of our own has any.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).context(|| format!("list {}", folder.display()))? {
        let path = entry.context(|| format!("list {}", folder.display()))?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "go") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Writes bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Takes the lock, and says so if another process has it.
pub(crate) fn lock(path: &Path) -> Result<File, Error> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .context(|| format!("open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress("another process is building the programs; waiting for it");
            let begun = Instant::now();
            file.lock().context(|| format!("lock {}", path.display()))?;
            progress(&format!("waited {} s for the other process", begun.elapsed().as_secs()));
        }
        Err(TryLockError::Error(source)) => {
            return Err(source).context(|| format!("lock {}", path.display()));
        }
    }
    Ok(file)
}

/// Builds a set of programs beside their place and moves them there at once.
fn build_into(toolchain: &Toolchain, set: ProgramSet, root: &Path, directory: &Path) -> Result<(), Error> {
    remove_leftovers(root)?;
    let half = tempfile::Builder::new()
        .prefix(HALF_BUILT)
        .tempdir_in(root)
        .context(|| format!("create a directory in {}", root.display()))?;
    let begun = Instant::now();
    progress(&format!(
        "building {} for {}; this takes about {} on two cores and happens once",
        part::names(set.programs),
        directory.display(),
        set.duration
    ));
    for (index, program) in set.programs.iter().copied().enumerate() {
        build::program(toolchain, program, half.path(), &format!("{} of {}", index + 1, set.programs.len()))?;
    }
    fs::rename(half.path(), directory).context(|| format!("move the programs to {}", directory.display()))?;
    progress(&format!("all programs built in {} s", begun.elapsed().as_secs()));
    Ok(())
}

const HALF_BUILT: &str = "half-built-";

/// Removes what killed builds left; the lock is held, so no live build owns any of it.
fn remove_leftovers(root: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(root).context(|| format!("list {}", root.display()))?;
    for entry in entries {
        let entry = entry.context(|| format!("list {}", root.display()))?;
        if entry.file_name().to_string_lossy().starts_with(HALF_BUILT) {
            let path = entry.path();
            fs::remove_dir_all(&path).context(|| format!("remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Makes a command that ends, with all that it starts, when this process ends, however that
/// happens.
///
/// The command's group is killed as soon as the pipe that is the guard's standard input closes.
/// The caller keeps the child's `stdin` until the command has ended.
pub(crate) fn guarded(program: &Path) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg("exec 3<&0; { cat <&3; kill -KILL 0; } >/dev/null 2>&1 & exec 3<&- \"$0\" \"$@\" </dev/null")
        .arg(program)
        .stdin(std::process::Stdio::piped())
        .process_group(0);
    command
}
