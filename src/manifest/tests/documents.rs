//! Documents: which are objects, which are nothing, and which are refused by name.

use super::check;

#[test]
fn documents_without_content_are_nothing() {
    check("", "");
    check(
        "

        ",
        "",
    );
    check(
        "
        # a
        ---
        # b
        ",
        "",
    );
    check(
        "
        ---
        ---
        ",
        "",
    );
    check(
        "
        null
        ---
        ~
        ",
        "",
    );
    check(
        "
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        ",
        "
        ConfigMap default/a
        ",
    );
}

#[test]
fn a_document_is_a_mapping() {
    check(
        "
        text
        ",
        "
        a.yaml:1:1: error: a document must be a mapping with apiVersion and kind
          hint: list files that are no Kubernetes objects in .rhumbignore
        not understood
        ",
    );
    check(
        "
        - a
        ",
        "
        a.yaml:1:1: error: a document must be a mapping with apiVersion and kind
          hint: list files that are no Kubernetes objects in .rhumbignore
        not understood
        ",
    );
    check(
        "
        12
        ",
        "
        a.yaml:1:1: error: a document must be a mapping with apiVersion and kind
          hint: list files that are no Kubernetes objects in .rhumbignore
        not understood
        ",
    );
    check(
        "
        []
        ",
        "
        a.yaml:1:1: error: a document must be a mapping with apiVersion and kind
          hint: list files that are no Kubernetes objects in .rhumbignore
        not understood
        ",
    );
}

#[test]
fn a_document_has_an_apiversion_and_a_kind() {
    check(
        "
        replicaCount: 1
        image: {repository: web}
        ",
        "
        a.yaml:1:1: error: apiVersion and kind are missing: this is no Kubernetes object
          hint: add both, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
    check(
        "
        kind: ConfigMap
        metadata: {name: a}
        ",
        "
        a.yaml:1:1: error: apiVersion is missing: this is no Kubernetes object
          hint: add it, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        metadata: {name: a}
        ",
        "
        a.yaml:1:1: error: kind is missing: this is no Kubernetes object
          hint: add it, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
    check(
        r#"
        apiVersion: ""
        kind: ""
        metadata: {name: a}
        "#,
        "
        a.yaml:1:1: error: apiVersion and kind are missing: this is no Kubernetes object
          hint: add both, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
    check(
        "
        {}
        ",
        "
        a.yaml:1:1: error: apiVersion and kind are missing: this is no Kubernetes object
          hint: add both, or list the file in .rhumbignore if it is not meant for the cluster
        not understood
        ",
    );
}

#[test]
fn apiversion_and_kind_are_text() {
    check(
        "
        apiVersion: v1
        kind: [ConfigMap]
        metadata: {name: a}
        ",
        "
        a.yaml:2:7: error: kind must be text
        not understood
        ",
    );
    check(
        "
        apiVersion: 1
        kind: ConfigMap
        metadata: {name: a}
        ",
        "
        a.yaml:1:13: error: apiVersion must be text
          hint: put it in quotes
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: true
        metadata: {name: a}
        ",
        "
        a.yaml:2:7: error: kind must be text
          hint: put it in quotes
        not understood
        ",
    );
}

#[test]
fn an_apiversion_is_a_version_perhaps_of_a_group() {
    check(
        "
        apiVersion: a/b/c
        kind: T
        metadata: {name: a}
        ",
        "
        a.yaml:1:13: error: apiVersion must be `version` or `group/version`
        not understood
        ",
    );
    check(
        "
        apiVersion: /v1
        kind: T
        metadata: {name: a}
        ",
        "
        a.yaml:1:13: error: apiVersion must be `version` or `group/version`
        held: T a, its manifest has an error
        not understood
        ",
    );
    check(
        "
        apiVersion: apps/
        kind: T
        metadata: {name: a}
        ",
        "
        a.yaml:1:13: error: apiVersion must be `version` or `group/version`
        held: T a, its manifest has an error
        not understood
        ",
    );
}

#[test]
fn input_of_kustomize_and_helm_is_refused_by_name() {
    check(
        "
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        resources: [a.yaml]
        ",
        "
        a.yaml:2:7: error: a kustomization is input for kustomize, no object of a cluster
          hint: render it with `kustomize build` and follow the result, or list the file in .rhumbignore
        not understood
        ",
    );
    check(
        "
        resources:
        - a.yaml
        ",
        "
        a.yaml:1:1: error: apiVersion and kind are missing: this is no Kubernetes object
          hint: this looks like a kustomization: render it with `kustomize build` and follow the result, or list the file in .rhumbignore
        not understood
        ",
    );
    check(
        "
        namePrefix: a-
        ",
        "
        a.yaml:1:1: error: apiVersion and kind are missing: this is no Kubernetes object
          hint: this looks like a kustomization: render it with `kustomize build` and follow the result, or list the file in .rhumbignore
        not understood
        ",
    );
    check(
        "
        apiVersion: v2
        name: web
        version: 1.0.0
        ",
        "
        a.yaml:1:1: error: kind is missing: this is no Kubernetes object
          hint: this looks like a Helm chart: render it with `helm template` and follow the result, or list the file in .rhumbignore
        not understood
        ",
    );
}

#[test]
fn what_stands_for_something_else_is_refused_by_name() {
    check(
        r#"
        apiVersion: v1
        kind: Secret
        metadata: {name: a}
        stringData: {p: "ENC[AES256_GCM,data:x]"}
        sops: {mac: x}
        "#,
        "
        a.yaml:5:7: error: this Secret is encrypted by SOPS: applied as it is, it would carry ciphertext
          hint: give rhumb an age identity that opens it: `LoadCredential=sops-age:FILE` for the service, SOPS_AGE_KEY_FILE for a command
        held: Secret default/a, its manifest has an error
        ",
    );
    check(
        "
        version https://git-lfs.github.com/spec/v1
        oid sha256:4d7a
        size 12
        ",
        "
        a.yaml:1:1: error: this is a Git LFS pointer, not the file itself
          hint: store manifests in git itself: take the file out of LFS, or list it in .rhumbignore
        not understood
        ",
    );
}

#[test]
fn objects_of_like_kinds_are_none_of_these() {
    check(
        "
        apiVersion: kustomize.toolkit.fluxcd.io/v1
        kind: Kustomization
        metadata: {name: a}
        ",
        "
        Kustomization a
        ",
    );
    check(
        "
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a}
        sops: text
        resources: [a]
        ",
        "
        T a
        ",
    );
    // An operator opens it in the cluster.
    check(
        r#"
        apiVersion: isindir.github.com/v1alpha3
        kind: SopsSecret
        metadata: {name: a}
        spec: {secretTemplates: [{name: b, stringData: {p: "ENC[AES256_GCM,data:x]"}}]}
        sops: {mac: x}
        "#,
        "
        SopsSecret a
        ",
    );
}

#[test]
fn templates_are_recognised() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: {{ .Release.Name }}
        ",
        "
        a.yaml:4:10: error: a list or mapping cannot be a key
          hint: `{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore
        not understood
        ",
    );
    check(
        "
        {{- if .Values.web }}
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        {{- end }}
        ",
        "
        a.yaml:1:3: error: this is not YAML: expected a value, found `-`
          hint: `{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore
        not understood
        ",
    );
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: "{{ .Release.Name }}"
          namespace: "{{ .Release.Namespace }}"
          labels: {app: "{{ .Chart.Name }}", tier: web}
        "#,
        r#"
        a.yaml:4:9: error: "{{ .Release.Name }}" cannot name a ConfigMap: a name here has at most 253 characters: lower-case letters, digits, `-` and `.`, and begins and ends with a letter or digit
          hint: `{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore
        a.yaml:5:14: error: "{{ .Release.Namespace }}" cannot name a namespace: a name here has at most 63 characters: lower-case letters, digits and `-`, and begins and ends with a letter or digit
          hint: `{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore
        a.yaml:6:17: error: label "app": the value of a label has at most 63 characters: letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit
          hint: `{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore
        held: ConfigMap {{ .Release.Namespace }}/{{ .Release.Name }}, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: web-${ENV}
        ",
        r#"
        a.yaml:4:9: error: "web-${ENV}" cannot name a ConfigMap: a name here has at most 253 characters: lower-case letters, digits, `-` and `.`, and begins and ends with a letter or digit
          hint: `${` looks like a variable: name its value under `substitute` of the source
        held: ConfigMap default/web-${ENV}, its manifest has an error
        "#,
    );
}

#[test]
fn unresolved_merges_are_recognised() {
    check(
        r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        <<<<<<< HEAD
        data: {a: "1"}
        =======
        data: {a: "2"}
        >>>>>>> other
        "#,
        "
        a.yaml:4:1: error: this is not YAML: a key without a `:` after it
          hint: the file has the marks of an unresolved git merge
        not understood
        ",
    );
}

#[test]
fn a_document_that_does_not_parse_leaves_the_others() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: b
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: c}
        ",
        "
        a.yaml:7:11: error: this is not YAML: `{` is never closed by `}`
        ConfigMap default/a
        ConfigMap default/c
        not understood
        ",
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        --- text
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: b}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: c}
        ",
        "
        a.yaml:4:4: error: Kubernetes reads only blanks or a comment after the `---` that separates two documents
          hint: put what follows `---` on a line of its own
        ConfigMap default/c
        not understood
        ",
    );
}

#[test]
fn text_behind_the_end_of_a_document_is_not_read() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ...
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: b}
        ",
        "
        a.yaml:5:1: warning: Kubernetes stops reading before this: the document ended, and no `---` begins another
          hint: separate documents by a line of `---`, or remove the text
        ConfigMap default/a
        not understood
        ",
    );
}

#[test]
fn a_key_that_is_given_twice_is_an_error() {
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        data:
          a: x
          b: x
          a: z
        ",
        r#"
        a.yaml:7:3: error: key "a" is given twice in this mapping: first in line 5, again in line 7
          hint: remove one of the two: kubectl would silently use the later
        held: ConfigMap default/a, its manifest has an error
        "#,
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          name: b
        ",
        r#"
        a.yaml:5:3: error: key "name" is given twice in this mapping: first in line 4, again in line 5
          hint: remove one of the two: kubectl would silently use the later
        held: ConfigMap default/b, its manifest has an error
        not understood
        "#,
    );
    check(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        kind: Secret
        ",
        r#"
        a.yaml:4:1: error: key "kind" is given twice in this mapping: first in line 2, again in line 4
          hint: remove one of the two: kubectl would silently use the later
        held: Secret default/a, its manifest has an error
        not understood
        "#,
    );
}

#[test]
fn what_other_readers_read_otherwise_is_warned_of() {
    check(
        "
        apiVersion: example.org/v1
        kind: T
        metadata: {name: a}
        spec: {a: yes, no: b, mode: 0644, b: 0644, c: 08, d: !x y}
        ",
        "
        a.yaml:4:11: warning: an unquoted yes, no, on, off, y or n is a boolean here: `yes` is read as true
          hint: write true or false, or quote it: other readers, kustomize among them, take it for text
        a.yaml:4:16: warning: an unquoted yes, no, on, off, y or n is a boolean here: `no` is read as false
          hint: write true or false, or quote it: other readers, kustomize among them, take it for text
        a.yaml:4:38: warning: a leading zero makes this number octal: `0644` is read as 420
          hint: quote it if text is meant, or write the number in decimal
        a.yaml:4:47: warning: a number with a leading zero that is not octal: `08` is read as 8
          hint: quote it if text is meant
        a.yaml:4:57: warning: a word that begins with `!` is a tag, which Kubernetes drops: the value is what follows it
          hint: put a text that begins with `!` in quotes
        T a
        ",
    );
}
