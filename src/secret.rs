//! Secrets that are read from files, for example a token or the secret of a webhook, and the
//! opening of such files.
//!
//! **Invariant:** no `Debug` and no error shows a secret. Only [`Secret::expose`] returns its text.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::fs::OFlags;
use sha2::Sha256;

use crate::fields::mask_likely_secrets;

/// The minimum length of a secret: shorter ones can be guessed.
const MIN_SECRET_BYTES: usize = 16;

/// The maximum length of a secret: a longer file is the wrong one.
const MAX_SECRET_BYTES: u64 = 4096;

/// Returns whether a path exists. One that cannot be read counts as present: a configured secret is
/// never taken for none.
pub(crate) fn is_there(path: &Path) -> bool {
    let gone =
        |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    !fs::symlink_metadata(path).is_err_and(gone)
}

/// Opens a regular file and nothing else. Reading a pipe or a terminal may wait for its writer for
/// ever.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Before it is opened, as opening has effects on some devices.
    require_regular(&fs::metadata(path)?)?;
    // It may have been replaced by a pipe meanwhile, whose opening would block.
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    require_regular(&file.metadata()?)?;
    Ok(file)
}

/// Returns the first bytes of a regular file, not more than so many.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn require_regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        Ok(())
    } else if found.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Reads a secret from a file, without its final line break.
    ///
    /// The error hides the path if it may be the secret itself, written in place of a file name.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = mask_likely_secrets(&path.display().to_string());
        let failed = |error: io::Error| format!("{shown}: {error}");
        let mut bytes = read_regular(path, MAX_SECRET_BYTES + 1).map_err(failed)?;
        if bytes.len() as u64 > MAX_SECRET_BYTES {
            return Err(format!("{shown}: longer than {MAX_SECRET_BYTES} bytes, so it is no secret"));
        }
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        // Blanks do not count, as they can be guessed.
        if bytes.trim_ascii().len() < MIN_SECRET_BYTES {
            return Err(format!("{shown}: shorter than {MIN_SECRET_BYTES} characters"));
        }
        Ok(Self(bytes))
    }

    /// Returns a secret that matches nothing.
    pub(crate) fn new_unmatchable() -> Self {
        let mut bytes = vec![0; 32];
        let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
        if got != Ok(bytes.len()) {
            bytes.extend(format!("{:?}", std::time::Instant::now()).bytes());
        }
        Self(bytes)
    }

    /// Returns the text itself, for where it is sent; none where it is no text.
    pub(crate) fn expose(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Compares with a text from a header, in constant time. Blanks at the ends of the stored text
    /// are ignored, as headers have none.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        // The codes of both are compared: how long the secret is does not show either.
        let code = |text: &[u8]| Self(b"comparison".to_vec()).code().chain_update(text);
        code(self.0.trim_ascii()).verify_slice(&code(text.trim_ascii()).finalize().into_bytes()).is_ok()
    }

    /// Begins to compute the message authentication code of a text under it.
    ///
    /// # Panics
    ///
    /// Never: the algorithm takes keys of any length.
    pub(crate) fn code(&self) -> Mac {
        #[allow(clippy::expect_used, reason = "HMAC has no wrong length of a key")]
        Mac::new_from_slice(&self.0).expect("a key of any length")
    }
}

/// HMAC-SHA-256 (RFC 2104).
pub(crate) type Mac = Hmac<Sha256>;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    // None of them is waited for.
    #[test]
    fn only_a_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        for place in [at("pipe"), at("socket"), "/dev/zero".into(), "/dev/null".into()] {
            let why = Secret::read(&place).unwrap_err();
            assert!(why.ends_with(": it is no regular file"), "{why}");
            assert!(is_there(&place));
        }
        assert!(Secret::read(dir.path()).unwrap_err().ends_with(": is a directory"));
        fs::write(at("file"), "0123456789abcdef\n").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("nothing", at("dangling")).unwrap();
        assert_eq!(Secret::read(&at("link")).unwrap().expose(), Some("0123456789abcdef"));
        assert_eq!(read_regular(&at("file"), 3).unwrap(), b"012");
        assert!(Secret::read(&at("dangling")).unwrap_err().contains("No such file"));
        let found = ["dangling", "nothing", "file/below"].map(|name| is_there(&at(name)));
        assert_eq!(found, [true, false, false]);
    }
}
