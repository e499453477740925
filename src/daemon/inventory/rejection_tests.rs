//! Rejections in an inventory: their seals, how long they stay, and what they bring back.

use std::time::Instant;

use super::tests::{having_one_too_many, set_inventory};
use super::*;
use crate::engine::tests::world::{FIRST, SET, config, desired, following, id, reading};
use crate::engine::{
    AdoptPolicy, ContentRef, Engine, HashKey, Input, ReadState, RejectionAction, ReleaseUnit,
    RepositoryIdentity, RollbackTarget, RolloutLedger, UnitMember,
};
use crate::object::{ContentHash, ObjectId};

/// Returns an inventory that says, as an older version wrote it, that a content of an object was
/// rejected, and which one was good before.
fn rejecting(id: &ObjectId, hash: ContentHash, good: ContentHash) -> InventoryObject {
    let good = ContentRef { hash: good, revision: Revision::new("r0") };
    let (rollback_target, restarted) = (RollbackTarget::Content(good), None);
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r1"),
        members: [(
            ObjectId::new(&GroupKind::parse("ConfigMap"), id.namespace(), id.name()),
            UnitMember { content: Some(hash), rollback_target, restarted },
        )]
        .into(),
    };
    let rejection = Rejection { unit, action: RejectionAction::Quarantine, cause: "it failed".into() };
    let text = rejections_text(&[rejection], &HashCiphers::default()).unwrap();
    let text = text.replace("\"ConfigMap/", &format!("\"{}/", id.kind()));
    InventoryObject { data: [(REJECTED_KEY.to_owned(), text)].into(), ..InventoryObject::default() }
}

#[test]
fn the_hash_of_a_secret_in_an_inventory_is_sealed_once_there_is_a_key() {
    let secret = id("", "Secret", "shop", "password");
    let wanted = desired(&secret, 1, "password");
    let hashes = [wanted.hash, desired(&secret, 0, "password").hash];
    let plain = rejecting(&secret, hashes[0], hashes[1]);
    let mut engine = following(&[("shop", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
    engine.read(FIRST, reading("r1", &[("password", Some(wanted))]));
    let inventory = read(Some(&plain), "/srv/a", engine.view().seals());
    set_inventory(&mut engine, inventory);
    let write = |engine: &Engine| {
        wanted_inventory(engine.view(), FIRST, "/srv/a", Some(&plain), InventoryWriteMode::Grow).unwrap()
    };
    assert_eq!(seal_status(Some(&plain), engine.view().seals()), HashCipherStatus::Stale);
    assert!(!is_to_be_sealed(engine.view(), Some(&plain)), "there is no key");
    let written = |engine: &Engine| {
        let text = write(engine).data[REJECTED_KEY].clone();
        hashes.map(|hash| text.contains(&hash.to_string()))
    };
    assert_eq!(written(&engine), [true, true]);
    engine.handle_now(Input::Key(ReadState::Value(HashKey::of(&[1; 32]).unwrap())));
    assert!(is_to_be_sealed(engine.view(), Some(&plain)) && !is_to_be_sealed(engine.view(), None));
    assert!(!is_current(engine.view(), FIRST, Some(&plain)));
    assert_eq!(written(&engine), [false, false]);
    let sealed = write(&engine);
    assert!(!is_to_be_sealed(engine.view(), Some(&sealed)));
    let [recorded, expected] = [&sealed, &plain].map(|inventory| inventory.rejections(engine.view().seals()));
    assert_eq!(recorded, expected);
}

#[test]
fn a_rejection_is_read_and_goes_with_its_key_once_another_content_is_wanted() {
    let hash = |content: u32| desired(&config("a"), content, "a").hash;
    let check = |content: u32, good: u32, expected: bool| {
        let known = rejecting(&config("a"), hash(content), hash(good));
        assert_eq!(known.rejections(&HashCiphers::default()).len(), 1);
        let (mut engine, _) = having_one_too_many();
        engine.handle_now(Input::Ledger(RolloutLedger::default()));
        let inventory = read(Some(&known), "/srv/a", engine.view().seals());
        set_inventory(&mut engine, inventory);
        let mode = InventoryWriteMode::Grow;
        let written = wanted_inventory(engine.view(), FIRST, "/srv/a", Some(&known), mode).unwrap();
        assert_eq!(written.data.contains_key(REJECTED_KEY), expected, "{content}");
        assert_eq!(written.rejections(&HashCiphers::default()).len(), usize::from(expected), "{content}");
    };
    check(1, 0, true);
    check(9, 1, false);
}

// Else it would wait for ever: nothing that is declared is in its namespace.
#[test]
fn an_inventory_names_the_namespace_of_what_a_rollback_brings_back() {
    let gone = id("", "ConfigMap", "ops", "brought-back");
    let good = desired(&gone, 1, "brought-back");
    let release = ContentRef { hash: good.hash, revision: Revision::new("r1") };
    let rollback_target = RollbackTarget::Content(release.clone());
    let member = UnitMember { content: None, rollback_target, restarted: None };
    let members = [(gone.clone(), member)].into();
    let unit = ReleaseUnit { inventory_id: SET.into(), revision: Revision::new("r2"), members };
    let rejection = Rejection { unit, action: RejectionAction::RollBack, cause: "undone by hand".into() };
    let mut engine = following(&[("shop", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
    let known = engine.view().source(FIRST).inventory.clone().unwrap();
    set_inventory(&mut engine, Inventory { rejections: vec![rejection], ..known });
    engine.read(FIRST, reading("r3", &[]));
    engine.handle_now(Input::OlderContent { id: gone, release, content: Some(good) });
    engine.poll(Instant::now());
    for mode in [InventoryWriteMode::Grow, InventoryWriteMode::Exact] {
        let written = wanted_inventory(engine.view(), FIRST, "/srv/a", None, mode).unwrap();
        assert_eq!(written.kinds, [GroupKind::parse("ConfigMap")].into(), "{mode:?}");
        assert_eq!(written.namespaces, ["ops".to_owned()].into(), "{mode:?}");
    }
}
