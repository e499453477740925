//! The records in the data of an inventory, as everybody reads them. The engine has their forms,
//! and the daemon writes them.

use super::InventoryObject;
use crate::engine::{
    Acknowledgement, HashCiphers, KeptObjects, PendingPrune, Rejection, parse_kept_objects, parse_rejections,
};
use crate::object::annotations;

/// Data key with the pending deletions: one line of JSON an object.
pub(crate) const PENDING_PRUNES_KEY: &str = "pending-prunes";

/// Data key with how many pending deletions have no room in the list.
pub(crate) const UNLISTED_PENDING_KEY: &str = "pending-prunes-left";

/// Data key with the kind that cannot be listed, so that nothing is pruned: `since <time>: <why>`.
pub(crate) const PRUNE_CLOSED_KEY: &str = "prune-closed";

/// Data key with the contents that failed here: one line of JSON a unit.
pub(crate) const REJECTED_KEY: &str = "rejected";

/// Data key with the outcomes of orders: one line each, `<token> <outcome>`.
pub(crate) const ACKNOWLEDGED_KEY: &str = "acknowledged";

/// Data key with the objects that are kept when nobody wants them: one line of JSON an object.
pub(crate) const KEPT_KEY: &str = "kept";

/// The text between two locations.
pub(crate) const LOCATION_SEPARATOR: &str = " and ";

impl InventoryObject {
    /// Returns the location that it was made from, as it records that.
    pub(crate) fn location(&self) -> Option<&str> {
        self.annotations.get(annotations::SOURCE).map(String::as_str)
    }

    /// Returns whether it was made from this location, be it among others; none where it does not
    /// say.
    pub(crate) fn is_made_from(&self, location: &str) -> Option<bool> {
        self.location().map(|made_from| is_among(location, made_from))
    }

    /// Returns the deletions that wait for a person.
    pub(crate) fn pending_prunes(&self) -> Vec<PendingPrune> {
        let lines = self.data.get(PENDING_PRUNES_KEY).into_iter().flat_map(|text| text.lines());
        lines.filter_map(PendingPrune::parse).collect()
    }

    /// Returns how many deletions that wait it has no room for.
    pub(crate) fn unlisted_prune_count(&self) -> usize {
        self.data.get(UNLISTED_PENDING_KEY).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Returns why nothing at all is pruned, and since when.
    pub(crate) fn unlisted_reason(&self) -> Option<&str> {
        self.data.get(PRUNE_CLOSED_KEY).map(String::as_str)
    }

    /// Returns the acknowledgements of orders.
    pub(crate) fn acknowledgements(&self) -> Vec<Acknowledgement> {
        self.data.get(ACKNOWLEDGED_KEY).map(|text| Acknowledgement::parse_all(text)).unwrap_or_default()
    }

    /// Returns the contents that failed or were undone, as far as these ciphers open their hashes.
    pub(crate) fn rejections(&self, ciphers: &HashCiphers) -> Vec<Rejection> {
        self.data.get(REJECTED_KEY).map(|text| parse_rejections(text, ciphers)).unwrap_or_default()
    }

    /// Returns the objects that are kept.
    pub(crate) fn kept_objects(&self) -> KeptObjects {
        self.data.get(KEPT_KEY).map(|text| parse_kept_objects(text)).unwrap_or_default()
    }
}

/// Returns whether a location is one of those that an inventory was made from.
fn is_among(location: &str, made_from: &str) -> bool {
    let begins = |text: &str| text.is_empty() || text.starts_with(LOCATION_SEPARATOR);
    made_from.match_indices(location).any(|(start, _)| {
        let (before, after) = (&made_from[..start], &made_from[start + location.len()..]);
        (before.is_empty() || before.ends_with(LOCATION_SEPARATOR)) && begins(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_among_others_as_a_whole() {
        let check = |location: &str, made_from: &str, expected: bool| {
            assert_eq!(is_among(location, made_from), expected, "{location} among {made_from}");
        };
        check("/srv/a", "/srv/a", true);
        check("/srv/a", "/srv/a and /srv/b", true);
        check("/srv/b", "/srv/a and /srv/b", true);
        check("/srv/b", "/srv/a and /srv/b and /srv/c", true);
        check("/srv", "/srv/a and /srv/b", false);
        check("/srv/a", "/srv/ab and /srv/b", false);
        check("b", "a/b and c", false);
        // A folder of an odd name.
        check("this and that", "/srv/a and this and that", true);
        check("/srv/a", "this and that", false);
    }

    #[test]
    fn an_inventory_says_where_it_was_made_from_and_how_many_deletions_it_does_not_list() {
        let mut inventory = InventoryObject::default();
        assert_eq!((inventory.is_made_from("/srv/a"), inventory.unlisted_prune_count()), (None, 0));
        inventory.annotations.insert(annotations::SOURCE.to_owned(), "/srv/a and /srv/b".to_owned());
        inventory.data.insert(UNLISTED_PENDING_KEY.to_owned(), "7".to_owned());
        assert_eq!(inventory.location(), Some("/srv/a and /srv/b"));
        let is_made_from = ["/srv/b", "/srv/c"].map(|location| inventory.is_made_from(location));
        assert_eq!(is_made_from, [Some(true), Some(false)]);
        assert_eq!(inventory.unlisted_prune_count(), 7);
    }
}
