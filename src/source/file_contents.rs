//! The bytes of a revision's files, each within its limit.

use super::error::SourceError;
use super::object_stores::ObjectDatabase;
use super::reader::RevisionReader;
use super::snapshot::BlobId;
use crate::object::Revision;

/// The bytes of files that are in memory at once while many are read, but for the last of them.
const MAX_BATCH_BYTES: usize = 8 << 20;

impl RevisionReader {
    /// Returns whether all files of a revision can be read.
    pub(super) fn is_complete(&self, revision: &Revision) -> bool {
        self.read_through(revision).is_ok()
    }

    /// Reads all files of a revision.
    pub(super) fn read_through(&self, revision: &Revision) -> Result<(), SourceError> {
        let snapshot = self.raw_snapshot(revision)?;
        self.read_all(snapshot.files.iter().map(|file| file.blob), |_, _| Ok(())).map(drop)
    }

    /// Reads one file's bytes.
    pub(crate) fn read(&self, blob: BlobId) -> Result<Vec<u8>, SourceError> {
        self.read_objects(|objects| {
            let databases = objects.object_databases().map_err(|error| self.damaged_error(&error))?;
            self.bytes(&databases, blob)
        })
    }

    /// Reads many files through few handles, and gives what `each` makes of their bytes.
    ///
    /// Fails with the first error of a read or of `each`.
    pub(crate) fn read_all<T>(
        &self,
        blobs: impl IntoIterator<Item = BlobId>,
        mut each: impl FnMut(BlobId, Vec<u8>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        let blobs: Vec<BlobId> = blobs.into_iter().collect();
        let mut rest = blobs.as_slice();
        let mut out = Vec::with_capacity(blobs.len());
        while !rest.is_empty() {
            // Not where they are read: what is made of them may need other files.
            for (blob, bytes) in self.read_batch(&mut rest)? {
                out.push(each(blob, bytes)?);
            }
        }
        Ok(out)
    }

    /// Reads the first of these files.
    fn read_batch(&self, rest: &mut &[BlobId]) -> Result<Vec<(BlobId, Vec<u8>)>, SourceError> {
        let (mut batch, mut size) = (Vec::new(), 0);
        self.pass(|objects| {
            let databases = objects.object_databases().map_err(|error| self.damaged_error(&error))?;
            // A blob that could not be read is still the next one when this runs again on fresh
            // handles.
            while let Some((&blob, later)) = rest.split_first()
                && size < MAX_BATCH_BYTES
            {
                let bytes = self.bytes(&databases, blob)?;
                *rest = later;
                size += bytes.len();
                batch.push((blob, bytes));
            }
            Ok(())
        })?;
        Ok(batch)
    }

    fn bytes(&self, databases: &[ObjectDatabase<'_>], blob: BlobId) -> Result<Vec<u8>, SourceError> {
        let mut last = self.lost_error(blob);
        let most = self.max_file_bytes();
        for database in databases {
            let read = database.size(blob.oid()).and_then(|size| {
                if size > most {
                    return Ok(Err(size));
                }
                database.read(blob.oid()).map(Ok)
            });
            match read {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(size)) => {
                    let shown_location = format!("{}: {blob}", self.shown_location());
                    return Err(SourceError::TooLarge { shown_location, size, limit: most });
                }
                Err(error) => last = self.damaged_error(&error),
            }
        }
        Err(last)
    }

    fn lost_error(&self, blob: BlobId) -> SourceError {
        SourceError::Damaged {
            shown_location: self.shown_location().to_owned(),
            detail: format!("no object {blob}"),
        }
    }
}
