//! Encrypted files that a generator or a patch reads: what is made of them, and what is refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

/// The rule under which only the data of a Secret is encrypted.
const DATA: &str = "    encrypted_regex: ^(data|stringData)$\n";

impl Workshop {
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Encrypts a file under a name that does not show its format.
    pub(super) fn encrypt_as(&self, name: &str, plain: &str, format: &str) {
        self.write(name, plain);
        let arguments = ["encrypt", "--in-place", "--input-type", format, "--output-type", format];
        let rules = format!("creation_rules:\n  - age: {}\n", self.recipient);
        fs::write(self.path(".sops.yaml"), rules).unwrap();
        let done = self.sops(&[arguments.as_slice(), &[name]].concat());
        assert!(done.status.success(), "{done:?}");
    }

    /// Writes a root whose kustomization and other plain files are these.
    pub(super) fn root(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.write(&format!("app/{name}"), text);
        }
    }

    /// Returns the objects that a root gives, in the open.
    fn objects(&self) -> Vec<Value> {
        let (succeeds, shown) = self.rhumb(&["render", "app", "--show-secrets", "-o", "json"]);
        assert!(succeeds, "{shown}");
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["objects"].as_array().unwrap().clone()
    }

    /// Returns the objects that kustomize makes of the decrypted files.
    fn built(&self, decrypted: &[(&str, &str)]) -> Vec<Value> {
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(self.path("app")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        for (name, text) in decrypted {
            fs::write(copy.path().join(name), text).unwrap();
        }
        let kustomize = Renderers::find().unwrap().kustomize;
        let output = Command::new(kustomize).arg("build").arg(copy.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split("\n---\n").map(|part| serde_yaml::from_str(part).unwrap()).collect()
    }

    /// Fails where a run left anything in memory.
    pub(super) fn check_nothing_left(&self) {
        let left: Vec<_> =
            fs::read_dir(self.runtime.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Checks that a root is refused, and that nothing shows the encrypted text.
    #[track_caller]
    fn check_refused(&self, expected: &str) {
        for arguments in [&["validate", "app"][..], &["render", "app", "--show-secrets"]] {
            let (succeeds, said) = self.rhumb(arguments);
            assert!(!succeeds && said.contains(expected), "{expected}: {said}");
            assert!(!said.contains(CANARY) && !said.contains(&STANDARD.encode(CANARY)), "{said}");
        }
    }
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(ToString::to_string);
    objects
}

#[test]
fn generators_get_files_as_they_were_before_they_were_encrypted() {
    let workshop = Workshop::new();
    let env = format!("USER=shop\nPASSWORD={CANARY}\n");
    let yaml = format!("db:\n    password: {CANARY}\n    port: 5432\n    tls: true\n");
    let text = format!("first\n{CANARY}\n");
    let auths = format!(
        "{{\n\t\"auths\": {{\n\t\t\"r.example.org\": {{\n\t\t\t\"auth\": \"{CANARY}\"\n\t\t}}\n\t}}\n}}\n"
    );
    workshop.root(&[
        (
            "kustomization.yaml",
            "secretGenerator:\n\
         - {name: envs, envs: [db.env, other.env.enc]}\n\
         - {name: env, env: db.env}\n\
         - {name: files, files: [values.yaml, renamed=notes.txt, plain.txt]}\n\
         - {name: registry, type: kubernetes.io/dockerconfigjson, files: [.dockerconfigjson]}\n\
         configMapGenerator: [{name: plain, files: [plain.txt]}]\n",
        ),
        ("plain.txt", "hello\n"),
    ]);
    workshop.encrypt_as("app/db.env", &env, "dotenv");
    workshop.encrypt_as("app/other.env.enc", "TOKEN=another-canary\n", "dotenv");
    workshop.encrypt_as("app/values.yaml", &yaml, "yaml");
    workshop.encrypt_as("app/notes.txt", &text, "binary");
    workshop.encrypt_as("app/.dockerconfigjson", &auths, "json");
    let decrypted = [
        ("db.env", &*env),
        ("other.env.enc", "TOKEN=another-canary\n"),
        ("values.yaml", &yaml),
        ("notes.txt", &text),
        (".dockerconfigjson", &auths),
    ];
    let (found, expected) = (sorted(workshop.objects()), sorted(workshop.built(&decrypted)));
    assert_eq!(found, expected);
    let data: Vec<&Value> = found.iter().map(|object| &object["data"]).collect();
    assert!(data.contains(&&json!({"USER": STANDARD.encode("shop"), "PASSWORD": STANDARD.encode(CANARY), "TOKEN": STANDARD.encode("another-canary")})));

    let (succeeds, masked) = workshop.rhumb(&["render", "app"]);
    assert!(succeeds && masked.contains("kind: Secret") && masked.contains("hello"), "{masked}");
    assert!(!masked.contains(CANARY) && !masked.contains(&STANDARD.encode(CANARY)), "{masked}");
    assert!(workshop.rhumb(&["validate", "app"]).0);
    fs::rename(workshop.path("key.txt"), workshop.path("lost.txt")).unwrap();
    let (succeeds, said) = workshop.rhumb(&["validate", "app"]);
    assert!(!succeeds && said.contains("this file is encrypted by SOPS, and cannot be opened"), "{said}");
    workshop.check_nothing_left();
}

#[test]
fn a_patch_gives_its_values_to_secrets() {
    let workshop = Workshop::new();
    let patch = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n    name: db\nstringData:\n    password: {CANARY}\n"
    );
    let json_patch = format!("- op: add\n  path: /stringData/token\n  value: {CANARY}\n");
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {user: shop}}\n";
    workshop.root(&[("kustomization.yaml", "resources: [secret.yaml, sealed.yaml]\npatches:\n- path: patch.yaml\n- {path: patch.enc, target: {kind: Secret, name: db}}\n"), ("secret.yaml", secret)]);
    assert!({
        workshop.write("app/patch.yaml", "");
        workshop.encrypt("app/patch.yaml", patch.as_bytes(), DATA)
    });
    workshop.encrypt_as("app/patch.enc", &json_patch, "binary");
    let sealed = "apiVersion: v1\nkind: Secret\nmetadata:\n    name: sealed\nstringData:\n    a: one\n";
    assert!(workshop.encrypt("app/sealed.yaml", sealed.as_bytes(), DATA));
    let decrypted = [("patch.yaml", &*patch), ("patch.enc", &json_patch), ("sealed.yaml", sealed)];
    assert_eq!(sorted(workshop.objects()), sorted(workshop.built(&decrypted)));
    let (_, masked) = workshop.rhumb(&["render", "app"]);
    assert!(!masked.contains(CANARY), "{masked}");

    // One value of a Secret comes from its own file, and another one from the patch.
    // A process that was killed left it behind.
    fs::create_dir(workshop.runtime.path().join("rhumb-open-left")).unwrap();
    workshop.root(&[(
        "kustomization.yaml",
        "resources: [sealed.yaml]\npatches: [{path: patch.yaml, target: {kind: Secret}}]\n",
    )]);
    let objects = workshop.objects();
    assert_eq!(objects[0]["stringData"], json!({"a": "one", "password": CANARY}));
    workshop.check_nothing_left();
}

#[test]
fn an_opened_value_beside_the_data_of_secrets_refuses_the_root() {
    let workshop = Workshop::new();
    workshop.encrypt_as_root();
    let generator = "secretGenerator: [{name: db, envs: [db.env], options: {disableNameSuffixHash: true}}]\n";
    let replacement = |target: &str, path: &str| {
        format!(
            "{generator}resources: [map.yaml]\nreplacements:\n- source: {{kind: Secret, name: db, fieldPath: data.PASSWORD}}\n  \
             targets: [{{select: {{kind: {target}}}, fieldPaths: [{path}], options: {{create: true}}}}]\n"
        )
    };
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shown}, data: {a: b}}\n";
    for (kustomization, expected) in [
        (replacement("ConfigMap", "data.a"), "app/kustomization.yaml: error: ConfigMap shown would show a value that is encrypted in db.env, at data.a"),
        (replacement("Secret", "metadata.annotations.token"), "Secret db would show a value that is encrypted in db.env, at metadata.annotations.token"),
        ("secretGenerator: [{name: db, envs: [db.env]}]\npatches: [{path: patch.yaml}]\nresources: [map.yaml]\n".to_owned(), "app/patch.yaml: error: this encrypted patch is for another kind than Secret"),
        ("configMapGenerator: [{name: a, envs: [db.env]}]\n".to_owned(), "app/kustomization.yaml:1:39: error: db.env is encrypted by SOPS, and a ConfigMap would show"),
        ("configMapGenerator: [{name: a, envs: [db.env]}]\nsecretGenerator: [{name: a, envs: [db.env]}]\n".to_owned(), "a ConfigMap would show"),
        ("resources: [secret.yaml]\nsecretGenerator: [{name: a, files: [secret.yaml]}]\n".to_owned(), "app/secret.yaml: error: this encrypted file is named in several ways"),
        ("secretGenerator: [{name: a, envs: [db.env]}]\nconfigurations: [secret.yaml]\n".to_owned(), "its ciphertext would be read as what it says"),
        (
            "secretGenerator: [{name: a, envs: [other.env]}]\n".to_owned(),
            "app/other.env: error: this file is encrypted in another format than dotenv",
        ),
        (
            "secretGenerator: [{name: a, files: [db.ini]}]\n".to_owned(),
            "app/db.ini: error: this file is encrypted in the format INI, which rhumb does not read",
        ),
        ("configMapGenerator: [{name: a, files: [db.ini]}]\n".to_owned(), "in the format INI"),
        ("secretGenerator: [{name: a, files: [other.tfvars]}]\n".to_owned(), "no binary data below `data`"),
        // kustomize repeats a line that it does not take.
        ("secretGenerator: [{name: a, envs: [db.env]}]\npatches: [{path: broken.txt, target: {kind: Secret}}]\n".to_owned(), "app/kustomization.yaml: error: kustomize fails, and its words are not shown"),
    ] {
        workshop.root(&[("kustomization.yaml", &kustomization), ("map.yaml", map)]);
        workshop.check_refused(expected);
    }
    workshop.check_nothing_left();
}

impl Workshop {
    /// Writes the encrypted files of a root.
    fn encrypt_as_root(&self) {
        self.encrypt_as("app/db.env", &format!("PASSWORD={CANARY}\n"), "dotenv");
        self.encrypt_as("app/broken.txt", &format!("a\n  - {CANARY}: [\n{CANARY}"), "binary");
        self.encrypt_as("app/other.env", CANARY, "binary");
        self.encrypt_as("app/db.ini", &format!("[db]\npassword = {CANARY}\n"), "ini");
        self.encrypt_as("app/other.tfvars", &format!("{{\"a\":\"{CANARY}\"}}"), "json");
        let patch =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n    name: shown\ndata:\n    a: {CANARY}\n");
        assert!(self.encrypt("app/patch.yaml", patch.as_bytes(), DATA));
        let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n    name: b\nstringData:\n    a: one\n";
        assert!(self.encrypt("app/secret.yaml", secret.as_bytes(), DATA));
    }
}

#[test]
fn of_a_binary_file_its_data_alone_is_taken() {
    let workshop = Workshop::new();
    workshop.encrypt_as("app/a.tfvars", &format!("{{\"data\":\"{CANARY}\",\"b\":\"x\"}}"), "json");
    let options = "options: {disableNameSuffixHash: true}";
    let generator = format!("secretGenerator: [{{name: a, files: [a.tfvars], {options}}}]\n");
    workshop.root(&[("kustomization.yaml", &generator)]);
    assert_eq!(workshop.objects()[0]["data"], json!({"a.tfvars": STANDARD.encode(CANARY)}));
}

/// Checks that neither the same text in the clear elsewhere nor a variable's form changes what is
/// encrypted.
#[test]
fn what_is_in_the_clear_is_shown_and_variables_leave_values_alone() {
    let workshop = Workshop::new();
    workshop.encrypt_as("app/db.env", "STAGE=production\nPASSWORD=canary-${STAGE}\n", "dotenv");
    let patch = "apiVersion: v1\nkind: Secret\nmetadata:\n    name: db\nstringData:\n    password: canary-${STAGE}\n    pin: $$\n";
    assert!({
        workshop.write("app/patch.yaml", "");
        workshop.encrypt("app/patch.yaml", patch.as_bytes(), DATA)
    });
    workshop.root(&[
        ("kustomization.yaml", "namespace: production\nresources: [db.yaml]\nsecretGenerator: [{name: env, envs: [db.env]}]\npatches: [{path: patch.yaml}]\n"),
        ("db.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {stage: '${STAGE}'}}\n"),
    ]);
    workshop.write(
        "rhumb.yaml",
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\nspec:\n  directory: app\n  substitute: {STAGE: test}\n",
    );
    let (succeeds, shown) = workshop.rhumb(&[
        "render",
        "--config",
        "rhumb.yaml",
        "--source",
        "shop",
        "app",
        "--show-secrets",
        "-o",
        "json",
    ]);
    assert!(succeeds, "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let items = shown["objects"].as_array().unwrap();
    let db = items.iter().find(|item| item["metadata"]["name"] == "db").unwrap();
    assert_eq!(db["stringData"], json!({"stage": "test", "password": "canary-${STAGE}", "pin": "$$"}));
    let env = items.iter().find(|item| item["metadata"]["name"] != "db").unwrap();
    assert_eq!(
        env["data"],
        json!({"STAGE": STANDARD.encode("production"), "PASSWORD": STANDARD.encode("canary-${STAGE}")})
    );
}

const CHART: &str = "apiVersion: v2\nname: app\nversion: 1.0.0\n";
const SECRET_TEMPLATE: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata:\n  password: {{ .Values.password | b64enc }}\n";

#[test]
fn a_chart_gets_encrypted_values_and_may_put_them_into_secrets_alone() {
    let workshop = Workshop::new();
    workshop.write(
        "rhumb.yaml",
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\nspec:\n  directory: app\n  \
         namespace: shop\n  helm: {values: [secrets.yaml]}\n",
    );
    workshop.root(&[("Chart.yaml", CHART), ("templates/secret.yaml", SECRET_TEMPLATE), ("secrets.yaml", "")]);
    let values = format!("password: {CANARY}\nnamespace: shop\n");
    assert!(workshop.encrypt("app/secrets.yaml", values.as_bytes(), ""));
    let render = |flags: &[&str]| {
        let arguments = [&["render", "--config", "rhumb.yaml", "--source", "shop", "app"], flags].concat();
        workshop.rhumb(&arguments)
    };
    let (succeeds, shown) = render(&["--show-secrets"]);
    assert!(succeeds && shown.contains(&STANDARD.encode(CANARY)), "{shown}");
    let (succeeds, masked) = render(&[]);
    assert!(succeeds && masked.contains("kind: Secret"), "{masked}");
    for (template, expected) in [
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: url}\ndata: {url: 'db://a:{{ .Values.password }}@b'}\n",
            "app/templates/other.yaml: error: ConfigMap url would show a value that is encrypted in secrets.yaml, at data.url",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\nstringData: {a: '{{ randAlphaNum 9 }}'}\n",
            "app/templates/other.yaml: error: Secret made: /stringData/a differs from render to render",
        ),
        (
            "{{ fail .Values.password }}\n",
            "app/templates/other.yaml:1:1: error: it cannot be rendered, and the words on it are not shown",
        ),
        (
            "a: [{{ .Values.password }}\n",
            "app/templates/other.yaml: error: it cannot be rendered, and the words on it are not shown",
        ),
    ] {
        workshop.root(&[("templates/other.yaml", template)]);
        let (succeeds, said) = render(&["--show-secrets"]);
        assert!(!succeeds && said.contains(expected), "{said}");
        assert!(!said.contains(CANARY) && !said.contains(&STANDARD.encode(CANARY)), "{said}");
    }
    // Of a file that is no file of values the chart would get the ciphertext.
    fs::rename(workshop.path("app/secrets.yaml"), workshop.path("app/values.yaml")).unwrap();
    fs::write(workshop.path("app/secrets.yaml"), "").unwrap();
    assert!(render(&[]).1.contains("app/values.yaml: error: this file is encrypted by SOPS"));
    workshop.check_nothing_left();
}

#[test]
fn a_secret_that_cannot_be_opened_is_not_printed_and_said_to_be_held() {
    let workshop = Workshop::new();
    let sealed = "apiVersion: v1\nkind: Secret\nmetadata:\n    name: sealed\nstringData:\n    a: one\n";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: open}, data: {a: b}}\n";
    workshop.root(&[("kustomization.yaml", "resources: [sealed.yaml, map.yaml]\n"), ("map.yaml", map)]);
    assert!(workshop.encrypt("app/sealed.yaml", sealed.as_bytes(), DATA));
    workshop.write("plain/map.yaml", map);
    assert!(workshop.encrypt("plain/sealed.yaml", sealed.as_bytes(), DATA));
    fs::rename(workshop.path("key.txt"), workshop.path("lost.txt")).unwrap();
    for (folder, options) in
        [("app", &[][..]), ("app", &["--show-secrets"]), ("plain", &[]), ("plain", &["-o", "json"])]
    {
        let (succeeds, said) = workshop.rhumb(&[&["render", folder], options].concat());
        assert!(!succeeds && said.contains("cannot be opened"), "{folder}: {said}");
        // A root with such a file is not rendered, and all else of a folder is printed.
        assert_eq!(said.contains("ConfigMap"), folder == "plain", "{folder}: {said}");
        assert!(!said.contains("kind: Secret") && !said.contains("ENC["), "{folder}: {said}");
    }
    fs::rename(workshop.path("lost.txt"), workshop.path("key.txt")).unwrap();
    let (succeeds, said) = workshop.rhumb(&["render", "app"]);
    assert!(succeeds && said.contains("kind: Secret"), "{said}");
}
