//! What waits for one recipient.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::letter::Letter;

/// So many wait for one recipient that does not answer; of more, the oldest goes.
const WAITING: usize = 64;

/// Letters, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Bag {
    letters: Mutex<VecDeque<Letter>>,
    came: Notify,
}

impl Bag {
    /// Takes one, in place of all that it makes void. Says how many are lost.
    pub(super) fn put(&self, letter: Letter) -> usize {
        let mut letters = self.letters();
        letters.retain(|old| !letter.voids(old));
        let lost = usize::from(letters.len() >= WAITING);
        letters.drain(..lost);
        letters.push_back(letter);
        self.came.notify_one();
        lost
    }

    /// Takes the oldest out as soon as there is one. Only one may wait for it.
    pub(super) async fn next(&self) -> Letter {
        loop {
            let oldest = self.letters().pop_front();
            if let Some(letter) = oldest {
                return letter;
            }
            self.came.notified().await;
        }
    }

    /// Whether one of those that wait makes this one void.
    pub(super) fn voids(&self, letter: &Letter) -> bool {
        self.letters().iter().any(|newer| newer.voids(letter))
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.letters().len()
    }

    fn letters(&self) -> MutexGuard<'_, VecDeque<Letter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::UrlAt;

    fn letter(status: Option<&str>, number: usize) -> Letter {
        Letter {
            url: UrlAt::Url("https://h".to_owned()),
            path: String::new(),
            token: None,
            body: json!(number),
            status: status.map(str::to_owned),
        }
    }

    fn numbers(bag: &Bag) -> Vec<u64> {
        bag.letters().iter().map(|letter| letter.body.as_u64().unwrap()).collect()
    }

    /// What stands at the end is what counts.
    #[test]
    fn a_full_bag_lets_the_oldest_go() {
        let bag = Bag::default();
        let lost: usize = (0..WAITING + 2).map(|number| bag.put(letter(None, number))).sum();
        let left = numbers(&bag);
        assert_eq!((lost, left.len(), left[0], *left.last().unwrap()), (2, WAITING, 2, WAITING as u64 + 1));
    }

    #[test]
    fn a_newer_status_of_a_commit_takes_the_place_of_the_older() {
        let bag = Bag::default();
        for (number, status) in ["a", "b", "a"].into_iter().enumerate() {
            assert_eq!(bag.put(letter(Some(status), number)), 0);
        }
        assert_eq!(numbers(&bag), [1, 2]);
        assert!(bag.voids(&letter(Some("a"), 0)) && !bag.voids(&letter(Some("c"), 0)));
        // What people read is each a piece of news.
        assert_eq!((bag.put(letter(None, 3)), bag.put(letter(None, 4))), (0, 0));
        assert!(!bag.voids(&letter(None, 3)));
        assert_eq!(numbers(&bag), [1, 2, 3, 4]);
    }
}
