//! The release annotation, and the seal that proves that rhumb wrote it.
//!
//! Anybody who may write an object may write its annotations, under the name of our field manager
//! too. So the annotation alone is unproven. Its seal makes it a fact: an HMAC over the source, the
//! identity of the object, the hash of the content and the revision. The key is in rhumb's
//! namespace alone.
//!
//! A seal of the past is valid too: whoever may read an object may keep its annotation, and write
//! it back later. So a seal has a serial number, which rises with each content that is written. Of
//! one object only the newest release that this process has seen is proven.
//!
//! A manifest that asks to keep its object has a seal of its own. So that word outlives the
//! annotation on the object, which others may take off, and the revision, which may be lost.
//!
//! **Invariant:** [`LiveObject::release`] is a fact. Only a proven release deletes an object, is
//! gone back to, or names a revision to fetch. An unproven one keeps rhumb from writing that very
//! object, and does nothing else.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::engine::decide::decision::{Action, ApplyRequest, Decision};
use crate::engine::facts::entry::{AcceptedContent, DirectView, ObjectEntry, WaitTopic};
use crate::engine::restart::config_hash::HashKey;
use crate::engine::restart::config_restart::{ReadState, key_id};
use crate::engine::state::Engine;
use crate::engine::{ContentRef, KEY_SECRET, LiveObject, ObjectOwner, PruneTiming, Reason, SourceId};
use crate::object::{ContentHash, ObjectId, Revision};

/// Length of a seal, in bytes: 128 bits cannot be guessed, and its digits fit into an annotation.
const RELEASE_SEAL_BYTES: usize = 16;

/// The longest revision that an annotation may name, in bytes: SHA-256 in hex.
const MAX_REVISION_BYTES: usize = 64;

/// The text that sets seals of releases apart from all else that is signed with the same key.
const RELEASE_SEAL_DOMAIN: &str = "rhumb.dev/release v1";

/// The proof in a release annotation. Of no use for another object, source, content or revision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReleaseSeal {
    code: [u8; RELEASE_SEAL_BYTES],
    /// The place among all releases of its object; 0 where an older version made it.
    serial: u64,
}

impl ReleaseSeal {
    /// Reads `<code> <serial>`; an older version wrote the code alone.
    fn parse(text: &str) -> Option<Self> {
        let (code, serial) = match text.split_once(' ') {
            Some((code, serial)) => (code, serial.parse().ok().filter(|serial| *serial > 0)?),
            None => (text, 0),
        };
        Some(Self { code: ContentHash::parse(code)?.bytes(), serial })
    }
}

impl fmt::Display for ReleaseSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ContentHash::from_bytes(self.code).fmt(f)?;
        match self.serial {
            0 => Ok(()),
            serial => write!(f, " {serial}"),
        }
    }
}

impl fmt::Debug for ReleaseSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReleaseSeal({self})")
    }
}

/// The text of a release annotation: `<hash>@<revision> <code of the seal> <serial>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseAnnotation {
    /// The content that it names, and the revision that brought that.
    pub release: ContentRef,
    /// Its proof; none where an older version wrote it, or one that had no key.
    pub seal: Option<ReleaseSeal>,
}

impl ReleaseAnnotation {
    /// Reads the text of an annotation.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text, Revision::new)
    }

    /// Reads the text of an annotation, the revision by a function that may keep one copy of each.
    ///
    /// The text is bounded before anything of it is kept: others can write it.
    pub fn read(text: &str, revision: impl FnOnce(&str) -> Revision) -> Option<Self> {
        let (release, seal) = text.split_once(' ').map_or((text, None), |(text, seal)| (text, Some(seal)));
        let (hash, name) = release.split_once('@')?;
        let bounded = name.len() <= MAX_REVISION_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic());
        let hash = ContentHash::parse(hash).filter(|hash| bounded && *hash != ContentHash::UNREADABLE)?;
        let seal = seal.and_then(ReleaseSeal::parse);
        Some(Self { release: ContentRef { hash, revision: revision(name) }, seal })
    }
}

impl fmt::Display for ReleaseAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.seal {
            Some(seal) => write!(f, "{} {seal}", self.release),
            None => self.release.fmt(f),
        }
    }
}

/// A key for seals of releases, which says nothing of the one that it is made from.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseKey {
    number: u32,
    key: HashKey,
}

impl ReleaseKey {
    /// Makes the key for seals out of the key of the cluster.
    pub(crate) fn of(key: &HashKey) -> Self {
        Self { number: key.number(), key: key.derive(RELEASE_SEAL_DOMAIN) }
    }

    /// Seals what a source has put into one object, and the time of pruning that its manifest asks
    /// for. The serial number is its place among the releases of that object.
    pub(crate) fn seal(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        release: &ContentRef,
        timing: PruneTiming,
        serial: u64,
    ) -> ReleaseSeal {
        let hash = release.hash.bytes();
        let keep: Option<&[u8]> = match timing {
            PruneTiming::AfterUnit | PruneTiming::BeforeUnit => None,
            PruneTiming::OnConfirmation => Some(b"prune on confirmation"),
            PruneTiming::Never => Some(b"prune never"),
        };
        let parts: [&[u8]; 7] = [
            inventory_id.as_bytes(),
            id.group().as_bytes(),
            id.kind().as_bytes(),
            id.namespace().unwrap_or_default().as_bytes(),
            id.name().as_bytes(),
            &hash,
            release.revision.as_str().as_bytes(),
        ];
        let mut text = Vec::with_capacity(256);
        let place = [b"serial ".as_slice(), &serial.to_be_bytes()].concat();
        let place = (serial > 0).then_some(place.as_slice());
        for part in parts.into_iter().chain(keep).chain(place) {
            // With its length, so that no two lists of parts have the same text.
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part);
        }
        let [code @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.key.sign(&text);
        ReleaseSeal { code, serial }
    }

    /// Returns whether a source with this inventory has put into the object what the annotation
    /// says.
    pub(crate) fn is_proven(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        annotation: &ReleaseAnnotation,
    ) -> bool {
        self.proven_timing(inventory_id, id, annotation).is_some()
    }

    /// Returns the time of pruning that the manifest asked for, as the seal proves it; none where
    /// it proves nothing.
    pub(crate) fn proven_timing(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        annotation: &ReleaseAnnotation,
    ) -> Option<PruneTiming> {
        let ReleaseSeal { code: found, serial } = annotation.seal?;
        let is_made_with = |timing: &PruneTiming| {
            let made = self.seal(inventory_id, id, &annotation.release, *timing, serial);
            // Takes as long wherever they differ.
            made.code.iter().zip(found).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
        };
        [PruneTiming::AfterUnit, PruneTiming::OnConfirmation, PruneTiming::Never]
            .into_iter()
            .find(is_made_with)
    }
}

/// The newest release that was seen on an object, by its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewestRelease {
    serial: u64,
    hash: ContentHash,
    /// The source that it was sealed for, where that is one of this process.
    source: Option<SourceId>,
}

/// The keys that this process has known, and the objects whose annotation none of them proves.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct ReleaseProofs {
    /// The newest one seals, each proves.
    keys: Vec<ReleaseKey>,
    /// The reason for a missing key, where that is known.
    blind: Option<Arc<str>>,
    /// The objects that the informers show with an unproven release.
    unproven: BTreeSet<ObjectId>,
}

impl LiveObject {
    /// Returns the release of its annotation, proven or not.
    ///
    /// It is good enough to leave the object as it is, and for nothing that reaches beyond it.
    pub fn shown_release(&self) -> Option<&ContentRef> {
        self.release.as_ref().or_else(|| self.unproven_release.as_ref().map(|annotation| &annotation.release))
    }

    /// Returns whether nothing proves that we put there what is there.
    pub fn is_unproven(&self) -> bool {
        self.release.is_none()
    }
}

impl ApplyRequest {
    /// Returns the annotation for the written object.
    pub(crate) fn release_annotation(&self) -> ReleaseAnnotation {
        let release = ContentRef { hash: self.variant.hash(&self.desired), revision: self.revision.clone() };
        ReleaseAnnotation { release, seal: self.seal }
    }
}

impl ObjectEntry {
    /// Returns whether an annotation is of an earlier release than one that was seen already.
    /// Somebody has written it back.
    pub(in crate::engine) fn is_outdated(&self, annotation: &ReleaseAnnotation) -> bool {
        let serial = annotation.seal.map_or(0, |seal| seal.serial);
        self.newest_release.is_some_and(|newest| serial < newest.serial)
    }
}

impl Engine {
    /// Records a proven release of an object. From then on no earlier one is proven.
    pub(in crate::engine) fn note_release(&mut self, id: &ObjectId, live: &LiveObject) {
        let Some(release) = &live.release else { return };
        let newest =
            NewestRelease { serial: live.release_serial, hash: release.hash, source: self.source_of(live) };
        if let Some(entry) = self.entries.get_mut(id)
            && entry.newest_release.is_none_or(|known| known.serial <= newest.serial)
        {
            entry.newest_release = Some(newest);
        }
    }

    /// Returns the serial number of the newest release that was seen on an object; 0 where none was.
    pub(in crate::engine) fn newest_serial(&self, id: &ObjectId) -> u64 {
        self.entry(id).and_then(|entry| entry.newest_release).map_or(0, |newest| newest.serial)
    }

    /// Returns the serial number for the next release of an object. The same release keeps its own,
    /// so that to write it again changes nothing.
    ///
    /// It is the time in seconds at least. So it is above all earlier ones, also of an earlier
    /// object of this name, and of releases that this process has not seen.
    fn next_serial(&self, id: &ObjectId, apply: &ApplyRequest, hash: ContentHash) -> u64 {
        let wall = self.wall_clock().map_or(1, |wall| wall.as_second().max(1).cast_unsigned());
        match self.entry(id).and_then(|entry| entry.newest_release) {
            Some(newest) if newest.hash == hash && newest.source == Some(apply.source) => {
                newest.serial.max(1)
            }
            Some(newest) => wall.max(newest.serial + 1),
            None => wall,
        }
    }

    /// Takes over the key for the seals of releases, or that there is none.
    pub(crate) fn set_release_key(&mut self, key: ReadState<HashKey>) {
        let proofs = &mut self.proofs;
        match key {
            ReadState::Value(key) if proofs.keys.last().is_some_and(|known| known.number == key.number()) => {
                return;
            }
            ReadState::Value(key) => {
                proofs.keys.retain(|known| known.number != key.number());
                proofs.keys.push(ReleaseKey::of(&key));
                proofs.blind = None;
                self.prove_again();
            }
            // A key that was known is good for all that was written with it.
            ReadState::Unreadable(why) if proofs.keys.is_empty() && proofs.blind.as_ref() != Some(&why) => {
                proofs.blind = Some(why);
            }
            ReadState::Unreadable(_) | ReadState::Reading => return,
        }
        self.wake_topic(&WaitTopic::Object(key_id()));
        self.mark_prunes_stale();
        self.orders.stale = true;
    }

    /// Returns whether it is not known yet if there is a key.
    pub(crate) fn is_reading_release_key(&self) -> bool {
        self.proofs.keys.is_empty() && self.proofs.blind.is_none()
    }

    /// Returns why no seal can be checked or made; none where that can be done.
    pub(crate) fn release_key_blocker(&self) -> Option<Reason> {
        match &self.proofs.blind {
            _ if !self.proofs.keys.is_empty() => None,
            Some(why) => Some(Reason::KeyUnavailable(why.clone())),
            None => Some(Reason::Reading(key_id())),
        }
    }

    /// Returns the source in whose inventory an object provably is. Only such an object counts, and
    /// can be deleted.
    pub(in crate::engine) fn inventory_source(&self, live: &LiveObject) -> Option<SourceId> {
        self.source_of(live).filter(|_| !live.is_unproven())
    }

    /// Moves an unproven release that its seal proves to the proven one.
    pub(in crate::engine) fn prove(&self, id: &ObjectId, live: &mut LiveObject) {
        let Some(annotation) = &live.unproven_release else { return };
        if self.entry(id).is_some_and(|entry| entry.is_outdated(annotation)) {
            return;
        }
        let serial = annotation.seal.map_or(0, |seal| seal.serial);
        let timing_of = |inventory_id: &str| {
            self.proofs.keys.iter().find_map(|key| key.proven_timing(inventory_id, id, annotation))
        };
        let wanting = || self.entry(id).into_iter().flat_map(|entry| &entry.targets);
        let (sealed, is_relabelled) = match &live.owner {
            ObjectOwner::Ours(set) => {
                let own = timing_of(set);
                // A source that takes an object over seals it anew: until then the label is
                // unproven. The release of an unwanted object stays unproven, so that its source
                // reports that it is kept.
                let other = || wanting().find_map(|(source, _)| timing_of(&self.inventory_ids[*source]));
                let sealed = own.or_else(other);
                (sealed, own.is_none() && sealed.is_some())
            }
            // Its label is gone or altered, which is drift where we wrote it.
            _ => (self.inventory_ids.iter().find_map(|set| timing_of(set)), false),
        };
        if let Some(timing) = sealed {
            live.release = live.unproven_release.take().map(|annotation| annotation.release);
            live.release_serial = serial;
            live.prune_timing = live.prune_timing.strictest(timing);
        }
        if let (true, ObjectOwner::Ours(set)) = (is_relabelled, &live.owner) {
            live.owner = ObjectOwner::Labelled(set.clone());
        }
    }

    /// Proves the record of an object that a source has come to want: it may have been
    /// unproven under another label.
    pub(in crate::engine) fn prove_wanted(&mut self, id: &ObjectId) {
        if self.proofs.unproven.contains(id) {
            self.prove_shown(id);
        }
    }

    fn prove_shown(&mut self, id: &ObjectId) {
        let Some(mut live) = self.informer_object(id).cloned() else { return };
        self.prove(id, &mut live);
        if !live.is_unproven() {
            self.show(id, live);
        }
    }

    /// Records whether an object is shown with an unproven release.
    pub(in crate::engine) fn track_unproven(&mut self, id: &ObjectId) {
        if self.informer_object(id).is_some_and(|live| live.unproven_release.is_some()) {
            self.proofs.unproven.insert(id.clone());
        } else {
            self.proofs.unproven.remove(id);
        }
    }

    /// Checks again all seals that were not proven, as there is another key.
    fn prove_again(&mut self) {
        for id in self.proofs.unproven.clone() {
            self.prove_shown(&id);
        }
        let unproven = |entry: &ObjectEntry| matches!(&entry.direct_view, Some(DirectView::Found(live)) if live.unproven_release.is_some());
        let found: Vec<ObjectId> =
            self.entries().filter(|(_, entry)| unproven(entry)).map(|(id, _)| id.clone()).collect();
        for id in found {
            let view = self.entries.get_mut(&id).and_then(|entry| entry.direct_view.take());
            let Some(DirectView::Found(mut live)) = view else { continue };
            self.prove(&id, &mut live);
            self.note_release(&id, &live);
            if let Some(entry) = self.entries.get_mut(&id) {
                if !live.is_unproven() {
                    entry.restore_accepted(&live, None);
                }
                entry.direct_view = Some(DirectView::Found(live));
            }
            self.track(&id);
            self.note_object_change(&id);
        }
    }

    /// Returns the newest revision of the source that wants an object.
    pub(in crate::engine) fn newest_revision_of(&self, id: &ObjectId) -> Option<Revision> {
        let (source, _) = self.entry(id)?.target_content()?;
        self.sources[source].head.clone()
    }

    /// Returns the revisions in force of objects with an unproven release, which this process found
    /// to be as the followed reference asks.
    pub(in crate::engine) fn unproven_revisions(&self) -> impl Iterator<Item = Revision> {
        let found = |id: &ObjectId| Some(self.known_content_ref(id, self.informer_object(id)?)?.revision);
        self.proofs.unproven.iter().filter_map(found)
    }

    /// Returns the release that a rollback can go back to. That is a proven one, else one that this
    /// process has found to be what the followed reference asked for.
    pub(in crate::engine) fn known_content_ref(
        &self,
        id: &ObjectId,
        live: &LiveObject,
    ) -> Option<ContentRef> {
        if live.release.is_some() {
            return live.release.clone();
        }
        let shown = live.shown_release().filter(|_| live.has_release_annotation())?;
        let entry = self.entry(id)?;
        entry.accepted.content().filter(|accepted| accepted.has_hash(shown.hash))?;
        Some(ContentRef { hash: shown.hash, revision: entry.revision.clone()? })
    }

    /// Seals what a write is to say.
    pub(in crate::engine) fn seal_decision(&self, id: &ObjectId, decision: Decision) -> Decision {
        let (Action::Apply(apply), Some(key)) = (&decision.action, self.proofs.keys.last()) else {
            return decision;
        };
        let release = apply.release_annotation().release;
        let (inventory_id, timing) = (&self.inventory_ids[apply.source], apply.desired.traits.prune_timing);
        let seal = key.seal(inventory_id, id, &release, timing, self.next_serial(id, apply, release.hash));
        Decision { action: Action::Apply(ApplyRequest { seal: Some(seal), ..apply.clone() }), ..decision }
    }
}

/// The reason for which an unproven object is never deleted.
pub(in crate::engine) const UNPROVEN_REASON: &str = "no longer wanted; \
     kept, as its annotation rhumb.dev/release has no valid seal, so rhumb cannot tell that it made it: \
     delete it by kubectl if nobody needs it";

/// Returns why nothing is pruned where no seal can be checked.
pub(in crate::engine) fn unchecked_seal_reason(why: &str) -> Arc<str> {
    format!(
        "nothing is pruned, as seals cannot be checked without the Secret {KEY_SECRET} in rhumb's namespace: {why}"
    )
    .into()
}

impl ObjectEntry {
    /// Takes over the accepted content from the release annotation. A proven one is a fact of the
    /// cluster and wins over the memory, unless somebody else wrote it.
    ///
    /// An unproven release is taken up only where it is what the newest revision asks for: nothing
    /// is written for that.
    pub(in crate::engine) fn restore_accepted(&mut self, live: &LiveObject, newest: Option<&Revision>) {
        let Some(shown) = live.shown_release().filter(|_| live.has_release_annotation()) else { return };
        let wanted = self
            .target_content()
            .map(|(_, desired)| desired)
            .filter(|desired| desired.has_hash(shown.hash))
            .cloned();
        let Some(release) = &live.release else {
            let Some(desired) = wanted else { return };
            self.incarnation = Some(live.uid.clone());
            self.ended = live.finished.then(|| Box::new(shown.hash));
            if !self.accepted.content().is_some_and(|accepted| accepted.has_hash(shown.hash)) {
                (self.accepted, self.revision) = (AcceptedContent::Known(desired), newest.cloned());
            } else if self.revision.is_none() {
                self.revision = newest.cloned();
            }
            return;
        };
        self.revision = Some(release.revision.clone());
        self.incarnation = Some(live.uid.clone());
        self.ended = live.finished.then(|| Box::new(release.hash));
        match (&self.accepted, wanted) {
            (AcceptedContent::Known(accepted), _) if accepted.has_hash(release.hash) => {}
            (_, Some(desired)) => self.accepted = AcceptedContent::Known(desired),
            (AcceptedContent::Unreadable(lost), _) if lost == release => {}
            _ => self.accepted = AcceptedContent::Unread(release.clone()),
        }
    }
}
