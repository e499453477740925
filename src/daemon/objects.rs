//! The objects of a source as its files say them, for whoever asks what it holds.

use super::act::blocking;
use super::setup::Files;
use crate::engine::AllowList;
use crate::manifest::{self, Item, Scopes, assemble};
use crate::object::{Diagnostic, Object};
use crate::source::{self, Source};

/// What a source holds.
#[derive(Debug)]
pub struct Held {
    /// Its objects, as far as it may have them.
    pub objects: Vec<Object>,
    /// What is said of the others.
    pub refused: Vec<Diagnostic>,
    /// Whether every file was read and understood, and no object is held back for an error in it.
    pub complete: bool,
}

/// What the files of a source say, before it is known where objects live that name no namespace.
#[derive(Debug)]
pub struct Gathered {
    items: Vec<Item>,
    complete: bool,
}

/// Reads a source once, at its newest revision.
pub async fn gathered(files: Files) -> Result<Gathered, source::Error> {
    let (items, complete) = match files {
        Files::Once(disk) => {
            let texts =
                disk.snapshot.files.iter().map(|file| (&file.path, disk.read(file.blob).unwrap_or_default()));
            let read = texts.map(|(path, bytes)| manifest::read(path, bytes));
            gather(read, disk.snapshot.complete())
        }
        Files::Followed(source) => followed(source).await?,
    };
    Ok(Gathered { items, complete })
}

impl Gathered {
    /// Tells where the objects of those kinds live that the source defines.
    pub fn teach(&self, scopes: &mut Scopes) {
        for item in &self.items {
            scopes.learn(item);
        }
    }

    /// The objects. Those that name no namespace, and live in one, are in this one.
    pub fn held(self, namespace: &str, allow: &AllowList, scopes: &Scopes) -> Held {
        let assembled = assemble(self.items, scopes, namespace);
        let complete = self.complete && !assembled.diagnostics.iter().any(Diagnostic::is_error);
        let (mut objects, mut refused) = (Vec::new(), Vec::new());
        for object in assembled.objects {
            match allow.finding(&object.id, scopes.get(&object.id.group_kind()), &object.origin) {
                Some(found) => refused.push(found),
                None => objects.push(object),
            }
        }
        Held { objects, refused, complete }
    }
}

async fn followed(mut source: Source) -> Result<(Vec<Item>, bool), source::Error> {
    let observed = source.observe().await?;
    let reader = source.reader();
    blocking(move || {
        let snapshot = reader.snapshot(&observed.revision)?;
        let mut readings = Vec::new();
        for file in &snapshot.files {
            readings.push(manifest::read(&file.path, &reader.read(file.blob)?));
        }
        Ok(gather(readings.into_iter(), snapshot.complete()))
    })
    .await
}

fn gather(readings: impl Iterator<Item = manifest::Reading>, complete: bool) -> (Vec<Item>, bool) {
    readings.fold((Vec::new(), complete), |(mut items, complete), reading| {
        let understood = reading.understood && !reading.diagnostics.iter().any(Diagnostic::is_error);
        items.extend(reading.items);
        (items, complete && understood)
    })
}
