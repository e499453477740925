//! The meaning of git's complaints. Exit codes distinguish nothing, so the class comes from the
//! text (`LC_ALL=C`).

use super::error::SourceError;
use super::store::RevisionStore;
use crate::fields::mask_likely_secrets;

/// The kinds of failure that a text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitErrorKind {
    /// No such reference, or an answer without any: the same text.
    EmptyRepository,
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

/// The messages of git, the first one first that counts: some failures print several.
const MESSAGE_PATTERNS: [(&str, GitErrorKind); 55] = [
    ("ut of memory", GitErrorKind::Memory),
    ("Cannot allocate memory", GitErrorKind::Memory),
    ("cannot allocate", GitErrorKind::Memory),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", GitErrorKind::HostKey),
    ("Host key verification failed", GitErrorKind::HostKey),
    ("certificate verification failed", GitErrorKind::Certificate),
    ("SSL certificate problem", GitErrorKind::Certificate),
    ("could not read Username", GitErrorKind::Denied),
    ("could not read Password", GitErrorKind::Denied),
    ("Authentication failed", GitErrorKind::Denied),
    ("returned error: 401", GitErrorKind::Denied),
    ("returned error: 403", GitErrorKind::Denied),
    // With the bracket: ssh lists the methods it tried. Without it, it is a file on this host.
    ("Permission denied (", GitErrorKind::Denied),
    ("couldn't find remote ref", GitErrorKind::EmptyRepository),
    ("not valid: is this a git repository?", GitErrorKind::NotARepository),
    ("does not appear to be a git repository", GitErrorKind::NotARepository),
    ("no such repository", GitErrorKind::NotARepository),
    ("access denied or repository not exported", GitErrorKind::NotARepository),
    ("returned error: 404", GitErrorKind::NotARepository),
    ("' not found", GitErrorKind::NotARepository),
    ("does not allow request for unadvertised object", GitErrorKind::NoCommit),
    ("not our ref", GitErrorKind::NoCommit),
    ("fsck error", GitErrorKind::Refused),
    ("mismatched algorithms", GitErrorKind::Sha256),
    ("No space left on device", GitErrorKind::Full),
    ("Disk quota exceeded", GitErrorKind::Full),
    ("died of signal 25", GitErrorKind::Full),
    ("File too large", GitErrorKind::Full),
    ("Read-only file system", GitErrorKind::NotWritable),
    ("insufficient permission", GitErrorKind::NotWritable),
    ("unable to create", GitErrorKind::NotWritable),
    ("Unable to create", GitErrorKind::NotWritable),
    ("cannot lock ref", GitErrorKind::NotWritable),
    ("unable to write", GitErrorKind::NotWritable),
    ("unable to connect to", GitErrorKind::Unreachable),
    ("Failed to connect", GitErrorKind::Unreachable),
    ("Couldn't connect", GitErrorKind::Unreachable),
    ("Could not resolve", GitErrorKind::Unreachable),
    ("Connection refused", GitErrorKind::Unreachable),
    ("Connection reset", GitErrorKind::Unreachable),
    ("Connection closed", GitErrorKind::Unreachable),
    ("Network is unreachable", GitErrorKind::Unreachable),
    ("No route to host", GitErrorKind::Unreachable),
    ("timed out", GitErrorKind::Unreachable),
    ("Operation too slow", GitErrorKind::Unreachable),
    ("Recv failure", GitErrorKind::Unreachable),
    ("Empty reply from server", GitErrorKind::Unreachable),
    ("handshake", GitErrorKind::Unreachable),
    ("returned error: 30", GitErrorKind::Moved),
    ("returned error: ", GitErrorKind::Unreachable),
    ("RPC failed", GitErrorKind::Unreachable),
    ("hung up unexpectedly", GitErrorKind::Unreachable),
    ("early EOF", GitErrorKind::Unreachable),
    ("bad line length character", GitErrorKind::Unreachable),
    // The end of every failure over ssh, so it comes last.
    ("Could not read from remote repository", GitErrorKind::Unreachable),
];

/// The mark of a line in which git repeats the peer's words.
const PEER_MESSAGE_PREFIX: &str = "remote error:";

/// Returns the kind of a complaint. Of the peer's own messages only those count that say what it
/// does not have. Any other would let a server choose the advice that a person gets.
pub(super) fn kind(stderr: &str) -> GitErrorKind {
    let own = |sign: &str, kind: GitErrorKind| {
        let is_for_peers = matches!(kind, GitErrorKind::NotARepository | GitErrorKind::NoCommit);
        let mut lines =
            lines_of_git(stderr).filter(|line| is_for_peers || !line.contains(PEER_MESSAGE_PREFIX));
        lines.any(|line| line.contains(sign))
    };
    let found = MESSAGE_PATTERNS.iter().find(|(sign, kind)| own(sign, *kind));
    found.map_or(GitErrorKind::Unknown, |(_, kind)| *kind)
}

fn lines_of_git(stderr: &str) -> impl Iterator<Item = &str> {
    stderr.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("remote:"))
}

/// Returns the line that says it best, without secrets and control characters, of a bearable
/// length, to be put into a sentence.
pub(super) fn error_detail(stderr: &str, secrets: &[String]) -> String {
    let has_sign = |line: &&str| MESSAGE_PATTERNS.iter().any(|(sign, _)| line.contains(sign));
    let fatal = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    // The line before says of which object it is, and what is wrong with it.
    let of_object = || lines_of_git(stderr).find(|line| line.starts_with("error: object "));
    let line = lines_of_git(stderr)
        .find(has_sign)
        .map(|line| if line.starts_with("fatal: fsck error") { of_object().unwrap_or(line) } else { line })
        .or_else(|| lines_of_git(stderr).find(fatal))
        .or_else(|| lines_of_git(stderr).next())
        .unwrap_or("it ended without a word");
    // ssh frames its loudest warnings.
    let line = line.trim_matches(['@', ' ']).trim_end_matches('.');
    let line = line.trim_start_matches("fatal: ").trim_start_matches("error: ");
    // First of all: a control character could hide a secret from what follows.
    let mut text = without_control_characters(line);
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret.as_str(), "***");
    }
    // A server says what it likes, also of credentials that git found by itself, and curl repeats a
    // proxy's address.
    let shown: Vec<_> = text
        .split(' ')
        .map(|word| if is_id(word) { word.into() } else { mask_likely_secrets(word) })
        .collect();
    shown.join(" ").chars().take(300).collect()
}

fn without_control_characters(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Returns the address that a server sends on to, out of a trace of the headers.
pub(super) fn redirect_target(trace: &str, secrets: &[String]) -> Option<String> {
    let header = |line: &str| {
        let (_, header) = line.split_once("Recv header: ")?;
        let (name, value) = header.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    };
    let mut found = without_control_characters(&trace.lines().find_map(header)?);
    found.truncate(found.find("/info/refs").or_else(|| found.find(['?', '#'])).unwrap_or(found.len()));
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        found = found.replace(secret.as_str(), "***");
    }
    Some(mask_likely_secrets(&found).chars().take(300).collect())
}

/// Returns whether a word is the name of an object, which looks like a secret and is none.
fn is_id(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
    word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the error of a failed exchange with a remote.
pub(super) fn exchange_error(
    kind: GitErrorKind,
    shown_location: &str,
    detail: String,
    store: &RevisionStore,
) -> SourceError {
    let shown_location = shown_location.to_owned();
    match kind {
        GitErrorKind::EmptyRepository => SourceError::EmptyRepository { shown_location },
        GitErrorKind::NotARepository => SourceError::NotARepository { shown_location, detail },
        GitErrorKind::HostKey => SourceError::HostKey { shown_location, detail },
        GitErrorKind::Certificate => SourceError::Certificate { shown_location, detail },
        GitErrorKind::Denied => SourceError::Denied { shown_location, detail },
        GitErrorKind::Refused => SourceError::Refused { shown_location, detail },
        GitErrorKind::Unreachable => SourceError::Unreachable { shown_location, detail },
        GitErrorKind::Sha256 => unsupported_hash_error(shown_location),
        GitErrorKind::Memory => {
            SourceError::Memory { shown_location, limit: store.settings().memory, detail }
        }
        GitErrorKind::Moved => SourceError::Moved { shown_location, target: None },
        GitErrorKind::Full => SourceError::Full { path: store.path().to_owned(), detail },
        GitErrorKind::NotWritable => SourceError::State {
            path: store.path().to_owned(),
            doing: "cannot write to",
            error: std::io::Error::other(detail),
        },
        GitErrorKind::NoCommit | GitErrorKind::Unknown => SourceError::Git { shown_location, detail },
    }
}

/// Returns the error of a repository whose ids are of another kind than ours.
pub(super) fn unsupported_hash_error(shown_location: String) -> SourceError {
    let feature = "a repository with SHA-256 ids".to_owned();
    SourceError::Unsupported { shown_location, feature, instead: "use one with SHA-1 ids" }
}
