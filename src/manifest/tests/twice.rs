//! The same object twice: an error that names both places, and neither candidate is used.

use super::{check, check_files};
use crate::manifest::{self, KindScopes, ManifestItem, assemble};
use crate::object::{ManifestOrigin, RenderOrigin};

#[test]
fn in_one_file() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ",
        "
        a.yaml:1:1: error: ConfigMap default/a is defined twice: here and at a.yaml:5
          hint: remove one of the two: neither is applied
        a.yaml:5:1: error: ConfigMap default/a is defined twice: here and at a.yaml:1
          hint: remove one of the two: neither is applied
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:5
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:1
        ",
    );
}

#[test]
fn in_roots() {
    let item = |root: &str, file: &str| {
        let bytes = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let mut item = manifest::read(&file.into(), bytes).items.remove(0);
        let position = ManifestOrigin::new("base/a.yaml".into(), 1, 1);
        let origin =
            RenderOrigin { root: root.into(), renderer: "kustomize".into(), places: [position].into() };
        item.origin.render = (!root.is_empty()).then(|| origin.into());
        item
    };
    let check = |items: Vec<ManifestItem>, hint: &str| {
        let read = assemble(items, &KindScopes::builtin(), "default");
        assert!(!read.diagnostics.is_empty());
        for found in &read.diagnostics {
            assert_eq!(found.hint.as_deref(), Some(hint), "{found:?}");
        }
    };
    let (dev, prod, test) = (item("dev", "1"), item("prod", "2"), item("test", "3"));
    let several = "name the root that is meant by `spec.git.path` (--path), or list the others in `.rhumbignore`: none \
                   is applied";
    let two = "name the root that is meant by `spec.git.path` (--path), or list the other in `.rhumbignore`: neither \
               is applied";
    check(vec![dev.clone(), prod.clone()], two);
    check(vec![dev.clone(), prod, test], several);
    // One root that makes it twice, and a file that is beside a root.
    check(vec![dev.clone(), dev.clone()], "remove one of the two: neither is applied");
    check(vec![dev, item("", "a.yaml")], "remove one of the two: neither is applied");
}

#[test]
fn three_times() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ",
        "
        a.yaml:1:1: error: ConfigMap default/a is defined 3 times: here and at a.yaml:5 and at a.yaml:9
          hint: remove all but one: none is applied
        a.yaml:5:1: error: ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:9
          hint: remove all but one: none is applied
        a.yaml:9:1: error: ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:5
          hint: remove all but one: none is applied
        held: ConfigMap default/a, ConfigMap default/a is defined 3 times: here and at a.yaml:5 and at a.yaml:9
        held: ConfigMap default/a, ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:9
        held: ConfigMap default/a, ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:5
        ",
    );
}

#[test]
fn in_two_files() {
    check_files(
        &[
            (
                "a.yaml",
                "
                apiVersion: v1
                kind: ConfigMap
                metadata: {name: a}
                ---
                apiVersion: v1
                kind: ConfigMap
                metadata: {name: b}
                ",
            ),
            (
                "b.yaml",
                "
                apiVersion: v1
                kind: ConfigMap
                metadata: {name: a}
                ",
            ),
        ],
        "
        a.yaml:1:1: error: ConfigMap default/a is defined twice: here and at b.yaml:1
          hint: remove one of the two: neither is applied
        b.yaml:1:1: error: ConfigMap default/a is defined twice: here and at a.yaml:1
          hint: remove one of the two: neither is applied
        ConfigMap default/b
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at b.yaml:1
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:1
        ",
    );
}

#[test]
fn by_the_default_namespace() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a, namespace: default}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a, namespace: ""}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a, namespace: shop}
        "#,
        "
        a.yaml:1:1: error: ConfigMap default/a is defined 3 times: here and at a.yaml:5 and at a.yaml:9
          hint: remove all but one: none is applied
        a.yaml:5:1: error: ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:9
          hint: remove all but one: none is applied
        a.yaml:9:1: error: ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:5
          hint: remove all but one: none is applied
        ConfigMap shop/a
        held: ConfigMap default/a, ConfigMap default/a is defined 3 times: here and at a.yaml:5 and at a.yaml:9
        held: ConfigMap default/a, ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:9
        held: ConfigMap default/a, ConfigMap default/a is defined 3 times: here and at a.yaml:1 and at a.yaml:5
        ",
    );
}

#[test]
fn by_two_versions_of_a_group() {
    check(
        "
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: a}
        ---
        apiVersion: apps/v1beta1
        kind: Deployment
        metadata: {name: a}
        ",
        "
        a.yaml:1:1: error: Deployment default/a is defined twice: here and at a.yaml:5
          hint: remove one of the two: neither is applied
        a.yaml:5:1: error: Deployment default/a is defined twice: here and at a.yaml:1
          hint: remove one of the two: neither is applied
        held: Deployment default/a, Deployment default/a is defined twice: here and at a.yaml:5
        held: Deployment default/a, Deployment default/a is defined twice: here and at a.yaml:1
        ",
    );
}

#[test]
fn not_by_kinds_of_two_groups() {
    check(
        "
        apiVersion: v1
        kind: Event
        metadata: {name: a}
        ---
        apiVersion: events.k8s.io/v1
        kind: Event
        metadata: {name: a}
        ",
        "
        Event default/a
        Event default/a
        ",
    );
}

#[test]
fn by_the_namespace_of_what_lives_in_none() {
    check(
        "
        apiVersion: v1
        kind: Namespace
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: Namespace
        metadata: {name: a, namespace: b}
        ",
        r#"
        a.yaml:1:1: error: Namespace a is defined twice: here and at a.yaml:5
          hint: remove one of the two: neither is applied
        a.yaml:5:1: warning: Namespace a lives in no namespace: "b" is left out
          hint: remove metadata.namespace
        a.yaml:5:1: error: Namespace a is defined twice: here and at a.yaml:1
          hint: remove one of the two: neither is applied
        held: Namespace a, Namespace a is defined twice: here and at a.yaml:5
        held: Namespace a, Namespace a is defined twice: here and at a.yaml:1
        "#,
    );
}

#[test]
fn not_by_an_unknown_kind_with_and_without_a_namespace() {
    check(
        "
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a}
        ---
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a, namespace: default}
        ",
        "
        T a
        T default/a
        ",
    );
}

#[test]
fn also_where_one_is_invalid() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data: {a: 1}
        ",
        r#"
        a.yaml:1:1: error: ConfigMap default/a is defined twice: here and at a.yaml:5
          hint: remove one of the two: neither is applied
        a.yaml:5:1: error: ConfigMap default/a is defined twice: here and at a.yaml:1
          hint: remove one of the two: neither is applied
        a.yaml:8:11: error: data: the value of "a" must be text, and this is a number
          hint: put it in quotes
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:5
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:1
        "#,
    );
}

#[test]
fn not_where_one_has_no_name() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {}
        ",
        "
        a.yaml:7:11: error: metadata.name is missing
          hint: every object has a name: write `name:` below `metadata:`
        ConfigMap default/a
        not understood
        ",
    );
}
