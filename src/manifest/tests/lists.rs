//! Lists: any kind that ends in `List` and has `items` stands for its items.

use super::check;

#[test]
fn a_list_stands_for_its_items() {
    check(
        "
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: a}
        - apiVersion: apps/v1
          kind: Deployment
          metadata: {name: b, namespace: shop}
        ",
        "
        ConfigMap default/a
        Deployment shop/b
        ",
    );
    check(
        "
        kind: List
        items:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        ",
        "
        ConfigMap default/a
        ",
    );
    check(
        r#"
        {"apiVersion": "v1", "kind": "List", "items": [
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        ]}
        "#,
        "
        ConfigMap default/a
        ",
    );
}

#[test]
fn a_list_of_one_kind_gives_it_to_items_that_name_none() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMapList
        metadata: {resourceVersion: "12", selfLink: /api}
        items:
        - metadata: {name: a}
        - {apiVersion: v1, kind: Secret, metadata: {name: b}}
        "#,
        "
        ConfigMap default/a
        Secret default/b
        ",
    );
    check(
        "
        apiVersion: example.org/v1
        kind: FooList
        items:
        - metadata: {name: a, namespace: shop}
        ",
        "
        Foo shop/a
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMapList
        items:
        - apiVersion: v1
          metadata: {name: a}
        ",
        "
        a.yaml:4:3: error: kind is missing: this is no Kubernetes object
          hint: add it, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: List
        items:
        - metadata: {name: a}
        ",
        "
        a.yaml:4:3: error: apiVersion and kind are missing: this is no Kubernetes object
          hint: add both, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
}

#[test]
fn lists_in_lists_are_flattened() {
    check(
        "
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: List
          items:
          - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
        ",
        "
        ConfigMap default/b
        ConfigMap default/a
        ",
    );
    check(
        "
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: ConfigMapList
          items:
          - metadata: {name: a}
          - apiVersion: v1
            kind: SecretList
            items: [{metadata: {name: b}}]
        ",
        "
        ConfigMap default/a
        Secret default/b
        ",
    );
}

#[test]
fn an_empty_list_is_nothing() {
    check(
        "
        apiVersion: v1
        kind: List
        items: []
        ",
        "",
    );
    check(
        "
        apiVersion: v1
        kind: List
        items:
        ",
        "",
    );
    check(
        "
        apiVersion: v1
        kind: List
        items: null
        ",
        "",
    );
}

#[test]
fn items_that_are_none_are_refused() {
    check(
        "
        apiVersion: v1
        kind: List
        items: {name: a}
        ",
        "
        a.yaml:3:8: error: the items of a list must be a list
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: List
        items: a
        ",
        "
        a.yaml:3:8: error: the items of a list must be a list
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: List
        items:
        -
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        - text
        - 1
        - []
        ",
        "
        a.yaml:4:1: error: an item of a list must be a mapping
        a.yaml:6:3: error: an item of a list must be a mapping
        a.yaml:7:3: error: an item of a list must be a mapping
        a.yaml:8:3: error: an item of a list must be a mapping
        ConfigMap default/a
        not understood
        ",
    );
}

#[test]
fn without_items_a_kind_that_ends_in_list_is_an_object() {
    check(
        "
        apiVersion: example.org/v1
        kind: AllowList
        metadata: {name: a}
        spec: {items: []}
        ",
        "
        AllowList a
        ",
    );
    check(
        "
        apiVersion: v1
        kind: List
        metadata: {name: a}
        ",
        "
        a.yaml:1:1: error: a List without items lists nothing
          hint: put the objects below `items:`
        not understood
        ",
    );
}

#[test]
fn an_item_without_a_name_may_be_no_object_at_all() {
    check(
        "
        apiVersion: example.org/v1
        kind: PriceList
        metadata: {name: prices}
        items:
        - price: 1
        ",
        "
        a.yaml:5:3: error: metadata.name is missing
          hint: this is an item of a kind that ends in `List`: Kubernetes reads those that have `items` as lists of objects
        not understood
        ",
    );
}

#[test]
fn the_metadata_of_a_list_is_not_that_of_its_items() {
    check(
        "
        apiVersion: v1
        kind: List
        metadata:
          name: a
          namespace: shop
          labels: {app: web}
          annotations: {}
        items:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        ",
        "
        a.yaml:5:3: warning: metadata.namespace of a list reaches none of its items: it is left out
          hint: write it into each item
        a.yaml:6:3: warning: metadata.labels of a list reaches none of its items: it is left out
          hint: write it into each item
        ConfigMap default/a
        ",
    );
}

#[test]
fn an_item_that_is_invalid_holds_back_only_itself() {
    check(
        "
        apiVersion: v1
        kind: ConfigMapList
        items:
        - metadata: {name: a}
        - metadata: {name: B}
        - metadata: {name: c}
        ",
        r#"
        a.yaml:5:20: error: "B" cannot name a ConfigMap: a name here has at most 253 characters: lower-case letters, digits, `-` and `.`, and begins and ends with a letter or digit
          hint: a name that fits: b
        ConfigMap default/a
        ConfigMap default/c
        held: ConfigMap default/B, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: v1
        kind: List
        items:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        - {apiVersion: 1, kind: ConfigMap, metadata: {name: b}}
        - {kind: ConfigMap, metadata: {name: c}}
        ",
        "
        a.yaml:5:16: error: apiVersion must be text
          hint: put it in quotes
        a.yaml:6:3: error: apiVersion is missing: this is no Kubernetes object
          hint: add it, or list the file in .rhumbignore if it is not meant for the cluster
        ConfigMap default/a
        not understood
        ",
    );
}

#[test]
fn an_object_may_be_defined_twice_in_a_list() {
    check(
        "
        apiVersion: v1
        kind: ConfigMapList
        items:
        - metadata: {name: a}
        - metadata: {name: a, namespace: default}
        ",
        "
        a.yaml:4:3: error: ConfigMap default/a is defined twice: here and at a.yaml:5
          hint: remove one of the two: neither is applied
        a.yaml:5:3: error: ConfigMap default/a is defined twice: here and at a.yaml:4
          hint: remove one of the two: neither is applied
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:5
        held: ConfigMap default/a, ConfigMap default/a is defined twice: here and at a.yaml:4
        ",
    );
}

#[test]
fn items_belong_to_lists() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        items:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
        ",
        "
        a.yaml:4:1: error: Kubernetes takes what has `items` for a list, and the kind of a list ends in `List`
          hint: correct the kind, or move `items` to where it belongs
        held: ConfigMap default/a, its manifest has an error
        ",
    );
}

#[test]
fn the_apiversion_of_a_list_is_text() {
    check(
        "
        apiVersion: 1
        kind: ConfigMapList
        items:
        - metadata: {name: a}
        ",
        "
        a.yaml:1:13: error: apiVersion must be `version` or `group/version`
        not understood
        ",
    );
}
