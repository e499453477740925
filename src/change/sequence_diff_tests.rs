//! Steps from one sequence to another.

use similar::DiffOp;

use super::sequence_diff::{diff_sequences, word_similarity};

fn equal(old_index: usize, new_index: usize, len: usize) -> DiffOp {
    DiffOp::Equal { old_index, new_index, len }
}

#[test]
fn steps_lead_from_one_sequence_to_the_other() {
    fn check(before: &[u32], after: &[u32], expected: &[DiffOp]) {
        assert_eq!(diff_sequences(before, after), expected, "{before:?} to {after:?}");
    }
    check(&[], &[], &[]);
    check(&[1, 2], &[1, 2], &[equal(0, 0, 2)]);
    check(
        &[1, 3],
        &[1, 2, 3],
        &[equal(0, 0, 1), DiffOp::Insert { old_index: 1, new_index: 1, new_len: 1 }, equal(1, 2, 1)],
    );
    check(
        &[1, 2, 3],
        &[1, 3],
        &[equal(0, 0, 1), DiffOp::Delete { old_index: 1, old_len: 1, new_index: 1 }, equal(2, 1, 1)],
    );
    check(
        &[1, 2, 3],
        &[1, 4, 5, 3],
        &[
            equal(0, 0, 1),
            DiffOp::Replace { old_index: 1, old_len: 1, new_index: 1, new_len: 2 },
            equal(2, 3, 1),
        ],
    );
    check(&[1, 1], &[1, 1, 1], &[equal(0, 0, 2), DiffOp::Insert { old_index: 2, new_index: 2, new_len: 1 }]);
}

#[test]
fn long_sequences_without_a_common_item_are_one_step() {
    let (before, after): (Vec<u32>, Vec<u32>) = ((0..1000).collect(), (1000..3000).collect());
    let expected = [DiffOp::Replace { old_index: 0, old_len: 1000, new_index: 0, new_len: 2000 }];
    assert_eq!(diff_sequences(&before, &after), expected);
}

#[test]
fn words_are_similar_by_their_common_characters() {
    fn check(first: &str, second: &str, expected: f32) {
        let found = word_similarity(first, second);
        assert!((found - expected).abs() < f32::EPSILON, "{first}, {second}: {found}, not {expected}");
    }
    check("", "", 1.0);
    check("prune", "prune", 1.0);
    check("prune", "", 0.0);
    check("ab", "cd", 0.0);
    check("abcd", "bcde", 0.75);
    check("prnue", "prune", 0.8);
    check("größe", "grösse", 8.0 / 11.0);
}
