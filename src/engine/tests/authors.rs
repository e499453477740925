//! The author of a revision goes along with the next claim.

use super::rig::Harness;
use super::world::{config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

fn read(rig: &mut Harness, revision: &str, id: &ObjectId, content: u32) {
    let authored = Some(Authorship::of("Ann", revision));
    rig.read(SourceReading {
        authored,
        ..reading(revision, &[(id.name(), Some(desired(id, content, id.name())))])
    });
    rig.settle();
}

#[test]
fn who_made_a_revision_is_told_with_the_next_claim() {
    let check = |rig: &Harness, told: &[&str]| {
        let known: Vec<&str> =
            rig.world.book.commits.iter().map(|commit| &*commit.authored.subject).collect();
        assert_eq!(known, told);
    };
    let (web, env) = (workload("web"), config("env"));
    let mut rig = Harness::new(1);
    // A created object takes no claim, nor does one that is changed in place.
    read(&mut rig, "Open", &web, 1);
    read(&mut rig, "Explain", &env, 1);
    rig.read(SourceReading { authored: Some(Authorship::of("Ann", "Nothing")), ..reading("Nothing", &[]) });
    check(&rig, &[]);
    read(&mut rig, "Change", &web, 2);
    check(&rig, &["Open", "Explain", "Change"]);
    rig.finish_rollouts();
    rig.settle();
    assert!(rig.world.book.claims.is_empty());
    let applyset = rig.world.book.commits[0].applyset.clone();
    let author = rig.world.book.author(&applyset, &Revision::new("Open"));
    assert_eq!(author, Some(&Authorship::of("Ann", "Open")));
    assert_eq!(rig.engine.next_book(), None);
    read(&mut rig, "Later", &web, 3);
    check(&rig, &["Open", "Explain", "Change", "Later"]);
}
