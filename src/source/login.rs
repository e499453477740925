//! The login that is in a source's own URL, kept where only this user's processes can read it.
//!
//! **Invariant:** it is in no argument, no environment and on no disk. Git asks a helper for it, by
//! protocol and host, and only after the server has asked.

use std::fs::File;
use std::io::{self, Write as _};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};
use tokio::process::Command;

use super::credentials::helper;

/// The descriptor of the file in git and in what it starts. A shell names those below 10.
const LOGIN_DESCRIPTOR: i32 = 9;

/// A file in memory with the one line that `git credential-store` reads.
#[derive(Debug)]
pub(super) struct GitLogin(File);

impl GitLogin {
    /// Keeps a line of the form `https://USER:PASSWORD@HOST`.
    pub(super) fn keep(line: &str) -> io::Result<Self> {
        // No other child inherits it.
        let mut file = File::from(memfd_create(c"rhumb-login", MemfdFlags::CLOEXEC)?);
        fchmod(&file, Mode::RUSR)?;
        writeln!(file, "{line}")?;
        Ok(Self(file))
    }

    /// Gives it to a command of git.
    ///
    /// The child gets a descriptor of its own. Once the memory of this process is private, only
    /// root can open its descriptors.
    ///
    /// # Errors
    /// Fails where the process has no descriptor left.
    pub(super) fn configure(&self, command: &mut Command) -> io::Result<()> {
        command.arg("-c").arg(helper("", format!("/proc/self/fd/{LOGIN_DESCRIPTOR}").as_bytes()));
        let file = FdMapping { parent_fd: self.0.try_clone()?.into(), child_fd: LOGIN_DESCRIPTOR };
        command.as_std_mut().fd_mappings(vec![file]).map(drop).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_reads_it_by_a_descriptor_of_its_own_and_no_other_child_does() {
        let login = GitLogin::keep("https://ann:secret@example.org").unwrap();
        let command = || {
            let mut command = Command::new("sh");
            // As git does: by a further process, and more than once.
            command.args(["-c", "for _ in 1 2; do cat /proc/self/fd/9; done", "sh"]);
            command
        };
        let mut given = command();
        login.configure(&mut given).unwrap();
        let output = given.output().await.unwrap();
        let line = "https://ann:secret@example.org\n";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), line.repeat(2));
        assert!(command().output().await.unwrap().stdout.is_empty());
    }
}
