//! Roots that cannot be rendered.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::config::{
    RendererConfig, VariableHolder, VariableHolderKind, VariableHolderNeed, VariableSecrecy,
};
use crate::input::memory_supply::MemorySupply;
use crate::input::render_pass::RENDER_POSTPONED;
use crate::input::root_job::RENDER_STOPPED;
use crate::input::roots::RootForm;
use crate::input::sandbox::ProgramVersion;
use crate::input::{MemoryTree, ReadFolder, render_folders};
use crate::object::{GroupKind, Revision};
use crate::source::{
    BlobId, GitLocation, KnownClusterFacts, ObjectFact, ResolvedLocation, ServedVersions, Source,
    SourceSettings, read_disk,
};

mod failures;

const SERVER: &str = "repository: 'https://charts.example.org'";

fn snapshot(files: &[(&str, &'static str)]) -> Snapshot {
    let refused = files.iter().map(|(file, code)| Diagnostic::file_error(*file, code, ""));
    Snapshot::of_files(Revision::new("0"), Vec::new(), refused.collect())
}

/// Returns a renderer where there is no program.
fn renderer(supply: MemorySupply) -> SourceRenderer {
    let host = RenderHost::new(&RendererConfig::default(), "".into(), std::env::temp_dir());
    let decrypter = Arc::new(Decrypter::new(Vec::new(), None));
    let releases = HelmReleaseSettings { namespace: "prod".to_owned(), ..HelmReleaseSettings::default() };
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

/// Returns a required object in the namespace `shop`, with the secrecy that its kind has.
fn variable_holder(kind: VariableHolderKind, name: &str) -> VariableHolder {
    let secrecy = match kind {
        VariableHolderKind::ConfigMap => VariableSecrecy::Open,
        VariableHolderKind::Secret => VariableSecrecy::Secret,
    };
    let (namespace, name) = ("shop".parse().unwrap(), name.parse().unwrap());
    VariableHolder { kind, namespace, name, need: VariableHolderNeed::Required, secrecy }
}

/// Returns what comes of a plain file that names a variable, by the facts of a cluster.
fn substituted(holder: VariableHolder, facts: &ClusterFacts) -> Result<Vec<String>, BTreeSet<ObjectId>> {
    let config = SubstitutionConfig { values: BTreeMap::new(), from: vec![holder] };
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
    let id =
        |kind: VariableHolderKind| ObjectId::new(&GroupKind::new("", kind.as_str()), Some("shop"), "vars");
    let asked = |kind: VariableHolderKind, fact: Option<ObjectFact>| {
        let objects = fact.map(|fact| (id(kind), fact)).into_iter().collect();
        ClusterFacts::Queried(KnownClusterFacts { versions: None, objects })
    };
    let found = |value: &str| ObjectFact::Found(json!({ "data": { "ZONE": value } }).into());
    let zone = |zone: &str| {
        let object = format!(r#"{{"apiVersion":"v1","data":{{"zone":"{zone}"}}"#);
        move |outcomes: Vec<String>| {
            assert!(outcomes[0] == "a.yaml rendered" && outcomes[1].starts_with(&object), "{outcomes:?}");
        }
    };
    let refused = |why: &str| {
        let expected = format!("a.yaml refused: substituteFrom: {why}");
        move |outcomes: Vec<String>| assert_eq!(outcomes, [expected])
    };
    // A Secret whose values are no secrets is as a ConfigMap.
    let holder = |kind, need| {
        let secrecy = VariableSecrecy::Open;
        VariableHolder { need, secrecy, ..variable_holder(kind, "vars") }
    };
    for (kind, value, own) in [(ConfigMap, "b", "plain manifest"), (Secret, "Yg==", "manifest")] {
        for need in [Required, Optional] {
            let facts = |fact| asked(kind, fact);
            assert_eq!(substituted(holder(kind, need), &facts(None)), Err([id(kind)].into()));
            zone("b")(substituted(holder(kind, need), &facts(Some(found(value)))).unwrap());
            let unreadable = facts(Some(ObjectFact::Unreadable("no rights".into())));
            refused(&format!("{kind} shop/vars cannot be read: no rights"))(
                substituted(holder(kind, need), &unreadable).unwrap(),
            );
        }
        let absent = asked(kind, Some(ObjectFact::Absent));
        zone("none")(substituted(holder(kind, Optional), &absent).unwrap());
        refused(&format!("neither the source nor the cluster has the {kind} shop/vars"))(
            substituted(holder(kind, Required), &absent).unwrap(),
        );
        refused(&format!("no {own} of the source has the {kind} shop/vars"))(
            substituted(holder(kind, Required), &ClusterFacts::NotQueried).unwrap(),
        );
    }
    // Rendered objects are kept on disk, so that no cluster is asked for secrets.
    let secret = |need| VariableHolder { need, ..variable_holder(Secret, "vars") };
    for facts in [asked(Secret, None), asked(Secret, Some(found("Yg==")))] {
        refused("no manifest of the source has the Secret shop/vars")(
            substituted(secret(Required), &facts).unwrap(),
        );
        zone("none")(substituted(secret(Optional), &facts).unwrap());
    }
}

#[test]
fn an_object_that_gives_no_variables_holds_back_only_what_may_name_them() {
    let holder = |name: &str| variable_holder(VariableHolderKind::ConfigMap, name);
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
    let holder = variable_holder(VariableHolderKind::Secret, "vars");
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
            Arc::new(ServedVersions { server, apis: ["v1".to_owned()].into(), unready: None })
        });
        let files = MemoryTree::new()
            .file("a/Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n")
            .file("b/kustomization.yaml", "resources: []\n");
        let facts = ClusterFacts::Queried(KnownClusterFacts { versions, ..KnownClusterFacts::default() });
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

#[test]
fn a_folder_with_a_chart_has_the_kinds_that_the_server_listed_for_it() {
    let check = |file: &str, text: &str, facts: &ClusterFacts, expected: Option<[&str; 2]>| {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a").join(file), text).unwrap();
        let disk = Arc::new(read_disk(folder.path()).unwrap());
        let folders = [ReadFolder::at_start(folder.path())];
        let rendered = render_folders(&disk, &folders, &renderer(MemorySupply::default()), facts).unwrap();
        let expected = expected.map(|kinds| Arc::new(BTreeSet::from(kinds.map(GroupKind::parse))));
        assert_eq!(rendered.rendered_kinds, expected, "{file} {facts:?}");
    };
    let apis = ["apps/v1", "apps/v1/Deployment", "v1", "v1/Pod"].map(str::to_owned).into();
    let versions = ServedVersions { server: Ok("v1.36.0".into()), apis, unready: None };
    let known = KnownClusterFacts { versions: Some(versions.into()), ..KnownClusterFacts::default() };
    let (facts, chart) = (ClusterFacts::Queried(known), "apiVersion: v2\nname: a\nversion: 1.0.0\n");
    check("Chart.yaml", chart, &facts, Some(["Deployment.apps", "Pod"]));
    check("Chart.yaml", chart, &ClusterFacts::NotQueried, None);
    check("kustomization.yaml", "resources: []\n", &facts, None);
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
    let job = plan_root(root, "", closure.into(), &programs, None, &HashMap::new()).ok().unwrap();
    let before = files.reads();
    let run = ThreadRuntime::start().unwrap().block_on(renderer.render_root(&job, files));
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

/// Commits these files besides those that are there; an empty text removes one.
fn commit(folder: &std::path::Path, files: &[(&str, &str)]) {
    let repository = git2::Repository::init(folder).unwrap();
    let mut index = repository.index().unwrap();
    for (path, text) in files {
        let file = folder.join(path);
        if text.is_empty() {
            std::fs::remove_file(file).unwrap();
            index.remove_path(path.as_ref()).unwrap();
        } else {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
            index.add_path(path.as_ref()).unwrap();
        }
    }
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let person = git2::Signature::now("A Person", "person@example.com").unwrap();
    let parent = repository.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<_> = parent.iter().collect();
    repository.commit(Some("HEAD"), &person, &person, "a commit", &tree, &parents).unwrap();
}

#[tokio::test]
async fn nothing_stays_of_contents_and_roots_that_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (work, state) = (folder.path().join("work"), folder.path().join("state"));
    commit(
        &work,
        &[
            ("a/kustomization.yaml", "namePrefix: a-\nresources: [../base]\n"),
            ("b/kustomization.yaml", "namePrefix: b-\nresources: [../base]\n"),
            ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("base/kustomization.yaml", "transformers: [plugin.yaml]\n"),
            ("base/plugin.yaml", "apiVersion: builtin\nkind: PrefixTransformer\n"),
        ],
    );
    let renderer = Arc::new(renderer(MemorySupply::default()));
    let settings = SourceSettings { renderer: Some(renderer.clone()), ..SourceSettings::default() };
    let location = ResolvedLocation::Git(GitLocation::new(work.to_str().unwrap()));
    let mut source = Source::open_with("test", &location, &state, settings).unwrap();
    let sizes = || {
        let state = renderer.state.lock().unwrap();
        (state.parsed.len(), state.last.as_ref().map(|last| last.index.size()))
    };
    source.observe().await.unwrap();
    let first = sizes();
    assert_eq!(first.0, 4);
    for number in 0..20 {
        commit(
            &work,
            &[("a/kustomization.yaml", &format!("namePrefix: a{number:02}-\nresources: [../base]\n"))],
        );
        source.observe().await.unwrap();
        assert_eq!(sizes(), first, "{number}");
    }
    commit(&work, &[("b/kustomization.yaml", ""), ("c/Chart.yaml", "")]);
    source.observe().await.unwrap();
    let left = sizes();
    assert_eq!(left.0, 3);
    // The same as if they had never been there.
    *renderer.state.lock().unwrap() = RendererState::default();
    commit(&work, &[("a/kustomization.yaml", "namePrefix: a-\nresources: [../base]\n")]);
    source.observe().await.unwrap();
    assert_eq!(sizes(), left);
}

#[tokio::test]
async fn a_revision_is_rendered_though_the_store_has_lost_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (work, state) = (folder.path().join("work"), folder.path().join("state"));
    commit(&work, &[("a/kustomization.yaml", "resources: []\n")]);
    let renderer = Arc::new(renderer(MemorySupply::default()));
    let settings = SourceSettings { renderer: Some(renderer), ..SourceSettings::default() };
    let location = ResolvedLocation::Git(GitLocation::new(work.to_str().unwrap()));
    let mut source = Source::open_with("test", &location, &state, settings).unwrap();
    let first = source.observe().await.unwrap().revision;
    fs::remove_dir_all(&state).unwrap();
    commit(&work, &[("a/kustomization.yaml", "resources: []\nnamePrefix: a-\n")]);
    assert_ne!(source.observe().await.unwrap().revision, first);
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
        let releases = HelmReleaseSettings {
            values: values.iter().map(|&name| name.to_owned()).collect(),
            ..HelmReleaseSettings::default()
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
        &["x/../other.yaml", "../../broken.yaml"],
        &["prod.yaml", "broken.yaml", "own.yaml"],
    );
    // As seen from the chart.
    check(Some("web/Chart.yaml"), &["../prod.yaml"], &["broken.yaml", "own.yaml", "other.yaml"]);
}

const B: &str = "web/templates/b.yaml";

/// Returns the findings that keep the roots of a followed folder from being rendered, where there
/// is no program.
fn followed(files: &[(&str, &str)], make: &dyn Fn(&Path)) -> Vec<String> {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    make(root.path());
    let renderer: Arc<dyn SnapshotRenderer> = Arc::new(renderer(MemorySupply::default()));
    let pause = Duration::from_millis(1);
    let settings = SourceSettings { pause, renderer: Some(renderer), ..SourceSettings::default() };
    let location = ResolvedLocation::Directory(root.path().to_owned());
    let mut source = Source::open_with("test", &location, state.path(), settings).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let revision = runtime.block_on(source.observe()).unwrap().revision;
    let snapshot = source.reader().snapshot(&revision).unwrap();
    let failed = snapshot.failed_roots.iter().map(|root| format!("no {}", root.path));
    let found = snapshot.refused.iter().map(|found| format!("{} {}", found.code, found.origin.file));
    failed.chain(found).collect()
}

/// Makes something in a folder with roots, and compares what keeps them from being rendered.
#[track_caller]
fn check_followed(files: &[(&str, &str)], make: &dyn Fn(&Path), expected: &[&str]) {
    assert_eq!(followed(files, make), expected);
}

fn link(path: &'static str, target: &'static str) -> impl Fn(&Path) {
    move |root| symlink(target, root.join(path)).unwrap()
}

fn pipe(path: &'static str) -> impl Fn(&Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    move |root| mknodat(CWD, root.join(path), FileType::Fifo, Mode::RUSR, 0).unwrap()
}

fn large(path: &'static str) -> impl Fn(&Path) {
    move |root| fs::File::create(root.join(path)).unwrap().set_len(17 << 20).unwrap()
}

// Else what is left out would be deleted.
#[test]
fn a_chart_of_a_followed_folder_is_not_rendered_without_what_cannot_be_read() {
    let files = [
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/a.yaml", "a"),
        ("shared/b.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"),
    ];
    let check = |make: &dyn Fn(&Path), expected: &[&str]| check_followed(&files, make, expected);
    let is_rendered = &["no web/Chart.yaml", "no-program web/Chart.yaml"];
    check(&|_| {}, is_rendered);
    check(&link(B, "../../shared/b.yaml"), is_rendered);
    check(&|root| fs::write(root.join("web/.helmignore"), "*.bin\n").unwrap(), is_rendered);
    let refused = |code: &str| vec!["no web/Chart.yaml".to_owned(), format!("{code} {B}")];
    let check = |make: &dyn Fn(&Path), code| assert_eq!(followed(&files, make), refused(code));
    check(&link(B, "../../../shared/b.yaml"), "out-of-tree");
    check(&link(B, "/etc/hostname"), "out-of-tree");
    check(&link(B, "no.yaml"), "missing-file");
    check(&large(B), "too-large");
    check(&pipe(B), "not-a-file");
    let nameless = |root: &Path| {
        fs::write(root.join("web/templates").join(OsStr::from_bytes(b"b\xff.yaml")), "b").unwrap();
    };
    check_followed(&files, &nameless, &["no web/Chart.yaml", "unreadable web/templates/b\u{fffd}.yaml"]);
    let ignored = |root: &Path| {
        nameless(root);
        fs::write(root.join("web/.helmignore"), "b*.yaml\n").unwrap();
    };
    check_followed(&files, &ignored, is_rendered);
}

#[test]
fn a_kustomization_of_a_followed_folder_is_not_rendered_without_what_cannot_be_read() {
    let files = |kustomization| {
        [
            ("web/kustomization.yaml", kustomization),
            ("web/charts/app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
            ("web/charts/app/values.yaml", "{}"),
            ("web/charts/app/templates/a.yaml", "a"),
            ("shared/b.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"),
        ]
    };
    let check = |kustomization, make: &dyn Fn(&Path), found: &str| {
        check_followed(&files(kustomization), make, &["no web/kustomization.yaml", found]);
    };
    let no_program = "no-program web/kustomization.yaml";
    let chart = "helmCharts: [{name: app, releaseName: a}]\n";
    let b = "web/charts/app/templates/b.yaml";
    check(chart, &|_| {}, no_program);
    check(chart, &link(b, "../../../../shared/b.yaml"), no_program);
    check(chart, &large(b), "too-large web/charts/app/templates/b.yaml");
    check(chart, &pipe(b), "not-a-file web/charts/app/templates/b.yaml");
    check(chart, &link(b, "/etc/hostname"), "out-of-tree web/charts/app/templates/b.yaml");
    let values = "helmCharts: [{name: app, releaseName: a, additionalValuesFiles: [more.yaml]}]\n";
    check(values, &link("web/more.yaml", "charts/app/values.yaml"), no_program);
    check(values, &large("web/more.yaml"), "too-large web/kustomization.yaml");
    let resource = "resources: [b.yaml]\n";
    check(resource, &link("web/b.yaml", "../shared/b.yaml"), no_program);
    check(resource, &pipe("web/b.yaml"), "not-a-file web/kustomization.yaml");
    check(resource, &link("web/b.yaml", "../../shared/b.yaml"), "out-of-tree web/kustomization.yaml");
}
