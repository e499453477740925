//! What belongs together.

use std::collections::BTreeMap;

use crate::object::ObjectId;

/// The connected parts of a set of objects, where references connect in both directions.
#[derive(Debug, Default)]
pub struct Units {
    numbers: BTreeMap<ObjectId, usize>,
    parents: Vec<usize>,
}

impl Units {
    /// Adds an object; alone, until something joins it.
    pub fn add(&mut self, id: &ObjectId) {
        self.number(id);
    }

    /// Whether an object was added.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.numbers.contains_key(id)
    }

    /// A number that all objects of one unit have, until two are joined.
    pub fn number_of(&self, id: &ObjectId) -> Option<usize> {
        self.numbers.get(id).map(|number| self.root(*number))
    }

    /// Joins two objects, adding them where they are new.
    pub fn join(&mut self, one: &ObjectId, other: &ObjectId) {
        let (one, other) = (self.number(one), self.number(other));
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one] = other;
    }

    /// Whether two objects are in one unit.
    pub fn together(&self, one: &ObjectId, other: &ObjectId) -> bool {
        match (self.numbers.get(one), self.numbers.get(other)) {
            (Some(one), Some(other)) => self.root(*one) == self.root(*other),
            _ => one == other,
        }
    }

    fn number(&mut self, id: &ObjectId) -> usize {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = self.parents.len();
        self.parents.push(number);
        self.numbers.insert(id.clone(), number);
        number
    }

    fn root(&self, mut number: usize) -> usize {
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }
}
