//! The ends of documents and of blocks: where the indentation of a block ends, and what comes after
//! a document.

use super::check;

const UNREAD: &str =
    "warning: Kubernetes stops reading before this: the document ended, and no `---` begins another
          hint: separate documents by a line of `---`, or remove the text
        ConfigMap default/a
        not understood
        ";

#[test]
fn whatever_is_behind_the_end_of_a_document_makes_its_file_one_that_is_not_understood() {
    let document = "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ...
        ";
    let behind = |text: &str, position: &str| {
        check(&format!("{document}{text}\n        "), &format!("\n        a.yaml:{position}: {UNREAD}"));
    };
    behind("apiVersion: v1", "5:1");
    // No end of a document follows another one, and no value begins so.
    behind("...\n        apiVersion: v1", "6:1");
    behind("@ garbage", "5:1");
    behind("- x", "5:1");
    check(&format!("{document}...\n        # nothing\n        "), "\n        ConfigMap default/a\n        ");
}

#[test]
fn a_key_stands_in_the_column_of_the_others() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
            name: a
          labels: {x: y}
        ",
        "
        a.yaml:5:3: error: this is not YAML: no mapping around this key has its keys in column 3; the nearest, from line 1 on, has them in column 1
          hint: indent the key like one of the keys before it
        not understood
        ",
    );
}

#[test]
fn an_item_stands_in_the_column_of_the_others() {
    check(
        "
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a}
        spec:
          - a
          b: c
        ",
        "
        a.yaml:6:3: error: this is not YAML: expected an item of the list, which begins with `- ` in the same column as the others, found a key
        not understood
        ",
    );
    // A list below a key need not be indented, and an item may be empty.
    check(
        "
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a}
        spec:
        -
        - b
        -
        other: x
        ",
        "
        T a
        ",
    );
}

#[test]
fn a_key_that_is_given_twice_is_an_error_on_either_side_of_a_merge() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data:
          a: x
          <<: {b: w}
          a: z
        ",
        r#"
        a.yaml:7:3: error: key "a" is given twice in this mapping: first in line 5, again in line 7
          hint: remove one of the two: kubectl would silently use the later
        held: ConfigMap default/a, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data:
          <<: {b: w}
          a: x
          a: z
        ",
        r#"
        a.yaml:7:3: error: key "a" is given twice in this mapping: first in line 6, again in line 7
          hint: remove one of the two: kubectl would silently use the later
        held: ConfigMap default/a, its manifest has an error
        "#,
    );
    // A key that a merge brings may be replaced.
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data:
          <<: {a: w}
          a: z
        ",
        "
        ConfigMap default/a
        ",
    );
}
