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

/// The end of the program that checks a signature, by its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    Success,
    Failure,
}

/// Says why a commit does not count as signed by one of the keys.
pub(super) fn check_signature(keys: &VerificationKeys, end: ProgramEnd, report: &str) -> Result<(), String> {
    match keys {
        VerificationKeys::Ssh(_) => check_ssh_signature(end, report),
        VerificationKeys::OpenPgp(_) => check_openpgp_signature(end, report),
    }
}

fn check_ssh_signature(end: ProgramEnd, report: &str) -> Result<(), String> {
    if end == ProgramEnd::Success
        && report.lines().filter(|line| line.starts_with(SSH_GOOD_PREFIX)).count() == 1
    {
        return Ok(());
    }
    if report.trim().is_empty() {
        return Err("it has no SSH signature".to_owned());
    }
    Err(format!("its signature does not hold: {}", in_one_line(report)))
}

fn check_openpgp_signature(end: ProgramEnd, report: &str) -> Result<(), String> {
    let status = || report.lines().filter_map(|line| line.strip_prefix(GPG_STATUS_PREFIX));
    let words = |word: &str| status().filter(|line| line.split(' ').next() == Some(word)).count();
    if let Some((_, why)) = GPG_REFUSALS.iter().find(|(word, _)| words(word) > 0) {
        return Err((*why).to_owned());
    }
    if end == ProgramEnd::Success && words("GOODSIG") == 1 && words("VALIDSIG") == 1 {
        return Ok(());
    }
    if report.trim().is_empty() {
        return Err("it has no OpenPGP signature".to_owned());
    }
    Err(format!("its signature does not hold: {}", in_one_line(report)))
}

/// Returns lines that others may have written, as one of a bearable length.
fn in_one_line(report: &str) -> String {
    let lines: Vec<&str> = report.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").chars().filter(|c| !c.is_control()).take(MAX_REPORT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &VerificationKeys, end: ProgramEnd, report: &str, expected: Result<(), &str>) {
        assert_eq!(check_signature(keys, end, report), expected.map_err(str::to_owned), "{report}");
    }

    #[test]
    fn only_a_principal_of_the_list_signs() {
        let ssh = VerificationKeys::Ssh(Vec::new());
        let good = "Good \"git\" signature for ann@example.com with ED25519 key SHA256:x\n";
        let nobody = "Good \"git\" signature with ED25519 key SHA256:x\nNo principal matched.\n";
        check(&ssh, ProgramEnd::Success, good, Ok(()));
        check(&ssh, ProgramEnd::Failure, "", Err("it has no SSH signature"));
        check(&ssh, ProgramEnd::Success, "", Err("it has no SSH signature"));
        let why = "its signature does not hold: Good \"git\" signature with ED25519 key SHA256:x; No principal matched.";
        check(&ssh, ProgramEnd::Failure, nobody, Err(why));
        check(&ssh, ProgramEnd::Success, nobody, Err(why));
        assert!(check_signature(&ssh, ProgramEnd::Failure, good).is_err());
        let long = check_signature(&ssh, ProgramEnd::Failure, &"x\u{1b}[31m\n".repeat(500)).unwrap_err();
        assert!(long.len() < 400 && !long.contains('\u{1b}'), "{long}");
    }

    #[test]
    fn gpg_must_call_it_good_and_valid_and_nothing_else() {
        let gpg = VerificationKeys::OpenPgp(Vec::new());
        let good =
            "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 93855AC6BEA9F30E a\n[GNUPG:] VALIDSIG 669F 2026-11-23\n";
        check(&gpg, ProgramEnd::Success, good, Ok(()));
        check(&gpg, ProgramEnd::Failure, "", Err("it has no OpenPGP signature"));
        for (word, why) in GPG_REFUSALS {
            check(
                &gpg,
                ProgramEnd::Success,
                &format!("{good}[GNUPG:] {word} 93855AC6BEA9F30E a\n"),
                Err(why),
            );
        }
        // A name is no word of status, and two signatures are not one.
        check(&gpg, ProgramEnd::Success, &good.replace(" a\n", " BADSIG\n"), Ok(()));
        assert!(check_signature(&gpg, ProgramEnd::Success, &good.repeat(2)).is_err());
        assert!(check_signature(&gpg, ProgramEnd::Failure, good).is_err());
        assert!(check_signature(&gpg, ProgramEnd::Success, "[GNUPG:] GOODSIG 93 a\n").is_err());
        assert!(check_signature(&gpg, ProgramEnd::Success, "GOODSIG\nVALIDSIG\n").is_err());
    }
}
