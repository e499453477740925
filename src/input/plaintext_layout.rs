//! Layouts of texts: the lines by which a value of several lines is recognised. Also a text without
//! what functions of templates do to the letters of a value.
//!
//! A chart that indents, escapes or takes apart a value hides nothing of it.

use zeroize::Zeroizing;

/// The bytes of the shortest line that is looked for.
const MIN_LINE: usize = 8;
/// The letters and digits that such a line has at least, each counted once.
const MIN_LETTERS: usize = 4;
/// The start of a line that is looked for.
const MAX_LINE_BYTES: usize = 128;
/// Lines of one value: one that is written in another layout has its first lines too.
const MAX_LINES_PER_VALUE: usize = 1024;
/// Words behind a name that are in many files, besides numbers and short words.
const COMMON_WORDS: [&[u8]; 4] = [b"disabled", b"enabled", b"default", b"localhost"];

/// Returns the lines by which a value of several lines is known: none that many texts have.
pub(super) fn distinctive_lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = value.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    let starts = lines.map(|line| line.get(..MAX_LINE_BYTES).unwrap_or(line).trim_ascii());
    let is_long = value.trim_ascii().contains(&b'\n');
    starts.filter(move |line| is_long && is_distinctive_line(line)).take(MAX_LINES_PER_VALUE)
}

fn is_distinctive_line(line: &[u8]) -> bool {
    let mut letters: Vec<u8> = line.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    letters.sort_unstable();
    letters.dedup();
    let is_name = |text: &[u8]| text.iter().all(|byte| is_name_byte(*byte));
    let section = line.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    line.len() >= MIN_LINE
        && (letters.len() >= MIN_LETTERS || line.iter().any(|byte| !byte.is_ascii()))
        // The first and the last line of a key are those of all keys.
        && !line.starts_with(b"-----")
        && !section.is_some_and(is_name)
        && !named_value(line).is_some_and(is_common)
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Returns the text behind the name in `name: value`, `"name": "value",` and `name = value`.
fn named_value(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"- ").unwrap_or(line).trim_ascii();
    let at = line.iter().position(|byte| matches!(byte, b':' | b'='))?;
    let (name, value) = line.split_at_checked(at)?;
    let name = without_quotes(name);
    let is_name = !name.is_empty() && name.iter().all(|byte| is_name_byte(*byte));
    let value = value.get(1..)?;
    if value.trim_ascii_start().is_empty() && is_mixed(name) {
        // The end of base64.
        return None;
    }
    let value = value.strip_suffix(b",").unwrap_or(value);
    is_name.then(|| without_quotes(value))
}

/// Returns whether a text has letters of both cases and digits, as names hardly have.
fn is_mixed(text: &[u8]) -> bool {
    let has = |is_it: fn(&u8) -> bool| text.iter().any(is_it);
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

fn without_quotes(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    let inside = |quote: u8| text.strip_prefix(&[quote])?.strip_suffix(&[quote]);
    inside(b'"').or_else(|| inside(b'\'')).unwrap_or(text)
}

/// Indicates a word that says nothing: many files have it behind the same name.
fn is_common(word: &[u8]) -> bool {
    let is_short = word.len() < MIN_LINE;
    let is_short_word = is_short && word.iter().all(u8::is_ascii_alphabetic);
    let is_short_number = is_short && word.iter().all(|byte| byte.is_ascii_digit() || b".-+_".contains(byte));
    let opens = matches!(word, b"{" | b"[" | b"|" | b">" | b"|-" | b">-" | b"{}" | b"[]");
    is_short_word || is_short_number || opens || COMMON_WORDS.contains(&word)
}

/// Returns a text without its escapes or folded lines, once for each way to read it.
pub(super) fn plain_readings(text: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let has = |byte: u8| text.contains(&byte);
    let mut readings = Vec::new();
    if has(b'\\') {
        let once = unescape(text, backslash);
        // A text of JSON may be in another one.
        if once.contains(&b'\\') {
            readings.push(unescape(&once, backslash));
        }
        readings.push(once);
    }
    if has(b'%') {
        readings.push(unescape(text, percent));
    }
    if has(b'+') {
        readings.push(unescape(text, |rest, out| percent(rest, out).or_else(|| plus(rest, out))));
    }
    if has(b'&') {
        readings.push(unescape(text, entity));
    }
    if has(b'\'') {
        readings.push(unescape(text, quote));
    }
    if has(b'\n') {
        readings.push(unfold(text));
    }
    readings.retain(|reading| reading.as_slice() != text);
    readings
}

/// Returns a text with each escape in it read. The reader adds what an escape at the start of a
/// text stands for, and returns the length of the escape.
fn unescape(text: &[u8], reader: impl Fn(&[u8], &mut Vec<u8>) -> Option<usize>) -> Zeroizing<Vec<u8>> {
    // It never grows, which would leave copies behind: no escape is shorter than its letter.
    let mut out = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        rest = if let Some(length) = reader(rest, &mut out) {
            rest.get(length..).unwrap_or_default()
        } else {
            out.push(*first);
            others
        };
    }
    out
}

/// Reads an escape of JSON, of Go and of YAML.
fn backslash(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let (b'\\', sign) = (rest.first()?, rest.get(1)?) else { return None };
    let plain = match sign {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'"' | b'\\' | b'/' | b'\'' => *sign,
        b'u' | b'x' => {
            let length = if *sign == b'u' { 4 } else { 2 };
            push_code(number(rest.get(2..2 + length)?, 16)?, out)?;
            return Some(2 + length);
        }
        _ => return None,
    };
    out.push(plain);
    Some(2)
}

fn percent(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let digits = rest.strip_prefix(b"%")?.get(..2)?;
    out.push(u8::try_from(number(digits, 16)?).ok()?);
    Some(3)
}

fn plus(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    rest.starts_with(b"+").then(|| out.push(b' ')).map(|()| 1)
}

/// Reads a character of HTML.
fn entity(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let inside = rest.strip_prefix(b"&")?;
    let end = inside.iter().take(10).position(|byte| *byte == b';')?;
    let name = inside.get(..end)?;
    let code = match name {
        b"amp" => u32::from(b'&'),
        b"lt" => u32::from(b'<'),
        b"gt" => u32::from(b'>'),
        b"quot" => u32::from(b'"'),
        b"apos" => u32::from(b'\''),
        _ => match name.strip_prefix(b"#")? {
            [b'x' | b'X', digits @ ..] => number(digits, 16)?,
            digits => number(digits, 10)?,
        },
    };
    push_code(code, out)?;
    Some(end + 2)
}

/// Reads a quote in a text of YAML that is in such quotes.
fn quote(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    rest.starts_with(b"''").then(|| out.push(b'\'')).map(|()| 2)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

fn push_code(code: u32, out: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 4];
    out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut bytes).as_bytes());
    Some(())
}

/// Returns a text with each line break and what is indented behind it as one blank: so YAML folds a
/// long line.
fn unfold(text: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len()));
    for line in text.split(|byte| *byte == b'\n') {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(line.trim_ascii());
    }
    out
}

/// Returns a whole number as Go writes it where it was read as a floating one: `1.5e+06`.
pub(super) fn go_number(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let written = format!("{:e}", text.parse::<f64>().ok()?);
    let (fraction, exponent) = written.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    // Smaller ones are written out.
    (exponent >= 6).then(|| format!("{fraction}e+{exponent:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_identify_a_value_are_no_common_ones() {
        let value = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\r\n   aGk0ejY=\n-----END PRIVATE KEY-----\n\
            [database]\nkind: Secret\nport: 5432\n\"level\": \"debug\",\npassword: hunter2\nmetadata:\n========\n\
            host = localhost\n  - pin: 12345678\n\"token\": \"a-b-c-d-e\",\nurl: https://a.example\nshort\n";
        let lines: Vec<&str> =
            distinctive_lines(value.as_bytes()).map(|line| std::str::from_utf8(line).unwrap()).collect();
        assert_eq!(
            lines,
            [
                "MIIEvQIBADANBgkq",
                "aGk0ejY=",
                "password: hunter2",
                "- pin: 12345678",
                "\"token\": \"a-b-c-d-e\",",
                "url: https://a.example"
            ]
        );
        assert_eq!(distinctive_lines(b"a single line\n").count(), 0);
        assert_eq!(distinctive_lines("line of words\n".repeat(5000).as_bytes()).count(), MAX_LINES_PER_VALUE);
    }

    #[test]
    fn a_text_is_read_without_escapes() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let readings = plain_readings(text.as_bytes());
            let has = readings.iter().any(|reading| reading.as_slice() == expected.as_bytes());
            assert!(
                has,
                "{text}: {:?}",
                readings.iter().map(|r| String::from_utf8_lossy(r)).collect::<Vec<_>>()
            );
        }
        check(r#"a\n\"b\\\u003c\u00e9\x41"#, "a\n\"b\\<éA");
        check(r#"\\\"a"#, "\"a");
        check("a%2Fb%3d+c", "a/b=+c");
        check("a%2Fb+c", "a/b c");
        check("a+b", "a b");
        check("&#34;a&amp;&#x3c;&apos;", "\"a&<'");
        check("it''s", "it's");
        check("one\n    two", "one two");
        for text in ["plain", r"\", r"\u12", "%", "%zz", "&", "&;", "&#;", "&verylongname;", "'"] {
            assert!(plain_readings(text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[test]
    fn large_numbers_are_known_as_go_writes_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(go_number(text.as_bytes()).as_deref(), expected, "{text}");
        };
        check("987000000000", Some("9.87e+11"));
        check("1000000", Some("1e+06"));
        check("-1234567", Some("-1.234567e+06"));
        check("999999", None);
        check("1e9", None);
        check("", None);
        check("hunter", None);
    }
}
