//! The login that is in a source's own URL, kept where only this user's processes can read it.
//!
//! **Invariant:** it is in no argument, no environment and on no disk. Git asks a helper for it, by
//! protocol and host, and only after the server has asked.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;

use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};

use super::credentials::helper;

/// A file in memory with the one line that `git credential-store` reads.
#[derive(Debug)]
pub(super) struct GitLogin(File);

impl GitLogin {
    /// Keeps a line of the form `https://USER:PASSWORD@HOST`.
    pub(super) fn keep(line: &str) -> io::Result<Self> {
        // Children do not inherit it: they open it anew, which the system allows to this user
        // alone.
        let mut file = File::from(memfd_create(c"rhumb-login", MemfdFlags::CLOEXEC)?);
        fchmod(&file, Mode::RUSR)?;
        writeln!(file, "{line}")?;
        Ok(Self(file))
    }

    /// Returns the setting of git that asks it; of use as long as this lives.
    pub(super) fn credential_helper(&self) -> OsString {
        helper("", format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).as_bytes())
    }
}
