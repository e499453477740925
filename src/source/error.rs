//! The errors of sources.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster_facts::FactUse;
use super::program::GitVersion;
use crate::object::{ErrorClass, Revision};

/// The reason for which a source gave no revision, no list of files or no bytes. The last revision,
/// if there is one, stays in force: none of these says that something was deleted.
///
/// `place` is the repository or folder as people know it, without credentials.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text names no source that can be read.
    #[error("{text}: not a source: {why}")]
    Location {
        /// The text, without credentials.
        text: String,
        /// The fault, and the text to write instead.
        why: String,
    },
    /// Nothing is at this path.
    #[error("{shown_location}: no such file or folder")]
    Missing {
        /// The path.
        shown_location: String,
    },
    /// A file or folder is there but cannot be read.
    #[error("{shown_location}: cannot be read: {error}")]
    Unreadable {
        /// The path.
        shown_location: String,
        /// The system's message.
        error: io::Error,
    },
    /// A folder changes all the time while it is read.
    #[error("{shown_location}: changes while it is read; it is read again when it is quiet")]
    Moving {
        /// The path.
        shown_location: String,
    },
    /// There is not one manifest in the revision.
    #[error(
        "{shown_location}: no *.yaml, *.yml or *.json file in {within}; an empty source is never taken as \"delete \
         everything\": to delete on purpose, remove the objects' files but one, or delete the objects by hand"
    )]
    Empty {
        /// The source.
        shown_location: String,
        /// The revision, or the folder.
        within: String,
    },
    /// All that the revision has are parts for others.
    #[error(
        "{shown_location}: {within} has only library charts and kustomize components, which make no objects by themselves: \
         name the folder of a chart or kustomization that uses them as `path`"
    )]
    OnlyParts {
        /// The source.
        shown_location: String,
        /// The revision, or the folder.
        within: String,
    },
    /// Its kustomizations and charts print no object.
    #[error(
        "{shown_location}: the kustomizations and charts of {within} print no object; an empty source is never taken as \
         \"delete everything\": to delete on purpose, leave one object, or delete the objects by hand"
    )]
    NothingRendered {
        /// The source.
        shown_location: String,
        /// The revision, or the folder.
        within: String,
    },
    /// The configured path is not in the revision.
    #[error(
        "{shown_location}: {feature} {path} in revision {revision}; was it moved, or is `path` misspelt?"
    )]
    NoPath {
        /// The source.
        shown_location: String,
        /// The configured path, or as much of it as leads to what is wrong.
        path: String,
        /// The finding, as `no folder`.
        feature: &'static str,
        /// The revision that was read.
        revision: Revision,
    },
    /// More entries than any real source has.
    #[error(
        "{shown_location}: more than {limit} files and folders, of which a long path counts as several; narrow it with `path` or .rhumbignore"
    )]
    TooMany {
        /// The source.
        shown_location: String,
        /// The maximum number that is read.
        limit: usize,
    },
    /// The branch or tag was there before, the repository answers, and it is there no more.
    #[error(
        "{shown_location}: {reference} is gone, the repository answers without it; nothing is deleted: restore it \
         or name another `ref`"
    )]
    Gone {
        /// The source.
        shown_location: String,
        /// The configured branch or tag.
        reference: String,
    },
    /// The branch, tag or commit never was there.
    #[error("{shown_location}: no branch, tag or commit {reference}")]
    NoReference {
        /// The source.
        shown_location: String,
        /// The configured reference.
        reference: String,
    },
    /// The answer holds nothing at all, which a broken server or proxy sends too.
    #[error(
        "{shown_location}: the server's answer names no branch at all (an empty repository, a proxy's page or a broken \
         server look the same); nothing is concluded from it"
    )]
    EmptyRepository {
        /// The source.
        shown_location: String,
    },
    /// The peer does not speak git, or has no such repository.
    #[error("{shown_location}: no git repository answers there: {detail}")]
    NotARepository {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// The server wants credentials, or does not accept those that it got.
    #[error(
        "{shown_location}: access denied: {detail}; for ssh, load a key into the agent, or put it at its default place or \
         into the credential ssh-key; for https, put a token that may read into git-credentials or the URL"
    )]
    Denied {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// A file with a key or a token cannot be read.
    #[error("{shown_location}: the credential {} cannot be read: {error}", .file.display())]
    Credential {
        /// The source.
        shown_location: String,
        /// The file.
        file: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The ssh server's key is not known, or not the known one.
    #[error(
        "{shown_location}: host key not accepted: {detail}; compare it with the one that the host publishes and put it \
         into known_hosts"
    )]
    HostKey {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// The https server's certificate is not trusted.
    #[error(
        "{shown_location}: certificate not accepted: {detail}; install its authority's certificate on this host"
    )]
    Certificate {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// The network or the server failed.
    #[error("{shown_location}: not reachable: {detail}")]
    Unreachable {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// No end within the deadline; the child and all its processes were killed.
    #[error("{shown_location}: no answer within {}; given up, it is tried again", seconds(*after))]
    Silent {
        /// The source.
        shown_location: String,
        /// The deadline.
        after: Duration,
    },
    /// The server sent what fsck refuses.
    #[error("{shown_location}: the server's objects are refused: {detail}")]
    Refused {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// A form of repository that rhumb does not read.
    #[error("{shown_location}: {feature} is not supported; {instead}")]
    Unsupported {
        /// The source.
        shown_location: String,
        /// The form.
        feature: String,
        /// The remedy.
        instead: &'static str,
    },
    /// A file or link of a repository leads to another one.
    #[error(
        "{shown_location}: {pointer}, {fault}; it is not followed, as it could lead to what only rhumb may read: {instead}"
    )]
    ForeignPointer {
        /// The repository.
        shown_location: String,
        /// The file, and where it leads.
        pointer: String,
        /// The reason for which it is not followed.
        fault: &'static str,
        /// The remedy.
        instead: &'static str,
    },
    /// The revision is in no store any more.
    #[error("{shown_location}: revision {revision} is not here and cannot be fetched")]
    Unknown {
        /// The source.
        shown_location: String,
        /// The revision asked for.
        revision: Revision,
    },
    /// The roots of a revision were not rendered yet, or not for this store.
    #[error("{shown_location}: revision {revision} is not rendered yet")]
    Unrendered {
        /// The source.
        shown_location: String,
        /// The revision.
        revision: Revision,
    },
    /// Nothing was rendered yet, as facts of the cluster are wanted for it.
    #[error("what the roots depend on in the cluster is not known yet")]
    FactsWanted(Box<FactUse>),
    /// The cluster was asked for a fact that renders depend on, and did not answer.
    #[error("what the roots depend on in the cluster cannot be read: {0}")]
    FactsUnread(String),
    /// Objects are missing or do not match their ids.
    #[error("{shown_location}: damaged repository: {detail}")]
    Damaged {
        /// The repository.
        shown_location: String,
        /// git's message.
        detail: String,
    },
    /// A file is larger than is ever read.
    #[error("{shown_location}: {size} bytes are more than the {limit} that are read at most")]
    TooLarge {
        /// The object's id.
        shown_location: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The state directory cannot be used.
    #[error(
        "state directory: {doing} {}: {error}; it must be a folder that rhumb's user owns and may write to, or \
         name another one with --state-directory or `stateDirectory`",
        path.display()
    )]
    State {
        /// The path.
        path: PathBuf,
        /// The attempted action, as `cannot create`.
        doing: &'static str,
        /// The system's message.
        error: io::Error,
    },
    /// The store has no room, on the disk or within its quota.
    #[error("state directory {}: no room: {detail}; free space there or raise the quota", path.display())]
    Full {
        /// The store.
        path: PathBuf,
        /// The limit that was met.
        detail: String,
    },
    /// Another process holds the store's lock.
    #[error(
        "state directory: another rhumb holds {}; it is tried again, or name another one with --state-directory",
        path.display()
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// The git program cannot be started.
    #[error(
        "the `git` program cannot be started: {error}; install git {} or newer",
        GitVersion::MIN_GIT_VERSION
    )]
    NoGit {
        /// The system's message.
        error: io::Error,
    },
    /// The git program runs commands that a repository's configuration names.
    #[error(
        "{found} is not used: before {} it runs commands that a repository's configuration names; install git \
         {} or newer",
        GitVersion::MIN_GIT_VERSION,
        GitVersion::MIN_GIT_VERSION
    )]
    OldGit {
        /// The version by its own word.
        found: String,
    },
    /// Git needs more memory than it gets.
    #[error(
        "{shown_location}: git needs more than the {} MiB of memory that it may have: {detail}; a file in it or its list \
         of references is too large: keep large files in Git LFS, or in another repository",
        limit >> 20
    )]
    Memory {
        /// The source.
        shown_location: String,
        /// The bytes that it may have.
        limit: u64,
        /// The line of git's complaint.
        detail: String,
    },
    /// A commit is not signed by one of the keys that the source asks for.
    #[error(
        "{shown_location}: revision {revision} is refused: {detail}; only what is signed by a key of {} is followed: have \
         it signed, or add its author's key there",
        keys.display()
    )]
    Unverified {
        /// The source.
        shown_location: String,
        /// The revision that is refused.
        revision: Revision,
        /// The faulty commit, where it is not the revision itself, and its fault.
        detail: String,
        /// The file with the keys.
        keys: PathBuf,
    },
    /// The reference was set back, or to another history, and each of its commits must be verified.
    #[error(
        "{shown_location}: revision {revision} is refused: it does not come after {accepted}, which was accepted last; if \
         the reference was set back on purpose, confirm it: {confirm}"
    )]
    Diverged {
        /// The source.
        shown_location: String,
        /// The revision that is refused.
        revision: Revision,
        /// The one that was accepted last.
        accepted: Revision,
        /// The command by which a person confirms it.
        confirm: String,
    },
    /// The history ends before the commit that was accepted last, and each one since must be
    /// verified.
    #[error(
        "{shown_location}: revision {revision} is refused: not all of the history back to {accepted}, which was accepted \
         last, is there to be verified; make the repository complete (`git fetch --unshallow`), or confirm the \
         revision: {confirm}"
    )]
    ShallowHistory {
        /// The source.
        shown_location: String,
        /// The revision that is refused.
        revision: Revision,
        /// The one that was accepted last.
        accepted: Revision,
        /// The command by which a person confirms it.
        confirm: String,
    },
    /// The file with the keys holds none, or cannot be read.
    #[error("{shown_location}: no commit can be verified by the keys of `verify`: {}{why}", file.display())]
    Keys {
        /// The source.
        shown_location: String,
        /// The file.
        file: PathBuf,
        /// The line and what is wrong in it, or what the system says.
        why: String,
    },
    /// The program is missing that verifies signatures by these keys.
    #[error(
        "{shown_location}: the program `{program}`, which verifies by the keys of `verify`, is not in the PATH: install it"
    )]
    NoVerifier {
        /// The source.
        shown_location: String,
        /// Its name.
        program: &'static str,
    },
    /// The server sends to another address, which nobody configured.
    #[error(
        "{shown_location}: the server sends on to {}, and redirects are not followed, as they would take the token \
         along; if it is right, make it the source's `url`",
        target.as_deref().unwrap_or("another address")
    )]
    Moved {
        /// The source.
        shown_location: String,
        /// The address, without credentials.
        target: Option<String>,
    },
    /// Git failed in a way that is in no table.
    #[error("{shown_location}: git failed: {detail}")]
    Git {
        /// The source.
        shown_location: String,
        /// The first line of git's complaint.
        detail: String,
    },
    /// A worker of ours ended without a result.
    #[error("{shown_location}: the reader ended without a result: {detail}")]
    Worker {
        /// The source.
        shown_location: String,
        /// The known facts.
        detail: String,
    },
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f32())
}

impl SourceError {
    /// Returns whether it says that a newer revision is not followed for want of signatures.
    pub(super) fn is_of_signatures(&self) -> bool {
        matches!(
            self,
            Self::Unverified { .. }
                | Self::Diverged { .. }
                | Self::ShallowHistory { .. }
                | Self::Keys { .. }
                | Self::NoVerifier { .. }
        )
    }

    /// Decides requeue, exit code and metric label.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Location { .. }
            | Self::Credential { .. }
            | Self::HostKey { .. }
            | Self::Certificate { .. }
            | Self::Unsupported { .. }
            | Self::ForeignPointer { .. }
            | Self::NoGit { .. }
            | Self::OldGit { .. }
            | Self::Moved { .. }
            | Self::Keys { .. }
            | Self::NoVerifier { .. }
            | Self::State { .. } => ErrorClass::Config,
            Self::Denied { .. } => ErrorClass::Forbidden,
            Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::EmptyRepository { .. }
            | Self::Busy { .. }
            | Self::Full { .. }
            | Self::Moving { .. }
            | Self::FactsWanted(_)
            | Self::FactsUnread(_)
            | Self::Git { .. } => ErrorClass::Transient,
            Self::Worker { .. } => ErrorClass::Internal,
            Self::Missing { .. }
            | Self::Unreadable { .. }
            | Self::Empty { .. }
            | Self::OnlyParts { .. }
            | Self::NothingRendered { .. }
            | Self::NoPath { .. }
            | Self::TooMany { .. }
            | Self::Gone { .. }
            | Self::NoReference { .. }
            | Self::NotARepository { .. }
            | Self::Refused { .. }
            | Self::Unknown { .. }
            | Self::Unrendered { .. }
            | Self::Damaged { .. }
            | Self::Memory { .. }
            | Self::Unverified { .. }
            | Self::Diverged { .. }
            | Self::ShallowHistory { .. }
            | Self::TooLarge { .. } => ErrorClass::Source,
        }
    }
}
