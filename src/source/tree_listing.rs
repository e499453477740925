//! The entries of one tree of git.

use git2::{Oid, Tree};

/// The mode and the object of an entry.
pub(super) type ModeAndObject = (i32, Oid);

/// The entries of a tree, ordered by the bytes of their names. Of several with one name the last
/// one counts.
///
/// All folders that the roots of a revision read are in memory until they are rendered. Most have
/// few entries, and take as much as these do.
#[derive(Debug, Default)]
pub(super) struct TreeListing(Box<[NamedEntry]>);

/// An entry with its name.
#[derive(Debug)]
struct NamedEntry {
    name: Box<[u8]>,
    mode: i32,
    id: Oid,
}

impl TreeListing {
    /// Lists the entries of a tree.
    pub(super) fn of(tree: &Tree<'_>) -> Self {
        Self::of_entries(
            tree.iter().map(|entry| (Box::from(entry.name_bytes()), (entry.filemode_raw(), entry.id()))),
        )
    }

    fn of_entries(entries: impl Iterator<Item = (Box<[u8]>, ModeAndObject)>) -> Self {
        let mut entries: Vec<NamedEntry> =
            entries.map(|(name, (mode, id))| NamedEntry { name, mode, id }).collect();
        // git has them in nearly the same order.
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|later, kept| {
            let is_same = later.name == kept.name;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        Self(entries.into())
    }

    /// Returns the entry of a name.
    pub(super) fn get(&self, name: &str) -> Option<ModeAndObject> {
        let place = self.0.binary_search_by(|entry| (*entry.name).cmp(name.as_bytes())).ok()?;
        self.0.get(place).map(NamedEntry::entry)
    }

    /// Returns the entries behind a name, in their order.
    pub(super) fn after(&self, name: &str) -> impl Iterator<Item = ModeAndObject> {
        let first = self.0.partition_point(|entry| *entry.name <= *name.as_bytes());
        self.0.iter().skip(first).map(NamedEntry::entry)
    }

    /// Returns the names, in their order.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|entry| &*entry.name)
    }
}

impl NamedEntry {
    const fn entry(&self) -> ModeAndObject {
        (self.mode, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::BlobId;
    use super::*;

    #[test]
    fn entries_are_found_by_name_and_read_in_the_order_of_names() {
        let id = |text: &str| BlobId::of(text.as_bytes()).oid();
        let check = |entries: &[(&str, &str)], expected: &[(&str, &str)]| {
            let entry = |(name, text): &(&str, &str)| (Box::from(name.as_bytes()), (0o100_644, id(text)));
            let listing = TreeListing::of_entries(entries.iter().map(entry));
            let names: Vec<&[u8]> = expected.iter().map(|(name, _)| name.as_bytes()).collect();
            assert!(listing.names().eq(names.iter().copied()), "{listing:?}");
            for (number, (name, text)) in expected.iter().enumerate() {
                assert_eq!(listing.get(name), Some((0o100_644, id(text))), "{name}");
                let behind = expected[number + 1..].iter().map(|(_, text)| (0o100_644, id(text)));
                assert!(listing.after(name).eq(behind), "{name}");
            }
            assert_eq!(listing.get("none"), None);
            assert!(listing.after("").map(|(_, id)| id).eq(expected.iter().map(|(_, text)| id(text))));
        };
        check(&[], &[]);
        check(&[("a", "1")], &[("a", "1")]);
        // git orders a folder as if its name ended in a slash.
        check(&[("a-b", "1"), ("a.yaml", "2"), ("a", "3")], &[("a", "3"), ("a-b", "1"), ("a.yaml", "2")]);
        check(&[("b", "1"), ("a", "2"), ("b", "3"), ("b", "4")], &[("a", "2"), ("b", "4")]);
    }
}
