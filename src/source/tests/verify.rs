//! Commits that must be signed, with real keys and signatures.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::fixture::{TestRepository, git, git_command};
use super::server::{ScriptedGitServer, ServerBehaviour};
use crate::object::{ErrorClass, Revision};
use crate::source::{
    GitLocation, ResolvedLocation, SignatureVerification, Source, SourceError, SourceSettings,
    TransportPolicy, VerificationRecord, VerifiedCommits,
};

/// Returns whether the programs are there that make signatures.
fn can_sign() -> bool {
    let has = |program: &str, word: &str| Command::new(program).arg(word).output().is_ok();
    if has("ssh-keygen", "-?") && has("gpg", "--version") {
        return true;
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED: there is no ssh-keygen or no gpg");
    false
}

/// The place of a repository: on this host, or behind a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepositoryPlace {
    Here,
    Remote,
}

/// A repository with signed commits, and the keys.
struct VerifyFixture {
    repo: TestRepository,
    keys: TempDir,
    state: TempDir,
    server: Option<(ScriptedGitServer, TempDir)>,
}

impl VerifyFixture {
    /// Returns a repository with one commit that `ann` has signed, whose key is the one that
    /// counts.
    fn new(far: RepositoryPlace) -> (Self, Revision) {
        let (repo, keys) = (TestRepository::new(), tempfile::tempdir().unwrap());
        for name in ["ann", "eve"] {
            let file = keys.path().join(name);
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&file);
            assert!(command.status().unwrap().success());
        }
        let server = (far == RepositoryPlace::Remote).then(|| {
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink(repo.path(), folder.path().join("repo")).unwrap();
            (ScriptedGitServer::start(folder.path(), ServerBehaviour::git()), folder)
        });
        let fixture = Self { repo, keys, state: tempfile::tempdir().unwrap(), server };
        fixture.trust("", "ann");
        let first = fixture.signed("ann", "1");
        (fixture, first)
    }

    fn signers(&self) -> PathBuf {
        self.keys.path().join("signers")
    }

    fn public(&self, name: &str) -> String {
        fs::read_to_string(self.keys.path().join(format!("{name}.pub"))).unwrap()
    }

    /// Writes the list of signers: one line with these options and this key.
    fn trust(&self, options: &str, name: &str) {
        fs::write(self.signers(), format!("* {options} {}", self.public(name))).unwrap();
    }

    /// Commits a manifest with this text, signed by a key.
    fn signed(&self, name: &str, text: &str) -> Revision {
        fs::write(self.repo.path().join("a.yaml"), text).unwrap();
        self.repo.git(&["add", "--all"]);
        self.sign(name, &["commit", "--quiet", "--allow-empty", "--gpg-sign", "--message=signed"])
    }

    fn sign(&self, name: &str, args: &[&str]) -> Revision {
        let key = format!("user.signingKey={}", self.keys.path().join(name).display());
        self.repo
            .git(&[&["-c", "gpg.format=ssh", "-c", "gpg.ssh.program=ssh-keygen", "-c", &key], args].concat());
        self.repo.head()
    }

    fn unsigned(&self, text: &str) -> Revision {
        self.repo.commit(&[("a.yaml", text)])
    }

    fn reset(&self, revision: &Revision) {
        self.repo.git(&["reset", "--quiet", "--hard", revision.as_str()]);
    }

    /// Points the branch at a commit with these lines of a head, as whoever has the server can.
    fn forge(&self, text: &str) -> Revision {
        let file = self.keys.path().join("commit");
        fs::write(&file, text).unwrap();
        let id = self.repo.git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]);
        let revision = Revision::new(&id);
        self.reset(&revision);
        revision
    }

    fn raw(&self, revision: &Revision) -> String {
        format!("{}\n", self.repo.git(&["cat-file", "commit", revision.as_str()]))
    }

    fn open(&self, commits: VerifiedCommits) -> Source {
        let url = match &self.server {
            Some((server, _)) => server.url("git"),
            None => self.repo.path().to_str().unwrap().to_owned(),
        };
        let verify = Some(SignatureVerification { keys: self.signers(), commits });
        let location = ResolvedLocation::Git(GitLocation { verify, ..GitLocation::new(url) });
        let settings = SourceSettings { transports: TransportPolicy::Any, ..SourceSettings::default() };
        Source::open_with("test", &location, self.state.path(), settings).unwrap()
    }

    /// Returns a source that knows what was accepted.
    fn anchored(&self, commits: VerifiedCommits, accepted: Option<&Revision>) -> Source {
        let mut source = self.open(commits);
        source.record_verification(VerificationRecord { accepted_revision: accepted.cloned(), ..recorded() });
        source
    }
}

/// Returns where it is recorded what was accepted.
fn recorded() -> VerificationRecord {
    VerificationRecord { namespace: "rhumb-here".to_owned(), ..VerificationRecord::default() }
}

/// Looks, and expects a revision or words of an error that leaves what was in force as it was.
async fn check(source: &mut Source, expected: Result<&Revision, &str>) {
    let before = source.current_revision().cloned();
    match (source.observe().await, expected) {
        (Ok(seen), Ok(expected)) => assert_eq!(seen.revision, *expected),
        (Err(error), Err(expected)) => {
            assert!(error.to_string().contains(expected), "{error}, not {expected}");
            if before.is_some() {
                assert_eq!(source.current_revision(), before.as_ref(), "{error}");
            }
        }
        (found, expected) => panic!("{found:?}, not {expected:?}"),
    }
}

#[tokio::test]
async fn only_what_a_trusted_key_has_signed_is_followed() {
    if !can_sign() {
        return;
    }
    for far in [RepositoryPlace::Here, RepositoryPlace::Remote] {
        let (fixture, first) = VerifyFixture::new(far);
        let mut source = fixture.anchored(VerifiedCommits::Head, None);
        check(&mut source, Ok(&first)).await;
        fixture.signed("eve", "2");
        check(&mut source, Err("No principal matched")).await;
        let unsigned = fixture.unsigned("3");
        check(&mut source, Err("it has no SSH signature")).await;
        let error = source.observe().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Source);
        assert!(error.to_string().contains(unsigned.as_str()), "{error}");
        // The signature of another commit, which is of the right key.
        let signed = fixture.raw(&first);
        let tree = |text: &str| text.lines().next().unwrap().to_owned();
        fixture.forge(&signed.replace(&tree(&signed), &tree(&fixture.raw(&unsigned))));
        check(&mut source, Err("its signature does not hold")).await;
        // Below an unsigned commit, a signed one vouches for the history as it is.
        fixture.reset(&unsigned);
        let fourth = fixture.signed("ann", "4");
        check(&mut source, Ok(&fourth)).await;
        // The branch is set back to what is signed.
        fixture.reset(&first);
        check(&mut source, Ok(&first)).await;
    }
}

#[tokio::test]
async fn the_list_of_signers_is_read_anew_and_its_options_count() {
    if !can_sign() {
        return;
    }
    let (fixture, _) = VerifyFixture::new(RepositoryPlace::Here);
    let mut source = fixture.anchored(VerifiedCommits::Head, None);
    fixture.trust("valid-before=\"20200101\"", "ann");
    check(&mut source, Err("key has expired")).await;
    fixture.trust("namespaces=\"file\"", "ann");
    check(&mut source, Err("not permitted for use in signature namespace \"git\"")).await;
    fs::remove_file(fixture.signers()).unwrap();
    check(&mut source, Err("signers: No such file")).await;
    assert_eq!(source.observe().await.unwrap_err().class(), ErrorClass::Config);
    fs::write(fixture.signers(), "# ours\nann is trusted\n").unwrap();
    check(&mut source, Err("signers:2: it is no allowed signer")).await;
    fixture.trust("", "eve");
    let second = fixture.signed("eve", "2");
    check(&mut source, Ok(&second)).await;
    // An accepted revision stays so when its key goes, also for the next process.
    fixture.trust("", "ann");
    check(&mut source, Ok(&second)).await;
    check(&mut fixture.anchored(VerifiedCommits::Head, Some(&second)), Ok(&second)).await;
    check(&mut fixture.anchored(VerifiedCommits::Head, None), Err("No principal matched")).await;
}

/// Merges a branch with one commit, which nobody has signed, by a signed commit.
fn merge_unsigned(fixture: &VerifyFixture) -> (Revision, Revision) {
    fixture.repo.git(&["checkout", "--quiet", "-b", "topic"]);
    let topic = fixture.repo.commit(&[("b.yaml", "b")]);
    fixture.repo.git(&["checkout", "--quiet", "main"]);
    fixture.signed("ann", "2");
    let args = ["merge", "--quiet", "--no-ff", "--gpg-sign", "--message=merge", "topic"];
    (topic, fixture.sign("ann", &args))
}

#[tokio::test]
async fn a_range_is_followed_when_each_of_its_commits_is_signed() {
    if !can_sign() {
        return;
    }
    for far in [RepositoryPlace::Here, RepositoryPlace::Remote] {
        let (fixture, first) = VerifyFixture::new(far);
        let mut source = fixture.anchored(VerifiedCommits::Range, None);
        check(&mut source, Ok(&first)).await;
        fixture.signed("ann", "2");
        fixture.signed("ann", "3");
        let fourth = fixture.signed("ann", "4");
        check(&mut source, Ok(&fourth)).await;
        let unsigned = fixture.unsigned("5");
        fixture.signed("ann", "6");
        check(&mut source, Err(&format!("commit {unsigned} in it: it has no SSH signature"))).await;
        fixture.reset(&fourth);
        let (topic, merge) = merge_unsigned(&fixture);
        check(&mut source, Err(&format!("commit {topic} in it: it has no SSH signature"))).await;
        check(&mut fixture.anchored(VerifiedCommits::Head, None), Ok(&merge)).await;
        // An unsigned head is reported as what it is.
        fixture.unsigned("7");
        check(&mut source, Err("is refused: it has no SSH signature")).await;
    }
}

#[tokio::test]
async fn a_range_never_goes_back_or_sideways_unless_a_person_confirms_it() {
    if !can_sign() {
        return;
    }
    for far in [RepositoryPlace::Here, RepositoryPlace::Remote] {
        let (fixture, first) = VerifyFixture::new(far);
        let second = fixture.signed("ann", "2");
        let mut source = fixture.anchored(VerifiedCommits::Range, Some(&second));
        check(&mut source, Ok(&second)).await;
        fixture.reset(&first);
        check(&mut source, Err(&format!("does not come after {second}"))).await;
        let sideways = fixture.signed("ann", "3");
        let words = format!(
            "confirm it: kubectl --namespace rhumb-here annotate --overwrite configmap test rhumb.dev/accept={sideways}"
        );
        check(&mut source, Err(&words)).await;
        let anchor = |confirmed: &Revision| VerificationRecord {
            accepted_revision: Some(second.clone()),
            confirmed: Some(confirmed.clone()),
            ..recorded()
        };
        assert!(source.record_verification(anchor(&first)));
        check(&mut source, Err("does not come after")).await;
        assert!(source.record_verification(anchor(&sideways)));
        check(&mut source, Ok(&sideways)).await;
        // Once.
        fixture.reset(&second);
        check(&mut source, Err(&format!("does not come after {sideways}"))).await;
        // A confirmed revision must be signed all the same.
        fixture.reset(&first);
        let unsigned = fixture.unsigned("4");
        source.record_verification(anchor(&unsigned));
        check(&mut source, Err("it has no SSH signature")).await;
    }
}

#[tokio::test]
async fn a_new_host_goes_on_from_what_is_recorded() {
    if !can_sign() {
        return;
    }
    for far in [RepositoryPlace::Here, RepositoryPlace::Remote] {
        let (fixture, first) = VerifyFixture::new(far);
        let second = fixture.signed("ann", "2");
        fixture.unsigned("3");
        let fourth = fixture.signed("ann", "4");
        let mut source = fixture.open(VerifiedCommits::Range);
        assert!(!source.has_verification_record());
        assert_eq!(source.observe().await.unwrap_err().class(), ErrorClass::Internal);
        source
            .record_verification(VerificationRecord { accepted_revision: Some(first.clone()), ..recorded() });
        check(&mut source, Err("in it: it has no SSH signature")).await;
        // The last accepted revision is in force, so that it is defended.
        assert_eq!(source.current_revision(), Some(&first));
        assert_eq!(source.snapshot(&first).unwrap().files.len(), 1);
        check(&mut fixture.anchored(VerifiedCommits::Range, Some(&fourth)), Ok(&fourth)).await;
        fixture.reset(&second);
        check(&mut fixture.anchored(VerifiedCommits::Range, Some(&fourth)), Err("does not come after")).await;
        let nobodys = Revision::new(&"0".repeat(40));
        check(&mut fixture.anchored(VerifiedCommits::Range, Some(&nobodys)), Err("does not come after"))
            .await;
    }
}

#[tokio::test]
async fn where_a_history_is_cut_is_not_where_it_began() {
    if !can_sign() {
        return;
    }
    let (fixture, first) = VerifyFixture::new(RepositoryPlace::Remote);
    fixture.unsigned("2");
    fixture.signed("ann", "3");
    // Our own store ends at the newest commit, and the history is fetched for the rest.
    check(&mut fixture.anchored(VerifiedCommits::Range, Some(&first)), Err("in it: it has no SSH signature"))
        .await;
    // A server that has no more itself.
    let clone = fixture.keys.path().join("clone");
    let url = format!("file://{}", fixture.repo.path().display());
    git(fixture.keys.path(), &["clone", "--quiet", "--depth=1", &url, "clone"]);
    for url in [clone.to_str().unwrap().to_owned(), format!("file://{}", clone.display())] {
        let verify = Some(SignatureVerification { keys: fixture.signers(), commits: VerifiedCommits::Range });
        let location = ResolvedLocation::Git(GitLocation { verify, ..GitLocation::new(url) });
        let state = tempfile::tempdir().unwrap();
        let mut source = Source::open("test", &location, state.path()).unwrap();
        source
            .record_verification(VerificationRecord { accepted_revision: Some(first.clone()), ..recorded() });
        check(&mut source, Err("not all of the history back to")).await;
    }
}

#[tokio::test]
async fn a_revision_that_was_never_accepted_is_gone_back_to_only_when_it_is_signed_itself() {
    if !can_sign() {
        return;
    }
    for far in [RepositoryPlace::Here, RepositoryPlace::Remote] {
        let (fixture, first) = VerifyFixture::new(far);
        let unsigned = fixture.unsigned("2");
        let third = fixture.signed("ann", "3");
        let mut source = fixture.anchored(VerifiedCommits::Head, None);
        check(&mut source, Ok(&third)).await;
        for revision in [&first, &unsigned] {
            source.fetch_revision(revision).await.unwrap();
        }
        source.verify_signature(&first).await.unwrap();
        source.verify_signature(&third).await.unwrap();
        assert!(matches!(source.verify_signature(&unsigned).await, Err(SourceError::Unverified { .. })));
    }
}

#[tokio::test]
async fn what_a_repository_configures_verifies_nothing_and_runs_nothing() {
    if !can_sign() {
        return;
    }
    let (fixture, first) = VerifyFixture::new(RepositoryPlace::Here);
    let ran = fixture.keys.path().join("ran");
    let program = fixture.keys.path().join("program");
    fs::write(&program, format!("#!/bin/sh\necho ran >> {}\nexit 0\n", ran.display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let everybody = fixture.keys.path().join("everybody");
    fs::write(&everybody, format!("* {}", fixture.public("eve"))).unwrap();
    let settings = [
        ("gpg.program", &program),
        ("gpg.ssh.program", &program),
        ("gpg.openpgp.program", &program),
        ("gpg.x509.program", &program),
        ("gpg.ssh.allowedSignersFile", &everybody),
        ("gpg.ssh.revocationFile", &everybody),
    ];
    let mut source = fixture.anchored(VerifiedCommits::Head, None);
    check(&mut source, Ok(&first)).await;
    fixture.signed("eve", "2");
    let store = fixture.state.path().join("revisions.git");
    for folder in [fixture.repo.path(), &store] {
        for (key, value) in settings {
            git(folder, &["config", key, value.to_str().unwrap()]);
        }
    }
    check(&mut source, Err("No principal matched")).await;
    // A signature of each other form, for whose program nothing must be asked.
    let signed = fixture.raw(&first);
    let (head, rest) = signed.split_once("gpgsig ").unwrap();
    let message = rest.split_once("\n\n").unwrap().1;
    for form in ["PGP SIGNATURE", "PGP MESSAGE", "SIGNED MESSAGE"] {
        fixture.forge(&format!(
            "{head}gpgsig -----BEGIN {form}-----\n \n eA==\n -----END {form}-----\n\n{message}"
        ));
        assert!(matches!(source.observe().await, Err(SourceError::Unverified { .. })), "{form}");
    }
    // Another commit in place of it.
    let third = fixture.unsigned("3");
    fixture.repo.git(&["replace", third.as_str(), first.as_str()]);
    check(&mut source, Err("it has no SSH signature")).await;
    let fourth = fixture.signed("ann", "4");
    check(&mut source, Ok(&fourth)).await;
    assert!(!ran.exists(), "{:?}", fs::read_to_string(&ran));
    assert!(!fixture.state.path().join("verify").exists());
}

#[tokio::test]
async fn a_plain_folder_in_place_of_the_repository_is_not_followed() {
    let folder = super::fixture::folder(&[("a.yaml", "a: 1")]);
    let state = tempfile::tempdir().unwrap();
    let verify = Some(SignatureVerification { keys: "keys".into(), commits: VerifiedCommits::Head });
    let location = GitLocation { verify, ..GitLocation::new(folder.path().to_str().unwrap()) };
    for location in [ResolvedLocation::Git(location.clone()), ResolvedLocation::Git(location).into_awaited()]
    {
        let opened = Source::open("test", &location, state.path());
        let seen = match opened {
            Ok(mut source) => {
                source.record_verification(VerificationRecord::default());
                source.observe().await.map(drop)
            }
            Err(error) => Err(error),
        };
        assert!(seen.is_err(), "{location:?}");
    }
}

/// Returns an OpenPGP key of its own home, and the commits that it signs.
fn gpg(home: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("gpg");
    command.args(["--batch", "--quiet", "--no-tty", "--passphrase", "", "--pinentry-mode", "loopback"]);
    let output = command.env("GNUPGHOME", home).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The agent keeps its home in use for a while.
struct GpgHome(TempDir);

impl Drop for GpgHome {
    fn drop(&mut self) {
        let mut command = Command::new("gpgconf");
        let _ = command.env("GNUPGHOME", self.0.path()).args(["--kill", "gpg-agent"]).status();
    }
}

#[tokio::test]
async fn openpgp_keys_count_until_they_expire_or_are_revoked() {
    if !can_sign() {
        return;
    }
    let (fixture, _) = VerifyFixture::new(RepositoryPlace::Here);
    // Short, as the path of the agent's socket is bounded.
    let home = GpgHome(tempfile::tempdir_in("/tmp").unwrap());
    let path = home.0.path();
    gpg(path, &["--quick-generate-key", "ann", "ed25519", "sign", "never"]);
    gpg(path, &["--quick-generate-key", "eve", "ed25519", "sign", "never"]);
    let signed = |name: &str, text: &str| {
        fs::write(fixture.repo.path().join("a.yaml"), text).unwrap();
        let mut command = git_command(fixture.repo.path());
        command.env("GNUPGHOME", path).args(["commit", "--quiet", "--all", "--message=signed"]);
        assert!(command.arg(format!("--gpg-sign={name}")).status().unwrap().success());
        fixture.repo.head()
    };
    let trust = |name: &str| fs::write(fixture.signers(), gpg(path, &["--armor", "--export", name])).unwrap();
    trust("ann");
    let mut source = fixture.anchored(VerifiedCommits::Head, None);
    check(&mut source, Err("it has no OpenPGP signature")).await;
    let second = signed("ann", "2");
    check(&mut source, Ok(&second)).await;
    let third = signed("eve", "3");
    check(&mut source, Err("a key that is not among them")).await;
    trust("eve");
    check(&mut source, Ok(&third)).await;
    // The same commit, as a process sees it that has accepted nothing yet.
    let fingerprints = String::from_utf8(gpg(path, &["--with-colons", "--list-keys", "eve"])).unwrap();
    let fingerprint = fingerprints.lines().find_map(|line| line.strip_prefix("fpr:::::::::")).unwrap();
    let fingerprint = fingerprint.trim_end_matches(':').to_owned();
    gpg(path, &["--quick-set-expire", &fingerprint, "seconds=1"]);
    trust("eve");
    let expired = async || {
        let mut source = fixture.anchored(VerifiedCommits::Head, None);
        source.observe().await.is_err_and(|error| error.to_string().contains("has expired"))
    };
    let begun = std::time::Instant::now();
    while !expired().await {
        assert!(begun.elapsed().as_secs() < 20, "it does not expire");
    }
    gpg(path, &["--quick-set-expire", &fingerprint, "never"]);
    trust("eve");
    check(&mut fixture.anchored(VerifiedCommits::Head, None), Ok(&third)).await;
    let certificate = path.join(format!("openpgp-revocs.d/{fingerprint}.rev"));
    // It is made harmless by a colon.
    let text = fs::read_to_string(&certificate).unwrap().replace(":-----BEGIN", "-----BEGIN");
    fs::write(&certificate, text).unwrap();
    gpg(path, &["--import", certificate.to_str().unwrap()]);
    trust("eve");
    check(&mut fixture.anchored(VerifiedCommits::Head, None), Err("a key that was revoked")).await;
}
