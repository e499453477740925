//! From the server's answer, or its silence, to a [`ClusterFault`].

use std::borrow::Cow;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use kube::client::AuthError;
use kube::core::response::{Status, StatusCause};

use super::error::{AccessDenial, CallSubject, ClusterError, ClusterFault, FieldConflict, InvalidField};
use crate::fields::mask_likely_secrets;
use crate::object::shorten;

/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);
/// Longer texts of proxies and webhooks lose their middle.
const MAX_MESSAGE_CHARS: usize = 1000;
/// Longer texts of the server's validation are reported by their faults.
const MAX_READABLE_CHARS: usize = 300;

/// Texts by which the built-in kinds refuse a change of what is set at creation; where the API says
/// "immutable" no entry is needed.
const IMMUTABLE_TEXTS: [&str; 6] = [
    "updates to statefulset spec for fields other than",
    "may not change once set",
    "cannot change roleref",
    "pod updates may not change fields other than",
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
];

/// Classifies an answer with an error status.
pub(super) fn classify_answer(
    code: u16,
    retry_after: Option<&str>,
    body: &[u8],
    on: CallSubject,
) -> ClusterError {
    let status = serde_json::from_slice::<Status>(body).unwrap_or_else(|_| {
        // A proxy, or a path that the server does not know: plain text.
        let text = String::from_utf8_lossy(body);
        Status { message: shorten_message(text.trim()).into_owned(), ..Status::default() }
    });
    let seconds = retry_after.and_then(|text| text.trim().parse().ok());
    ClusterError::new(on.clone(), classify_status(code, seconds, &status, &on))
}

/// Classifies a `Status` that came inside a watch.
pub(super) fn status(status: &Status, on: CallSubject) -> ClusterError {
    let fault = classify_status(status.code, None, status, &on);
    ClusterError::new(on, fault)
}

/// Classifies a call to this server that brought no answer.
pub(super) fn classify_transport(error: &kube::Error, on: CallSubject, server: &Arc<str>) -> ClusterError {
    let unreachable = |reason| ClusterFault::Unreachable { server: server.clone(), reason };
    let fault = match error {
        kube::Error::Auth(error) => classify_auth(error),
        kube::Error::Service(source) => match source.downcast_ref::<AuthError>() {
            Some(error) => classify_auth(error),
            None => unreachable(error_chain(source.as_ref())),
        },
        other => unreachable(error_chain(other)),
    };
    ClusterError::new(on, fault)
}

/// Returns the fault of a credential plugin. Its command line and its standard output are not
/// shown: they may hold a password or a token. Its complaints are, without anything that looks like
/// one.
pub(super) fn classify_auth(error: &AuthError) -> ClusterFault {
    let reason = match error {
        AuthError::AuthExecRun { out, .. } => return plugin_fault(out.status, &out.stderr),
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed | AuthError::UnrefreshableTokenResponse => {
            "the credential plugin's answer cannot be read".to_owned()
        }
        AuthError::AuthExecStart(error) => {
            let message = without_errno(&error.to_string()).to_lowercase();
            return ClusterFault::Config {
                reason: format!("the credential plugin cannot be started: {message}"),
            };
        }
        other => {
            return ClusterFault::Config {
                reason: format!("credentials: {}", mask_likely_secrets(&error_chain(other))),
            };
        }
    };
    // The service behind the plugin may be away.
    ClusterFault::Plugin { reason }
}

/// Returns the fault of a credential plugin that failed, with its complaint.
pub(super) fn plugin_fault(status: ExitStatus, output: &[u8]) -> ClusterFault {
    let output = String::from_utf8_lossy(output);
    ClusterFault::Plugin {
        reason: format!(
            "the credential plugin failed ({status}): {}",
            shorten_message(&mask_likely_secrets(output.trim()))
        ),
    }
}

/// Returns an error and its causes in one line, each said once.
pub(super) fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    shorten_message(&without_errno(&text)).into_owned()
}

/// Returns the system's message without its number: `Connection refused`, not `Connection refused
/// (os error 111)`.
pub(super) fn without_errno(text: &str) -> String {
    let Some((before, rest)) = text.split_once(" (os error ") else { return text.to_owned() };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    format!("{before}{}", without_errno(after))
}

fn classify_status(code: u16, retry_after: Option<u64>, status: &Status, on: &CallSubject) -> ClusterFault {
    let causes = status.details.as_ref().map_or(&[][..], |details| details.causes.as_slice());
    let requested_delay = status.details.as_ref().map(|details| u64::from(details.retry_after_seconds));
    match code {
        401 => ClusterFault::Unauthorized,
        403 => classify_denial(status, causes, on),
        404 => classify_missing(status, on),
        409 => classify_conflict(causes, status, on),
        410 => ClusterFault::Expired,
        429 if causes.iter().any(|cause| cause.reason == "DisruptionBudget") => {
            ClusterFault::Disruption { message: disruption_text(status, causes) }
        }
        429 => {
            let seconds = retry_after.or(requested_delay.filter(|seconds| *seconds > 0));
            ClusterFault::TooMany { after: seconds.map(|s| Duration::from_secs(s).min(MAX_RETRY_AFTER)) }
        }
        400 | 405 | 406 | 413 | 415 | 422 => classify_refusal(status, causes, on),
        500 if is_schema_refusal(&status.message) => classify_refusal(status, causes, on),
        500.. if status.message.contains("failed calling webhook") => ClusterFault::Webhook {
            message: server_or_own_text(status, on, "a webhook that the server must ask does not answer"),
        },
        504 if causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge") => ClusterFault::Expired,
        _ => ClusterFault::Server { code, message: server_or_own_text(status, on, "the server failed") },
    }
}

/// Returns the words about a refused eviction. The message itself does not name the
/// `PodDisruptionBudget`; its cause does.
fn disruption_text(status: &Status, causes: &[StatusCause]) -> String {
    let budget = causes.iter().find(|cause| cause.reason == "DisruptionBudget" && !cause.message.is_empty());
    shorten_message(budget.map_or(&status.message, |cause| &cause.message)).into_owned()
}

/// Returns whether a message is about a field that the schema does not know: server-side apply
/// answers it with a 500.
fn is_schema_refusal(message: &str) -> bool {
    message.starts_with("failed to create typed patch object")
        || message.starts_with("failed to create manager for existing fields")
        || message.starts_with("failed to convert")
}

/// Returns the fields in `failed to create typed patch object (shop/web; apps/v1, Kind=Deployment):
/// .spec.x: …`; several come as indented lines.
fn schema_faults(message: &str) -> Vec<InvalidField> {
    let Some((_, faults)) = message.split_once("): ") else { return Vec::new() };
    let lines = faults.lines().map(str::trim).filter(|line| line.starts_with('.'));
    let parts = lines.filter_map(|line| line.split_once(": "));
    parts
        .map(|(field, text)| InvalidField {
            field: field.to_owned(),
            message: shorten_message(text).into_owned(),
        })
        .collect()
}

fn classify_denial(status: &Status, causes: &[StatusCause], on: &CallSubject) -> ClusterFault {
    let says = |text: &str| status.message.contains(text);
    let by = if says("exceeded quota") || says("failed quota") {
        AccessDenial::Quota
    } else if causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
        || says("because it is being terminated")
    {
        AccessDenial::Terminating
    } else if says("\" cannot impersonate resource \"") && says("User \"") {
        AccessDenial::Impersonation
    } else if says(" cannot ") && says("User \"") {
        AccessDenial::Rbac
    } else {
        AccessDenial::Admission
    };
    let ours = match by {
        AccessDenial::Rbac => "the user may not do this",
        AccessDenial::Impersonation => "the user may not impersonate it",
        AccessDenial::Quota => "a quota is used up",
        AccessDenial::Terminating => "the namespace is being deleted",
        AccessDenial::Admission => {
            "admission denied it (its words are not shown, they may hold the Secret's values)"
        }
    };
    ClusterFault::Denied { by, message: server_or_own_text(status, on, ours) }
}

fn classify_missing(status: &Status, on: &CallSubject) -> ClusterFault {
    let Some(details) = &status.details else { return ClusterFault::NoKind };
    if details.kind == "namespaces" && !matches!(on, CallSubject::Object(id) if id.is("", "Namespace")) {
        return ClusterFault::NoNamespace { namespace: details.name.clone() };
    }
    match on {
        // A path that is not served names no object.
        _ if details.name.is_empty() => ClusterFault::NoKind,
        // Something else that the request needs.
        CallSubject::Object(id) if id.name() != details.name => classify_refusal(status, &[], on),
        _ => ClusterFault::NoObject,
    }
}

fn classify_conflict(causes: &[StatusCause], status: &Status, on: &CallSubject) -> ClusterFault {
    let conflicts: Vec<FieldConflict> = causes
        .iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| FieldConflict { manager: quoted_manager(&cause.message), field: cause.field.clone() })
        .collect();
    if !conflicts.is_empty() {
        return ClusterFault::FieldConflicts { conflicts };
    }
    // Every other 409 means that the object, or its absence, is not what we decided on. One does
    // not: a namespace or a quota that is busy asks for the same call again.
    if status.message.contains("please try again") && !status.message.contains("the object has been modified")
    {
        return ClusterFault::Server {
            code: 409,
            message: server_or_own_text(status, on, "the server asks to try again"),
        };
    }
    ClusterFault::VersionConflict
}

/// Returns the manager that a message names in quotes, as in `conflict with "kubectl" using
/// apps/v1`.
fn quoted_manager(message: &str) -> String {
    message.split('"').nth(1).unwrap_or("another manager").to_owned()
}

fn classify_refusal(status: &Status, causes: &[StatusCause], on: &CallSubject) -> ClusterFault {
    // The precondition itself: another incarnation has taken the name.
    if causes.iter().any(|cause| cause.field == "metadata.uid") {
        return ClusterFault::VersionConflict;
    }
    if status.message.contains("failed calling webhook") {
        return ClusterFault::Webhook {
            message: server_or_own_text(status, on, "a webhook that the server must ask does not answer"),
        };
    }
    if is_denial(&status.message) {
        return classify_denial(status, causes, on);
    }
    let mut fields: Vec<InvalidField> = causes
        .iter()
        .map(|cause| InvalidField {
            field: cause.field.clone(),
            message: shorten_message(&cause.message).into_owned(),
        })
        .collect();
    if fields.is_empty() {
        fields = schema_faults(&status.message);
    }
    // The API server often names one fault twice.
    fields.dedup();
    if on.is_secret() {
        for wrong in &mut fields {
            wrong.message.clear();
        }
    }
    let message = if on.is_secret() { String::new() } else { refusal_words(status, causes) };
    if is_fixed(&status.message) || causes.iter().any(|cause| is_fixed(&cause.message)) {
        ClusterFault::Immutable { fields, message }
    } else {
        ClusterFault::Invalid { fields, message }
    }
}

fn is_fixed(message: &str) -> bool {
    let message = without_quoted(message).to_ascii_lowercase();
    let mut words = message.split(|letter: char| !letter.is_alphanumeric() && !".-_[]".contains(letter));
    words.any(|word| word.trim_end_matches('.') == "immutable")
        || IMMUTABLE_TEXTS.iter().any(|text| message.contains(text))
}

/// Returns the server's own words, without the names and values that it quotes: those may say
/// anything.
fn without_quoted(message: &str) -> String {
    let (mut words, mut quoted, mut escaped) = (String::new(), false, false);
    for letter in message.chars() {
        match letter {
            '"' if !escaped => quoted = !quoted,
            _ if !quoted => words.push(letter),
            _ => {}
        }
        escaped = quoted && letter == '\\' && !escaped;
    }
    words
}

/// Returns whether a policy or a webhook refused. The words of those about the content are no rule
/// of the API.
fn is_denial(message: &str) -> bool {
    message.contains("denied the request") || message.contains("denied request")
}

/// Returns the server's words on a content that it refuses; where they repeat whole parts of it,
/// the faults alone.
fn refusal_words(status: &Status, causes: &[StatusCause]) -> String {
    if status.message.len() <= MAX_READABLE_CHARS || causes.is_empty() {
        return shorten_message(&status.message).into_owned();
    }
    let mut faults: Vec<String> = causes
        .iter()
        .map(|cause| {
            let message = &*cause.message;
            // A struct as Go or JSON writes it, and behind it what is wrong.
            let dump = message.starts_with("Invalid value: {").then(|| message.rfind("}: ")).flatten();
            format!("{}: {}", cause.field, dump.map_or(message, |end| &message[end + 3..]))
        })
        .collect();
    faults.dedup();
    let whose = status
        .message
        .split_inclusive(" is invalid: ")
        .next()
        .filter(|text| text.len() <= MAX_READABLE_CHARS);
    shorten_message(&format!("{}{}", whose.unwrap_or_default(), faults.join("; "))).into_owned()
}

/// Returns the server's words, or ours where its own may hold a Secret's values.
fn server_or_own_text(status: &Status, on: &CallSubject, ours: &str) -> String {
    if on.is_secret() || status.message.is_empty() {
        ours.to_owned()
    } else {
        shorten_message(&status.message).into_owned()
    }
}

/// Shortens a message: the API server repeats whole objects before it says what is wrong with them.
fn shorten_message(text: &str) -> Cow<'_, str> {
    shorten(text, MAX_MESSAGE_CHARS)
}
