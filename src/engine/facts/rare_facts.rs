//! The facts that few objects have, in a box that the others do without.

use std::ops::Deref;
use std::time::Instant;

use crate::engine::Uid;
use crate::engine::facts::entry::{ApiRefusal, TemporaryFailure};
use crate::object::ContentHash;

/// The facts about one object of which few have any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RareFactValues {
    /// The incarnation that this process has created last, for a Job.
    pub created_incarnation: Option<Uid>,
    /// The incarnation that has shown the newest release first, for a Job.
    pub release_incarnation: Option<Uid>,
    /// The content with which it was seen ended, for a Job: it may go away by itself in the next
    /// moment. Others can make a Job that only looks so, which does not count.
    pub ended: Option<ContentHash>,
    /// The last refusal of a repair of the accepted content, while another one is wanted. Kept
    /// apart: each of the two would make the other one forgotten, and be tried again at once.
    pub repair_refusal: Option<Box<ApiRefusal>>,
    /// The times of our repairs within the last minute: five are a fight.
    pub repairs: Vec<Instant>,
    /// The last temporary failure.
    pub last_failure: Option<TemporaryFailure>,
}

/// The values of an object that has none.
static NO_VALUES: RareFactValues = RareFactValues {
    created_incarnation: None,
    release_incarnation: None,
    ended: None,
    repair_refusal: None,
    repairs: Vec::new(),
    last_failure: None,
};

/// The rare facts about one object. They are read as they are, and changed by a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct RareFacts(Option<Box<RareFactValues>>);

impl Deref for RareFacts {
    type Target = RareFactValues;

    fn deref(&self) -> &RareFactValues {
        self.0.as_deref().unwrap_or(&NO_VALUES)
    }
}

impl RareFacts {
    /// Changes them. The box is there afterwards where one of them is.
    pub(in crate::engine) fn change(&mut self, change: impl FnOnce(&mut RareFactValues)) {
        let mut values = self.0.take().unwrap_or_default();
        change(&mut values);
        self.0 = (*values != NO_VALUES).then_some(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_there_only_while_one_of_them_is() {
        let mut facts = RareFacts::default();
        assert_eq!((facts.ended, facts.0.is_some()), (None, false));
        facts.change(|values| values.ended = Some(ContentHash::UNREADABLE));
        assert_eq!((facts.ended, facts.0.is_some()), (Some(ContentHash::UNREADABLE), true));
        let uid = || Some(Uid("5a1c".into()));
        facts.change(|values| values.created_incarnation = uid());
        facts.change(|values| values.ended = None);
        assert_eq!((facts.ended, &facts.created_incarnation, facts.0.is_some()), (None, &uid(), true));
        facts.change(|values| values.created_incarnation = None);
        assert_eq!((&facts.created_incarnation, facts.0.is_some()), (&None, false));
    }
}
