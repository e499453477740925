//! The sentences of why contents are refused, and why their objects are not created anew.

use std::fmt;

use crate::engine::{RecreationBlocker, RefusalCause};

impl fmt::Display for RefusalCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => f.write_str(message),
            Self::Recreatable(message) => write!(
                f,
                "{message}; with the annotation rhumb.dev/recreate: \"true\" it is deleted and created again"
            ),
            Self::Kept(refused, blocker) => write!(
                f,
                "{refused}; it is not deleted and created again, as {blocker}: delete it by kubectl, and it is \
                 created again"
            ),
            Self::AnnotationStripped => f.write_str(
                "the server does not keep the annotation rhumb.dev/release; a webhook or an admission policy takes \
                 it away",
            ),
            Self::LabelStripped => f.write_str(
                "the server does not keep the label applyset.kubernetes.io/part-of; a webhook or an admission policy \
                 changes it, so what becomes of the object is not seen, and it is never pruned; let the label pass, \
                 then change the object in git or start rhumb again",
            ),
        }
    }
}

/// As a clause: "an annotation keeps it from being deleted".
impl fmt::Display for RecreationBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unproven => f.write_str("its annotation rhumb.dev/release has no valid seal"),
            Self::Annotated => f.write_str("an annotation keeps it from being deleted"),
            Self::ConfirmationRequested => {
                f.write_str("an annotation asks for a confirmation of its deletion")
            }
            Self::ClaimsDeleted => {
                f.write_str("its persistentVolumeClaimRetentionPolicy deletes its claims with it")
            }
            Self::DataLoss(kind) => write!(f, "data are lost with {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::LossyKind;

    #[test]
    fn whoever_keeps_an_object_from_being_recreated_is_told_how_to_do_it() {
        let check = |blocker: RecreationBlocker, expected: &str| {
            let refused = Box::new(RefusalCause::Message("no".into()));
            let expected = format!(
                "no; it is not deleted and created again, as {expected}: delete it by kubectl, and it is created again"
            );
            assert_eq!(RefusalCause::Kept(refused, blocker).to_string(), expected);
        };
        check(RecreationBlocker::Unproven, "its annotation rhumb.dev/release has no valid seal");
        check(RecreationBlocker::Annotated, "an annotation keeps it from being deleted");
        check(
            RecreationBlocker::ConfirmationRequested,
            "an annotation asks for a confirmation of its deletion",
        );
        check(
            RecreationBlocker::ClaimsDeleted,
            "its persistentVolumeClaimRetentionPolicy deletes its claims with it",
        );
        check(RecreationBlocker::DataLoss(LossyKind::Namespace), "data are lost with a Namespace");
    }
}
