//! Real answers of a 1.36 API server, and what they mean.

use std::time::Duration;

use crate::cluster::classify::{classify_answer, classify_auth};
use crate::cluster::{
    AccessDenial, CallSubject, ClusterError, ClusterFault, FieldConflict, InvalidField, RetryAdvice,
};
use crate::object::{ErrorClass, GroupKind, ObjectId};

fn config_map() -> CallSubject {
    CallSubject::Object(ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "a"))
}

fn secret() -> CallSubject {
    CallSubject::Object(ObjectId::new(&GroupKind::new("", "Secret"), Some("shop"), "s"))
}

/// Returns a `Status`; `rest` holds more of its fields.
fn status(code: u16, reason: &str, message: &str, rest: &str) -> Vec<u8> {
    let message = serde_json::to_string(message).unwrap();
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{message},"reason":"{reason}","code":{code}{rest}}}"#
    )
    .into_bytes()
}

fn check(
    code: u16,
    body: &[u8],
    class: ErrorClass,
    retry: RetryAdvice,
    expected: &ClusterFault,
) -> ClusterError {
    let error = classify_answer(code, None, body, config_map());
    assert_eq!(error.fault(), expected);
    assert_eq!((error.class(), error.retry()), (class, retry), "{error}");
    error
}

#[test]
fn conflicts_tell_version_from_manager() {
    let gone = r#"Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid 123, and no existing object was found"#;
    let details = r#","details":{"name":"a","kind":"configmaps"}"#;
    check(
        409,
        &status(409, "Conflict", gone, details),
        ErrorClass::Conflict,
        RetryAdvice::AfterDecision,
        &ClusterFault::VersionConflict,
    );
    let modified = r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#;
    check(
        409,
        &status(409, "Conflict", modified, details),
        ErrorClass::Conflict,
        RetryAdvice::AfterDecision,
        &ClusterFault::VersionConflict,
    );
    let other = r#"ConfigMap "a" is invalid: metadata.uid: Invalid value: "123": field is immutable"#;
    let cause = r#","details":{"name":"a","kind":"ConfigMap","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"123\": field is immutable","field":"metadata.uid"}]}"#;
    check(
        422,
        &status(422, "Invalid", other, cause),
        ErrorClass::Conflict,
        RetryAdvice::AfterDecision,
        &ClusterFault::VersionConflict,
    );
    let owned = r#"Apply failed with 2 conflicts: conflicts with "kubectl-create" using v1: …"#;
    let causes = r#","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"kubectl-create\" using v1","field":".data.a"},{"reason":"FieldManagerConflict","message":"conflict with \"kubectl-create\" using v1","field":".data.b"}]}"#;
    let conflict =
        |field: &str| FieldConflict { manager: "kubectl-create".to_owned(), field: field.to_owned() };
    let error = check(
        409,
        &status(409, "Conflict", owned, causes),
        ErrorClass::Conflict,
        RetryAdvice::LongBackoff,
        &ClusterFault::FieldConflicts { conflicts: vec![conflict(".data.a"), conflict(".data.b")] },
    );
    assert_eq!(
        error.to_string(),
        r#"ConfigMap shop/a: it exists already, with other values in .data.a, .data.b owned by "kubectl-create""#
    );
}

#[test]
fn missing_things_are_distinguished() {
    let check_missing = |body: &[u8], expected: &ClusterFault| {
        assert_eq!(classify_answer(404, None, body, config_map()).fault(), expected);
    };
    let of = |kind: &str, name: &str| format!(r#","details":{{"name":"{name}","kind":"{kind}"}}"#);
    check_missing(
        &status(404, "NotFound", r#"namespaces "none" not found"#, &of("namespaces", "none")),
        &ClusterFault::NoNamespace { namespace: "none".to_owned() },
    );
    check_missing(&status(404, "NotFound", "", &of("configmaps", "a")), &ClusterFault::NoObject);
    let other = r#"priorityclasses "high" not found"#;
    check_missing(
        &status(404, "NotFound", other, &of("priorityclasses", "high")),
        &ClusterFault::Invalid { fields: vec![], message: other.to_owned() },
    );
    let generic = "the server could not find the requested resource";
    check_missing(&status(404, "NotFound", generic, r#","details":{}"#), &ClusterFault::NoKind);
    check_missing(b"404 page not found\n", &ClusterFault::NoKind);
    let namespace = CallSubject::Object(ObjectId::new(&GroupKind::new("", "Namespace"), None, "none"));
    let body = status(404, "NotFound", "", &of("namespaces", "none"));
    assert_eq!(*classify_answer(404, None, &body, namespace).fault(), ClusterFault::NoObject);
}

#[test]
fn an_unknown_field_is_no_trouble_of_the_server() {
    let message = "failed to create typed patch object (shop/a; /v1, Kind=ConfigMap): .dta: field not declared in schema";
    let field = InvalidField { field: ".dta".to_owned(), message: "field not declared in schema".to_owned() };
    let body = status(500, "", message, "");
    let expected = ClusterFault::Invalid { fields: vec![field], message: message.to_owned() };
    check(500, &body, ErrorClass::Invalid, RetryAdvice::LongBackoff, &expected);
    let two = "failed to create typed patch object (/w; apps/v1, Kind=Deployment): errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema";
    let error = classify_answer(500, None, &status(500, "", two, ""), config_map());
    let ClusterFault::Invalid { fields, .. } = error.fault() else { panic!("{error}") };
    assert_eq!(fields.iter().map(|f| f.field.as_str()).collect::<Vec<_>>(), [".spec.a", ".spec.b"]);
}

#[test]
fn what_is_set_at_creation_is_final() {
    let immutable = [
        r#"Deployment.apps "web" is invalid: spec.selector: Invalid value: {}: field is immutable"#,
        r#"StatefulSet.apps "db" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden"#,
        r#"Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.9"]: may not change once set"#,
        r#"RoleBinding.rbac.authorization.k8s.io "r" is invalid: roleRef: Invalid value: {}: cannot change roleRef"#,
        r#"PersistentVolumeClaim "c" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests"#,
        r#"StorageClass.storage.k8s.io "s" is invalid: parameters: Forbidden: updates to parameters are forbidden."#,
        r#"ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set"#,
    ];
    for message in immutable {
        let expected = ClusterFault::Immutable { fields: vec![], message: message.to_owned() };
        check(422, &status(422, "Invalid", message, ""), ErrorClass::Invalid, RetryAdvice::Never, &expected);
    }
    // Names and values are no rules, nor is a policy's message: under `recreate: allowed` the
    // object would be deleted for them.
    for message in [
        r#"Deployment.apps "immutable-web" is invalid: spec.replicas: Required value"#,
        r#"Widget.example.com "w" is invalid: spec.mode: Unsupported value: "immutable \" immutable": supported values: "a""#,
        r#"Widget.example.com "w" is invalid: spec.immutable: Required value"#,
    ] {
        let expected = ClusterFault::Invalid { fields: vec![], message: message.to_owned() };
        check(
            422,
            &status(422, "Invalid", message, ""),
            ErrorClass::Invalid,
            RetryAdvice::LongBackoff,
            &expected,
        );
    }
    let message = r#"deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'tags' with binding 'all' denied request: image tags must be immutable"#;
    let expected = ClusterFault::Denied { by: AccessDenial::Admission, message: message.to_owned() };
    check(
        422,
        &status(422, "Invalid", message, ""),
        ErrorClass::Forbidden,
        RetryAdvice::LongBackoff,
        &expected,
    );
    let message = r#"admission webhook "tags.example.com" denied the request: image tags must be immutable"#;
    let expected = ClusterFault::Denied { by: AccessDenial::Admission, message: message.to_owned() };
    check(
        400,
        &status(400, "BadRequest", message, ""),
        ErrorClass::Forbidden,
        RetryAdvice::LongBackoff,
        &expected,
    );
    let message = r#"Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#;
    let cause = r#","details":{"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -1: must be greater than or equal to 0","field":"spec.replicas"}]}"#;
    let field = InvalidField {
        field: "spec.replicas".to_owned(),
        message: "Invalid value: -1: must be greater than or equal to 0".to_owned(),
    };
    let expected = ClusterFault::Invalid { fields: vec![field], message: message.to_owned() };
    check(
        422,
        &status(422, "Invalid", message, cause),
        ErrorClass::Invalid,
        RetryAdvice::LongBackoff,
        &expected,
    );
}

#[test]
fn a_refusal_is_reported_without_the_objects_that_the_server_repeats() {
    fn check_message(field: &str, text: &str, expected: &str) {
        let message = format!(r#"Job.batch "j" is invalid: {field}: {text}"#);
        let cause =
            serde_json::json!({"causes": [{"reason": "FieldValueInvalid", "message": text, "field": field}]});
        let body = status(422, "Invalid", &message, &format!(r#","details":{cause}"#));
        let error = classify_answer(422, None, &body, config_map());
        assert_eq!(error.reason(), expected);
    }
    let dump =
        format!(r#"Invalid value: {{"labels":{{"a":"}}: b"}},"containers":[{}]}}"#, r#"{"a":1},"#.repeat(50));
    check_message(
        "spec.template",
        &format!("{dump}: field is immutable"),
        r#"Job.batch "j" is invalid: spec.template: field is immutable"#,
    );
    let short = r#"Invalid value: {"a":"b"}: field is immutable"#;
    check_message("spec.selector", short, &format!(r#"Job.batch "j" is invalid: spec.selector: {short}"#));
    let long = "must be ".repeat(50) + "good";
    check_message("spec.a", &long, &format!(r#"Job.batch "j" is invalid: spec.a: {long}"#));
}

#[test]
fn the_systems_words_come_without_their_number() {
    let check =
        |text: &str, expected: &str| assert_eq!(crate::cluster::classify::without_errno(text), expected);
    check("tcp: Connection refused (os error 111)", "tcp: Connection refused");
    check("a (os error 1), b (os error 2): c", "a, b: c");
    check("plain", "plain");
}

#[test]
fn denials_name_the_part_of_the_server() {
    let check_denied = |message: &str, rest: &str, by: AccessDenial, retry: RetryAdvice| {
        let body = status(403, "Forbidden", message, rest);
        check(
            403,
            &body,
            ErrorClass::Forbidden,
            retry,
            &ClusterFault::Denied { by, message: message.to_owned() },
        );
    };
    check_denied(
        r#"configmaps "a" is forbidden: User "dev" cannot patch resource "configmaps" in API group "" in the namespace "shop""#,
        "",
        AccessDenial::Rbac,
        RetryAdvice::LongBackoff,
    );
    check_denied(
        r#"pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"#,
        "",
        AccessDenial::Quota,
        RetryAdvice::LongBackoff,
    );
    check_denied(
        r#"configmaps "a" is forbidden: unable to create new content in namespace shop because it is being terminated"#,
        r#","details":{"causes":[{"reason":"NamespaceTerminating","message":"namespace shop is being terminated","field":"metadata.namespace"}]}"#,
        AccessDenial::Terminating,
        RetryAdvice::ShortBackoff,
    );
    check_denied(
        r#"admission webhook "no.example.com" denied the request: no"#,
        "",
        AccessDenial::Admission,
        RetryAdvice::LongBackoff,
    );
}

#[test]
fn overload_outage_and_webhooks_are_retried_in_their_own_pace() {
    let hook = r#"Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.x.svc:443/?timeout=10s": service "w" not found"#;
    let expected = ClusterFault::Webhook { message: hook.to_owned() };
    check(
        500,
        &status(500, "InternalError", hook, ""),
        ErrorClass::Invalid,
        RetryAdvice::LongBackoff,
        &expected,
    );
    let leader = "etcdserver: leader changed";
    let expected = ClusterFault::Server { code: 500, message: leader.to_owned() };
    let error =
        check(500, &status(500, "", leader, ""), ErrorClass::Transient, RetryAdvice::ShortBackoff, &expected);
    assert_eq!(error.to_string(), "ConfigMap shop/a: etcdserver: leader changed (status 500)");
    check(
        401,
        &status(401, "Unauthorized", "Unauthorized", ""),
        ErrorClass::Forbidden,
        RetryAdvice::ShortBackoff,
        &ClusterFault::Unauthorized,
    );
    check(
        410,
        &status(410, "Expired", "too old", ""),
        ErrorClass::Transient,
        RetryAdvice::ShortBackoff,
        &ClusterFault::Expired,
    );
    let ahead = r#","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#;
    check(
        504,
        &status(504, "Timeout", "", ahead),
        ErrorClass::Transient,
        RetryAdvice::ShortBackoff,
        &ClusterFault::Expired,
    );
    let busy =
        |header: Option<&str>, body: &[u8]| classify_answer(429, header, body, config_map()).retry_after();
    assert_eq!(busy(Some("3"), b"Too many requests, please try again later."), Some(Duration::from_secs(3)));
    assert_eq!(busy(Some("86400"), b""), Some(Duration::from_mins(1)));
    assert_eq!(busy(Some("Wed, 21 Oct 2026 07:28:00 GMT"), b""), None);
    assert_eq!(
        busy(None, &status(429, "", "", r#","details":{"retryAfterSeconds":7}"#)),
        Some(Duration::from_secs(7))
    );
    let proxy = classify_answer(502, None, b"<html>Bad Gateway</html>", config_map());
    assert_eq!(proxy.class(), ErrorClass::Transient);
}

#[test]
fn no_word_about_a_secret_holds_a_value() {
    let bodies = [
        status(
            500,
            "",
            "failed to create typed patch object (shop/s; /v1, Kind=Secret): .data.a: expected string, got hunter2",
            "",
        ),
        status(
            422,
            "Invalid",
            "data[a]: Invalid value: \"hunter2\"",
            r#","details":{"causes":[{"reason":"FieldValueInvalid","message":"hunter2","field":"data[a]"}]}"#,
        ),
        status(403, "Forbidden", r#"admission webhook "x" denied the request: hunter2 is weak"#, ""),
        status(400, "BadRequest", "hunter2", ""),
        status(500, "", "failed calling webhook: hunter2", ""),
        status(500, "", "hunter2", ""),
        status(409, "Conflict", "please try again hunter2", ""),
        b"hunter2".to_vec(),
    ];
    for body in bodies {
        for code in [400, 403, 404, 409, 422, 429, 500, 503] {
            let error = classify_answer(code, None, &body, secret());
            let said = format!("{error} {error:?} {}", error.reason());
            assert!(!said.contains("hunter2"), "{code}: {said}");
            assert!(said.contains("Secret shop/s"), "{said}");
        }
    }
    let wrong = classify_answer(
        422,
        None,
        &status(422, "Invalid", "x", r#","details":{"causes":[{"message":"m","field":"data[a]"}]}"#),
        secret(),
    );
    assert!(wrong.reason().contains("refuses data[a]"), "{wrong}");
}

#[test]
fn what_a_credential_plugin_says_is_reported_without_what_looks_like_a_token() {
    use std::os::unix::process::ExitStatusExt as _;
    let out = std::process::Output {
        status: std::process::ExitStatus::from_raw(256),
        stdout: b"{\"token\": \"hunter2hunter2hunter2\"}".to_vec(),
        stderr: b"https://me:hunter2@idp.example.org says no to hunter2hunter2hunter2: log in again\n"
            .to_vec(),
    };
    let cmd = "plugin --password hunter2hunter2hunter2".to_owned();
    let error = kube::client::AuthError::AuthExecRun { cmd, out: Box::new(out) };
    assert_eq!(
        classify_auth(&error).to_string(),
        "the credential plugin failed (exit status: 1): https://***@idp.example.org says no to ***: log in again"
    );
}
