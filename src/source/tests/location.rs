//! Texts that name sources, and texts by which git complains.

use std::path::{Path, PathBuf};

use super::fixture::{TestRepository, folder};
use crate::object::ErrorClass;
use crate::source::git_messages::{self, GitErrorKind};
use crate::source::{GitLocation, LocationKind, ResolvedLocation, SourceError, SourceSettings, classify};

#[test]
fn texts_name_what_people_mean() {
    let (repo, _) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let bare = folder(&[("HEAD", "ref: refs/heads/main"), ("objects/x", "1"), ("refs/x", "1")]);
    let plain = folder(&[("a.yaml", "1"), ("host:path/a.yaml", "1"), ("with space/a.yaml", "1")]);
    let at = |dir: &tempfile::TempDir, inside: &str| dir.path().join(inside).to_str().unwrap().to_owned();
    let check = |text: &str, expected: LocationKind| assert_eq!(classify(text).unwrap(), expected, "{text}");
    let path = |text: &str| PathBuf::from(text);
    for url in [
        "https://example.com/a/b.git",
        "https://user:token@example.com/a",
        "ssh://git@example.com:2222/a",
        "git@example.com:a/b.git",
        "example.com:a",
        "http://example.com/a",
        "git://example.com/a",
        "https://example.com:8443/a@b",
        "https://user:to%2Fken@example.com/a@b",
        "git@example.com:a@b/c.git",
    ] {
        check(url, LocationKind::Remote);
    }
    let work = at(&repo.dir, "");
    check(&work, LocationKind::Repository(path(&work)));
    check(&format!("file://{work}"), LocationKind::Repository(path(&work)));
    check(&format!("file://localhost{work}"), LocationKind::Repository(path(&work)));
    check(&at(&bare, ""), LocationKind::Repository(path(&at(&bare, ""))));
    check(&at(&repo.dir, "deploy"), LocationKind::Directory(path(&at(&repo.dir, "deploy"))));
    check(&at(&plain, "host:path"), LocationKind::Directory(path(&at(&plain, "host:path"))));
    let spaced = format!("file://{}", at(&plain, "with%20space"));
    check(&spaced, LocationKind::Directory(path(&at(&plain, "with space"))));
    check(&at(&plain, "a.yaml"), LocationKind::File(path(&at(&plain, "a.yaml"))));
}

#[test]
fn what_is_no_source_says_what_to_write() {
    let check = |text: &str, expected: &str| {
        let error = classify(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    };
    check("", "a URL or a path is expected");
    check("--upload-pack=touch /tmp/x", "a URL or a path is expected");
    check("ext::sh -c touch% /tmp/x", "remote helpers are not run");
    check("ftp://example.com/a", "its scheme is not known");
    check("https:///a", "names no host");
    check("ssh://-oProxyCommand=x/a", "names no host");
    check("ssh://user@-oProxyCommand=x/a", "names no host");
    check("git@-oProxyCommand=x:a", "names no host");
    check("git@:a", "names no host");
    check("file://relative/path", "absolute path");
    check("file:///a%zz", "two hex digits");
    check("/nonexistent/path", "no such file or folder");
    for text in ["https://user:hunter2/tail@example.com/a", "ssh://user:hunter2/tail@example.com/a"] {
        check(text, "a `/` in a password is written as %2F");
        assert!(!classify(text).unwrap_err().to_string().contains("hunter2"), "{text}");
    }
    check("oauth2:hunter2@example.com/a", "https://USER:TOKEN@HOST/PATH");
    assert!(!classify("oauth2:hunter2@example.com/a").unwrap_err().to_string().contains("hunter2"));
    check("https://user:hunter2@/a", "names no host");
    assert!(!classify("https://user:hunter2@/a").unwrap_err().to_string().contains("hunter2"));
}

#[test]
fn credentials_are_not_shown() {
    let check = |url: &str, expected: &str| {
        let location = GitLocation::new(url);
        assert_eq!(ResolvedLocation::Git(location.clone()).to_string(), expected);
        assert!(format!("{location:?}").contains(&format!("{expected:?}")), "{location:?}");
    };
    check("https://user:secret@example.com/a?token=x#y", "https://example.com/a");
    check("https://token@example.com/a", "https://example.com/a");
    check("https://a:b@c@example.com/a", "https://example.com/a");
    check("ssh://git:secret@example.com/a", "ssh://example.com/a");
    check("ssh://git@example.com/a", "ssh://git@example.com/a");
    check("git@example.com:a?b", "git@example.com:a?b");
    check("/srv/a#b", "/srv/a#b");
}

/// Texts of git 2.39, each with what it is taken for and the line that is shown.
const COMPLAINTS: [(&str, GitErrorKind, ErrorClass, &str); 18] = [
    (
        "fatal: couldn't find remote ref refs/heads/x\n",
        GitErrorKind::EmptyRepository,
        ErrorClass::Transient,
        "couldn't find remote ref refs/heads/x",
    ),
    (
        "git@example.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\n\
         Please make sure you have the correct access rights\nand the repository exists.\n",
        GitErrorKind::Denied,
        ErrorClass::Forbidden,
        "git@example.com: Permission denied (publickey)",
    ),
    (
        "Host key verification failed.\nfatal: Could not read from remote repository.\n",
        GitErrorKind::HostKey,
        ErrorClass::Config,
        "Host key verification failed",
    ),
    (
        "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n\
         @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
         @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n\
         Host key verification failed.\nfatal: Could not read from remote repository.\n",
        GitErrorKind::HostKey,
        ErrorClass::Config,
        "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!",
    ),
    (
        "ssh: Could not resolve hostname nowhere: Name or service not known\nfatal: Could not read from remote \
         repository.\n",
        GitErrorKind::Unreachable,
        ErrorClass::Transient,
        "ssh: Could not resolve hostname nowhere: Name or service not known",
    ),
    (
        // A server repeats whatever it likes.
        "fatal: remote error: Host key verification failed. Cannot allocate memory\n",
        GitErrorKind::Unknown,
        ErrorClass::Transient,
        "remote error: Host key verification failed. Cannot allocate memory",
    ),
    (
        "fatal: remote error: access denied or repository not exported: /a\n",
        GitErrorKind::NotARepository,
        ErrorClass::Source,
        "remote error: access denied or repository not exported: /a",
    ),
    (
        "something new\nfatal: Could not read from remote repository.\n",
        GitErrorKind::Unreachable,
        ErrorClass::Transient,
        "Could not read from remote repository",
    ),
    (
        "remote: Repository not found.\nfatal: repository 'https://example.com/x/' not found\n",
        GitErrorKind::NotARepository,
        ErrorClass::Source,
        "repository 'https://example.com/x/' not found",
    ),
    (
        "fatal: unable to access 'https://s3cret@x/': server certificate verification failed. CAfile: none\n",
        GitErrorKind::Certificate,
        ErrorClass::Config,
        "unable to access 'https://***@x/': server certificate verification failed. CAfile: none",
    ),
    (
        "error: RPC failed; HTTP 504 curl 22 The requested URL returned error: 504\nfatal: early EOF\n",
        GitErrorKind::Unreachable,
        ErrorClass::Transient,
        "RPC failed; HTTP 504 curl 22 The requested URL returned error: 504",
    ),
    (
        "error: object 12: hasDotdot: contains '..'\nfatal: fsck error in packed object\n",
        GitErrorKind::Refused,
        ErrorClass::Source,
        "object 12: hasDotdot: contains '..'",
    ),
    (
        "fatal: write error: No space left on device\n",
        GitErrorKind::Full,
        ErrorClass::Transient,
        "write error: No space left on device",
    ),
    (
        "error: unable to create temporary file: Read-only file system\n",
        GitErrorKind::NotWritable,
        ErrorClass::Config,
        "unable to create temporary file: Read-only file system",
    ),
    (
        "fatal: remote error: Basic dXNlcjpodW50ZXIyMDAwMA== is hunter2hunter2hunter2\n",
        GitErrorKind::Unknown,
        ErrorClass::Transient,
        "remote error: Basic *** is ***",
    ),
    (
        "fatal: unable to access 'https://x/': Unsupported proxy syntax in 'http://me:pw@[x'\n",
        GitErrorKind::Unknown,
        ErrorClass::Transient,
        "unable to access 'https://x/': Unsupported proxy syntax in 'http://***@[x'",
    ),
    (
        "fatal: remote error: upload-pack: not our ref 0123456789012345678901234567890123456789\n",
        GitErrorKind::NoCommit,
        ErrorClass::Transient,
        "remote error: upload-pack: not our ref 0123456789012345678901234567890123456789",
    ),
    // The peer's messages decide nothing.
    (
        "remote: No space left on device\nfatal: the unknown\n",
        GitErrorKind::Unknown,
        ErrorClass::Transient,
        "the unknown",
    ),
];

#[test]
fn complaints_are_distinguished() {
    let store = crate::source::store::RevisionStore::new(Path::new("/state"), SourceSettings::default());
    for (text, kind, class, detail) in COMPLAINTS {
        assert_eq!(git_messages::kind(text), kind, "{text}");
        let detailed = git_messages::error_detail(text, &["s3cret".to_owned()]);
        assert_eq!(detailed, detail);
        let error = git_messages::exchange_error(kind, "place", detailed, &store);
        assert_eq!(error.class(), class, "{text}");
    }
    assert_eq!(git_messages::error_detail("", &[]), "it ended without a word");
    let hidden = "fatal: no s3\u{7}cr\u{1b}et\r here\n";
    assert_eq!(git_messages::error_detail(hidden, &["s3cret".to_owned()]), "no *** here");
}

#[test]
fn where_a_server_sends_on_to_is_reported_without_secrets() {
    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let trace =
            format!("20:00:00 http.c:1 <= Recv header: HTTP/1.1 302\n20:00:00 http.c:1 <= Recv {line}\n");
        assert_eq!(git_messages::redirect_target(&trace, &["s3cret".to_owned()]).as_deref(), expected);
    }
    let path = "a.git/info/refs?service=git-upload-pack";
    check(&format!("header: Location: https://b/{path}\r"), Some("https://b/a.git"));
    check(&format!("header: location: https://me:pw@b/{path}"), Some("https://***@b/a.git"));
    check("header: location: https://b/s3cret?token=1", Some("https://b/***"));
    check("header: location: https://b/s3\u{1b}cr\ret", Some("https://b/***"));
    check("header: locations: https://b/a", None);
}

#[test]
fn paths_inside_stay_inside() {
    let inner = |text| crate::source::location::inner_path(Some(text));
    assert_eq!(inner("").unwrap(), None);
    assert_eq!(inner("./").unwrap(), None);
    assert_eq!(inner("/a//b/").unwrap(), Some("a/b".to_owned()));
    assert!(matches!(inner("a/../b"), Err(SourceError::Location { .. })));
}
