//! Hashes of Secrets in records that others may read.
//!
//! The rollout ledger and the inventories are `ConfigMap`s, which many may read who may not read
//! Secrets. A hash is as good as a weak password, as that is found by trying. So in these texts the
//! hash of a Secret's content is sealed. The seal is one AES-128 block of it, under a key derived
//! from the key for hashes of data. Equal hashes look equal, and nobody without the key can try a
//! content.
//!
//! **Invariant:** only the texts know seals. Everywhere else a hash is a hash, or an unreadable one
//! ([`ContentHash::UNREADABLE`]). The content of such a one is never applied, and never equals
//! another.

use std::fmt;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use serde::{Deserialize, Serialize};

use crate::engine::ContentRef;
use crate::engine::facts::config_hash::HashKey;
use crate::engine::facts::entry::{SourceId, WaitTopic};
use crate::engine::facts::read_state::ReadState;
use crate::engine::state::Engine;
use crate::object::{ContentHash, ObjectId, Revision};

/// The first character of a sealed word, and all of a word that could not be read: `~<number of the
/// key>.<block>`.
const SEAL_MARK: char = '~';

/// The hash seals of all keys that this process has known. The newest one is set, each is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashCiphers(Vec<HashCipher>);

#[derive(Clone)]
struct HashCipher {
    number: u32,
    cipher: Aes128,
}

impl fmt::Debug for HashCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

/// The state of the Secret hashes in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum HashCipherStatus {
    /// There are none, or they are sealed as they would be now, or nobody here can read them.
    #[default]
    Valid,
    /// Some are plain, or under the seal of an older key that is known: they should be sealed anew.
    Stale,
    /// Some are sealed, and no key is known: what the text says is not known yet.
    Locked,
}

impl HashCiphers {
    /// Takes over the newest key.
    pub(crate) fn add(&mut self, key: &HashKey) {
        self.0.retain(|seal| seal.number != key.number());
        self.0.push(HashCipher { number: key.number(), cipher: Aes128::new(&Array::from(key.cipher_key())) });
    }

    /// Returns the number of the newest key; none where no key is known.
    pub(crate) fn number(&self) -> Option<u32> {
        self.0.last().map(|seal| seal.number)
    }

    /// Returns the word for the hash of an object's content; none where it has to be sealed, and no
    /// key is known.
    pub(in crate::engine) fn hash_word(&self, id: &ObjectId, hash: ContentHash) -> Option<String> {
        match hash {
            ContentHash::UNREADABLE => Some(SEAL_MARK.to_string()),
            hash if !is_secret(id) => Some(hash.to_string()),
            hash => {
                let seal = self.0.last()?;
                let mut block = Array::from(hash.bytes());
                seal.cipher.encrypt_block(&mut block);
                Some(format!("{SEAL_MARK}{:08x}.{}", seal.number, ContentHash::from_bytes(block.into())))
            }
        }
    }

    /// Does the same as [`HashCiphers::hash_word`], of `<hash>@<revision>`.
    pub(in crate::engine) fn content_ref_word(&self, id: &ObjectId, release: &ContentRef) -> Option<String> {
        Some(format!("{}@{}", self.hash_word(id, release.hash)?, release.revision))
    }

    /// Reads what [`HashCiphers::hash_word`] writes, and plain words of any object: an older version
    /// wrote them.
    pub(in crate::engine) fn read(&self, word: &str) -> ContentHash {
        let read = match parse_sealed(word) {
            Some((number, block)) => self.open(number, block),
            None => ContentHash::parse(word),
        };
        read.unwrap_or(ContentHash::UNREADABLE)
    }

    /// Reads what [`HashCiphers::content_ref_word`] writes; none where the hash cannot be read.
    pub(in crate::engine) fn read_content_ref(&self, word: &str) -> Option<ContentRef> {
        let (hash, revision) = word.split_once('@')?;
        let hash = Some(self.read(hash)).filter(|hash| *hash != ContentHash::UNREADABLE)?;
        Some(ContentRef { hash, revision: Revision::new(revision) })
    }

    fn open(&self, number: u32, block: ContentHash) -> Option<ContentHash> {
        let seal = self.0.iter().find(|seal| seal.number == number)?;
        let mut block = Array::from(block.bytes());
        seal.cipher.decrypt_block(&mut block);
        Some(ContentHash::from_bytes(block.into()))
    }

    /// Returns whether a text may name a Secret: most do not, and need not be read.
    pub(in crate::engine) fn can_be_in(text: &str) -> bool {
        text.contains("\"Secret/")
    }

    /// Returns how one word about an object is written: a hash, or `<hash>@<revision>`.
    pub(in crate::engine) fn seal_status(&self, id: &ObjectId, word: &str) -> HashCipherStatus {
        let word = word.split_once('@').map_or(word, |(hash, _)| hash);
        match parse_sealed(word) {
            Some(_) if self.0.is_empty() => HashCipherStatus::Locked,
            Some((number, _)) if self.number() == Some(number) => HashCipherStatus::Valid,
            Some((number, block)) if self.open(number, block).is_some() => HashCipherStatus::Stale,
            None if is_secret(id) && ContentHash::parse(word).is_some() => HashCipherStatus::Stale,
            _ => HashCipherStatus::Valid,
        }
    }
}

/// Returns the number of its key, and its block, of a sealed word.
fn parse_sealed(word: &str) -> Option<(u32, ContentHash)> {
    let (number, block) = word.strip_prefix(SEAL_MARK)?.split_once('.')?;
    Some((u32::from_str_radix(number, 16).ok()?, ContentHash::parse(block)?))
}

/// Returns whether the hash of an object's content must not be read by whoever may not read the
/// object.
pub(in crate::engine) fn is_secret(id: &ObjectId) -> bool {
    id.is("", "Secret")
}

/// The keys of hash seals, and the needs for one.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct SealState {
    pub(in crate::engine) seals: HashCiphers,
    /// Indicates whether something has to be sealed, or opened.
    pub(in crate::engine) wanted: bool,
    /// Indicates whether the rollout ledger says something else than was last read, and cannot be
    /// read.
    pub(in crate::engine) locked: bool,
}

impl Engine {
    /// Returns the keys that the texts of records are written and read with.
    pub(in crate::engine) fn seals(&self) -> &HashCiphers {
        &self.configs.sealed.seals
    }

    /// Asks for a key, as something has to be sealed or opened.
    pub(in crate::engine) fn request_seal_key(&mut self) {
        self.configs.sealed.wanted = true;
    }

    /// Locks the rollout ledger, which cannot be read without a key: until there is one, nothing
    /// new is begun.
    pub(in crate::engine) fn lock_ledger(&mut self) {
        (self.configs.sealed.wanted, self.configs.sealed.locked) = (true, true);
    }

    /// Locks the inventory of a source, which cannot be read without a key: its earlier content may
    /// not hold any more.
    pub(in crate::engine) fn lock_inventory(&mut self, source: SourceId) {
        self.configs.sealed.wanted = true;
        self.sources[source].inventory = None;
        self.sources[source].prunes.mark_stale();
        self.wake_topic(&WaitTopic::Inventory(source));
    }

    pub(in crate::engine) fn unlock_ledger(&mut self) {
        self.configs.sealed.locked = false;
    }

    pub(in crate::engine) fn is_seal_needed(&self) -> bool {
        self.configs.sealed.wanted
    }

    /// Takes the newest key.
    pub(in crate::engine) fn note_seal(&mut self) {
        if let ReadState::Value(key) = &self.configs.key {
            self.configs.sealed.seals.add(key);
        }
    }
}
