//! Work on a repository of others, in a sandbox in which nothing else can be opened. A thread does
//! it, or a program that the thread starts.
//!
//! git opens files by their paths. Between a look at a path and its use, whoever may write there
//! can put a link in its place. In this sandbox the kernel denies what lies elsewhere, whatever
//! leads to it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    make_bitflags,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// All that opens a file to read it. Nothing in the sandbox writes, so that nothing else is
/// bounded.
const READ_ACCESS: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});

/// The places of programs and of the libraries that they are linked with.
const PROGRAM_PATHS: [&str; 13] = [
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/dev/null",
    "/dev/urandom",
];

/// Runs work by a thread of its own that can open nothing but what is below these folders, which
/// are paths without a link.
///
/// Where the kernel has no Landlock, or lets nobody use it, it runs without the sandbox.
///
/// Fails where a folder is not there, or a link has come into its path.
pub(super) fn run_within<T: Send>(folders: &[&Path], work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let opened: Vec<OwnedFd> = folders.iter().map(|folder| open_plainly(folder)).collect::<Result<_, _>>()?;
    run_sandboxed(opened, Vec::new(), work)
}

/// Does the same for work that starts a program, which inherits the sandbox: it may also read and
/// run what programs consist of.
pub(super) fn run_program_within<T: Send>(
    folders: &[PathBuf],
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let opened: Vec<OwnedFd> = folders.iter().map(|folder| open_plainly(folder)).collect::<Result<_, _>>()?;
    run_sandboxed(opened, open_programs(), work)
}

fn run_sandboxed<T: Send>(
    folders: Vec<OwnedFd>,
    programs: Vec<OwnedFd>,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, move || {
            // Without it, each path was looked at before all the same.
            let _ = enter(folders.iter().chain(&programs));
            work()
        })?;
        thread.join().or_else(|panic| resume_unwind(panic))
    })
}

/// Opens what programs consist of, as far as it is there. Nothing of it is a secret: it is what a
/// system is installed from, and the folders in which programs are looked for.
fn open_programs() -> Vec<OwnedFd> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut paths: Vec<PathBuf> = PROGRAM_PATHS.iter().map(PathBuf::from).collect();
    for folder in std::env::split_paths(&path).filter(|folder| folder.is_absolute()) {
        // A git that was installed by itself has its parts beside the folder of its program.
        let git = fs::canonicalize(folder.join("git")).ok();
        if let Some(prefix) = git.as_deref().and_then(Path::parent).and_then(Path::parent) {
            paths.extend(["lib", "lib64", "libexec"].map(|part| prefix.join(part)));
        }
        paths.push(folder);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    paths
        .iter()
        .filter_map(|program_path| rustix::fs::open(program_path, flags, Mode::empty()).ok())
        .collect()
}

/// The flags of a folder that is opened, and is none by a link.
const FOLDER_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder by a path on which there is no link.
///
/// # Errors
/// Fails where one is, and where the system does not know the call.
pub(super) fn open_without_links(folder: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(CWD, folder, FOLDER_FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Does the same, and where the system does not know the call, follows links on the way.
fn open_plainly(folder: &Path) -> rustix::io::Result<OwnedFd> {
    match open_without_links(folder) {
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(folder, FOLDER_FLAGS, Mode::empty()),
        opened => opened,
    }
}

/// Bounds this thread for ever.
fn enter<'a>(paths: impl Iterator<Item = &'a OwnedFd>) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default().handle_access(READ_ACCESS)?.create()?;
    for program_path in paths {
        let is_folder = rustix::fs::fstat(program_path)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory);
        let access = if is_folder { READ_ACCESS } else { READ_ACCESS & AccessFs::from_file(ABI::V1) };
        rules = rules.add_rule(PathBeneath::new(program_path, access))?;
    }
    rules.restrict_self().map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_but_the_folders_can_be_opened_and_only_there() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let resolve = |dir: &tempfile::TempDir| fs::canonicalize(dir.path()).unwrap();
        let (inside, outside) = (resolve(&inside), resolve(&outside));
        for folder in [&inside, &outside] {
            fs::create_dir(folder.join("deep")).unwrap();
            fs::write(folder.join("deep/file"), "text").unwrap();
        }
        symlink(outside.join("deep/file"), inside.join("link")).unwrap();
        symlink(outside.join("deep"), inside.join("folder")).unwrap();
        let read = |path: &Path| fs::read(path).map_err(|error| error.kind());
        let check = |name: &Path, expected: Result<Vec<u8>, io::ErrorKind>| {
            let path = inside.join(name);
            assert_eq!(run_within(&[&inside], || read(&path)).unwrap(), expected, "{}", name.display());
        };
        check(Path::new("deep/file"), Ok(b"text".to_vec()));
        check(&outside.join("deep/file"), Err(io::ErrorKind::PermissionDenied));
        check(Path::new("link"), Err(io::ErrorKind::PermissionDenied));
        check(Path::new("folder/file"), Err(io::ErrorKind::PermissionDenied));
        let listed = run_within(&[&inside], || fs::read_dir(&outside).map(drop).map_err(|e| e.kind()));
        assert_eq!(listed.unwrap(), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(read(&inside.join("link")), Ok(b"text".to_vec()), "the caller is in no sandbox");

        let through = inside.join("folder");
        assert!(run_within(&[&through], || ()).is_err(), "no sandbox is built around where a link leads");
        assert!(run_within(&[&inside.join("missing")], || ()).is_err());
    }
}
