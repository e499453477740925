//! The text of the release annotation, and the seal in it.
//!
//! **Invariant:** knows one annotation and one key, and nothing of the engine's state.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::engine::facts::config_hash::HashKey;
use crate::engine::{ContentRef, PruneTiming, RolloutOverlay, is_workload};
use crate::object::{ContentHash, ObjectId, Revision};

/// Length of a seal, in bytes: 128 bits cannot be guessed, and its digits fit into an annotation.
const RELEASE_SEAL_BYTES: usize = 16;

/// The longest revision that an annotation may name, in bytes: SHA-256 in hex.
const MAX_ANNOTATED_REVISION_BYTES: usize = 64;

/// The text that sets seals of releases apart from all else that is signed with the same key.
const RELEASE_SEAL_DOMAIN: &str = "rhumb.dev/release v1";

/// The overlay of a workload that a seal proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SealedOverlay {
    /// The seal says nothing of one: the object is no workload, or an older version made the seal.
    Unsaid,
    /// The workload has this overlay; none where nothing holds or narrows its rollout.
    Known(Option<RolloutOverlay>),
}

impl SealedOverlay {
    /// Returns the bytes that are signed for it; none where it says nothing.
    fn signed_text(self) -> Option<Vec<u8>> {
        match self {
            Self::Unsaid => None,
            Self::Known(None) => Some(b"overlay none".to_vec()),
            Self::Known(Some(overlay)) => Some(format!("overlay {overlay}").into_bytes()),
        }
    }
}

/// The creator of the incarnation of a Job. The end of one that somebody else created says nothing
/// of the content. It may have ended without a pod, by fields that the manifest does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobCreator {
    /// It is rhumb. All other objects, and seals of older versions, count as that.
    Rhumb,
    /// It is somebody else, and rhumb wrote to the Job later.
    Others,
}

impl JobCreator {
    /// Returns the bytes that are signed for it; none where that is nothing special.
    fn signed_text(self) -> Option<&'static [u8]> {
        match self {
            Self::Rhumb => None,
            Self::Others => Some(b"created by others"),
        }
    }
}

/// The facts that a seal proves beside the content that it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedFacts {
    /// The time of pruning that the manifest asks for.
    pub timing: PruneTiming,
    /// The place among all releases of the object.
    pub serial: u64,
    /// The overlay on a workload.
    pub overlay: SealedOverlay,
    /// The creator of a Job.
    pub creator: JobCreator,
    /// The hash of the render that made up values of it; none where rhumb did not create it with any.
    pub render: Option<ContentHash>,
}

impl SealedFacts {
    /// Returns the facts of an object that is no workload.
    pub(crate) fn of(timing: PruneTiming, serial: u64) -> Self {
        Self { timing, serial, overlay: SealedOverlay::Unsaid, creator: JobCreator::Rhumb, render: None }
    }
}

/// The release seal: the proof in a release annotation. Of no use for another object, source,
/// content or revision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReleaseSeal {
    code: [u8; RELEASE_SEAL_BYTES],
    /// The place among all releases of its object; 0 where an older version made it.
    pub(in crate::engine) serial: u64,
    /// The overlay on its workload, if there is one.
    overlay: Option<RolloutOverlay>,
    /// The hash of the render that made up values of its object, if one did.
    render: Option<ContentHash>,
}

/// The text before the hash of a render.
const RENDER_WORD: &str = "render=";

impl ReleaseSeal {
    /// Reads `<code> <serial> render=<hash> <overlay>`. Without made-up values or an overlay that part
    /// is missing; an older version wrote the code alone.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let code = ContentHash::parse(parts.next()?)?.bytes();
        let serial = match parts.next() {
            Some(serial) => serial.parse().ok().filter(|serial| *serial > 0)?,
            None => 0,
        };
        let rest = parts.next();
        let (render, overlay) = match rest.and_then(|rest| rest.strip_prefix(RENDER_WORD)) {
            Some(render) => match render.split_once(' ') {
                Some((render, overlay)) => (Some(render), Some(overlay)),
                None => (Some(render), None),
            },
            None => (None, rest),
        };
        let render = match render {
            Some(render) => Some(ContentHash::parse(render)?),
            None => None,
        };
        let overlay = match overlay {
            Some(overlay) => Some(overlay.parse().ok()?),
            None => None,
        };
        Some(Self { code, serial, overlay, render })
    }
}

impl Serialize for ReleaseSeal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReleaseSeal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a seal"))
    }
}

impl fmt::Display for ReleaseSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ContentHash::from_bytes(self.code).fmt(f)?;
        if self.serial == 0 {
            return Ok(());
        }
        write!(f, " {}", self.serial)?;
        if let Some(render) = self.render {
            write!(f, " {RENDER_WORD}{render}")?;
        }
        match self.overlay {
            Some(overlay) => write!(f, " {overlay}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ReleaseSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReleaseSeal({self})")
    }
}

/// The text of a release annotation: `<hash>@<revision>`, and the text of the seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        let bounded =
            name.len() <= MAX_ANNOTATED_REVISION_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic());
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

/// A key for release seals, which says nothing of the one that it is made from.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseKey {
    number: u32,
    key: HashKey,
}

impl ReleaseKey {
    /// Returns the number of the key of the cluster that it is made from.
    pub(in crate::engine) fn number(&self) -> u32 {
        self.number
    }

    /// Makes the key for seals out of the key of the cluster.
    pub(crate) fn of(key: &HashKey) -> Self {
        Self { number: key.number(), key: key.derive(RELEASE_SEAL_DOMAIN) }
    }

    /// Seals what a source has put into one object, and what else is a fact of it.
    pub(crate) fn seal(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        release: &ContentRef,
        facts: SealedFacts,
    ) -> ReleaseSeal {
        let SealedFacts { timing, serial, overlay, creator, render } = facts;
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
        let serial_bytes = [b"serial ".as_slice(), &serial.to_be_bytes()].concat();
        let serial_bytes = (serial > 0).then_some(serial_bytes.as_slice());
        let overlaid = overlay.signed_text();
        let rendered = render.map(|render| format!("{RENDER_WORD}{render}"));
        let words = keep.into_iter().chain(serial_bytes).chain(overlaid.as_deref());
        let words = words.chain(creator.signed_text()).chain(rendered.as_ref().map(String::as_bytes));
        for part in parts.into_iter().chain(words) {
            // With its length, so that no two lists of parts have the same text.
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part);
        }
        let [code @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.key.sign(&text);
        let shown = match overlay {
            SealedOverlay::Unsaid => None,
            SealedOverlay::Known(overlay) => overlay,
        };
        ReleaseSeal { code, serial, overlay: shown, render }
    }

    /// Returns whether a source with this inventory has put into the object what the annotation
    /// says.
    pub(crate) fn is_proven(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        annotation: &ReleaseAnnotation,
    ) -> bool {
        self.proven_facts(inventory_id, id, annotation).is_some()
    }

    /// Returns the facts that the seal proves; none where it proves nothing.
    pub(crate) fn proven_facts(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        annotation: &ReleaseAnnotation,
    ) -> Option<SealedFacts> {
        annotation.seal?;
        let question = || json!({ "id": id, "inventory": inventory_id, "annotation": annotation });
        self.key.answer(question, || self.find_facts(inventory_id, id, annotation))
    }

    /// Tries which facts the seal was made with.
    fn find_facts(
        &self,
        inventory_id: &str,
        id: &ObjectId,
        annotation: &ReleaseAnnotation,
    ) -> Option<SealedFacts> {
        let ReleaseSeal { code: found, serial, overlay, render } = annotation.seal?;
        let overlays = match (is_workload(id), overlay) {
            (true, Some(_)) => &[SealedOverlay::Known(overlay)][..],
            (true, None) => &[SealedOverlay::Known(None), SealedOverlay::Unsaid],
            (false, Some(_)) => &[],
            (false, None) => &[SealedOverlay::Unsaid],
        };
        let timings = [PruneTiming::AfterUnit, PruneTiming::OnConfirmation, PruneTiming::Never];
        let creators: &[JobCreator] = if id.is("batch", "Job") {
            &[JobCreator::Rhumb, JobCreator::Others]
        } else {
            &[JobCreator::Rhumb]
        };
        let facts = overlays.iter().flat_map(|overlay| {
            creators.iter().flat_map(move |creator| {
                timings.map(|timing| SealedFacts {
                    timing,
                    serial,
                    overlay: *overlay,
                    creator: *creator,
                    render,
                })
            })
        });
        let is_made_with = |facts: &SealedFacts| {
            let made = self.seal(inventory_id, id, &annotation.release, *facts);
            // Takes as long wherever they differ.
            made.code.iter().zip(found).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
        };
        facts.into_iter().find(is_made_with)
    }
}
