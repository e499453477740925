//! The file `rhumb.lock` of a root: the version and digest of each chart of a server that it uses.
//!
//! Owns the form of the file. Knows no server, and no root.

use std::fmt::Write as _;
use std::sync::Arc;

use super::charts::ChartDigest;
use super::kustomize::{error_at, sanitize_text};
use crate::manifest::{PlacedValue, TextPosition, read_first_document};
use crate::object::Diagnostic;

/// The name of the file in the folder of its root.
pub(crate) const LOCK_FILE: &str = "rhumb.lock";
/// The words at the beginning of the file.
const CHART_LOCK_API_VERSION: &str = "rhumb.dev/v1";
const CHART_LOCK_KIND: &str = "ChartLock";
/// Charts that one root may have.
const MAX_LOCKED_CHARTS: usize = 1_000;
/// Bytes of one text in the file.
const MAX_FIELD_BYTES: usize = 4_000;
/// The comment at the top of the file.
const GENERATED_COMMENT: &str = "# Written by `rhumb lock`.\n";

/// Returns whether a text is a lock, by its beginning.
pub(crate) fn is_lock(begin: &[u8]) -> bool {
    String::from_utf8_lossy(begin).lines().any(|line| line == "kind: ChartLock")
}

/// One chart of a server, by version and digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockedChart {
    /// The repository.
    pub repository: String,
    /// The name.
    pub name: String,
    /// The range of versions that is asked for; none where one version is.
    pub constraint: Option<String>,
    /// The version.
    pub version: String,
    /// The digest of the archive.
    pub digest: ChartDigest,
}

impl LockedChart {
    /// Returns the text by which a chart asks for it.
    pub(crate) fn request_text(&self) -> &str {
        self.constraint.as_deref().unwrap_or(&self.version)
    }
}

/// `redis 7.1.0 from https://charts.example.org`.
impl std::fmt::Display for LockedChart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, version) = (sanitize_text(&self.name), sanitize_text(&self.version));
        write!(f, "{name} {version} from {}", sanitize_text(&self.repository))
    }
}

/// The charts of one root, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChartLock {
    charts: Vec<LockedChart>,
}

impl ChartLock {
    /// Returns a lock of these charts.
    pub(crate) fn of(mut charts: Vec<LockedChart>) -> Self {
        charts.sort_unstable();
        charts.dedup();
        Self { charts }
    }

    /// Returns the charts, in order.
    pub(crate) fn charts(&self) -> &[LockedChart] {
        &self.charts
    }

    /// Returns the chart that is meant by a version, or by the text of a range.
    pub(crate) fn find(&self, repository: &str, name: &str, requested: &str) -> Option<&LockedChart> {
        self.charts.iter().find(|chart| {
            is_same_repository(&chart.repository, repository)
                && chart.name == name
                && chart.request_text() == requested
        })
    }

    /// Returns the digest of a version, by whatever text it is asked for.
    pub(crate) fn digest_of(&self, repository: &str, name: &str, version: &str) -> Option<ChartDigest> {
        let same = |chart: &&LockedChart| {
            is_same_repository(&chart.repository, repository)
                && chart.name == name
                && chart.version == version
        };
        self.charts.iter().find(same).map(|chart| chart.digest)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Fails with all that is wrong in it.
    pub(crate) fn read(file: &Arc<str>, bytes: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let read = read_first_document(file, bytes);
        let mut faults: Vec<_> = read.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
        let Some(root) = read.documents.first().filter(|_| faults.is_empty()) else {
            if faults.is_empty() {
                faults.push(fault(file, TextPosition { line: 0, column: 0 }, "the file is empty"));
            }
            return Err(faults);
        };
        for (key, expected) in [("apiVersion", CHART_LOCK_API_VERSION), ("kind", CHART_LOCK_KIND)] {
            if text(root, key) != Some(expected) {
                faults.push(fault(file, root.position, format!("{key} must be {expected}")));
            }
        }
        let items = field(root, "charts").map(PlacedValue::items).unwrap_or_default();
        if items.len() > MAX_LOCKED_CHARTS {
            faults.push(fault(file, root.position, format!("it has more than {MAX_LOCKED_CHARTS} charts")));
            return Err(faults);
        }
        let mut charts = Vec::new();
        for item in items {
            match read_locked_chart(item) {
                Ok(chart) => charts.push(chart),
                Err(message) => faults.push(fault(file, item.position, message)),
            }
        }
        if faults.is_empty() { Ok(Self::of(charts)) } else { Err(faults) }
    }

    /// Returns the text of the file.
    pub(crate) fn to_text(&self) -> String {
        let mut out =
            format!("{GENERATED_COMMENT}apiVersion: {CHART_LOCK_API_VERSION}\nkind: {CHART_LOCK_KIND}\n");
        if self.charts.is_empty() {
            return out + "charts: []\n";
        }
        out.push_str("charts:\n");
        for chart in &self.charts {
            let digest = chart.digest.to_string();
            let fields = [
                ("repository", Some(&chart.repository)),
                ("name", Some(&chart.name)),
                ("constraint", chart.constraint.as_ref()),
                ("version", Some(&chart.version)),
                ("digest", Some(&digest)),
            ];
            let fields = fields.iter().filter_map(|(key, value)| Some((key, (*value)?)));
            for ((key, value), number) in fields.zip(0..) {
                let start = if number == 0 { "- " } else { "  " };
                let _ = writeln!(out, "{start}{key}: {}", quote(value));
            }
        }
        out
    }
}

/// A difference between two locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockChange {
    /// A chart is new.
    Added(LockedChart),
    /// A chart is not asked for any more.
    Removed(LockedChart),
    /// A chart has another version or content: before, and now.
    Changed(LockedChart, LockedChart),
}

impl LockChange {
    /// Returns what makes the second lock of the first, in the order of charts.
    pub(crate) fn between(before: &ChartLock, after: &ChartLock) -> Vec<Self> {
        let is_same = |a: &LockedChart, b: &LockedChart| {
            is_same_repository(&a.repository, &b.repository)
                && a.name == b.name
                && a.request_text() == b.request_text()
        };
        let mut changes = Vec::new();
        for chart in after.charts() {
            match before.charts().iter().find(|known| is_same(known, chart)) {
                None => changes.push(Self::Added(chart.clone())),
                Some(known) if known != chart => changes.push(Self::Changed(known.clone(), chart.clone())),
                Some(_) => {}
            }
        }
        let is_gone = |known: &&LockedChart| !after.charts().iter().any(|chart| is_same(known, chart));
        changes.extend(before.charts().iter().filter(is_gone).cloned().map(Self::Removed));
        changes
    }
}

/// `+ redis 7.1.0 from https://charts.example.org, for ~7`.
impl std::fmt::Display for LockChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let chart = match self {
            Self::Added(chart) => {
                write!(f, "+ {chart}")?;
                chart
            }
            Self::Removed(chart) => {
                write!(f, "- {chart}")?;
                chart
            }
            Self::Changed(before, chart) if before.version == chart.version => {
                return write!(f, "~ {chart}: {} becomes {}", before.digest, chart.digest);
            }
            Self::Changed(before, chart) => {
                write!(f, "~ {chart}, before {}", sanitize_text(&before.version))?;
                chart
            }
        };
        match &chart.constraint {
            Some(constraint) => write!(f, ", for {}", sanitize_text(constraint)),
            None => Ok(()),
        }
    }
}

/// Returns a text as YAML reads it back, whatever it looks like.
fn quote(text: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-./:".contains(letter);
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.chars().all(is_word)
        && text.contains(['-', '/', ':'])
        && !text.ends_with(':');
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Returns whether two addresses are one: an end with a slash says nothing.
fn is_same_repository(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

fn read_locked_chart(item: &PlacedValue) -> Result<LockedChart, String> {
    let needed = |key: &str| match text(item, key) {
        Some(text) if !text.is_empty() && text.len() <= MAX_FIELD_BYTES => Ok(text.to_owned()),
        _ => Err(format!("each chart needs {key}, which is a text")),
    };
    let known = ["repository", "name", "constraint", "version", "digest"];
    if let Some(entry) = item.entries().iter().find(|entry| !known.contains(&entry.key.as_str())) {
        return Err(format!("{} is no key of a chart", sanitize_text(&entry.key)));
    }
    Ok(LockedChart {
        repository: needed("repository")?,
        name: needed("name")?,
        constraint: field(item, "constraint").map(|_| needed("constraint")).transpose()?,
        version: needed("version")?,
        digest: needed("digest")?
            .parse()
            .map_err(|_| "digest must be `sha256:` and 64 hex digits".to_owned())?,
    })
}

fn field<'a>(value: &'a PlacedValue, key: &str) -> Option<&'a PlacedValue> {
    value.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

fn text<'a>(value: &'a PlacedValue, key: &str) -> Option<&'a str> {
    field(value, key)?.text()
}

fn fault(file: &Arc<str>, position: TextPosition, message: impl Into<String>) -> Diagnostic {
    error_at(file, position, "chart-lock", message, "write it anew with `rhumb lock`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(letter: &str) -> String {
        format!("sha256:{}", letter.repeat(64))
    }

    fn chart(name: &str, constraint: Option<&str>, version: &str) -> LockedChart {
        LockedChart {
            repository: "https://charts.example.org".into(),
            name: name.into(),
            constraint: constraint.map(str::to_owned),
            version: version.into(),
            digest: digest("a").parse().unwrap(),
        }
    }

    #[test]
    fn a_lock_reads_as_it_is_written() {
        let lock = ChartLock::of(vec![
            chart("redis", Some("~7.1"), "7.1.0"),
            chart("a: \"b\"", None, "1.10"),
            chart("redis", Some("~7.1"), "7.1.0"),
        ]);
        let text = lock.to_text();
        insta::assert_snapshot!(text);
        assert_eq!(ChartLock::read(&"rhumb.lock".into(), text.as_bytes()), Ok(lock));
        let empty = ChartLock::default();
        assert_eq!(ChartLock::read(&"rhumb.lock".into(), empty.to_text().as_bytes()), Ok(empty));
    }

    #[test]
    fn each_text_reads_as_it_is_written() {
        let long = format!("~{}", "1".repeat(2_000));
        for text in [
            "*",
            "~7.1",
            ">=1 <2 || ^3",
            "1.0",
            "1e3",
            "null",
            "~",
            "a: b",
            "- a",
            "#",
            "'\"",
            "a\nb",
            "é",
            "y",
            "0x1",
            "a:",
            &long,
        ] {
            let lock = ChartLock::of(vec![chart(text, Some(text), text)]);
            let read = ChartLock::read(&"rhumb.lock".into(), lock.to_text().as_bytes());
            assert_eq!(read, Ok(lock), "{text}");
        }
    }

    #[test]
    fn a_chart_is_found_by_its_version_or_by_the_text_of_its_range() {
        let lock = ChartLock::of(vec![chart("redis", Some("~7.1"), "7.1.0"), chart("web", None, "1.0.0")]);
        let check = |repository: &str, name: &str, requested: &str, expected: Option<&str>| {
            let found = lock.find(repository, name, requested).map(|chart| chart.version.as_str());
            assert_eq!(found, expected, "{repository} {name} {requested}");
        };
        check("https://charts.example.org", "redis", "~7.1", Some("7.1.0"));
        check("https://charts.example.org/", "web", "1.0.0", Some("1.0.0"));
        check("https://charts.example.org", "redis", "7.1.0", None);
        check("https://charts.example.org", "redis", "~7", None);
        check("https://charts.example.com", "web", "1.0.0", None);
    }

    #[test]
    fn the_changes_of_a_lock_are_reported_one_by_one() {
        let lock = |charts: &[LockedChart]| ChartLock::of(charts.to_vec());
        let other = LockedChart { digest: digest("b").parse().unwrap(), ..chart("web", None, "1.0.0") };
        let before = lock(&[
            chart("redis", Some("~7"), "7.1.0"),
            chart("web", None, "1.0.0"),
            chart("old", None, "1.0.0"),
        ]);
        let after = lock(&[chart("redis", Some("~7"), "7.2.0"), other, chart("new", None, "2.0.0")]);
        let changes: Vec<_> = LockChange::between(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(
            changes,
            [
                "+ new 2.0.0 from https://charts.example.org".to_owned(),
                "~ redis 7.2.0 from https://charts.example.org, before 7.1.0, for ~7".to_owned(),
                format!(
                    "~ web 1.0.0 from https://charts.example.org: {} becomes {}",
                    digest("a"),
                    digest("b")
                ),
                "- old 1.0.0 from https://charts.example.org".to_owned(),
            ]
        );
        assert_eq!(LockChange::between(&after, &after), []);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        let check = |text: &str, expected: &[&str]| {
            let faults = ChartLock::read(&"rhumb.lock".into(), text.as_bytes()).unwrap_err();
            let faults: Vec<_> =
                faults.iter().map(|found| format!("{}: {}", found.origin, found.message)).collect();
            assert_eq!(faults, expected, "{text}");
        };
        let head = "apiVersion: rhumb.dev/v1\nkind: ChartLock\ncharts:\n";
        check("", &["rhumb.lock: the file is empty"]);
        check(
            "apiVersion: rhumb.dev/v2\ncharts: []\n",
            &["rhumb.lock:1: apiVersion must be rhumb.dev/v1", "rhumb.lock:1: kind must be ChartLock"],
        );
        check(&format!("{head}- name: a\n"), &["rhumb.lock:4: each chart needs repository, which is a text"]);
        check(
            &format!("{head}- {{repository: a, name: b, version: 1.0.0, digest: 'sha256:00'}}\n"),
            &["rhumb.lock:4: digest must be `sha256:` and 64 hex digits"],
        );
        check(&format!("{head}- {{names: a}}\n"), &["rhumb.lock:4: names is no key of a chart"]);
        check(
            &format!("{head}- {{repository: a, name: b, version: 1.0, digest: '{}'}}\n", digest("b")),
            &["rhumb.lock:4: each chart needs version, which is a text"],
        );
    }
}
