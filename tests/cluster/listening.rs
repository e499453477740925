//! Over TCP: who is answered there, and who is heard.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{Daemon, Remote, Repo, TestNamespace, eventually, until, yaml};

const TOKEN: &str = "canary-token-0123456789abcdef";
const SECRET: &str = "canary-webhook-0123456789abcdef";

/// A daemon that follows one repository with these keys below `serve`.
struct ServingDaemon {
    site: TestNamespace<'static>,
    daemon: Daemon,
    _repo: Repo,
}

impl ServingDaemon {
    fn start(name: &str, serve: &str) -> Self {
        let site = TestNamespace::new(name);
        let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
        let text = site.configuration(repo.path(), &format!("serve:\n  {}", serve.replace('\n', "\n  ")));
        let daemon = site.configured(&text);
        Self { site, daemon, _repo: repo }
    }

    /// Returns the port behind these words of its log.
    fn port(&self, words: &str) -> u16 {
        let line = self.daemon.says(&[words]);
        line.trim_end().rsplit(':').next().unwrap().parse().unwrap()
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        // A client that closes a connection without TLS's farewell has sent everything all the
        // same.
        Err(error) if text.is_empty() => Err(error),
        _ => Ok(text),
    }
}

/// Returns the answer to a request with these further lines in its head.
fn ask(port: u16, line: &str, head: &str) -> String {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    exchange(stream, &format!("{line} HTTP/1.1\r\nConnection: close\r\n{head}\r\n")).unwrap()
}

fn code(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn on_loopback_only_this_host_asks() {
    let open = ServingDaemon::start(
        "doors-loopback",
        "listen: 127.0.0.1:0\nprobes: 127.0.0.1:0\nhosts: [rhumb.example.org]",
    );
    let port = open.port("answering on http://127.0.0.1:");
    let probes = open.port("answering probes on http://127.0.0.1:");
    let here = "Host: localhost\r\n";
    until("it is ready", || code(&ask(port, "GET /readyz", here)) == 200);
    for (line, head, expected) in [
        ("GET /v1/status", here.to_owned(), 200),
        ("HEAD /v1/status", here.to_owned(), 200),
        ("GET /metrics", format!("Host: 127.0.0.1:{port}\r\n"), 200),
        ("GET /v1/status", "Host: rhumb.example.org\r\n".to_owned(), 200),
        ("GET /v1/status", "Host: evil.example.org\r\n".to_owned(), 421),
        ("GET /v1/status", String::new(), 421),
        ("GET /v1/status", format!("{here}Origin: http://evil.example.org\r\n"), 403),
        ("GET /v1/status", format!("{here}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("POST /v1/status", here.to_owned(), 405),
        // Nobody signs in without encryption.
        ("POST /sign-in", here.to_owned(), 405),
        ("GET http://evil.example.org/v1/status", here.to_owned(), 421),
        // No secret, no webhooks.
        ("POST /hook/doors-loopback", here.to_owned(), 404),
    ] {
        let answer = ask(port, line, &head);
        assert_eq!(code(&answer), expected, "{line} {head}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("x-content-type-options: nosniff"), "{answer}");
    }
    let counted = ask(port, "GET /metrics", here);
    for (why, expected) in [("name", 3), ("site", 2), ("token", 0)] {
        let line = format!("rhumb_http_refused_total{{why=\"{why}\"}} {expected}\n");
        assert!(counted.contains(&line), "{line} is not in\n{counted}");
    }
    for (line, expected) in [
        ("GET /livez", 200),
        ("GET /readyz", 200),
        ("GET /metrics", 404),
        ("GET /v1/status", 404),
        ("GET /", 404),
        ("POST /livez", 405),
        ("POST /hook/doors-loopback", 404),
    ] {
        // By whatever name: the kubelet calls a pod by its address, and others call a Service.
        let answer = ask(probes, line, "Host: anything\r\n");
        assert!(
            code(&answer) == expected || (line.starts_with("POST") && code(&answer) == 405),
            "{line}: {answer}"
        );
    }
}

#[test]
fn elsewhere_it_takes_encryption_and_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let certify = || {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(path("key.pem"), own.signing_key.serialize_pem()).unwrap();
        std::fs::write(path("cert.pem"), own.cert.pem()).unwrap();
        own.cert.pem()
    };
    let first = certify();
    std::fs::write(path("token"), format!("{TOKEN}\n")).unwrap();
    let keys = format!(
        "listen: 0.0.0.0:0\ntls: {{cert: {}, key: {}}}\ntoken: {}",
        path("cert.pem").display(),
        path("key.pem").display(),
        path("token").display()
    );
    let open = ServingDaemon::start("doors-tls", &keys);
    let port = open.port("answering on https://0.0.0.0:");
    let with = |token: &str| format!("Authorization: Bearer {token}\r\n");
    until("it is ready", || code(&secretly(port, &first, "/readyz", &with(TOKEN)).unwrap()) == 200);
    let refused = secretly(port, &first, "/v1/status", "").unwrap();
    assert_eq!(code(&refused), 401, "{refused}");
    assert!(refused.to_ascii_lowercase().contains("www-authenticate: bearer"), "{refused}");
    for path in ["/livez", "/metrics", "/", "/nowhere"] {
        assert_eq!(code(&secretly(port, &first, path, &with("wrong-0123456789abcdef")).unwrap()), 401);
    }
    // Only a request for a page by a known name gets the form.
    let html = "Accept: text/html\r\n";
    for (path, head, expected, says) in [
        ("/", html.to_owned(), 401, "Sign in"),
        ("/v1/status", html.to_owned(), 401, "Bearer TOKEN"),
        ("/", format!("{html}Origin: https://evil.example.org\r\n"), 403, "another site"),
        ("/page.css", String::new(), 200, "--ground"),
        ("/page.js", String::new(), 401, "Bearer TOKEN"),
        ("/", format!("{html}Cookie: __Host-rhumb={TOKEN}\r\n"), 401, "Sign in"),
    ] {
        let answer = secretly(port, &first, path, &head).unwrap();
        assert!(code(&answer) == expected && answer.contains(says), "{path} {head}: {answer}");
    }
    // In plain nothing is answered.
    let plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let answer = exchange(plain, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap_or_default();
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    // Both are used as they are now.
    std::fs::write(path("token"), "another-0123456789abcdef").unwrap();
    assert_eq!(code(&secretly(port, &first, "/livez", &with(TOKEN)).unwrap()), 401);
    assert_eq!(code(&secretly(port, &first, "/livez", &with("another-0123456789abcdef")).unwrap()), 200);
    std::fs::write(path("cert.pem"), "none").unwrap();
    assert_eq!(code(&secretly(port, &first, "/livez", &with("another-0123456789abcdef")).unwrap()), 200);
    open.daemon.says(&["WARN", "/cert.pem: ", "what was read before stays in use"]);
    let second = certify();
    assert!(secretly(port, &first, "/livez", "").is_err(), "the old certificate is not used any more");
    assert_eq!(code(&secretly(port, &second, "/livez", &with("another-0123456789abcdef")).unwrap()), 200);
    for secret in [TOKEN, "another-0123456789abcdef", "PRIVATE KEY"] {
        assert!(!open.daemon.log().contains(secret));
    }
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", open.daemon.pid())).unwrap();
    assert!(!arguments.contains(TOKEN));
}

/// Returns the answer over TLS, where the server shows this very certificate.
fn secretly(port: u16, certificate: &str, path: &str, head: &str) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", port))?);
    exchange(stream, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n"))
}

#[test]
fn what_anybody_could_ask_is_no_configuration() {
    let site = TestNamespace::new("doors-open");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let mut daemon = site.configured(&site.configuration(repo.path(), "serve: {listen: '0.0.0.0:9090'}"));
    assert_eq!(daemon.ended(Duration::from_secs(30)).code(), Some(78));
    daemon.says(&["rhumb.yaml:3:", "can be reached from other machines, which takes `tls` and `token`"]);
    assert!(!site.has("ConfigMap", "env"));
}

#[test]
fn an_address_that_is_taken_is_tried_again() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let open = ServingDaemon::start("doors-taken", &format!("listen: 127.0.0.1:{port}"));
    open.daemon.says(&["the HTTP API is not available", &port.to_string()]);
    open.site.await_data("env", "a", "one");
    drop(taken);
    open.daemon.says(&["answering on http://127.0.0.1:"]);
    assert_eq!(code(&ask(port, "GET /livez", "Host: localhost\r\n")), 200);
}

#[test]
fn who_says_nothing_keeps_nobody_from_asking() {
    let open = ServingDaemon::start("doors-silent", "listen: 127.0.0.1:0");
    let port = open.port("answering on http://127.0.0.1:");
    // As many as are answered at a time: some say nothing, some a part, some wait after an answer.
    let mut silent: Vec<TcpStream> =
        (0..64).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    for (number, stream) in silent.iter_mut().enumerate() {
        let said = ["", "GET /livez HTTP/1.1\r\nHost: ", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"];
        stream.write_all(said[number % 3].as_bytes()).unwrap();
    }
    assert_eq!(code(&ask(port, "GET /livez", "Host: localhost\r\n")), 200);
}

#[test]
fn a_webhook_has_its_source_looked_at() {
    let site = TestNamespace::new("doors-hook");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let remote = Remote::of(&repo);
    let secret = site.state.path().join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nserve: {{listen: '127.0.0.1:0', hook: {{secret: {}}}}}\n---\n\
         apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec:\n  namespace: {name}\n  \
         git: {{url: '{}', ref: main, interval: 10h}}\n",
        secret.display(),
        remote.url(),
        name = site.name
    );
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = site.bare_command();
    command.arg("run").arg("--config").arg(file);
    remote.trusted(&mut command);
    let daemon = Daemon::start(command);
    site.await_data("env", "a", "one");
    let line = daemon.says(&["answering on http://127.0.0.1:"]);
    let port: u16 = line.trim_end().rsplit(':').next().unwrap().parse().unwrap();
    repo.change("env.yaml", &yaml::config_map("env", "a", "two"));
    repo.git(&["push", "--quiet", "--force", "origin", "HEAD:main"]);
    let asked = remote.connections();
    let knock = |path: &str, token: &str| {
        let head = format!("Host: hooks.example.org\r\nX-Gitlab-Token: {token}\r\nContent-Length: 0\r\n");
        ask(port, &format!("POST {path}"), &head)
    };
    let own = format!("/hook/{}", site.name);
    // Nobody else has anything done, and each refusal looks the same.
    let body = |answer: String| answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    let wrong = knock(&own, "wrong-0123456789abcdef");
    let nowhere = knock("/hook/nowhere", SECRET);
    assert_eq!((code(&wrong), code(&nowhere)), (403, 403), "{wrong}");
    assert_eq!(body(wrong), body(nowhere));
    assert_eq!(remote.connections(), asked);
    eventually("the webhook is heard", crate::support::DEFAULT_TIMEOUT, || match knock(&own, SECRET) {
        answer if code(&answer) == 202 => Ok(()),
        answer => Err(answer),
    });
    site.await_data("env", "a", "two");
    assert!(remote.connections() > asked);
    let counted = ask(port, "GET /metrics", "Host: localhost\r\n");
    for (source, outcome) in [(&*site.name, "taken"), (&*site.name, "refused"), ("other", "refused")] {
        let line = format!("rhumb_webhooks_total{{source=\"{source}\",outcome=\"{outcome}\"}} ");
        assert!(counted.contains(&line), "{line} is not in\n{counted}");
    }
    // Another secret counts at once, and the one before it no more.
    let newer = "newer-webhook-0123456789abcdef";
    std::fs::write(&secret, newer).unwrap();
    assert_eq!((code(&knock(&own, SECRET)), code(&knock(&own, newer))), (403, 202));
    let log = daemon.log();
    assert!(!log.contains(SECRET) && !log.contains(newer), "{log}");
}

// The token of the service is there and cannot be read: that is no leave to ask without one.
#[test]
fn a_token_of_the_service_that_cannot_be_read_lets_nobody_in() {
    let site = TestNamespace::new("doors-credentials");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, site.configuration(repo.path(), "serve: {listen: '127.0.0.1:0'}")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The user of the tests may read any file.
    let token = folder.path().join("serve-token");
    std::fs::create_dir(&token).unwrap();
    let mut command = site.bare_command();
    command.env("CREDENTIALS_DIRECTORY", folder.path()).arg("run").arg("--config").arg(file);
    let daemon = Daemon::start(command);
    let line = daemon.says(&["answering on http://127.0.0.1:"]);
    let port: u16 = line.trim_end().rsplit(':').next().unwrap().parse().unwrap();
    let with = |token: &str| format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
    for head in ["Host: localhost\r\n".to_owned(), with(""), with(TOKEN)] {
        let answer = ask(port, "GET /v1/status", &head);
        assert_eq!(code(&answer), 401, "{answer}");
    }
    daemon.says(&["no token is accepted", "serve-token"]);
    std::fs::remove_dir(&token).unwrap();
    std::fs::write(&token, TOKEN).unwrap();
    assert_eq!(code(&ask(port, "GET /livez", &with(TOKEN))), 200);
    assert_eq!(code(&ask(port, "GET /livez", "Host: localhost\r\n")), 401);
}

// No probe ends a pod because what a credential plugin asks is away.
#[test]
fn it_answers_while_a_credential_plugin_is_waited_for() {
    let site = TestNamespace::new("doors-plugin");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let mut kubeconfig: serde_json::Value =
        serde_yaml::from_str(&std::fs::read_to_string(site.kubeconfig()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = serde_json::json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "/bin/sh", "args": ["-c", "sleep 1000"]}});
    let (file, config) = (site.state.path().join("kubeconfig"), site.state.path().join("rhumb.yaml"));
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let serve = "serve:\n  listen: 127.0.0.1:0\n  probes: 127.0.0.1:0";
    std::fs::write(&config, site.configuration(repo.path(), serve)).unwrap();
    let mut command = site.bare_command();
    command.arg("run").arg("--config").arg(config).arg("--kubeconfig").arg(file);
    let mut open = ServingDaemon { daemon: Daemon::start(command), site, _repo: repo };
    let port = open.port("answering on http://127.0.0.1:");
    let probes = open.port("answering probes on http://127.0.0.1:");
    let here = "Host: localhost\r\n";
    assert_eq!(code(&ask(probes, "GET /livez", here)), 200);
    assert_eq!(code(&ask(probes, "GET /readyz", here)), 503);
    let status = ask(port, "GET /v1/status", here);
    assert!(code(&status) == 503 && status.contains("the loop has not started yet"), "{status}");
    until("the plugin is waited for", || {
        ask(port, "GET /metrics", here).contains("the credential plugin of the kubeconfig")
    });
    assert_eq!(open.daemon.stop().code(), Some(0));
}
