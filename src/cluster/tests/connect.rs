use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::fake::kubeconfig_text;
use crate::cluster::connect::merge_kubeconfigs;
use crate::cluster::{Cluster, Connection, proxy};
use crate::object::ErrorClass;

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

async fn check_error(connection: Connection, expected: &[&str]) {
    check_class(connection, ErrorClass::Config, expected).await;
}

async fn check_class(connection: Connection, class: ErrorClass, expected: &[&str]) {
    let error = Cluster::connect(&connection).await.unwrap_err();
    assert_eq!(error.class(), class);
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
    check_error(
        with(dir.path().join("none"), None),
        &["connection: the kubeconfig ", "none cannot be read: no such file or directory"],
    )
    .await;
    check_error(with(dir.path().to_owned(), None), &["cannot be read: is a directory"]).await;
    let broken = file(&dir, "broken", "clusters: [");
    check_error(with(broken.clone(), None), &["broken is not usable: ", "line 1"]).await;
    let error = Cluster::connect(&with(broken, None)).await.unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    let empty = file(&dir, "empty", "");
    check_error(with(empty, None), &["names no current context; it has no context at all"]).await;
    let good = file(&dir, "good", &kubeconfig_text("prod", "http://127.0.0.1:1", "token: hunter2"));
    check_error(with(good.clone(), Some("test")), &["the kubeconfig has no context test; it has prod"]).await;
    let cluster = Cluster::connect(&with(good, Some("prod"))).await.unwrap();
    assert_eq!((cluster.context_name(), cluster.default_namespace()), ("prod", "default"));
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
    // The service that the plugin asks may be away for a while.
    let check_later = |script, expected| check_class(with(script), ErrorClass::Transient, expected);
    check_later("echo hunter2; echo no login >&2; exit 3", &["credential plugin failed", "no login"]).await;
    check_later("echo hunter2", &["credential plugin's answer cannot be read"]).await;
    check_later("echo '{}'", &["credential plugin's answer cannot be read"]).await;
    let absent = kubeconfig_text(
        "x",
        "http://127.0.0.1:1",
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}",
    );
    let absent = Connection { kubeconfig: Some(file(&dir, "absent", &absent)), ..Connection::default() };
    check_error(absent, &["the credential plugin cannot be started: no such file or directory"]).await;
    let Err(error) = with("sleep 1").open(Duration::from_millis(200)).await else { panic!() };
    assert_eq!(error.reason(), "the credential plugin gives no answer");
    let pids = dir.path().join("pids");
    let script = format!("sleep 1000 & echo $! $$ > '{0}.new'; mv '{0}.new' '{0}'; wait", pids.display());
    let hangs = with(&script);
    let mut opened = Box::pin(hangs.open(Duration::MAX));
    while !pids.exists() {
        // It is waited for no longer than it takes to begin.
        assert!(futures::poll!(&mut opened).is_pending());
        tokio::task::yield_now().await;
    }
    drop(opened);
    let all = std::fs::read_to_string(&pids).unwrap();
    // Neither it nor what it started goes on.
    for pid in all.split_whitespace() {
        let ended = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        while !ended() {
            tokio::task::yield_now().await;
        }
    }
    // The service manager's environment is for the service alone.
    let env = "test -z \"$NOTIFY_SOCKET$WATCHDOG_PID$WATCHDOG_USEC\"";
    let token =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
    Cluster::connect(&with(&format!("{env} && echo '{token}'"))).await.unwrap();
}

/// Returns a kubeconfig whose user has a plugin that is this script, and what else is there.
fn with_plugin(dir: &tempfile::TempDir, script: &str, rest: &str) -> Connection {
    let exec = format!(
        "{rest}exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, args: [-c, {script:?}]}}"
    );
    let path = file(dir, "exec", &kubeconfig_text("x", "http://127.0.0.1:1", &exec));
    Connection { kubeconfig: Some(path), ..Connection::default() }
}

const TOKEN: &str = r#"echo '{"kind":"ExecCredential","status":{"token":"hunter2"}}'"#;

// As kubectl does it: only what it answers is waited for, and only so much of that as an answer
// can have.
#[tokio::test]
async fn a_credential_plugin_that_says_much_or_leaves_somebody_behind_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let patience = Duration::from_secs(30);
    let much = format!("head -c 3000000 /dev/zero >&2; {TOKEN}");
    with_plugin(&dir, &much, "").open(patience).await.unwrap();
    let Err(error) = with_plugin(&dir, "yes hunter2", "").open(patience).await else { panic!() };
    assert_eq!(error.reason(), "the credential plugin's answer cannot be read");
    let pid = dir.path().join("pid");
    let left = format!("sleep 1000 >/dev/null & echo $! > '{}'; {TOKEN}", pid.display());
    let opened = with_plugin(&dir, &left, "").open(patience).await;
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    opened.unwrap();
    let fails = format!(
        "echo no login >&2; sleep 1000 >/dev/null & echo $! > '{}'; exit 3",
        dir.path().join("pid").display()
    );
    let Err(error) = with_plugin(&dir, &fails, "").open(patience).await else { panic!() };
    assert!(error.reason().contains("no login"), "{error}");
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap().trim().parse().unwrap();
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    );
}

// The next time it may give one.
#[tokio::test]
async fn a_credential_plugin_that_gives_no_usable_token_is_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    for status in [
        r#"{"token":""}"#,
        r#"{"token":"hunter2\nhunter2"}"#,
        r#"{"token":"hunter2 hunter2"}"#,
        r#"{"clientCertificateData":"","clientKeyData":""}"#,
        r#"{"clientCertificateData":"hunter2"}"#,
        r#"{"token":"hunter2","expirationTimestamp":"soon"}"#,
    ] {
        let script = format!("printf '%s' '{{\"status\":{status}}}'");
        let expected = ["the credential plugin's answer cannot be read"];
        check_class(with_plugin(&dir, &script, ""), ErrorClass::Transient, &expected).await;
    }
}

#[tokio::test]
async fn a_token_takes_precedence_over_a_credential_plugin_which_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let connection = with_plugin(&dir, &format!("touch '{}'; {TOKEN}", ran.display()), "token: t, ");
    connection.open(Duration::from_secs(30)).await.unwrap();
    assert!(!ran.exists());
}

#[tokio::test]
async fn what_is_no_file_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let server = "https://127.0.0.1:1";
    let with = |path: PathBuf| Connection { kubeconfig: Some(path), ..Connection::default() };
    check_error(with(pipe.clone()), &["the kubeconfig ", "cannot be read: it is no regular file"]).await;
    for key in ["tokenFile", "client-certificate", "client-key"] {
        // A name that begins where the kubeconfig is.
        let text = kubeconfig_text("x", server, &format!("{key}: pipe"));
        let expected = [&*pipe.display().to_string(), "cannot be read: it is no regular file"];
        check_error(with(file(&dir, key, &text)), &expected).await;
    }
    let text = kubeconfig_text("x", server, "token: t")
        .replace("certificate-authority-data: ", "certificate-authority: pipe, other: ");
    check_error(with(file(&dir, "authority", &text)), &["it is no regular file"]).await;
}

#[tokio::test]
async fn a_token_file_is_read_as_it_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let text = kubeconfig_text("x", "http://127.0.0.1:1", "tokenFile: token");
    let with = || Connection { kubeconfig: Some(dir.path().join("config")), ..Connection::default() };
    file(&dir, "config", &text);
    check_error(with(), &["cannot be read: no such file"]).await;
    for (text, expected) in [
        ("", "is empty"),
        (" \r\n", "is empty"),
        ("hunter2 hunter2", "holds no single token"),
        ("hunter2\nhunter2", "holds no single token"),
        ("hunter\u{e9}2", "holds no single token"),
        (&"x".repeat(100_000), "holds no single token"),
    ] {
        file(&dir, "token", text);
        let error = Cluster::connect(&with()).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hunter"), "{error}");
    }
    for text in ["abc", "abc\n", "abc\r\n", "\u{feff}abc\n", " abc \n\n"] {
        file(&dir, "token", text);
        Cluster::connect(&with()).await.unwrap();
    }
}

#[test]
fn kubeconfigs_are_merged_and_the_first_wins() {
    let dir = tempfile::tempdir().unwrap();
    let one = file(&dir, "one", &kubeconfig_text("one", "http://1.1.1.1", "token: a"));
    let two = file(&dir, "two", &kubeconfig_text("two", "http://2.2.2.2", "token: b"));
    let again = file(&dir, "again", &kubeconfig_text("one", "http://3.3.3.3", "token: c"));
    let config = merge_kubeconfigs(&[dir.path().join("none"), one, two, again]).unwrap();
    assert_eq!(config.current_context.as_deref(), Some("one"));
    let servers: Vec<&str> =
        config.clusters.iter().filter_map(|named| named.cluster.as_ref()?.server.as_deref()).collect();
    assert_eq!(servers, ["http://1.1.1.1", "http://2.2.2.2"]);
    let error = merge_kubeconfigs(&[dir.path().join("none")]).unwrap_err();
    assert!(error.to_string().contains("KUBECONFIG names no file that exists: "), "{error}");
}

#[test]
fn a_proxy_by_the_environment() {
    let check = |server: &str, spared: &str, expected: Option<&str>| {
        let variable = |name: &str| match name {
            "HTTPS_PROXY" => Some("proxy:3128".to_owned()),
            "http_proxy" => Some("http://plain".to_owned()),
            "no_proxy" => Some(spared.to_owned()),
            _ => None,
        };
        let found = proxy::of(&server.parse().unwrap(), variable);
        assert_eq!(found.as_deref(), expected, "{server} {spared}");
    };
    let through = Some("http://proxy:3128");
    check("https://k8s.example.com:6443", "", through);
    check("http://k8s.example.com", "", Some("http://plain"));
    for local in
        ["https://localhost:6443", "https://127.0.0.1:6443", "https://127.9.9.9", "https://[::1]:6443"]
    {
        check(local, "", None);
    }
    let host = "https://k8s.example.com:6443";
    for spared in
        ["*", "example.com", ".example.com", "*.example.com", "K8S.example.com", "a, example.com:6443"]
    {
        check(host, spared, None);
    }
    for other in [
        "xample.com",
        "s.example.com",
        "example.com:443",
        ".k8s.example.com",
        ",",
        ".",
        "*.",
        ":",
        "10.0.0.0/8",
        "x/y",
    ] {
        check(host, other, through);
    }
    for spared in ["10.1.2.3", "10.0.0.0/8", "0.0.0.0/0", "10.1.2.3:6443", "10.1.2.3/32"] {
        check("https://10.1.2.3:6443", spared, None);
    }
    for other in ["10.1.2.4", "11.0.0.0/8", "10.1.2.3:1", "::/0", "10.0.0.0/33", "10.0.0.0/"] {
        check("https://10.1.2.3:6443", other, through);
    }
    check("https://[2001:db8::1]:6443", "2001:db8::/32", None);
    check("https://[2001:db8::1]:6443", "::/0", None);
    check("https://[2001:db8::1]:6443", "2001:db8::1", None);
    check("https://[2001:db8::1]:6443", "2001:db9::/32", through);
}
