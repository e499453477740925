//! The hostile files.

use std::fmt::Write as _;

/// Bytes of the largest file that is read.
pub(crate) const FILE: usize = 16 << 20;

/// One hostile file.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Makes the file of so many parts.
    pub(crate) make: fn(usize) -> Vec<u8>,
    pub(crate) parts: usize,
}

const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// Returns `head`, then a part so often, then `end`.
fn repeated(head: &str, part: &str, end: &str, parts: usize) -> Vec<u8> {
    let mut file = String::with_capacity(head.len() + part.len() * parts + end.len());
    file.push_str(head);
    for _ in 0..parts {
        file.push_str(part);
    }
    file.push_str(end);
    file.into_bytes()
}

/// Returns a file of numbered parts.
fn numbered(head: &str, parts: usize, part: impl Fn(&mut String, usize)) -> Vec<u8> {
    let mut file = head.to_owned();
    for number in 0..parts {
        part(&mut file, number);
    }
    file.into_bytes()
}

/// Returns anchors of which each names the one before nine times.
fn nested_aliases(levels: usize, part: &str) -> Vec<u8> {
    let mut file = format!("{HEAD}a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..levels {
        let below = part.replace('#', &(level - 1).to_string());
        let _ = writeln!(file, "a{level}: &a{level} [{}]", vec![below; 9].join(", "));
    }
    file.into_bytes()
}

macro_rules! cases {
    ($($name:literal, $parts:expr, $make:expr;)*) => {
        /// All of them.
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: $name,
            make: $make,
            parts: $parts,
        }),*];
    };
}

cases! {
    "nine to the ninth aliases", 9, |n| nested_aliases(n, "*a#");
    "nine to the ninth merges", 9, |n| {
        let mut file = format!("{HEAD}a0: &a0 {{x: 1}}\n");
        for level in 1..n {
            let names = vec![format!("*a{}", level - 1); 9].join(", ");
            let _ = writeln!(file, "a{level}: &a{level} {{<<: [{names}], k{level}: 1}}");
        }
        file.into_bytes()
    };
    "aliases of one text", 20_000, |n| repeated(&format!("{HEAD}a: &a x\nb:\n"), "- *a\n", "", n);
    "aliases of a long text", 20_000, |n| {
        repeated(&format!("{HEAD}a: &a {}\nb:\n", "x".repeat(1 << 20)), "- *a\n", "", n)
    };
    "merges of a large mapping", 2_000, |n| {
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
    "one mapping merged often", 100_000, |n| repeated(&format!("{HEAD}a: &a {{x: 1}}\nb:\n"), "  <<: *a\n", "", n);
    "many anchors", 200_000, |n| numbered(&format!("{HEAD}b:\n"), n, |file, at| {
        let _ = writeln!(file, "- &a{at} x");
    });
    "flow lists 10 000 deep", 10_000, |n| {
        [repeated(HEAD, "", "a: ", 0), repeated("", "[", "", n), repeated("", "]", "\n", n)].concat()
    };
    "flow mappings 10 000 deep", 10_000, |n| {
        [repeated(HEAD, "", "a: ", 0), repeated("", "{a: ", "1", n), repeated("", "}", "\n", n)].concat()
    };
    "JSON 10 000 deep", 10_000, |n| {
        [repeated("", r#"{"a":"#, "1", n), repeated("", "}", "\n", n)].concat()
    };
    "block mappings 10 000 deep", 4_000, |n| numbered(HEAD, n, |file, level| {
        file.push_str(&" ".repeat(level));
        file.push_str("a:\n");
    });
    "10 000 levels in one line", 10_000, |n| repeated(&format!("{HEAD}a:\n"), "- ", "x\n", n);
    "20 000 dashes", 20_000, |n| repeated("", "- ", "\n", n);
    "20 000 question marks", 20_000, |n| repeated("", "? ", "\n", n);
    "200 000 keys", 200_000, |n| numbered(&format!("{HEAD}data:\n"), n, |file, at| {
        let _ = writeln!(file, "  key{at}: value");
    });
    "200 000 keys in flow", 200_000, |n| {
        let mut file = numbered(&format!("{HEAD}data: {{"), n, |file, at| {
            let _ = write!(file, "key{at}: value, ");
        });
        file.extend_from_slice(b"}\n");
        file
    };
    "200 000 keys in JSON", 200_000, |n| {
        let head = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}"#;
        let mut file = numbered(head, n, |file, at| {
            let _ = write!(file, r#", "key{at}": "value""#);
        });
        file.push(b'}');
        file
    };
    "200 000 labels that are none", 200_000, |n| {
        numbered("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n", n, |file, at| {
            let _ = writeln!(file, "    -key{at}: x-");
        })
    };
    "one key 200 000 times", 200_000, |n| repeated(&format!("{HEAD}data:\n"), "  a: 1\n", "", n);
    "20 000 keys twice", 20_000, |n| numbered(&format!("{HEAD}data:\n"), n, |file, at| {
        let _ = write!(file, "  k{at}: 1\n  k{at}: 2\n");
    });
    "a million small numbers", 990_000, |n| repeated(&format!("{HEAD}a: ["), "1,", "]\n", n);
    "more values than a document may have", 3_000_000, |n| repeated(&format!("{HEAD}a: ["), "1,", "]\n", n);
    "a million empty mappings", 990_000, |n| repeated(&format!("{HEAD}a: ["), "{},", "]\n", n);
    "a million old booleans", 990_000, |n| repeated(&format!("{HEAD}a: ["), "y,", "]\n", n);
    "half a million small mappings", 300_000, |n| repeated(&format!("{HEAD}a: ["), "{a: 1},", "]\n", n);
    "aliases in each of many documents", 3_000, |n| (0..n).flat_map(|_| [b"---\n".to_vec(), nested_aliases(5, "*a#")].concat()).collect();
    "as many mappings and values as one document may have", 48_000, |n| numbered(&format!("{HEAD}a: ["), n, |file, at| {
        let _ = write!(file, "{{a{at}: x{at}, b: y{at}, c: 1, d: 2}},{}", if at + 1 == n { "]\n" } else { "" });
    });
    "as many mappings and values as a file may have", 13_700, |n| numbered("", n, |file, at| {
        let _ = write!(file, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{at}, labels: {{a: b, c: d}}}}\ndata: {{a: x, b: {}}}\n", "x".repeat(FILE / n - 110));
    });
    "100 000 empty documents", 100_000, |n| repeated("", "---\n", "", n);
    "100 000 documents of null", 100_000, |n| repeated("", "---\n~\n", HEAD, n);
    "100 000 documents that are none", 100_000, |n| repeated("", "---\na: 1\n", "", n);
    "100 000 objects", 100_000, |n| numbered("", n, |file, at| {
        let _ = write!(file, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{at}}}\n");
    });
    "20 000 objects in 16 MiB", 20_000, |n| numbered("", n, |file, at| {
        let _ = write!(file, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a{at}");
        let _ = writeln!(file, "\ndata:\n  text: {}", "x".repeat(FILE / n - 80));
    });
    "20 000 Deployments", 20_000, |n| numbered("", n, |file, at| {
        let _ = write!(file, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a{at}, namespace: shop, labels: {{app: a}}}}\n");
        file.push_str("spec:\n  replicas: 2\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    spec:\n      containers:\n");
        for container in 0..4 {
            let _ = write!(file, "      - name: c{container}\n        image: registry.example.org/shop/web:1.2.3\n        resources: {{limits: {{cpu: 1}}}}\n");
            file.push_str("        env: [{name: A, value: b}]\n");
        }
    });
    "100 000 documents that do not parse", 100_000, |n| repeated("", "---\n[\n", "", n);
    "100 000 bad separators", 100_000, |n| repeated("", "--- x\n", "", n);
    "16 MiB of separators", FILE / 4, |n| repeated("", "---\n", "", n);
    "16 MiB of JSON documents", FILE / 2, |n| repeated("", "{}", "", n);
    "16 MiB of JSON documents on lines", FILE / 3, |n| repeated("", "{}\n", "", n);
    "16 MiB of objects in a list of lists", FILE / 24, |n| {
        repeated("apiVersion: v1\nkind: List\nitems:\n", "- {kind: List, items: []}\n", "", n * 24 / 27)
    };
    "16 MiB of one text", FILE, |n| repeated(&format!("{HEAD}a: "), "x", "\n", n - 64);
    "16 MiB of one text in quotes", FILE, |n| repeated(&format!("{HEAD}a: \""), "x", "\"\n", n - 64);
    "16 MiB of one text in a block", FILE / 64, |n| {
        repeated(&format!("{HEAD}a: |\n"), &format!("  {}\n", "x".repeat(61)), "", n - 2)
    };
    "16 MiB of short lines in a block", FILE / 4, |n| repeated(&format!("{HEAD}a: >\n"), "  x\n", "", n - 20);
    "16 MiB of one text over lines", FILE / 4, |n| repeated(&format!("{HEAD}a:\n"), "  x\n", "", n - 20);
    "16 MiB of JSON text", FILE, |n| {
        let head = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "a": ""#;
        repeated(head, "x", "\"}", n - 80)
    };
    "16 MiB of escapes", FILE / 2, |n| repeated(&format!("{HEAD}a: \""), "\\n", "\"\n", n - 40);
    "16 MiB of code points", FILE / 6, |n| repeated(&format!("{HEAD}a: \""), "\\u0041", "\"\n", n - 20);
    "16 MiB of JSON escapes", FILE / 6, |n| repeated("{\"a\": \"", "\\u0041", "\"}", n - 20);
    "16 MiB of doubled quotes", FILE / 2, |n| repeated(&format!("{HEAD}a: '"), "''", "'\n", n - 40);
    "16 MiB of wide characters", FILE / 3, |n| repeated(&format!("{HEAD}a: "), "語", "\n", n - 40);
    "16 MiB of wide characters in JSON", FILE / 3, |n| repeated("{\"a\": \"", "語", "\"}", n - 40);
    "16 MiB of line breaks", FILE, |n| repeated("", "\n", "", n);
    "16 MiB of line breaks in an object", FILE, |n| repeated(HEAD, "\n", "a: 1\n", n - 80);
    "16 MiB of carriage returns", FILE, |n| repeated("", "\r", "", n);
    "16 MiB of other line breaks", FILE / 3, |n| repeated(&format!("{HEAD}a: x"), "\u{2028}", "\n", n - 40);
    "16 MiB of blanks", FILE, |n| repeated("", " ", "", n);
    "16 MiB of tabs", FILE, |n| repeated("", "\t", "", n);
    "16 MiB of one comment", FILE, |n| repeated("", "#", "", n);
    "16 MiB of comments", FILE / 2, |n| repeated("", "#\n", "", n);
    "16 MiB of comments in an object", FILE / 2, |n| repeated(HEAD, "#\n", "a: 1\n", n - 40);
    "16 MiB of comments after a separator", FILE / 4, |n| repeated("", "---#", "", n);
    "16 MiB of NUL", FILE, |n| repeated("", "\0", "", n);
    "NUL at the end of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: "), "x", "\0", n - 64);
    "16 MiB that is no UTF-8", FILE, |n| vec![0xFF; n];
    "16 MiB of characters of three bytes", FILE / 3, |n| repeated("", "\u{FFFD}", "", n);
    "a long text of characters of four bytes", FILE / 4, |n| repeated("a: '", "\u{1F980}", "'", n - 3);
    "16 MiB of halves of UTF-16", FILE, |n| [vec![0xFF, 0xFE], vec![0xD8; n - 2]].concat();
    "16 MiB of UTF-16", FILE / 2, |n| {
        let text = [HEAD, "a: ", &"x".repeat(n - 100), "\n"].concat();
        std::iter::once([0xFF, 0xFE]).chain(text.bytes().map(|byte| [byte, 0])).flatten().collect()
    };
    "16 MiB of open braces", FILE, |n| repeated("", "{", "", n);
    "16 MiB of open brackets", FILE, |n| repeated("", "[", "", n);
    "16 MiB of closed brackets", FILE, |n| repeated("", "]", "", n);
    "16 MiB of pairs of brackets", FILE / 2, |n| repeated("", "[]", "", n);
    "16 MiB of anchors", FILE / 3, |n| repeated("", "&a ", "", n);
    "16 MiB of anchors without blanks", FILE / 2, |n| repeated("", "&a", "", n);
    "16 MiB of aliases", FILE / 3, |n| repeated("", "*a ", "", n);
    "16 MiB of tags", FILE / 3, |n| repeated("", "!a ", "", n);
    "one tag of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: !"), "a", " x\n", n - 64);
    "one tag of escapes", FILE / 3, |n| repeated(&format!("{HEAD}a: !"), "%41", " x\n", n - 40);
    "one anchor of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: &"), "a", " x\n", n - 64);
    "16 MiB of dashes", FILE / 2, |n| repeated("", "- ", "", n);
    "16 MiB of dashes without blanks", FILE, |n| repeated("", "-", "", n);
    "16 MiB of question marks", FILE / 2, |n| repeated("", "? ", "", n);
    "16 MiB of question marks without blanks", FILE, |n| repeated("", "?", "", n);
    "16 MiB of colons", FILE, |n| repeated("", ":", "", n);
    "16 MiB of colons with blanks", FILE / 2, |n| repeated("", ": ", "", n);
    "16 MiB of commas", FILE, |n| repeated("", ",", "", n);
    "16 MiB of commas in brackets", FILE, |n| repeated("[", ",", "]", n - 2);
    "16 MiB of open quotes", FILE, |n| repeated("", "\"", "", n);
    "16 MiB of single quotes", FILE, |n| repeated("", "'", "", n);
    "16 MiB of quotes with blanks", FILE / 3, |n| repeated("[", "'' ", "]", n);
    "quotes that do not close", FILE, |n| repeated("a: \"", "x", "", n - 4);
    "JSON that does not end", FILE, |n| repeated("{\"a\": \"", "x", "", n - 8);
    "16 MiB of backslashes", FILE, |n| repeated("a: \"", "\\", "", n - 4);
    "16 MiB of percent signs", FILE, |n| repeated("", "%", "", n);
    "16 MiB of directives", FILE / 10, |n| repeated("", "%YAML 1.1\n", "", n);
    "16 MiB of pipes", FILE, |n| repeated("", "|", "", n);
    "16 MiB of block scalars", FILE / 4, |n| repeated("a:\n", "- |\n", "", n);
    "16 MiB of empty items", FILE / 2, |n| repeated("a:\n", "-\n", "", n - 2);
    "16 MiB of merges", FILE / 8, |n| repeated("a: &a {}\n", "<<: *a  \n", "", n - 300_000);
    "a key of 16 MiB", FILE, |n| repeated("? ", "x", "\n: 1\n", n - 16);
    "keys that could begin anywhere", FILE / 3, |n| repeated("[", "a, ", "]", n - 2);
    "one number of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: "), "1", "\n", n - 64);
    "one fraction of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: 0."), "1", "\n", n - 64);
    "one number of underscores", FILE, |n| repeated(&format!("{HEAD}a: 1"), "_", "\n", n - 64);
    "one exponent of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: 1e"), "9", "\n", n - 64);
    "one number of JSON", FILE, |n| repeated("{\"a\": ", "1", "}", n - 8);
    "16 MiB of base64", FILE / 4, |n| repeated(&format!("{HEAD}a: !!binary "), "aGVs", "\n", n - 24);
    "a date of 16 MiB", FILE, |n| repeated(&format!("{HEAD}a: 2001-01-01 "), " ", "x\n", n - 80);
    "a name of 16 MiB", FILE, |n| repeated("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ", "a", "\n", n - 64);
    "a kind of 16 MiB", FILE, |n| repeated("apiVersion: v1\nmetadata: {name: a}\nkind: ", "a", "\n", n - 64);
    "an apiVersion of slashes", FILE, |n| repeated("kind: A\nmetadata: {name: a}\napiVersion: ", "/", "\n", n - 64);
    "conflicts of git", FILE / 9, |n| repeated("a: [\n", "<<<<<<< \n", "", n - 1);
    "templates", FILE / 2, |n| repeated("a: ", "{{", "\n", n - 4);
}
