//! A git that runs what a foreign repository's configuration names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::fixture::Fixture;

/// Puts a git first in the PATH that says its version, and takes note of all else that it is asked
/// for.
#[test]
fn a_git_below_the_floor_is_named_and_asked_for_nothing_but_its_version() {
    let source = "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\n\
                  spec: {git: {url: 'https://127.0.0.1:1/shop.git'}}\n";
    let fixture = Fixture::new(&[("rhumb.yaml", source), ("bin/git", "")]);
    let (bin, asked) = (fixture.path().join("bin"), fixture.path().join("asked"));
    let path = std::env::var("PATH").unwrap();
    let run = |version: &str, line: &str| {
        let _ = fs::remove_file(&asked);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo 'git version {version}' && exit\n\
             echo \"$*\" >> '{}'\necho 'fatal: no' >&2\nexit 128\n",
            asked.display()
        );
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = fixture.command(line);
        let output = command.env("PATH", format!("{}:{path}", bin.display())).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned(), asked.exists())
    };
    for line in ["validate --config rhumb.yaml", "render --config rhumb.yaml"] {
        let (_, text, is_asked) = run("2.39.4", line);
        assert!(is_asked && !text.contains("is not used"), "{line}: {text}");
        let (code, text, is_asked) = run("2.39.3", line);
        let refusal = "git version 2.39.3 is not used: before 2.39.4 it runs commands";
        assert!(code == Some(2) && text.contains(refusal) && !is_asked, "{line}: {code:?} {text}");
    }
    let check = "check --config rhumb.yaml --kubeconfig none";
    let (code, text, is_asked) = run("2.39.3", check);
    let missing = "missing git version 2.39.3: git 2.39.4 or newer is needed";
    assert!(code == Some(1) && text.contains(missing) && !is_asked, "{code:?} {text}");
    let (_, text, _) = run("2.39.4", check);
    assert!(text.contains("ok      git version 2.39.4\n"), "{text}");
}
