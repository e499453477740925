//! The memory for each object, by the layout of its types: a daemon holds one of each for every
//! object, and for every file.

use crate::engine::facts::entry::VerifiedOwnership;
use crate::engine::facts::rare_facts::RareFacts;
use crate::engine::{DesiredObject, DesiredState, LiveObject, ObjectEntry, SourceId};
use crate::object::{ContentHash, Gvk, ObjectId};

#[test]
fn what_is_held_for_each_object_has_a_bound() {
    let sizes = [
        ("ObjectId", size_of::<ObjectId>(), 8),
        ("Gvk", size_of::<Gvk>(), 8),
        ("SourceId", size_of::<SourceId>(), 4),
        ("ContentHash", size_of::<ContentHash>(), 16),
        ("Option<ContentHash>", size_of::<Option<ContentHash>>(), 17),
        ("DesiredState", size_of::<DesiredState>(), 16),
        ("DesiredObject", size_of::<DesiredObject>(), 264),
        ("VerifiedOwnership", size_of::<VerifiedOwnership>(), 80),
        ("LiveObject", size_of::<LiveObject>(), 304),
        ("RareFacts", size_of::<RareFacts>(), 8),
        ("ObjectEntry", size_of::<ObjectEntry>(), 328),
    ];
    for (name, size, most) in sizes {
        assert!(size <= most, "{name} takes {size} bytes, and {most} at most");
    }
}
