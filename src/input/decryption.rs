//! Opens what SOPS encrypted, with the age identities that one source may use.

use std::cell::OnceCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::render_cipher::{RECIPIENTS_KEY, RootCipher, SEALED_PREFIX};
use super::sops::{
    AgeIdentities, DataKey, ENCRYPTED_PREFIX, FileSeal, OpenedFile, PlaintextLayout, SOPS_KEY, SopsError,
    SopsFormat, is_encrypted, object_key, open, open_object, sealing_secret,
};
use crate::manifest;
use crate::object::{Diagnostic, ManifestOrigin};
use crate::secret::{is_there, read_regular};

/// The bytes of a file of identities.
const MAX_IDENTITY_FILE_BYTES: u64 = 1 << 20;

/// The code of a file for which there is no identity.
pub(crate) const NO_KEY: &str = "no-key";
/// The code of what no age identity could open.
pub(super) const NOT_SUPPORTED: &str = "not-supported";

/// The code of a rendered object whose seal does not fit it.
const SEAL_MISMATCH: &str = "seal-mismatch";

/// A file that was opened for a render.
pub(super) struct OpenedInput {
    /// The file as `sops decrypt` writes it.
    pub(super) plaintext: Zeroizing<Vec<u8>>,
    /// Its encrypted values, each by itself.
    pub(super) values: Vec<Zeroizing<Vec<u8>>>,
    /// The secrets for seals over what is made of it.
    pub(super) seals: Vec<FileSeal>,
}

/// The age identities of a source: read when they are needed, so that newer ones count at once.
#[derive(Clone, Default)]
pub(crate) struct Decrypter {
    /// The first file that is there counts.
    files: Vec<PathBuf>,
    /// The one of them that somebody named, and did not only allow.
    named: Option<PathBuf>,
    /// Identities from the environment of a command.
    text: Option<Zeroizing<String>>,
}

impl fmt::Debug for Decrypter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decrypter").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Decrypter {
    /// Returns one with the identities of the first of these files that is there, else of a text.
    pub(crate) fn new(files: Vec<PathBuf>, text: Option<String>) -> Self {
        Self { files, named: None, text: text.map(Zeroizing::new) }
    }

    /// Adds the last file that may count, which somebody named.
    #[must_use]
    pub(crate) fn with_named_file(mut self, file: PathBuf) -> Self {
        self.files.push(file.clone());
        Self { named: Some(file), ..self }
    }

    /// Returns the file that counts now.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).find(|file| is_there(file))
    }

    /// Reads the identities.
    ///
    /// # Errors
    /// Fails with the reason and the remedy where there are none, or none that can be read.
    pub(crate) fn identities(&self) -> Result<AgeIdentities, String> {
        let Some(file) = self.file() else {
            let text = self.text.as_ref().ok_or_else(|| self.missing_reason())?;
            return AgeIdentities::parse(text).map_err(|error| error.to_string());
        };
        let named = |error: &dyn fmt::Display| format!("{}: {error}", file.display());
        let bytes = read_regular(file, MAX_IDENTITY_FILE_BYTES).map_err(|error| named(&error))?;
        let text = String::from_utf8(bytes).map(Zeroizing::new).map_err(|_| named(&"it is not UTF-8"))?;
        AgeIdentities::parse(&text).map_err(|error| named(&error))
    }

    /// Returns why there are no identities. A named file that is missing is reported; a credential
    /// is optional.
    fn missing_reason(&self) -> String {
        match &self.named {
            Some(file) => {
                format!("{}: no such file, and no other age identity is configured", file.display())
            }
            None => "no age identity is configured".to_owned(),
        }
    }

    /// Returns a file in the open; none where it is not encrypted.
    ///
    /// # Errors
    /// Fails with what is wrong, or missing.
    pub(crate) fn open_file(
        &self,
        file: &Arc<str>,
        bytes: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, Box<Diagnostic>> {
        let format = SopsFormat::of_name(file);
        if !is_encrypted(bytes, format) {
            return Ok(None);
        }
        Ok(Some(self.for_render().open(file, bytes, format)?.plaintext(PlaintextLayout::SameLines)?))
    }

    /// Returns the same for one render, which reads the identities once, when it needs them.
    pub(super) fn for_render(&self) -> RenderDecrypter<'_> {
        RenderDecrypter { decrypter: self, identities: OnceCell::new() }
    }

    /// Opens the data of a Secret that was rendered from opened files. Returns whether it was
    /// sealed.
    ///
    /// # Errors
    /// Fails with what is wrong, or missing.
    pub(crate) fn open_sealed(
        &self,
        object: &mut Value,
        at: &ManifestOrigin,
    ) -> Result<bool, Box<Diagnostic>> {
        let Some(holders) = object.get(RECIPIENTS_KEY) else { return Ok(false) };
        let identities = self.identities_for(at)?;
        let secrets = holders.as_array().into_iter().flatten();
        let secrets = secrets.map(|holders| sealing_secret(holders, at, &identities));
        let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
        let seal = RootCipher::of(&secrets).ok_or_else(|| Box::new(bad_seal(at, "has no key")))?;
        seal.open(object).map_err(|fault| Box::new(bad_seal(at, &fault.to_string())))?;
        Ok(true)
    }

    /// Opens the values of an object that was rendered from encrypted files, whose codes were
    /// checked then. Returns whether it had any.
    ///
    /// # Errors
    /// Fails with what is wrong, or missing.
    pub(crate) fn open_rendered(
        &self,
        object: &mut Value,
        at: &ManifestOrigin,
    ) -> Result<bool, Box<Diagnostic>> {
        if !is_encrypted_object(object) {
            return Ok(false);
        }
        let identities = self.identities_for(at)?;
        let key = object_key(object, at, &identities)?;
        open_object(object, at, &[key])?;
        Ok(true)
    }

    fn identities_for(&self, at: &ManifestOrigin) -> Result<AgeIdentities, Box<Diagnostic>> {
        self.identities().map_err(|why| Box::new(missing_key_diagnostic(at.clone(), &why)))
    }
}

/// The identities of one render: read once, so that all of its files are opened by the same.
pub(super) struct RenderDecrypter<'d> {
    decrypter: &'d Decrypter,
    identities: OnceCell<Result<AgeIdentities, String>>,
}

impl RenderDecrypter<'_> {
    /// Returns the keys of a file whose code fits; none where it is not encrypted in this format.
    ///
    /// # Errors
    /// Fails with what is wrong, or missing.
    pub(super) fn file_keys(
        &self,
        file: &Arc<str>,
        bytes: &[u8],
        format: SopsFormat,
    ) -> Result<Vec<DataKey>, Box<Diagnostic>> {
        if !is_encrypted(bytes, format) {
            return Ok(Vec::new());
        }
        Ok(self.open(file, bytes, format)?.into_keys())
    }

    /// Opens a file for a render.
    ///
    /// # Errors
    /// Fails with what is wrong, or missing.
    pub(super) fn open_input(
        &self,
        file: &Arc<str>,
        bytes: &[u8],
        format: SopsFormat,
    ) -> Result<OpenedInput, Box<Diagnostic>> {
        let opened = self.open(file, bytes, format)?;
        Ok(OpenedInput {
            plaintext: opened.plaintext(PlaintextLayout::Sops)?,
            values: opened.values(),
            seals: opened.into_seals(),
        })
    }

    fn open<'f>(
        &self,
        file: &'f Arc<str>,
        bytes: &'f [u8],
        format: SopsFormat,
    ) -> Result<OpenedFile<'f>, Box<Diagnostic>> {
        let identities = self.identities.get_or_init(|| self.decrypter.identities());
        let missing = |why: &String| Box::new(keyless_diagnostic(file, bytes, format, why));
        Ok(open(file, bytes, format, identities.as_ref().map_err(missing)?)?)
    }
}

impl From<SopsError> for Box<Diagnostic> {
    fn from(error: SopsError) -> Self {
        Self::new(error.diagnostic())
    }
}

/// Returns whether a rendered object may have values that are not open.
///
/// Its text then has a key or the beginning of a value of such an object. Letters may also be
/// spelled by their numbers.
pub(super) fn can_be_closed(object: &[u8]) -> bool {
    let marks = [RECIPIENTS_KEY, SOPS_KEY, SEALED_PREFIX, ENCRYPTED_PREFIX, "\\u"];
    std::str::from_utf8(object).is_ok_and(|text| marks.iter().any(|mark| text.contains(mark)))
}

/// Returns whether an object has SOPS's metadata, and is not left to an operator.
pub(super) fn is_encrypted_object(object: &Value) -> bool {
    object.get(SOPS_KEY).is_some_and(Value::is_object) && !manifest::is_for_operator(object)
}

/// Checks that all encrypted values of an object fit the keys of the files that it comes from.
///
/// # Errors
/// Fails where one was edited, or comes from elsewhere.
pub(super) fn check_rendered(object: &Value, at: &ManifestOrigin, keys: &[DataKey]) -> Result<(), SopsError> {
    let mut copy = object.clone();
    open_object(&mut copy, at, keys)
}

fn bad_seal(at: &ManifestOrigin, why: &str) -> Diagnostic {
    let message = format!("a rendered value of this Secret cannot be opened: it {why}");
    let hint = "remove the state directory, so that it is rendered again";
    Diagnostic::error(at.clone(), SEAL_MISMATCH, message).hint(hint)
}

/// Returns whether a file stays closed only because no key for it is at hand. Its names count then,
/// which are in the open.
pub(crate) fn is_key_missing(found: &Diagnostic) -> bool {
    [NO_KEY, NOT_SUPPORTED].contains(&found.code)
}

/// Returns what is wrong with a file where there are no identities. One that none could open says
/// so: an identity is no remedy then.
fn keyless_diagnostic(file: &Arc<str>, bytes: &[u8], format: SopsFormat, why: &str) -> Diagnostic {
    match open(file, bytes, format, &AgeIdentities::default()) {
        Ok(_) | Err(SopsError::NoKey { .. }) => {
            missing_key_diagnostic(ManifestOrigin::of_file(file.clone()), why)
        }
        Err(error) => error.diagnostic(),
    }
}

fn missing_key_diagnostic(at: ManifestOrigin, why: &str) -> Diagnostic {
    let message = format!("this file is encrypted by SOPS, and cannot be opened: {why}");
    let hint = "give the service an identity (`LoadCredential=sops-age:FILE`), or a command one by SOPS_AGE_KEY_FILE";
    Diagnostic::error(at, NO_KEY, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCRYPTED: &[u8] = include_bytes!("sops/tests/fixtures/values.yaml");
    const IDENTITY: &str = include_str!("sops/tests/fixtures/identity.txt");

    #[test]
    fn a_file_that_somebody_named_is_reported_where_it_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let (optional, named) = (folder.path().join("sops-age"), folder.path().join("keys.txt"));
        let decrypter = Decrypter::new(vec![optional], None);
        assert_eq!(decrypter.identities().err().as_deref(), Some("no age identity is configured"));
        let decrypter = decrypter.with_named_file(named.clone());
        let expected = format!("{}: no such file, and no other age identity is configured", named.display());
        assert_eq!(decrypter.identities().err(), Some(expected));
        std::fs::write(&named, IDENTITY).unwrap();
        assert!(decrypter.identities().is_ok());
    }

    #[test]
    fn an_object_without_any_mark_is_in_the_open() {
        let check = |object: &str, expected: bool| {
            assert_eq!(can_be_closed(object.as_bytes()), expected, "{object}");
        };
        check(r#"{"kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":"1\n"}}"#, false);
        check(r#"{"kind":"Secret","sops":{"mac":"x"}}"#, true);
        check(r#"{"kind":"Secret","\u0073ops":{"mac":"x"}}"#, true);
        check(r#"{"kind":"Secret","data":{"a":"ENC[AES256_GCM,data:x]"}}"#, true);
        check(&format!(r#"{{"kind":"Secret","data":{{"a":"{SEALED_PREFIX}x]"}}}}"#), true);
        check(&format!(r#"{{"kind":"Secret","{RECIPIENTS_KEY}":[]}}"#), true);
        assert!(!can_be_closed(b"\xff"));
    }

    #[test]
    fn a_render_reads_the_identities_once_and_the_next_one_anew() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.txt");
        std::fs::write(&key, IDENTITY).unwrap();
        let decrypter = Decrypter::new(vec![key.clone()], None);
        let name: Arc<str> = "values.yaml".into();
        let opens = |render: &RenderDecrypter<'_>| {
            render.file_keys(&name, ENCRYPTED, SopsFormat::Yaml).map(|keys| keys.len())
        };
        let render = decrypter.for_render();
        assert_eq!(opens(&render), Ok(1));
        std::fs::remove_file(&key).unwrap();
        assert_eq!(opens(&render), Ok(1), "no file is read for the second one");
        let missing = opens(&decrypter.for_render()).unwrap_err();
        assert_eq!(missing.code, NO_KEY);
        std::fs::write(&key, IDENTITY).unwrap();
        assert_eq!(opens(&decrypter.for_render()), Ok(1));
    }
}
