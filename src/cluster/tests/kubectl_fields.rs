use serde_json::{Value, json};

use crate::cluster::kubectl_fields::migrate_entries;

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({ "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields })
}

fn check(entries: &[Value], expected: Option<&[Value]>) {
    assert_eq!(migrate_entries(entries).as_deref(), expected);
}

#[test]
fn entries_of_client_side_apply_become_ours() {
    let theirs = json!({ "f:data": { ".": {}, "f:a": {}, "f:b": {} }, "f:metadata": { "f:annotations": { ".": {}, "f:x": {} } } });
    let ours = json!({ "f:data": { "f:a": {}, "f:c": {} } });
    let status = json!({ "f:status": {} });
    check(
        &[entry("kubectl-client-side-apply", "Update", &theirs), entry("kcm", "Update", &status)],
        Some(&[entry("kcm", "Update", &status), entry("rhumb", "Apply", &theirs)]),
    );
    let both = json!({ "f:data": { ".": {}, "f:a": {}, "f:b": {}, "f:c": {} }, "f:metadata": { "f:annotations": { ".": {}, "f:x": {} } } });
    check(
        &[entry("rhumb", "Apply", &ours), entry("kubectl-client-side-apply", "Update", &theirs)],
        Some(&[entry("rhumb", "Apply", &both)]),
    );
    check(
        &[
            entry("before-first-apply", "Update", &json!({ "f:data": { "f:z": {} } })),
            entry("kubectl-client-side-apply", "Update", &json!({ "f:data": { "f:a": {} } })),
        ],
        Some(&[entry("rhumb", "Apply", &json!({ "f:data": { "f:a": {}, "f:z": {} } }))]),
    );
    // A node that one holds as a whole and the other by its children is held, and so are they.
    check(
        &[
            entry("rhumb", "Apply", &json!({ "f:a": {}, "f:b": { "f:c": {} } })),
            entry("kubectl-client-side-apply", "Update", &json!({ "f:a": { "f:d": {} }, "f:b": {} })),
        ],
        Some(&[entry(
            "rhumb",
            "Apply",
            &json!({ "f:a": { ".": {}, "f:d": {} }, "f:b": { ".": {}, "f:c": {} } }),
        )]),
    );
}

#[test]
fn entries_of_others_stay() {
    let fields = json!({ "f:data": {} });
    check(&[], None);
    check(&[entry("kubectl-edit", "Update", &fields), entry("kubectl", "Apply", &fields)], None);
    check(&[entry("kubectl-client-side-apply", "Apply", &fields)], None);
    let mut scale = entry("kubectl-client-side-apply", "Update", &fields);
    scale["subresource"] = json!("scale");
    check(&[scale], None);
}
