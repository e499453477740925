//! Roots that failed: when they are tried again.

use super::*;

/// Returns the messages of what keeps the roots of a revision from being rendered, as it is stored.
fn stored_failures(source: &Source, revision: &Revision) -> Vec<String> {
    let snapshot = source.reader().snapshot(revision).unwrap();
    snapshot.refused.iter().map(|found| found.message.clone()).collect()
}

#[tokio::test]
async fn a_root_that_failed_is_tried_again_where_its_files_changed_and_by_a_new_start() {
    let folder = tempfile::tempdir().unwrap();
    let (work, state) = (folder.path().join("work"), folder.path().join("state"));
    let map = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
    commit(&work, &[("a/kustomization.yaml", "resources: []\n"), ("other.yaml", &map("a"))]);
    let location = ResolvedLocation::Git(GitLocation::new(work.to_str().unwrap()));
    let open = |renderer: &Arc<SourceRenderer>| {
        let settings = SourceSettings { renderer: Some(renderer.clone()), ..SourceSettings::default() };
        Source::open_with("test", &location, &state, settings).unwrap()
    };
    let first = Arc::new(renderer(MemorySupply::default()));
    let mut source = open(&first);
    source.observe().await.unwrap();
    let key = || match &first.state.lock().unwrap().last.as_ref().unwrap().roots["a"] {
        RememberedRoot::Failed(failed) => Some(failed.root.key),
        RememberedRoot::Rendered(_) => None,
    };
    // There is no program here: this is what one that fails leaves behind.
    let found = Diagnostic::file_error("a/kustomization.yaml", "render-failed", "kustomize fails: x");
    let failed = RenderedRoot::new("a/kustomization.yaml".into(), [7; 32], RootOutcome::Refused(vec![found]));
    let remembered = || RememberedRoot::new(&failed, vec!["a".to_owned()]);
    first.state.lock().unwrap().last.as_mut().unwrap().roots.insert("a".into(), remembered());

    commit(&work, &[("other.yaml", &map("b"))]);
    let revision = source.observe().await.unwrap().revision;
    assert_eq!(
        (stored_failures(&source, &revision), key()),
        (vec!["kustomize fails: x".into()], Some([7; 32]))
    );
    drop(source);

    // The store says so too, until the next start tries it again.
    let second = Arc::new(renderer(MemorySupply::default()));
    let mut source = open(&second);
    assert_eq!(stored_failures(&source, &revision), ["kustomize fails: x"]);
    source.observe().await.unwrap();
    let tried = stored_failures(&source, &revision);
    assert!(tried.len() == 1 && !tried[0].contains("kustomize fails: x"), "{tried:?}");

    second.state.lock().unwrap().last.as_mut().unwrap().roots.insert("a".into(), remembered());
    commit(&work, &[("a/kustomization.yaml", "namePrefix: a-\nresources: []\n")]);
    let revision = source.observe().await.unwrap().revision;
    assert_eq!(stored_failures(&source, &revision), tried);
}

// Nothing of the base names the file, so that the closure of the root is the same. But whoever
// moved an object there may have forgotten that.
#[tokio::test]
async fn a_root_that_failed_may_want_what_is_moved_into_a_base_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (work, state) = (folder.path().join("work"), folder.path().join("state"));
    let moved = "{apiVersion: v1, kind: ConfigMap, metadata: {name: moved}}";
    commit(
        &work,
        &[
            ("a/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "resources: [own.yaml]\n"),
            ("base/own.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}"),
            ("moved.yaml", moved),
        ],
    );
    let location = ResolvedLocation::Git(GitLocation::new(work.to_str().unwrap()));
    let renderer = Arc::new(renderer(MemorySupply::default()));
    let settings = SourceSettings { renderer: Some(renderer.clone()), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &location, &state, settings).unwrap();
    source.observe().await.unwrap();
    let is_possible = |name: &str| {
        let state = renderer.state.lock().unwrap();
        match &state.last.as_ref().unwrap().roots["a"] {
            RememberedRoot::Failed(failed) => failed.root.names.can_be_named(name),
            RememberedRoot::Rendered(_) => panic!("it is rendered"),
        }
    };
    assert!(!is_possible("moved"));
    // There is no program here: this is what one that fails leaves behind.
    {
        let mut state = renderer.state.lock().unwrap();
        let remembered = state.last.as_mut().unwrap().roots.get_mut("a").unwrap();
        let RememberedRoot::Failed(failed) = remembered else { panic!("it is rendered") };
        let found = Diagnostic::file_error("a/kustomization.yaml", "render-failed", "kustomize fails: x");
        failed.root.outcome = RootOutcome::Refused(vec![found]);
    }
    commit(&work, &[("moved.yaml", ""), ("base/moved.yaml", moved)]);
    source.observe().await.unwrap();
    assert!(is_possible("moved"));
}

#[test]
fn what_rendered_is_taken_by_its_key_and_what_failed_is_run_again() {
    let files = MemoryTree::new().file("a/kustomization.yaml", "resources: []\n");
    let renderer = renderer(MemorySupply::default());
    let root = || RenderRoot { folder: "a".into(), form: RootForm::Kustomize };
    let parsed = &mut ParsedFiles::default();
    let closure = Arc::new(renderer.find_closure(&root(), "", &files, parsed, PinPolicy::Strict).unwrap());
    let installed = InstalledProgram {
        program: RenderProgram::Kustomize,
        path: "/nonexistent".into(),
        version: ProgramVersion(5, 0, 0),
        digest: [0; 32],
    };
    let programs: FoundPrograms = [(RenderProgram::Kustomize, Ok(installed))].into();
    let plan = |known: &HashMap<RootKey, RenderedRoot>| {
        plan_root(root(), "", closure.clone(), &programs, None, known).map(|job| (job.path, job.key))
    };
    let (path, key) = plan(&HashMap::new()).ok().unwrap();
    let is_run =
        |outcome: RootOutcome| plan(&[(key, RenderedRoot::new(path.clone(), key, outcome))].into()).is_ok();
    assert!(!is_run(RootOutcome::Rendered([].into())));
    assert!(is_run(RootOutcome::Refused(Vec::new())) && is_run(RootOutcome::Interrupted(Vec::new())));
}
