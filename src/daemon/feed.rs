//! One task per source: looks at it, reads what changed, and looks up older contents.

mod ending;
mod last_look;
mod missing;
mod once;
mod past;
mod vouched;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

pub(super) use self::last_look::LastLook;
use self::missing::{Lookup, Missing};
pub(super) use self::once::{at_newest, once, read_disk};
use self::vouched::Beside;
use super::act::blocking;
use super::event::Event;
use super::pins::Pins;
use super::reading::Dialect;
use crate::engine::{Authored, FileFacts, Reading, Repository, Undo};
use crate::manifest::Scopes;
use crate::object::{GroupKind, Hash, ObjectId, Revision};
use crate::pulse::Pulse;
use crate::source::{Anchor, Blob, Commit, Error, File, Reader, Snapshot, Source};

/// So much later than it should be, a feed still counts as alive: its news wait until the loop takes them.
const SLACK: Duration = Duration::from_mins(1);

/// The longest time that one deed may take: a fetch ends by its own deadline, and a deed takes two of them at most
/// beside what it waits for.
const DEED: Duration = Duration::from_mins(25);

/// What the loop asks of a feed.
#[derive(Debug)]
pub(super) enum Order {
    /// Read all again with these scopes.
    Scopes(Box<Scopes>),
    /// Look whether there is anything new, after the reading of this number.
    Look(u64),
    /// What is recorded of what was accepted of the source.
    Anchor(Anchor),
    /// Somebody outside says that there is something new.
    Hint,
    /// Keep these revisions readable.
    Pin(BTreeSet<Revision>),
    /// Look up where the way back of an order leads to.
    LookBack(Undo),
    /// Look up contents of an older revision.
    Resolve(Revision, Vec<(ObjectId, Hash)>),
}

/// A source with what was last told of it.
pub(super) struct Feed {
    pub(super) source: Source,
    pub(super) dialect: Dialect,
    pub(super) scopes: Scopes,
    pub(super) events: mpsc::Sender<Event>,
    pulse: Pulse,
    looked: LastLook,
    told: Option<Snapshot>,
    place: String,
    /// As it was told last.
    repository: Repository,
    /// Why the last look failed, if it did.
    trouble: Option<Arc<str>>,
    extent: Extent,
    pins: Pins,
    /// What was accepted last, as it was told.
    accepted: Option<Revision>,
    missing: Missing,
    /// The reading after which a look was asked for last, and the one that was answered.
    asked: u64,
    answered: u64,
}

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// What changed.
    Changes,
    /// Every file, as other scopes make other objects of it.
    Everything,
}

impl Feed {
    /// A feed that has told nothing yet.
    pub(super) fn new(
        source: Source,
        dialect: Dialect,
        scopes: Scopes,
        (events, pulse): (mpsc::Sender<Event>, Pulse),
    ) -> Self {
        let place = source.identity().to_owned();
        let (told, trouble, extent, pins) = (None, None, Extent::Changes, Pins::default());
        let (missing, asked, answered) = (Missing::default(), 0, 0);
        Self {
            source,
            dialect,
            scopes,
            events,
            pulse,
            looked: LastLook::default(),
            told,
            place,
            repository: Repository::Unknown,
            trouble,
            extent,
            pins,
            accepted: None,
            missing,
            asked,
            answered,
        }
    }

    /// Tells, beside its events, when it last looked.
    pub(super) fn noting(self, looked: LastLook) -> Self {
        Self { looked, ..self }
    }

    /// Runs until nobody listens any more.
    pub(super) async fn run(mut self, orders: mpsc::Receiver<Order>) {
        let hints = self.source.hints();
        let mut next = Instant::now();
        let beside = if self.source.verifies() { Beside::Accepted } else { Beside::All };
        let mut desk = Desk { orders, later: VecDeque::new(), lookups: FuturesUnordered::new(), beside };
        loop {
            let pins_due = self.pins.due();
            let deed = if let Some(deed) = desk.later.pop_front() {
                deed
            } else {
                self.pulse.beat(next.saturating_duration_since(Instant::now()) + SLACK);
                tokio::select! {
                    biased;
                    order = desk.orders.recv() => {
                        let Some(order) = order else { return };
                        desk.take(order, (self.shelf(), self.head()));
                        continue;
                    },
                    Some(found) = desk.lookups.next(), if !desk.lookups.is_empty() => {
                        if let Some(event) = desk.found(found) && self.events.send(event).await.is_err() {
                            return;
                        }
                        continue;
                    },
                    () = hints.changed() => Deed::Look,
                    () = sleep_until(next) => Deed::Poll,
                    () = sleep_until(pins_due.unwrap_or(next)), if pins_due.is_some() => Deed::Pin,
                }
            };
            let polled = matches!(deed, Deed::Poll);
            let Some(told) = self.work(deed, &mut desk).await else { return };
            if polled {
                next = Instant::now() + self.source.next_poll(super::random());
            }
            for event in told {
                self.pulse.beat(SLACK);
                if self.events.send(event).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Does one thing. A fetch may hang for a minute: meanwhile older contents are looked up beside it, as what
    /// is in force must be defended. Returns none when nobody listens any more.
    async fn work(&mut self, deed: Deed, desk: &mut Desk) -> Option<Vec<Event>> {
        let beside = (self.shelf(), self.head());
        let events = self.events.clone();
        let mut work = std::pin::pin!(self.carry_out(deed));
        loop {
            tokio::select! {
                biased;
                told = &mut work => return Some(told),
                Some(found) = desk.lookups.next(), if !desk.lookups.is_empty() => {
                    if let Some(event) = desk.found(found) {
                        events.send(event).await.ok()?;
                    }
                }
                order = desk.orders.recv() => desk.take(order?, beside.clone()),
            }
        }
    }

    async fn carry_out(&mut self, deed: Deed) -> Vec<Event> {
        self.pulse.beat(DEED);
        match deed {
            Deed::Look | Deed::Poll => {
                let mut told = self.look().await;
                told.extend(self.bring_missing().await);
                told
            }
            Deed::Bring(wanted) => {
                self.missing.push(wanted);
                // Whether the source itself can be read may not have been noticed yet.
                let mut told = self.look().await;
                told.extend(self.bring_missing().await);
                told
            }
            Deed::Anchor(anchor) => self.anchor(anchor).await,
            Deed::LookBack(undo) => vec![self.look_back(undo).await],
            Deed::Pin => {
                self.pin().await;
                Vec::new()
            }
            Deed::ReadAgain(scopes) => {
                self.scopes = *scopes;
                self.extent = Extent::Everything;
                self.look().await
            }
            Deed::LookAfter(reading) => {
                self.asked = self.asked.max(reading);
                let mut told = self.look().await;
                told.extend(self.bring_missing().await);
                told
            }
            Deed::Want(revisions) => {
                self.pins.want(revisions);
                Vec::new()
            }
        }
    }

    /// The revision that was told last.
    fn head(&self) -> Option<Revision> {
        let told = self.told.as_ref().map(|told| &told.revision);
        told.or_else(|| self.source.current()).cloned()
    }

    /// What older contents are looked up with.
    fn shelf(&self) -> Shelf {
        Shelf { reader: self.source.reader(), dialect: self.dialect.clone(), scopes: self.scopes.clone() }
    }

    async fn look(&mut self) -> Vec<Event> {
        // What is recorded of it is on its way.
        if !self.source.is_anchored() {
            return Vec::new();
        }
        let number = self.dialect.source;
        let read = |(reading, unknown)| Event::Read(number, reading, unknown);
        let seen = self.advance().await;
        let mut events = Vec::new();
        if self.place != self.source.identity() {
            self.source.identity().clone_into(&mut self.place);
            events.push(Event::Place(number, self.place.clone()));
        }
        let repository = self.followed();
        if self.repository != repository {
            self.repository.clone_from(&repository);
            events.push(Event::Repository(number, repository));
        }
        match seen {
            Ok(news) => {
                self.trouble = None;
                self.looked.was(jiff::Timestamp::now());
                events.extend(self.newly_accepted());
                events.extend(news.map(read));
                if self.answered < self.asked {
                    self.answered = self.asked;
                    events.push(Event::Checked(number, self.asked));
                }
            }
            Err(error) => {
                let remembered = self.remembered().await.map(read);
                let why: Arc<str> = self.with_age(&error).into();
                // The same trouble again is no news.
                let known = self.trouble.replace(why.clone()).is_some_and(|before| before == why);
                if remembered.is_some() || !known {
                    events.extend(remembered);
                    events.push(Event::Unreadable(number, why));
                }
            }
        }
        events
    }

    fn followed(&self) -> Repository {
        match self.source.repository() {
            Some(repository) => Repository::At(repository.into()),
            None if self.source.is_awaited() => Repository::Unknown,
            None => Repository::Nowhere,
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
        let revision = self.source.observe().await?.revision;
        let same = self.told.as_ref().filter(|told| told.revision == revision);
        if let (Some(told), Extent::Changes) = (same, self.extent) {
            // Nothing is new, unless that it can be read again.
            let (incomplete, refused) = (refusal(told), told.refused.clone());
            let reading = Reading { revision: Some(revision), incomplete, refused, ..Reading::default() };
            return Ok(self.trouble.is_some().then(|| (reading, BTreeSet::new())));
        }
        self.step(revision).await.map(Some)
    }

    /// The first look of this process failed: what an earlier one left stays in force.
    async fn remembered(&mut self) -> Option<(Reading, BTreeSet<GroupKind>)> {
        let revision = self.source.current().filter(|_| self.told.is_none()).cloned()?;
        self.step(revision).await.ok()
    }

    async fn step(&mut self, revision: Revision) -> Result<(Reading, BTreeSet<GroupKind>), Error> {
        let (reader, dialect, scopes) = (self.source.reader(), self.dialect.clone(), self.scopes.clone());
        let (from, extent) = (self.told.clone(), self.extent);
        let step = blocking(move || advance(&reader, &dialect, scopes, (from, extent), &revision)).await?;
        self.told = Some(step.snapshot);
        self.scopes = step.scopes;
        self.extent = Extent::Changes;
        Ok((step.reading, step.unknown))
    }

    async fn pin(&mut self) {
        let wanted = self.pins.next();
        match self.source.pin(&wanted).await {
            Ok(lost) => {
                for revision in lost {
                    tracing::debug!(source = self.source.name(), %revision, "a revision is gone");
                }
                self.pins.done(wanted);
            }
            Err(error) => {
                tracing::warn!(source = self.source.name(), "older revisions cannot be kept: {error}");
                self.pins.failed();
            }
        }
    }
}

/// What waits for a feed.
struct Desk {
    orders: mpsc::Receiver<Order>,
    /// What was ordered and is not begun.
    later: VecDeque<Deed>,
    lookups: FuturesUnordered<BoxFuture<'static, Lookup>>,
    beside: Beside,
}

impl Desk {
    /// A look-up begins at once, beside whatever is being done; the rest waits for its turn.
    fn take(&mut self, order: Order, (beside, head): (Shelf, Option<Revision>)) {
        let deed = match order {
            Order::Resolve(revision, wanted) => {
                return self.lookups.push(beside.resolve(revision, wanted).boxed());
            }
            Order::Anchor(anchor) => Deed::Anchor(anchor),
            Order::LookBack(undo) if self.waits_for_signatures() => Deed::LookBack(undo),
            Order::LookBack(undo) => {
                return self
                    .lookups
                    .push(beside.look_back(undo, head).map(|event| Lookup::Done(Box::new(event))).boxed());
            }
            Order::Scopes(scopes) => Deed::ReadAgain(scopes),
            Order::Look(reading) => Deed::LookAfter(reading),
            // A look that has not begun sees all that this one would.
            Order::Hint if self.later.iter().any(|deed| matches!(deed, Deed::Look)) => return,
            Order::Hint => Deed::Look,
            Order::Pin(revisions) => Deed::Want(revisions),
        };
        self.later.push_back(deed);
    }

    /// What a look-up found is told, unless something has to be fetched for it.
    fn found(&mut self, found: Lookup) -> Option<Event> {
        match found {
            Lookup::Done(event) => Some(*event),
            Lookup::Missing(wanted) => {
                self.later.push_back(Deed::Bring(wanted));
                None
            }
        }
    }
}

/// What a feed does next.
enum Deed {
    /// A hint says that there may be something new.
    Look,
    /// It is time to look.
    Poll,
    /// What was accepted is known.
    Anchor(Anchor),
    /// The way back of an order is looked up, and its signature verified.
    LookBack(Undo),
    /// Revisions are to be kept.
    Pin,
    /// With these scopes everything is read again.
    ReadAgain(Box<Scopes>),
    /// A look is asked for, after the reading of this number.
    LookAfter(u64),
    /// These revisions will be kept.
    Want(BTreeSet<Revision>),
    /// A revision of which contents are wanted is not here.
    Bring(missing::Wanted),
}

/// Where older contents are looked up, whatever else is being done.
#[derive(Clone)]
struct Shelf {
    reader: Reader,
    dialect: Dialect,
    scopes: Scopes,
}

impl Shelf {
    async fn look_back(self, undo: Undo, head: Option<Revision>) -> Event {
        let Self { reader, dialect, scopes } = self;
        let token = undo.token.clone();
        let look_back = move || past::look_back(&reader, &dialect, scopes, (&undo, head.as_ref()));
        Event::LookedBack(token, blocking(look_back).await)
    }
}

struct Step {
    snapshot: Snapshot,
    reading: Reading,
    unknown: BTreeSet<GroupKind>,
    scopes: Scopes,
}

/// How a revision differs from the one that was told last.
struct Difference {
    snapshot: Snapshot,
    changed: BTreeMap<Arc<str>, Blob>,
    gone: BTreeSet<Arc<str>>,
}

/// Compares at the cost of what changed, wherever that can be told from the changes alone.
fn difference(
    reader: &Reader,
    (from, extent): (Option<Snapshot>, Extent),
    to: &Revision,
) -> Result<Difference, Error> {
    if let Some(mut snapshot) = from {
        if extent == Extent::Everything {
            let mut all = whole(reader, &snapshot.files, to)?;
            all.changed = all.snapshot.files.iter().map(|file| (file.path.clone(), file.blob)).collect();
            return Ok(all);
        }
        let plain = reader.plain_changes(&snapshot.revision, to);
        if let Ok(Some(changes)) = plain {
            let (mut changed, mut gone) = (BTreeMap::new(), BTreeSet::new());
            for change in changes {
                snapshot.files.retain(|file| file.path != change.path);
                match change.new {
                    Some((blob, size)) => {
                        snapshot.files.push(File { path: change.path.clone(), blob, size });
                        changed.insert(change.path, blob);
                    }
                    None => drop(gone.insert(change.path)),
                }
            }
            snapshot.revision = to.clone();
            return Ok(Difference { snapshot, changed, gone });
        }
        return whole(reader, &snapshot.files, to);
    }
    whole(reader, &[], to)
}

/// Compares whole lists of files.
fn whole(reader: &Reader, old: &[File], to: &Revision) -> Result<Difference, Error> {
    let snapshot = reader.snapshot(to)?;
    let old: BTreeMap<&Arc<str>, Blob> = old.iter().map(|file| (&file.path, file.blob)).collect();
    let mut gone: BTreeSet<Arc<str>> = old.keys().map(|path| (*path).clone()).collect();
    let mut changed = BTreeMap::new();
    for file in &snapshot.files {
        gone.remove(&file.path);
        if old.get(&file.path) != Some(&file.blob) {
            changed.insert(file.path.clone(), file.blob);
        }
    }
    Ok(Difference { snapshot, changed, gone })
}

/// Reads what changed since the last reading, or all.
fn advance(
    reader: &Reader,
    dialect: &Dialect,
    mut scopes: Scopes,
    from: (Option<Snapshot>, Extent),
    to: &Revision,
) -> Result<Step, Error> {
    let Difference { snapshot, changed, gone } = difference(reader, from, to)?;
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
    reading.authored = reader.commit(to)?.map(|commit| authored(&commit));
    reading.incomplete = refusal(&snapshot);
    reading.refused.clone_from(&snapshot.refused);
    Ok(Step { snapshot, reading, unknown: unknown.into_values().flatten().collect(), scopes })
}

fn authored(commit: &Commit) -> Authored {
    Authored::of(&commit.author, &commit.subject)
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

fn refusal(snapshot: &Snapshot) -> Option<Arc<str>> {
    let refused = snapshot.refused.first()?;
    Some(format!("{}: {}", refused.origin.file, refused.message).into())
}

#[cfg(test)]
mod tests;
