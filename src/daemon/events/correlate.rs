//! Which Events are written, and when: the same thing again raises a count, many like things become one, and no
//! source writes more than one a second for long. As client-go's correlator.
//!
//! **Invariant:** pure. The time is an argument.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::cluster::{LONGEST_MESSAGE, Occurrence, Severity};
use crate::engine::Uid;
use crate::object::{GroupKind, Gvk, ObjectId};
use crate::render::harmless_line;
use crate::report::{Happening, Notice};

/// So many Events of a source may be written at once.
const BURST: u32 = 25;

/// Then one each.
const EVERY: Duration = Duration::from_secs(1);

/// After so many different messages about the same within [`SIMILAR_WITHIN`], the next count as one.
const SIMILAR: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_mins(10);

/// So many wait to be written; of more, the oldest one about a mere object that is no warning is not written at all.
const WAITING: usize = 256;

/// So often one is tried.
const TRIES: u32 = 12;

/// Of so many Events is remembered that they were made.
const REMEMBERED: usize = 1024;

/// The longest name of an object, less what an Event's name has behind it.
const LONGEST_NAME: usize = 253 - 24;

/// Where a revision is found that an Event follows from.
const REVISION: &str = "rhumb.dev/revision";

/// What makes two Events the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    about: ObjectId,
    uid: Option<Uid>,
    reason: Happening,
    message: String,
}

/// An Event that waits to be written.
#[derive(Debug)]
struct Waiting {
    source: String,
    key: Key,
    name: String,
    occurrence: Occurrence,
    /// Whether it is about a source: what happens to many objects is counted there.
    of_source: bool,
    /// How often it was tried in vain.
    tried: u32,
}

/// Whether an Event is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It is made.
    Make,
    /// It is, and happened again.
    Repeat,
}

/// An Event that is to be written now.
#[derive(Debug)]
pub(super) struct Write {
    /// How.
    pub(super) deed: Deed,
    /// Its name.
    pub(super) name: String,
    /// What it says.
    pub(super) occurrence: Occurrence,
    /// Of which source.
    pub(super) source: String,
    key: Key,
    of_source: bool,
    tried: u32,
    /// How much of its count is new.
    added: u32,
}

impl Write {
    /// Whether it was tried before, in vain as it seemed.
    pub(super) fn tried_before(&self) -> bool {
        self.tried > 0
    }
}

/// An Event that was made.
#[derive(Debug)]
struct Made {
    name: String,
    count: u32,
    first: Timestamp,
}

/// Different messages about the same, with their times.
type Messages = VecDeque<(Instant, String)>;

/// What is to be written, and what was.
#[derive(Debug)]
pub(super) struct Correlator {
    namespace: String,
    waiting: VecDeque<Waiting>,
    made: HashMap<Key, Made>,
    /// The keys of what was made, the oldest first.
    order: VecDeque<Key>,
    similar: HashMap<(ObjectId, Happening), Messages>,
    /// When each source has its next whole burst again.
    full: HashMap<String, Instant>,
    /// The number in the name of the last Event.
    number: u64,
    /// How many are not written, since somebody was told.
    lost: u64,
}

impl Correlator {
    /// Nothing was written yet. The sources' `ConfigMap`s are in this namespace.
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            waiting: VecDeque::new(),
            made: HashMap::new(),
            order: VecDeque::new(),
            similar: HashMap::new(),
            full: HashMap::new(),
            number: 0,
            lost: 0,
        }
    }

    /// Takes a notice: it becomes an Event on its object, and one on its source.
    pub(super) fn offer(&mut self, notice: &Notice, now: Instant) {
        let Some(regarding) = &notice.regarding else { return };
        if !is_told(notice.reason) {
            return;
        }
        let made = match (&notice.author, &notice.subject) {
            (Some(author), Some(subject)) => format!(" ({author}: {subject})"),
            _ => String::new(),
        };
        let message = harmless_line(&notice.message);
        if let Some((id, gvk, uid)) = &regarding.object {
            self.add(notice, (id.clone(), gvk.clone(), uid.clone()), (message.clone(), &made, false), now);
        }
        if let Some(parent) = &regarding.parent {
            let gvk = Gvk::new("", "v1", "ConfigMap");
            let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(&self.namespace), &notice.source);
            let message = match &regarding.object {
                Some((object, ..)) => format!("{}: {message}", harmless_line(&object.to_string())),
                None => message,
            };
            self.add(notice, (id, gvk, Some(parent.clone())), (message, &made, true), now);
        }
    }

    fn add(
        &mut self,
        notice: &Notice,
        (id, gvk, uid): (ObjectId, Gvk, Option<Uid>),
        (mut message, made, is_of_source): (String, &str, bool),
        now: Instant,
    ) {
        let alike = self.is_one_of_many(&id, notice.reason, &format!("{message}{made}"), now);
        if alike {
            message.insert_str(0, "(combined from similar events) ");
        }
        // Long words of a server do not push out who made the commit.
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE.saturating_sub(made.len())));
        message.push_str(made);
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        let key_message = if alike { String::new() } else { message.clone() };
        let key = Key { about: id.clone(), uid: uid.clone(), reason: notice.reason, message: key_message };
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.key == key) {
            waiting.occurrence.count += 1;
            (waiting.occurrence.last, waiting.occurrence.message) = (notice.at, message);
            return;
        }
        let revision = notice.revision.iter().map(|revision| (REVISION.to_owned(), revision.clone()));
        let occurrence = Occurrence {
            reason: notice.reason.to_string(),
            severity: if notice.reason.is_warning() { Severity::Warning } else { Severity::Normal },
            count: 1,
            first: notice.at,
            last: notice.at,
            annotations: revision.collect::<BTreeMap<_, _>>(),
            id,
            gvk,
            uid,
            message,
        };
        let name = self.name(&occurrence, notice.number);
        if self.waiting.len() >= WAITING {
            self.lose_one();
        }
        let (source, of_source) = (notice.source.clone(), is_of_source);
        self.waiting.push_back(Waiting { source, key, name, occurrence, of_source, tried: 0 });
    }

    /// Makes room. What is told of a source stands for what many of its objects would say, so it goes last.
    fn lose_one(&mut self) {
        let worth = |one: &Waiting| (one.of_source, one.occurrence.severity == Severity::Warning);
        let least = self.waiting.iter().enumerate().min_by_key(|(_, one)| worth(one));
        if let Some(lost) = least.map(|(index, _)| index).and_then(|index| self.waiting.remove(index)) {
            self.lost += u64::from(lost.occurrence.count);
        }
    }

    /// How many things are told by no Event, once nothing waits any more; each is counted once.
    pub(super) fn take_lost(&mut self) -> u64 {
        if self.waiting.is_empty() { std::mem::take(&mut self.lost) } else { 0 }
    }

    /// How many things no Event will tell where none is written any more.
    pub(super) fn left(&self) -> u64 {
        self.lost + self.waiting.iter().map(|one| u64::from(one.occurrence.count)).sum::<u64>()
    }

    /// A name that no Event of this process has: one notice may have two, about objects of the same name.
    fn name(&mut self, occurrence: &Occurrence, number: u64) -> String {
        self.number = number.max(self.number + 1);
        event_name(occurrence.id.name(), self.number)
    }

    /// Whether so many different things were said of an object lately that this is only one more of them.
    fn is_one_of_many(&mut self, id: &ObjectId, reason: Happening, message: &str, now: Instant) -> bool {
        let over = |at: &Instant| now.duration_since(*at) >= SIMILAR_WITHIN;
        if self.similar.len() >= REMEMBERED {
            self.similar.retain(|_, messages| messages.back().is_some_and(|(at, _)| !over(at)));
        }
        // One by one they would be looked through for each of as many objects.
        if self.similar.len() >= REMEMBERED {
            self.similar.retain(|_, messages| messages.len() > 1);
        }
        if self.similar.len() >= REMEMBERED {
            self.similar.clear();
        }
        let messages = self.similar.entry((id.clone(), reason)).or_default();
        while messages.front().is_some_and(|(at, _)| over(at)) {
            messages.pop_front();
        }
        if messages.iter().any(|(_, known)| known == message) {
            return false;
        }
        if messages.len() < SIMILAR {
            messages.push_back((now, message.to_owned()));
            return false;
        }
        true
    }

    /// The next Event that may be written now: a warning first.
    pub(super) fn next(&mut self, now: Instant) -> Option<Write> {
        let may = |full: &HashMap<String, Instant>, source: &str| {
            full.get(source).is_none_or(|full| full.saturating_duration_since(now) <= EVERY * (BURST - 1))
        };
        let (full, waiting) = (&self.full, &self.waiting);
        let allowed = |of: Severity| {
            waiting.iter().position(|one| one.occurrence.severity == of && may(full, &one.source))
        };
        let index = allowed(Severity::Warning).or_else(|| allowed(Severity::Normal))?;
        let Waiting { source, key, name, mut occurrence, of_source, tried } = self.waiting.remove(index)?;
        let added = occurrence.count;
        let full = self.full.entry(source.clone()).or_insert(now);
        *full = (*full).max(now) + EVERY;
        let (deed, name) = if let Some(made) = self.made.get_mut(&key) {
            made.count += occurrence.count;
            (occurrence.count, occurrence.first) = (made.count, made.first);
            (Deed::Repeat, made.name.clone())
        } else {
            self.remember(&key, &name, &occurrence);
            (Deed::Make, name)
        };
        Some(Write { deed, name, occurrence, source, key, of_source, tried, added })
    }

    fn remember(&mut self, key: &Key, name: &str, occurrence: &Occurrence) {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.made.remove(&oldest);
        }
        let made = Made { name: name.to_owned(), count: occurrence.count, first: occurrence.first };
        self.made.insert(key.clone(), made);
        self.order.push_back(key.clone());
    }

    /// An Event that was to be changed is not there any more: it is made anew.
    pub(super) fn expired(&mut self, write: Write) {
        let Write { mut occurrence, key, source, of_source, tried, added, .. } = write;
        self.forget(&key);
        (occurrence.count, occurrence.first) = (added, occurrence.last);
        let name = self.name(&occurrence, 0);
        self.waiting.push_front(Waiting { source, key, name, occurrence, of_source, tried });
    }

    /// One could not be written, and may be later: it waits again, under the same name, as it may have been made.
    /// Whether it is worth another try.
    pub(super) fn failed(&mut self, write: Write) -> bool {
        let Write { deed, mut occurrence, key, source, of_source, tried, added, name } = write;
        match self.made.get_mut(&key) {
            Some(made) if deed == Deed::Repeat => made.count -= added,
            _ => self.forget(&key),
        }
        if tried + 1 >= TRIES {
            self.lost += u64::from(added);
            return false;
        }
        occurrence.count = added;
        self.waiting.push_front(Waiting { source, key, name, occurrence, of_source, tried: tried + 1 });
        true
    }

    /// One is not written, and nobody misses it.
    pub(super) fn unwritten(&mut self, write: &Write) {
        match self.made.get_mut(&write.key) {
            Some(made) if write.deed == Deed::Repeat => made.count -= write.added,
            _ => self.forget(&write.key),
        }
    }

    /// One is not written, and will not be: what it says counts as lost.
    pub(super) fn given_up(&mut self, write: &Write) {
        self.unwritten(write);
        self.lost += u64::from(write.added);
    }

    fn forget(&mut self, key: &Key) {
        self.made.remove(key);
        self.order.retain(|other| other != key);
    }

    /// When the next one that waits may be written.
    pub(super) fn due(&self) -> Option<Instant> {
        let sources: HashSet<&String> = self.waiting.iter().map(|waiting| &waiting.source).collect();
        let full = sources.into_iter().filter_map(|source| self.full.get(source));
        full.filter_map(|full| full.checked_sub(EVERY * (BURST - 1))).min()
    }
}

/// What people look for beside an object; every single object of a large commit is not.
fn is_told(happening: Happening) -> bool {
    !matches!(
        happening,
        Happening::Created | Happening::Configured | Happening::Pruned | Happening::Recreated
    )
}

/// A name in the form of a DNS subdomain, which not every object has.
fn event_name(object: &str, number: u64) -> String {
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = object.chars().take(LONGEST_NAME).map(plain).collect();
    let name = name.trim_matches('-');
    format!("{}.{number:x}", if name.is_empty() { "rhumb" } else { name })
}

#[cfg(test)]
mod tests;
