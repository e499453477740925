//! The check whether a revision may be followed: the signatures that a source requires, and the
//! revision accepted before.
//!
//! **Invariants:** nothing in a followed repository decides how it is verified. An accepted
//! revision is never judged again: a key that is taken out of the list does not undo its
//! signatures. The last accepted revision comes from outside ([`VerificationRecord`]), as neither
//! the git server nor the store on disk may move it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::Oid;
use tokio::process::Command;

use super::bounded::run_bounded;
use super::child::{self, ChildError, ChildPeer};
use super::error::SourceError;
use super::followed_repository::FollowedRepositoryError;
use super::keys::{self, VerificationKeys};
use super::lineage::{self, CommitRange};
use super::signature_report::{self, ProgramEnd};
use super::state_lock::StateLock;
use super::store::{RemainingReadQuota, RevisionStore, remove_folder};
use crate::object::{Revision, annotations};
use crate::secret::read_regular;

/// The signatures that a source asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignatureVerification {
    /// The file with the keys, of this host: a list of allowed signers, or OpenPGP public keys in
    /// armor.
    pub keys: PathBuf,
    /// The commits that must be signed.
    pub commits: VerifiedCommits,
}

/// The commits that must be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerifiedCommits {
    /// The newest.
    Head,
    /// Each that the newest brings beside the history of the one that was accepted last.
    Range,
}

/// The revision of a source that was read last, completely or not, whichever process read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastReadRevision {
    /// The repository and the followed reference in it, as the source itself names them.
    pub repository: Arc<str>,
    /// The revision.
    pub revision: Revision,
}

/// The revisions of a source, as they are recorded where its git server cannot write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VerificationRecord {
    /// The revision that was read last; none where nothing says that.
    pub last_read: Option<LastReadRevision>,
    /// The revision that was accepted last; none where none ever was.
    pub accepted_revision: Option<Revision>,
    /// A revision that a person wants to begin with anew, whatever was accepted before.
    pub confirmed: Option<Revision>,
    /// The namespace of the inventory that says so; empty where there is none.
    pub namespace: String,
}

/// The commits to verify before a revision is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VerificationRange {
    /// Nothing: it was accepted.
    Nothing,
    /// The revision alone.
    Single,
    /// All that came after this one.
    After(Revision),
}

/// The signatures that one source asks for, and what it has accepted.
#[derive(Clone, Debug)]
pub(super) struct CommitVerifier {
    verification: SignatureVerification,
    source: String,
    shown_location: String,
    verification_record: Option<VerificationRecord>,
}

impl CommitVerifier {
    pub(super) fn new(verification: &SignatureVerification, source: &str, shown_location: &str) -> Self {
        let (source, shown_location) = (source.to_owned(), shown_location.to_owned());
        Self { verification: verification.clone(), source, shown_location, verification_record: None }
    }

    /// Returns whether each commit since the accepted revision must be signed, so that the next one
    /// is judged by that.
    pub(super) fn is_of_range(&self) -> bool {
        self.verification.commits == VerifiedCommits::Range
    }

    /// Returns the last accepted revision; none before that is known.
    pub(super) fn accepted_revision(&self) -> Option<&Revision> {
        self.verification_record
            .as_ref()
            .and_then(|verification_record| verification_record.accepted_revision.as_ref())
    }

    /// Returns whether it is known what was accepted.
    pub(super) fn has_verification_record(&self) -> bool {
        self.verification_record.is_some()
    }

    /// Takes the record over; returns whether it is news. A revision that this process has accepted
    /// itself is newer than any record.
    pub(super) fn record_verification(&mut self, recorded: VerificationRecord) -> bool {
        match &mut self.verification_record {
            None => {
                self.verification_record = Some(recorded);
                true
            }
            Some(verification_record) => {
                let is_new =
                    recorded.confirmed.is_some() && verification_record.confirmed != recorded.confirmed;
                verification_record.confirmed = recorded.confirmed;
                is_new
            }
        }
    }

    /// Keeps in mind that a revision was accepted. A confirmation is for one time.
    pub(super) fn accept(&mut self, revision: &Revision) {
        let verification_record = self.verification_record.get_or_insert_default();
        verification_record.accepted_revision = Some(revision.clone());
        verification_record.confirmed.take_if(|confirmed| confirmed == revision);
    }

    pub(super) fn verification_range(&self, revision: &Revision) -> VerificationRange {
        let confirmed = self
            .verification_record
            .as_ref()
            .and_then(|verification_record| verification_record.confirmed.as_ref());
        match (self.verification.commits, self.accepted_revision()) {
            (_, Some(accepted)) if accepted == revision => VerificationRange::Nothing,
            (VerifiedCommits::Range, Some(accepted)) if confirmed != Some(revision) => {
                VerificationRange::After(accepted.clone())
            }
            _ => VerificationRange::Single,
        }
    }

    /// Returns what lies between two revisions in our own store.
    pub(super) async fn commits_between(
        &self,
        store: &RevisionStore,
        older: &Revision,
        newer: &Revision,
    ) -> Result<CommitRange, SourceError> {
        let (own, older, newer) = (store.clone(), older.clone(), newer.clone());
        let walk = move || {
            let (older, newer) = (Oid::from_str(older.as_str())?, Oid::from_str(newer.as_str())?);
            own.walk_history(|odbs| lineage::commits_between(odbs, older, newer))
        };
        let walked = run_bounded(&self.shown_location, store.settings().fetch, walk).await?;
        walked.map_err(|error| FollowedRepositoryError::from(error).into_source_error(&self.shown_location))
    }

    /// Says that a revision does not come after the one that was accepted last.
    pub(super) fn unrelated_error(&self, revision: &Revision, accepted: &Revision) -> SourceError {
        SourceError::Diverged {
            shown_location: self.shown_location.clone(),
            revision: revision.clone(),
            accepted: accepted.clone(),
            confirm: self.confirm(revision),
        }
    }

    /// Says that the history is cut off before the revision that was accepted last.
    pub(super) fn shallow_error(&self, revision: &Revision, accepted: &Revision) -> SourceError {
        SourceError::ShallowHistory {
            shown_location: self.shown_location.clone(),
            revision: revision.clone(),
            accepted: accepted.clone(),
            confirm: self.confirm(revision),
        }
    }

    /// Returns the command by which a person confirms a revision.
    fn confirm(&self, revision: &Revision) -> String {
        let namespace = self
            .verification_record
            .as_ref()
            .map_or("", |verification_record| &verification_record.namespace);
        let namespace = if namespace.is_empty() { "" } else { &format!(" --namespace {namespace}") };
        format!(
            "kubectl{namespace} annotate --overwrite configmap {} {}={revision}",
            self.source,
            annotations::ACCEPT
        )
    }

    /// Fails unless each of these commits of the store is signed by one of the keys as they are now.
    pub(super) async fn check(
        &self,
        store: &RevisionStore,
        lock: &StateLock,
        revision: &Revision,
        commits: &[Oid],
    ) -> Result<(), SourceError> {
        let bench = KeyFolder::write_keys(&self.verification.keys, &self.shown_location, store)?;
        for commit in commits {
            let mut command = bench.command(store);
            command.args(["verify-commit", "--raw", &commit.to_string()]);
            let settings = store.settings();
            let bounds = store.child_limits(settings.answer, RemainingReadQuota(settings.quota));
            let output = child::run(command, lock, bounds)
                .await
                .map_err(|failure| self.verification_error(failure, store))?;
            let report = format!("{}{}", output.stdout, output.stderr);
            let end = if output.status.success() { ProgramEnd::Success } else { ProgramEnd::Failure };
            signature_report::check_signature(&bench.keys, end, &report).map_err(|why| {
                let commit = Revision::new(&commit.to_string());
                let commit =
                    if commit == *revision { String::new() } else { format!("commit {commit} in it: ") };
                SourceError::Unverified {
                    shown_location: self.shown_location.clone(),
                    revision: revision.clone(),
                    detail: format!("{commit}{why}"),
                    keys: self.verification.keys.clone(),
                }
            })?;
        }
        Ok(())
    }

    fn verification_error(&self, failure: ChildError, store: &RevisionStore) -> SourceError {
        failure.into_source_error(&self.shown_location, store.settings().answer, |shown_location| {
            let detail = "it says more of a signature than there is to say".to_owned();
            SourceError::Git { shown_location, detail }
        })
    }
}

/// A folder with the keys in the form that the programs read, and for what they write; nobody else
/// may read it.
struct KeyFolder {
    folder: PathBuf,
    keys: VerificationKeys,
}

impl Drop for KeyFolder {
    fn drop(&mut self) {
        // Rests are removed when the next one is laid.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The configuration of gpg instead of a person's own: these keys, all of them trusted, and no
/// others.
const GPG_CONFIGURATION: &str = "no-default-keyring\nkeyring trusted.gpg\ntrust-model always\nno-auto-key-retrieve\nno-auto-key-import\n\
                   no-auto-check-trustdb\ndisable-dirmngr\nlock-never\nbatch\nno-tty\n\
                   weak-digest SHA1\nweak-digest RIPEMD160\n";

impl KeyFolder {
    fn write_keys(file: &Path, shown_location: &str, store: &RevisionStore) -> Result<Self, SourceError> {
        let unusable = |why: String| SourceError::Keys {
            shown_location: shown_location.to_owned(),
            file: file.to_owned(),
            why,
        };
        let bytes =
            read_regular(file, keys::MAX_KEYS_BYTES + 1).map_err(|error| unusable(format!(": {error}")))?;
        let keys =
            VerificationKeys::read(&bytes).map_err(|(line, why)| unusable(format!(":{line}: {why}")))?;
        let program = keys.program();
        if !is_in_path(program) {
            return Err(SourceError::NoVerifier { shown_location: shown_location.to_owned(), program });
        }
        let folder = store.state_directory().join("verify");
        let bench = Self { folder, keys };
        bench.fill().map_err(|error| SourceError::State {
            path: bench.folder.clone(),
            doing: "cannot write to",
            error,
        })?;
        Ok(bench)
    }

    fn fill(&self) -> io::Result<()> {
        // A process that was killed may have left one; whoever is here holds the lock.
        remove_folder(&self.folder)?;
        fs::DirBuilder::new().mode(0o700).create(&self.folder)?;
        match &self.keys {
            VerificationKeys::Ssh(signers) => fs::write(self.signers_file(), signers),
            VerificationKeys::OpenPgp(ring) => {
                fs::write(self.folder.join("trusted.gpg"), ring)?;
                fs::write(self.folder.join("gpg.conf"), GPG_CONFIGURATION)
            }
        }
    }

    fn signers_file(&self) -> PathBuf {
        self.folder.join("signers")
    }

    /// Returns a git command, without a subcommand yet, that verifies by these keys alone. Only the
    /// configuration of our own store is read, and the settings here win over that.
    fn command(&self, store: &RevisionStore) -> Command {
        let mut command = child::git_command(store.path(), ChildPeer::Nobody);
        // git goes by the form of the signature: what the keys are not for is verified by nothing.
        let (ssh, openpgp) = match &self.keys {
            VerificationKeys::Ssh(_) => ("ssh-keygen", "false"),
            VerificationKeys::OpenPgp(_) => ("false", "gpg"),
        };
        let settings = [
            format!("gpg.program={openpgp}"),
            format!("gpg.openpgp.program={openpgp}"),
            format!("gpg.ssh.program={ssh}"),
            "gpg.x509.program=false".to_owned(),
            "gpg.minTrustLevel=undefined".to_owned(),
        ];
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        let mut signers = OsString::from("gpg.ssh.allowedSignersFile=");
        signers.push(self.signers_file());
        command.arg("-c").arg(signers).arg("-c").arg("gpg.ssh.revocationFile=/dev/null");
        command.env("GNUPGHOME", &self.folder).env("TMPDIR", &self.folder);
        let history = store.history_path().join("objects");
        if history.exists() {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", child::quote_path(&history));
        }
        command
    }
}

/// Returns whether a program can be started by its name.
fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns why the keys of a file cannot be used to verify anything; none where they can.
pub(crate) fn unusable_keys(file: &Path) -> Option<String> {
    let keys = match read_regular(file, keys::MAX_KEYS_BYTES + 1) {
        Err(error) => return Some(format!("{}: {error}", file.display())),
        Ok(bytes) => VerificationKeys::read(&bytes),
    };
    match keys {
        Err((line, why)) => Some(format!("{}:{line}: {why}", file.display())),
        Ok(keys) if !is_in_path(keys.program()) => Some(format!(
            "{}: the program `{}` that verifies by these keys is not in the PATH",
            file.display(),
            keys.program()
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(commits: VerifiedCommits, verification_record: Option<(&str, &str)>) -> CommitVerifier {
        let verification = SignatureVerification { keys: "keys".into(), commits };
        let mut guard = CommitVerifier::new(&verification, "shop", "place");
        let revision = |text: &str| (!text.is_empty()).then(|| Revision::new(text));
        guard.verification_record = verification_record.map(|(accepted, confirmed)| VerificationRecord {
            accepted_revision: revision(accepted),
            confirmed: revision(confirmed),
            ..VerificationRecord::default()
        });
        guard
    }

    #[test]
    fn what_is_verified_follows_from_what_was_accepted() {
        #[track_caller]
        fn check(
            commits: VerifiedCommits,
            verification_record: (&str, &str),
            revision: &str,
            expected: VerificationRange,
        ) {
            let found =
                guard(commits, Some(verification_record)).verification_range(&Revision::new(revision));
            assert_eq!(found, expected, "{commits:?} {verification_record:?} {revision}");
        }
        let since = |revision| VerificationRange::After(Revision::new(revision));
        check(VerifiedCommits::Head, ("", ""), "b", VerificationRange::Single);
        check(VerifiedCommits::Head, ("a", ""), "b", VerificationRange::Single);
        check(VerifiedCommits::Head, ("b", ""), "b", VerificationRange::Nothing);
        check(VerifiedCommits::Range, ("", ""), "b", VerificationRange::Single);
        check(VerifiedCommits::Range, ("a", ""), "b", since("a"));
        check(VerifiedCommits::Range, ("b", ""), "b", VerificationRange::Nothing);
        // A confirmation names one revision, and spares it nothing but where it comes from.
        check(VerifiedCommits::Range, ("a", "b"), "b", VerificationRange::Single);
        check(VerifiedCommits::Range, ("a", "c"), "b", since("a"));
        let ranges = [VerifiedCommits::Head, VerifiedCommits::Range].map(|of| guard(of, None).is_of_range());
        assert_eq!(ranges, [false, true]);
    }

    #[test]
    fn a_record_is_never_newer_than_what_this_process_accepted() {
        let mut guard = guard(VerifiedCommits::Range, None);
        let verification_record = |accepted: &str, confirmed: Option<&str>| VerificationRecord {
            accepted_revision: Some(Revision::new(accepted)),
            confirmed: confirmed.map(Revision::new),
            ..VerificationRecord::default()
        };
        assert!(!guard.has_verification_record());
        assert!(guard.record_verification(verification_record("a", None)));
        guard.accept(&Revision::new("b"));
        assert!(!guard.record_verification(verification_record("a", None)));
        assert_eq!(guard.accepted_revision(), Some(&Revision::new("b")));
        assert!(guard.record_verification(verification_record("a", Some("c"))));
        assert!(!guard.record_verification(verification_record("a", Some("c"))));
        assert_eq!(guard.verification_range(&Revision::new("c")), VerificationRange::Single);
        guard.accept(&Revision::new("c"));
        guard.accept(&Revision::new("d"));
        let back = guard.verification_range(&Revision::new("c"));
        assert_eq!(back, VerificationRange::After(Revision::new("d")), "a confirmation counts once");
    }
}
