//! The text of kubeconfig files; JSON, which every reader of YAML takes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::pki::Pair;

/// The credential of a kubeconfig's user.
pub(crate) enum Credential<'a> {
    Certificate(&'a Pair),
    Token(&'a str),
}

/// Writes a kubeconfig with one cluster, one user and one context.
pub(crate) fn text(url: &str, ca: &str, user: &str, credential: &Credential<'_>) -> String {
    let shown = match credential {
        Credential::Certificate(pair) => json!({
            "client-certificate-data": STANDARD.encode(&pair.certificate),
            "client-key-data": STANDARD.encode(&pair.key),
        }),
        Credential::Token(token) => json!({"token": token}),
    };
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "controlplane",
            "cluster": {"server": url, "certificate-authority-data": STANDARD.encode(ca)},
        }],
        "users": [{"name": user, "user": shown}],
        "contexts": [{"name": "controlplane", "context": {"cluster": "controlplane", "user": user}}],
        "current-context": "controlplane",
    });
    format!("{document:#}\n")
}
