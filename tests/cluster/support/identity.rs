//! Identities of age, and files that are encrypted for them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use controlplane::Encrypters;
use tempfile::TempDir;

fn encrypters() -> &'static Encrypters {
    static ENCRYPTERS: OnceLock<Encrypters> = OnceLock::new();
    ENCRYPTERS.get_or_init(|| Encrypters::find().unwrap())
}

/// An identity in a folder of credentials, and its recipient.
pub(crate) struct AgeIdentity {
    pub(crate) folder: TempDir,
    recipient: String,
}

impl AgeIdentity {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let output = Command::new(&encrypters().age_keygen).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        fs::write(folder.path().join("sops-age"), &text).unwrap();
        let recipient = text.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap().to_owned();
        Self { folder, recipient }
    }

    /// Returns the file of the identity.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("sops-age")
    }

    /// Returns the manifest of a Secret, its values encrypted by the real program.
    pub(crate) fn encrypt(&self, manifest: &str) -> String {
        self.encrypt_fields(manifest, "^(data|stringData)$")
    }

    /// Does as [`AgeIdentity::encrypt`], where fields are encrypted whose names match.
    pub(crate) fn encrypt_fields(&self, manifest: &str, names: &str) -> String {
        self.encrypt_file("secret.yaml", manifest, &["--encrypted-regex", names])
    }

    /// Returns a file of any format, encrypted by the real program.
    pub(crate) fn encrypt_file(&self, name: &str, text: &str, options: &[&str]) -> String {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let output = Command::new(&encrypters().sops)
            .args(["encrypt", "--age", &self.recipient])
            .args(options)
            .arg(&file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}
