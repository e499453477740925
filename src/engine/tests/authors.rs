//! The author of a revision goes along with the next claim.

use super::harness::Harness;
use super::world::{config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

fn read(harness: &mut Harness, revision: &str, id: &ObjectId, content: u32) {
    let authored = Some(Authorship::of("Ann", revision));
    harness.read(SourceReading {
        authored,
        ..reading(revision, &[(id.name(), Some(desired(id, content, id.name())))])
    });
    harness.settle();
}

#[test]
fn who_made_a_revision_is_reported_with_the_next_claim() {
    let check = |harness: &Harness, expected: &[&str]| {
        let known: Vec<&str> =
            harness.world.ledger.commits.iter().map(|commit| &*commit.authored.subject).collect();
        assert_eq!(known, expected);
    };
    let (web, env) = (workload("web"), config("env"));
    let mut harness = Harness::new(1);
    // A created object takes no claim, nor does one that is changed in place.
    read(&mut harness, "Open", &web, 1);
    read(&mut harness, "Explain", &env, 1);
    harness
        .read(SourceReading { authored: Some(Authorship::of("Ann", "Nothing")), ..reading("Nothing", &[]) });
    check(&harness, &[]);
    read(&mut harness, "Change", &web, 2);
    check(&harness, &["Open", "Explain", "Change"]);
    harness.finish_rollouts();
    harness.settle();
    assert!(harness.world.ledger.claims.is_empty());
    let inventory_id = harness.world.ledger.commits[0].inventory_id.clone();
    let author = harness.world.ledger.author(&inventory_id, &Revision::new("Open"));
    assert_eq!(author, Some(&Authorship::of("Ann", "Open")));
    assert_eq!(harness.engine.next_ledger(), None);
    read(&mut harness, "Later", &web, 3);
    check(&harness, &["Open", "Explain", "Change", "Later"]);
}
