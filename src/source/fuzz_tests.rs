//! The words of git servers and of git itself, and the lines of our own commits.

use super::ancestor_name::AncestorName;
use super::refusal::RefusedFile;
use super::{git_messages, location, remote};
use crate::fuzz_tests::{FuzzTarget, fuzz, seeds, shape};

const SECRET: &str = "s3cr3tpassword";

const WORDS: &[&str] = &[
    "0123456789abcdef0123456789abcdef01234567",
    "\trefs/heads/main\n",
    "\trefs/tags/v1^{}\n",
    "\tHEAD\n",
    "ref: refs/heads/main\tHEAD\n",
    "fatal: ",
    "error: ",
    "remote: ",
    "remote error: ",
    "returned error: 401",
    "not our ref",
    "fsck error",
    "error: object ",
    "Recv header: Location: https://x/y/info/refs?service=git-upload-pack",
    "s3cr3tpassword",
    "https://ann:s3cr3tpassword@x/y",
    "\x1b[31m",
    "\u{202e}",
    "\r",
    "~2",
    "^2",
    "^0",
    "~9999999",
];

/// Checks the answer of `ls-remote`, in which each line is the server's.
fn check_advertisement(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let listed = remote::parse_listed(&text);
    assert!(listed.len() <= text.lines().count());
    for (name, id) in &listed {
        let id = id.as_str();
        assert!(id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id:?}");
        let found = remote::find_reference(&listed, name).unwrap();
        assert_eq!(found.name, *name);
        assert!(listed.iter().any(|(_, listed)| *listed == found.commit), "{found:?} was not listed");
    }
    assert!(
        remote::find_reference(&listed, "refs/heads/\u{1}").is_none_or(|found| text.contains(&found.name))
    );
    shape((listed.len(), listed.iter().filter(|(name, _)| name.ends_with("^{}")).count()))
}

fn check_messages(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let secrets = [SECRET.to_owned()];
    let kind = git_messages::kind(&text);
    let detail = git_messages::error_detail(&text, &secrets);
    let target = git_messages::redirect_target(&text, &secrets);
    for shown in [Some(&detail), target.as_ref()].into_iter().flatten() {
        assert!(shown.chars().count() <= 300 && !shown.contains(SECRET), "{shown:?}");
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
    }
    shape((format!("{kind:?}"), target.is_some(), detail.contains("***")))
}

fn check_own_lines(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let mut shapes = Vec::new();
    for line in text.lines() {
        let refused = RefusedFile::parse(line);
        if let Some(refused) = &refused {
            let written = refused.line();
            assert_eq!(written.lines().count(), 1, "{written:?}");
            assert_eq!(RefusedFile::parse(&written).as_ref(), Some(refused), "{written:?}");
        }
        let steps = AncestorName::parse(line).map(|name| name.steps.len());
        let url = location::url(line).is_some();
        assert!(
            location::secret_parts(line)
                .iter()
                .all(|part| line.contains(part.as_str()) || part.len() <= 3 * line.len())
        );
        shapes.push((refused.is_some(), steps, url));
    }
    shape(shapes)
}

#[test]
fn advertised_references() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let seeds = seeds(&[
        format!("{id}\tHEAD\n{id}\trefs/heads/main\n{id}\trefs/tags/v1\n{id}\trefs/tags/v1^{{}}\n"),
        format!("ref: refs/heads/main\tHEAD\n{id}\tHEAD\n"),
        String::new(),
    ]);
    let target = FuzzTarget { name: "advertised_references", seeds, words: WORDS, inputs: 3000 };
    fuzz(&target, check_advertisement);
}

#[test]
fn git_words() {
    let seeds = seeds(&[
        "fatal: unable to access 'https://ann:s3cr3tpassword@x/y/': The requested URL returned error: 403\n",
        "remote: denied\nremote error: upload-pack: not our ref 0123456789abcdef0123456789abcdef01234567\nfatal: x\n",
        "error: object 0123456789abcdef0123456789abcdef01234567: hasDotgit: contains '.git'\nfatal: fsck error in packed object\n",
        "12:00:00 http.c:1 <= Recv header: Location: https://ann:s3cr3tpassword@x/y/info/refs?service=git-upload-pack\n",
    ]);
    fuzz(&FuzzTarget { name: "git_words", seeds, words: WORDS, inputs: 3000 }, check_messages);
}

#[test]
fn snapshot_lines() {
    let seeds = seeds(&[
        "[\"symlink\",\"a/b.yaml\",\"\"]\n[\"too-large\",\"c\",\"3 MiB\"]\n",
        "main~2^2~1\nHEAD^\nv1^0\n",
        "https://ann:s3cr3tpassword@git.example.org:8443/a/b.git?x=y#main\nssh://git@x/y\ngit@x:y\n/srv/a\n",
    ]);
    fuzz(&FuzzTarget { name: "snapshot_lines", seeds, words: WORDS, inputs: 6000 }, check_own_lines);
}
