//! The archives of charts by their digests, and the first digest of each name.
//!
//! | file below the folder | holds |
//! |---|---|
//! | `sha256/HEX` | an archive with this SHA-256 |
//! | `records/HEX` | a chart's name, by whose hash it is called, and its first digest |
//!
//! Every file is written beside its place and moved there, and is checked when it is read. The
//! time of an archive's last change is that of its last use.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::reference::{ChartDigest, ChartReference};
use super::unpack::MAX_ARCHIVE_BYTES;
use crate::object::ErrorClass;
use crate::secret::read_regular;

/// The longest record.
const MAX_RECORD_BYTES: u64 = 16 << 10;
/// A use is noted when the last one was so long ago.
const USE_RECORD_INTERVAL: Duration = Duration::from_hours(24);
/// The bits of a folder in which everybody may make files, and nobody may move another's: `/tmp`.
const SHARED_FOLDER_MODE: u32 = 0o1002;

/// The bounds of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreLimits {
    /// Bytes of one archive.
    pub(super) archive: u64,
    /// Bytes of all archives, above which those that nobody uses are dropped.
    pub(super) roomy: u64,
    /// Bytes of all archives, above which any are dropped, the longest unused first.
    pub(super) most: u64,
    /// The time after which an archive counts as unused.
    pub(super) unused: Duration,
}

impl Default for StoreLimits {
    fn default() -> Self {
        let days = |days: u64| Duration::from_hours(24 * days);
        Self { archive: MAX_ARCHIVE_BYTES, roomy: 1 << 30, most: 2 << 30, unused: days(30) }
    }
}

/// The reason for which the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("the store of charts: {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        error: io::Error,
    },
    /// A record is none.
    #[error("the store of charts: {} is no record of this chart", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
    },
    /// A folder is another user's, who may have put any chart there.
    #[error("the store of charts: {} belongs to another user", .path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
}

impl StoreError {
    /// Returns what kind of error it is.
    pub(super) const fn class(&self) -> ErrorClass {
        match self {
            Self::Io { .. } => ErrorClass::Transient,
            Self::Record { .. } | Self::Foreign { .. } => ErrorClass::Config,
        }
    }
}

/// The text of a record.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChartRecord {
    repository: String,
    name: String,
    version: String,
    digest: String,
}

/// The chart store: the archives and records below one folder.
#[derive(Debug)]
pub(super) struct ChartStore {
    folder: PathBuf,
    limits: StoreLimits,
}

impl ChartStore {
    /// Returns the store below a folder, which need not exist.
    pub(super) const fn new(folder: PathBuf, limits: StoreLimits) -> Self {
        Self { folder, limits }
    }

    fn archive_path(&self, digest: ChartDigest) -> PathBuf {
        self.folder.join("sha256").join(digest.hex())
    }

    fn record_path(&self, chart: &ChartReference) -> PathBuf {
        let ChartReference { repository, name, version } = chart;
        let name = ChartDigest::of(format!("{repository}\n{name}\n{version}").as_bytes());
        self.folder.join("records").join(name.hex())
    }

    /// Returns an archive; none where it is not there, or is not what it was.
    pub(super) fn archive(&self, digest: ChartDigest) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.archive_path(digest);
        let Some(bytes) = read(&path, self.limits.archive)? else { return Ok(None) };
        if ChartDigest::of(&bytes) != digest {
            tracing::warn!(file = %path.display(), "an archive of the chart store is damaged, and dropped");
            fs::remove_file(&path).map_err(|error| StoreError::Io { path, error })?;
            return Ok(None);
        }
        note_use(&path);
        Ok(Some(bytes))
    }

    /// Keeps an archive, and drops others where there are too many.
    pub(super) fn keep_archive(&self, bytes: &[u8]) -> Result<ChartDigest, StoreError> {
        let digest = ChartDigest::of(bytes);
        let path = self.archive_path(digest);
        write(&path, bytes, OverwritePolicy::Any)?;
        self.drop_surplus(&path, now());
        Ok(digest)
    }

    /// Returns the first digest of a chart; none where it was never fetched.
    pub(super) fn first_digest(&self, chart: &ChartReference) -> Result<Option<ChartDigest>, StoreError> {
        let path = self.record_path(chart);
        let Some(bytes) = read(&path, MAX_RECORD_BYTES)? else { return Ok(None) };
        let record = serde_json::from_slice::<ChartRecord>(&bytes).ok();
        let digest =
            record.filter(|record| record.is_of(chart)).and_then(|record| record.digest.parse().ok());
        digest.map(Some).ok_or(StoreError::Record { path })
    }

    /// Records the digest of a chart. A record that is there stays, unless a person named the
    /// digest.
    pub(super) fn record(
        &self,
        chart: &ChartReference,
        digest: ChartDigest,
        replacement: OverwritePolicy,
    ) -> Result<(), StoreError> {
        let ChartReference { repository, name, version } = chart.clone();
        let path = self.record_path(chart);
        let record = ChartRecord { repository, name, version, digest: digest.to_string() };
        let text = serde_json::to_vec(&record)
            .map_err(|error| StoreError::Io { path: path.clone(), error: error.into() })?;
        write(&path, &text, replacement)
    }

    /// Drops archives where all of them take too much room, those first that were not used for the
    /// longest time. One that cannot be dropped stays.
    fn drop_surplus(&self, newest: &Path, now: SystemTime) {
        let mut archives: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(self.folder.join("sha256"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let found = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            })
            .collect();
        let mut total: u64 = archives.iter().map(|(_, size, _)| size).sum();
        archives.sort();
        for (used, size, path) in archives {
            let is_unused = now.duration_since(used).is_ok_and(|age| age >= self.limits.unused);
            let bound = if is_unused { self.limits.roomy } else { self.limits.most };
            if total <= bound {
                break;
            }
            if path != newest && fs::remove_file(&path).is_ok() {
                total = total.saturating_sub(size);
            }
        }
    }
}

impl ChartRecord {
    fn is_of(&self, chart: &ChartReference) -> bool {
        let ChartReference { repository, name, version } = chart;
        (&self.repository, &self.name, &self.version) == (repository, name, version)
    }
}

/// The rule for a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverwritePolicy {
    /// The new one takes its place.
    Any,
    /// It stays, and the new one is dropped.
    None,
}

/// Returns a file of at most so many bytes; none where it is not there.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
    require_own(path)?;
    match read_regular(path, most + 1) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Io { path: path.to_owned(), error }),
    }
}

/// Writes a file beside its place, and moves it there.
fn write(path: &Path, bytes: &[u8], replacement: OverwritePolicy) -> Result<(), StoreError> {
    let failed = |error| StoreError::Io { path: path.to_owned(), error };
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    require_own(path)?;
    let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(failed)?;
    new.write_all(bytes).map_err(failed)?;
    // It must not be there in part after a crash.
    new.as_file().sync_all().map_err(failed)?;
    match replacement {
        OverwritePolicy::Any => new.persist(path).map(drop).map_err(|error| failed(error.error)),
        OverwritePolicy::None => match new.persist_noclobber(path) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed(error.error)),
        },
    }
}

/// Refuses a path that leads through a folder which another user made in a shared one.
fn require_own(path: &Path) -> Result<(), StoreError> {
    let user = rustix::process::geteuid().as_raw();
    foreign_folder(path, user).map_or(Ok(()), |path| Err(StoreError::Foreign { path }))
}

/// Returns the folder or link on a path that is in a shared folder, and neither this user's nor
/// root's.
fn foreign_folder(path: &Path, user: u32) -> Option<PathBuf> {
    let is_shared = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|found| found.mode() & SHARED_FOLDER_MODE == SHARED_FOLDER_MODE)
    };
    let is_foreign =
        |entry: &Path| fs::symlink_metadata(entry).is_ok_and(|found| found.uid() != user && found.uid() != 0);
    let mut entries = path.ancestors();
    entries.find(|entry| entry.parent().is_some_and(is_shared) && is_foreign(entry)).map(Path::to_owned)
}

fn now() -> SystemTime {
    Timestamp::now().into()
}

/// Notes that an archive is used. Where that fails it is dropped the sooner, and fetched again.
fn note_use(path: &Path) {
    let now = now();
    let is_old = |used: SystemTime| now.duration_since(used).is_ok_and(|age| age >= USE_RECORD_INTERVAL);
    let found = fs::metadata(path).and_then(|found| found.modified());
    if found.is_ok_and(is_old) {
        let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(now));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use tempfile::TempDir;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn chart(version: &str) -> ChartReference {
        let (repository, name) = ("https://example.org".to_owned(), "web".to_owned());
        ChartReference { repository, name, version: version.to_owned() }
    }

    fn store(limits: StoreLimits) -> (TempDir, ChartStore) {
        let dir = TempDir::new().unwrap();
        let store = ChartStore::new(dir.path().join("state/charts"), limits);
        (dir, store)
    }

    // Another user, who may write into `/tmp`, could else name the first digest of each chart.
    #[test]
    fn a_folder_that_another_user_made_in_a_shared_one_is_refused() {
        let dir = TempDir::new().unwrap();
        let set_mode = |mode: u32| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let planted = dir.path().join("rhumb");
        let record = planted.join("charts/records/0");
        set_mode(0o1777);
        assert_eq!(foreign_folder(&record, 1), foreign_folder(dir.path(), 1));
        fs::create_dir(&planted).unwrap();
        let user = rustix::process::geteuid();
        let owner = if user.is_root() { 4242 } else { user.as_raw() };
        chown(&planted, Some(owner), None).unwrap();
        assert_eq!(foreign_folder(&record, owner), None);
        assert_eq!(foreign_folder(&record, owner + 1), Some(planted.clone()));
        fs::remove_dir(&planted).unwrap();
        symlink("/nowhere", &planted).unwrap();
        lchown(&planted, Some(owner), None).unwrap();
        assert_eq!(foreign_folder(&record, owner + 1), Some(planted.clone()));
        set_mode(0o755);
        assert_ne!(foreign_folder(&record, owner + 1), Some(planted));
        assert_eq!(StoreError::Foreign { path: PathBuf::new() }.class(), ErrorClass::Config);
    }

    #[test]
    fn an_archive_is_found_by_its_digest() {
        let (_dir, store) = store(StoreLimits::default());
        let digest = ChartDigest::of(b"archive");
        assert_eq!(store.archive(digest).unwrap(), None);
        assert_eq!(store.keep_archive(b"archive").unwrap(), digest);
        assert_eq!(store.keep_archive(b"archive").unwrap(), digest);
        assert_eq!(store.archive(digest).unwrap().as_deref(), Some(&b"archive"[..]));
        let names = fs::read_dir(store.folder.join("sha256")).unwrap();
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn a_damaged_archive_is_none() {
        let (_dir, store) = store(StoreLimits { archive: 20, ..StoreLimits::default() });
        for damage in [&b"archivf"[..], b"", b"archive and much more than that"] {
            let digest = store.keep_archive(b"archive").unwrap();
            fs::write(store.archive_path(digest), damage).unwrap();
            assert_eq!(store.archive(digest).unwrap(), None);
            assert!(!store.archive_path(digest).exists());
        }
        let digest = store.keep_archive(b"archive").unwrap();
        fs::remove_file(store.archive_path(digest)).unwrap();
        fs::create_dir(store.archive_path(digest)).unwrap();
        let error = store.archive(digest).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Transient);
    }

    #[test]
    fn the_first_digest_stays_unless_a_person_names_another() {
        let (_dir, store) = store(StoreLimits::default());
        let (one, other) = (ChartDigest::of(b"1"), ChartDigest::of(b"2"));
        assert_eq!(store.first_digest(&chart("1.0.0")).unwrap(), None);
        store.record(&chart("1.0.0"), one, OverwritePolicy::None).unwrap();
        store.record(&chart("1.0.0"), other, OverwritePolicy::None).unwrap();
        assert_eq!(store.first_digest(&chart("1.0.0")).unwrap(), Some(one));
        assert_eq!(store.first_digest(&chart("1.0.1")).unwrap(), None);
        store.record(&chart("1.0.0"), other, OverwritePolicy::Any).unwrap();
        assert_eq!(store.first_digest(&chart("1.0.0")).unwrap(), Some(other));
    }

    #[test]
    fn a_record_is_of_its_chart_or_an_error() {
        let (_dir, store) = store(StoreLimits::default());
        store.record(&chart("1.0.0"), ChartDigest::of(b"1"), OverwritePolicy::None).unwrap();
        let path = store.record_path(&chart("1.0.0"));
        let text = fs::read_to_string(&path).unwrap();
        for damage in [
            String::new(),
            "{}".to_owned(),
            text[..text.len() - 1].to_owned(),
            text.replace("sha256:", "sha512:"),
            text.replace("1.0.0", "1.0.1"),
            text.replace('}', ",\"more\":1}"),
        ] {
            fs::write(&path, &damage).unwrap();
            let error = store.first_digest(&chart("1.0.0")).unwrap_err();
            assert!(error.to_string().ends_with("is no record of this chart"), "{damage}: {error}");
            assert_eq!(error.class(), ErrorClass::Config);
        }
    }

    #[test]
    fn what_is_not_used_goes_first_and_only_where_room_is_short() {
        #[track_caller]
        fn check(limits: StoreLimits, ages: &[u64], expected: &[usize]) {
            let (_dir, store) = store(limits);
            let now = now();
            let mut digests = Vec::new();
            for (number, age) in ages.iter().enumerate() {
                let digest = ChartDigest::of(&[number as u8; 10]);
                let path = store.archive_path(digest);
                write(&path, &[number as u8; 10], OverwritePolicy::Any).unwrap();
                let file = File::options().append(true).open(&path).unwrap();
                file.set_modified(now - DAY * u32::try_from(*age).unwrap()).unwrap();
                digests.push(digest);
            }
            store.drop_surplus(&store.archive_path(digests[0]), now);
            let is_there = |number: &usize| store.archive_path(digests[*number]).exists();
            assert_eq!((0..ages.len()).filter(is_there).collect::<Vec<_>>(), expected, "{ages:?}");
        }
        let limits = |roomy, most| StoreLimits { roomy, most, ..StoreLimits::default() };
        check(limits(40, 80), &[0, 40, 50, 60], &[0, 1, 2, 3]);
        check(limits(30, 80), &[0, 40, 50, 60], &[0, 1, 2]);
        check(limits(10, 80), &[0, 40, 29, 60], &[0, 2]);
        check(limits(10, 20), &[0, 1, 2, 60], &[0, 1]);
        // The one that is just kept stays.
        check(limits(0, 0), &[90, 1], &[0]);
    }

    #[test]
    fn a_use_is_noted_once_a_day() {
        let (_dir, store) = store(StoreLimits::default());
        let digest = store.keep_archive(b"archive").unwrap();
        let path = store.archive_path(digest);
        let used = |age: Duration| {
            let then = now() - age;
            File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
            store.archive(digest).unwrap().unwrap();
            fs::metadata(&path).unwrap().modified().unwrap() != then
        };
        assert!(used(DAY * 2) && !used(DAY / 2));
    }
}
