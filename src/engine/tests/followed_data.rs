//! Data that pods use and that are not from git: which are followed, and what is known once they
//! cannot be read any more.

use std::sync::Arc;

use super::harness::Harness;
use super::restart::{at_rest, data, env, web, wrote};
use super::world::{FIRST, SECOND, config, desired, reading, workload};
use crate::engine::*;
use crate::object::ObjectId;

/// Returns the data that are to be followed from now on, where these are not the same as before.
fn watched(harness: &mut Harness) -> Option<Vec<ObjectId>> {
    harness.engine.poll_watches().data.map(|all| all.into_iter().collect())
}

#[test]
fn what_is_followed_is_said_when_it_changes() {
    let (tls, more) = (config("tls"), config("more"));
    let mut harness = at_rest(3);
    assert_eq!(watched(&mut harness), Some(vec![tls.clone()]));
    assert_eq!(watched(&mut harness), None);
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    assert_eq!(watched(&mut harness), None, "that is from git");
    harness.read(reading("r3", &[("web", Some(web(2, &["more", "tls"])))]));
    assert_eq!(watched(&mut harness), Some(vec![more.clone(), tls]));
    harness.read(reading("r4", &[("web", Some(web(3, &["more"])))]));
    assert_eq!(watched(&mut harness), Some(vec![more]));
    harness.read(reading("r5", &[("web", None)]));
    assert_eq!(watched(&mut harness), Some(Vec::new()));
    assert_eq!(watched(&mut harness), None);
}

#[test]
fn what_rejected_content_names_is_followed_until_a_newer_one_is_wanted() {
    let (tls, more) = (config("tls"), config("more"));
    let mut harness = at_rest(3);
    let bad = web(2, &["more", "tls"]);
    harness.world.bad.insert(bad.hash);
    harness.read(reading("r2", &[("web", Some(bad))]));
    let read = Input::ConfigData { id: more.clone(), data: ReadState::Value(Some(data(&more, 1))) };
    harness.engine.handle(read, harness.now);
    harness.settle();
    assert_eq!(harness.world.rejections.len(), 1);
    assert_eq!(watched(&mut harness), Some(vec![more, tls.clone()]));
    harness.read(reading("r3", &[("web", Some(web(3, &["tls"])))]));
    assert_eq!(watched(&mut harness), Some(vec![tls]));
}

// The informers of each source have rights of their own.
#[test]
fn a_further_user_of_data_has_them_followed_anew_where_informers_differ() {
    let mut other = (*web(1, &["tls"])).clone();
    let own = desired(&workload("b"), 1, "b");
    (other.id, other.hash, other.template) = (own.id.clone(), own.hash, own.template);
    other.origin = own.origin.clone();
    let other = Arc::new(other);
    for (differs, expected) in [(false, None), (true, Some(vec![config("tls")]))] {
        let mut harness = at_rest(3);
        if differs {
            harness.engine.add_informer_group(None);
        }
        assert!(watched(&mut harness).is_some());
        harness.read(reading("r2", &[("b", Some(other.clone()))]));
        assert_eq!(watched(&mut harness), expected, "{differs}");
    }
}

#[test]
fn data_and_a_key_that_cannot_be_read_any_more_count_as_they_were() {
    let data = |why: &str| Input::ConfigData { id: config("tls"), data: ReadState::Unreadable(why.into()) };
    let lost: [&dyn Fn() -> Input; 3] = [
        &|| data("forbidden"),
        &|| Input::ConfigData { id: config("tls"), data: ReadState::Reading },
        &|| Input::Key(ReadState::Unreadable("forbidden".into())),
    ];
    for lost in lost {
        let mut harness = at_rest(3);
        let input = lost();
        let words = format!("{input:?}");
        harness.engine.handle(input, harness.now);
        harness.settle();
        assert_eq!(harness.world.log, [], "{words}");
        harness.read(reading("r2", &[("env", Some(env(2)))]));
        harness.settle();
        assert_eq!(harness.world.log, wrote(&[config("env"), workload("web")]), "{words}");
    }
}

#[test]
fn a_workload_that_is_there_waits_for_data_that_are_being_read_for_its_own_source() {
    let (web, tls) = (workload("web"), config("tls"));
    let mut harness = at_rest(3);
    assert_eq!(harness.engine.unread_data_of(FIRST, &web), None);
    harness.engine.handle(Input::ConfigUnfollowed(tls.clone()), harness.now);
    let of = [(FIRST, &web), (SECOND, &web), (FIRST, &config("env"))];
    let unread = of.map(|(source, id)| harness.engine.unread_data_of(source, id));
    assert_eq!(unread, [Some(tls), None, None]);
    harness.engine.observe_absence(&web);
    assert_eq!(harness.engine.unread_data_of(FIRST, &web), None, "it is not there");
}
