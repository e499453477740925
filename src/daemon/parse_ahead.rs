//! The reading of many files on two threads: one parses, the other makes facts of what was parsed.
//!
//! Both cost about as much, and before the first write nobody else needs the second core.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use crate::manifest::ManifestFile;
use crate::source::SnapshotFile;

/// The number of files from which on a second thread is worth its start.
const MIN_FILES: usize = 64;

/// The number of parsed files that may wait. Each is a tree, many times as large as its file.
const MAX_PARSED_AHEAD: usize = 16;

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
mod tests {
    use super::*;

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
