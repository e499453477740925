//! Closures of charts in memory.

use super::*;
use crate::input::MemoryTree;
use crate::input::kustomize::ClosureIndex;
use crate::source::FileDefect;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

fn options(values: &[&str]) -> HelmOptions {
    HelmOptions {
        release: "web".into(),
        namespace: "prod".into(),
        values: values.iter().map(|path| ValuesSource::File((*path).to_owned())).collect(),
        ..HelmOptions::default()
    }
}

fn closure_with(tree: &MemoryTree, values: &[&str]) -> ChartClosure {
    find_closure(tree, "apps/web", "apps", &options(values), ChartLimits::default()).unwrap()
}

fn closure(tree: &MemoryTree) -> ChartClosure {
    closure_with(tree, &[])
}

fn files(closure: &ChartClosure) -> Vec<String> {
    let files = closure.closure.files.iter();
    let shown =
        files.map(
            |(path, file)| {
                if *path == file.source { path.to_string() } else { format!("{path} = {}", file.source) }
            },
        );
    shown.collect()
}

fn findings(closure: &ChartClosure) -> Vec<String> {
    let found = closure.closure.diagnostics.iter();
    found.map(|found| format!("{} {}: {}", found.code, found.origin, found.message)).collect()
}

fn web() -> MemoryTree {
    MemoryTree::new().file("apps/web/Chart.yaml", CHART).file("apps/web/templates/a.yaml", "a: 1")
}

#[test]
fn a_chart_is_all_of_its_folder_but_what_it_leaves_out() {
    let tree = web()
        .file("apps/web/.helmignore", "ci/\n*.md\n.helmignore\n/only/\n")
        .file("apps/web/values.yaml", "")
        .file("apps/web/README.md", "")
        .file("apps/web/ci/values.yaml", "")
        .file("apps/web/files/only/x.txt", "")
        .file("apps/web/templates/.a.yaml.swp", "")
        .file("apps/other/Chart.yaml", CHART)
        .defect("apps/web/ci/pipe", FileDefect::NotAFile);
    let closure = closure(&tree);
    assert_eq!(
        files(&closure),
        [
            "apps/web/.helmignore",
            "apps/web/Chart.yaml",
            "apps/web/files/only/x.txt",
            "apps/web/templates/a.yaml",
            "apps/web/values.yaml",
        ]
    );
    assert_eq!(findings(&closure), [""; 0]);
    assert_eq!(closure.chart.to_string(), "web 1.0.0");
}

#[test]
fn links_are_replaced_by_what_they_lead_to_inside_the_revision() {
    let tree = web()
        .file("shared/b.yaml", "b")
        .file("shared/deep/c.txt", "c")
        .link("apps/web/templates/b.yaml", "../../../shared/b.yaml")
        .link("apps/web/files", "../../shared");
    let closure = closure(&tree);
    assert_eq!(
        files(&closure),
        [
            "apps/web/Chart.yaml",
            "apps/web/files/b.yaml = shared/b.yaml",
            "apps/web/files/deep/c.txt = shared/deep/c.txt",
            "apps/web/templates/a.yaml",
            "apps/web/templates/b.yaml = shared/b.yaml",
        ]
    );
    assert_eq!(findings(&closure), [""; 0]);
}

#[test]
fn what_cannot_be_in_a_chart_is_refused_by_name() {
    let check = |tree: MemoryTree, expected: &[&str]| assert_eq!(findings(&closure(&tree)), expected);
    check(
        web().link("apps/web/files/passwd", "/etc/passwd"),
        &["out-of-tree apps/web/files/passwd: chart: the link apps/web/files/passwd leads out of the \
           repository, to /etc/passwd"],
    );
    check(
        web().link("apps/web/x", "../../../etc"),
        &["out-of-tree apps/web/x: chart: the link apps/web/x leads out of the repository, to ../../../etc"],
    );
    check(
        web().link("apps/web/x", "gone"),
        &["missing-file apps/web/x: chart: the link apps/web/x leads to nothing: gone"],
    );
    check(web().link("apps/web/x", ".."), &["symlink apps/web/x: the link leads to a folder that holds it"]);
    check(
        web().defect("apps/web/files/pipe", FileDefect::NotAFile),
        &[
            "not-a-file apps/web/files/pipe: chart: apps/web/files/pipe is neither a regular file nor a folder",
        ],
    );
    check(
        web().file("apps/web/.helmignore", "a\n**/b"),
        &["helmignore apps/web/.helmignore:2: `**` is not supported"],
    );
    check(web().without("apps/web/Chart.yaml"), &["no-chart apps/web: this folder has no Chart.yaml"]);
    check(
        MemoryTree::new().defect("apps/web", FileDefect::Unreadable),
        &["unreadable apps/web: chart: apps/web cannot be read"],
    );
    check(
        web().file("apps/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n"),
        &["library-chart apps/web/Chart.yaml: this chart is a library, which only other charts use"],
    );
    check(
        web().file("apps/web/values.schema.json", r#"{"$ref": "https://example.com/a.json"}"#),
        &["remote-schema apps/web/values.schema.json: the schema refers to another one, which is not \
           fetched: https://example.com/a.json"],
    );
    // A link that is left out harms nobody.
    check(web().file("apps/web/.helmignore", "x\n").link("apps/web/x", "/etc/passwd"), &[]);
}

#[test]
fn a_dependency_must_be_in_the_chart() {
    let chart = |text: &str| web().file("apps/web/Chart.yaml", format!("{CHART}dependencies:\n{text}"));
    let check = |tree: MemoryTree, expected: &[&str]| assert_eq!(findings(&closure(&tree)), expected);
    let redis = "- name: redis\n  version: 1.x\n  repository: https://charts.example.com\n";
    let missing = "missing-dependency apps/web/Chart.yaml:5: the chart redis 1.x, to be had from \
                   https://charts.example.com, is not in charts/";
    check(chart(redis), &[missing]);
    check(chart(redis).file("apps/web/charts/redis-1.2.0.tgz", ""), &[]);
    check(chart(redis).file("apps/web/charts/renamed.tgz", ""), &[]);
    check(chart(redis).file("apps/web/charts/README.md", ""), &[missing]);
    let sub = "apiVersion: v1\nname: redis\nversion: 1.0.0\n";
    check(chart(redis).file("apps/web/charts/any/Chart.yaml", sub), &[]);
    check(chart(redis).file("apps/web/charts/_any/Chart.yaml", sub), &[missing]);
    check(
        chart("- name: common\n  version: 1.0.0\n  repository: file://../common\n"),
        &[
            "missing-dependency apps/web/Chart.yaml:5: the chart common 1.0.0, to be had from file://../common, \
           is not in charts/",
        ],
    );
    check(
        web().file("apps/web/requirements.yaml", "dependencies:\n- name: redis\n  version: '1'\n"),
        &["missing-dependency apps/web/requirements.yaml:2: the chart redis 1, is not in \
           charts/"],
    );
    check(
        web().file("apps/web/charts/part/values.yaml", ""),
        &["no-chart apps/web/charts/part: this folder has no Chart.yaml"],
    );
}

#[test]
fn a_schema_of_a_part_that_may_be_switched_off_is_left_to_helm() {
    let remote = r#"{"$ref": "https://example.com/a.json"}"#;
    let tree = |condition: &str| {
        let text = format!("{CHART}dependencies: [{{name: redis, version: '1'{condition}}}]\n");
        web()
            .file("apps/web/Chart.yaml", text)
            .file("apps/web/charts/redis/Chart.yaml", "apiVersion: v2\nname: redis\nversion: 1.0.0\n")
            .file("apps/web/charts/redis/values.schema.json", remote)
    };
    assert_eq!(findings(&closure(&tree(""))).len(), 1);
    assert_eq!(findings(&closure(&tree(", condition: redis.enabled"))), [""; 0]);
}

#[test]
fn values_are_found_in_the_chart_or_in_the_source() {
    let tree = web()
        .file("apps/web/prod.yaml", "a: 1")
        .file("apps/web/values:prod.yaml", "a: 1")
        .file("apps/common.yaml", "b: 1")
        .file("other.yaml", "c: 1");
    let closure = closure_with(&tree, &["prod.yaml", "values:prod.yaml", "common.yaml", "../../other.yaml"]);
    assert_eq!(findings(&closure), [""; 0]);
    let paths: Vec<_> = ["apps/web/prod.yaml", "apps/web/values:prod.yaml", "apps/common.yaml", "other.yaml"]
        .iter()
        .map(|path| ChartValues::File((*path).into()))
        .collect();
    assert_eq!(closure.values, paths);
    assert!(files(&closure).contains(&"other.yaml".to_owned()));
    let check = |values: &str, expected: &str| {
        assert_eq!(findings(&closure_with(&tree, &[values])), [expected], "{values}");
    };
    check(
        "https://example.com/values.yaml",
        "remote-values apps/web: values: this is an address, which is not fetched: https://example.com/values.yaml",
    );
    check(
        "secrets+gpg://x",
        "remote-values apps/web: values: this is an address, which is not fetched: secrets+gpg://x",
    );
    check(
        "HTTPS:values.yaml",
        "remote-values apps/web: values: this is an address, which is not fetched: HTTPS:values.yaml",
    );
    check(
        "gone.yaml",
        "missing-file apps/web: values: no such file in this revision: gone.yaml (apps/gone.yaml is missing)",
    );
    check("/etc/passwd", "out-of-tree apps/web: values: the path leaves the repository: /etc/passwd");
    check("../../../x", "out-of-tree apps/web: values: the path leaves the repository: ../../../x");
    check("templates", "missing-file apps/web: values: a file is needed, and templates is a folder");
}

#[test]
fn a_chart_that_is_too_large_is_refused() {
    let limits = ChartLimits { files: 3, bytes: 1000, file: 500, ..ChartLimits::default() };
    let check = |tree: MemoryTree, expected: &str| {
        let closure = find_closure(&tree, "apps/web", "apps", &options(&[]), limits).unwrap();
        assert_eq!(findings(&closure), [expected]);
    };
    check(
        web().file("apps/web/b", "").file("apps/web/c", ""),
        "too-large apps/web: this chart has more than 3 files",
    );
    check(
        web().file("apps/web/b", "x".repeat(501)),
        "too-large apps/web/b: this chart has a file of 501 bytes, and helm takes up to 500",
    );
    let large = ChartLimits { bytes: 100, ..limits };
    let closure =
        find_closure(&web().file("apps/web/b", "x".repeat(90)), "apps/web", "", &options(&[]), large)
            .unwrap();
    assert_eq!(findings(&closure), ["too-large apps/web: this chart has files of more than 100 bytes"]);
    let few = ChartLimits { steps: 1_000, ..ChartLimits::default() };
    let ignored = web().file("apps/web/.helmignore", "/templates/*.tmp\n".repeat(20));
    let closure = find_closure(&ignored, "apps/web", "", &options(&[]), few).unwrap();
    assert_eq!(
        findings(&closure),
        ["too-large apps/web: this chart has too many or too long rules in its .helmignore for its files"]
    );
    let deep = (0..70).fold("apps/web".to_owned(), |path, _| path + "/d");
    let closure = closure_of_deep(&deep);
    assert_eq!(findings(&closure).len(), 1);
    assert!(findings(&closure)[0].contains("more than 64 levels of folders"));
}

// Folders that lead to each other by links are few, and the ways through them are not.
#[test]
fn a_chart_of_more_ways_than_are_walked_is_refused() {
    let link = |tree: MemoryTree, number: u32| {
        let target = format!("../x{}", number + 1);
        let name = |letter: &str| format!("apps/web/x{number}/{letter}");
        tree.link(&name("a"), &target).link(&name("b"), &target)
    };
    let tree = (0..16).fold(web().file("apps/web/.helmignore", "*.bak\n"), link);
    let closure = closure(&tree.file("apps/web/x16/f.bak", ""));
    assert_eq!(
        findings(&closure),
        [
            "too-large apps/web: this chart has more than 100000 files and folders, those that it leaves out among them"
        ]
    );
}

#[test]
fn a_requirements_file_that_names_no_dependencies_takes_none_away() {
    let chart = format!("{CHART}dependencies: [{{name: a, version: 1.0.0}}]\n");
    let check = |requirements: &str, expected: &[&str]| {
        let tree = web().file("apps/web/Chart.yaml", &chart).file("apps/web/requirements.yaml", requirements);
        assert_eq!(findings(&closure(&tree)), expected, "{requirements}");
    };
    let missing = "missing-dependency apps/web/Chart.yaml:4: the chart a 1.0.0, is not in charts/";
    check("", &[missing]);
    check("# nothing\n", &[missing]);
    check("other: 1\n", &[missing]);
    check("dependencies:\n", &[]);
    check("dependencies: []\n", &[]);
}

#[test]
fn an_archive_is_of_the_chart_that_its_name_says() {
    let tree = web().file("apps/web/charts/redis-cluster-1.0.0.tgz", "x");
    let check = |dependencies: &str, expected: &[&str]| {
        let chart = format!("{CHART}dependencies: [{dependencies}]\n");
        let closure = closure(&tree.clone().file("apps/web/Chart.yaml", chart));
        let missing = findings(&closure).into_iter();
        let missing: Vec<_> = missing.map(|found| found.split(": ").nth(1).unwrap().to_owned()).collect();
        assert_eq!(missing, expected, "{dependencies}");
    };
    let (redis, cluster) = ("{name: redis, version: 1.0.0}", "{name: redis-cluster, version: 1.0.0}");
    check(cluster, &[]);
    // Its name need not be that of the chart in it.
    check(redis, &[]);
    check(&format!("{redis}, {cluster}"), &["the chart redis 1.0.0, is not in charts/"]);
}

#[test]
fn a_path_that_is_too_long_to_be_written_is_refused_by_name() {
    let deep = |levels: usize| {
        let folders = vec!["d".repeat(100); levels].join("/");
        findings(&closure(&web().file(&format!("apps/web/files/{folders}/x"), "")))
    };
    assert_eq!(deep(29), [""; 0]);
    let found = deep(30);
    let words = "this chart has a path of more than 3000 bytes";
    assert!(found[0].starts_with("too-large apps/web/files/ddd") && found[0].ends_with(words), "{found:?}");
    assert_eq!(found.len(), 1);
}

#[test]
fn a_chart_may_be_made_of_a_thousand_others() {
    let names = |count: usize| {
        let lines: Vec<String> = (0..count).map(|number| format!("- name: a{number}\n")).collect();
        lines.concat()
    };
    let first =
        |tree: MemoryTree| findings(&closure(&tree.file("apps/web/charts/b.tgz", ""))).first().cloned();
    let chart =
        |count: usize| web().file("apps/web/Chart.yaml", format!("{CHART}dependencies:\n{}", names(count)));
    assert_eq!(first(chart(1_000)), None);
    let words = "this chart is made of more than 1000 others";
    assert_eq!(first(chart(1_001)), Some(format!("too-large apps/web/Chart.yaml:1005: {words}")));
    let requirements = format!("dependencies:\n{}", names(1_001));
    let found = first(chart(1).file("apps/web/requirements.yaml", requirements));
    assert_eq!(found, Some(format!("too-large apps/web/requirements.yaml:1002: {words}")));
}

// Each dependency compared with each archive, by each dependency, would take minutes.
#[test]
fn many_archives_are_compared_with_many_dependencies_at_once() {
    let dependencies = (0..1_000).map(|number| format!("- {{name: a{number}, version: 1.0.0}}\n"));
    let dependencies = dependencies.collect::<String>();
    let mut tree = web().file("apps/web/Chart.yaml", format!("{CHART}dependencies:\n{dependencies}"));
    for number in 0..3_000 {
        tree = tree.file(&format!("apps/web/charts/a0-1.0.{number}.tgz"), "");
    }
    let found = findings(&closure(&tree));
    assert_eq!(found[0], "missing-dependency apps/web/Chart.yaml:6: the chart a1 1.0.0, is not in charts/");
    assert_eq!(found.len(), 100);
}

#[test]
fn a_chart_under_several_names_is_found_by_each() {
    let sub = "apiVersion: v2\nname: part\nversion: 1.0.0\n";
    let dependencies = "- {name: part, version: 1.x, alias: one}\n- {name: part, version: 1.x, alias: two}\n\
                        - {name: redis, version: 7.1.0, alias: cache}\n- {name: redis, version: 7.2.0}\n";
    let tree = web()
        .file("apps/web/Chart.yaml", format!("{CHART}dependencies:\n{dependencies}"))
        .file("apps/web/charts/part/Chart.yaml", sub)
        .file("apps/web/charts/part/templates/a.yaml", "")
        .file("apps/web/charts/redis-7.1.0.tgz", "")
        .file("apps/web/charts/redis-7.2.0.tgz", "");
    let closure = closure(&tree);
    let check = |template: &str, expected: &str| {
        let origin = closure.template_origin(template, 0).map(|origin| origin.to_string());
        assert_eq!(origin.as_deref(), Some(expected), "{template}");
    };
    check("web/charts/one/templates/a.yaml", "apps/web/charts/part/templates/a.yaml");
    check("web/charts/two/templates/a.yaml", "apps/web/charts/part/templates/a.yaml");
    check("web/charts/cache/templates/a.yaml", "apps/web/charts/redis-7.1.0.tgz");
    check("web/charts/redis/templates/a.yaml", "apps/web/charts/redis-7.2.0.tgz");
}

fn closure_of_deep(folder: &str) -> ChartClosure {
    closure(&web().file(&format!("{folder}/x"), ""))
}

#[test]
fn any_change_in_its_folder_concerns_a_chart_and_no_other_does() {
    let tree = web().file("shared/b.yaml", "b").link("apps/web/templates/b.yaml", "../../../shared/b.yaml");
    let found = closure_with(&tree.file("apps/web/prod.yaml", ""), &["prod.yaml"]);
    let index = ClosureIndex::of([&found.closure]);
    let concerns = |path: &str| !index.impact([path]).roots.is_empty();
    for path in ["apps/web/new/file", "apps/web/Chart.yaml", "shared/b.yaml", "apps/web/prod.yaml"] {
        assert!(concerns(path), "{path}");
    }
    for path in ["apps/other", "shared/c.yaml", "apps/webs/x"] {
        assert!(!concerns(path), "{path}");
    }
    let top = find_closure(
        &MemoryTree::new().file("Chart.yaml", CHART),
        "",
        "",
        &options(&[]),
        ChartLimits::default(),
    );
    assert!(!ClosureIndex::of([&top.unwrap().closure]).impact(["new/file"]).roots.is_empty());
}
