//! Archives of charts: packed from the files of a chart, and packed anew with other texts.

use std::io::{self, Read as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use crate::input::kustomize::{PlannedContent, PlannedFile};
use crate::input::paths;
use crate::input::tree::FileTree;
use crate::source::SourceError;

use super::closure::ChartClosure;
use super::trace::PARTS_FOLDER;

/// The end of the name of a chart in an archive.
pub(super) const ARCHIVE_SUFFIX: &str = ".tgz";
/// The bytes of all that is in an archive which is read.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;

/// The reason for which a fetched chart was not packed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackError {
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The archive cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Puts archives in the place of the fetched charts that a chart is made of. helm takes its
/// `.helmignore` for files in folders, and not for those in archives.
///
/// # Errors
/// Fails where a file cannot be read.
pub(crate) fn pack_fetched(
    chart: &ChartClosure,
    planned: &mut Vec<PlannedFile>,
    files: &impl FileTree,
) -> Result<(), PackError> {
    for (folder, archive) in &chart.archives {
        let mut content = Vec::new();
        for file in planned.iter().filter(|file| paths::holds(folder, &file.path)) {
            let name = file.path.strip_prefix(folder.as_str()).unwrap_or_default().trim_start_matches('/');
            let bytes = match &file.content {
                PlannedContent::Blob(blob) => files.read(*blob)?,
                PlannedContent::Text(text) => text.clone(),
            };
            content.push((name.to_owned(), bytes));
        }
        planned.retain(|file| !paths::holds(folder, &file.path));
        let top = folder.rsplit('/').next().unwrap_or(folder);
        let bytes = write_archive(content.iter().map(|(name, bytes)| (format!("{top}/{name}"), &**bytes)))?;
        let (path, size) = (archive.as_str().into(), bytes.len() as u64);
        planned.push(PlannedFile { path, content: PlannedContent::Text(bytes.into()), size });
    }
    planned.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}

/// Writes an archive. The same files give the same bytes at any time.
pub(super) fn write_archive<'f>(files: impl Iterator<Item = (String, &'f [u8])>) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, path, bytes)?;
    }
    tar.into_inner()?.finish()
}

/// Returns whether helm may take a file for an archive with a chart. Of any other nothing is
/// unpacked.
pub(super) fn is_chart_archive(name: &str) -> bool {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    file.ends_with(ARCHIVE_SUFFIX)
        && !file.starts_with(['_', '.'])
        && folder.rsplit('/').next() == Some(PARTS_FOLDER)
}

/// Writes an archive anew with other texts; none where none of them is another one.
///
/// # Errors
/// As [`read_archive`].
pub(super) fn rewrite_archive(
    archive: &[u8],
    unpackable: &mut u64,
    rewrite: impl Fn(&str, &[u8]) -> Option<String>,
) -> io::Result<Option<Vec<u8>>> {
    let (mut files, mut is_other) = (read_archive(archive, unpackable)?, false);
    for (path, bytes) in &mut files {
        if let Some(other) = rewrite(path, bytes) {
            (*bytes, is_other) = (other.into_bytes(), true);
        }
    }
    if !is_other {
        return Ok(None);
    }
    write_archive(files.iter().map(|(path, bytes)| (path.clone(), bytes.as_slice()))).map(Some)
}

/// Returns the regular files of an archive, by their paths: of the rest helm reads nothing.
/// `unpackable` are the bytes that may come out of it and of further ones; those of this one are
/// taken off.
///
/// # Errors
/// Fails where it is no archive, or is too large.
pub(super) fn read_archive(archive: &[u8], unpackable: &mut u64) -> io::Result<Vec<(String, Vec<u8>)>> {
    let most = MAX_UNPACKED_BYTES.min(*unpackable);
    let mut unpacked = MultiGzDecoder::new(archive).take(most);
    let files = read_files(&mut unpacked);
    let left = unpacked.limit();
    *unpackable = unpackable.saturating_sub(most.saturating_sub(left));
    // An archive that ends at the bound may go on behind it.
    if left == 0 { Err(io::ErrorKind::FileTooLarge.into()) } else { files }
}

fn read_files(unpacked: impl io::Read) -> io::Result<Vec<(String, Vec<u8>)>> {
    let (mut tar, mut files) = (Archive::new(unpacked), Vec::new());
    for entry in tar.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.push((path, bytes));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_the_same_each_time_and_is_written_anew_where_a_text_is_another() {
        let long = format!("a/{}/b.yaml", "long".repeat(60));
        let files = || [("a/Chart.yaml".to_owned(), &b"name: a"[..]), (long.clone(), &b"b"[..])].into_iter();
        let archive = write_archive(files()).unwrap();
        assert_eq!(archive, write_archive(files()).unwrap());
        let left = &mut (64 << 20);
        assert_eq!(rewrite_archive(&archive, left, |_, _| None).unwrap(), None);
        let other = rewrite_archive(&archive, left, |path, bytes| {
            (path == long).then(|| String::from_utf8_lossy(bytes).replace('b', "c"))
        });
        let expected = [("a/Chart.yaml".to_owned(), &b"name: a"[..]), (long.clone(), &b"c"[..])];
        assert_eq!(other.unwrap(), Some(write_archive(expected.into_iter()).unwrap()));
        assert!(rewrite_archive(b"none", left, |_, _| None).is_err());
    }

    #[test]
    fn several_archives_together_give_no_more_than_they_may() {
        let zeros = vec![0; 1 << 20];
        let archive = write_archive([("a/b".to_owned(), &*zeros)].into_iter()).unwrap();
        let rewrite = |left: &mut u64| rewrite_archive(&archive, left, |_, _| Some("c".to_owned()));
        let mut left = 5 << 19;
        assert!(rewrite(&mut left).unwrap().is_some());
        assert!(rewrite(&mut left).unwrap().is_some());
        assert!((1..1 << 19).contains(&left), "{left}");
        assert!(rewrite(&mut left).is_err());
        assert_eq!(left, 0);
        assert!(rewrite(&mut left).is_err());
    }
}
