//! The reading of many files on two threads: one parses, the other makes facts of what was parsed.
//!
//! Both cost about as much, and before the first write nobody else needs the second core.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use serde_json::Value;

use super::setup::SourceFiles;
use crate::input::{Decrypter, read_manifest};
use crate::manifest::ManifestFile;
use crate::source::SnapshotFile;

/// The number of files from which on a second thread is worth its start.
const MIN_FILES: usize = 64;

/// The number of parsed files that may wait. Each is a tree, many times as large as its file.
const MAX_PARSED_AHEAD: usize = 16;

/// The bytes of a folder up to which its files are parsed before anybody takes them. As trees they
/// take some ten times as much.
const MAX_EARLY_BYTES: u64 = 4 << 20;

/// The bytes that the trees of these files may take before anybody takes them, about. Aliases make
/// megabytes of a small file.
const MAX_EARLY_TREE_BYTES: usize = 64 << 20;

/// The files of a folder that are parsed while the server says which kinds it has. A file is parsed
/// without them.
pub(super) struct EarlyParse(Mutex<mpsc::Receiver<ManifestFile>>);

impl EarlyParse {
    /// Starts to parse the files that were on disk, in their order. Returns none where they are few
    /// or large, or no thread can be had.
    pub(super) fn start(files: &SourceFiles, decrypter: &Arc<Decrypter>) -> Option<Self> {
        let SourceFiles::Snapshot(disk) = files else { return None };
        let bytes: u64 = disk.snapshot.files.iter().map(|file| file.size).sum();
        if disk.snapshot.files.len() < MIN_FILES || bytes > MAX_EARLY_BYTES {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        let (disk, decrypter) = (disk.clone(), decrypter.clone());
        let parse = move || {
            let mut tree_bytes = 0;
            for file in &disk.snapshot.files {
                let parsed = read_manifest(file, disk.read(file.blob).unwrap_or_default(), &decrypter);
                tree_bytes += parsed.items.iter().map(|item| estimate_bytes(&item.body)).sum::<usize>();
                // The other files are parsed by the pass, where that has not ended without them.
                if tree_bytes > MAX_EARLY_TREE_BYTES || sender.send(parsed).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("parse manifests".to_owned()).spawn(parse).ok()?;
        Some(Self(Mutex::new(receiver)))
    }

    /// Waits for the next file. Returns none where no more of them are parsed.
    pub(super) fn next_file(&self) -> Option<ManifestFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

/// Returns the bytes that a tree takes in memory, about.
pub(super) fn estimate_bytes(tree: &Value) -> usize {
    let inside = match tree {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(estimate_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + estimate_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

/// Has so many files parsed, and hands over what was parsed of each in the order of the files.
///
/// `parse` calls what it is given with each file. Where there are many, or no thread can be had,
/// it goes on with the next file meanwhile.
pub(super) fn parse_ahead<'f, T>(
    count: usize,
    take: impl FnMut(&'f SnapshotFile, ManifestFile) + Send,
    parse: impl FnOnce(&mut dyn FnMut(&'f SnapshotFile, ManifestFile)) -> T,
) -> T {
    let take = Mutex::new(take);
    let lock = || take.lock().unwrap_or_else(PoisonError::into_inner);
    if count < MIN_FILES {
        return parse(&mut *lock());
    }
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(MAX_PARSED_AHEAD);
        let taker = thread::Builder::new().name("read manifests".to_owned()).spawn_scoped(scope, move || {
            let mut take = lock();
            for (file, parsed) in receiver {
                (*take)(file, parsed);
            }
        });
        match taker {
            // Nobody receives only where the other thread has panicked, as this one does then.
            Ok(_) => parse(&mut |file, parsed| drop(sender.send((file, parsed)))),
            Err(_) => parse(&mut *lock()),
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::source::read_disk;

    /// Returns a small file whose tree is large, as its aliases repeat a text.
    pub(in crate::daemon) fn alias_bomb(number: usize) -> String {
        let (text, aliases) = ("x".repeat(12_000), "- *text\n".repeat(200));
        let begin = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}\n");
        format!("{begin}text: &text {text}\ntexts:\n{aliases}")
    }

    /// Returns a folder with so many files of this size, as it was read.
    fn folder_of(count: usize, size: usize) -> SourceFiles {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..count {
            let object = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a{number}}}}}\n");
            let filling = "#".repeat(size.saturating_sub(object.len()));
            std::fs::write(folder.path().join(format!("{number}.yaml")), object + &filling).unwrap();
        }
        SourceFiles::Snapshot(Arc::new(read_disk(folder.path()).unwrap()))
    }

    #[test]
    fn many_small_files_are_parsed_early_in_their_order_and_no_others() {
        let check = |count: usize, size: usize, expected: bool| {
            let files = folder_of(count, size);
            let early = EarlyParse::start(&files, &Arc::default());
            assert_eq!(early.is_some(), expected, "{count} files of {size} bytes");
            let (Some(early), SourceFiles::Snapshot(disk)) = (early, &files) else { return };
            let parsed: Vec<ManifestFile> = std::iter::from_fn(|| early.next_file()).collect();
            let name = |file: &ManifestFile| format!("{}.yaml", &file.items[0].name[1..]);
            let names: Vec<String> = parsed.iter().map(name).collect();
            let expected: Vec<String> =
                disk.snapshot.files.iter().map(|file| file.path.to_string()).collect();
            assert_eq!(names, expected);
        };
        check(MIN_FILES - 1, 0, false);
        check(MIN_FILES, 0, true);
        check(MIN_FILES * 4, 0, true);
        check(MIN_FILES, MAX_EARLY_BYTES as usize / MIN_FILES + 1, false);
    }

    #[test]
    fn small_files_that_become_large_trees_are_not_all_parsed_early() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MIN_FILES {
            std::fs::write(folder.path().join(format!("{number}.yaml")), alias_bomb(number)).unwrap();
        }
        let files = SourceFiles::Snapshot(Arc::new(read_disk(folder.path()).unwrap()));
        let early = EarlyParse::start(&files, &Arc::default()).unwrap();
        let parsed = std::iter::from_fn(|| early.next_file()).count();
        assert!((1..MIN_FILES / 2).contains(&parsed), "{parsed}");
    }

    #[test]
    fn what_was_parsed_is_taken_in_the_order_of_the_files_however_many_there_are() {
        for count in [0, 1, MIN_FILES - 1, MIN_FILES, MIN_FILES * 4] {
            let files: Vec<SnapshotFile> =
                (0..count).map(|number| SnapshotFile::in_test(&number.to_string())).collect();
            let (mut taken, mut parsed) = (Vec::new(), 0);
            let take = |file: &SnapshotFile, _| taken.push(file.path.to_string());
            let answer = parse_ahead(count, take, |each| {
                for file in &files {
                    parsed += 1;
                    each(file, crate::manifest::read(&file.path, b""));
                }
                "answer"
            });
            let expected: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            assert_eq!((answer, parsed, taken), ("answer", count, expected));
        }
    }
}
