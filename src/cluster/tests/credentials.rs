//! Credentials that are replaced while the old ones still hold.

use std::time::Duration;

use serde_json::json;

use super::double::{Double, Reply, kubeconfig_text};
use crate::cluster::Error;

const PAUSE: Duration = Duration::from_millis(5);

/// A server that accepts every token but `wrong`, and is another cluster to whoever brings `other`.
async fn double() -> Double {
    Double::start(|_, asked| {
        if asked.head.contains("Bearer wrong") {
            return Reply::Whole(401, "", "{}".to_owned());
        }
        let uid = if asked.head.contains("Bearer other") { "2" } else { "1" };
        Reply::Whole(200, "", json!({"metadata": {"uid": uid}, "gitVersion": "v1"}).to_string())
    })
    .await
}

/// With which token the server is asked by now.
async fn token(double: &Double) -> Result<String, Error> {
    double.cluster.server_version().await?;
    let asked = double.asked().into_iter().rfind(|asked| asked.path == "/version").unwrap();
    let word = asked.head.split("Bearer ").nth(1).unwrap_or_default();
    Ok(word.split_whitespace().next().unwrap_or_default().to_owned())
}

fn replace(double: &Double, token: &str) {
    let text = kubeconfig_text("double", &format!("http://{}", double.address()), &format!("token: {token}"));
    let newer = double.kubeconfig().with_extension("newer");
    std::fs::write(&newer, text).unwrap();
    std::fs::rename(newer, double.kubeconfig()).unwrap();
}

#[tokio::test]
async fn a_newer_kubeconfig_is_used_before_the_old_one_is_refused() {
    let double = double().await;
    double.cluster.uid().await.unwrap();
    assert_eq!(token(&double).await.unwrap(), "t");
    let following = tokio::spawn(double.cluster.follow_credentials(PAUSE));
    let begun = std::time::Instant::now();
    replace(&double, "newer");
    while token(&double).await.unwrap() != "newer" {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    // What is refused, is of another cluster or cannot be read is tried, and left.
    for (bad, tried) in [("wrong", "Bearer wrong"), ("other", "Bearer other")] {
        replace(&double, bad);
        while !double.asked().iter().any(|asked| asked.head.contains(tried)) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
        assert_eq!(token(&double).await.unwrap(), "newer");
    }
    std::fs::remove_file(double.kubeconfig()).unwrap();
    replace(&double, "newest");
    while token(&double).await.unwrap() != "newest" {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    following.abort();
}
