//! Webhooks: headers and bodies by whoever reaches the port.

use axum::http::HeaderName;

use super::*;
use crate::fuzz_tests::{FuzzTarget, fuzz, seeds, shape};

const SECRET: &str = "It's a Secret to Everybody";

const WORDS: &[&str] = &[
    "X-Hub-Signature-256: sha256=",
    "X-Hub-Signature: sha256=",
    "X-Gitea-Signature: ",
    "X-Forgejo-Signature: ",
    "X-Gitlab-Token: ",
    "It's a Secret to Everybody",
    "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    "sha256=",
    "Content-Length: 1048577\n",
    "Content-Length: 18446744073709551616\n",
    "\n\n",
    "{\"ref\":\"refs/heads/main\"}",
];

/// Returns the headers before an empty line that HTTP allows, and the body behind it.
fn request_of(bytes: &[u8]) -> (HeaderMap, &[u8]) {
    let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = bytes.split_at(end);
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n') {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    (headers, body.strip_prefix(b"\n\n").unwrap_or(body))
}

fn digits(code: Mac) -> String {
    let bytes = code.finalize().into_bytes();
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// Returns whether a request shows the secret, by the rules of the documentation of git servers.
fn shows_secret(headers: &HeaderMap, right: &str) -> bool {
    let first = |name: &str| headers.get(name).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let is_signed = |(name, begin): &(&str, &str)| {
        let expected = format!("{begin}{right}");
        let value = first(name);
        value.starts_with(begin.as_bytes()) && value.eq_ignore_ascii_case(expected.as_bytes())
    };
    SIGNATURE_HEADERS.iter().any(is_signed) || first(GITLAB_TOKEN_HEADER) == SECRET.as_bytes()
}

/// Checks that only who knows the secret is heard, and that its signature always is.
fn check(bytes: &[u8], secret: &Secret, runtime: &tokio::runtime::Runtime) -> u64 {
    let (mut headers, body) = request_of(bytes);
    let chunks: Vec<Result<Vec<u8>, std::io::Error>> =
        body.chunks(100).map(|chunk| Ok(chunk.to_vec())).collect();
    let stream = Body::from_stream(futures::stream::iter(chunks));
    let Ok(code) = runtime.block_on(body_code(secret, &headers, stream)) else {
        let length =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        assert!(length.is_some_and(|length| length > MAX_WEBHOOK_BYTES as u64), "a small body is refused");
        return 1;
    };
    let mut expected = secret.code();
    expected.update(body);
    let right = digits(expected);
    assert_eq!(digits(code.clone()), right, "the code is that of the whole body");
    let accepted = is_right(secret, &headers, &code);
    assert_eq!(accepted, shows_secret(&headers, &right), "{headers:?}");
    headers.clear();
    headers.insert("x-gitea-signature", right.parse().unwrap());
    assert!(is_right(secret, &headers, &code));
    let other = right.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect::<String>();
    headers.insert("x-gitea-signature", other.parse().unwrap());
    assert!(!is_right(secret, &headers, &code));
    shape((accepted, headers.len(), body.len() / 100))
}

#[test]
fn webhook_requests() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret");
    fs::write(&file, SECRET).unwrap();
    let secret = Secret::read(&file).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let signature = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let seeds = seeds(&[
        format!("X-Hub-Signature-256: sha256={signature}\nContent-Length: 13\n\nHello, World!"),
        format!("X-Gitea-Signature: {signature}\n\nHello, World!"),
        format!("X-Gitlab-Token: {SECRET}\n\n{{\"ref\":\"refs/heads/main\"}}"),
    ]);
    let target = FuzzTarget { name: "webhook_requests", seeds, words: WORDS, inputs: 6000 };
    fuzz(&target, |bytes| check(bytes, &secret, &runtime));
}
