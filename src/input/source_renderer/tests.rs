//! Roots that cannot be rendered.

use serde_json::json;

use super::*;
use crate::config::{RendererConfig, VariableHolder, VariableHolderKind, VariableHolderNeed};
use crate::input::MemoryTree;
use crate::input::memory_supply::MemorySupply;
use crate::input::render_pass::RENDER_POSTPONED;
use crate::input::root_job::RENDER_STOPPED;
use crate::input::roots::RootForm;
use crate::input::sandbox::ProgramVersion;
use crate::object::{GroupKind, Revision};
use crate::source::{BlobId, KnownFacts, ObjectFact, ServedVersions};

const SERVER: &str = "repository: 'https://charts.example.org'";

fn snapshot(files: &[(&str, &'static str)]) -> Snapshot {
    let refused = files.iter().map(|(file, code)| Diagnostic::file_error(*file, code, ""));
    Snapshot::of_files(Revision::new("0"), Vec::new(), refused.collect())
}

/// Returns a renderer where there is no program.
fn renderer(supply: MemorySupply) -> SourceRenderer {
    let host = RenderHost::new(&RendererConfig::default(), "".into(), std::env::temp_dir());
    let decrypter = Arc::new(Decrypter::new(Vec::new(), None));
    let releases = ReleaseSettings { namespace: "prod".to_owned(), ..ReleaseSettings::default() };
    SourceRenderer::new(host.into(), RenderMode::Auto, decrypter, ChartFetcher::without_servers())
        .with_releases(releases)
        .with_supply(Arc::new(supply))
}

fn words(rendered: &RenderedSnapshot) -> Vec<String> {
    let outcomes = rendered.roots.iter().map(|root| match &root.outcome {
        RootOutcome::Rendered(_) => format!("{} rendered", root.path),
        RootOutcome::Refused(found) => format!("{} refused: {}", root.path, found[0].message),
        RootOutcome::Interrupted(found) => format!("{} interrupted: {}", root.path, found[0].code),
    });
    outcomes.collect()
}

/// Returns the outcomes of two charts, of which one has a part from a server, where there is no
/// helm.
fn outcomes(supply: MemorySupply, version: &str) -> Vec<String> {
    let chart = |name: &str, rest: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n{rest}");
    let part = format!("dependencies: [{{name: redis, version: {version}, {SERVER}}}]\n");
    let files =
        MemoryTree::new().file("a/Chart.yaml", chart("a", &part)).file("b/Chart.yaml", chart("b", ""));
    let raw = snapshot(&[("a/Chart.yaml", "helm-chart"), ("b/Chart.yaml", "helm-chart")]);
    words(&renderer(supply).render_files(raw, "", &files, &ClusterFacts::NotQueried).unwrap())
}

#[test]
fn a_chart_that_cannot_be_fetched_now_interrupts_its_root_alone() {
    let server = || MemorySupply::default().chart("https://charts.example.org", "redis", "7.1.0", &[]);
    let other = "b/Chart.yaml interrupted: no-program";
    assert_eq!(
        outcomes(server().without_network(), "7.1.0"),
        ["a/Chart.yaml interrupted: chart-unreachable", other]
    );
    assert_eq!(outcomes(server(), "7.1.0"), ["a/Chart.yaml interrupted: no-program", other]);
    assert_eq!(outcomes(server(), "9.0.0"), ["a/Chart.yaml refused: there is no chart redis 9.0.0", other]);
}

/// Returns what comes of a plain file that names a variable, by the facts of a cluster.
fn substituted(
    from: &[(VariableHolderKind, VariableHolderNeed)],
    facts: &ClusterFacts,
) -> Result<Vec<String>, BTreeSet<ObjectId>> {
    let holder = |(kind, need): &(VariableHolderKind, VariableHolderNeed)| VariableHolder {
        kind: *kind,
        namespace: "shop".parse().unwrap(),
        name: "vars".parse().unwrap(),
        need: *need,
    };
    let config = SubstitutionConfig { values: BTreeMap::new(), from: from.iter().map(holder).collect() };
    let variables = SourceVariables { config, namespace: "shop".to_owned() };
    let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {zone: '${ZONE:-none}'}}";
    let files = MemoryTree::new().file("a.yaml", text);
    let mut raw = snapshot(&[]);
    let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
    raw.files.push(SnapshotFile { path: "a.yaml".into(), blob, size, origin: None });
    let renderer = renderer(MemorySupply::default()).with_variables(Some(variables));
    match renderer.render_files(raw, "", &files, facts) {
        Ok(done) => {
            let contents = done.contents.iter().map(|made| String::from_utf8_lossy(&made.bytes).into_owned());
            Ok(words(&done).into_iter().chain(contents).collect())
        }
        Err(SourceError::FactsWanted(wanted)) => Err(wanted.objects),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_the_source_does_not_hold_is_asked_of_the_cluster_and_an_error_is_never_empty() {
    use VariableHolderKind::{ConfigMap, Secret};
    use VariableHolderNeed::{Optional, Required};
    let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "vars");
    let asked = |fact: Option<ObjectFact>| {
        let objects = fact.map(|fact| (id.clone(), fact)).into_iter().collect();
        ClusterFacts::Queried(KnownFacts { versions: None, objects })
    };
    let found = || ObjectFact::Found(json!({ "data": { "ZONE": "b" } }).into());
    let zone = |zone: &str| {
        let object = format!(r#"{{"apiVersion":"v1","data":{{"zone":"{zone}"}}"#);
        move |outcomes: Vec<String>| {
            assert!(outcomes[0] == "a.yaml rendered" && outcomes[1].starts_with(&object), "{outcomes:?}");
        }
    };
    let refused = |why: &'static str| {
        move |outcomes: Vec<String>| assert_eq!(outcomes, [format!("a.yaml refused: substituteFrom: {why}")])
    };
    for need in [Required, Optional] {
        assert_eq!(substituted(&[(ConfigMap, need)], &asked(None)), Err([id.clone()].into()));
        zone("b")(substituted(&[(ConfigMap, need)], &asked(Some(found()))).unwrap());
        let unreadable = asked(Some(ObjectFact::Unreadable("no rights".into())));
        refused("ConfigMap shop/vars cannot be read: no rights")(
            substituted(&[(ConfigMap, need)], &unreadable).unwrap(),
        );
    }
    let absent = asked(Some(ObjectFact::Absent));
    zone("none")(substituted(&[(ConfigMap, Optional)], &absent).unwrap());
    refused("neither the source nor the cluster has the ConfigMap shop/vars")(
        substituted(&[(ConfigMap, Required)], &absent).unwrap(),
    );
    refused("no plain manifest of the source has the ConfigMap shop/vars")(
        substituted(&[(ConfigMap, Required)], &ClusterFacts::NotQueried).unwrap(),
    );
    // Rendered objects are kept on disk, so that no cluster is asked for a Secret.
    refused("no plain manifest of the source has the Secret shop/vars")(
        substituted(&[(Secret, Required)], &asked(None)).unwrap(),
    );
    zone("none")(substituted(&[(Secret, Optional)], &asked(None)).unwrap());
}

#[test]
fn an_object_that_gives_no_variables_holds_back_only_what_may_name_them() {
    let holder = |name: &str| VariableHolder {
        kind: VariableHolderKind::ConfigMap,
        namespace: "shop".parse().unwrap(),
        name: name.parse().unwrap(),
        need: VariableHolderNeed::Required,
    };
    let config = SubstitutionConfig {
        values: [("INLINE".parse().unwrap(), "1".to_owned())].into(),
        from: vec![holder("before"), holder("gone"), holder("after")],
    };
    let variables = SourceVariables { config, namespace: "shop".to_owned() };
    let map = |name: &str, data: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{{data}}}}}")
    };
    let plain = [
        ("after.yaml", map("after", "AFTER: '2'")),
        ("before.yaml", map("before", "BEFORE: '0'")),
        ("command.yaml", map("command", "a: 'echo $HOME $(date) $${A}'")),
        ("default.yaml", map("default", "a: '${BEFORE:-x}'")),
        ("known.yaml", map("known", "a: '${INLINE}${AFTER}'")),
        ("overridden.yaml", map("overridden", "a: '${BEFORE}'")),
        ("unset.yaml", map("unset", "a: '${GONE:-x}'")),
    ];
    let mut files = MemoryTree::new()
        .file("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
        .file("root/kustomization.yaml", "resources: []\n");
    let mut raw =
        snapshot(&[("chart/Chart.yaml", "helm-chart"), ("root/kustomization.yaml", "kustomization")]);
    for (path, text) in &plain {
        files = files.file(path, text);
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        raw.files.push(SnapshotFile { path: (*path).into(), blob, size, origin: None });
    }
    let renderer = renderer(MemorySupply::default()).with_variables(Some(variables));
    let done = renderer.render_files(raw, "", &files, &ClusterFacts::NotQueried).unwrap();
    let gone = |file: &str| {
        format!("{file} refused: substituteFrom: no plain manifest of the source has the ConfigMap shop/gone")
    };
    assert_eq!(
        words(&done),
        [
            "chart/Chart.yaml interrupted: no-program".to_owned(),
            "command.yaml rendered".to_owned(),
            gone("default.yaml"),
            "known.yaml rendered".to_owned(),
            gone("overridden.yaml"),
            "root/kustomization.yaml interrupted: no-program".to_owned(),
            gone("unset.yaml"),
        ]
    );
    let RootOutcome::Refused(found) = &done.roots[2].outcome else { panic!("{done:?}") };
    assert_eq!(found[1].message, "data.a: the variable BEFORE is not known");
    assert_eq!(found[1].origin.to_string(), "default.yaml:1");
}

#[test]
fn an_object_that_cannot_be_opened_gives_no_variables_and_what_to_do_is_reported() {
    let text =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: vars}\nstringData: {ZONE: 'ENC[]'}\nsops: {mac: x}\n";
    let user = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {zone: '${ZONE}'}}";
    let holder = VariableHolder {
        kind: VariableHolderKind::Secret,
        namespace: "shop".parse().unwrap(),
        name: "vars".parse().unwrap(),
        need: VariableHolderNeed::Required,
    };
    let config = SubstitutionConfig { values: BTreeMap::new(), from: vec![holder] };
    let files = MemoryTree::new().file("a.yaml", user).file("vars.yaml", text);
    let mut raw = snapshot(&[]);
    for (path, text) in [("a.yaml", user), ("vars.yaml", text)] {
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        raw.files.push(SnapshotFile { path: path.into(), blob, size, origin: None });
    }
    let renderer = renderer(MemorySupply::default())
        .with_variables(Some(SourceVariables { config, namespace: "shop".to_owned() }));
    let done = renderer.render_files(raw, "", &files, &ClusterFacts::NotQueried).unwrap();
    let RootOutcome::Refused(found) = &done.roots[0].outcome else { panic!("{done:?}") };
    let finding = |message: &str| found.iter().find(|found| found.message.contains(message));
    let fault =
        finding("Secret shop/vars gives no variables: it is encrypted by SOPS, and is not opened").unwrap();
    let hint = "only a Secret that an age identity opens gives variables, and only its data may be encrypted";
    assert_eq!(fault.hint.as_deref(), Some(hint));
    // The reason for which it is not opened is beside it, at its file.
    assert!(found.iter().any(|found| &*found.origin.file == "vars.yaml"), "{found:?}");
}

#[test]
fn charts_alone_wait_for_the_versions_of_the_cluster() {
    let render = |roots: &[(&str, &'static str)], server: Option<Result<&str, &str>>| {
        let versions = server.map(|server| {
            let server = server.map(Arc::from).map_err(Arc::from);
            Arc::new(ServedVersions { server, apis: ["v1".to_owned()].into() })
        });
        let files = MemoryTree::new()
            .file("a/Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n")
            .file("b/kustomization.yaml", "resources: []\n");
        let facts = ClusterFacts::Queried(KnownFacts { versions, ..KnownFacts::default() });
        let done = renderer(MemorySupply::default()).render_files(snapshot(roots), "", &files, &facts);
        done.map(|done| (words(&done), done.used.versions))
    };
    let (chart, other) = (("a/Chart.yaml", "helm-chart"), ("b/kustomization.yaml", "kustomization"));
    let found = |codes: &[&str], used| (codes.iter().map(|code| (*code).to_owned()).collect(), used);
    let plain = found(&["b/kustomization.yaml interrupted: no-program"], false);
    assert_eq!(render(&[other], None).unwrap(), plain);
    let wanted = render(&[chart, other], None).unwrap_err();
    assert!(matches!(wanted, SourceError::FactsWanted(used) if used.versions));
    let hidden =
        ["a/Chart.yaml interrupted: no-cluster-version", "b/kustomization.yaml interrupted: no-program"];
    assert_eq!(render(&[chart, other], Some(Err("refused"))).unwrap(), found(&hidden, true));
    let known = ["a/Chart.yaml interrupted: no-program", "b/kustomization.yaml interrupted: no-program"];
    assert_eq!(render(&[chart, other], Some(Ok("v1.36.0"))).unwrap(), found(&known, true));
}

/// Returns how often the files of a revision are read to render a root with a program that cannot
/// be started.
fn reads_of_render(files: &MemoryTree, folder: &str, form: RootForm) -> usize {
    let renderer = renderer(MemorySupply::default());
    let root = RenderRoot { folder: folder.into(), form };
    let parsed = &mut ParsedFiles::default();
    let closure = renderer.find_closure(&root, "", files, parsed, PinPolicy::Strict).unwrap();
    let installed = |program: &RenderProgram| {
        let (path, version) = ("/nonexistent".into(), ProgramVersion(5, 0, 0));
        (*program, Ok(InstalledProgram { program: *program, path, version, digest: [0; 32] }))
    };
    let programs = closure.programs().iter().map(installed).collect();
    let job = judge(root, "", closure.into(), &programs, None, &HashMap::new()).ok().unwrap();
    let before = files.reads();
    let run = own_thread::worker_runtime().unwrap().block_on(renderer.render_root(&job, files));
    assert!(matches!(run, Err(RenderError::Sandbox(_))), "{run:?}");
    files.reads() - before
}

#[test]
fn a_render_reads_all_files_of_its_root_at_once() {
    let mut files = MemoryTree::new();
    for number in 0..40 {
        let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a{number}}}}}");
        files = files.file(&format!("a/{number}.yaml"), &map);
        files = files.file(&format!("chart/templates/{number}.yaml"), &map);
    }
    let names: Vec<String> = (0..40).map(|number| format!("{number}.yaml")).collect();
    let resources = format!("resources: [{}]\n", names.join(", "));
    let chart = "apiVersion: v2\nname: chart\nversion: 1.0.0\n";
    let files = files.file("a/kustomization.yaml", resources).file("chart/Chart.yaml", chart);
    for (folder, form) in [("a", RootForm::Kustomize), ("chart", RootForm::Helm)] {
        assert_eq!(reads_of_render(&files, folder, form), 1, "{folder}");
    }
}

#[test]
fn a_root_that_ran_out_of_time_is_not_tried_again_with_each_commit() {
    let check = |attempt: RenderAttempt, outcome: &RootOutcome, expected: bool| {
        assert_eq!(attempt.can_keep(outcome), expected, "{attempt:?} {outcome:?}");
    };
    let interrupted =
        |code| RootOutcome::Interrupted(vec![Diagnostic::file_error("apps/web", code, String::new())]);
    let refused = RootOutcome::Refused(vec![Diagnostic::file_error("apps/web", "render-failed", "")]);
    let [stopped, postponed, without_program] =
        [RENDER_STOPPED, RENDER_POSTPONED, "no-program"].map(interrupted);
    for (attempt, kept) in [
        (RenderAttempt::Commit, [true, false, false]),
        (RenderAttempt::Rest, [true, false, true]),
        (RenderAttempt::Retry, [false, false, false]),
    ] {
        for (outcome, kept) in [&stopped, &postponed, &without_program].into_iter().zip(kept) {
            check(attempt, outcome, kept);
        }
        check(attempt, &refused, true);
    }
}

#[test]
fn a_file_of_values_is_no_manifest_unless_it_is_one() {
    let check = |chart: Option<&str>, values: &[&str], expected: &[&str]| {
        let texts = [
            ("prod.yaml", "replicas: 3\n"),
            ("broken.yaml", "replicas: [\n"),
            ("own.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}"),
            ("other.yaml", "replicas: 4\n"),
        ];
        let mut files = MemoryTree::new();
        let mut raw = snapshot(&chart.map(|file| (file, "helm-chart")).into_iter().collect::<Vec<_>>());
        for (path, text) in texts {
            files = files.file(path, text);
            let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
            raw.files.push(SnapshotFile { path: path.into(), blob, size, origin: None });
        }
        if let Some(chart) = chart {
            files = files.file(chart, "apiVersion: v2\nname: a\nversion: 1.0.0\n");
        }
        let releases = ReleaseSettings {
            values: values.iter().map(|&name| name.to_owned()).collect(),
            ..ReleaseSettings::default()
        };
        let renderer = renderer(MemorySupply::default()).with_releases(releases);
        let done = renderer.render_files(raw, "", &files, &ClusterFacts::NotQueried).unwrap();
        let left: Vec<&str> = done.plain.files.iter().map(|file| &*file.path).collect();
        assert_eq!(left, expected, "{chart:?} {values:?}");
    };
    let all = ["prod.yaml", "broken.yaml", "own.yaml", "other.yaml"];
    check(None, &["prod.yaml"], &all);
    check(Some("web/Chart.yaml"), &[], &all);
    check(Some("web/Chart.yaml"), &["prod.yaml"], &["broken.yaml", "own.yaml", "other.yaml"]);
    check(Some("web/Chart.yaml"), &["./prod.yaml", "broken.yaml", "own.yaml"], &["own.yaml", "other.yaml"]);
    check(
        Some("web/Chart.yaml"),
        &["x/../other.yaml", "../prod.yaml"],
        &["prod.yaml", "broken.yaml", "own.yaml"],
    );
}
