//! Every deviation from kubectl's reading.
//!
//! Where kubectl says nothing, it has read the file without a word. The result may be refused
//! later, by the API server, or lost in silence. `@a` and `{@a}` stand for objects, as in the
//! streams.

/// Files that kubectl reads without a word: its documents, those that are shown here, and the only
/// error that is reported here.
pub(crate) const STRICTER: &[(&str, &[&str], &[&str], &str)] = &[
    // The later of two keys wins in silence; of `1` and `'1'` either, by chance.
    ("@a\nb: 1\nb: 2\n", &[r#"a {"b":2}"#], &[r#"a {"b":2}"#], "duplicate-key"),
    // No API server serves them.
    ("kind: T\nmetadata: {name: a}\n", &["T a"], &[], "no-kind"),
    ("apiVersion: \"\"\nkind: T\nmetadata: {name: a}\n", &["T a"], &[], "no-kind"),
    ("apiVersion: /v1\nkind: T\nmetadata: {name: a}\n", &["v1 T a"], &["a"], "bad-api-version"),
    ("apiVersion: v1/\nkind: T\nmetadata: {name: a}\n", &["v1 T a"], &[" T a"], "bad-api-version"),
    ("apiVersion: v1\nkind: List\n", &["v1 List"], &[], "bad-list"),
    ("apiVersion: v1\nkind: List\nmetadata: {name: a}\n", &["v1 List a"], &[], "bad-list"),
    // They could not be found again.
    ("apiVersion: v1\nkind: T\n", &[""], &[""], "no-name"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: \"\"}\n", &[""], &[""], "no-name"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: ~}\n", &[""], &[""], "no-name"),
    ("apiVersion: v1\nkind: TList\nitems: [{}]\n", &[""], &[""], "no-name"),
    ("apiVersion: v1\nkind: T\nmetadata: {generateName: a-}\n", &[""], &[""], "generate-name"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, generateName: a-}\n", &["a"], &["a"], "generate-name"),
    // The API server refuses them.
    ("apiVersion: v1\nkind: T\nmetadata: {name: A}\n", &["A"], &["A"], "bad-name"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, namespace: B}\n", &["a"], &["a"], "bad-namespace"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, labels: {-b: x}}\n", &["a"], &["a"], "bad-key"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, labels: {b: -x}}\n", &["a"], &["a"], "bad-label"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, annotations: {-b: x}}\n", &["a"], &["a"], "bad-key"),
    (
        "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: T, metadata: {name: a, labels: {b: 1}}}]\n",
        &["a"],
        &["a"],
        "not-text",
    ),
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: 1}\n",
        &[r#"v1 ConfigMap a {"data":{"b":1}}"#],
        &[r#"v1 ConfigMap a {"data":{"b":1}}"#],
        "not-text",
    ),
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: b\n",
        &[r#"v1 ConfigMap a {"data":"b"}"#],
        &[r#"v1 ConfigMap a {"data":"b"}"#],
        "wrong-type",
    ),
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b c: x}\n",
        &[r#"v1 ConfigMap a {"data":{"b c":"x"}}"#],
        &[r#"v1 ConfigMap a {"data":{"b c":"x"}}"#],
        "bad-key",
    ),
    (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeSelector: {b: 1}}\n",
        &[r#"v1 Pod a {"spec":{"nodeSelector":{"b":1}}}"#],
        &[r#"v1 Pod a {"spec":{"nodeSelector":{"b":1}}}"#],
        "not-text",
    ),
    // They are meant for another program.
    ("@a\nsops: {mac: x}\n", &[r#"a {"sops":{"mac":"x"}}"#], &[r#"a {"sops":{"mac":"x"}}"#], "sops"),
    (
        "apiVersion: kustomize.config.k8s.io/v1\nkind: T\nmetadata: {name: a}\n",
        &["v1 T a"],
        &["a"],
        "kustomization",
    ),
];

/// Files that are read as kubectl reads them, with a warning that it does not give.
pub(crate) const WARNED_OF: &[(&str, &[&str], &str)] = &[
    ("@a\nb: on\n", &[r#"a {"b":true}"#], "old-boolean"),
    ("@a\nb: 010\n", &[r#"a {"b":8}"#], "leading-zero"),
    ("@a\nb: !b x\n", &[r#"a {"b":"x"}"#], "unknown-tag"),
    ("@a\n...\n@b\n", &["a"], "unread"),
    ("@a\nstatus: {b: 1}\n", &[r#"a {"status":{"b":1}}"#], "server-set"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, uid: x}\n", &["a"], "server-set"),
    ("apiVersion: v1\nkind: T\nmetadata: {name: a, ownerReferences: [{}]}\n", &["a"], "owner-references"),
    ("apiVersion: v1\nkind: List\nmetadata: {namespace: b}\nitems: [{@a}]\n", &["a"], "list-metadata"),
    ("apiVersion: v1\nkind: Service\nmetadata: {name: 0a}\n", &["v1 Service 0a"], "service-name"),
];

/// Files of which more is read here than kubectl reads: what is shown, and the error if there is
/// one. A list is taken apart as far as it goes: its other items are not to blame. An object of
/// another kind with `items` is no list: of it kubectl would keep nothing but the items.
pub(crate) const FURTHER: &[(&str, &[&str], Option<&str>)] = &[
    (
        "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{@a}]}, {@b}]\n",
        &["b", "a"],
        None,
    ),
    ("apiVersion: v1\nkind: List\nitems: [x, {@a}]\n", &["a"], Some("not-an-object")),
    ("@a\nitems: []\n", &[r#"a {"items":[]}"#], Some("bad-list")),
    ("@a\nitems: ~\n", &[r#"a {"items":null}"#], Some("bad-list")),
];

/// A bound that kubectl does not have, or has far above it.
pub(crate) struct Limit {
    /// The counted thing.
    pub(crate) what: &'static str,
    /// Makes a file with so many.
    pub(crate) make: fn(usize) -> String,
    /// The number that is read.
    pub(crate) most: usize,
    /// The code of the finding for one more.
    pub(crate) code: &'static str,
}

const HEAD: &str = "apiVersion: v1\nkind: T\nmetadata: {name: a}\n";
const JSON: &str = r#"{"apiVersion": "v1", "kind": "T", "metadata": {"name": "a"}, "m": "#;

/// All of them. kubectl reads one more of each without a word.
pub(crate) const LIMITS: &[Limit] = &[
    Limit {
        what: "levels of nesting",
        make: |most| format!("{HEAD}m: {}{}\n", "[".repeat(most - 1), "]".repeat(most - 1)),
        most: 1024,
        code: "too-deep",
    },
    Limit {
        what: "levels of nesting in JSON",
        make: |most| format!("{JSON}{}{}}}\n", "[".repeat(most - 1), "]".repeat(most - 1)),
        most: 1024,
        code: "too-deep",
    },
    Limit {
        what: "values, of which the rest of the object is eleven",
        make: |most| format!("{HEAD}m: [{}]\n", "1,".repeat(most - 11)),
        most: 500_000,
        code: "too-many-values",
    },
    Limit {
        what: "mappings, of which the rest of the object is two",
        make: |most| format!("{HEAD}m: [{}]\n", "{},".repeat(most - 2)),
        most: 55_000,
        code: "too-many-values",
    },
    Limit {
        what: "mappings in several documents",
        make: |most| format!("{HEAD}m: [{}]\n---\n{HEAD}", "{},".repeat(most - 4)),
        most: 55_000,
        code: "too-many-values",
    },
    Limit {
        what: "lines",
        make: |most| HEAD.to_owned() + &"\n".repeat(most - 3),
        most: 1_000_000,
        code: "too-many-lines",
    },
    Limit {
        what: "documents",
        make: |most| HEAD.to_owned() + &"---\n~\n".repeat(most - 1),
        most: 100_000,
        code: "too-many-documents",
    },
    Limit {
        what: "objects",
        make: |most| {
            format!("apiVersion: v1\nkind: TList\nitems:\n{}", "- {metadata: {name: a}}\n".repeat(most))
        },
        most: 20_000,
        code: "too-many-objects",
    },
    Limit {
        what: "bytes of a text",
        make: |most| format!("{HEAD}m: {}\n", "x".repeat(most)),
        most: 4 << 20,
        code: "too-long",
    },
    Limit {
        what: "bytes of a text in JSON",
        make: |most| format!("{JSON}\"{}\"}}\n", "x".repeat(most)),
        most: 4 << 20,
        code: "too-long",
    },
    Limit {
        what: "bytes of a number in JSON",
        make: |most| format!("{JSON}0.{}}}\n", "1".repeat(most - 2)),
        most: 4 << 20,
        code: "too-long",
    },
    Limit {
        what: "aliases of a text of 1 MiB",
        make: |most| format!("{HEAD}m: &m {}\nl: [{}]\n", "x".repeat(1 << 20), "*m,".repeat(most)),
        most: 7,
        code: "alias-bomb",
    },
    Limit {
        what: "aliases of a text of 1 MiB in several documents",
        make: |most| {
            let document =
                |aliases| format!("{HEAD}m: &m {}\nl: [{}]\n", "x".repeat(1 << 20), "*m,".repeat(aliases));
            [document(3), document(most - 3)].join("---\n")
        },
        most: 7,
        code: "alias-bomb",
    },
    Limit {
        what: "bytes of annotations",
        make: |most| {
            format!(
                "apiVersion: v1\nkind: T\nmetadata:\n  name: a\n  annotations: {{b: {}}}\n",
                "x".repeat(most - 1)
            )
        },
        most: 256 << 10,
        code: "annotations-too-large",
    },
];
