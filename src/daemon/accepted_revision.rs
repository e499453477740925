//! The accepted revision of a source whose commits must be signed, as its inventory records it.
//!
//! The store on disk is a cache, and the git server writes its contents. The inventory is neither:
//! its record survives a new host, and no push moves it.

use super::handover;
use super::setup::{SourceFiles, SourceSetup};
use crate::cluster::{self, Cluster, InventoryObject};
use crate::object::Revision;
use crate::object::annotations;
use crate::source::VerificationRecord;

/// Data key with the revision that was accepted last.
pub(super) const ACCEPTED_KEY: &str = "accepted";

/// Stands for a record that cannot be read: nothing comes after it before a person says with what
/// to begin.
const UNREADABLE_RECORD_WORD: &str = "0000000000000000000000000000000000000000";

/// Returns the revisions that the inventory of a namespace records.
pub(super) fn verification_anchor(
    namespace: &str,
    inventory: Option<&InventoryObject>,
) -> VerificationRecord {
    VerificationRecord {
        last_read: inventory.and_then(handover::last_read_revision),
        accepted_revision: inventory.and_then(accepted_revision),
        confirmed: inventory.and_then(confirmed_revision),
        namespace: namespace.to_owned(),
    }
}

/// Returns what was accepted last.
pub(super) fn accepted_revision(inventory: &InventoryObject) -> Option<Revision> {
    inventory
        .data
        .get(ACCEPTED_KEY)
        .map(|text| id(text).unwrap_or_else(|| Revision::new(UNREADABLE_RECORD_WORD)))
}

/// Returns what a person has confirmed.
fn confirmed_revision(inventory: &InventoryObject) -> Option<Revision> {
    inventory.annotations.get(annotations::ACCEPT).and_then(|text| id(text))
}

/// Returns the full id of a commit; none where a text is no such id.
fn id(text: &str) -> Option<Revision> {
    let text = text.trim();
    let is_full_id = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_full_id.then(|| Revision::new(&text.to_ascii_lowercase()))
}

/// Returns whether an inventory says what was accepted last; of a source that asks for no
/// signatures there is nothing to say.
pub(super) fn is_recorded(inventory: Option<&InventoryObject>, accepted: Option<&Revision>) -> bool {
    accepted.is_none_or(|accepted| {
        inventory.and_then(accepted_revision).as_ref() == Some(accepted)
            && inventory.and_then(confirmed_revision).as_ref() != Some(accepted)
    })
}

/// Lets an inventory say what was accepted last. A confirmation of it has done its work.
pub(super) fn record(inventory: &mut InventoryObject, accepted: Option<&Revision>) {
    let Some(accepted) = accepted else { return };
    if confirmed_revision(inventory).as_ref() == Some(accepted) {
        inventory.annotations.remove(annotations::ACCEPT);
    }
    inventory.data.insert(ACCEPTED_KEY.to_owned(), accepted.to_string());
}

/// Sets what was accepted before of a source that is read only once.
pub(super) async fn with_anchor(
    cluster: &Cluster,
    namespace: &str,
    mut setup: SourceSetup,
) -> Result<SourceSetup, cluster::ClusterError> {
    if let SourceFiles::Source(source) = &mut setup.files
        && source.is_verified()
    {
        source.record_verification(verification_anchor(
            namespace,
            cluster.read_inventory(namespace, &setup.name).await?.as_ref(),
        ));
    }
    Ok(setup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::inventory::{InventoryState, InventoryStore};

    fn inventory(accepted: &str, confirmed: &str) -> InventoryObject {
        let mut inventory = InventoryObject::default();
        inventory.data.extend((!accepted.is_empty()).then(|| (ACCEPTED_KEY.to_owned(), accepted.to_owned())));
        inventory
            .annotations
            .extend((!confirmed.is_empty()).then(|| (annotations::ACCEPT.to_owned(), confirmed.to_owned())));
        inventory
    }

    #[test]
    fn only_whole_ids_are_read_and_what_cannot_be_read_is_not_nothing() {
        #[track_caller]
        fn check(accepted: &str, confirmed: &str, expected: (Option<&str>, Option<&str>)) {
            let found = verification_anchor("rhumb-system", Some(&inventory(accepted, confirmed)));
            let expected = (expected.0.map(Revision::new), expected.1.map(Revision::new));
            assert_eq!((found.accepted_revision, found.confirmed), expected, "{accepted} {confirmed}");
        }
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        check("", "", (None, None));
        check(&a, &b, (Some(&a), Some(&b)));
        check("main", &b[1..], (Some(UNREADABLE_RECORD_WORD), None));
        check(&a, &format!(" {}\n", b.to_uppercase()), (Some(&a), Some(&b)));
        let none =
            VerificationRecord { namespace: "rhumb-system".to_owned(), ..VerificationRecord::default() };
        assert_eq!(verification_anchor("rhumb-system", None), none);
    }

    #[test]
    fn a_confirmation_goes_with_what_it_confirmed() {
        let (a, b) = (Revision::new(&"a".repeat(40)), Revision::new(&"b".repeat(40)));
        assert!(is_recorded(None, None) && !is_recorded(None, Some(&a)));
        let mut inventory = inventory("", b.as_str());
        record(&mut inventory, None);
        assert_eq!(accepted_revision(&inventory), None);
        record(&mut inventory, Some(&a));
        assert!(is_recorded(Some(&inventory), Some(&a)));
        assert_eq!(confirmed_revision(&inventory).as_ref(), Some(&b), "it is for another one");
        assert!(!is_recorded(Some(&inventory), Some(&b)));
        record(&mut inventory, Some(&b));
        assert!(is_recorded(Some(&inventory), Some(&b)));
        assert_eq!(confirmed_revision(&inventory), None);
    }

    #[test]
    fn a_source_has_its_accepted_revision_once_its_inventory_as_last_read_records_it() {
        let (a, b) = (Revision::new(&"a".repeat(40)), Revision::new(&"b".repeat(40)));
        let check = |inventory: InventoryState, accepted: Option<&Revision>, expected: bool| {
            let store = InventoryStore {
                inventory,
                accepted_revision: accepted.cloned(),
                ..InventoryStore::default()
            };
            assert_eq!(store.has_accepted_revision(), expected, "{:?} {accepted:?}", store.inventory);
        };
        let recorded = || InventoryState::Present(inventory(a.as_str(), ""));
        check(recorded(), Some(&a), true);
        check(recorded(), Some(&b), false);
        check(InventoryState::Unread, Some(&a), false);
        check(InventoryState::Absent, Some(&a), false);
        // Its commits need no signature.
        check(recorded(), None, true);
        check(InventoryState::Unread, None, true);
    }
}
