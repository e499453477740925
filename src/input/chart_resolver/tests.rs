//! Charts of servers in memory, and what becomes of those who ask for them.

use super::*;
use crate::input::helm::ValuesSource;
use crate::input::memory_supply::MemorySupply;
use crate::input::{MemoryTree, kustomize::Closure};
use crate::source::FileDefect;

const REDIS: &str = "- {name: redis, version: 7.1.0, repository: 'https://charts.example.org'}\n";

fn web(dependencies: &str) -> MemoryTree {
    let chart = format!("apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n{dependencies}");
    MemoryTree::new().file("apps/web/Chart.yaml", chart)
}

fn servers() -> MemorySupply {
    MemorySupply::default()
        .chart("https://charts.example.org", "redis", "7.1.0", &[("templates/a.yaml", "kind: A")])
        .chart("https://charts.example.org", "redis", "7.2.0", &[("templates/a.yaml", "kind: B")])
        .chart("oci://example.org/charts", "common", "v2.0.0", &[])
}

struct ChartTraceResult {
    files: Vec<String>,
    /// The archives that helm gets.
    archives: Vec<String>,
    found: Vec<String>,
    interruptions: Vec<String>,
    used: Vec<String>,
}

fn traced(tree: &MemoryTree, supply: &MemorySupply, policy: PinPolicy) -> ChartTraceResult {
    let options = HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
    let mut resolver = ChartResolver::new(tree, "apps/web", supply, policy);
    let chart = resolver.find_chart_closure("apps/web", "apps", &options).unwrap();
    let archives = chart.archives.into_values().collect();
    let mut closure: Closure = chart.closure;
    let charts = resolver.into_charts(&mut closure);
    let line = |found: &Diagnostic| format!("{} {}: {}", found.code, found.origin, found.message);
    ChartTraceResult {
        archives,
        files: closure.files.paths().map(ToString::to_string).collect(),
        found: closure.diagnostics.iter().map(line).collect(),
        interruptions: charts.interruptions.iter().map(line).collect(),
        used: charts.used.iter().map(|chart| format!("{} {}", chart.request_text(), chart.version)).collect(),
    }
}

#[test]
fn charts_that_are_too_large_together_are_refused() {
    let other = "- {name: common, version: v2.0.0, repository: 'oci://example.org/charts'}\n";
    let tree = web(&format!("{REDIS}{other}"));
    let found = |bytes: u64| {
        let supply = servers();
        let mut resolver = ChartResolver::new(&tree, "apps/web", &supply, PinPolicy::Strict);
        resolver.bytes_left = bytes;
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let mut closure = resolver.find_chart_closure("apps/web", "apps", &options).unwrap().closure;
        resolver.into_charts(&mut closure);
        let found = closure.diagnostics.iter();
        found.map(|found| format!("{} {}: {}", found.code, found.origin, found.message)).collect::<Vec<_>>()
    };
    assert_eq!(found(1_000), [""; 0]);
    let words = "the charts of servers that this root uses are too large together";
    assert_eq!(found(10), [format!("too-large apps/web/Chart.yaml:6: {words}")]);
}

#[test]
fn a_chart_that_is_missing_is_laid_beside_the_others() {
    let tree = web(&format!("{REDIS}- {{name: local, version: 1.0.0}}\n"))
        .file("apps/web/charts/local/Chart.yaml", "apiVersion: v2\nname: local\nversion: 1.0.0\n");
    let traced = traced(&tree, &servers(), PinPolicy::Strict);
    assert_eq!(traced.found, [""; 0]);
    assert_eq!(
        traced.files,
        [
            "apps/web/Chart.yaml",
            "apps/web/charts/local/Chart.yaml",
            "apps/web/charts/redis/Chart.yaml",
            "apps/web/charts/redis/templates/a.yaml",
        ]
    );
    assert_eq!(traced.used, ["7.1.0 7.1.0"]);
}

#[test]
fn a_fetched_chart_brings_its_own_and_helm_does_without_what_it_lacks() {
    let dependency = "- {name: common, version: v2.0.0, repository: 'oci://example.org/charts'}";
    let text = format!("apiVersion: v2\nname: redis\nversion: 7.1.0\ndependencies:\n{dependency}\n");
    let own = ("charts/common/Chart.yaml", "apiVersion: v2\nname: common\nversion: v2.0.0\n");
    let check = |files: &[(&str, &str)], has_common: bool| {
        let supply = servers().chart("https://charts.example.org", "redis", "7.1.0", files);
        let traced = traced(&web(REDIS), &supply, PinPolicy::Strict);
        assert_eq!(traced.found, [""; 0]);
        let common = "apps/web/charts/redis/charts/common/Chart.yaml";
        assert_eq!(traced.files.iter().any(|file| file == common), has_common);
        assert_eq!(traced.used, ["7.1.0 7.1.0"]);
    };
    check(&[("Chart.yaml", &text), own], true);
    check(&[("Chart.yaml", &text)], false);
}

#[test]
fn one_chart_under_two_names_is_fetched_once_and_two_versions_lie_side_by_side() {
    let twice = format!(
        "{REDIS}- {{name: redis, alias: cache, version: 7.1.0, repository: 'https://charts.example.org'}}\n"
    );
    let supply = servers();
    let traced_twice = traced(&web(&twice), &supply, PinPolicy::Strict);
    assert_eq!((traced_twice.found, supply.fetched()), (vec![], vec!["redis 7.1.0".to_owned()]));
    let two = format!(
        "{REDIS}- {{name: redis, alias: cache, version: 7.2.0, repository: 'https://charts.example.org'}}\n"
    );
    let traced_two = traced(&web(&two), &servers(), PinPolicy::Strict);
    assert_eq!(traced_two.found, [""; 0]);
    let folders: Vec<_> =
        traced_two.files.iter().filter(|file| file.ends_with("redis-7.2.0/Chart.yaml")).collect();
    assert_eq!(folders, ["apps/web/charts/redis-7.2.0/Chart.yaml"]);
}

#[test]
fn what_cannot_be_had_is_reported_at_the_line_that_asks_for_it() {
    let check = |dependency: &str, expected: &[&str]| {
        let traced = traced(&web(&format!("- {{{dependency}}}\n")), &servers(), PinPolicy::Strict);
        assert_eq!(traced.found, expected, "{dependency}");
    };
    let at = "apps/web/Chart.yaml:5";
    check(
        "name: redis, version: 9.0.0, repository: 'https://charts.example.org'",
        &[&format!("chart-not-found {at}: there is no chart redis 9.0.0")],
    );
    check(
        "name: redis, version: 1.0.0",
        &[&format!("missing-dependency {at}: the chart redis 1.0.0, is not in charts/")],
    );
    check(
        "name: ../redis, version: 1.0.0, repository: 'https://charts.example.org'",
        &[&format!(
            "missing-dependency {at}: the chart ../redis 1.0.0, to be had from \
           https://charts.example.org, is not in charts/"
        )],
    );
    let ignored =
        traced(&web(REDIS).file("apps/web/.helmignore", "charts/\n"), &servers(), PinPolicy::Strict);
    assert_eq!(
        ignored.found,
        [format!("missing-dependency {at}: the chart redis was fetched, and helm does not see it")]
    );
}

/// Checks that the chart's `.helmignore` says nothing of a fetched chart, as of one in an archive.
#[test]
fn a_fetched_chart_is_an_archive_for_helm() {
    let tree = web(REDIS).file("apps/web/.helmignore", "a.yaml\n*.json\nredis/\n");
    let ignoring = traced(&tree, &servers(), PinPolicy::Strict);
    assert_eq!(ignoring.found, [""; 0]);
    assert!(ignoring.files.iter().any(|file| file == "apps/web/charts/redis/templates/a.yaml"));
    assert_eq!(ignoring.archives, ["apps/web/charts/redis-7.1.0.tgz"]);
    let unseen = "the chart redis was fetched, and helm does not see it";
    let archives = traced(&web(REDIS).file("apps/web/.helmignore", "*.tgz\n"), &servers(), PinPolicy::Strict);
    assert_eq!(archives.found, [format!("missing-dependency apps/web/Chart.yaml:5: {unseen}")]);
}

#[test]
fn two_charts_of_one_name_and_version_are_two_archives() {
    let (one, other) = ("https://charts.example.org", "oci://example.org/charts");
    let dependencies =
        format!("{REDIS}- {{name: redis, alias: cache, version: 7.1.0, repository: '{other}'}}\n");
    let check = |texts: [&str; 2], expected: &[&str]| {
        let [first, second] = texts.map(|text| [("templates/a.yaml", text)]);
        let supply = servers().chart(one, "redis", "7.1.0", &first).chart(other, "redis", "7.1.0", &second);
        let found = traced(&web(&dependencies), &supply, PinPolicy::Strict);
        assert_eq!(found.found, [""; 0]);
        assert_eq!(found.archives, expected);
    };
    let usual = "apps/web/charts/redis-7.1.0.tgz";
    check(["kind: A", "kind: B"], &[usual, "apps/web/charts/redis-7.1.0.fetched.tgz"]);
    check(["kind: A", "kind: A"], &[usual]);
}

#[test]
fn values_in_a_fetched_chart_are_refused() {
    let values = ["charts/redis/templates/a.yaml", "charts/redis/Chart.yaml"];
    for values in values.map(|path| ValuesSource::File(path.to_owned())) {
        let options = HelmOptions {
            release: "web".into(),
            namespace: "prod".into(),
            values: vec![values],
            ..HelmOptions::default()
        };
        let (tree, supply) = (web(REDIS), servers());
        let mut resolver = ChartResolver::new(&tree, "apps/web", &supply, PinPolicy::Strict);
        let chart = resolver.find_chart_closure("apps/web", "apps", &options).unwrap();
        let found: Vec<_> = chart.closure.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(found, ["missing-file"], "{options:?}");
    }
}

#[test]
fn a_missing_version_is_any_in_the_lock_too() {
    let any = "- {name: redis, version: '', repository: 'https://charts.example.org'}\n";
    let filled = traced(&web(any), &servers(), PinPolicy::Fill);
    assert_eq!((filled.found, filled.used), (vec![], vec!["* 7.2.0".to_owned()]));
    let lock = locked(&[(Some("*"), "7.1.0")], &servers());
    let strict = traced(&web(any).file("apps/web/rhumb.lock", lock), &servers(), PinPolicy::Strict);
    assert_eq!((strict.found, strict.used), (vec![], vec!["* 7.1.0".to_owned()]));
}

#[test]
fn a_lock_is_filled_with_the_digest_that_it_has_and_another_one_is_asked_for() {
    let lock = locked(&[(Some("~7"), "7.2.0")], &servers()).replace("7.2.0", "7.1.0");
    let tree = web(REDIS).file("apps/web/rhumb.lock", lock);
    let found = traced(&tree, &servers(), PinPolicy::Fill).found;
    assert_eq!(found, ["chart-changed apps/web/Chart.yaml:5: the chart redis 7.1.0 has another digest"]);
    let supply = servers();
    assert_eq!(traced(&tree, &supply, PinPolicy::Update).found, [""; 0]);
    assert_eq!(supply.fetched(), ["redis 7.1.0 as it is now"]);
}

#[test]
fn a_failure_that_passes_is_no_finding() {
    let traced = traced(&web(REDIS), &servers().without_network(), PinPolicy::Strict);
    assert_eq!(traced.found, [""; 0]);
    assert_eq!(traced.interruptions, ["chart-unreachable apps/web/Chart.yaml:5: the server does not answer"]);
}

fn locked(charts: &[(Option<&str>, &str)], supply: &MemorySupply) -> String {
    let chart = |(constraint, version): &(Option<&str>, &str)| LockedChart {
        repository: "https://charts.example.org".into(),
        name: "redis".into(),
        constraint: constraint.map(str::to_owned),
        version: (*version).to_owned(),
        digest: supply.digest("https://charts.example.org", "redis", version),
    };
    ChartLock::of(charts.iter().map(chart).collect()).to_text()
}

#[test]
fn the_lock_decides_which_version_a_range_means() {
    let range = "- {name: redis, version: ~7, repository: 'https://charts.example.org'}\n";
    let check = |dependency: &str, lock: Option<&str>, policy, used: &[&str], found: &[&str]| {
        let mut tree = web(dependency);
        if let Some(lock) = lock {
            tree = tree.file("apps/web/rhumb.lock", lock);
        }
        let traced = traced(&tree, &servers(), policy);
        assert_eq!(
            (traced.used, traced.found),
            (used.iter().map(ToString::to_string).collect(), found.iter().map(ToString::to_string).collect()),
            "{dependency} {lock:?} {policy:?}"
        );
    };
    let lock = locked(&[(Some("~7"), "7.1.0")], &servers());
    let not_locked = "chart-not-locked apps/web/Chart.yaml:5: the chart redis 7.1.0 from \
                      https://charts.example.org is not in apps/web/rhumb.lock";
    check(range, Some(&lock), PinPolicy::Strict, &["~7 7.1.0"], &[]);
    check(range, Some(&lock), PinPolicy::Fill, &["~7 7.1.0"], &[]);
    check(range, Some(&lock), PinPolicy::Update, &["~7 7.2.0"], &[]);
    check(range, None, PinPolicy::Fill, &["~7 7.2.0"], &[]);
    check(REDIS, None, PinPolicy::Fill, &["7.1.0 7.1.0"], &[]);
    check(REDIS, Some(&lock), PinPolicy::Strict, &[], &[not_locked]);
    check(REDIS, Some(&lock), PinPolicy::Fill, &["7.1.0 7.1.0"], &[]);
    check(range, Some("a: ["), PinPolicy::Fill, &["~7 7.2.0"], &[]);
    let other = lock.replace("sha256:", "sha256:00").replace("\"sha256", "sha256");
    assert_eq!(
        traced(&web(range).file("apps/web/rhumb.lock", other), &servers(), PinPolicy::Strict).found.len(),
        1
    );
}

// Else every version would be taken that a server gives.
#[test]
fn a_lock_that_is_there_and_cannot_be_read_is_not_missing() {
    let check = |tree: MemoryTree, expected: &str| {
        let traced = traced(&tree, &servers(), PinPolicy::Strict);
        assert!(traced.found.iter().any(|found| found == expected), "{:?}", traced.found);
    };
    let ignored = web(REDIS).file("apps/web/.helmignore", "rhumb.lock\n");
    check(
        ignored.clone().defect("apps/web/rhumb.lock", FileDefect::Unreadable),
        "unreadable apps/web/rhumb.lock: lock: apps/web/rhumb.lock cannot be read",
    );
    check(
        ignored.link("apps/web/rhumb.lock", "../no"),
        "missing-file apps/web/rhumb.lock: lock: the link apps/web/rhumb.lock leads to nothing: ../no",
    );
}

#[test]
fn another_content_than_the_locked_one_is_refused() {
    let lock = locked(&[(None, "7.2.0")], &servers()).replace("7.2.0", "7.1.0");
    let traced = traced(&web(REDIS).file("apps/web/rhumb.lock", lock), &servers(), PinPolicy::Strict);
    assert_eq!(
        traced.found,
        ["chart-changed apps/web/Chart.yaml:5: the chart redis 7.1.0 has another digest"]
    );
}
