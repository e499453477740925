//! What git's complaints mean. Exit codes tell nothing apart, so the class comes from the text (`LC_ALL=C`).

use super::error::Error;
use super::store::Store;
use crate::fields::blurred;

/// The kinds of failure that a text can be told to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No such reference, or an answer without any: the same text.
    Hollow,
    NotARepository,
    HostKey,
    Certificate,
    Denied,
    /// The server does not have the commit, or does not give it away by its id.
    NoCommit,
    Refused,
    /// Its ids are of another kind.
    Sha256,
    Full,
    NotWritable,
    /// It met its limit.
    Memory,
    /// The server sends to another address.
    Moved,
    Unreachable,
    Unknown,
}

/// In this order: some failures print several of these.
const SIGNS: [(&str, Kind); 55] = [
    ("ut of memory", Kind::Memory),
    ("Cannot allocate memory", Kind::Memory),
    ("cannot allocate", Kind::Memory),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", Kind::HostKey),
    ("Host key verification failed", Kind::HostKey),
    ("certificate verification failed", Kind::Certificate),
    ("SSL certificate problem", Kind::Certificate),
    ("could not read Username", Kind::Denied),
    ("could not read Password", Kind::Denied),
    ("Authentication failed", Kind::Denied),
    ("returned error: 401", Kind::Denied),
    ("returned error: 403", Kind::Denied),
    // With the bracket: ssh lists the methods it tried. Without it, it is a file on this host.
    ("Permission denied (", Kind::Denied),
    ("couldn't find remote ref", Kind::Hollow),
    ("not valid: is this a git repository?", Kind::NotARepository),
    ("does not appear to be a git repository", Kind::NotARepository),
    ("no such repository", Kind::NotARepository),
    ("access denied or repository not exported", Kind::NotARepository),
    ("returned error: 404", Kind::NotARepository),
    ("' not found", Kind::NotARepository),
    ("does not allow request for unadvertised object", Kind::NoCommit),
    ("not our ref", Kind::NoCommit),
    ("fsck error", Kind::Refused),
    ("mismatched algorithms", Kind::Sha256),
    ("No space left on device", Kind::Full),
    ("Disk quota exceeded", Kind::Full),
    ("died of signal 25", Kind::Full),
    ("File too large", Kind::Full),
    ("Read-only file system", Kind::NotWritable),
    ("insufficient permission", Kind::NotWritable),
    ("unable to create", Kind::NotWritable),
    ("Unable to create", Kind::NotWritable),
    ("cannot lock ref", Kind::NotWritable),
    ("unable to write", Kind::NotWritable),
    ("unable to connect to", Kind::Unreachable),
    ("Failed to connect", Kind::Unreachable),
    ("Couldn't connect", Kind::Unreachable),
    ("Could not resolve", Kind::Unreachable),
    ("Connection refused", Kind::Unreachable),
    ("Connection reset", Kind::Unreachable),
    ("Connection closed", Kind::Unreachable),
    ("Network is unreachable", Kind::Unreachable),
    ("No route to host", Kind::Unreachable),
    ("timed out", Kind::Unreachable),
    ("Operation too slow", Kind::Unreachable),
    ("Recv failure", Kind::Unreachable),
    ("Empty reply from server", Kind::Unreachable),
    ("handshake", Kind::Unreachable),
    ("returned error: 30", Kind::Moved),
    ("returned error: ", Kind::Unreachable),
    ("RPC failed", Kind::Unreachable),
    ("hung up unexpectedly", Kind::Unreachable),
    ("early EOF", Kind::Unreachable),
    ("bad line length character", Kind::Unreachable),
    // The end of every failure over ssh, so it comes last.
    ("Could not read from remote repository", Kind::Unreachable),
];

/// Judges a complaint. What the other side says of itself does not count.
pub(super) fn kind(stderr: &str) -> Kind {
    let own = |sign: &str| own_lines(stderr).any(|line| line.contains(sign));
    SIGNS.iter().find(|(sign, _)| own(sign)).map_or(Kind::Unknown, |(_, kind)| *kind)
}

fn own_lines(stderr: &str) -> impl Iterator<Item = &str> {
    stderr.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("remote:"))
}

/// The line that says it best, without secrets and control characters, of a bearable length, to stand in a sentence.
pub(super) fn detail(stderr: &str, secrets: &[String]) -> String {
    let said = |line: &&str| SIGNS.iter().any(|(sign, _)| line.contains(sign));
    let fatal = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let line = own_lines(stderr)
        .find(said)
        .or_else(|| own_lines(stderr).find(fatal))
        .or_else(|| own_lines(stderr).next())
        .unwrap_or("it ended without a word");
    // ssh frames its loudest warnings.
    let line = line.trim_matches(['@', ' ']).trim_end_matches('.');
    let mut text = line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret.as_str(), "***");
    }
    // A server says what it likes, also of credentials that git found by itself, and curl repeats a proxy's address.
    let shown: Vec<_> =
        text.split(' ').map(|word| if is_id(word) { word.into() } else { blurred(word) }).collect();
    shown.join(" ").chars().filter(|c| !c.is_control()).take(300).collect()
}

/// The address that a server sends on to, out of a trace of the headers.
pub(super) fn target(trace: &str, secrets: &[String]) -> Option<String> {
    let header = |line: &str| {
        let (_, header) = line.split_once("Recv header: ")?;
        let (name, value) = header.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    };
    let mut found = trace.lines().find_map(header)?;
    found.truncate(found.find("/info/refs").or_else(|| found.find(['?', '#'])).unwrap_or(found.len()));
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        found = found.replace(secret.as_str(), "***");
    }
    let shown = blurred(&found);
    Some(shown.chars().filter(|c| !c.is_control()).take(300).collect())
}

/// Whether a word is the name of an object, which looks like a secret and is none.
fn is_id(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
    word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The error of a failed exchange with a remote.
pub(super) fn error(kind: Kind, place: &str, detail: String, store: &Store) -> Error {
    let place = place.to_owned();
    match kind {
        Kind::Hollow => Error::Hollow { place },
        Kind::NotARepository => Error::NotARepository { place, detail },
        Kind::HostKey => Error::HostKey { place, detail },
        Kind::Certificate => Error::Certificate { place, detail },
        Kind::Denied => Error::Denied { place, detail },
        Kind::Refused => Error::Refused { place, detail },
        Kind::Unreachable => Error::Unreachable { place, detail },
        Kind::Sha256 => sha256(place),
        Kind::Memory => Error::Memory { place, limit: store.settings().memory, detail },
        Kind::Moved => Error::Moved { place, target: None },
        Kind::Full => Error::Full { path: store.path().to_owned(), detail },
        Kind::NotWritable => Error::State {
            path: store.path().to_owned(),
            doing: "cannot write to",
            error: std::io::Error::other(detail),
        },
        Kind::NoCommit | Kind::Unknown => Error::Git { place, detail },
    }
}

/// A repository whose ids are of another kind than ours.
pub(super) fn sha256(place: String) -> Error {
    let what = "a repository with SHA-256 ids".to_owned();
    Error::Unsupported { place, what, instead: "use one with SHA-1 ids" }
}
