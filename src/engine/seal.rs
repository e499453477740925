//! Hashes of Secrets in records that others may read.
//!
//! The budget object and the parents are `ConfigMap`s, which many may read who may not read Secrets; and a hash is as
//! good as a weak password, as that is found by trying. So in these texts the hash of a Secret's content is sealed:
//! one AES-128 block of it, under a key that is made from the key for hashes of data. Equal hashes look equal, and
//! nobody without the key can try a content.
//!
//! **Invariant:** only the texts know seals. Everywhere else a hash is a hash, or one that cannot be read
//! ([`Hash::UNREADABLE`]), of which the content is never applied and never taken for another one.

use std::fmt;
use std::sync::Arc;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};

use super::book::Member;
use super::config_hash::Key;
use super::entry::{SourceId, Topic};
use super::rejection::{Rejection, Way};
use super::restart::{Known, key_id};
use super::state::Engine;
use super::{Reason, Release};
use crate::object::{GroupKind, Hash, ObjectId, Revision};

/// What a sealed word begins with, and all of a word that could not be read: `~<number of the key>.<block>`.
const MARK: char = '~';

/// The seals of all keys that this process has known. The newest one is set, each is read.
#[derive(Clone, Debug, Default)]
pub struct Seals(Vec<Seal>);

#[derive(Clone)]
struct Seal {
    number: u32,
    cipher: Aes128,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

/// How the hashes of Secrets stand in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sealing {
    /// There are none, or they are sealed as they would be now, or nobody here can read them.
    #[default]
    Fine,
    /// Some are plain, or under the seal of an older key that is known: they should be sealed anew.
    Stale,
    /// Some are sealed, and no key is known: what the text says is not known yet.
    Locked,
}

impl Seals {
    /// Takes over the newest key.
    pub(super) fn add(&mut self, key: &Key) {
        self.0.retain(|seal| seal.number != key.number());
        self.0.push(Seal { number: key.number(), cipher: Aes128::new(&Array::from(key.seal())) });
    }

    /// The number of the newest key; none where no key is known.
    pub fn number(&self) -> Option<u32> {
        self.0.last().map(|seal| seal.number)
    }

    /// The word for the hash of an object's content; none where it has to be sealed, and no key is known.
    pub(super) fn word(&self, id: &ObjectId, hash: Hash) -> Option<String> {
        match hash {
            Hash::UNREADABLE => Some(MARK.to_string()),
            hash if !is_secret(id) => Some(hash.to_string()),
            hash => {
                let seal = self.0.last()?;
                let mut block = Array::from(hash.bytes());
                seal.cipher.encrypt_block(&mut block);
                Some(format!("{MARK}{:08x}.{}", seal.number, Hash::from_bytes(block.into())))
            }
        }
    }

    /// As [`Seals::word`], of `<hash>@<revision>`.
    pub(super) fn release_word(&self, id: &ObjectId, release: &Release) -> Option<String> {
        Some(format!("{}@{}", self.word(id, release.hash)?, release.revision))
    }

    /// Reads what [`Seals::word`] writes, and plain words of any object: an older version wrote them.
    pub(super) fn read(&self, word: &str) -> Hash {
        let read = match sealed(word) {
            Some((number, block)) => self.open(number, block),
            None => Hash::parse(word),
        };
        read.unwrap_or(Hash::UNREADABLE)
    }

    /// Reads what [`Seals::release_word`] writes; none where the hash cannot be read.
    pub(super) fn read_release(&self, word: &str) -> Option<Release> {
        let (hash, revision) = word.split_once('@')?;
        let hash = Some(self.read(hash)).filter(|hash| *hash != Hash::UNREADABLE)?;
        Some(Release { hash, revision: Revision::new(revision) })
    }

    fn open(&self, number: u32, block: Hash) -> Option<Hash> {
        let seal = self.0.iter().find(|seal| seal.number == number)?;
        let mut block = Array::from(block.bytes());
        seal.cipher.decrypt_block(&mut block);
        Some(Hash::from_bytes(block.into()))
    }

    /// Whether a text may name a Secret: most do not, and need not be looked at.
    pub(super) fn may_be_in(text: &str) -> bool {
        text.contains("\"Secret/")
    }

    /// How one word about an object stands: a hash, or `<hash>@<revision>`.
    pub(super) fn standing(&self, id: &ObjectId, word: &str) -> Sealing {
        let word = word.split_once('@').map_or(word, |(hash, _)| hash);
        match sealed(word) {
            Some(_) if self.0.is_empty() => Sealing::Locked,
            Some((number, _)) if self.number() == Some(number) => Sealing::Fine,
            Some((number, block)) if self.open(number, block).is_some() => Sealing::Stale,
            None if is_secret(id) && Hash::parse(word).is_some() => Sealing::Stale,
            _ => Sealing::Fine,
        }
    }
}

/// The number of its key, and its block, of a sealed word.
fn sealed(word: &str) -> Option<(u32, Hash)> {
    let (number, block) = word.strip_prefix(MARK)?.split_once('.')?;
    Some((u32::from_str_radix(number, 16).ok()?, Hash::parse(block)?))
}

/// Whether the hash of an object's content must not be read by whoever may not read the object.
fn is_secret(id: &ObjectId) -> bool {
    id.is("", "Secret")
}

impl Member {
    /// Whether nobody here can read which content is asked for.
    pub fn is_unreadable(&self) -> bool {
        self.content == Some(Hash::UNREADABLE)
    }
}

impl Rejection {
    /// Where not all of it can be read, all of it is held as it is: what was good was good together.
    #[must_use]
    pub fn held_where_unreadable(mut self) -> Self {
        let unreadable = self.unit.members.iter().find(|(_, member)| member.is_unreadable());
        if let (Way::Back, Some((id, _))) = (self.way, unreadable) {
            let cause = &self.cause;
            self.cause =
                format!("{cause}; what is recorded of {id} is sealed by a key that is not known here").into();
            self.way = Way::Held;
        }
        self
    }
}

/// What is known of seals, and what waits for them.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Sealed {
    seals: Seals,
    /// Whether something has to be sealed, or opened.
    wanted: bool,
    /// Whether the budget object says something else than was last read, and cannot be read.
    locked: bool,
}

impl Engine {
    /// What the texts of records are written and read with.
    pub fn seals(&self) -> &Seals {
        &self.configs.sealed.seals
    }

    /// Something has to be sealed, or opened: a key is needed.
    pub fn want_seal(&mut self) {
        self.configs.sealed.wanted = true;
    }

    /// The budget object cannot be read without a key: until there is one, nothing new is begun.
    pub fn lock_book(&mut self) {
        (self.configs.sealed.wanted, self.configs.sealed.locked) = (true, true);
    }

    /// A source's parent cannot be read without a key: what it said before may not be so any more.
    pub fn lock_inventory(&mut self, source: SourceId) {
        self.configs.sealed.wanted = true;
        (self.sources[source].inventory, self.sources[source].to_judge) = (None, true);
        self.touch(&Topic::Inventory(source));
    }

    /// The budget object as it was last read or written.
    pub fn known_book(&self) -> Option<&super::Book> {
        self.rollouts.book.as_ref()
    }

    pub(super) fn book_opened(&mut self) {
        self.configs.sealed.locked = false;
    }

    pub(super) fn needs_seal(&self) -> bool {
        self.configs.sealed.wanted
    }

    /// The newest key is known.
    pub(super) fn note_seal(&mut self) {
        if let Known::Is(key) = &self.configs.key {
            self.configs.sealed.seals.add(key);
        }
    }

    /// Why nothing can be sealed or opened; none where that can be done.
    pub fn unsealed(&self) -> Option<Reason> {
        match &self.configs.key {
            _ if self.seals().number().is_some() => None,
            Known::Blind(why) => Some(Reason::Sealed(why.clone())),
            Known::Reading | Known::Is(_) => Some(Reason::Reading(key_id())),
        }
    }

    /// Whether the record of a unit can be written.
    pub(super) fn can_be_recorded(&self, unit: &super::Unit) -> bool {
        self.seals().number().is_some() || !unit.members.keys().any(is_secret)
    }

    /// What is released together with a Secret waits for the key that seals its record, and everything for the key
    /// that opens the budget object.
    pub(super) fn seal_gate(&mut self, source: SourceId, id: &ObjectId) -> Option<Reason> {
        let why = self.unsealed()?;
        let together = |units: &std::collections::BTreeMap<ObjectId, ObjectId>| {
            let first = units.get(id)?;
            let begin = ObjectId::new(&GroupKind::new("", "Secret"), None, "");
            let mut secrets = units.range(begin..).take_while(|(other, _)| is_secret(other));
            secrets.any(|(_, of)| of == first).then_some(())
        };
        if self.configs.sealed.locked || self.restarting.get(&source).and_then(together).is_some() {
            self.configs.sealed.wanted = true;
            return Some(why);
        }
        None
    }

    /// Why an inventory that cannot be opened has not been read.
    pub(super) fn locked_inventory(&self) -> Option<Arc<str>> {
        match self.unsealed()? {
            Reason::Sealed(why) if self.configs.sealed.wanted => Some(why),
            _ => None,
        }
    }
}
