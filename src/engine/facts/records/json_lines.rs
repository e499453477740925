//! Lists of records in a bounded text: one line of JSON each.

use serde::Serialize;

/// Adds a record to a list as its next line. Returns false, and adds nothing, where the list would
/// be longer than so many bytes.
pub(in crate::engine) fn try_add_line(list: &mut String, record: &impl Serialize, max_bytes: usize) -> bool {
    let line = serde_json::to_string(record).unwrap_or_default();
    let has_room = list.len() + line.len() < max_bytes;
    if has_room {
        list.push_str(&line);
        list.push('\n');
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_added_where_its_line_and_the_end_of_it_have_room() {
        let mut list = String::new();
        for (record, max_bytes, expected) in
            [("a", 3, false), ("a", 4, true), ("b", 7, false), ("b", 8, true), ("c", 8, false)]
        {
            assert_eq!(try_add_line(&mut list, &record, max_bytes), expected, "{record} {max_bytes}");
        }
        assert_eq!(list, "\"a\"\n\"b\"\n");
    }
}
