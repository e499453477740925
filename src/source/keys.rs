//! The keys whose signatures count: a list of allowed signers for SSH, or armored OpenPGP public
//! keys.
//!
//! The content of a file shows which of the two it holds. Anything else is refused with its line: a
//! file that is half understood would trust fewer keys than its author thinks, or other ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A larger file, in bytes, is no list of keys.
pub(super) const MAX_KEYS_BYTES: u64 = 1 << 20;

const ARMOR_BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const ARMOR_END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// The kinds of key that may sign for SSH, as `ssh-keygen` names them.
const SSH_KEY_KINDS: [&str; 7] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// Keys, in the form in which the program takes them that verifies by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VerificationKeys {
    /// The list itself, for `ssh-keygen`.
    Ssh(Vec<u8>),
    /// A keyring, for `gpg`.
    OpenPgp(Vec<u8>),
}

/// The line of a faulty key file, and the fault.
pub(super) type KeyFault = (usize, &'static str);

impl VerificationKeys {
    /// Reads the content of a file.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, KeyFault> {
        if bytes.len() as u64 > MAX_KEYS_BYTES {
            return Err((1, "the file is larger than 1 MiB"));
        }
        let end = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
        let Ok(text) = std::str::from_utf8(bytes) else {
            let before = bytes.get(..end).unwrap_or_default();
            let line = before.split(|byte| *byte == b'\n').count();
            return Err((line, "it is no text: export OpenPGP keys with `gpg --armor --export`"));
        };
        let lines = || text.lines().map(str::trim).enumerate().map(|(index, line)| (index + 1, line));
        let is_content = |line: &str| !line.is_empty() && !line.starts_with('#');
        let Some((number, first)) = lines().find(|(_, line)| is_content(line)) else {
            return Err((1, "it names no key"));
        };
        if first.starts_with("-----BEGIN PGP ") {
            return dearmor(lines()).map(Self::OpenPgp);
        }
        if first.starts_with("-----BEGIN ") {
            return Err((
                number,
                "it is neither a list of allowed signers nor a block of OpenPGP public keys",
            ));
        }
        for (number, line) in lines().filter(|(_, line)| is_content(line)) {
            check_signer(line).map_err(|why| (number, why))?;
        }
        Ok(Self::Ssh(bytes.to_vec()))
    }

    /// Returns the program that verifies by them, which git starts.
    pub(super) fn program(&self) -> &'static str {
        match self {
            Self::Ssh(_) => "ssh-keygen",
            Self::OpenPgp(_) => "gpg",
        }
    }
}

/// Checks one line of a list of allowed signers: principals, options, kind, key and a comment.
fn check_signer(line: &str) -> Result<(), &'static str> {
    let words = split_words(line).ok_or("a quotation mark is not closed")?;
    let Some(at) = words.iter().position(|word| SSH_KEY_KINDS.contains(word)) else {
        return Err("it is no allowed signer: `NAME ssh-ed25519 AAAA…`, as in ssh-keygen(1), is expected");
    };
    if at == 0 {
        return Err("a name is missing before the kind of the key: `*` takes any");
    }
    let kind = words.get(at).copied().unwrap_or_default();
    let key = words.get(at + 1).and_then(|key| STANDARD.decode(key).ok()).unwrap_or_default();
    // It begins with its kind, and that with its length in four bytes.
    let length = u32::try_from(kind.len()).unwrap_or_default().to_be_bytes();
    let begins = key.strip_prefix(&length).is_some_and(|key| key.starts_with(kind.as_bytes()));
    if begins { Ok(()) } else { Err("the key is cut, or is of another kind than the lines before it") }
}

/// Returns the words of a line, parted at blanks outside of quotation marks; none where one is not
/// closed.
fn split_words(line: &str) -> Option<Vec<&str>> {
    let (mut words, mut start, mut quoted) = (Vec::new(), None, false);
    for (at, char) in line.char_indices() {
        quoted ^= char == '"';
        if quoted || !char.is_ascii_whitespace() {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            words.extend(line.get(start..at));
        }
    }
    words.extend(start.and_then(|start| line.get(start..)));
    (!quoted).then_some(words)
}

/// Takes the armor off public keys. RFC 9580, section 6: headers, an empty line, base64, maybe a
/// checksum, the end.
fn dearmor<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Vec<u8>, KeyFault> {
    const DAMAGED_ARMOR: &str =
        "the block of OpenPGP keys is damaged: export it anew with `gpg --armor --export`";
    let mut ring = Vec::new();
    let mut block: Option<(usize, bool, String)> = None;
    for (number, line) in lines {
        match &mut block {
            None if line == ARMOR_BEGIN => block = Some((number, false, String::new())),
            None if line.starts_with("-----BEGIN PGP PRIVATE") => {
                return Err((number, "it is a private key: only public ones belong there"));
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => return Err((number, "only blocks of OpenPGP public keys are allowed here")),
            Some((_, _, text)) if line == ARMOR_END => {
                let keys = STANDARD.decode(&*text).map_err(|_| (number, DAMAGED_ARMOR))?;
                // The first packet is a public key: tag 6, in the old or the new form.
                let tag =
                    keys.first().map(|byte| if byte & 0x40 == 0 { (byte & 0x3c) >> 2 } else { byte & 0x3f });
                if tag != Some(6) {
                    return Err((number, "the block holds no public key"));
                }
                ring.extend(keys);
                block = None;
            }
            Some((_, body @ false, _)) => match line {
                "" => *body = true,
                header if header.contains(": ") => {}
                _ => return Err((number, DAMAGED_ARMOR)),
            },
            Some((_, _, text)) if !line.starts_with('=') => text.push_str(line),
            Some(_) => {}
        }
    }
    match block {
        Some((number, ..)) => Err((number, "the block of OpenPGP keys has no end")),
        None => Ok(ring),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Zz1Vv8d0lLkqBwI0V1mB2Wb0lV3m1x9cH6o0Yz3aV";

    #[test]
    fn what_keys_a_file_holds_is_known_by_its_content() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, KeyFault>) {
            let found = VerificationKeys::read(text.as_bytes());
            assert_eq!(
                found.as_ref().map(VerificationKeys::program).map_err(|fault| *fault),
                expected,
                "{text}"
            );
        }
        let cut = "the key is cut, or is of another kind than the lines before it";
        let none = "it is no allowed signer: `NAME ssh-ed25519 AAAA…`, as in ssh-keygen(1), is expected";
        let damaged = "the block of OpenPGP keys is damaged: export it anew with `gpg --armor --export`";
        check(&format!("# ours\n\nann@example.com {ED25519} laptop\n"), Ok("ssh-keygen"));
        check(&format!("a,b namespaces=\"git, file\",valid-before=\"20300101\" {ED25519}"), Ok("ssh-keygen"));
        check("", Err((1, "it names no key")));
        check("# nothing\n", Err((1, "it names no key")));
        check(ED25519, Err((1, "a name is missing before the kind of the key: `*` takes any")));
        check(&format!("a {ED25519}\nb ssh-ed25519 AAAA"), Err((2, cut)));
        check(&format!("a {}", ED25519.replace("ssh-ed25519 ", "ssh-rsa ")), Err((1, cut)));
        check("a\nb c", Err((1, none)));
        check(&format!("a namespaces=\"git {ED25519}"), Err((1, "a quotation mark is not closed")));
        let pem = "it is neither a list of allowed signers nor a block of OpenPGP public keys";
        check("\n-----BEGIN OPENSSH PRIVATE KEY-----\n", Err((2, pem)));
        let block = |body: &str| format!("{ARMOR_BEGIN}\n{body}\n{ARMOR_END}\n");
        // Tag 6 in the old and in the new form, and tag 5, which is a private key.
        check(&block("Comment: a\n\nmDMEX/8=\n=abcd"), Ok("gpg"));
        check(&block("\nxjMEX/8="), Ok("gpg"));
        check(&block("\nlDMEX/8="), Err((4, "the block holds no public key")));
        check(&block("\nmDME?"), Err((4, damaged)));
        check(&block("mDMEX/8="), Err((2, damaged)));
        check(
            &format!("{}and more", block("\nmDMEX/8=")),
            Err((5, "only blocks of OpenPGP public keys are allowed here")),
        );
        check(&format!("# ours\n{ARMOR_BEGIN}\n\nmDME"), Err((2, "the block of OpenPGP keys has no end")));
        check(
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
            Err((1, "it is a private key: only public ones belong there")),
        );
    }

    #[test]
    fn what_is_no_text_or_too_large_is_no_list_of_keys() {
        let binary = VerificationKeys::read(b"# a\n\x99\x01").unwrap_err();
        assert_eq!(binary.0, 2);
        assert!(binary.1.contains("gpg --armor --export"));
        assert_eq!(
            VerificationKeys::read(&vec![b'\n'; (1 << 20) + 1]).unwrap_err().1,
            "the file is larger than 1 MiB"
        );
    }

    #[test]
    fn blocks_behind_each_other_make_one_keyring() {
        let text = format!("{ARMOR_BEGIN}\n\nmDMEX/8=\n{ARMOR_END}\n\n{ARMOR_BEGIN}\n\nmAA=\n{ARMOR_END}\n");
        let ring = vec![0x98, 0x33, 0x04, 0x5f, 0xff, 0x98, 0x00];
        assert_eq!(VerificationKeys::read(text.as_bytes()), Ok(VerificationKeys::OpenPgp(ring)));
    }
}
