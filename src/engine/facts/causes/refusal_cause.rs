//! The causes of refusals, with the values that each is about. `render` has the sentence of each.

use std::sync::Arc;

use crate::engine::facts::causes::lossy_kind::LossyKind;
use crate::engine::facts::causes::reason_code::CauseCode;

/// The cause for which a content is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefusalCause {
    /// The API server says no, in these words.
    Message(Arc<str>),
    /// A field that never changes would change, in the words of the API server. An annotation would
    /// have the object deleted and created again.
    Recreatable(Arc<str>),
    /// The object could be deleted and created again, and this forbids it.
    Kept(Box<RefusalCause>, RecreationBlocker),
    /// Our entry in `managedFields` owns the release annotation, and the object has none.
    AnnotationStripped,
    /// Our entry owns the label of the inventory, and the object has none, or another. No watch
    /// shows it, and nothing would ever prune it.
    LabelStripped,
}

impl RefusalCause {
    /// Returns its code; none for the words of others.
    pub(crate) const fn code(&self) -> Option<CauseCode> {
        match self {
            Self::Message(_) => None,
            Self::Recreatable(_) => Some(CauseCode::FieldImmutable),
            Self::Kept(..) => Some(CauseCode::RecreationForbidden),
            Self::AnnotationStripped => Some(CauseCode::AnnotationStripped),
            Self::LabelStripped => Some(CauseCode::LabelStripped),
        }
    }

    /// Returns the words of the API server; none where it says nothing.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Message(message) | Self::Recreatable(message) => Some(message),
            Self::Kept(refused, _) => refused.message(),
            Self::AnnotationStripped | Self::LabelStripped => None,
        }
    }
}

/// The cause for which an object is not deleted and created again, though its manifest asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecreationBlocker {
    /// Its release annotation has no valid seal.
    Unproven,
    /// An annotation keeps it from being deleted.
    Annotated,
    /// An annotation asks for a confirmation of its deletion.
    ConfirmationRequested,
    /// Its claims would be deleted with it.
    ClaimsDeleted,
    /// Data would be lost with an object of this kind.
    DataLoss(LossyKind),
}
