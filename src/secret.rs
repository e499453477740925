//! Secrets out of files: a token, the secret of a webhook, a URL that is one.
//!
//! **Invariant:** a secret shows itself in no `Debug` and no error; whoever wants its text asks for it by name.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::fields::blurred;

/// A shorter one is guessed sooner or later, and an empty one is no secret at all.
const SHORTEST: usize = 16;

/// No secret is longer, and a file that is belongs to somebody else.
const LONGEST: u64 = 4096;

/// A text that nobody may see.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Reads it: what stands in the file, without the end of its line.
    ///
    /// Who wrote the secret itself in place of its file's name does not read it in the complaint.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = blurred(&path.display().to_string());
        let failed = |error: io::Error| format!("{shown}: {error}");
        let mut bytes = Vec::new();
        File::open(path).map_err(failed)?.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LONGEST {
            return Err(format!("{shown}: longer than {LONGEST} bytes, so it is no secret"));
        }
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        // Blanks are guessed, and whoever left them there meant no secret.
        if bytes.trim_ascii().len() < SHORTEST {
            return Err(format!("{shown}: shorter than {SHORTEST} characters"));
        }
        Ok(Self(bytes))
    }

    /// One that nobody knows, and so nothing is held against successfully.
    pub fn unknown() -> Self {
        let mut bytes = vec![0; 32];
        let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
        if got != Ok(bytes.len()) {
            bytes.extend(format!("{:?}", std::time::Instant::now()).bytes());
        }
        Self(bytes)
    }

    /// The text itself, for where it is sent; none where it is no text.
    pub fn expose(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Whether it is this text, as it came in a header, where no text has blanks at its ends; takes the same time
    /// whatever of it is right.
    pub fn is(&self, text: &[u8]) -> bool {
        // The codes of both are compared: how long the secret is does not show either.
        let code = |text: &[u8]| Self(b"comparison".to_vec()).code().chain_update(text);
        code(self.0.trim_ascii()).verify_slice(&code(text.trim_ascii()).finalize().into_bytes()).is_ok()
    }

    /// Begins to compute the message authentication code of a text under it.
    ///
    /// # Panics
    ///
    /// Never: the algorithm takes keys of any length.
    pub fn code(&self) -> Code {
        #[allow(clippy::expect_used, reason = "HMAC has no wrong length of a key")]
        Code::new_from_slice(&self.0).expect("a key of any length")
    }
}

/// HMAC-SHA-256 (RFC 2104).
pub type Code = Hmac<Sha256>;
