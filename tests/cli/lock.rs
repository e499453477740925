//! `rhumb lock`, without a server.

use insta::assert_snapshot;

use crate::fixture::Fixture;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

#[test]
fn a_folder_without_charts_of_servers_needs_no_lock() {
    let fixture = Fixture::new(&[("web/Chart.yaml", CHART)]);
    assert_snapshot!(fixture.run("lock"), @r##"
    $ rhumb lock
    --- standard error
    no root uses a chart of a server
    --- exit code 0
    "##);
    assert!(!fixture.path().join("web/rhumb.lock").exists());
}

#[test]
fn a_chart_of_a_server_that_nobody_allows_is_refused_by_name() {
    let part = "dependencies:\n- {name: redis, version: ~7, repository: 'https://charts.example.org'}\n";
    let inflated =
        "helmCharts: [{name: web, version: 1.0.0, repo: 'oci://example.org/charts', releaseName: a}]\n";
    let fixture =
        Fixture::new(&[("web/Chart.yaml", &format!("{CHART}{part}")), ("top/kustomization.yaml", inflated)]);
    assert_snapshot!(fixture.run("lock ."), @r##"
    $ rhumb lock .
    --- standard error
    top/kustomization.yaml:1:14: error: the chart web 1.0.0 may not be fetched from oci://example.org/charts
      hint: allow it in rhumb's own configuration: `spec.fetch.allow: ["oci://example.org/charts"]`
    web/Chart.yaml:5:3: error: the chart redis ~7 may not be fetched from https://charts.example.org
      hint: allow it in rhumb's own configuration: `spec.fetch.allow: ["https://charts.example.org"]`
    --- exit code 1
    "##);
    assert_snapshot!(fixture.run("lock web --check"), @r##"
    $ rhumb lock web --check
    --- standard error
    web/Chart.yaml:5:3: error: the chart redis ~7 may not be fetched from https://charts.example.org
      hint: allow it in rhumb's own configuration: `spec.fetch.allow: ["https://charts.example.org"]`
    --- exit code 1
    "##);
}

#[test]
fn a_lock_that_nothing_needs_is_deleted() {
    let lock = "apiVersion: rhumb.dev/v1\nkind: ChartLock\ncharts:\n- repository: https://charts.example.org\n  \
                name: redis\n  version: 7.1.0\n  digest: sha256:";
    let lock = format!("{lock}{}\n", "a".repeat(64));
    let fixture = Fixture::new(&[("web/Chart.yaml", CHART), ("web/rhumb.lock", &lock)]);
    assert_snapshot!(fixture.run("lock --check web"), @r##"
    $ rhumb lock --check web
    web/rhumb.lock: not up to date
      - redis 7.1.0 from https://charts.example.org
    --- exit code 1
    "##);
    assert!(fixture.path().join("web/rhumb.lock").exists());
    assert_snapshot!(fixture.run("lock web"), @r##"
    $ rhumb lock web
    web/rhumb.lock: deleted, no chart of a server is used
      - redis 7.1.0 from https://charts.example.org
    --- exit code 0
    "##);
    assert!(!fixture.path().join("web/rhumb.lock").exists());
}
