//! Texts that are compared line by line.

use super::line_diff::{DiffLine, DiffSide, diff_lines};

#[test]
fn each_line_is_on_one_side_or_both() {
    fn check(before: &str, after: &str, expected: &[(DiffSide, &str)]) {
        let expected: Vec<DiffLine<'_>> =
            expected.iter().map(|&(side, text)| DiffLine { side, text }).collect();
        let found: Vec<DiffLine<'_>> = diff_lines(before, after).lines().collect();
        assert_eq!(found, expected, "{before:?} to {after:?}");
    }
    let (both, old, new) = (DiffSide::Both, DiffSide::Before, DiffSide::After);
    check("", "", &[]);
    check("a\nb\n", "a\nb\n", &[(both, "a\n"), (both, "b\n")]);
    check("a\nc\n", "a\nb\nc\n", &[(both, "a\n"), (new, "b\n"), (both, "c\n")]);
    check("a\nb\nc\n", "a\nc\n", &[(both, "a\n"), (old, "b\n"), (both, "c\n")]);
    check("a\nb\nc\n", "x\ny\nc\n", &[(old, "a\n"), (old, "b\n"), (new, "x\n"), (new, "y\n"), (both, "c\n")]);
    check("a\n", "a", &[(old, "a\n"), (new, "a")]);
    check("a\r\n", "a\n", &[(old, "a\r\n"), (new, "a\n")]);
    check("a\na\n", "a\na\na\n", &[(both, "a\n"), (both, "a\n"), (new, "a\n")]);
}

#[test]
fn unified_diffs_show_hunks_with_their_places() {
    fn check(before: &str, after: &str, expected: &str) {
        assert_eq!(diff_lines(before, after).to_unified(), expected, "{before:?} to {after:?}");
    }
    check("", "", "");
    check("a\nb\n", "a\nb\n", "");
    check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
    check("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
    check("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n");
    check("a\nc\n", "a\nb\nc\n", "@@ -1,2 +1,3 @@\n a\n+b\n c\n");
    check("a\nb\nc\n", "a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n");
    check("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    check("a\na\na\n", "a\na\n", "@@ -1,3 +1,2 @@\n a\n a\n-a\n");
}

#[test]
fn changes_more_than_six_lines_apart_have_hunks_of_their_own() {
    fn check(between: &str, expected: &str) {
        let text = |first: &str, last: &str| format!("{first}\n{between}{last}\n");
        assert_eq!(diff_lines(&text("a", "b"), &text("x", "y")).to_unified(), expected);
    }
    check("1\n2\n3\n4\n5\n6\n", "@@ -1,8 +1,8 @@\n-a\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+y\n");
    check(
        "1\n2\n3\n4\n5\n6\n7\n",
        "@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+y\n",
    );
}

#[test]
fn unified_diffs_say_where_the_last_line_has_no_end() {
    fn check(before: &str, after: &str, expected: &str) {
        assert_eq!(diff_lines(before, after).to_unified(), expected, "{before:?} to {after:?}");
    }
    check("a", "a", "");
    check("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
    check("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
    check("a\nb", "x\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n");
}
