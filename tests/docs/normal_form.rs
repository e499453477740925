//! The form in which what a page shows and what a command prints are compared.

/// Letters of the random parts of pods' names.
const NAME_LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Returns a line without what differs from run to run: times, hashes, ports, the random parts of
/// pods' names, and how far columns are apart.
pub(crate) fn normal_form(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        if core.is_empty() { word.to_owned() } else { word.replacen(core, &normal_word(core), 1) }
    });
    let mut found: Vec<String> = words.collect();
    // `12 s` is a time as `12s` is.
    for number in 1..found.len() {
        let unit = found[number].trim_matches(|c: char| !c.is_ascii_alphanumeric());
        if ["ms", "s", "min", "h"].contains(&unit) && is_number(&found[number - 1]) {
            "<time>".clone_into(&mut found[number - 1]);
        }
    }
    found.join(" ")
}

fn normal_word(word: &str) -> String {
    if let Some((address, port)) = word.rsplit_once(':')
        && address.ends_with("127.0.0.1")
        && is_number(port)
    {
        return format!("{address}:<port>");
    }
    let is_time = is_clock(word) || is_date(word) || is_duration(word);
    if is_time { "<time>".to_owned() } else { parts(word) }
}

/// Returns a word with each hash in it, and each random part of a name, replaced.
fn parts(word: &str) -> String {
    let mut parts: Vec<String> = word.split('-').map(without_hashes).collect();
    let is_random = |part: &str| part.chars().all(|c| NAME_LETTERS.contains(c));
    if let [.., set, pod] = &mut parts[..]
        && pod.len() == 5
        && is_random(pod)
        && (set == "<hash>" || ((8..=10).contains(&set.len()) && is_random(set)))
    {
        "<hash>".clone_into(set);
        "<pod>".clone_into(pod);
    }
    parts.join("-")
}

fn without_hashes(part: &str) -> String {
    let mut text = String::new();
    let mut rest = part;
    while !rest.is_empty() {
        let is_alphanumeric = rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        let end = rest.find(|c: char| c.is_ascii_alphanumeric() != is_alphanumeric).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let is_hash = run.len() >= 7 && run.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        text.push_str(if is_hash { "<hash>" } else { run });
        rest = after;
    }
    text
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns `03:04:05`
fn is_clock(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    parts.len() == 3 && parts.iter().all(|part| part.len() == 2 && is_number(part))
}

/// Returns `2030-01-02`, `2030-01-02T03:04:05Z`
fn is_date(word: &str) -> bool {
    let (date, time) = word.split_once('T').unwrap_or((word, "00:00:00"));
    let parts: Vec<&str> = date.split('-').collect();
    let is_date =
        parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(|part| is_number(part));
    is_date && is_clock(time.trim_end_matches('Z').split('.').next().unwrap_or_default())
}

/// Returns `5m`, `1h30m`, `1.2s`
fn is_duration(word: &str) -> bool {
    let without_units = word.replace("ms", "s").replace(['s', 'm', 'h', 'd'], " ");
    let is_duration = word.starts_with(|c: char| c.is_ascii_digit()) && without_units.ends_with(' ');
    is_duration && without_units.split(' ').filter(|part| !part.is_empty()).all(is_number)
}

/// Returns whether lines are those that are expected. A line `...` stands for any number of lines,
/// and `…` in a line for any text.
pub(crate) fn fits(expected: &[String], lines: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, after)) if first == "..." => {
            (0..=lines.len()).any(|skipped| fits(after, &lines[skipped..]))
        }
        Some((first, after)) => {
            lines.split_first().is_some_and(|(line, rest)| line_fits(first, line) && fits(after, rest))
        }
    }
}

fn line_fits(expected: &str, line: &str) -> bool {
    match expected.split_once('…') {
        None => expected == line,
        Some((start, after)) => line.strip_prefix(start).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line_fits(after, &rest[at..]))
        }),
    }
}

#[test]
fn what_differs_from_run_to_run_is_taken_out() {
    fn check(line: &str, expected: &str) {
        assert_eq!(normal_form(line), expected);
    }
    check("shop  0123456789ab  5m   21  healthy", "shop <hash> <time> 21 healthy");
    check("03:04:05  RevisionRead", "<time> RevisionRead");
    check("since 2030-01-02 03:04:05 UTC; next", "since <time> <time> UTC; next");
    check("at 2030-01-02T03:04:05Z.", "at <time>.");
    check("https://127.0.0.1:34567: refused", "https://127.0.0.1:<port>: refused");
    check("pod web-7d4b9c8d5f-x2x4z, container", "pod web-<hash>-<pod>, container");
    check("in 12 s (1.2s)", "in <time> s (<time>)");
    check("2 of 3 pods, image web:1.4.0", "2 of 3 pods, image web:1.4.0");
    check("a decade of rhumb-system", "a decade of rhumb-system");
}

#[test]
fn an_ellipsis_stands_for_any_number_of_lines() {
    let check = |expected: &[&str], lines: &[&str], is_equal: bool| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(fits(&owned(expected), &owned(lines)), is_equal, "{expected:?} {lines:?}");
    };
    check(&["a", "..."], &["a"], true);
    check(&["a", "...", "c"], &["a", "b", "b", "c"], true);
    check(&["a", "...", "c"], &["a", "b", "c", "d"], false);
    check(&["a"], &["a", "b"], false);
    check(&["..."], &[], true);
    check(&["pod … is away"], &["pod a b is away"], true);
    check(&["pod …"], &["pod "], true);
    check(&["pod … is away"], &["pod a b is here"], false);
}
