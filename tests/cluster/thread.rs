//! One thin path through all parts.

use crate::support::{Folder, TestNamespace, yaml};

#[test]
fn a_directory_is_applied_once_and_then_nothing_is_sent() {
    let site = TestNamespace::without_namespace(crate::support::shared(), "thread");
    let folder = Folder::new(&[
        ("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: thread}\n"),
        ("config.yaml", &yaml::config_map("env", "a", "b")),
    ]);
    site.diff(folder.path(), &[]).ends(1);
    site.apply(folder.path(), &[]).ends(0);
    assert_eq!(site.data("env", "a"), "b");
    let window = site.window();
    site.apply(folder.path(), &[]).ends(0);
    window.assert_silent();
    let diff = site.diff(folder.path(), &[]).ends(0);
    assert_eq!(diff.stdout.lines().count(), 1, "{diff:#?}");
}
