//! Folders as they are on disk: which files they hold, and their bytes without following any link.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use walkdir::{DirEntry, WalkDir};

use super::error::SourceError;
use super::file_names::{self, EntryKind, IgnoreFiles};
use super::read_sandbox;
use super::reader::MAX_FOLDER_ENTRIES;
use super::refusal::{RefusalReason, RefusedFile};
use super::tree::{self, ClassifiedEntry, EntryBudget};

/// The identity of a file's content on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStat {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStat {
    pub(super) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns whether the file was last touched before this second of the wall clock. A younger
    /// one may change again without a trace, because the stamps of many kernels only tick every few
    /// milliseconds.
    pub(super) fn is_older_than(&self, second: i64) -> bool {
        self.modified.0.max(self.changed.0) < second
    }
}

/// The files of a folder, their contents not read yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderListing {
    /// Ordered by path.
    pub(super) files: Vec<(String, FileStat)>,
    pub(super) refusals: Vec<RefusedFile>,
}

/// Follows the links to a folder, and the `..data` link by which Kubernetes swaps a volume's
/// content.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, SourceError> {
    let real = fs::canonicalize(path).map_err(|error| folder_error(path, error))?;
    let data = real.join("..data");
    if fs::symlink_metadata(&data).is_ok_and(|metadata| metadata.is_symlink())
        && let Ok(target) = fs::canonicalize(&data)
        && target.starts_with(&real)
        && target.is_dir()
    {
        return Ok(target);
    }
    Ok(real)
}

/// A resolved folder, held open so that one pass reads one folder whatever is renamed meanwhile.
pub(super) struct OpenFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl OpenFolder {
    pub(super) fn open(path: &Path) -> Result<Self, SourceError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|error| folder_error(path, error.into()))?;
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Opens a folder over a path without links: one may be put into its place after every look.
    /// None where that is not possible.
    pub(super) fn open_without_links(path: &Path) -> Option<Self> {
        let handle = read_sandbox::open_without_links(path).ok()?;
        Some(Self { path: path.to_owned(), handle })
    }

    /// Lists the files by their names alone.
    pub(super) fn list(&self) -> Result<FolderListing, SourceError> {
        self.list_within(EntryBudget::new(MAX_FOLDER_ENTRIES))
    }

    fn list_within(&self, budget: EntryBudget) -> Result<FolderListing, SourceError> {
        let mut walk = FolderWalk {
            root: self,
            budget,
            ignores: IgnoreFiles::default(),
            levels: Vec::new(),
            out: FolderListing::default(),
        };
        walk.run()?;
        let mut listing = walk.out;
        listing.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        listing.refusals.sort_unstable();
        Ok(listing)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes an entry of the folder.
    pub(super) fn count(&self, budget: &mut EntryBudget, path: &Path) -> Result<(), SourceError> {
        let inside = path.strip_prefix(&self.path).unwrap_or(path);
        let shown_location = || self.path.display().to_string();
        let taken = budget.take_entry(inside.as_os_str().len());
        taken
            .map_err(|_| SourceError::TooMany { shown_location: shown_location(), limit: MAX_FOLDER_ENTRIES })
    }

    /// Reads a file of at most `most` bytes, through no link, and looks whether it stayed the same.
    pub(super) fn read(&self, inside: &str, most: u64) -> io::Result<FileReadResult> {
        let file = match self.open_file(Path::new(inside)) {
            Ok(file) => fs::File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(FileReadResult::Gone),
            Err(Errno::LOOP) => return Ok(FileReadResult::Refused(RefusalReason::Symlink)),
            Err(error) => return Err(error.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(FileReadResult::Refused(RefusalReason::NotAFile));
        }
        let before = FileStat::of(&metadata);
        if before.size > most {
            return Ok(FileReadResult::Refused(RefusalReason::TooLarge));
        }
        let mut bytes = Vec::with_capacity(before.size as usize);
        (&file).take(most + 1).read_to_end(&mut bytes)?;
        let after = FileStat::of(&file.metadata()?);
        if before != after || bytes.len() as u64 != before.size {
            return Ok(FileReadResult::Moving);
        }
        Ok(FileReadResult::Whole(before, bytes))
    }

    /// Returns what is at a path, itself and not what it links to; none where nothing does. The
    /// caller has looked at the folders on the way.
    pub(super) fn metadata(&self, inside: &str) -> io::Result<Option<fs::Metadata>> {
        match fs::symlink_metadata(self.path.join(inside)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::InvalidFilename
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the text of a link.
    pub(super) fn read_link(&self, inside: &str) -> io::Result<PathBuf> {
        fs::read_link(self.path.join(inside))
    }

    /// Returns the names in a folder, in order. One that is no UTF-8 has signs in place of its odd
    /// bytes.
    pub(super) fn names(&self, inside: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path.join(inside))? {
            if names.len() >= MAX_FOLDER_ENTRIES {
                return Err(io::Error::other(format!("more than {MAX_FOLDER_ENTRIES} entries")));
            }
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens for reading, never waits for a pipe's other end.
    fn open_file(&self, inside: &Path) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.handle, inside, flags, Mode::empty(), resolve) {
            // Kernels before 5.6, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&self.handle, inside, flags, Mode::empty()),
            opened => opened,
        }
    }
}

pub(super) fn folder_error(path: &Path, error: io::Error) -> SourceError {
    let shown_location = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound => SourceError::Missing { shown_location },
        _ => SourceError::Unreadable { shown_location, error },
    }
}

struct FolderWalk<'a> {
    root: &'a OpenFolder,
    budget: EntryBudget,
    ignores: IgnoreFiles,
    /// The number of ignore files that count inside the folder of each depth.
    levels: Vec<usize>,
    out: FolderListing,
}

impl FolderWalk<'_> {
    fn run(&mut self) -> Result<(), SourceError> {
        let mut entries = WalkDir::new(&self.root.path).sort_by_file_name().into_iter();
        while let Some(entry) = entries.next() {
            let path = entry.as_ref().map(DirEntry::path);
            self.root.count(&mut self.budget, path.unwrap_or(&self.root.path))?;
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.refuse_folder(error)?;
                    continue;
                }
            };
            if !self.entry(&entry)? && entry.file_type().is_dir() {
                entries.skip_current_dir();
            }
        }
        Ok(())
    }

    /// Refuses a folder that cannot be listed; the root itself is an error.
    fn refuse_folder(&mut self, error: walkdir::Error) -> Result<(), SourceError> {
        let path = error.path().unwrap_or(&self.root.path).to_owned();
        let depth = error.depth();
        let error = error.into_io_error().unwrap_or_else(|| io::Error::other("a loop of folders"));
        if depth == 0 {
            return Err(folder_error(&path, error));
        }
        if error.kind() != io::ErrorKind::NotFound {
            let inside = file_names::sanitize_text(&self.relative_path(&path));
            self.out
                .refusals
                .push(RefusedFile::new(inside, RefusalReason::Unreadable).with_detail(error.to_string()));
        }
        Ok(())
    }

    fn relative_path(&self, path: &Path) -> Vec<u8> {
        path.strip_prefix(&self.root.path).unwrap_or(path).as_os_str().as_bytes().to_vec()
    }

    /// Judges an entry; for a folder, whether it is to be entered.
    fn entry(&mut self, entry: &DirEntry) -> Result<bool, SourceError> {
        let depth = entry.depth();
        if depth == 0 {
            return self.enter(entry.path(), "", 0);
        }
        self.levels.truncate(depth);
        self.ignores.leave_to(self.levels.last().copied().unwrap_or_default());
        let name = entry.file_name().as_bytes();
        if name == b".git" {
            return Ok(false);
        }
        let parent = entry.path().parent().map(|parent| self.relative_path(parent)).unwrap_or_default();
        let kind = kind(entry.file_type());
        match tree::classify_entry(&self.ignores, &file_names::sanitize_text(&parent), name, kind, depth - 1)
        {
            ClassifiedEntry::Skip => Ok(false),
            ClassifiedEntry::Refuse(refusal) => {
                self.out.refusals.push(refusal);
                Ok(false)
            }
            ClassifiedEntry::Enter(path) => self.enter(entry.path(), &path, depth),
            ClassifiedEntry::Take(path) => {
                match entry.metadata() {
                    Ok(metadata) => self.out.files.push((path, FileStat::of(&metadata))),
                    // Gone since the folder was listed: the next pass sees it as it is then.
                    Err(error) if error.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound) => {}
                    Err(error) => {
                        let detail = error.io_error().map(ToString::to_string).unwrap_or_default();
                        self.out
                            .refusals
                            .push(RefusedFile::new(path, RefusalReason::Unreadable).with_detail(detail));
                    }
                }
                Ok(false)
            }
        }
    }

    /// Reads the folder's ignore file and looks for what makes it one that is not read.
    fn enter(&mut self, folder: &Path, path: &str, depth: usize) -> Result<bool, SourceError> {
        let refusal = self.refusal(folder, path, depth)?;
        self.levels.truncate(depth);
        self.levels.push(self.ignores.depth());
        let enter = refusal.is_none();
        self.out.refusals.extend(refusal);
        Ok(enter)
    }

    fn refusal(
        &mut self,
        folder: &Path,
        path: &str,
        depth: usize,
    ) -> Result<Option<RefusedFile>, SourceError> {
        if depth > 0 {
            match find_entry(&folder.join(".git")) {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(Some(RefusedFile::new(path, RefusalReason::Submodule))),
                Err(error) => {
                    let refused = RefusedFile::new(path, RefusalReason::Unreadable);
                    return Ok(Some(refused.with_detail(error.to_string())));
                }
            }
        }
        let name = tree::join(path, file_names::IGNORE_FILE);
        match self.root.read(&name, file_names::MAX_IGNORE_FILE_BYTES) {
            Ok(FileReadResult::Whole(_, text)) => {
                if let Err(detail) = self.ignores.push(path.as_bytes(), &text) {
                    return Ok(Some(RefusedFile::new(name, RefusalReason::BadIgnore).with_detail(detail)));
                }
            }
            Ok(FileReadResult::Gone) => {}
            Ok(FileReadResult::Moving) => {
                return Err(SourceError::Moving { shown_location: self.root.path.display().to_string() });
            }
            Ok(FileReadResult::Refused(_)) => {
                return Ok(Some(RefusedFile::new(name, RefusalReason::BadIgnore)));
            }
            Err(error) => {
                return Ok(Some(
                    RefusedFile::new(name, RefusalReason::BadIgnore).with_detail(error.to_string()),
                ));
            }
        }
        Ok(self.find_marker(folder, path))
    }

    /// Returns the refusal of a folder for the file by which something else is to read it. Where
    /// nobody can see whether there is one, nothing in it may be taken as it is.
    fn find_marker(&self, folder: &Path, path: &str) -> Option<RefusedFile> {
        file_names::RENDERER_FILES.into_iter().find_map(|(marker, reason)| {
            let full = tree::join(path, marker);
            let is_ignored = |kind| self.ignores.is_ignored(full.as_bytes(), kind);
            match find_entry(&folder.join(marker)) {
                Ok(kind) => kind
                    .is_some_and(|kind| file_names::can_mark(kind) && !is_ignored(kind))
                    .then(|| RefusedFile::new(full, reason)),
                Err(_) if is_ignored(EntryKind::File) => None,
                Err(error) => {
                    Some(RefusedFile::new(full, RefusalReason::Unreadable).with_detail(error.to_string()))
                }
            }
        })
    }
}

/// Returns what is at a path, itself and not what it links to; none where nothing is.
fn find_entry(path: &Path) -> io::Result<Option<EntryKind>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(kind(metadata.file_type()))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn kind(file: fs::FileType) -> EntryKind {
    if file.is_dir() {
        EntryKind::Folder
    } else if file.is_symlink() {
        EntryKind::Symlink
    } else if file.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}

/// The result of reading a file.
pub(super) enum FileReadResult {
    Whole(FileStat, Vec<u8>),
    Refused(RefusalReason),
    /// Changed while it was read.
    Moving,
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_refused_where_nobody_can_see_whether_it_is_rendered() {
        let root = tempfile::tempdir().unwrap();
        // The path of the folder is as long as the system takes one, and that of a file in it longer.
        let mut free = 4_090 - root.path().as_os_str().len();
        let mut names = Vec::new();
        while free > 242 {
            names.push("a".repeat(120));
            free -= 121;
        }
        names.push("b".repeat(free - 1));
        let folder = names.join("/");
        fs::create_dir_all(root.path().join(&folder)).unwrap();
        let listing = OpenFolder::open(root.path()).unwrap().list().unwrap();
        let [refused] = listing.refusals.as_slice() else { panic!("{:?}", listing.refusals) };
        assert_eq!(
            (&refused.path, refused.reason),
            (&format!("{folder}/kustomization.yaml"), RefusalReason::Unreadable)
        );
        assert!(!refused.detail.is_empty());
    }

    #[test]
    fn a_long_path_counts_as_several_entries() {
        #[track_caller]
        fn check(folder: &str, most: usize, fits: bool) {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(folder)).unwrap();
            for number in 0..10 {
                fs::write(root.path().join(folder).join(format!("{number}.yaml")), "").unwrap();
            }
            let listed = OpenFolder::open(root.path()).unwrap().list_within(EntryBudget::new(most));
            match listed {
                Ok(listing) => assert!(fits && listing.files.len() == 10, "{most}"),
                Err(error) => assert!(!fits && matches!(error, SourceError::TooMany { .. }), "{error}"),
            }
        }
        // The root, one folder, ten files.
        check("folder", 12, true);
        check("folder", 11, false);
        // The last folder and each file have nine times 256 bytes and more.
        let deep = vec!["a".repeat(255); 10].join("/");
        check(&deep, 1 + 45 + 10 + 10 * 10, true);
        check(&deep, 10 * 10, false);
    }
}
