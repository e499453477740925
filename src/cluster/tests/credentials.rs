//! Credentials that are replaced while the old ones still hold.

use std::time::Duration;

use serde_json::json;

use super::fake::{FakeApiServer, ScriptedReply, kubeconfig_text};
use crate::cluster::{ClusterError, ClusterFault};

const PAUSE: Duration = Duration::from_millis(5);

/// Returns a server that accepts every token but `wrong`, and is another cluster to whoever brings
/// `other`.
async fn fake() -> FakeApiServer {
    FakeApiServer::start(|_, asked| {
        if asked.head.contains("Bearer wrong") {
            return ScriptedReply::Complete(401, "", "{}".to_owned());
        }
        let uid = if asked.head.contains("Bearer other") { "2" } else { "1" };
        ScriptedReply::Complete(200, "", json!({"metadata": {"uid": uid}, "gitVersion": "v1"}).to_string())
    })
    .await
}

/// Returns the token with which the server is asked by now.
async fn token(fake: &FakeApiServer) -> Result<String, ClusterError> {
    fake.cluster.server_version().await?;
    let asked = fake.asked().into_iter().rfind(|asked| asked.path == "/version").unwrap();
    let word = asked.head.split("Bearer ").nth(1).unwrap_or_default();
    Ok(word.split_whitespace().next().unwrap_or_default().to_owned())
}

fn replace(fake: &FakeApiServer, token: &str) {
    let text = kubeconfig_text("double", &format!("http://{}", fake.address()), &format!("token: {token}"));
    let newer = fake.kubeconfig().with_extension("newer");
    std::fs::write(&newer, text).unwrap();
    std::fs::rename(newer, fake.kubeconfig()).unwrap();
}

/// Replaces a link through which the token file is reached, as kubelet does.
#[tokio::test]
async fn a_newer_token_file_is_used_before_the_old_one_is_refused() {
    let fake = fake().await;
    fake.cluster.uid().await.unwrap();
    let dir = fake.kubeconfig().parent().unwrap().to_owned();
    let swap = |name: &str, token: &str| {
        std::fs::create_dir(dir.join(name)).unwrap();
        std::fs::write(dir.join(name).join("token"), token).unwrap();
        std::os::unix::fs::symlink(name, dir.join("..new")).unwrap();
        std::fs::rename(dir.join("..new"), dir.join("..data")).unwrap();
    };
    swap("..1", "one\n");
    std::os::unix::fs::symlink("..data/token", dir.join("token")).unwrap();
    let text = kubeconfig_text("double", &format!("http://{}", fake.address()), "tokenFile: token");
    std::fs::write(fake.kubeconfig(), text).unwrap();
    let following = tokio::spawn(fake.cluster.watch_credentials(PAUSE));
    let begun = std::time::Instant::now();
    let used = async |expected: &str| {
        while token(&fake).await.unwrap() != expected {
            assert!(begun.elapsed() < Duration::from_secs(20), "{expected} is not used");
        }
    };
    used("one").await;
    swap("..2", "two");
    used("two").await;
    // Written in place, and gone in between.
    let file = dir.join("..2/token");
    std::fs::write(&file, "").unwrap();
    assert_eq!(token(&fake).await.unwrap(), "two");
    std::fs::write(&file, "six\r\n").unwrap();
    used("six").await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(token(&fake).await.unwrap(), "six");
    std::fs::write(&file, "ten").unwrap();
    used("ten").await;
    following.abort();
}

// A plugin's credentials are renewed before they expire, and no caller waits for that.
#[tokio::test]
async fn what_a_plugin_gives_is_renewed_before_it_runs_out() {
    let fake = fake().await;
    fake.cluster.uid().await.unwrap();
    let count = fake.kubeconfig().with_file_name("count");
    let soon = jiff::Timestamp::now() + Duration::from_secs(40);
    let answer =
        format!(r#"{{"kind":"ExecCredential","status":{{"token":"p%s","expirationTimestamp":"{soon}"}}}}"#);
    let script = format!("echo >> '{0}'; printf '{answer}' $(wc -l < '{0}')", count.display());
    let exec =
        format!("exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, {script:?}]}}");
    let text = kubeconfig_text("double", &format!("http://{}", fake.address()), &exec);
    std::fs::write(fake.kubeconfig(), text).unwrap();
    let following = tokio::spawn(fake.cluster.watch_credentials(PAUSE));
    let begun = std::time::Instant::now();
    for expected in ["p1", "p2"] {
        while token(&fake).await.unwrap() != expected {
            assert!(begun.elapsed() < Duration::from_secs(20), "{expected} is not used");
        }
    }
    following.abort();
}

// A plugin may hang for a minute. The renewal of a Lease does not wait for it.
#[tokio::test]
async fn what_goes_ahead_does_not_wait_for_a_plugin_that_hangs() {
    let fake = fake().await;
    fake.cluster.uid().await.unwrap();
    let (ran, long_ago) = (fake.kubeconfig().with_file_name("ran"), "2020-01-01T00:00:00Z");
    let answer = format!(r#"{{"status":{{"token":"p","expirationTimestamp":"{long_ago}"}}}}"#);
    let script = format!("test -e '{0}' && sleep 1000; touch '{0}'; printf '{answer}'", ran.display());
    let exec =
        format!("exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, {script:?}]}}");
    let text = kubeconfig_text("double", &format!("http://{}", fake.address()), &exec);
    std::fs::write(fake.kubeconfig(), text).unwrap();
    assert_eq!(fake.cluster.try_anew().await.unwrap(), None);
    let asked = tokio::time::timeout(Duration::from_secs(30), fake.cluster.list_leases("x")).await;
    let error = asked.expect("it ends before the plugin does").unwrap_err();
    assert_eq!(error.reason(), "the credential plugin gives no answer");
}

/// Moves the control plane: the kubeconfig is there before the server is.
#[tokio::test]
async fn a_newer_kubeconfig_is_tried_until_its_server_answers() {
    let fake = fake().await;
    fake.cluster.uid().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let moved = format!("http://{}", listener.local_addr().unwrap());
    std::fs::write(fake.kubeconfig(), kubeconfig_text("double", &moved, "token: moved")).unwrap();
    let following = tokio::spawn(fake.cluster.watch_credentials(PAUSE));
    for _ in 0..3 {
        // It breaks each connection.
        drop(listener.accept().await.unwrap());
        assert_eq!(token(&fake).await.unwrap(), "t");
    }
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = [0; 4096];
    let length = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    assert!(head.contains("Bearer moved"), "{head}");
    following.abort();
}

#[tokio::test]
async fn a_newer_kubeconfig_is_used_before_the_old_one_is_refused() {
    let fake = fake().await;
    fake.cluster.uid().await.unwrap();
    assert_eq!(token(&fake).await.unwrap(), "t");
    let following = tokio::spawn(fake.cluster.watch_credentials(PAUSE));
    let begun = std::time::Instant::now();
    replace(&fake, "newer");
    while token(&fake).await.unwrap() != "newer" {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    // Credentials that are refused, unreadable or of another cluster are tried, and left.
    for (bad, tried) in [("wrong", "Bearer wrong"), ("other", "Bearer other")] {
        replace(&fake, bad);
        while !fake.asked().iter().any(|asked| asked.head.contains(tried)) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
        assert_eq!(token(&fake).await.unwrap(), "newer");
    }
    std::fs::remove_file(fake.kubeconfig()).unwrap();
    replace(&fake, "newest");
    while token(&fake).await.unwrap() != "newest" {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    following.abort();
}

// The plugin takes longer than credentials that were refused are left alone.
#[tokio::test]
async fn many_who_are_refused_at_once_have_the_credentials_renewed_once() {
    let fake = FakeApiServer::start(|_, asked| {
        let known = asked.head.contains("Bearer newer");
        ScriptedReply::Complete(if known { 200 } else { 401 }, "", json!({"gitVersion": "v1"}).to_string())
    })
    .await;
    let count = fake.kubeconfig().with_file_name("count");
    let answer = r#"{"kind":"ExecCredential","status":{"token":"newer"}}"#;
    let script = format!("echo >> '{}'; sleep 6; printf '{answer}'", count.display());
    let exec =
        format!("exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, {script:?}]}}");
    let text = kubeconfig_text("double", &format!("http://{}", fake.address()), &exec);
    std::fs::write(fake.kubeconfig(), text).unwrap();
    let asked = (0..4).map(|_| fake.cluster.server_version());
    for answer in futures::future::join_all(asked).await {
        assert_eq!(answer.unwrap_err().fault(), &ClusterFault::Unauthorized);
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
    assert_eq!(token(&fake).await.unwrap(), "newer");
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
}
