//! A list that mostly has one item.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A list that never changes. A single item is held in the list itself, so that it takes no block
/// of memory of its own. Several are shared by all clones.
#[derive(Clone)]
pub struct ShortList<T>(ListItems<T>);

#[derive(Clone)]
enum ListItems<T> {
    Single(T),
    Shared(Arc<[T]>),
}

impl<T> Deref for ShortList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            ListItems::Single(item) => std::slice::from_ref(item),
            ListItems::Shared(items) => items,
        }
    }
}

impl<T> From<Vec<T>> for ShortList<T> {
    fn from(mut items: Vec<T>) -> Self {
        if items.len() == 1
            && let Some(item) = items.pop()
        {
            return Self(ListItems::Single(item));
        }
        Self(ListItems::Shared(items.into()))
    }
}

impl<T, const N: usize> From<[T; N]> for ShortList<T> {
    fn from(items: [T; N]) -> Self {
        Vec::from(items).into()
    }
}

impl<T> FromIterator<T> for ShortList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: fmt::Debug> fmt::Debug for ShortList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: PartialEq> PartialEq for ShortList<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for ShortList<T> {}

impl<T: Ord> PartialOrd for ShortList<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for ShortList<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        Ord::cmp(&**self, &**other)
    }
}

impl<T: Hash> Hash for ShortList<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Hash::hash(&**self, state);
    }
}

impl<T: Serialize> Serialize for ShortList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(&**self, serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ShortList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<T>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_has_the_items_that_it_is_made_of_and_is_written_as_they_are() {
        let check = |items: &[u32]| {
            let list = ShortList::from(items.to_vec());
            assert_eq!(*list, *items);
            assert_eq!(list, items.iter().copied().collect::<ShortList<u32>>());
            assert_eq!(format!("{list:?}"), format!("{items:?}"));
            let written = serde_json::to_value(&list).unwrap();
            assert_eq!(written, json!(items));
            assert_eq!(serde_json::from_value::<ShortList<u32>>(written).unwrap(), list);
        };
        check(&[]);
        check(&[1]);
        check(&[1, 2, 3]);
    }

    #[test]
    fn lists_are_in_the_order_of_their_items_whatever_their_length() {
        let lists = [vec![], vec![1], vec![1, 0], vec![1, 2], vec![2]].map(ShortList::<u32>::from);
        assert!(lists.is_sorted_by(|a, b| a < b), "{lists:?}");
    }

    #[test]
    fn a_single_item_takes_no_more_than_itself() {
        assert_eq!(size_of::<ShortList<Arc<str>>>(), 24);
        assert_eq!(size_of::<ShortList<(Arc<str>, u64)>>(), 24);
    }
}
