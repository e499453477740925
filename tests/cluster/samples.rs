//! Manifests as projects write them: our own in `samples/`, and those of real projects in the
//! folder that `RHUMB_MANIFESTS` names.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::support::{AuditWindow, DEFAULT_TIMEOUT, Repo, TestNamespace, in_time, shared};

/// Returns files of one project as a repository, with the namespace that its objects are in by
/// default.
fn project(root: &Path, files: &[&str], namespace: &str) -> Repo {
    let mut texts = vec![(
        "namespace.yaml".to_owned(),
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"),
    )];
    for file in files {
        let path = root.join(file);
        let all: Vec<PathBuf> = if path.is_dir() {
            std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect()
        } else {
            vec![path]
        };
        for path in all {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            texts.push((
                name,
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            ));
        }
    }
    Repo::new(&texts)
}

/// The objects of a project that the server does not take: how their names begin, and how many they
/// are.
type OpenObjects<'a> = (&'a [&'a str], usize);

/// Checks manifests of our own, and the files of a real project where their folder is named.
fn check_both(own: &str, own_open: OpenObjects<'_>, name: &str, files: &[&str], open: OpenObjects<'_>) {
    let namespace = format!("sample-{own}");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/samples");
    let site = TestNamespace::without_namespace(shared(), &namespace);
    check(&site, &project(&samples, &[own], &namespace), own_open.0, own_open.1);
    let Some(root) = std::env::var_os("RHUMB_MANIFESTS").map(PathBuf::from) else {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: no inputs: RHUMB_MANIFESTS names no folder with {name}");
        return;
    };
    let site = TestNamespace::without_namespace(shared(), name);
    check(&site, &project(&root, files, name), open.0, open.1);
}

/// Returns the objects that were sent and refused, and fails if anything was sent and taken.
fn refused(window: &AuditWindow<'_>) -> BTreeSet<String> {
    let writes = window.writes();
    let taken: Vec<_> = writes.iter().filter(|event| event.code < 400).collect();
    assert!(taken.is_empty(), "sent: {taken:#?}");
    writes.into_iter().map(|event| format!("{}/{}", event.resource, event.name)).collect()
}

/// Applies a project, and again by a new process, and follows it with a daemon: what the server
/// took is sent once. `open` begins the names of the `count` objects that the server does not take.
fn check(site: &TestNamespace<'_>, repo: &Repo, open: &[&str], count: usize) {
    let first = site.apply(repo.path(), &[]);
    let waits = |line: &&str| line.contains(" refused: ") || line.contains(" waiting: ");
    let open_now: Vec<&str> = first.stdout.lines().filter(waits).collect();
    let unexpected: Vec<&&str> =
        open_now.iter().filter(|line| !open.iter().any(|name| line.starts_with(name))).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    assert_eq!(open_now.len(), count, "{open_now:#?}");
    assert_eq!(first.code, i32::from(!open.is_empty()), "{first:#?}");
    let window = site.window();
    let again = site.with_empty_state().apply(repo.path(), &["--prune"]);
    assert_eq!(again.code, first.code, "{again:#?}");
    assert!(refused(&window).len() <= count);
    let window = site.window();
    let new = site.with_empty_state();
    let daemon = new.configured(&site.configuration(repo.path(), "resync: 1s"));
    daemon.says(&["read"]);
    in_time("two resyncs have passed", DEFAULT_TIMEOUT, || {
        let reads =
            window.calls().into_iter().filter(|event| event.verb == "get" && event.name == site.name).count();
        if reads >= 4 { Ok(()) } else { Err(format!("{reads} reads of the inventory")) }
    });
    assert!(refused(&window).len() <= count);
}

const NONE: OpenObjects<'_> = (&[], 0);

#[test]
fn a_shop_is_applied_once() {
    check_both("shop", NONE, "boutique", &["boutique/kubernetes-manifests.yaml"], NONE);
}

#[test]
fn lists_policies_and_jobs_are_applied_once() {
    check_both("queue", NONE, "sock-shop", &["sock-shop"], NONE);
}

#[test]
fn an_operator_is_applied_once() {
    check_both("operator", NONE, "metallb", &["metallb/metallb-native.yaml"], NONE);
}

#[test]
fn a_set_with_objects_of_kinds_that_it_does_not_define_is_applied_once_as_far_as_the_server_takes_it() {
    let own = ["engine.undefined.samples.example.org/", "gearbox.undefined.samples.example.org/"];
    let rook = ["driver.csi.ceph.io/", "operatorconfig.csi.ceph.io/"];
    check_both("undefined", (&own, 3), "rook", &["rook"], (&rook, 3));
}
