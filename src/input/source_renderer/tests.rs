//! Roots that cannot be rendered.

use super::*;
use crate::config::RendererConfig;
use crate::input::MemoryTree;
use crate::input::memory_supply::MemorySupply;
use crate::object::Revision;
use crate::source::{KnownFacts, ServedVersions};

const SERVER: &str = "repository: 'https://charts.example.org'";

fn snapshot(files: &[(&str, &'static str)]) -> Snapshot {
    let refused = files.iter().map(|(file, code)| Diagnostic::file_error(*file, code, ""));
    Snapshot {
        revision: Revision::new("0"),
        files: Vec::new(),
        refused: refused.collect(),
        failed_roots: Vec::new(),
    }
}

/// A renderer where there is no program.
fn renderer(supply: MemorySupply) -> SourceRenderer {
    let host = RenderHost::new(&RendererConfig::default(), "".into(), std::env::temp_dir());
    let decrypter = Arc::new(Decrypter::new(Vec::new(), None));
    let releases = ReleaseSettings { namespace: "prod".to_owned(), ..ReleaseSettings::default() };
    SourceRenderer::new(host.into(), RenderMode::Auto, decrypter, ChartFetcher::without_servers())
        .with_releases(releases)
        .with_supply(Arc::new(supply))
}

fn words(rendered: &RenderedSnapshot) -> Vec<String> {
    let told = rendered.roots.iter().map(|root| match &root.outcome {
        RootOutcome::Rendered(_) => format!("{} rendered", root.path),
        RootOutcome::Refused(found) => format!("{} refused: {}", root.path, found[0].message),
        RootOutcome::Interrupted(found) => format!("{} interrupted: {}", root.path, found[0].code),
    });
    told.collect()
}

/// The outcomes of two charts, of which one has a part from a server, where there is no helm.
fn outcomes(supply: MemorySupply, version: &str) -> Vec<String> {
    let chart = |name: &str, rest: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n{rest}");
    let part = format!("dependencies: [{{name: redis, version: {version}, {SERVER}}}]\n");
    let files =
        MemoryTree::new().file("a/Chart.yaml", chart("a", &part)).file("b/Chart.yaml", chart("b", ""));
    let raw = snapshot(&[("a/Chart.yaml", "helm-chart"), ("b/Chart.yaml", "helm-chart")]);
    words(&renderer(supply).render_files(raw, "", &files, &ClusterFacts::Unasked).unwrap())
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
        let facts = ClusterFacts::Asked(KnownFacts { versions });
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
