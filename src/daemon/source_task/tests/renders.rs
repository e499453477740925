//! Renders of one revision, and the reads after them.

use super::*;

// Nothing but the newest render says that the first object is gone and the second one is there.
#[tokio::test]
async fn a_new_render_is_read_by_a_later_check_where_its_first_read_failed() {
    let check = async |committed_before: Option<&str>| {
        let (mut fixture, path, renderer) = rendered_fixture();
        *renderer.rest.lock().unwrap() = RemainingRenderWork::Postponed;
        assert_eq!(fixture.check().await, "read 1 files whole");
        *renderer.rest.lock().unwrap() = RemainingRenderWork::None;
        *renderer.gives.lock().unwrap() = Ok("b");
        renderer.fails_read.store(true, Ordering::SeqCst);
        let failed = fixture.check().await;
        assert!(failed.starts_with("unreadable: ") && failed.contains("panicked"), "{failed}");
        if let Some(file) = committed_before {
            fs::write(path.join(file), "x").unwrap();
            commit_all(&path);
        }
        assert_eq!(fixture.check().await, "read 2 files whole", "{committed_before:?}");
        assert_eq!(fixture.check().await, "", "{committed_before:?}");
    };
    check(None).await;
    check(Some("other.txt")).await;
}

// The file may be there for others, or be half of an object.
#[tokio::test]
async fn a_file_that_is_rendered_is_no_manifest_while_its_root_does_not_render() {
    let (mut fixture, path, renderer) = rendered_fixture();
    *renderer.gives.lock().unwrap() = Err("no kustomization");
    assert_eq!(fixture.check().await, "read 0 files without app: no kustomization");
    for file in ["a.yaml", "new.yaml"] {
        fs::write(path.join(file), MANIFEST.replace("name: a", "name: other")).unwrap();
        commit_all(&path);
        assert_eq!(fixture.check().await, "read 0 files without app: no kustomization", "{file}");
    }
}
