//! Servers that answer oddly, or not at all.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

fn notification(url: &str) -> Notification {
    let body = json!({});
    Notification { url: UrlSource::Url(url.to_owned()), path: String::new(), token: None, body, status: None }
}

/// Returns the result of a delivery to a server that gives this answer.
async fn answered(answer: &'static str) -> Result<(), DeliveryError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let mut length = 0;
        while !request[..length].ends_with(b"\r\n\r\n{}") {
            length += stream.read(&mut request[length..]).await.unwrap();
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream
    });
    let result = NotificationClient::new().deliver(&notification(&url)).await;
    server.await.unwrap();
    result
}

#[test]
fn a_delivery_waits_as_long_as_the_server_asks_for() {
    fn check(status: u16, headers: &[(&'static str, &str)], expected: Result<Option<u64>, ()>) {
        let now = "2026-10-21T07:28:00Z".parse().unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let retry_after = match delivery_result(StatusCode::from_u16(status).unwrap(), &map, now) {
            Err(DeliveryError::Temporary { after, .. }) => Ok(after.map(|delay| delay.as_secs())),
            Err(DeliveryError::Permanent(_)) => Err(()),
            Ok(()) => panic!("{status} is no success"),
        };
        assert_eq!(retry_after, expected, "{status} {headers:?}");
    }
    check(429, &[], Ok(None));
    check(429, &[("retry-after", "120")], Ok(Some(120)));
    check(503, &[("retry-after", "7")], Ok(Some(7)));
    check(429, &[("retry-after", "86400")], Ok(Some(300)));
    check(429, &[("retry-after", "99999999999999999999999")], Ok(None));
    check(429, &[("retry-after", "-1")], Ok(None));
    check(429, &[("retry-after", "Wed, 21 Oct 2026 07:30:00 GMT")], Ok(Some(120)));
    check(429, &[("retry-after", "Wed, 21 Oct 2026 09:30:00 GMT")], Ok(Some(300)));
    check(429, &[("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT")], Ok(Some(0)));
    check(429, &[("retry-after", "soon")], Ok(None));
    // GitHub's own: what is forbidden stays so, and what is too much does not.
    check(403, &[], Err(()));
    check(403, &[("x-ratelimit-remaining", "4999"), ("x-ratelimit-reset", "1792567740")], Err(()));
    check(403, &[("retry-after", "60")], Ok(Some(60)));
    check(403, &[("x-ratelimit-remaining", "0")], Ok(None));
    check(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1792567740")], Ok(Some(60)));
    check(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9999999999")], Ok(Some(300)));
    check(404, &[("retry-after", "60")], Err(()));
}

#[tokio::test]
async fn the_time_to_wait_is_read_from_an_answer() {
    let limited = answered("HTTP/1.1 403 Forbidden\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n");
    let Err(DeliveryError::Temporary { after, why }) = limited.await else {
        panic!("it is no failure for good")
    };
    assert_eq!(after, Some(Duration::from_mins(1)));
    assert_eq!(why, "it answers 403 Forbidden: too much was asked of it");
}

/// Lets nobody hear anything but who is configured, and sends the token nowhere else.
#[tokio::test]
async fn a_redirect_is_said_and_not_followed() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to: &'static str = Box::leak(format!("location: http://{}/\r\n", other.local_addr().unwrap()).into());
    for status in ["301 Moved Permanently", "307 Temporary Redirect"] {
        let answer = format!("HTTP/1.1 {status}\r\n{to}content-length: 0\r\n\r\n");
        let failed = answered(Box::leak(answer.into())).await.unwrap_err();
        let why = format!("it answers {status}, and redirects are not followed");
        assert_eq!(failed, DeliveryError::Permanent(why));
    }
    let listened = other.into_std().unwrap();
    assert_eq!(listened.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Connects to a server that takes the connection and does nothing more.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let failed = NotificationClient::new().deliver(&notification(&url)).await.unwrap_err();
    assert_eq!(failed, DeliveryError::for_now("no answer within 10 s"));
}

/// Connects to a port where nobody listens any more, and to a name with a label of 64 characters:
/// DNS takes 63.
#[tokio::test]
async fn a_host_that_is_not_there_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("https://{}/x", listener.local_addr().unwrap());
    drop(listener);
    let nameless = format!("https://{}.invalid/x", "a".repeat(64));
    for (url, expected) in [
        (nobody, "it cannot be reached: Connection refused (os error 111)"),
        (nameless, "it cannot be reached"),
    ] {
        let failed = NotificationClient::new().deliver(&notification(&url)).await.unwrap_err();
        assert_eq!(failed, DeliveryError::for_now(expected));
    }
}
