//! The wanted objects that are not in the inventory of a source that wants them, by source. So the
//! statement of a source costs no more with each object that others want.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::facts::entry::SourceId;
use crate::object::ObjectId;

/// The objects that sources want and do not have.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct UnownedObjects {
    by_source: BTreeMap<SourceId, BTreeSet<ObjectId>>,
    /// The sources that want each of them.
    wanted_by: BTreeMap<ObjectId, BTreeSet<SourceId>>,
}

impl UnownedObjects {
    /// Records the sources that want an object and do not have it.
    pub(super) fn record(&mut self, id: &ObjectId, sources: BTreeSet<SourceId>) {
        if self.wanted_by.get(id).is_some_and(|known| *known == sources) {
            return;
        }
        for source in self.wanted_by.remove(id).into_iter().flatten() {
            if let Some(objects) = self.by_source.get_mut(&source) {
                objects.remove(id);
            }
        }
        for source in &sources {
            self.by_source.entry(*source).or_default().insert(id.clone());
        }
        if !sources.is_empty() {
            self.wanted_by.insert(id.clone(), sources);
        }
    }

    /// Returns the objects that a source wants and does not have.
    pub(super) fn of(&self, source: SourceId) -> impl Iterator<Item = &ObjectId> {
        self.by_source.get(&source).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    #[test]
    fn an_object_is_listed_for_each_source_that_wants_it_now() {
        let config = |name: &str| ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name);
        let (first, second) = (SourceId::new(0), SourceId::new(1));
        let mut objects = UnownedObjects::default();
        let mut check = |name: &str, sources: &[SourceId], expected: [&[&str]; 2]| {
            objects.record(&config(name), sources.iter().copied().collect());
            let listed = [first, second]
                .map(|source| objects.of(source).map(|id| id.name().to_owned()).collect::<Vec<_>>());
            assert_eq!(listed.each_ref().map(Vec::as_slice), expected, "{name} {sources:?}");
        };
        check("a", &[first], [&["a"], &[]]);
        check("a", &[first], [&["a"], &[]]);
        check("b", &[first, second], [&["a", "b"], &["b"]]);
        check("a", &[second], [&["b"], &["a", "b"]]);
        check("b", &[], [&[], &["a"]]);
        check("b", &[], [&[], &["a"]]);
        check("b", &[first], [&["b"], &["a"]]);
    }
}
