//! One thin thread through the whole.

use crate::support::{Place, rhumb, shared};

#[test]
fn a_directory_is_applied_once_and_then_nothing_is_sent() {
    let cluster = shared();
    let place = Place::new(&[
        ("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: thread}\n"),
        (
            "config.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env, namespace: thread}\ndata: {a: b}\n",
        ),
    ]);
    let source = place.path().to_str().unwrap();
    let diff = rhumb(cluster, &place, &["diff", source, "--name", "thread"]);
    assert_eq!(diff.code, 1, "{diff:#?}");
    let apply = rhumb(cluster, &place, &["apply", source, "--name", "thread"]);
    assert_eq!(apply.code, 0, "{apply:#?}");
    let data = cluster.kubectl(&["-n", "thread", "get", "cm", "env", "-o", "jsonpath={.data.a}"]).unwrap();
    assert_eq!(data, "b");
    let before = cluster.audit().unwrap().len();
    let again = rhumb(cluster, &place, &["apply", source, "--name", "thread"]);
    assert_eq!(again.code, 0, "{again:#?}");
    let sent: Vec<_> = cluster
        .audit()
        .unwrap()
        .into_iter()
        .skip(before)
        .filter(|e| e.user == "rhumb" && e.is_write())
        .collect();
    assert!(sent.is_empty(), "{sent:#?}");
    let diff = rhumb(cluster, &place, &["diff", source, "--name", "thread"]);
    assert_eq!((diff.code, diff.stdout.lines().count()), (0, 1), "{diff:#?}");
}
