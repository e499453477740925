//! The places of planted secrets: Secrets in every state that they can be in, and answers of the
//! API server about them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controlplane::{Answer, Fault, FaultProxy, Requests, Rule};
use serde_json::json;

use super::search::Canary;
use crate::support::yaml;

/// Returns a Secret with these further lines.
pub(super) fn secret(name: &str, lines: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\n{lines}\n")
}

/// Returns the files of the first commit: all of them are good.
pub(super) fn first() -> Vec<(String, String)> {
    let text = |name| Canary::of(name).text();
    let binary = [&[0xff, 0, 0xfe], text("bytes in data").as_bytes(), &[0x80]].concat();
    let files = [
        ("data", format!("data: {{a: {}}}", Canary::of("data").base64())),
        ("string-data", format!("stringData: {{a: '{}'}}", text("stringData"))),
        ("bytes", format!("data: {{a: {}}}", STANDARD.encode(binary))),
        ("drifting", "stringData: {a: as it should be}".to_owned()),
        ("changing", format!("stringData: {{a: '{}'}}", text("a value that is replaced"))),
        ("fixed", format!("immutable: true\nstringData: {{a: '{}'}}", text("an immutable Secret"))),
        ("going", format!("stringData: {{a: '{}'}}", text("a Secret that goes"))),
        ("adopted", format!("stringData: {{a: '{}'}}", text("a Secret of kubectl's"))),
        ("warned", format!("stringData: {{a: '{}'}}", text("a warning of the server"))),
        ("used", format!("stringData: {{a: '{}'}}", text("a Secret that restarts pods"))),
    ];
    let mut files: Vec<_> =
        files.into_iter().map(|(name, lines)| (format!("{name}.yaml"), secret(name, &lines))).collect();
    let used = yaml::deployment("web", 2, "app:1").replace(
        "metadata:\n  name: web",
        "metadata:\n  name: web\n  annotations: {rhumb.dev/restart-on-change: 'true'}",
    ) + "        envFrom: [{secretRef: {name: used}}]\n";
    files.push(("web.yaml".to_owned(), used));
    let listed = format!(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: listed}}\n  \
         stringData: {{a: '{}'}}\n",
        text("a Secret in a List")
    );
    files.push(("listed.yaml".to_owned(), listed));
    let items = format!(
        "apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {{name: item}}\n  stringData: {{a: '{}'}}\n",
        text("a Secret of a List of them")
    );
    files.push(("item.yaml".to_owned(), items));
    // As `kubectl get -o yaml` gives it.
    let copy = json!({"stringData": {"a": text("kubectl's copy in a manifest")}}).to_string();
    let copied = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: copied\n  annotations:\n    \
         kubectl.kubernetes.io/last-applied-configuration: '{copy}'\nstringData: {{a: x}}\n"
    );
    files.push(("copied.yaml".to_owned(), copied));
    files.push(("env.yaml".to_owned(), yaml::config_map("env", "a", "one")));
    files
}

/// Returns the files that follow: some are good.
pub(super) fn second() -> Vec<(&'static str, String)> {
    let text = |name| Canary::of(name).text();
    let good = |name: &str, file: &'static str| {
        (file, secret(file.trim_end_matches(".yaml"), &format!("stringData: {{a: '{name}'}}")))
    };
    vec![
        good(&text("a value that is new"), "changing.yaml"),
        good(&text("another value of restarts"), "used.yaml"),
        (
            "fixed.yaml",
            secret(
                "fixed",
                &format!("immutable: true\nstringData: {{a: '{}'}}", text("a changed immutable Secret")),
            ),
        ),
        (
            "tls.yaml",
            secret(
                "tls",
                &format!(
                    "type: kubernetes.io/tls\nstringData: {{a: '{}'}}",
                    text("a Secret without its keys")
                ),
            ),
        ),
        (
            "dotted.yaml",
            secret(
                "dotted",
                &format!(
                    "type: kubernetes.io/dockerconfigjson\nstringData: {{.dockerconfigjson: '{}'}}",
                    text("a Secret that is no JSON")
                ),
            ),
        ),
        (
            "number.yaml",
            secret("number", &format!("immutable: '{}'", text("text where a truth value belongs"))),
        ),
        ("field.yaml", secret("field", &format!("stringDate: {{a: '{}'}}", text("an unknown field")))),
        (
            "nested.yaml",
            secret("nested", &format!("stringData: {{a: {{b: '{}'}}}}", text("a mapping for a value"))),
        ),
        ("raw.yaml", secret("raw", &format!("data: {{a: '{}!'}}", text("data that is no base64")))),
        ("broken.yaml", secret("broken", &format!("stringData:\n  a: \"{}", text("an open quote")))),
        ("colons.yaml", secret("colons", &format!("stringData:\n  a: {}: x: y", text("a line with colons")))),
        (
            "twice.yaml",
            secret("twice", &format!("stringData:\n  a: one\n  a: '{}'", text("a key that is there twice"))),
        ),
        ("alias.yaml", secret("alias", &format!("stringData:\n  a: *{}", Canary::of("an alias").plain()))),
        (
            "denied.yaml",
            secret("denied", &format!("stringData: {{a: '{}'}}", text("a Secret that a policy denies"))),
        ),
        ("copied.yaml", secret("copied", "stringData: {a: y}")),
        good("x", "text.yaml"),
        good("x", "invalid.yaml"),
        good("x", "forbidden.yaml"),
        good("x", "busy.yaml"),
        good("x", "webhook.yaml"),
        good("x", "garbled.yaml"),
    ]
}

/// Returns the files of the second commit whose canaries are in other objects than their own.
pub(super) fn within() -> Vec<(&'static str, String)> {
    let text = |name| Canary::of(name).text();
    vec![
        (
            "list-broken.yaml",
            format!(
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: open}}\n  \
                 stringData: {{a: \"{}}}\n",
                text("an open quote in a List")
            ),
        ),
        (
            "list-nested.yaml",
            format!(
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: deep}}\n  \
                 stringData: {{a: {{b: '{}'}}}}\n",
                text("a mapping for a value in a List")
            ),
        ),
        (
            "kustomize/kustomization.yaml",
            format!(
                "secretGenerator:\n- name: generated\n  literals: ['a={}']\npatches:\n- patch: |\n    \
                 {{kind: Secret, metadata: {{name: data}}, stringData: {{a: '{}'}}}}\n",
                text("a generator of kustomize"),
                text("a patch of kustomize")
            ),
        ),
        // kustomize itself repeats what it does not take.
        (
            "literal/kustomization.yaml",
            format!(
                "secretGenerator:\n- name: literal\n  literals: ['{}']\n",
                text("a literal that kustomize refuses")
            ),
        ),
        (
            "generated/kustomization.yaml",
            format!(
                "secretGenerator:\n- name: made\n  literals: ['a={}']\n  options: {{disableNameSuffixHash: true}}\n",
                text("a Secret that kustomize generates")
            ),
        ),
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n".to_owned()),
        ("chart/values.yaml", format!("a: '{}'\n", text("a value that a chart fails with"))),
        ("chart/templates/a.yaml", secret("failed", "stringData: {a: '{{ fail .Values.a }}'}")),
        (
            ".gitmodules",
            format!(
                "[submodule \"x\"]\n\tpath = x\n\turl = https://user:{}@127.0.0.1:1/x.git\n",
                text("the URL of a submodule")
            ),
        ),
    ]
}

/// The Secrets of [`second`] that the server, or what is before it, refuses.
pub(super) const REFUSED: [&str; 11] = [
    "fixed",
    "tls",
    "dotted",
    "field",
    "raw",
    "denied",
    "text",
    "invalid",
    "forbidden",
    "webhook",
    "garbled",
];

/// Lets the proxy answer in place of the server, about Secrets: each answer repeats the request, as
/// it is and encoded.
pub(super) fn spoilt(proxy: &FaultProxy) {
    let said = |name: &'static str| {
        format!("it holds {} which is {}", Canary::of(name).text(), Canary::of(name).base64())
    };
    let status = |code: u16, name: &'static str, before: &str| {
        let message = format!("{before}{}", said(name));
        let cause = json!({"reason": "FieldValueInvalid", "message": format!("Invalid value: {message:?}"), "field": "data[a]"});
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code,
            "reason": "Invalid", "details": {"name": "x", "kind": "secrets", "causes": [cause]}});
        Answer::new(code, &body.to_string()).header("Content-Type", "application/json")
    };
    let webhook = "Internal error occurred: failed calling webhook \"x\": ";
    for (secret, answer) in [
        ("text", Answer::new(500, &said("a proxy's page"))),
        ("invalid", status(422, "an error of validation", "Secret \"x\" is invalid: ")),
        ("forbidden", status(403, "a denial", "admission webhook \"x\" denied the request: ")),
        ("busy", status(409, "a conflict", "please try again: ")),
        ("webhook", status(500, "a webhook that fails", webhook)),
        (
            "garbled",
            Answer::new(200, &json!({"metadata": said("an answer of no sense"), "kind": 3}).to_string()),
        ),
    ] {
        let requests = Requests::any().method("PATCH").path_suffix(&format!("/secrets/{secret}"));
        proxy.add(Rule::new(requests, Fault::Replace(answer)));
    }
    let warned = Requests::any().method("PATCH").path_suffix("/secrets/warned");
    let warning = format!("299 - \"{}\"", said("a warning of the server"));
    let body = secret_json("warned");
    proxy.add(Rule::new(warned, Fault::ReplaceAfter(Answer::new(200, &body).header("Warning", &warning))));
}

fn secret_json(name: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "uid": "none", "resourceVersion": "1"}})
        .to_string()
}

/// Ends the first watch of Secrets after this in an error that repeats one.
pub(super) fn spoil_watches(proxy: &FaultProxy) -> controlplane::RuleId {
    let reason = Canary::of("the error of a watch").text();
    let watches = Requests::any().watches().path_suffix("/secrets");
    proxy.add(Rule::new(watches, Fault::Replace(Answer::watch_error(500, &reason))).times(2))
}
