//! Roots that cannot be rendered.

use super::*;
use crate::config::RendererConfig;
use crate::input::MemoryTree;
use crate::input::memory_supply::MemorySupply;
use crate::object::Revision;

const SERVER: &str = "repository: 'https://charts.example.org'";

/// The outcomes of two charts, of which one has a part from a server, where there is no helm.
fn outcomes(supply: MemorySupply, version: &str) -> Vec<String> {
    let chart = |name: &str, rest: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n{rest}");
    let part = format!("dependencies: [{{name: redis, version: {version}, {SERVER}}}]\n");
    let files =
        MemoryTree::new().file("a/Chart.yaml", chart("a", &part)).file("b/Chart.yaml", chart("b", ""));
    let refused =
        ["a", "b"].map(|folder| Diagnostic::file_error(format!("{folder}/Chart.yaml"), "helm-chart", ""));
    let raw = Snapshot {
        revision: Revision::new("0"),
        files: Vec::new(),
        refused: refused.into(),
        failed_roots: Vec::new(),
    };
    let host = RenderHost::new(&RendererConfig::default(), "".into(), std::env::temp_dir());
    let decrypter = Arc::new(Decrypter::new(Vec::new(), None));
    let releases = ReleaseSettings { namespace: "prod".to_owned(), ..ReleaseSettings::default() };
    let renderer =
        SourceRenderer::new(host.into(), RenderMode::Auto, decrypter, ChartFetcher::without_servers())
            .with_releases(releases);
    let renderer = renderer.with_supply(Arc::new(supply));
    let outcome = renderer.render_files(raw, "", &files).unwrap();
    let told = outcome.roots.iter().map(|root| match &root.outcome {
        RootOutcome::Rendered(_) => format!("{} rendered", root.path),
        RootOutcome::Refused(found) => format!("{} refused: {}", root.path, found[0].message),
        RootOutcome::Interrupted(found) => format!("{} interrupted: {}", root.path, found[0].code),
    });
    told.collect()
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
