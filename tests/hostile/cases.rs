//! The hostile files.

use std::fmt::Write as _;

/// Bytes of the largest file that is read.
pub(crate) const FILE: usize = 16 << 20;

/// Whether a case takes time for the whole of its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Whole,
    /// It is refused somewhere, or its cost is not in its length.
    Elsewhere,
}

/// One hostile file.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Makes the file of so many parts.
    pub(crate) make: fn(usize) -> Vec<u8>,
    pub(crate) parts: usize,
    pub(crate) growth: Growth,
}

const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// `head`, then a part so often, then `end`.
fn repeated(head: &str, part: &str, end: &str, parts: usize) -> Vec<u8> {
    let mut file = String::with_capacity(head.len() + part.len() * parts + end.len());
    file.push_str(head);
    for _ in 0..parts {
        file.push_str(part);
    }
    file.push_str(end);
    file.into_bytes()
}

/// A file of numbered parts.
fn numbered(head: &str, parts: usize, part: impl Fn(&mut String, usize)) -> Vec<u8> {
    let mut file = head.to_owned();
    for number in 0..parts {
        part(&mut file, number);
    }
    file.into_bytes()
}

/// Anchors of which each names the one before nine times.
fn nested_aliases(levels: usize, part: &str) -> Vec<u8> {
    let mut file = format!("{HEAD}a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..levels {
        let below = part.replace('#', &(level - 1).to_string());
        let _ = writeln!(file, "a{level}: &a{level} [{}]", vec![below; 9].join(", "));
    }
    file.into_bytes()
}

macro_rules! cases {
    ($($name:literal, $growth:ident, $parts:expr, $make:expr;)*) => {
        /// All of them.
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: $name,
            make: $make,
            parts: $parts,
            growth: Growth::$growth,
        }),*];
    };
}

cases! {
    "nine to the ninth aliases", Elsewhere, 9, |n| nested_aliases(n, "*a#");
    "nine to the ninth merges", Elsewhere, 9, |n| {
        let mut file = format!("{HEAD}a0: &a0 {{x: 1}}\n");
        for level in 1..n {
            let names = vec![format!("*a{}", level - 1); 9].join(", ");
            let _ = writeln!(file, "a{level}: &a{level} {{<<: [{names}], k{level}: 1}}");
        }
        file.into_bytes()
    };
    "aliases of one text", Whole, 20_000, |n| repeated(&format!("{HEAD}a: &a x\nb:\n"), "- *a\n", "", n);
    "aliases of a long text", Elsewhere, 20_000, |n| {
        repeated(&format!("{HEAD}a: &a {}\nb:\n", "x".repeat(1 << 20)), "- *a\n", "", n)
    };
    "merges of a large mapping", Elsewhere, 2_000, |n| {
        let mut file = format!("{HEAD}a: &a\n");
        for key in 0..n {
            let _ = writeln!(file, "  k{key}: 1");
        }
        file.push_str("b:\n");
        for _ in 0..n {
            file.push_str("- <<: *a\n");
        }
        file.into_bytes()
    };
    "one mapping merged often", Elsewhere, 100_000, |n| repeated(&format!("{HEAD}a: &a {{x: 1}}\nb:\n"), "  <<: *a\n", "", n);
    "many anchors", Whole, 200_000, |n| numbered(&format!("{HEAD}b:\n"), n, |file, at| {
        let _ = writeln!(file, "- &a{at} x");
    });
    "flow lists 10 000 deep", Elsewhere, 10_000, |n| {
        [repeated(HEAD, "", "a: ", 0), repeated("", "[", "", n), repeated("", "]", "\n", n)].concat()
    };
    "flow mappings 10 000 deep", Elsewhere, 10_000, |n| {
        [repeated(HEAD, "", "a: ", 0), repeated("", "{a: ", "1", n), repeated("", "}", "\n", n)].concat()
    };
    "JSON 10 000 deep", Elsewhere, 10_000, |n| {
        [repeated("", r#"{"a":"#, "1", n), repeated("", "}", "\n", n)].concat()
    };
    "block mappings 10 000 deep", Elsewhere, 4_000, |n| numbered(HEAD, n, |file, level| {
        file.push_str(&" ".repeat(level));
        file.push_str("a:\n");
    });
    "10 000 levels in one line", Elsewhere, 10_000, |n| repeated(&format!("{HEAD}a:\n"), "- ", "x\n", n);
    "20 000 dashes", Elsewhere, 20_000, |n| repeated("", "- ", "\n", n);
    "20 000 question marks", Elsewhere, 20_000, |n| repeated("", "? ", "\n", n);
    "200 000 keys", Whole, 200_000, |n| numbered(&format!("{HEAD}data:\n"), n, |file, at| {
        let _ = writeln!(file, "  key{at}: value");
    });
    "200 000 keys in flow", Whole, 200_000, |n| {
        let mut file = numbered(&format!("{HEAD}data: {{"), n, |file, at| {
            let _ = write!(file, "key{at}: value, ");
        });
        file.extend_from_slice(b"}\n");
        file
    };
    "200 000 keys in JSON", Whole, 200_000, |n| {
        let head = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}"#;
        let mut file = numbered(head, n, |file, at| {
            let _ = write!(file, r#", "key{at}": "value""#);
        });
        file.push(b'}');
        file
    };
    "200 000 labels that are none", Whole, 200_000, |n| {
        numbered("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n", n, |file, at| {
            let _ = writeln!(file, "    -key{at}: x-");
        })
    };
    "one key 200 000 times", Whole, 200_000, |n| repeated(&format!("{HEAD}data:\n"), "  a: 1\n", "", n);
    "20 000 keys twice", Whole, 20_000, |n| numbered(&format!("{HEAD}data:\n"), n, |file, at| {
        let _ = write!(file, "  k{at}: 1\n  k{at}: 2\n");
    });
    "a million small numbers", Whole, 990_000, |n| repeated(&format!("{HEAD}a: ["), "1,", "]\n", n);
    "more values than a document may have", Elsewhere, 3_000_000, |n| repeated(&format!("{HEAD}a: ["), "1,", "]\n", n);
    "a million empty mappings", Whole, 990_000, |n| repeated(&format!("{HEAD}a: ["), "{},", "]\n", n);
    "a million old booleans", Whole, 990_000, |n| repeated(&format!("{HEAD}a: ["), "y,", "]\n", n);
    "half a million small mappings", Whole, 300_000, |n| repeated(&format!("{HEAD}a: ["), "{a: 1},", "]\n", n);
    "100 000 empty documents", Whole, 100_000, |n| repeated("", "---\n", "", n);
    "100 000 documents of null", Whole, 100_000, |n| repeated("", "---\n~\n", HEAD, n);
    "100 000 documents that are none", Whole, 100_000, |n| repeated("", "---\na: 1\n", "", n);
    "100 000 objects", Elsewhere, 100_000, |n| numbered("", n, |file, at| {
        let _ = write!(file, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{at}}}\n");
    });
    "100 000 documents that do not parse", Whole, 100_000, |n| repeated("", "---\n[\n", "", n);
    "100 000 bad separators", Whole, 100_000, |n| repeated("", "--- x\n", "", n);
    "16 MiB of separators", Whole, FILE / 4, |n| repeated("", "---\n", "", n);
    "16 MiB of JSON documents", Whole, FILE / 2, |n| repeated("", "{}", "", n);
    "16 MiB of JSON documents on lines", Whole, FILE / 3, |n| repeated("", "{}\n", "", n);
    "16 MiB of objects in a list of lists", Elsewhere, FILE / 24, |n| {
        repeated("apiVersion: v1\nkind: List\nitems:\n", "- {kind: List, items: []}\n", "", n * 24 / 27)
    };
    "16 MiB of one text", Whole, FILE, |n| repeated(&format!("{HEAD}a: "), "x", "\n", n - 64);
    "16 MiB of one text in quotes", Whole, FILE, |n| repeated(&format!("{HEAD}a: \""), "x", "\"\n", n - 64);
    "16 MiB of one text in a block", Whole, FILE / 64, |n| {
        repeated(&format!("{HEAD}a: |\n"), &format!("  {}\n", "x".repeat(61)), "", n - 2)
    };
    "16 MiB of short lines in a block", Whole, FILE / 4, |n| repeated(&format!("{HEAD}a: >\n"), "  x\n", "", n - 20);
    "16 MiB of one text over lines", Whole, FILE / 4, |n| repeated(&format!("{HEAD}a:\n"), "  x\n", "", n - 20);
    "16 MiB of JSON text", Whole, FILE, |n| {
        let head = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "a": ""#;
        repeated(head, "x", "\"}", n - 80)
    };
    "16 MiB of escapes", Whole, FILE / 2, |n| repeated(&format!("{HEAD}a: \""), "\\n", "\"\n", n - 40);
    "16 MiB of code points", Whole, FILE / 6, |n| repeated(&format!("{HEAD}a: \""), "\\u0041", "\"\n", n - 20);
    "16 MiB of JSON escapes", Whole, FILE / 6, |n| repeated("{\"a\": \"", "\\u0041", "\"}", n - 20);
    "16 MiB of doubled quotes", Whole, FILE / 2, |n| repeated(&format!("{HEAD}a: '"), "''", "'\n", n - 40);
    "16 MiB of wide characters", Whole, FILE / 3, |n| repeated(&format!("{HEAD}a: "), "語", "\n", n - 40);
    "16 MiB of wide characters in JSON", Whole, FILE / 3, |n| repeated("{\"a\": \"", "語", "\"}", n - 40);
    "16 MiB of line breaks", Whole, FILE, |n| repeated("", "\n", "", n);
    "16 MiB of line breaks in an object", Whole, FILE, |n| repeated(HEAD, "\n", "a: 1\n", n - 80);
    "16 MiB of carriage returns", Whole, FILE, |n| repeated("", "\r", "", n);
    "16 MiB of other line breaks", Whole, FILE / 3, |n| repeated(&format!("{HEAD}a: x"), "\u{2028}", "\n", n - 40);
    "16 MiB of blanks", Whole, FILE, |n| repeated("", " ", "", n);
    "16 MiB of tabs", Whole, FILE, |n| repeated("", "\t", "", n);
    "16 MiB of one comment", Whole, FILE, |n| repeated("", "#", "", n);
    "16 MiB of comments", Whole, FILE / 2, |n| repeated("", "#\n", "", n);
    "16 MiB of comments in an object", Whole, FILE / 2, |n| repeated(HEAD, "#\n", "a: 1\n", n - 40);
    "16 MiB of comments after a separator", Whole, FILE / 4, |n| repeated("", "---#", "", n);
    "16 MiB of NUL", Elsewhere, FILE, |n| repeated("", "\0", "", n);
    "NUL at the end of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: "), "x", "\0", n - 64);
    "16 MiB that is no UTF-8", Elsewhere, FILE, |n| vec![0xFF; n];
    "16 MiB of halves of UTF-16", Elsewhere, FILE, |n| [vec![0xFF, 0xFE], vec![0xD8; n - 2]].concat();
    "16 MiB of UTF-16", Whole, FILE / 2, |n| {
        let text = [HEAD, "a: ", &"x".repeat(n - 100), "\n"].concat();
        std::iter::once([0xFF, 0xFE]).chain(text.bytes().map(|byte| [byte, 0])).flatten().collect()
    };
    "16 MiB of open braces", Elsewhere, FILE, |n| repeated("", "{", "", n);
    "16 MiB of open brackets", Elsewhere, FILE, |n| repeated("", "[", "", n);
    "16 MiB of closed brackets", Elsewhere, FILE, |n| repeated("", "]", "", n);
    "16 MiB of pairs of brackets", Elsewhere, FILE / 2, |n| repeated("", "[]", "", n);
    "16 MiB of anchors", Elsewhere, FILE / 3, |n| repeated("", "&a ", "", n);
    "16 MiB of anchors without blanks", Elsewhere, FILE / 2, |n| repeated("", "&a", "", n);
    "16 MiB of aliases", Elsewhere, FILE / 3, |n| repeated("", "*a ", "", n);
    "16 MiB of tags", Elsewhere, FILE / 3, |n| repeated("", "!a ", "", n);
    "one tag of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: !"), "a", " x\n", n - 64);
    "one tag of escapes", Whole, FILE / 3, |n| repeated(&format!("{HEAD}a: !"), "%41", " x\n", n - 40);
    "one anchor of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: &"), "a", " x\n", n - 64);
    "16 MiB of dashes", Elsewhere, FILE / 2, |n| repeated("", "- ", "", n);
    "16 MiB of dashes without blanks", Whole, FILE, |n| repeated("", "-", "", n);
    "16 MiB of question marks", Elsewhere, FILE / 2, |n| repeated("", "? ", "", n);
    "16 MiB of question marks without blanks", Elsewhere, FILE, |n| repeated("", "?", "", n);
    "16 MiB of colons", Elsewhere, FILE, |n| repeated("", ":", "", n);
    "16 MiB of colons with blanks", Elsewhere, FILE / 2, |n| repeated("", ": ", "", n);
    "16 MiB of commas", Elsewhere, FILE, |n| repeated("", ",", "", n);
    "16 MiB of commas in brackets", Elsewhere, FILE, |n| repeated("[", ",", "]", n - 2);
    "16 MiB of open quotes", Elsewhere, FILE, |n| repeated("", "\"", "", n);
    "16 MiB of single quotes", Elsewhere, FILE, |n| repeated("", "'", "", n);
    "16 MiB of quotes with blanks", Elsewhere, FILE / 3, |n| repeated("[", "'' ", "]", n);
    "quotes that do not close", Whole, FILE, |n| repeated("a: \"", "x", "", n - 4);
    "JSON that does not end", Whole, FILE, |n| repeated("{\"a\": \"", "x", "", n - 8);
    "16 MiB of backslashes", Elsewhere, FILE, |n| repeated("a: \"", "\\", "", n - 4);
    "16 MiB of percent signs", Elsewhere, FILE, |n| repeated("", "%", "", n);
    "16 MiB of directives", Elsewhere, FILE / 10, |n| repeated("", "%YAML 1.1\n", "", n);
    "16 MiB of pipes", Elsewhere, FILE, |n| repeated("", "|", "", n);
    "16 MiB of block scalars", Elsewhere, FILE / 4, |n| repeated("a:\n", "- |\n", "", n);
    "16 MiB of empty items", Elsewhere, FILE / 2, |n| repeated("a:\n", "-\n", "", n - 2);
    "16 MiB of merges", Elsewhere, FILE / 8, |n| repeated("a: &a {}\n", "<<: *a  \n", "", n - 300_000);
    "a key of 16 MiB", Whole, FILE, |n| repeated("? ", "x", "\n: 1\n", n - 16);
    "keys that could begin anywhere", Elsewhere, FILE / 3, |n| repeated("[", "a, ", "]", n - 2);
    "one number of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: "), "1", "\n", n - 64);
    "one fraction of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: 0."), "1", "\n", n - 64);
    "one number of underscores", Whole, FILE, |n| repeated(&format!("{HEAD}a: 1"), "_", "\n", n - 64);
    "one exponent of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: 1e"), "9", "\n", n - 64);
    "one number of JSON", Whole, FILE, |n| repeated("{\"a\": ", "1", "}", n - 8);
    "16 MiB of base64", Whole, FILE / 4, |n| repeated(&format!("{HEAD}a: !!binary "), "aGVs", "\n", n - 24);
    "a date of 16 MiB", Whole, FILE, |n| repeated(&format!("{HEAD}a: 2001-01-01 "), " ", "x\n", n - 80);
    "a name of 16 MiB", Whole, FILE, |n| repeated("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ", "a", "\n", n - 64);
    "a kind of 16 MiB", Whole, FILE, |n| repeated("apiVersion: v1\nmetadata: {name: a}\nkind: ", "a", "\n", n - 64);
    "an apiVersion of slashes", Whole, FILE, |n| repeated("kind: A\nmetadata: {name: a}\napiVersion: ", "/", "\n", n - 64);
    "conflicts of git", Whole, FILE / 9, |n| repeated("a: [\n", "<<<<<<< \n", "", n - 1);
    "templates", Whole, FILE / 2, |n| repeated("a: ", "{{", "\n", n - 4);
}
