//! The code that decides what is deleted, what may roll out, and what goes back.

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Area {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Folders, with a `/` at the end, and files.
    places: &'static [&'static str],
}

/// All rows. A file belongs to the first one that names it.
pub(crate) const AREAS: [Area; 7] = [
    Area {
        name: "deletion: `engine/deletion`",
        places: &[
            "src/engine/deletion/",
            "src/engine/facts/causes/lossy_kind.rs",
            "src/engine/facts/prune_timing.rs",
        ],
    },
    Area {
        name: "rollback: `engine/rollout/rollback`",
        places: &["src/engine/rollout/rollback/", "src/engine/facts/records/rejection.rs"],
    },
    Area {
        name: "rollouts, budget: the rest of `engine/rollout`",
        places: &[
            "src/engine/rollout/",
            "src/engine/facts/budget.rs",
            "src/engine/facts/overlay.rs",
            "src/engine/facts/records/release_unit.rs",
            "src/engine/facts/step_annotations.rs",
            "src/engine/facts/steps.rs",
        ],
    },
    Area { name: "one object: `engine/decide`", places: &["src/engine/decide/"] },
    Area {
        name: "orders and holds: `engine/orders`",
        places: &["src/engine/orders/", "src/engine/facts/records/intents.rs"],
    },
    Area {
        name: "facts, shares by Lease: two files of `engine`",
        places: &["src/engine/lease_shares.rs", "src/engine/state.rs"],
    },
    Area {
        name: "inventory, Leases: `daemon`",
        places: &["src/daemon/inventory.rs", "src/daemon/inventory/", "src/daemon/leases.rs"],
    },
];

/// Returns the index of the area that a file belongs to; none for a file of tests and for one that
/// decides nothing.
pub(crate) fn area_of(path: &str) -> Option<usize> {
    let is_test =
        path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"));
    let holds = |place: &&str| if place.ends_with('/') { path.starts_with(place) } else { path == *place };
    let is_rust = path.strip_suffix(".rs").is_some();
    AREAS.iter().position(|area| is_rust && !is_test && area.places.iter().any(holds))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    // A reason why code that is gone may change would mislead.
    #[test]
    fn each_accepted_mutant_is_of_a_function_that_there_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let lines: Vec<&str> = include_str!("accepted.tsv").lines().skip(1).collect();
        assert!(!lines.is_empty());
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let [path, function, ..] = fields[..] else { panic!("{line}") };
            assert!(fields.len() == 4 && area_of(path).is_some(), "{line}");
            let code = fs::read_to_string(root.join(path)).unwrap();
            assert!(code.contains(&format!("fn {function}(")), "{line}");
        }
    }
}
