//! The answers of a key, for a trace: it shows them in place of the key.
//!
//! **Invariant:** an answer is a keyed hash that others may read, or the proof of such a one. Or it
//! says of a root that does not render if it may want an object, as its words are in no trace. A
//! replay asks no question whose answer its trace has not, as long as its effects are the same.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{ContentHash, canonical_json};

/// The answers of all keys of a trace, which those keys share.
#[derive(Clone, Debug)]
pub(in crate::engine) struct KeyAnswers(Arc<Mutex<AnswerStore>>);

/// A question, and what the holder of the key answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::engine) struct KeyAnswer {
    /// The question.
    pub question: Value,
    /// The answer.
    pub answer: Value,
}

#[derive(Debug)]
enum AnswerStore {
    /// New ones are kept for the trace, each once.
    Kept { known: HashSet<ContentHash>, new: Vec<KeyAnswer> },
    /// They are those of a trace.
    Recorded(HashMap<String, Value>),
}

impl KeyAnswers {
    /// Returns a store that keeps what is answered.
    pub(in crate::engine) fn new() -> Self {
        Self(Arc::new(Mutex::new(AnswerStore::Kept { known: HashSet::new(), new: Vec::new() })))
    }

    /// Returns a store of recorded answers, of which none has been read.
    pub(in crate::engine) fn of_trace() -> Self {
        Self(Arc::new(Mutex::new(AnswerStore::Recorded(HashMap::new()))))
    }

    /// Takes a recorded answer over.
    pub(in crate::engine) fn add(&self, recorded: KeyAnswer) {
        if let AnswerStore::Recorded(answers) = &mut *self.store() {
            answers.insert(canonical_json(&recorded.question), recorded.answer);
        }
    }

    /// Takes the answers that are new.
    pub(in crate::engine) fn take_new(&self) -> Vec<KeyAnswer> {
        match &mut *self.store() {
            AnswerStore::Kept { new, .. } => std::mem::take(new),
            AnswerStore::Recorded(_) => Vec::new(),
        }
    }

    /// Returns the answer to a question: as it is found, or as it was recorded.
    pub(in crate::engine) fn answer<A: Serialize + DeserializeOwned>(
        &self,
        question: impl FnOnce() -> Value,
        find: impl FnOnce() -> Option<A>,
    ) -> Option<A> {
        let mut store = self.store();
        match &mut *store {
            AnswerStore::Recorded(answers) => {
                let answer = answers.get(&canonical_json(&question()))?;
                serde_json::from_value(answer.clone()).ok()
            }
            AnswerStore::Kept { known, new } => {
                let found = find()?;
                let question = question();
                if known.insert(ContentHash::of(&question))
                    && let Ok(answer) = serde_json::to_value(&found)
                {
                    new.push(KeyAnswer { question, answer });
                }
                Some(found)
            }
        }
    }

    fn store(&self) -> MutexGuard<'_, AnswerStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
