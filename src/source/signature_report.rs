//! The report of `git verify-commit --raw` about one commit. Pure.
//!
//! **Invariant:** a signature is good only where the program says so in its own words for that. An
//! exit code shows neither whose key it was nor whether that had expired.

use super::keys::VerificationKeys;

/// The beginning of `ssh-keygen`'s report that a principal of the list has signed. Without one it
/// leaves out `for`.
const SSH_GOOD_PREFIX: &str = "Good \"git\" signature for ";

/// The prefix of gpg's status lines. See `doc/DETAILS` of GnuPG.
const GPG_STATUS_PREFIX: &str = "[GNUPG:] ";

/// The reports against a signature, and their words for people; the first that is found counts.
const GPG_REFUSALS: [(&str, &str); 7] = [
    ("BADSIG", "its signature was made for something else"),
    ("EXPKEYSIG", "its signature was made by a key that has expired"),
    ("REVKEYSIG", "its signature was made by a key that was revoked"),
    ("EXPSIG", "its signature has expired"),
    ("NO_PUBKEY", "its signature was made by a key that is not among them"),
    ("ERRSIG", "its signature cannot be checked"),
    ("NODATA", "its signature cannot be read"),
];

/// The longest text that is shown, in characters.
const MAX_REPORT_CHARS: usize = 300;

/// Says why a commit does not count as signed by one of the keys.
pub(super) fn judge(keys: &VerificationKeys, ended_well: bool, said: &str) -> Result<(), String> {
    match keys {
        VerificationKeys::Ssh(_) => judge_ssh(ended_well, said),
        VerificationKeys::OpenPgp(_) => judge_openpgp(ended_well, said),
    }
}

fn judge_ssh(ended_well: bool, said: &str) -> Result<(), String> {
    if ended_well && said.lines().filter(|line| line.starts_with(SSH_GOOD_PREFIX)).count() == 1 {
        return Ok(());
    }
    if said.trim().is_empty() {
        return Err("it has no SSH signature".to_owned());
    }
    Err(format!("its signature does not hold: {}", in_one_line(said)))
}

fn judge_openpgp(ended_well: bool, said: &str) -> Result<(), String> {
    let status = || said.lines().filter_map(|line| line.strip_prefix(GPG_STATUS_PREFIX));
    let words = |word: &str| status().filter(|line| line.split(' ').next() == Some(word)).count();
    if let Some((_, why)) = GPG_REFUSALS.iter().find(|(word, _)| words(word) > 0) {
        return Err((*why).to_owned());
    }
    if ended_well && words("GOODSIG") == 1 && words("VALIDSIG") == 1 {
        return Ok(());
    }
    if said.trim().is_empty() {
        return Err("it has no OpenPGP signature".to_owned());
    }
    Err(format!("its signature does not hold: {}", in_one_line(said)))
}

/// Returns lines that others may have written, as one of a bearable length.
fn in_one_line(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").chars().filter(|c| !c.is_control()).take(MAX_REPORT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &VerificationKeys, ended_well: bool, said: &str, expected: Result<(), &str>) {
        assert_eq!(judge(keys, ended_well, said), expected.map_err(str::to_owned), "{said}");
    }

    #[test]
    fn only_a_principal_of_the_list_signs() {
        let ssh = VerificationKeys::Ssh(Vec::new());
        let good = "Good \"git\" signature for ann@example.com with ED25519 key SHA256:x\n";
        let nobody = "Good \"git\" signature with ED25519 key SHA256:x\nNo principal matched.\n";
        check(&ssh, true, good, Ok(()));
        check(&ssh, false, "", Err("it has no SSH signature"));
        check(&ssh, true, "", Err("it has no SSH signature"));
        let why = "its signature does not hold: Good \"git\" signature with ED25519 key SHA256:x; No principal matched.";
        check(&ssh, false, nobody, Err(why));
        check(&ssh, true, nobody, Err(why));
        assert!(judge(&ssh, false, good).is_err());
        let long = judge(&ssh, false, &"x\u{1b}[31m\n".repeat(500)).unwrap_err();
        assert!(long.len() < 400 && !long.contains('\u{1b}'), "{long}");
    }

    #[test]
    fn gpg_must_call_it_good_and_valid_and_nothing_else() {
        let gpg = VerificationKeys::OpenPgp(Vec::new());
        let good =
            "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 93855AC6BEA9F30E a\n[GNUPG:] VALIDSIG 669F 2026-11-23\n";
        check(&gpg, true, good, Ok(()));
        check(&gpg, false, "", Err("it has no OpenPGP signature"));
        for (word, why) in GPG_REFUSALS {
            check(&gpg, true, &format!("{good}[GNUPG:] {word} 93855AC6BEA9F30E a\n"), Err(why));
        }
        // A name is no word of status, and two signatures are not one.
        check(&gpg, true, &good.replace(" a\n", " BADSIG\n"), Ok(()));
        assert!(judge(&gpg, true, &good.repeat(2)).is_err());
        assert!(judge(&gpg, false, good).is_err());
        assert!(judge(&gpg, true, "[GNUPG:] GOODSIG 93 a\n").is_err());
        assert!(judge(&gpg, true, "GOODSIG\nVALIDSIG\n").is_err());
    }
}
