//! Charts of servers, without a server: `rhumb lock`, and what other commands say of them.

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
    let fixture = Fixture::new(&[("web/Chart.yaml", CHART), ("web/rhumb.lock", "somebody else's\n")]);
    assert_snapshot!(fixture.run("lock web"), @r##"
    $ rhumb lock web
    web/rhumb.lock: left alone, as it is no lock
    --- exit code 0
    "##);
    assert!(fixture.path().join("web/rhumb.lock").exists());
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
      hint: without `--config` nothing is fetched: give `rhumb validate`, `diff`, `apply` or `lock` a configuration with `spec.fetch.allow: ["oci://example.org/charts"]`
    web/Chart.yaml:5:3: error: the chart redis ~7 may not be fetched from https://charts.example.org
      hint: without `--config` nothing is fetched: give `rhumb validate`, `diff`, `apply` or `lock` a configuration with `spec.fetch.allow: ["https://charts.example.org"]`
    --- exit code 1
    "##);
    assert_snapshot!(fixture.run("lock web --check"), @r##"
    $ rhumb lock web --check
    --- standard error
    web/Chart.yaml:5:3: error: the chart redis ~7 may not be fetched from https://charts.example.org
      hint: without `--config` nothing is fetched: give `rhumb validate`, `diff`, `apply` or `lock` a configuration with `spec.fetch.allow: ["https://charts.example.org"]`
    --- exit code 1
    "##);
}

const PART: &str =
    "dependencies:\n- {name: redis, version: 7.1.0, repository: 'https://charts.example.org'}\n";

#[test]
fn a_command_without_a_configuration_says_that_it_fetches_nothing() {
    let fixture = Fixture::new(&[("web/Chart.yaml", &format!("{CHART}{PART}"))]);
    for command in ["render web", "validate web", "lock web"] {
        let shown = fixture.run(command);
        let said = [
            "Chart.yaml:5:3: error: the chart redis 7.1.0 may not be fetched from https://charts.example.org\n",
            "  hint: without `--config` nothing is fetched: give `rhumb validate`, `diff`, `apply` or `lock` a \
             configuration with `spec.fetch.allow: [\"https://charts.example.org\"]`\n",
        ];
        assert!(said.iter().all(|said| shown.contains(said)), "{shown}");
        assert!(shown.ends_with("--- exit code 1"), "{shown}");
    }
}

#[test]
fn a_difference_of_revisions_without_a_configuration_says_that_it_fetches_nothing() {
    let fixture = Fixture::new(&[("web/Chart.yaml", &format!("{CHART}{PART}"))]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        let git =
            std::process::Command::new("git").current_dir(fixture.path()).args(author).args(words).status();
        assert!(git.unwrap().success(), "{words:?}");
    }
    let shown = fixture.run("diff web --from HEAD");
    let said = "  hint: without `--config` nothing is fetched: give `rhumb validate`, `diff`, `apply` or `lock` a \
                configuration with `spec.fetch.allow: [\"https://charts.example.org\"]`\n";
    assert!(shown.contains(said), "{shown}");
}

#[test]
fn a_command_with_a_configuration_names_the_line_that_is_missing_in_it() {
    let configuration = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n---\n\
                         apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: shop}\n\
                         spec: {directory: web}\n";
    let fixture =
        Fixture::new(&[("web/Chart.yaml", &format!("{CHART}{PART}")), ("rhumb.yaml", configuration)]);
    for command in ["validate --config rhumb.yaml", "lock --config rhumb.yaml web"] {
        let shown = fixture.run(command);
        let hint = "  hint: allow it in rhumb's own configuration: \
                    `spec.fetch.allow: [\"https://charts.example.org\"]`\n";
        assert!(shown.contains(hint) && shown.ends_with("--- exit code 1"), "{shown}");
    }
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
