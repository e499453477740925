//! Manifests of real projects, from the folder that `RHUMB_MANIFESTS` names.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::{AuditWindow, DEFAULT_TIMEOUT, Repo, TestNamespace, in_time, shared};

/// Returns the folder, or none and prints a line that says how to name it.
fn manifests() -> Option<PathBuf> {
    let named = std::env::var_os("RHUMB_MANIFESTS").map(PathBuf::from);
    if named.is_none() {
        eprintln!(
            "not tried: RHUMB_MANIFESTS names no folder with boutique, metallb, rook and sock-shop in it"
        );
    }
    named
}

/// Returns files of one project as a repository, with the namespace that its objects are in by
/// default.
fn project(files: &[&str], namespace: &str) -> Option<Repo> {
    let root = manifests()?;
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
    Some(Repo::new(&texts))
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

#[test]
fn boutique_is_applied_once() {
    let site = TestNamespace::without_namespace(shared(), "boutique");
    let Some(repo) = project(&["boutique/kubernetes-manifests.yaml"], "boutique") else { return };
    check(&site, &repo, &[], 0);
}

#[test]
fn sock_shop_is_applied_once() {
    let site = TestNamespace::without_namespace(shared(), "sock-shop");
    let Some(repo) = project(&["sock-shop"], "sock-shop") else { return };
    check(&site, &repo, &[], 0);
}

#[test]
fn metallb_is_applied_once() {
    let site = TestNamespace::without_namespace(shared(), "metallb");
    let Some(repo) = project(&["metallb/metallb-native.yaml"], "metallb") else { return };
    check(&site, &repo, &[], 0);
}

#[test]
fn rook_is_applied_once_as_far_as_the_server_takes_it() {
    let site = TestNamespace::without_namespace(shared(), "rook");
    let Some(repo) = project(&["rook"], "rook") else { return };
    // Three objects are of kinds that the set does not define.
    check(&site, &repo, &["driver.csi.ceph.io/", "operatorconfig.csi.ceph.io/"], 3);
}
