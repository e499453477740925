//! An inventory that has no room for all that it is to record.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, ProgramOutput, Repo, TestNamespace, at, eventually, in_time, yaml};

/// The objects that are to be kept. The record of kept objects has not room for all their names.
const KEPT_OBJECTS: usize = 750;

/// The objects that leave the source.
const DROPPED_OBJECTS: usize = 700;

/// The bytes of a text of somebody else in the same ConfigMap. It leaves room for some of the
/// dropped objects; without it there is room for most of them, and for all that are left then.
const FOREIGN_BYTES: usize = 600_000;

/// The bytes that the server lets one ConfigMap have.
const MAX_BYTES: usize = 1 << 20;

/// Returns a name that is as long as one may be.
fn long_name(word: &str, number: usize) -> String {
    format!("{word}-{number:0>248}")
}

/// Returns the manifests of ConfigMaps with long names and an annotation.
fn manifests(word: &str, count: usize, annotation: &str) -> String {
    let one = |number: usize| {
        let name = long_name(word, number);
        let place = format!("  name: {name}\n");
        let annotated = format!("{place}  annotations: {{{annotation}}}\n");
        yaml::config_map(&name, "a", "1").replace(&place, &annotated)
    };
    yaml::documents(&(0..count).map(one).collect::<Vec<_>>())
}

/// Waits until the source has so many ConfigMaps.
#[track_caller]
fn await_count(site: &TestNamespace<'_>, expected: usize) {
    let path = format!("{}?labelSelector=applyset.kubernetes.io/part-of", site.at("ConfigMap", ""));
    in_time(&format!("{expected} are there"), DEFAULT_TIMEOUT * 3, || match site.api.list(&path).len() {
        found if found == expected => Ok(()),
        other => Err(other),
    });
}

/// Returns the number of dropped objects that a list shows, one in a line.
fn count_shown(list: &ProgramOutput) -> usize {
    list.stdout.lines().filter(|line| line.contains("/configmap/drop-")).count()
}

#[test]
fn an_inventory_without_room_for_all_shows_as_much_as_it_can_and_the_daemon_goes_on() {
    let site = TestNamespace::new("cut-inventory");
    let repo = Repo::new(&[
        ("kept.yaml", manifests("keep", KEPT_OBJECTS, "rhumb.dev/prune: never")),
        ("dropped.yaml", manifests("drop", DROPPED_OBJECTS, "example.org/note: none")),
        ("other.yaml", yaml::config_map("other", "a", "1")),
    ]);
    let mut daemon = site.daemon(repo.path());
    await_count(&site, KEPT_OBJECTS + DROPPED_OBJECTS + 1);
    let inventory = at("ConfigMap", &site.system(), &site.name);
    let note = |text: Value| site.api.merge(&inventory, "somebody", &json!({"data": {"note": text}}));
    note(json!("x".repeat(FOREIGN_BYTES)));
    let window = site.window();
    repo.remove("dropped.yaml");
    repo.commit("Drop many");
    let reported = format!(" of {DROPPED_OBJECTS} deletions of source cut-inventory are shown");
    let list = eventually("it is reported that some have no room", DEFAULT_TIMEOUT * 3, || {
        let list = site.rhumb(&["prune", "list"]);
        if list.stderr.contains(&reported) { Ok(list) } else { Err(list.stderr) }
    });
    let shown = count_shown(&list);
    assert!((1..DROPPED_OBJECTS).contains(&shown), "{shown} are shown");
    list.says(&[&format!("{shown}{reported}")]);
    list.says(&["not all objects that are to be kept are known: `kept` in the ConfigMap", "has no room"]);
    let data = site.inventory().unwrap()["data"].clone();
    let kept = data["kept"].as_str().unwrap().lines().count();
    assert!(kept < KEPT_OBJECTS, "{kept} kept objects are named");
    let bytes = data.to_string().len();
    assert!((FOREIGN_BYTES..MAX_BYTES).contains(&bytes), "{bytes} bytes");
    // It is written all the same, all else goes on, and nothing was refused.
    repo.change("other.yaml", &yaml::config_map("other", "a", "2"));
    site.await_data("other", "a", "2");
    let name = long_name("keep", 0);
    site.api.merge(&site.at("ConfigMap", &name), "somebody", &json!({"data": {"a": "theirs"}}));
    site.await_data(&name, "a", "1");
    window.assert_no_deletes();
    // The objects that are shown are confirmed. Where there is room again, the others are shown.
    let confirm = |count: usize| site.rhumb(&["prune", "confirm", "--count", &count.to_string()]).ends(0);
    let said = confirm(DROPPED_OBJECTS);
    let more = said.stdout.lines().find_map(|line| line.split_once(" more are listed"));
    let left: usize = more.unwrap_or_else(|| panic!("{said:#?}")).0.parse().unwrap();
    await_count(&site, KEPT_OBJECTS + left + 1);
    note(Value::Null);
    eventually("all others are shown", DEFAULT_TIMEOUT, || {
        let list = site.rhumb(&["prune", "list"]);
        if count_shown(&list) == left && list.stderr.is_empty() { Ok(()) } else { Err(list.stderr) }
    });
    confirm(left);
    await_count(&site, KEPT_OBJECTS + 1);
    let mut refused = window.calls();
    refused.retain(|call| [413, 422].contains(&call.code));
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(daemon.is_running());
}
