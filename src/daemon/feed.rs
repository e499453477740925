//! One task per source: looks at it, reads what changed, and looks up older contents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::act::blocking;
use super::event::Event;
use super::reading::{Dialect, Read};
use crate::engine::{FileFacts, Reading, Release, Shared};
use crate::manifest::Scopes;
use crate::object::{GroupKind, Hash, ObjectId, Revision};
use crate::source::{Blob, Changed, Disk, Error, File, MAX_FILE, Reader, Snapshot, Source};

/// What the loop asks of a feed.
#[derive(Debug)]
pub(super) enum Order {
    /// Read all again with these scopes.
    Scopes(Box<Scopes>),
    /// Keep these revisions readable.
    Pin(BTreeSet<Revision>),
    /// Look up contents of an older revision.
    Resolve(Revision, Vec<(ObjectId, Hash)>),
}

/// A source with what was last told of it.
pub(super) struct Feed {
    pub(super) source: Source,
    pub(super) dialect: Dialect,
    pub(super) scopes: Scopes,
    pub(super) events: mpsc::Sender<Event>,
    told: Option<Arc<Snapshot>>,
    extent: Extent,
    pins: Pins,
    place: String,
    /// Why the last look failed, if it did.
    trouble: Option<Arc<str>>,
}

impl Feed {
    /// A feed that has told nothing yet.
    pub(super) fn new(source: Source, dialect: Dialect, scopes: Scopes, events: mpsc::Sender<Event>) -> Self {
        let place = source.identity().to_owned();
        Self {
            source,
            dialect,
            scopes,
            events,
            told: None,
            extent: Extent::All,
            pins: Pins::default(),
            place,
            trouble: None,
        }
    }

    /// Runs until nobody listens any more.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let hints = self.source.hints();
        let mut next = Instant::now();
        loop {
            let told = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    None => return,
                    Some(order) => self.obey(order).await,
                },
                () = hints.changed() => self.look().await,
                () = sleep_until(next) => {
                    let told = self.look().await;
                    next = Instant::now() + self.source.next_poll(super::random());
                    told
                }
                () = sleep_until(self.pins.due.unwrap_or(next)), if self.pins.due.is_some() => {
                    self.pin().await;
                    None
                }
            };
            if let Some(event) = told
                && self.events.send(event).await.is_err()
            {
                return;
            }
        }
    }

    async fn look(&mut self) -> Option<Event> {
        let number = self.dialect.source;
        let seen = self.advance().await;
        if self.place != self.source.identity() {
            self.source.identity().clone_into(&mut self.place);
            // If nobody listens any more, what follows tells.
            let _ = self.events.send(Event::Place(number, self.place.clone())).await;
        }
        match seen {
            Ok(seen) => {
                self.trouble = None;
                seen.map(|(reading, unknown)| Event::Read(number, reading, unknown))
            }
            Err(error) => {
                let why: Arc<str> = self.with_age(&error).into();
                // The same trouble again is no news.
                let news = self.trouble.replace(why.clone()).is_none_or(|before| before != why);
                news.then_some(Event::Unreadable(number, why))
            }
        }
    }

    /// Says what stays in force meanwhile, and since when nobody knows whether it is still the newest.
    fn with_age(&self, error: &Error) -> String {
        match (self.source.current(), self.source.reached()) {
            (Some(revision), Some(reached)) => {
                let age = jiff::SignedDuration::try_from(reached.elapsed()).unwrap_or_default();
                let time = (jiff::Timestamp::now() - age).strftime("%Y-%m-%d %H:%M:%S UTC");
                format!("{error} (in force: {}, last seen {time})", revision.short())
            }
            (Some(revision), None) => {
                format!("{error} (in force: {}, not seen since rhumb started)", revision.short())
            }
            (None, _) => error.to_string(),
        }
    }

    async fn advance(&mut self) -> Result<Option<(Reading, BTreeSet<GroupKind>)>, Error> {
        let observed = self.source.observe().await?;
        let same =
            |told: &&Arc<Snapshot>| told.revision == observed.revision && self.extent == Extent::Changed;
        if let Some(told) = self.told.as_ref().filter(same) {
            if self.trouble.is_none() {
                return Ok(None);
            }
            // Nothing is new but that it can be read again.
            let (revision, incomplete) = (Some(observed.revision), refusal(told));
            return Ok(Some((Reading { revision, incomplete, ..Reading::default() }, BTreeSet::new())));
        }
        let (reader, dialect, scopes) = (self.source.reader(), self.dialect.clone(), self.scopes.clone());
        let (from, extent, to) = (self.told.clone(), self.extent, observed.revision.clone());
        let step = blocking(move || advance(&reader, &dialect, scopes, from.as_deref(), extent, &to)).await?;
        match step.moved {
            Moved::To(snapshot) => self.told = Some(Arc::new(snapshot)),
            Moved::By(changes) => {
                if let Some(told) = &mut self.told {
                    follow(Arc::make_mut(told), changes, observed.revision);
                }
            }
        }
        (self.scopes, self.extent) = (step.scopes, Extent::Changed);
        Ok(Some((step.reading, step.unknown)))
    }

    /// Keeps one more revision, or, the first time, all: a commit that comes meanwhile waits for no more.
    async fn pin(&mut self) {
        let wanted = self.pins.next();
        let kept = self.source.pin(&wanted).await;
        self.pins.due = self.pins.due.filter(|_| kept.is_ok() && wanted != self.pins.wanted);
        match kept {
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => {
                tracing::debug!(source = self.source.name(), ?lost, "revisions that are gone");
            }
            Err(error) => {
                tracing::warn!(source = self.source.name(), "older revisions cannot be kept: {error}");
                // Tried again with the next order.
                return;
            }
        }
        self.pins.kept = wanted;
    }

    async fn obey(&mut self, order: Order) -> Option<Event> {
        match order {
            Order::Scopes(scopes) => {
                self.scopes = *scopes;
                self.extent = Extent::All;
                self.look().await
            }
            Order::Pin(revisions) => {
                self.pins.wanted = revisions;
                self.pins.due.get_or_insert(Instant::now() + PIN_DELAY);
                None
            }
            Order::Resolve(revision, wanted) => {
                let (reader, dialect, scopes) =
                    (self.source.reader(), self.dialect.clone(), self.scopes.clone());
                let resolved = blocking(move || resolve(&reader, &dialect, scopes, &revision, wanted)).await;
                Some(Event::Resolved(resolved))
            }
        }
    }
}

/// How long a revision may be in force before it is kept: to keep it costs more than to read what changed.
const PIN_DELAY: Duration = Duration::from_secs(1);

/// Which revisions the source keeps, which it is to keep, and when that is due.
#[derive(Default)]
struct Pins {
    kept: BTreeSet<Revision>,
    wanted: BTreeSet<Revision>,
    due: Option<Instant>,
}

impl Pins {
    /// What to keep next. An earlier process may have kept what this one has not been told of yet.
    fn next(&self) -> BTreeSet<Revision> {
        let missing = self.wanted.difference(&self.kept).next();
        if self.kept.is_empty() || missing.is_none() {
            return self.wanted.clone();
        }
        self.kept.intersection(&self.wanted).chain(missing).cloned().collect()
    }
}

/// Which files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Those that changed.
    Changed,
    /// All, as they may mean something else now.
    All,
}

struct Step {
    moved: Moved,
    reading: Reading,
    unknown: BTreeSet<GroupKind>,
    scopes: Scopes,
}

/// How a revision differs from the one that was told last.
struct Difference {
    moved: Moved,
    changed: BTreeMap<Arc<str>, Blob>,
    gone: BTreeSet<Arc<str>>,
    incomplete: Option<Arc<str>>,
}

/// What the files are now.
enum Moved {
    /// Those that were told, but for these changes.
    By(Vec<Changed>),
    /// These.
    To(Snapshot),
}

/// Compares at the cost of what changed, wherever that can be told from the changes alone.
fn difference(
    reader: &Reader,
    from: Option<&Snapshot>,
    extent: Extent,
    to: &Revision,
) -> Result<Difference, Error> {
    let Some(from) = from else { return whole(reader, &[], extent, to) };
    if extent == Extent::Changed
        && let Ok(Some(changes)) = reader.plain_changes(&from.revision, to)
    {
        let (mut changed, mut gone) = (BTreeMap::new(), BTreeSet::new());
        for change in &changes {
            match change.new {
                Some((blob, _)) => drop(changed.insert(change.path.clone(), blob)),
                None => drop(gone.insert(change.path.clone())),
            }
        }
        // What is refused is the same in both.
        return Ok(Difference { moved: Moved::By(changes), changed, gone, incomplete: refusal(from) });
    }
    whole(reader, &from.files, extent, to)
}

/// Takes changes over into a list of files, which stays in order.
fn follow(snapshot: &mut Snapshot, changes: Vec<Changed>, to: Revision) {
    let files = &mut snapshot.files;
    for change in changes {
        let place = files.binary_search_by(|file| file.path.cmp(&change.path));
        match (place, change.new) {
            (Ok(at), Some((blob, size))) => (files[at].blob, files[at].size) = (blob, size),
            (Ok(at), None) => drop(files.remove(at)),
            (Err(at), Some((blob, size))) => files.insert(at, File { path: change.path, blob, size }),
            (Err(_), None) => {}
        }
    }
    snapshot.revision = to;
}

/// Compares whole lists of files.
fn whole(reader: &Reader, old: &[File], extent: Extent, to: &Revision) -> Result<Difference, Error> {
    let snapshot = reader.snapshot(to)?;
    let old: BTreeMap<&Arc<str>, Blob> = old.iter().map(|file| (&file.path, file.blob)).collect();
    let mut gone: BTreeSet<Arc<str>> = old.keys().map(|path| (*path).clone()).collect();
    let mut changed = BTreeMap::new();
    for file in &snapshot.files {
        gone.remove(&file.path);
        if extent == Extent::All || old.get(&file.path) != Some(&file.blob) {
            changed.insert(file.path.clone(), file.blob);
        }
    }
    let incomplete = refusal(&snapshot);
    Ok(Difference { moved: Moved::To(snapshot), changed, gone, incomplete })
}

/// Reads what changed since the last reading, or all.
fn advance(
    reader: &Reader,
    dialect: &Dialect,
    mut scopes: Scopes,
    from: Option<&Snapshot>,
    extent: Extent,
    to: &Revision,
) -> Result<Step, Error> {
    let Difference { moved, changed, gone, incomplete } = difference(reader, from, extent, to)?;
    let mut files: BTreeMap<Arc<str>, Option<FileFacts>> =
        gone.into_iter().map(|path| (path, None)).collect();
    let mut unknown = read_files(reader, dialect, &mut scopes, &changed, &mut files)?;
    // A definition may stand in a later file than its objects.
    let learnt = |kinds: &BTreeSet<GroupKind>| kinds.iter().any(|kind| scopes.get(kind).is_some());
    let again: BTreeMap<Arc<str>, Blob> = unknown
        .iter()
        .filter(|(_, kinds)| learnt(kinds))
        .filter_map(|(path, _)| Some((path.clone(), *changed.get(path)?)))
        .collect();
    if !again.is_empty() {
        unknown.retain(|path, _| !again.contains_key(path));
        unknown.extend(read_files(reader, dialect, &mut scopes, &again, &mut files)?);
    }
    let mut reading =
        Reading { revision: Some(to.clone()), files: files.into_iter().collect(), ..Reading::default() };
    reading.incomplete = incomplete;
    Ok(Step { moved, reading, unknown: unknown.into_values().flatten().collect(), scopes })
}

/// Reads files, and returns the kinds of unknown scope in each that has some.
fn read_files(
    reader: &Reader,
    dialect: &Dialect,
    scopes: &mut Scopes,
    wanted: &BTreeMap<Arc<str>, Blob>,
    files: &mut BTreeMap<Arc<str>, Option<FileFacts>>,
) -> Result<BTreeMap<Arc<str>, BTreeSet<GroupKind>>, Error> {
    let mut unknown = BTreeMap::new();
    let mut paths = wanted.keys();
    reader.read_all(wanted.values().copied(), |blob, bytes| {
        if let Some(path) = paths.next() {
            let read = dialect.read(path, &bytes, blob.into(), scopes);
            if !read.unknown.is_empty() {
                unknown.insert(path.clone(), read.unknown);
            }
            files.insert(path.clone(), Some(read.facts));
        }
        Ok(())
    })?;
    Ok(unknown)
}

/// Looks up contents in an older revision; none for what cannot be had.
fn resolve(
    reader: &Reader,
    dialect: &Dialect,
    mut scopes: Scopes,
    revision: &Revision,
    wanted: Vec<(ObjectId, Hash)>,
) -> Vec<(ObjectId, Release, Option<Shared>)> {
    let mut found: BTreeMap<ObjectId, Vec<Shared>> = BTreeMap::new();
    match reader.snapshot(revision) {
        Ok(snapshot) => {
            for file in snapshot.files.iter().filter(|file| file.size <= MAX_FILE) {
                let Ok(bytes) = reader.read(file.blob) else { continue };
                let Read { facts, .. } = dialect.read(&file.path, &bytes, file.blob.into(), &mut scopes);
                for object in facts.objects {
                    found.entry(object.id.clone()).or_default().push(object);
                }
            }
        }
        Err(error) => tracing::warn!(%revision, "an older revision cannot be read: {error}"),
    }
    let lookup = |(id, hash): (ObjectId, Hash)| {
        let content = found.get(&id).and_then(|all| all.iter().find(|desired| desired.is_release(hash)));
        let content = content.cloned();
        (id, Release { hash, revision: revision.clone() }, content)
    };
    wanted.into_iter().map(lookup).collect()
}

/// Reads what was on disk, once.
pub(super) async fn once(disk: Arc<Disk>, dialect: Dialect, scopes: Scopes) -> Event {
    blocking(move || {
        let (reading, unknown) = read_disk(&disk, &dialect, scopes);
        Event::Read(dialect.source, reading, unknown)
    })
    .await
}

/// Reads all files that were on disk.
pub(super) fn read_disk(
    disk: &Disk,
    dialect: &Dialect,
    mut scopes: Scopes,
) -> (Reading, BTreeSet<GroupKind>) {
    let snapshot = &disk.snapshot;
    let mut reading = Reading { revision: Some(snapshot.revision.clone()), ..Reading::default() };
    let mut files: BTreeMap<&Arc<str>, Read> = BTreeMap::new();
    for again in [Again::First, Again::WithDefinitions] {
        for file in &snapshot.files {
            let known = |read: &Read| read.unknown.iter().all(|kind| scopes.get(kind).is_none());
            if again == Again::WithDefinitions && files.get(&file.path).is_some_and(known) {
                continue;
            }
            let bytes = disk.read(file.blob).unwrap_or_default();
            files.insert(&file.path, dialect.read(&file.path, bytes, file.blob.into(), &mut scopes));
        }
    }
    let unknown = files.values().flat_map(|read| read.unknown.iter().cloned()).collect();
    reading.files = files.into_iter().map(|(path, read)| (path.clone(), Some(read.facts))).collect();
    reading.incomplete = refusal(snapshot);
    (reading, unknown)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    First,
    WithDefinitions,
}

fn refusal(snapshot: &Snapshot) -> Option<Arc<str>> {
    let refused = snapshot.refused.first()?;
    Some(format!("{}: {}", refused.origin.file, refused.message).into())
}

/// Reads a source at its newest revision, once.
pub(super) async fn at_newest(
    mut source: Source,
    dialect: Dialect,
    scopes: Scopes,
) -> Result<Reading, Error> {
    let observed = source.observe().await?;
    let reader = source.reader();
    let step = blocking(move || advance(&reader, &dialect, scopes, None, Extent::All, &observed.revision));
    Ok(step.await?.reading)
}
