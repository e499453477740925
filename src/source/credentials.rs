//! The files with what git servers ask for: a folder of them, as systemd shows it to a service.
//!
//! **Invariant:** no content of them comes into this process, an argument or an environment. git and ssh are
//! told where they are and read them anew for each look, so that a newer one counts from then on.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::secret::{is_there, open_regular};

/// A folder of such files, and the source that they are for.
///
/// | file | holds |
/// |---|---|
/// | `ssh-key` | a private key; without it ssh asks its agent and tries the user's own keys |
/// | `known-hosts` | the host keys that are accepted, besides the system's; without it the user's own |
/// | `git-credentials` | a URL with user and token for each server, as `git credential-store` keeps them |
///
/// `ssh-key.shop` stands before `ssh-key` for the source `shop`, and likewise the others.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    folder: Option<PathBuf>,
    source: String,
}

impl Credentials {
    /// Those of this service for a source: `$CREDENTIALS_DIRECTORY`, as systemd sets it.
    pub fn of_service(source: &str) -> Self {
        let folder = std::env::var_os("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
        Self { folder: folder.map(PathBuf::from), source: source.to_owned() }
    }

    /// Those in a folder for a source.
    pub fn within(folder: &Path, source: &str) -> Self {
        Self { folder: Some(folder.to_owned()), source: source.to_owned() }
    }

    /// The file of this name that is there now, be it of use or not: no other stands in for it.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let own = folder.join(format!("{name}.{}", self.source));
        [own, folder.join(name)].into_iter().find(|file| is_there(file))
    }

    /// Why one of those that a URL takes cannot be read. git and ssh would say less, and wait for ever for a pipe.
    pub(super) fn check(&self, url: &str) -> Result<(), (PathBuf, io::Error)> {
        let names: &[&str] =
            if url.starts_with("http") { &["git-credentials"] } else { &["ssh-key", "known-hosts"] };
        for name in names {
            let Some(file) = self.file(name) else { continue };
            if let Err(error) = open_regular(&file) {
                return Err((file, error));
            }
        }
        Ok(())
    }

    /// Tells a git command, which has no subcommand yet, where they are.
    pub(super) fn tell(&self, command: &mut Command) {
        if let Some(file) = self.file("git-credentials") {
            command.arg("-c").arg(helper(file.as_os_str().as_bytes()));
        }
        command.env("GIT_SSH_COMMAND", self.ssh_command());
    }

    /// Nothing of the user's configuration counts but keys and hosts, and nothing is asked.
    fn ssh_command(&self) -> OsString {
        let mut command = OsString::from(
            "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10 \
             -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o ControlMaster=no -o ControlPath=none \
             -o ForwardAgent=no -o PermitLocalCommand=no",
        );
        if let Some(key) = self.file("ssh-key") {
            command.push(" -o IdentitiesOnly=yes -o ");
            command.push(quoted(option("IdentityFile", &key).as_bytes()));
        }
        if let Some(hosts) = self.file("known-hosts") {
            command.push(" -o ");
            command.push(quoted(option("UserKnownHostsFile", &hosts).as_bytes()));
        }
        command
    }
}

/// The setting of git that asks a file in the form of `git credential-store`, whose lines count for their
/// protocol and host alone.
///
/// The file is only asked: what a server refuses is not taken out of it, as git's own helper would.
pub(super) fn helper(file: &[u8]) -> OsString {
    let mut helper =
        OsString::from("credential.helper=!f() { test \"$1\" = get && git credential-store --file=");
    helper.push(quoted(file));
    helper.push(" get; }; f");
    helper
}

/// A text as one word of a shell.
fn quoted(text: &[u8]) -> OsString {
    let mut word = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => word.extend(b"'\\''"),
            byte => word.push(*byte),
        }
    }
    word.push(b'\'');
    OsString::from_vec(word)
}

/// An option of ssh whose value is this very path: neither parted at spaces, nor with anything in place of `%h`.
fn option(name: &str, path: &Path) -> OsString {
    let mut option = format!("{name}=\"").into_bytes();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => option.extend([b'\\', *byte]),
            b'%' => option.extend(b"%%"),
            byte => option.push(*byte),
        }
    }
    option.push(b'"');
    OsString::from_vec(option)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command as Program;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    const URL: &str = "git@git.example.org:shop.git";

    /// What ssh itself makes of the command; none where there is no ssh.
    fn understood(credentials: &Credentials) -> Option<String> {
        Program::new("ssh").arg("-V").output().ok()?;
        let command = credentials.ssh_command().into_string().unwrap();
        let output =
            Program::new("sh").args(["-c", &format!("{command} -G git.example.org")]).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{said}");
        Some(said)
    }

    #[test]
    fn ssh_is_told_where_keys_and_hosts_are() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("it's 100%h");
        fs::create_dir(&folder).unwrap();
        let none = Credentials::within(&folder, "shop").ssh_command().into_string().unwrap();
        assert!(!none.contains("Identit") && !none.contains("KnownHosts"), "{none}");
        for name in ["ssh-key", "ssh-key.shop"] {
            fs::write(folder.join(name), "").unwrap();
            let Some(said) = understood(&Credentials::within(&folder, "shop")) else { return };
            let file = folder.join(name).display().to_string().replace('%', "%%");
            assert!(said.contains(&format!("\nidentityfile {file}\n")), "{said}");
            assert!(said.contains("\nidentitiesonly yes\n"), "{said}");
            assert!(said.contains("\nstricthostkeychecking true\n"), "{said}");
        }
        fs::write(folder.join("known-hosts"), "").unwrap();
        let Some(said) = understood(&Credentials::within(&folder, "ops")) else { return };
        let file = folder.join("known-hosts").display().to_string();
        assert!(said.contains(&format!("\nuserknownhostsfile {file}\n")), "{said}");
    }

    #[test]
    fn what_cannot_be_read_is_told_and_replaced_by_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let credentials = Credentials::within(dir.path(), "shop");
        credentials.check(URL).unwrap();
        fs::write(dir.path().join("ssh-key"), "").unwrap();
        credentials.check(URL).unwrap();
        let own = dir.path().join("ssh-key.shop");
        mknodat(CWD, &own, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (file, error) = credentials.check(URL).unwrap_err();
        assert_eq!((&file, error.to_string().as_str()), (&own, "it is no regular file"));
        fs::remove_file(&own).unwrap();
        std::os::unix::fs::symlink("nothing", &own).unwrap();
        assert_eq!(credentials.check(URL).unwrap_err().0, own);
        Credentials::within(dir.path(), "other").check(URL).unwrap();
        credentials.check("https://git.example.org/shop.git").unwrap();
    }
}
