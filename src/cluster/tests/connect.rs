use std::path::PathBuf;
use std::time::Duration;

use super::double::kubeconfig_text;
use crate::cluster::{Cluster, Connection};
use crate::object::Class;

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

async fn check_error(connection: Connection, expected: &[&str]) {
    let error = Cluster::connect(&connection).await.unwrap_err();
    assert_eq!(error.class(), Class::Config);
    for words in expected {
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let with = |path: PathBuf, context: Option<&str>| Connection {
        kubeconfig: Some(path),
        context: context.map(str::to_owned),
        ..Connection::default()
    };
    check_error(with(dir.path().join("none"), None), &["connection: ", "none"]).await;
    let broken = file(&dir, "broken", "clusters: [");
    check_error(with(broken, None), &["broken"]).await;
    let good = file(&dir, "good", &kubeconfig_text("prod", "http://127.0.0.1:1", "token: hunter2"));
    check_error(with(good.clone(), Some("test")), &["kubeconfig: ", "test"]).await;
    let cluster = Cluster::connect(&with(good, Some("prod"))).await.unwrap();
    assert_eq!((cluster.context(), cluster.default_namespace()), ("prod", "default"));
    assert!(!format!("{cluster:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_credential_plugin_fails_with_its_own_words_only() {
    let dir = tempfile::tempdir().unwrap();
    let with = |script: &str| {
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, args: [-c, {script:?}]}}"
        );
        let path = file(&dir, "exec", &kubeconfig_text("x", "http://127.0.0.1:1", &exec));
        Connection { kubeconfig: Some(path), ..Connection::default() }
    };
    check_error(with("echo hunter2; echo no login >&2; exit 3"), &["credential plugin failed", "no login"])
        .await;
    check_error(with("echo hunter2"), &["credential plugin's answer cannot be read"]).await;
    let Err(error) = with("sleep 1").open(Duration::from_millis(200)).await else { panic!() };
    assert_eq!(error.reason(), "the credential plugin gives no answer");
    let token =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
    Cluster::connect(&with(&format!("echo '{token}'"))).await.unwrap();
}
