//! The kept objects in an inventory.

use crate::cluster::InventoryObject;
use crate::engine::{KeptObjects, parse_kept_objects};

/// Data key with the objects that are kept when nobody wants them: one line of JSON an object.
pub(in crate::daemon) const KEPT_KEY: &str = "kept";

/// Returns the objects that an inventory records as kept.
pub(crate) fn kept_objects(inventory: &InventoryObject) -> KeptObjects {
    inventory.data.get(KEPT_KEY).map(|text| parse_kept_objects(text)).unwrap_or_default()
}
