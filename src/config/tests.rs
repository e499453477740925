use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::spec::{ConfigurationDocument, SourceDocument, SourceMetadata};
use super::*;

const EXAMPLE: &str = include_str!("../../examples/rhumb.yaml");

mod notify;

fn environment() -> Environment {
    Environment { directory: "/etc/rhumb".into(), home: Some("/home/ann".into()), ..Environment::default() }
}

/// Returns the faults of a file, a line for each finding and its hint.
fn faults(text: &str) -> String {
    let diagnostics = read("rhumb.yaml", text, &environment()).expect_err("the file is right");
    let mut shown = String::new();
    for found in diagnostics {
        let (line, column) = (found.origin.line, found.origin.column);
        let hint = found.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        writeln!(shown, "{line}:{column} {}{hint}", found.message).unwrap();
    }
    shown
}

fn check(text: &str, expected: &[&str]) {
    let shown = faults(text);
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "{text}");
}

fn source(spec: &str) -> String {
    format!("apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: shop}}\nspec:\n{spec}")
}

fn configuration(keys: &str) -> String {
    format!(
        "{}\n---\napiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{keys}",
        source("  directory: shop")
    )
}

#[test]
fn the_example_says_what_it_explains() {
    let config = read("rhumb.yaml", EXAMPLE, &environment()).unwrap();
    let interval = PositiveDuration::from_seconds(60);
    assert_eq!(config.connection.kubeconfig, Some("/home/ann/.kube/config".into()));
    assert_eq!(config.connection.context.as_deref(), Some("production"));
    assert_eq!(config.state_directory, Some("/var/lib/rhumb".into()));
    assert_eq!(config.namespace, "rhumb-system");
    assert_eq!(
        config.sources[0],
        SourceConfig {
            name: "shop".to_owned(),
            location: SourceLocation::Git {
                url: GitUrl::new("https://git.example.org/shop.git"),
                reference: Some("main".to_owned()),
                path: "deploy/production".parse().unwrap(),
                interval,
                verify: Some(VerifySpec { keys: "/etc/rhumb/signers".into(), mode: VerifyMode::Head }),
            },
            render: RenderMode::Auto,
            helm: HelmSpec {
                release: Some("shop".to_owned()),
                namespace: Some("shop".parse().unwrap()),
                values: vec!["values-prod.yaml".to_owned()],
                values_inline: serde_json::from_str(r#"{"image":{"tag":"1.4.0"},"replicas":3}"#).unwrap(),
                kube_version: Some("1.36.0".to_owned()),
                api_versions: vec!["monitoring.coreos.com/v1".to_owned()],
                generated: GeneratedValues::Refuse,
                skip_schema_validation: false,
            },
            renderers: RendererConfig {
                programs: ProgramSpec {
                    kustomize: Some("/usr/bin/kustomize".into()),
                    helm: Some("/usr/bin/helm".into()),
                },
                sandbox: SandboxMode::Full,
            },
            fetch: FetchConfig {
                allow: vec![
                    "https://charts.example.org/stable".parse().unwrap(),
                    "oci://ghcr.io/acme/charts".parse().unwrap(),
                ],
                credentials: vec![HostCredential {
                    host: "ghcr.io".parse().unwrap(),
                    credential: "acme".parse().unwrap(),
                }],
                setting: FetchSetting::Source,
            },
            namespace: "default".to_owned(),
            allow: AllowList::default(),
            credentials: CredentialUse::Own,
            service_account: None,
            substitution: None,
            prune: PrunePolicy::On,
            adopt: AdoptPolicy::IfUnowned,
            opt_out: OptOutPolicy::Allowed,
            blast_radius: BlastRadius::default(),
            prune_delay: DurationOrZero::new(crate::engine::PRUNE_DELAY),
            budget: NarrowingSpec::default(),
            mode: SourceMode::Enforce,
            life: SourceLifecycle::Active,
        }
    );
    assert_eq!(config.sources[1].location, SourceLocation::Directory("/etc/rhumb/shop".into()));
}

#[test]
fn the_example_shows_the_defaults() {
    let example = read("rhumb.yaml", EXAMPLE, &environment()).unwrap();
    let least = read("rhumb.yaml", &source("  directory: shop"), &environment()).unwrap();
    assert_eq!(example.connection.api, least.connection.api);
    assert_eq!((example.resync, example.budget), (least.resync, least.budget));
    assert_eq!(example.namespace, least.namespace);
    let location = SourceLocation::Directory("/etc/rhumb/shop".into());
    let renderers = least.sources[0].renderers.clone();
    let helm = HelmSpec::default();
    let fetch = least.sources[0].fetch.clone();
    let shown = SourceConfig { location, helm, renderers, fetch, ..example.sources[0].clone() };
    assert_eq!(shown, least.sources[0]);
}

#[test]
fn the_example_names_every_key() {
    let keys = [
        keys_of::<ConfigurationDocument>(),
        keys_of::<ApiSpec>(),
        keys_of::<BudgetSpec>(),
        keys_of::<super::serve::ServeSpec>(),
        keys_of::<super::serve::TlsSpec>(),
        keys_of::<super::serve::WebhookReceiverSpec>(),
        keys_of::<super::ProgramSpec>(),
        keys_of::<HelmSpec>(),
        keys_of::<super::notify::NotifySpec>(),
        keys_of::<super::notify::SlackSpec>(),
        keys_of::<super::notify::ForgeSpec>(),
        keys_of::<SourceDocument>(),
        keys_of::<SourceMetadata>(),
        keys_of::<SourceSpec>(),
        keys_of::<GitSpec>(),
        keys_of::<VerifySpec>(),
        keys_of::<AllowSpec>(),
        keys_of::<SubstituteFromSpec>(),
        &["count", "percent"],
    ];
    for key in keys.into_iter().flatten() {
        let shows_key = |line: &str| {
            let line = line.trim_start();
            line.strip_prefix("- ").unwrap_or(line).starts_with(&format!("{key}:"))
        };
        assert!(EXAMPLE.lines().any(shows_key), "the example does not show the key {key}");
    }
}

/// Returns the keys that serde knows for a type.
fn keys_of<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    struct KeyRecorder<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for KeyRecorder<'_> {
        type Error = de::value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(de::Error::custom("no struct"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            keys: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = keys;
            Err(de::Error::custom("asked"))
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
            unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut keys: &'static [&'static str] = &[];
    assert!(T::deserialize(KeyRecorder(&mut keys)).is_err());
    assert!(!keys.is_empty());
    keys
}

#[test]
fn what_would_be_asked_without_a_pause_or_in_two_lines_is_refused() {
    let short =
        "is too short: whoever is asked so often has no pause; 1s is the least, and 1m is often enough";
    check(&source("  git: {url: a, interval: 1ms}"), &[&format!("5:27 1ms {short}")]);
    check(&configuration("resync: 999ms"), &[&format!("9:9 999ms {short}")]);
    let lines = "the repository's URL or path has a line break or another control character in it: write it in one \
                 line, without `|` or `>` before it";
    check(&source("  git: {url: \"a\\nb\"}"), &[&format!("5:14 {lines}")]);
    check(&source("  git: {url: \"a\\u0007b\"}"), &[&format!("5:14 {lines}")]);
}

#[test]
fn unknown_keys_name_the_nearest() {
    check(
        &source("  git: {url: a, intervall: 1m}"),
        &["5:17 unknown key `intervall` (did you mean `interval`?)"],
    );
    check(
        &configuration("resnyc: 1m\napi: {qsp: 1, brust: 2}"),
        &[
            "9:1 unknown key `resnyc` (did you mean `resync`?)",
            "10:7 unknown key `qsp` (did you mean `qps`?)",
            "10:15 unknown key `brust` (did you mean `burst`?)",
        ],
    );
    check(
        &source("  directory: a\n  deletionPolicy: Delete\n  observe: 1"),
        &[
            "6:3 `deletionPolicy` is for a Source object in the cluster (leave it out: the objects of a source that is taken out of the file stay; to delete them, take them out of git before)",
            "7:12 expected true or false, found 1",
        ],
    );
    check(
        &source("  directory: a\n  zzz: 1"),
        &[
            "6:3 unknown key `zzz` (known here: git, directory, render, helm, fetch, namespace, allow, serviceAccountName, substitute, substituteFrom, prune, adopt, optOut, blastRadius, pruneDelay, budget, observe)",
        ],
    );
}

#[test]
fn wrong_values_are_named_all_at_once() {
    check(
        &configuration(concat!(
            "namespace: Rhumb\n",
            "resync: 5 minutes\n",
            "context: 12\n",
            "api: {qps: -5, burst: 0, concurrency: 1.5, timeout: 0s}\n",
            "budget: {maxWorkloads: many}\n",
        )),
        &[
            "9:12 expected a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends, found the text `Rhumb`",
            "10:9 expected a duration longer than nothing (for example 90s, 5m, 1h30m or 500ms), found the text `5 minutes`",
            "11:10 expected text, found 12 (write it in quotes: \"12\")",
            "12:12 expected a whole number from 1, found -5",
            "12:23 expected a whole number from 1, found 0",
            "12:39 expected a whole number from 1, found 1.5",
            "12:53 expected a duration longer than nothing (for example 90s, 5m, 1h30m or 500ms), found the text `0s`",
            "13:24 expected a whole number from 1, found the text `many`",
        ],
    );
    check(
        &source("  directory: a\n  prune: on\n  adopt: allways\n  blastRadius: 200%\n  observe:\n"),
        &[
            "6:10 expected true or false, found the text `on`",
            "7:10 `allways` is none of never, if-unowned, always (did you mean `always`?)",
            "8:16 expected a count (10), a percentage from 0% to 100% (10%), or {count: 10, percent: 10}, found the text `200%`",
            "9:10 expected true or false, found nothing",
        ],
    );
    check(
        &source("  directory: a\n  blastRadius: {count: 1, percent: 101}\n"),
        &["6:36 expected a number from 0 to 100, found 101"],
    );
    check(
        &source("  git: {url: a, path: ../b}"),
        &["5:23 `../b` is not a relative path that stays inside the repository"],
    );
}

#[test]
fn a_fault_inside_hides_no_fault_outside() {
    check(
        "apiVersion: rhumb.dev/v1\nkind: Source\nmetadata: {name: A, labels: {}}\nspec:\n  git: {ref: main}\n  prnue: 1\n",
        &[
            "1:13 expected rhumb.dev/v1alpha1, found the text `rhumb.dev/v1`",
            "3:18 expected a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends, found the text `A`",
            "3:21 unknown key `labels` (known here: name)",
            "5:8 the key `url` is missing",
            "6:3 unknown key `prnue` (did you mean `prune`?)",
        ],
    );
}

#[test]
fn a_source_has_one_place() {
    let hint = "(give one of the two: git for commits, directory for files on disk)";
    check(&source("  prune: true"), &[&format!("5:3 the source has neither `git` nor `directory` {hint}")]);
    check(
        &source("  git: {url: a}\n  directory: b"),
        &[&format!("5:3 the source has both `git` and `directory` {hint}")],
    );
}

#[test]
fn documents_are_side_by_side() {
    let two = format!("{}\n---\n{}", source("  directory: a"), source("  directory: b"));
    check(
        &two,
        &[
            "9:18 a second source `shop`; the first is on line 3 (a source's name is the name of its inventory: give each its own)",
        ],
    );
    let two = format!("{}\n---\nkind: Configuration\napiVersion: rhumb.dev/v1alpha1", configuration(""));
    check(
        &two,
        &[
            "11:7 a second Configuration; the first is on line 8 (keep one Configuration, and a Source for each source)",
        ],
    );
    check(
        "kind: Sorce\n---\napiVersion: v1\n---\nkind: 1\n---\n- a\n",
        &[
            "1:7 unknown kind `Sorce` (did you mean `Source`?)",
            "3:1 the key `kind` is missing (kinds: Configuration, Source)",
            "5:7 the kind must be text",
            "7:1 the key `kind` is missing (kinds: Configuration, Source)",
        ],
    );
    let none =
        "0:0 the file names no source (add a document of apiVersion rhumb.dev/v1alpha1 and kind Source)";
    check("", &[none]);
    check("---\n# nothing\n---\n", &[none]);
}

#[test]
fn what_is_no_yaml_is_one_finding() {
    check("kind: Source\nkind: Source\n", &["2:1 the key `kind` is given twice, first on line 1"]);
    check("a: &x 1\nb: *x\n", &["2:4 aliases have no place in a configuration"]);
    check("a: !!str 1\n", &["1:4 tags have no place in a configuration"]);
    check("1: a\n", &["1:1 a key must be text"]);
    check("a: [1\n", &["1:4 unclosed bracket '['"]);
}

#[test]
fn credentials_are_kept_out_of_findings() {
    let text = source("  git: https://me:hunter2@host/a\n  directory: 1");
    let found = read("rhumb.yaml", &text, &environment()).unwrap_err();
    assert!(format!("{found:?}").contains("https://***@host/a"));
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn many_faults_end() {
    let mut keys = String::new();
    for key in 0..5000 {
        writeln!(keys, "k{key}: 1").unwrap();
    }
    assert_eq!(faults(&configuration(&keys)).lines().count(), 100);
}

#[test]
fn paths_start_at_the_file() {
    fn check(spec: &str, expected: &str) {
        let config = read("rhumb.yaml", &source(spec), &environment()).unwrap();
        assert_eq!(config.sources[0].location.to_string(), expected);
    }
    check("  directory: shop", "/etc/rhumb/shop");
    check("  directory: /srv/shop", "/srv/shop");
    check("  directory: ~/shop", "/home/ann/shop");
    check("  git: {url: shop.git}", "/etc/rhumb/shop.git");
    check("  git: {url: 'git@host:shop.git'}", "git@host:shop.git");
    check("  git: {url: 'file:///srv/shop'}", "file:///srv/shop");
}

#[test]
fn variables_are_text_under_names_that_manifests_can_use() {
    check(
        &source("  directory: a\n  substitute: {PORT: 80, TLS: true, a-b: x, 1a: x, OK: \"80\"}"),
        &[
            "6:22 expected text, found 80 (write it in quotes: \"80\")",
            "6:31 expected text, found true (write it in quotes: \"true\")",
            "6:37 expected the name of a variable: letters, digits and _, with no digit in front, found the text `a-b`",
            "6:45 expected the name of a variable: letters, digits and _, with no digit in front, found the text `1a`",
        ],
    );
    check(
        &source("  directory: a\n  substituteFrom: [{kind: Configmap, name: A}, {kind: Secret}]"),
        &[
            "6:27 `Configmap` is none of ConfigMap, Secret (did you mean `ConfigMap`?)",
            "6:44 expected the name of an object (for example cluster-vars), found the text `A`",
            "6:48 the key `name` is missing",
        ],
    );
    check(&source("  directory: a\n  substitute:"), &["6:13 expected a mapping, found nothing"]);
    check(
        &source("  directory: a\n  substituteFrom: [{kind: ConfigMap, name: a, sensitive: true}]"),
        &[
            "5:3 `substituteFrom` has a ConfigMap with `sensitive: true`, and its values may be shown (keep secrets in a Secret, or take `sensitive` away)",
        ],
    );
    let read = read("a.yaml", &source("  directory: a\n  substitute: {A: '1'}"), &environment()).unwrap();
    let values = read.sources[0].substitution.clone().unwrap().values;
    assert_eq!(values.get("A").map(String::as_str), Some("1"));
}

#[test]
fn a_source_reads_back_as_it_was_written() {
    let spec = SourceSpec {
        git: Some(GitSpec {
            reference: Some("v1".to_owned()),
            ..GitSpec::new(GitUrl::new("https://host/a"))
        }),
        prune: false,
        blast_radius: "10%".parse().unwrap(),
        ..SourceSpec::default()
    };
    let written = serde_json::to_value(&spec).unwrap();
    let expected = serde_json::json!({
        "git": {"url": "https://host/a", "ref": "v1", "interval": "1m"},
        "namespace": "default", "prune": false, "adopt": "if-unowned", "optOut": "allowed", "blastRadius": "10%", "pruneDelay": "30s", "observe": false,
    });
    assert_eq!(written, expected);
    assert_eq!(serde_json::from_value::<SourceSpec>(written).unwrap(), spec);
}

#[test]
fn the_state_directory_has_an_order() {
    fn check(configured: Option<&str>, variables: [&str; 3], expected: Option<&str>) {
        let [state, xdg, home] =
            variables.map(|value| Some(value).filter(|value| !value.is_empty()).map(PathBuf::from));
        let environment =
            Environment { state_directory: state, xdg_state_home: xdg, home, ..Environment::default() };
        let found = environment.state_directory(configured.map(Path::new)).ok();
        assert_eq!(found.as_deref(), expected.map(Path::new));
    }
    check(Some("/a"), ["/b", "/c", "/d"], Some("/a"));
    check(None, ["/b:/b2", "/c", "/d"], Some("/b"));
    check(None, ["", "/c", "/d"], Some("/c/rhumb"));
    check(None, ["", "c", "/d"], Some("/d/.local/state/rhumb"));
    check(None, ["", "", "/d"], Some("/d/.local/state/rhumb"));
    check(None, ["", "", ""], None);
}

#[test]
fn a_reload_tells_what_it_takes() {
    fn check(edit: impl FnOnce(&mut Config), expected: &[ConfigChange]) {
        let old = read("rhumb.yaml", EXAMPLE, &environment()).unwrap();
        let mut new = old.clone();
        edit(&mut new);
        assert_eq!(differences(&old, &new), expected);
    }
    check(|_| {}, &[]);
    check(|new| new.resync = PositiveDuration::from_seconds(1), &[ConfigChange::Resync]);
    check(|new| new.budget.max_workloads = 9, &[ConfigChange::Budget]);
    let to = Recipient::Slack { url: "u".into() };
    let slack = NotifyConfig { to, sources: NotifiedSources::All, on: NotificationEvent::ALL.into() };
    check(|new| new.notify.push(slack.clone()), &[ConfigChange::Notify]);
    check(|new| new.renderers.sandbox = SandboxMode::Seccomp, &[ConfigChange::Renderers]);
    check(|new| new.connection.api.qps = 9, &[ConfigChange::Restart("api")]);
    check(|new| new.namespace.push('2'), &[ConfigChange::Restart("namespace")]);
    check(|new| new.connection.context = None, &[ConfigChange::Restart("context")]);
    check(|new| new.serve.token = None, &[ConfigChange::Restart("serve")]);
    check(|new| new.state_directory = None, &[ConfigChange::Restart("stateDirectory")]);
    check(
        |new| new.sources[1].mode = SourceMode::Observe,
        &[ConfigChange::SourceChanged("platform".to_owned())],
    );
    check(|new| new.sources.reverse(), &[]);
    check(
        |new| new.sources[0].name = "store".to_owned(),
        &[ConfigChange::SourceAdded("store".to_owned()), ConfigChange::SourceRemoved("shop".to_owned())],
    );
    assert!(ConfigChange::Restart("api").is_restart_needed());
    assert!(!ConfigChange::Budget.is_restart_needed());
}

#[test]
fn only_a_policy_that_follows_sources_takes_a_new_process() {
    let policy = |follow, account: &str| {
        let mut config = read("rhumb.yaml", EXAMPLE, &environment()).unwrap();
        config.custom_sources.follow = follow;
        config.custom_sources.default_service_account = Some(account.parse().unwrap());
        config
    };
    let (none, remote) = (custom::CustomSources::None, custom::CustomSources::Remote);
    let [closed, other] = ["team-a", "team-b"].map(|account| policy(none, account));
    assert_eq!(differences(&closed, &other), []);
    let [open, changed] = ["team-a", "team-b"].map(|account| policy(remote, account));
    for (old, new) in [(&closed, &open), (&open, &closed), (&open, &changed)] {
        assert_eq!(differences(old, new), [ConfigChange::Restart("customSources")]);
    }
}

#[test]
fn changed_programs_take_no_new_process_for_sources_in_the_cluster() {
    let open = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\ncustomSources: remote\n";
    let config = |keys: &str| read("rhumb.yaml", &format!("{open}{keys}"), &environment()).unwrap();
    let before = config("");
    let programs = config("programs: {helm: /opt/helm}");
    let sandbox = config("sandbox: seccomp");
    let object = serde_json::json!({
        "metadata": { "name": "shop" }, "spec": { "git": { "url": "https://a.example/shop" } },
    });
    for newer in [programs, sandbox] {
        assert_eq!(differences(&before, &newer), [ConfigChange::Renderers]);
        let custom = custom::CustomSource::read(object.clone(), &before.custom_sources).unwrap();
        let joined = newer.with_custom_sources(&[custom]);
        assert_eq!(joined.sources[0].renderers, newer.renderers);
    }
}

#[test]
fn what_others_can_reach_takes_encryption_and_a_token() {
    let hint = |port: &str| {
        format!(
            "(set serve.tls and serve.token, or listen on 127.0.0.1:{port}; for the kubelet's probes there is serve.probes)"
        )
    };
    let both = "can be reached from other machines, which takes `tls` and `token`";
    check(
        &configuration("serve: {listen: '0.0.0.0:9090'}"),
        &[&format!("9:17 0.0.0.0:9090 {both} {}", hint("9090"))],
    );
    check(
        &configuration("serve:\n  token: a\n  listen: '[::]:80'"),
        &[&format!("11:11 [::]:80 can be reached from other machines, which takes `tls` {}", hint("80"))],
    );
    check(
        &configuration("serve:\n  tls: {cert: a, key: b}\n  listen: 10.0.0.1:443"),
        &[&format!(
            "11:11 10.0.0.1:443 can be reached from other machines, which takes `token` {}",
            hint("443")
        )],
    );
    check(
        &configuration("serve: {listen: 127.0.0.1:1, probes: 127.0.0.1:1}"),
        &["9:38 `listen` and `probes` are the same address (give each its own port)"],
    );
    check(
        &configuration("serve: {listen: localhost, tls: {cert: a}, hosts: [a b, ''], probe: 1}"),
        &[
            "9:17 expected an address with a port (for example 127.0.0.1:9090 or [::1]:9090), found the text `localhost`",
            "9:33 the key `key` is missing",
            "9:52 expected the name of a host (for example rhumb.example.org), found the text `a b`",
            "9:57 expected the name of a host (for example rhumb.example.org), found the text ``",
            "9:62 unknown key `probe` (did you mean `probes`?)",
        ],
    );
}

#[test]
fn where_it_answers_is_read() {
    fn serve(keys: &str, environment: &Environment) -> ServeConfig {
        read("rhumb.yaml", &configuration(keys), environment).unwrap().serve
    }
    let nowhere = environment();
    assert_eq!(serve("", &nowhere), ServeConfig::default());
    let service = Environment {
        runtime_directory: Some("/run/a:/run/b".into()),
        serve_token: Some("/credentials/serve-token".into()),
        webhook_secret: Some("/credentials/webhook-secret".into()),
        ..environment()
    };
    let by_itself = serve("", &service);
    assert_eq!(by_itself.socket, Some("/run/a/rhumb.sock".into()));
    assert_eq!(by_itself.token, Some("/credentials/serve-token".into()));
    assert_eq!(by_itself.hook_secret, Some("/credentials/webhook-secret".into()));
    assert_eq!(by_itself, ServeConfig::of_environment(&service));
    let person = Environment { xdg_runtime_directory: Some("/run/user/7".into()), ..environment() };
    assert_eq!(serve("", &person).socket, Some("/run/user/7/rhumb/rhumb.sock".into()));
    let relative = Environment { xdg_runtime_directory: Some("run".into()), ..environment() };
    assert_eq!(serve("", &relative).socket, None);
    let both = Environment { runtime_directory: Some("/run/a".into()), ..person };
    assert_eq!(serve("", &both).socket, Some("/run/a/rhumb.sock".into()));
    let named = Environment { socket: Some("/tmp/second.sock".into()), ..both };
    assert_eq!(serve("", &named).socket, Some("/tmp/second.sock".into()));
    assert_eq!(serve("serve: {socket: /x}", &named).socket, Some("/x".into()));
    let keys = "serve: {socket: s, listen: '0.0.0.0:1', tls: {cert: c, key: ~/k}, hosts: [A.example], hook: {secret: h}}";
    let all = serve(keys, &service);
    assert_eq!(
        all,
        ServeConfig {
            socket: Some("/etc/rhumb/s".into()),
            listen: Some("0.0.0.0:1".parse().unwrap()),
            probes: None,
            hosts: vec!["a.example".to_owned()],
            tls: Some(TlsFiles { cert: "/etc/rhumb/c".into(), key: "/home/ann/k".into() }),
            token: Some("/credentials/serve-token".into()),
            hook_secret: Some("/etc/rhumb/h".into()),
        }
    );
}
