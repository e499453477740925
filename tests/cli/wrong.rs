//! The diagnostics of files that are wrong in the ways that people write. Each has the place, the
//! line with a caret below the fault, and the remedy.

use crate::fixture::Fixture;

const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

/// Checks the output of `rhumb validate -` for a file that goes on after [`HEAD`] like this.
/// Indentation before the first line stands for that of the test.
#[track_caller]
fn check(text: &str, expected: &str) {
    let indent = expected.trim_start_matches('\n').len() - expected.trim_start().len();
    let lines = expected.trim_end_matches(' ').lines().skip(1);
    let expected: String =
        lines.map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n").collect();
    let shown = Fixture::new(&[]).run_with_input("validate -", &format!("{HEAD}{text}"));
    let shown = shown.split_once('\n').and_then(|(_, rest)| rest.split_once("--- standard error")).unwrap().0;
    assert!(shown == expected, "of {text:?} came\n{shown}\nand not\n{expected}");
}

#[test]
fn indentation_is_of_spaces() {
    check(
        "data:\n\ta: b\n",
        "
        <stdin>:6:1: error: this is not YAML: a tab cannot indent, and begins no value
             a: b
            ^
          hint: indent with spaces
        ",
    );
    check(
        "data:\n  a: b\n\t  c: d\n",
        "
        <stdin>:7:1: error: this is not YAML: a tab cannot indent
               c: d
            ^
          hint: indent with spaces
        ",
    );
}

#[test]
fn indentation_is_regular() {
    check(
        "data:\n   a: b\n  c: d\n",
        "
        <stdin>:7:3: error: this is not YAML: no mapping around this key has its keys in column 3; the nearest, from line 1 on, has them in column 1
            c: d
            ^
          hint: indent the key like one of the keys before it
        ",
    );
    check(
        "data:\n  a: b\n    c: d\n",
        "
        <stdin>:7:6: error: this is not YAML: a value with `: ` is not allowed here: the text from line 6 goes on to here
            c: d
             ^
          hint: indent keys alike, write a blank after the `:` of each, and put a text that contains `: ` in quotes
        ",
    );
    check(
        "spec:\n  containers:\n  - name: a\n   image: b\n",
        "
        <stdin>:8:4: error: this is not YAML: no mapping around this key has its keys in column 4; the nearest, from line 6 on, has them in column 3
            image: b
            ^
          hint: indent the key like one of the keys before it
        ",
    );
    check(
        "spec:\n  args: x\n  - y\n",
        "
        <stdin>:7:3: error: this is not YAML: expected a key in the same column as the others, found `-`
            - y
            ^
          hint: a list goes below a key with nothing behind its `:`
        ",
    );
    check(
        "data:\n  a: |\n  text\n",
        "
        <stdin>:7:3: error: this is not YAML: a key without a `:` after it
            text
            ^
          hint: a key is followed by `: `; a text that goes on over lines must be indented deeper than its key
        ",
    );
    check(
        " ---\n",
        "
        <stdin>:5:2: error: this is not YAML: expected a key in the same column as the others, found a text
            ---
            ^
        ",
    );
}

#[test]
fn keys_have_a_colon_and_a_blank() {
    check(
        "data\n  a: b\n",
        "
        <stdin>:5:1: error: this is not YAML: a key without a `:` after it
            data
            ^
          hint: a key is followed by `: `; a text that goes on over lines must be indented deeper than its key
        ",
    );
    check(
        "data:\n  a: b\n  c d\n  e: f\n",
        "
        <stdin>:7:3: error: this is not YAML: a key without a `:` after it
            c d
            ^
          hint: a key is followed by `: `; a text that goes on over lines must be indented deeper than its key
        ",
    );
    check(
        "data:\n  a:b\n",
        "
        <stdin>:6:3: error: data must be a mapping of text to text
            a:b
            ^
          hint: each entry is a key, `:`, a blank and a value
        ",
    );
    check(
        "data:\n  a:b\n  c: d\n",
        "
        <stdin>:7:4: error: this is not YAML: a value with `: ` is not allowed here: the text from line 6 goes on to here
            c: d
             ^
          hint: indent keys alike, write a blank after the `:` of each, and put a text that contains `: ` in quotes
        ",
    );
    check(
        "data:\n  a: b: c\n",
        "
        <stdin>:6:7: error: this is not YAML: a value with `: ` is not allowed here
            a: b: c
                ^
          hint: put a text that contains `: ` in quotes, or begin the mapping on a line of its own
        ",
    );
    check(
        "data:\n  -a: b\n  - c\n",
        "
        <stdin>:7:3: error: this is not YAML: expected a key in the same column as the others, found `-`
            - c
            ^
          hint: a list goes below a key with nothing behind its `:`
        ",
    );
}

#[test]
fn some_characters_begin_no_text() {
    check(
        "data: {a: @x}\n",
        "
        <stdin>:5:11: error: this is not YAML: `@` cannot begin a plain value
            data: {a: @x}
                      ^
          hint: put the value in quotes
        ",
    );
    check(
        "data:\n  a: *.example.org\n",
        "
        <stdin>:6:6: error: this is not YAML: an anchor's name has letters, digits, `-` and `_`
            a: *.example.org
               ^
          hint: put a text that begins with `*` or `&` in quotes
        ",
    );
    check(
        "data:\n  a: &\n",
        "
        <stdin>:6:6: error: this is not YAML: an anchor's name has letters, digits, `-` and `_`
            a: &
               ^
          hint: put a text that begins with `*` or `&` in quotes
        ",
    );
    check(
        "data:\n  a: %x\n",
        "
        <stdin>:6:6: error: this is not YAML: `%` cannot begin a plain value
            a: %x
               ^
          hint: put the value in quotes
        ",
    );
    check(
        "data:\n  a: `x`\n",
        "
        <stdin>:6:6: error: this is not YAML: a backtick cannot begin a plain value
            a: `x`
               ^
          hint: put the value in quotes
        ",
    );
}

#[test]
fn some_characters_begin_something_else() {
    check(
        "data:\n  a: !x\n",
        "
        <stdin>:6:6: warning: a word that begins with `!` is a tag, which Kubernetes drops: the value is what follows it
            a: !x
               ^
          hint: put a text that begins with `!` in quotes
        ",
    );
    check(
        "data:\n  a: | text\n",
        "
        <stdin>:6:8: error: this is not YAML: only a comment can follow `|` or `>` in its line
            a: | text
                 ^
          hint: put a text that begins with `|` or `>` in quotes
        ",
    );
    check(
        "data:\n  a: {{ .Values.a }}\n",
        "
        <stdin>:6:7: error: a list or mapping cannot be a key
            a: {{ .Values.a }}
                ^
          hint: `{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore
        ",
    );
    check(
        "data:\n  a: \u{1}\n",
        "
        <stdin>:6:6: error: control characters are not allowed, and here is U+0001
            a: �
               ^
          hint: remove it, or write it as an escape in double quotes
        ",
    );
    check(
        "data:\n  a: {{\0\u{1}PK\n",
        "
        <stdin>:6:8: error: control characters are not allowed, and here is U+0000
            a: {{��PK
                 ^
          hint: this looks like a binary file: list it in .rhumbignore, or give it another extension
        ",
    );
}

#[test]
fn quotes_and_brackets_are_closed() {
    check(
        "data:\n  a: \"x\n  b: c\n",
        r#"
        <stdin>:6:6: error: this is not YAML: the quotes that open here are not closed
            a: "x
               ^
        "#,
    );
    check(
        "data:\n  a: 'x\n",
        "
        <stdin>:6:6: error: this is not YAML: the quotes that open here are not closed
            a: 'x
               ^
        ",
    );
    check(
        "data:\n  a: 'it's'\n",
        r#"
        <stdin>:6:10: error: this is not YAML: expected the end of the line after the closing quote, found a text
            a: 'it's'
                   ^
          hint: inside quotes, write `''` for a single quote in single quotes, and `\"` for a double quote in double quotes
        "#,
    );
    check(
        "data:\n  a: \"C:\\path\"\n",
        r#"
        <stdin>:6:9: error: this is not YAML: no such escape in double quotes
            a: "C:\path"
                  ^
          hint: write `\\` for a backslash, or use single quotes
        "#,
    );
    check(
        "data:\n  a: [x\n  b: c\n",
        "
        <stdin>:7:4: error: this is not YAML: expected `,` or `]`, found `:`; it was opened in line 6
            b: c
             ^
        ",
    );
    check(
        "data:\n  a: {b: c\n",
        "
        <stdin>:6:6: error: this is not YAML: `{` is never closed by `}`
            a: {b: c
               ^
        ",
    );
    check(
        "data:\n  b: [y]]\n",
        "
        <stdin>:6:9: error: this is not YAML: expected a key in the same column as the others, found `]`
            b: [y]]
                  ^
        ",
    );
}

#[test]
fn text_is_quoted_where_it_looks_like_something_else() {
    check(
        "  labels: {a: yes, b: 12}\n",
        r#"
        <stdin>:5:15: error: metadata.labels: the value of "a" must be text, and this is a boolean
            labels: {a: yes, b: 12}
                        ^
          hint: put it in quotes
        <stdin>:5:23: error: metadata.labels: the value of "b" must be text, and this is a number
            labels: {a: yes, b: 12}
                                ^
          hint: put it in quotes
        "#,
    );
    check(
        "  annotations:\n    a: true\n",
        r#"
        <stdin>:6:8: error: metadata.annotations: the value of "a" must be text, and this is a boolean
            a: true
               ^
          hint: put it in quotes
        "#,
    );
    check(
        "data:\n  yes: x\n  b: 0644\n",
        r#"
        <stdin>:6:3: warning: an unquoted yes, no, on, off, y or n is a boolean here: `yes` is read as true
            yes: x
            ^
          hint: write true or false, or quote it: other readers, kustomize among them, take it for text
        <stdin>:7:6: error: data: the value of "b" must be text, and this is a number
            b: 0644
               ^
          hint: put it in quotes
        "#,
    );
    check(
        "data:\n  a: b\n  c: d\n  a: e\n",
        r#"
        <stdin>:8:3: error: key "a" is given twice in this mapping: first in line 6, again in line 8
            a: e
            ^
          hint: remove one of the two: kubectl would silently use the later
        "#,
    );
}

#[test]
fn the_caret_is_below_the_fault() {
    check(
        "data: {\ta: @x}\n",
        "
        <stdin>:5:12: error: this is not YAML: `@` cannot begin a plain value
            data: { a: @x}
                       ^
          hint: put the value in quotes
        ",
    );
    check(
        "data:\n  \"語語\": @x\n",
        r#"
        <stdin>:6:9: error: this is not YAML: `@` cannot begin a plain value
            "語語": @x
                    ^
          hint: put the value in quotes
        "#,
    );
    check(
        "data:\n  a: \"😀\"@\n",
        r#"
        <stdin>:6:9: error: this is not YAML: `@` cannot begin a plain value
            a: "😀"@
                   ^
          hint: put the value in quotes
        "#,
    );
    check(
        &format!("data:\n  a: [{}@]\n", "x, ".repeat(100)),
        "
        <stdin>:6:307: error: this is not YAML: `@` cannot begin a plain value
            …x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, @]
                                                                         ^
          hint: put the value in quotes
        ",
    );
    check(
        "data:\r\n  a: b\r\n  c: @x\r\n",
        "
        <stdin>:7:6: error: this is not YAML: `@` cannot begin a plain value
            c: @x
               ^
          hint: put the value in quotes
        ",
    );
    check(
        "data:\r  a: @x\r",
        "
        <stdin>:6:6: error: this is not YAML: `@` cannot begin a plain value
            a: @x
               ^
          hint: put the value in quotes
        ",
    );
}
