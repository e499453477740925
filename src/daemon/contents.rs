//! Bodies of objects, read again when they are needed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::setup::Files;
use crate::cluster::FieldOwners;
use crate::engine::{
    Binds, Desired, Form, ReleaseClaim, effective, left_to_others, stamped, without_ignored,
};
use crate::manifest::{self, Item};
use crate::object::{Hash, Object};
use crate::source::{self, Blob, Disk, Reader};

/// So many parsed files are kept: a first apply asks for the objects of one file one after the other.
const KEPT: usize = 16;

/// The kept files together are not larger than this, unless it is one alone.
const KEPT_BYTES: usize = 1 << 20;

/// Why a body cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The source's store does not give the file.
    #[error("{file} cannot be read again: {source}")]
    Store {
        /// The file.
        file: Arc<str>,
        /// Why.
        source: source::Error,
    },
    /// The file does not hold what it held.
    #[error("{file}:{line} does not hold the content that was decided on")]
    Changed {
        /// The file.
        file: Arc<str>,
        /// The line at which the object stood.
        line: u32,
    },
}

/// Where the bytes of a source are.
#[derive(Clone)]
pub(super) enum Bytes {
    /// In a git store.
    Store(Reader),
    /// In memory, as they were on disk.
    Disk(Arc<Disk>),
}

impl Bytes {
    /// Those of a source's files.
    pub(super) fn of(files: &Files) -> Self {
        match files {
            Files::Followed(source) => Self::Store(source.reader()),
            Files::Once(disk) => Self::Disk(disk.clone()),
        }
    }
}

#[derive(Clone)]
struct Place {
    applyset: Arc<str>,
    bytes: Bytes,
}

/// With the size of each file.
type Kept = VecDeque<(Blob, usize, Arc<Vec<Item>>)>;

/// Bodies of the objects of all sources. Cheap to clone.
#[derive(Clone)]
pub(super) struct Contents {
    places: Arc<Vec<Place>>,
    kept: Arc<Mutex<Kept>>,
}

impl Contents {
    /// Of sources in the order of their numbers, each with the id of its inventory.
    pub(super) fn new(sources: impl IntoIterator<Item = (Arc<str>, Bytes)>) -> Self {
        let places = sources.into_iter().map(|(applyset, bytes)| Place { applyset, bytes }).collect();
        Self { places: Arc::new(places), kept: Arc::default() }
    }

    /// Adds those of the source with the next number.
    pub(super) fn add(&mut self, applyset: Arc<str>, bytes: Bytes) {
        Arc::make_mut(&mut self.places).push(Place { applyset, bytes });
    }

    /// Whether the contents of an object's source need no disk.
    pub(super) fn are_in_memory(&self, want: &Desired) -> bool {
        matches!(self.places[want.place.source].bytes, Bytes::Disk(_))
    }

    /// The effective content of a wanted object, with what it leaves to others. Blocks on the disk.
    pub(super) fn effective(&self, want: &Desired) -> Result<Value, Error> {
        let file = || want.origin.file.clone();
        let place = &self.places[want.place.source];
        let parsed = self.items(place, want)?;
        let found = parsed.binary_search_by_key(&want.place.index, |one| one.index);
        let found = found.ok().and_then(|place| parsed.get(place));
        let content = found.map(|found| effective(&object(found, want), &place.applyset));
        let hash = |content: &Value| match want.ignores {
            Some(_) => Hash::of(&without_ignored(content.clone())),
            None => Hash::of(content),
        };
        let content = content.filter(|content| hash(content) == want.hash);
        content.ok_or_else(|| Error::Changed { file: file(), line: want.origin.line })
    }

    /// What is compared and defended of a wanted object. Blocks on the disk.
    pub(super) fn defended(&self, want: &Desired) -> Result<Value, Error> {
        self.effective(want).map(without_ignored)
    }

    /// What is sent where nothing is: the effective content with the release annotation. Blocks on the disk.
    pub(super) fn body(&self, want: &Desired, claim: &ReleaseClaim, form: Form) -> Result<Value, Error> {
        Ok(stamped(self.effective(want)?, claim, form))
    }

    /// What is sent to an object that is there, and whether that is good for this version of it only. Blocks on the
    /// disk.
    pub(super) fn body_for(
        &self,
        want: &Desired,
        claim: &ReleaseClaim,
        form: Form,
        live: &Value,
    ) -> Result<(Value, Binds), Error> {
        let owners = FieldOwners::of(live);
        let others: Vec<&str> = owners.others.iter().map(String::as_str).collect();
        let settled = left_to_others(self.effective(want)?, live, owners.ours.as_deref(), &others);
        Ok((stamped(settled.content, claim, form), settled.binds))
    }

    fn items(&self, place: &Place, want: &Desired) -> Result<Arc<Vec<Item>>, Error> {
        let blob = Blob::from(want.place.blob);
        let known = |kept: &Kept| kept.iter().find(|(id, ..)| *id == blob).map(|(_, _, items)| items.clone());
        if let Some(parsed) = known(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(parsed);
        }
        let missing = |source| Error::Store { file: want.origin.file.clone(), source };
        let bytes = match &place.bytes {
            Bytes::Store(reader) => reader.read(blob).map_err(missing)?,
            Bytes::Disk(disk) => disk.read(blob).unwrap_or_default().to_vec(),
        };
        let items = Arc::new(manifest::read(&want.origin.file, &bytes).items);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((blob, bytes.len(), items.clone()));
        let size = |kept: &Kept| kept.iter().map(|(_, size, _)| size).sum::<usize>();
        while kept.len() > KEPT || (kept.len() > 1 && size(&kept) > KEPT_BYTES) {
            kept.pop_front();
        }
        drop(kept);
        Ok(items)
    }

    /// Forgets the parsed files and closes what they were read from.
    pub(super) fn clear(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for place in self.places.iter() {
            if let Bytes::Store(reader) = &place.bytes {
                reader.close();
            }
        }
    }
}

fn object(item: &Item, want: &Desired) -> Object {
    let mut body = manifest::cleaned(item.body.clone());
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        match want.id.namespace() {
            Some(namespace) => metadata.insert("namespace".to_owned(), Value::String(namespace.to_owned())),
            None => metadata.remove("namespace"),
        };
    }
    Object { id: want.id.clone(), gvk: want.gvk.clone(), body: Arc::new(body), origin: want.origin.clone() }
}
