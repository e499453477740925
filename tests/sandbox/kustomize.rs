//! Hostile kustomizations, rendered by the real program with everything on that could harm.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use rhumb::testing::input::sandbox::{RunOutput, SandboxError, SandboxPart};
use rustix::fs::Mode;

use crate::fixture::{CANARY, Fixture, Stop, assert_stopped, kustomize, text};

const BUILD: [&str; 2] = ["build", "--load-restrictor=LoadRestrictionsNone"];
const DANGEROUS: [&str; 4] =
    ["--enable-alpha-plugins", "--enable-exec", "--enable-helm", "--helm-command=/bin/sh"];

const FILES: Stop = Stop::Denied(SandboxPart::Files, "permission denied");
const CALLS: Stop = Stop::Denied(SandboxPart::SystemCalls, "operation not permitted");

fn words() -> Vec<&'static str> {
    [&BUILD[..], &DANGEROUS].concat()
}

/// Builds with every flag on, and with the programs in reach that it would start.
fn build(fixture: &Fixture) -> Result<RunOutput, SandboxError> {
    let command = fixture.command(kustomize(), &words()).variable("PATH", "/usr/bin:/bin");
    fixture.run(&command.go_runtime(192 << 20, 2))
}

fn resource(path: &str) -> Fixture {
    Fixture::new(&[("kustomization.yaml", &format!("resources: ['{path}']\n"))])
}

fn generator(path: &str) -> Fixture {
    Fixture::new(&[(
        "kustomization.yaml",
        &format!("configMapGenerator: [{{name: a, files: ['{path}']}}]\n"),
    )])
}

pub(crate) const OVERLAY: [(&str, &str); 4] = [
    ("base/kustomization.yaml", "resources: [web.yaml]\n"),
    (
        "base/web.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
         template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: web, image: 'web:1'}\n",
    ),
    (
        "kustomization.yaml",
        "namespace: prod\nresources: [base]\npatches: [{path: patch.yaml}]\n\
         configMapGenerator: [{name: env, literals: [A=1]}]\n",
    ),
    (
        "patch.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      \
         containers:\n      - {name: web, resources: {limits: {memory: 1Gi}}}\n",
    ),
];

#[test]
fn what_it_renders_is_what_it_renders_without_a_sandbox() {
    let fixture = Fixture::new(&OVERLAY);
    let bare = fixture.bare(kustomize(), &BUILD);
    assert!(bare.success && bare.output.contains("memory: 1Gi") && bare.output.contains("image: web:1"));
    assert_eq!(text(fixture.render(kustomize(), &BUILD)), bare.output);
}

#[test]
fn a_remote_base_starts_no_git_and_reaches_no_server() {
    for url in [
        "https://github.com/kubernetes-sigs/kustomize//examples/helloWorld?ref=v1.0.6",
        "git@github.com:kubernetes-sigs/kustomize.git//examples",
        "ssh://git@127.0.0.1/a.git",
    ] {
        assert_stopped(url, build(&resource(url)), &[CALLS]);
    }
}

#[test]
fn a_resource_of_the_cloud_s_metadata_is_not_fetched() {
    for url in [
        "http://169.254.169.254/latest/meta-data/a.yaml",
        "http://127.0.0.1:1/a.yaml",
        "https://10.0.0.1/a.yaml",
    ] {
        assert_stopped(url, build(&resource(url)), &[CALLS]);
    }
}

/// Asserts that the bare program reads the canary where the sandboxed one does not.
#[track_caller]
fn read_only_when_bare(case: &str, fixture: &Fixture, by: Stop) {
    let bare = fixture.bare(kustomize(), &words());
    assert!(format!("{}{}", bare.output, bare.stderr).contains(CANARY), "{case}: {bare:?}");
    assert_stopped(case, build(fixture), &[by]);
}

#[test]
fn a_file_outside_of_the_tree_is_not_read() {
    let fixture = generator("../canary");
    read_only_when_bare("a path upwards", &fixture, FILES);
    let fixture = Fixture::new(&[]);
    let path = fixture.canary();
    fixture.add(
        "kustomization.yaml",
        &format!("configMapGenerator: [{{name: a, files: ['{}']}}]\n", path.display()),
    );
    read_only_when_bare("an absolute path", &fixture, FILES);
    for path in [
        "/etc/passwd",
        "../../../../../../etc/hostname",
        "/proc/self/environ",
        "/etc/ssh/ssh_host_ed25519_key",
    ] {
        let denied = [FILES, Stop::Refused("no such file or directory")];
        assert_stopped(path, build(&generator(path)), &denied);
        assert_stopped(path, build(&resource(path)), &denied);
    }
}

#[test]
fn a_link_out_of_the_tree_is_not_followed() {
    let fixture = generator("link");
    fixture.link("link", fixture.canary());
    read_only_when_bare("a link to a file", &fixture, FILES);
    let fixture = generator("link/canary");
    fixture.link("link", fixture.canary().parent().unwrap());
    read_only_when_bare("a link to a folder", &fixture, FILES);
    for target in ["/etc/passwd", "/proc/self/environ", "/proc/thread-self/environ", "/dev/zero"] {
        let fixture = generator("link");
        fixture.link("link", target);
        assert_stopped(target, build(&fixture), &[FILES]);
    }
    let fixture = generator("link");
    fixture.link("link", format!("/proc/{}/environ", std::process::id()));
    assert_stopped("the environment of its starter", build(&fixture), &[FILES]);
}

#[test]
fn a_file_that_gives_nothing_ends_with_the_deadline() {
    let fixture = generator("pipe").limits(|limits| limits.deadline = Duration::from_millis(500));
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.tree().join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    assert_stopped("a pipe", build(&fixture), &[Stop::Killed(SandboxPart::Deadline)]);
}

#[test]
fn no_plugin_is_run() {
    let function = "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      \
                    exec: {path: /bin/sh}\n";
    let container = function.replace("exec: {path: /bin/sh}", "container: {image: 'example.org/a:1'}");
    for (name, text) in [("exec", function), ("container", &container)] {
        for field in ["generators", "transformers"] {
            let fixture = Fixture::new(&[
                ("kustomization.yaml", &format!("{field}: [plugin.yaml]\nresources: [a.yaml]\n")),
                ("plugin.yaml", text),
                ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
            ]);
            let denied = [CALLS, FILES, Stop::Refused("executable file not found")];
            assert_stopped(&format!("{field}, {name}"), build(&fixture), &denied);
        }
    }
}

#[test]
fn no_chart_is_rendered_by_another_program() {
    let fixture = Fixture::new(&[
        ("kustomization.yaml", "helmCharts: [{name: a, releaseName: a}]\n"),
        ("charts/a/Chart.yaml", "apiVersion: v2\nname: a\nversion: 0.1.0\n"),
    ]);
    assert_stopped("helmCharts", build(&fixture), &[CALLS]);
}

#[test]
fn a_kustomization_that_includes_itself_ends() {
    let cycle = Stop::Refused("cycle detected");
    assert_stopped(
        "itself",
        build(&Fixture::new(&[("kustomization.yaml", "resources: [../tree]\n")])),
        &[cycle],
    );
    // A diamond at each level: two to the power of the levels.
    let fixture = Fixture::new(&[]).limits(|limits| limits.processor = Duration::from_secs(2));
    fixture.add("kustomization.yaml", "resources: [0/a, 0/b]\n");
    for level in 0..20 {
        for side in ["a", "b"] {
            let next = level + 1;
            let text = format!("resources: [../../{next}/a, ../../{next}/b]\n");
            fixture.add(&format!("{level}/{side}/kustomization.yaml"), &text);
        }
    }
    for side in ["a", "b"] {
        fixture.add(&format!("20/{side}/kustomization.yaml"), "resources: []\n");
    }
    assert_stopped(
        "diamonds",
        build(&fixture),
        &[Stop::Killed(SandboxPart::Processor), Stop::Killed(SandboxPart::Deadline)],
    );
}

/// Returns a document with anchors of which each names the one before nine times.
pub(crate) fn alias_bomb(head: &str) -> String {
    let mut bomb = format!("{head}a0: &a0 [x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", [&*alias; 9].join(", ")).unwrap();
    }
    bomb
}

/// Returns a document with a list in a list, and so on.
pub(crate) fn deep_list(head: &str) -> String {
    format!("{head}a: {}\n", "[".repeat(100_000))
}

#[test]
fn yaml_that_grows_ends_with_the_memory() {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (case, text) in [("aliases", &alias_bomb(head)), ("depth", &deep_list(head))] {
        let fixture = Fixture::new(&[("kustomization.yaml", "resources: [a.yaml]\n"), ("a.yaml", text)])
            .limits(|limits| limits.processor = Duration::from_secs(2));
        let stops = [
            Stop::Denied(SandboxPart::Memory, "memory"),
            Stop::Denied(SandboxPart::Memory, "SIGSEGV"),
            Stop::Killed(SandboxPart::Processor),
            Stop::Refused("excessive aliasing"),
            Stop::Refused("exceeded max depth"),
            Stop::Refused("trouble configuring builtin"),
        ];
        assert_stopped(case, build(&fixture), &stops);
    }
}

#[test]
fn objects_without_number_end_with_the_time() {
    let mut objects = String::new();
    for number in 0..200_000 {
        writeln!(objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}").unwrap();
    }
    let fixture = Fixture::new(&[("kustomization.yaml", "resources: [a.yaml]\n"), ("a.yaml", &objects)])
        .limits(|limits| limits.processor = Duration::from_secs(2));
    let stops = [
        Stop::Killed(SandboxPart::Processor),
        Stop::Denied(SandboxPart::Memory, "memory"),
        Stop::Denied(SandboxPart::Memory, "SIGSEGV"),
    ];
    assert_stopped("200,000 objects", build(&fixture), &stops);
}

#[test]
fn a_schema_has_its_effect_in_its_own_root() {
    let mut files = OVERLAY.to_vec();
    let last = format!("{}openapi: {{path: schema.json}}\n", OVERLAY[2].1);
    files[2].1 = &last;
    files.push(("schema.json", r#"{"definitions": {"io.k8s.api.apps.v1.Deployment": {"type": "object"}}}"#));
    let odd = Fixture::new(&files);
    let changed = text(odd.render(kustomize(), &BUILD));
    assert!(
        !changed.contains("image: web:1"),
        "the schema should have its effect in its own root: {changed}"
    );
}

#[test]
fn what_is_missing_in_the_tree_is_an_error() {
    for missing in ["base/web.yaml", "patch.yaml", "base/kustomization.yaml"] {
        let files: Vec<_> = OVERLAY.into_iter().filter(|(path, _)| *path != missing).collect();
        let fixture = Fixture::new(&files);
        let name = Path::new(missing).file_stem().unwrap().to_str().unwrap();
        let output = fixture.render(kustomize(), &BUILD).unwrap();
        assert!(!output.is_success() && output.stderr.contains(name), "{missing}: {}", output.stderr);
    }
}

#[test]
fn more_output_than_may_be_ends_it() {
    let data = "x".repeat(200_000);
    let files: Vec<(String, String)> = (0..20)
        .map(|number| {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}\ndata: {{a: {data}}}\n"
            );
            (format!("{number}.yaml"), text)
        })
        .collect();
    let names: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
    let fixture = Fixture::new(&[("kustomization.yaml", &format!("resources: [{}]\n", names.join(", ")))]);
    let fixture = fixture.limits(|limits| limits.output = 1 << 20);
    for (name, text) in &files {
        fixture.add(name, text);
    }
    assert_stopped("4 MB", build(&fixture), &[Stop::Killed(SandboxPart::Output)]);
}
