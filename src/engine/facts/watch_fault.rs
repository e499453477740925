//! The faults for which kinds cannot be watched. `render` has the sentence of each.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::engine::facts::causes::reason_code::CauseCode;

/// The fault for which a kind cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    /// Its list or its watch fails, as these words say.
    Message(Arc<str>),
    /// Discovery does not name it now. That does not prove that it is gone.
    Unlisted,
    /// The server of its API group does not answer.
    GroupUnavailable,
    /// The source does not watch the namespace of the object.
    OutsideNamespaces,
}

impl WatchFault {
    /// Returns its code; none for words.
    pub(crate) const fn code(&self) -> Option<CauseCode> {
        match self {
            Self::Message(_) => None,
            Self::Unlisted => Some(CauseCode::KindUndiscovered),
            Self::GroupUnavailable => Some(CauseCode::GroupUnavailable),
            Self::OutsideNamespaces => Some(CauseCode::NamespaceNotWatched),
        }
    }
}

/// A fault in words.
impl From<&str> for WatchFault {
    fn from(message: &str) -> Self {
        Self::Message(message.into())
    }
}

/// In a trace it is its sentence.
impl Serialize for WatchFault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Any sentence that is not known is one in words.
impl<'de> Deserialize<'de> for WatchFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Arc::<str>::deserialize(deserializer)?;
        let mut known = [Self::Unlisted, Self::GroupUnavailable, Self::OutsideNamespaces].into_iter();
        Ok(known.find(|fault| fault.to_string() == *text).unwrap_or(Self::Message(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_each_fault_as_its_sentence() {
        let check = |fault: WatchFault, sentence: &str| {
            let text = serde_json::to_value(&fault).unwrap();
            assert_eq!(text, sentence);
            assert_eq!(serde_json::from_value::<WatchFault>(text).unwrap(), fault);
        };
        check("it is denied".into(), "it is denied");
        check(WatchFault::Unlisted, "the server does not list this kind now");
        check(WatchFault::GroupUnavailable, "the server of its API group does not answer");
        check(
            WatchFault::OutsideNamespaces,
            "its source does not watch its namespace: `allow.namespaces` does not name it",
        );
    }
}
