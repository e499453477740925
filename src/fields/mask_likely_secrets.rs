//! Texts that others wrote, and in which a secret may be: what looks like one is not shown.

/// A shorter word is no secret that anybody should use.
const MIN_SECRET_CHARS: usize = 16;

/// Returns the text without credentials and queries in URLs. Each word that looks like a secret
/// becomes `***`: at least 16 characters, among them a digit. Paths and dotted names are judged
/// part by part.
///
/// It is for complaints, whose place is reported beside them: a name too many that cannot be read
/// harms little.
pub(crate) fn mask_likely_secrets(text: &str) -> String {
    let text = strip_credentials(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(begin) = rest.find(is_credential_char) {
        let (before, from) = rest.split_at(begin);
        let (word, after) = from.split_at(from.find(|c| !is_credential_char(c)).unwrap_or(from.len()));
        shown.push_str(before);
        shown.push_str(if is_likely_secret(word) { "***" } else { word });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Returns whether a character is one of passwords and tokens, encoded or not.
fn is_credential_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-+=&%~".contains(c)
}

fn is_likely_secret(word: &str) -> bool {
    word.len() >= MIN_SECRET_CHARS && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the text with what is between `://` and `@` replaced, and the query of a URL.
pub(crate) fn strip_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let authority = after.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(after.len());
        let host = after[..authority].rfind('@').unwrap_or(0);
        shown.push_str(if host > 0 { "***" } else { "" });
        let after = &after[host..];
        let end = after.find(|c: char| c.is_whitespace() || "\"'`".contains(c)).unwrap_or(after.len());
        let (url, following) = after.split_at(end);
        // Another one may follow the first.
        let query = url.split_once("://").map_or(url, |(before, _)| before).find('?');
        match query {
            Some(query) => {
                shown.push_str(&url[..query]);
                shown.push_str("?***");
                rest = following;
            }
            None => rest = after,
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown() {
        fn check(text: &str, expected: &str) {
            assert_eq!(strip_credentials(text), expected);
        }
        check("https://me:hunter2@host/shop.git", "https://***@host/shop.git");
        check("url: \"https://tok@en@host\" # https://b:c@d", "url: \"https://***@host\" # https://***@d");
        check("https://host/a@b", "https://host/a@b");
        check("https://host/a?private_token=hunter2", "https://host/a?***");
        check(
            "url: 'https://a@host/a?b=c' # why? https://d@e/?f",
            "url: 'https://***@host/a?***' # why? https://***@e/?***",
        );
        check("git@host:a", "git@host:a");
    }

    #[test]
    fn what_looks_like_a_secret_is_not_shown() {
        fn check(text: &str, expected: &str) {
            assert_eq!(mask_likely_secrets(text), expected);
        }
        check("expected a number, found `hunter2`", "expected a number, found `hunter2`");
        check("found `ghp_0123456789abcdef`, not true", "found `***`, not true");
        check("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x", "Bearer ***.***.x");
        check("PASSWORD=correct-horse-battery-7", "***");
        check("Basic dXNlcjpodW50ZXIyaHVudGVyMg==", "Basic ***");
        check("user%3Ahunter2hunter2%40host", "***");
        check(
            "get https://me:pw@idp.example.org/token?code=1: no",
            "get https://***@idp.example.org/token?*** no",
        );
        check("/etc/rhumb/webhook-secret: no such file", "/etc/rhumb/webhook-secret: no such file");
        check("/etc/rhumb/0123456789abcdef0: no such file", "/etc/rhumb/***: no such file");
        // Words that people have to read stay.
        for plain in [
            "x509: certificate signed by unknown authority",
            "dial tcp 127.0.0.1:6443: connect: connection refused",
            "the key `webhookSecretReference` is unknown",
            "2030-01-02T03:04:05Z 1h30m 10.0.0.0/8",
            "größe=\u{1F980}\u{1F980}\u{1F980}\u{1F980}",
            "",
        ] {
            check(plain, plain);
        }
    }
}
