//! The credentials for git servers: a folder of files, as systemd shows it to a service.
//!
//! **Invariant:** no content of them comes into this process, an argument or an environment. git
//! and ssh get their paths and read them anew for each observation, so that a newer one counts from
//! then on.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::config::{CredentialUse, UrlPrefix};
use crate::secret::{is_there, open_regular};

/// The file with the keys of hosts.
const KNOWN_HOSTS_FILE: &str = "known-hosts";

/// A folder of credentials, and the owner of those that are shown.
///
/// | file | holds |
/// |---|---|
/// | `ssh-key` | a private key; without it ssh asks its agent and tries the user's own keys |
/// | `known-hosts` | the host keys that are accepted, besides the system's; without it the user's own |
/// | `git-credentials` | a URL with user and token for each server, as `git credential-store` keeps them |
///
/// `ssh-key.shop` takes precedence over `ssh-key` for the source `shop`, and likewise the others.
/// Credentials that are bound to an address are the files that end with their name, and no others:
/// neither an agent's keys nor the user's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    folder: Option<PathBuf>,
    whose: CredentialOwner,
}

/// The owner of the files that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CredentialOwner {
    /// Files of a source, else those of all sources.
    Source(String),
    /// Files of a name, at an address and below it.
    Bound(String, UrlPrefix),
    /// Nobody's.
    Nobody,
}

impl Default for CredentialOwner {
    fn default() -> Self {
        Self::Source(String::new())
    }
}

impl Credentials {
    /// Returns the credentials of this service that a source may show: the files in
    /// `$CREDENTIALS_DIRECTORY`, which systemd sets.
    pub(crate) fn of_service(source: &str, shown: &CredentialUse) -> Self {
        let folder = std::env::var_os("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
        let whose = match shown {
            CredentialUse::Own => CredentialOwner::Source(source.to_owned()),
            CredentialUse::Bound(name, address) => CredentialOwner::Bound(name.to_string(), address.clone()),
            CredentialUse::Nothing => CredentialOwner::Nobody,
        };
        Self { folder: folder.map(PathBuf::from), whose }
    }

    /// Returns the credentials for the server of a URL: none, where they are bound to another
    /// address.
    pub(super) fn at(&self, url: &str) -> Self {
        match &self.whose {
            CredentialOwner::Bound(_, address) if !address.covers_text(url) => {
                Self { whose: CredentialOwner::Nobody, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Returns the first file of this name that is there now. One that cannot be used is not replaced
    /// by another.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let own = |whose: &str| folder.join(format!("{name}.{whose}"));
        // A server's host key is no secret.
        let shared = (name == KNOWN_HOSTS_FILE).then(|| folder.join(name));
        let files = match &self.whose {
            CredentialOwner::Source(source) => [Some(own(source)), Some(folder.join(name))],
            CredentialOwner::Bound(name, _) => [Some(own(name)), shared],
            CredentialOwner::Nobody => [None, shared],
        };
        files.into_iter().flatten().find(|file| is_there(file))
    }

    /// Fails where a file that a URL needs cannot be read. git and ssh would say less, and would wait
    /// for ever for a pipe.
    pub(super) fn check(&self, url: &str) -> Result<(), (PathBuf, io::Error)> {
        let names: &[&str] =
            if url.starts_with("http") { &["git-credentials"] } else { &["ssh-key", KNOWN_HOSTS_FILE] };
        for name in names {
            let Some(file) = self.file(name) else { continue };
            if let Err(error) = open_regular(&file) {
                return Err((file, error));
            }
        }
        Ok(())
    }

    /// Configures a git command, which has no subcommand yet, to use these credentials.
    pub(super) fn configure(&self, command: &mut Command) {
        if let Some(file) = self.file("git-credentials") {
            // git goes by the whole address too: beside it nothing is asked.
            let address = match &self.whose {
                CredentialOwner::Bound(_, address) => format!("{address}."),
                CredentialOwner::Source(_) | CredentialOwner::Nobody => String::new(),
            };
            command.arg("-c").arg(helper(&address, file.as_os_str().as_bytes()));
        }
        command.env("GIT_SSH_COMMAND", self.ssh_command());
    }

    /// Returns the command for ssh. Nothing of the user's configuration counts but keys and hosts,
    /// and nothing is asked.
    fn ssh_command(&self) -> OsString {
        let mut command = OsString::from(
            "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10 \
             -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o ControlMaster=no -o ControlPath=none \
             -o ForwardAgent=no -o PermitLocalCommand=no -o UpdateHostKeys=no",
        );
        if let Some(key) = self.file("ssh-key") {
            command.push(" -o IdentitiesOnly=yes -o ");
            command.push(quote_for_shell(option("IdentityFile", &key).as_bytes()));
        } else if !matches!(self.whose, CredentialOwner::Source(_)) {
            command.push(" -o IdentitiesOnly=yes -o IdentityFile=none -o IdentityAgent=none");
        }
        if let Some(hosts) = self.file(KNOWN_HOSTS_FILE) {
            command.push(" -o ");
            command.push(quote_for_shell(option("UserKnownHostsFile", &hosts).as_bytes()));
        }
        command
    }
}

/// Returns the setting of git that asks a file in the form of `git credential-store`, whose lines
/// count for their protocol and host alone. It is asked at an address and below it: one with a dot
/// behind it, or everywhere.
///
/// The file is only asked: what a server refuses is not taken out of it, as git's own helper would.
pub(super) fn helper(address: &str, file: &[u8]) -> OsString {
    let mut helper = OsString::from(format!(
        "credential.{address}helper=!f() {{ test \"$1\" = get && git credential-store --file="
    ));
    helper.push(quote_for_shell(file));
    helper.push(" get; }; f");
    helper
}

/// Returns a text as one word of a shell.
fn quote_for_shell(text: &[u8]) -> OsString {
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

/// Returns an option of ssh whose value is this very path: neither parted at spaces, nor with
/// anything in place of `%h`.
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
    use std::io::Write as _;
    use std::process::Command as Program;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    impl Credentials {
        /// Returns those in a folder for a source.
        pub(in crate::source) fn of_folder(folder: &Path, source: &str) -> Self {
            Self { folder: Some(folder.to_owned()), whose: CredentialOwner::Source(source.to_owned()) }
        }

        /// Returns those of a name in a folder, for an address alone.
        pub(in crate::source) fn bound(folder: &Path, name: &str, address: UrlPrefix) -> Self {
            Self { folder: Some(folder.to_owned()), whose: CredentialOwner::Bound(name.to_owned(), address) }
        }
    }

    const URL: &str = "git@git.example.org:shop.git";

    /// Returns ssh's own reading of the command; none where there is no ssh.
    fn understood(credentials: &Credentials) -> Option<String> {
        if let Err(error) = Program::new("ssh").arg("-V").output() {
            // Past the harness, which shows nothing of a test that passes.
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no ssh: {error}");
            return None;
        }
        let command = credentials.ssh_command().into_string().unwrap();
        let output =
            Program::new("sh").args(["-c", &format!("{command} -G git.example.org")]).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{said}");
        Some(said)
    }

    #[test]
    fn ssh_gets_the_paths_of_keys_and_hosts() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("it's 100%h");
        fs::create_dir(&folder).unwrap();
        let none = Credentials::of_folder(&folder, "shop").ssh_command().into_string().unwrap();
        assert!(!none.contains("Identit") && !none.contains("KnownHosts"), "{none}");
        for name in ["ssh-key", "ssh-key.shop"] {
            fs::write(folder.join(name), "").unwrap();
            let Some(said) = understood(&Credentials::of_folder(&folder, "shop")) else { return };
            let file = folder.join(name).display().to_string().replace('%', "%%");
            assert!(said.contains(&format!("\nidentityfile {file}\n")), "{said}");
            assert!(said.contains("\nidentitiesonly yes\n"), "{said}");
            assert!(said.contains("\nstricthostkeychecking true\n"), "{said}");
            assert!(said.contains("\nupdatehostkeys false\n"), "{said}");
        }
        fs::write(folder.join("known-hosts"), "").unwrap();
        let Some(said) = understood(&Credentials::of_folder(&folder, "ops")) else { return };
        let file = folder.join("known-hosts").display().to_string();
        assert!(said.contains(&format!("\nuserknownhostsfile {file}\n")), "{said}");
    }

    #[test]
    fn what_cannot_be_read_is_reported_and_replaced_by_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let credentials = Credentials::of_folder(dir.path(), "shop");
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
        Credentials::of_folder(dir.path(), "other").check(URL).unwrap();
        credentials.check("https://git.example.org/shop.git").unwrap();
    }

    /// Returns git's own credential for an address, with these credentials.
    fn filled(credentials: &Credentials, address: &str) -> Option<String> {
        let mut configured = Command::new("git");
        credentials.configure(&mut configured);
        let mut command = std::process::Command::new("git");
        command
            .args(["-c", "credential.helper="])
            .args(configured.as_std().get_args())
            .args(["credential", "fill"]);
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "/bin/false").env("HOME", "/nonexistent");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "url={address}\n").unwrap();
        let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        said.lines().find_map(|line| line.strip_prefix("password=")).map(str::to_owned)
    }

    #[test]
    fn git_goes_by_the_address_too_that_credentials_are_bound_to() {
        let dir = tempfile::tempdir().unwrap();
        let line = "https://me:token@git.example.org\nhttps://me:token@evil.example\n";
        fs::write(dir.path().join("git-credentials.team"), line).unwrap();
        let credentials =
            Credentials::bound(dir.path(), "team", "https://git.example.org/team/".parse().unwrap());
        for (address, shown) in [
            ("https://git.example.org/team/shop.git", true),
            ("https://git.example.org/team", true),
            ("https://git.example.org/team-b/shop.git", false),
            ("https://git.example.org/other/shop.git", false),
            ("https://git.example.org/", false),
            ("https://git.example.org:8443/team/shop.git", false),
            ("http://git.example.org/team/shop.git", false),
            ("https://evil.example/team/shop.git", false),
        ] {
            let found = filled(&credentials, address);
            assert_eq!(found.as_deref(), shown.then_some("token"), "{address}");
        }
    }

    #[test]
    fn where_nothing_is_bound_no_key_of_anybody_is_offered() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ssh-key", "ssh-key.shop", "ssh-key.team", KNOWN_HOSTS_FILE] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let bound = Credentials::bound(dir.path(), "team", "git@git.example.org:team".parse().unwrap());
        let command = |url: &str| bound.at(url).ssh_command().into_string().unwrap();
        for (url, key) in [
            ("git@git.example.org:team/shop.git", true),
            ("ssh://git@git.example.org/~/team/shop.git", true),
            ("git@git.example.org:other/shop.git", false),
            ("ssh://git@git.example.org/team/shop.git", false),
            ("root@git.example.org:team/shop.git", false),
            ("git@evil.example:team/shop.git", false),
        ] {
            let said = command(url);
            assert_eq!(said.contains("ssh-key.team"), key, "{url}: {said}");
            assert_eq!(said.contains("IdentityFile=none -o IdentityAgent=none"), !key, "{url}: {said}");
            assert!(
                said.contains("IdentitiesOnly=yes") && said.contains("UserKnownHostsFile"),
                "{url}: {said}"
            );
            assert!(!said.contains("ssh-key.shop") && !said.contains("ssh-key'"), "{url}: {said}");
        }
        let none = bound.at("git@evil.example:a");
        let Some(said) = understood(&none) else { return };
        assert!(said.contains("\nidentityagent none\n") && said.contains("\nidentityfile none\n"), "{said}");
    }
}
