//! Work on a followed repository by a thread that can open nothing else.
//!
//! libgit2 opens files by their paths. Between a look at a path and its use, whoever may write
//! there can put a link in its place. In this sandbox the kernel denies what lies elsewhere,
//! whatever leads to it.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use landlock::{
    AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    make_bitflags,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// All that opens a file to read it. Nothing in the sandbox writes, so that nothing else is
/// bounded.
const READING: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});

/// Runs work by a thread of its own that can open nothing but what is below these folders, which
/// are paths without a link.
///
/// Where the kernel has no Landlock, or lets nobody use it, it runs without the sandbox.
///
/// Fails where a folder is not there, or a link has come into its path.
pub(super) fn run_within<T: Send>(folders: &[&Path], work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let opened: Vec<OwnedFd> = folders.iter().map(|folder| open_plainly(folder)).collect::<Result<_, _>>()?;
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, move || {
            // Without it, each path was looked at before all the same.
            let _ = enter(&opened);
            work()
        })?;
        thread.join().or_else(|panic| resume_unwind(panic))
    })
}

/// Opens a folder by a path on which no link is followed.
fn open_plainly(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(folder, flags, Mode::empty()),
        opened => opened,
    }
}

/// Bounds this thread for ever.
fn enter(folders: &[OwnedFd]) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default().handle_access(READING)?.create()?;
    for folder in folders {
        rules = rules.add_rule(PathBeneath::new(folder, READING))?;
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
