//! The reasons for which a file is not opened. None carries anything that was encrypted.

use crate::object::{Diagnostic, ErrorClass, ManifestOrigin};

use super::age::AgeFault;
use super::value::EncryptedValueFault;

/// Recipients that a message names.
const MAX_RECIPIENT_NAMES: usize = 3;
/// Characters of a key path, or of a recipient, that a message shows.
const MAX_EXCERPT_CHARS: usize = 80;

/// The reason for which the metadata of a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataFault {
    /// There is none where it should be.
    #[error("there is none in its first document")]
    Missing,
    /// It is in the file twice.
    #[error("it is there twice")]
    Twice,
    /// It is not a mapping of lists and texts.
    #[error("it is not of the form that SOPS writes")]
    Shape,
    /// There is no `mac`.
    #[error("it has no `mac`, without which nobody knows what was changed")]
    NoMac,
    /// It names nobody who could open the file.
    #[error("it names no keys")]
    NoKeys,
    /// It names more recipients than are looked at.
    #[error("it names more than 256 recipients")]
    TooManyRecipients,
    /// It has more members and items than are read.
    #[error("it has more keys and items than SOPS writes")]
    TooManyPlaces,
    /// The data key is split among groups of keys.
    #[error("the data key is split among several `key_groups`, which rhumb does not join")]
    KeyGroups,
    /// Several rules say what is encrypted.
    #[error("it has more than one rule for what is encrypted")]
    SeveralRules,
    /// A regular expression is not understood.
    #[error("its regular expression is not understood")]
    Pattern,
    /// The encrypted MAC does not open.
    #[error("its `mac` or `lastmodified` was edited")]
    Code,
    /// The data key has a wrong length.
    #[error("its data key has a wrong length")]
    DataKey,
}

/// The kinds of identities that the recipients of a file are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecipientKinds {
    /// Some are of X25519, which is read.
    Known,
    /// All are of others: of plugins, post-quantum or of SSH.
    Other,
}

impl RecipientKinds {
    pub(super) fn of<'r>(mut recipients: impl Iterator<Item = &'r str>) -> Self {
        // The digit 1 ends the part that names the kind, and is in no other.
        let is_known = |recipient: &str| {
            recipient.strip_prefix("age1").is_some_and(|rest| rest.len() == 58 && !rest.contains('1'))
        };
        if recipients.any(is_known) { Self::Known } else { Self::Other }
    }
}

/// The reason for which a file is not opened, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SopsError {
    /// The file is larger than what is read.
    #[error("{at}: the encrypted file has more than {limit} {unit}")]
    TooLarge {
        /// The place.
        at: ManifestOrigin,
        /// The most that it may have.
        limit: usize,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// The file is not of its format.
    #[error("{at}: {message}")]
    Syntax {
        /// The place.
        at: ManifestOrigin,
        /// The fault.
        message: String,
    },
    /// The file has a form that the reader of encrypted files does not take.
    #[error("{at}: the encrypted file holds {form}, which SOPS never writes")]
    Form {
        /// The place.
        at: ManifestOrigin,
        /// The form.
        form: &'static str,
    },
    /// The metadata cannot be used.
    #[error("{at}: the metadata below `sops` cannot be used: {fault}")]
    Metadata {
        /// The place.
        at: ManifestOrigin,
        /// The fault.
        fault: MetadataFault,
    },
    /// The file is encrypted with something else than age.
    #[error("{at}: the file is encrypted for {names}, and not for age")]
    NotSupported {
        /// The place.
        at: ManifestOrigin,
        /// The names of what it is encrypted for.
        names: String,
    },
    /// No identity fits.
    #[error("{at}: no age identity at hand opens the file, which is encrypted for {recipients}")]
    NoKey {
        /// The place.
        at: ManifestOrigin,
        /// Its recipients.
        recipients: String,
        /// The kinds of identities that they are for.
        kinds: RecipientKinds,
    },
    /// The data key, encrypted with age, cannot be read.
    #[error("{at}: the data key for {recipient} cannot be read: {fault}")]
    DataKey {
        /// The place.
        at: ManifestOrigin,
        /// The recipient.
        recipient: String,
        /// The fault.
        fault: AgeFault,
    },
    /// A value cannot be opened.
    #[error("{at}: the encrypted value of {path} {fault}")]
    Value {
        /// The place.
        at: ManifestOrigin,
        /// The keys on the way to it.
        path: String,
        /// The fault.
        fault: EncryptedValueFault,
    },
    /// The values of the file are not those that were encrypted.
    #[error("{at}: the file was edited after it was encrypted: its `mac` does not fit its values")]
    Code {
        /// The place.
        at: ManifestOrigin,
    },
    /// The opened values cannot be written in the file's format.
    #[error("{at}: the opened values cannot be written as a file: it has an unusual form")]
    Unwritable {
        /// The place.
        at: ManifestOrigin,
    },
}

impl SopsError {
    /// Returns the class: a missing key is for who configures, all else for who writes the source.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::NoKey { .. } => ErrorClass::Config,
            _ => ErrorClass::Source,
        }
    }

    /// Returns the place.
    pub const fn at(&self) -> &ManifestOrigin {
        match self {
            Self::TooLarge { at, .. }
            | Self::Syntax { at, .. }
            | Self::Form { at, .. }
            | Self::Metadata { at, .. }
            | Self::NotSupported { at, .. }
            | Self::NoKey { at, .. }
            | Self::DataKey { at, .. }
            | Self::Value { at, .. }
            | Self::Code { at }
            | Self::Unwritable { at } => at,
        }
    }

    /// Returns the error as a finding.
    pub fn diagnostic(&self) -> Diagnostic {
        let at = self.at();
        let text = self.to_string();
        let message = text.strip_prefix(&format!("{at}: ")).unwrap_or(&text);
        let (code, hint) = self.code_and_hint();
        Diagnostic::error(at.clone(), code, message).hint(hint)
    }

    const fn code_and_hint(&self) -> (&'static str, &'static str) {
        const AGE_RECIPIENT_HINT: &str = "add an age recipient: `sops rotate -i --add-age age1… FILE`";
        const ADD_AGE: &str = "none of them is of a kind that rhumb reads: add one of `age-keygen` by \
                               `sops rotate -i --add-age age1… FILE`";
        const SOPS_EDIT_HINT: &str = "put the file back as it was, and change it with `sops edit FILE`";
        const REWRITE_HINT: &str = "write the file with `sops` again";
        match self {
            Self::TooLarge { .. } => ("too-large", "split it"),
            Self::Syntax { .. } => ("sops-syntax", SOPS_EDIT_HINT),
            Self::Form { .. } | Self::Unwritable { .. } => ("sops-form", REWRITE_HINT),
            Self::Metadata { fault: MetadataFault::KeyGroups, .. } => {
                ("not-supported", "encrypt it anew with one group, for example by `--age age1…,age1…`")
            }
            Self::Metadata { .. } => ("sops-metadata", SOPS_EDIT_HINT),
            Self::NotSupported { .. } => ("not-supported", AGE_RECIPIENT_HINT),
            Self::NoKey { kinds: RecipientKinds::Other, .. } => ("no-key", ADD_AGE),
            Self::NoKey { .. } => (
                "no-key",
                "give rhumb the identity of one of them, or add its recipient: `sops rotate -i --add-age age1… FILE`",
            ),
            Self::DataKey { .. } => ("no-key", "`sops updatekeys FILE` writes it anew"),
            Self::Value { fault: EncryptedValueFault::Binary | EncryptedValueFault::NotFinite, .. } => {
                ("sops-value", "change it with `sops edit FILE`")
            }
            Self::Value { .. } | Self::Code { .. } => ("mac-mismatch", SOPS_EDIT_HINT),
        }
    }
}

/// Names recipients, not more than a few of them.
pub(super) fn recipient_names<'r>(recipients: impl ExactSizeIterator<Item = &'r str>) -> String {
    let count = recipients.len();
    let mut names: Vec<String> = recipients.take(MAX_RECIPIENT_NAMES).map(text_excerpt).collect();
    if count > MAX_RECIPIENT_NAMES {
        names.push(format!("{} more", count - MAX_RECIPIENT_NAMES));
    }
    names.join(", ")
}

/// Shows a text from a file: as much of it as a message bears, on one line.
pub(crate) fn text_excerpt(text: &str) -> String {
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    let mut shown: String = text.chars().take(MAX_EXCERPT_CHARS).map(plain).collect();
    if text.chars().nth(MAX_EXCERPT_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
