//! The place that an inventory was made from, as long as this process remembers it, and the
//! revision that it has to record.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::super::super::setup::{Setup, SourceFiles, SourceSetup};
use super::*;
use crate::cluster::tests::fake::{FakeApiServer, ScriptedReply};
use crate::engine::{
    AcceptanceRecord, AdoptPolicy, BlastRadius, BudgetNarrowing, LiveObject, ObjectOwner, OptOutPolicy,
    PrunePolicy, RejectionAction, ReleaseUnit, RepositoryExtent, RollbackTarget, UnitMember,
};
use crate::input::VariableMode;
use crate::object::annotations;
use crate::source::{
    GitLocation, ResolvedLocation, SignatureVerification, Source, SourceSettings, VerifiedCommits, read_disk,
};

const FIRST: SourceId = SourceId::new(0);
const HERE: &str = "/srv/here";

/// Returns a source of one file.
fn source(dir: &Path) -> SourceSetup {
    SourceSetup {
        name: "shop".to_owned(),
        location: HERE.to_owned(),
        namespace: "shop".to_owned(),
        allow: Arc::default(),
        account: None,
        variables: VariableMode::Literal,
        decrypter: Arc::default(),
        namespaces: None,
        adopt: AdoptPolicy::IfUnowned,
        opt_out: OptOutPolicy::Allowed,
        prune: PrunePolicy::On,
        radius: BlastRadius { count: 10, percent: 10 },
        prune_delay: Duration::ZERO,
        extent: RepositoryExtent::Whole,
        writes: SourceWrites::Allowed,
        life: SourceLifecycle::Active,
        confirmed: BTreeSet::new(),
        folder_search: None,
        budget: BudgetNarrowing::default(),
        files: SourceFiles::Snapshot(Arc::new(read_disk(dir).unwrap())),
    }
}

/// Returns a loop of one source, over a cluster that never answers.
async fn looped() -> Reconciler {
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
        .unwrap();
    let cluster = FakeApiServer::start(|_, _| ScriptedReply::Silence).await.cluster;
    let setup = Setup::in_test(cluster, vec![source(files.path())]);
    Reconciler::new(setup, RunMode::Daemon, mpsc::unbounded_channel().0)
}

/// A change of an inventory, or of the place of its source.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// It is read, and was made from this location.
    ReadFrom(&'static str),
    /// It is gone.
    Lost,
    /// The source is at this location now.
    Moved(&'static str),
}

impl Reconciler {
    fn change(&mut self, change: Change) {
        let state = match change {
            Change::Moved(location) => return self.set_location(FIRST, location.to_owned()),
            Change::Lost => InventoryState::Absent,
            Change::ReadFrom(location) => InventoryState::Present(InventoryObject {
                annotations: [(annotations::SOURCE.to_owned(), location.to_owned())].into(),
                ..InventoryObject::default()
            }),
        };
        self.records.inventories[FIRST].inventory = state;
        self.update_engine_inventory(FIRST);
    }

    /// Returns the location whose objects are not deleted before a person confirms it.
    fn other_location(&self) -> Option<&str> {
        self.engine.view().source(FIRST).inventory.as_ref().unwrap().other_location.as_deref()
    }
}

// A location that nobody knows may have been another repository's, whose objects are not ours to
// delete.
#[tokio::test]
async fn a_lost_inventory_is_one_of_here_only_where_this_process_has_seen_it_to_be() {
    use Change::{Lost, Moved, ReadFrom};
    const AWAY: &str = "/srv/away";
    let table: [(&[Change], Option<&str>); 7] = [
        (&[Lost], Some(inventory::UNKNOWN_LOCATION)),
        (&[ReadFrom(HERE)], None),
        (&[ReadFrom(HERE), Lost], None),
        (&[ReadFrom(AWAY), Lost], Some(inventory::UNKNOWN_LOCATION)),
        (&[ReadFrom(HERE), ReadFrom(AWAY)], Some(AWAY)),
        (&[ReadFrom(HERE), Lost, Moved(AWAY)], Some(inventory::UNKNOWN_LOCATION)),
        (&[ReadFrom(HERE), Moved(AWAY), Lost, Moved(HERE)], Some(inventory::UNKNOWN_LOCATION)),
    ];
    for (changes, expected) in table {
        let mut reconciler = looped().await;
        for change in changes {
            reconciler.change(*change);
        }
        assert_eq!(reconciler.other_location(), expected, "{changes:?}");
    }
}

// An object of somebody else is not taken for ours only because the record of it is lost.
#[tokio::test]
async fn a_lost_inventory_becomes_one_of_here_once_all_kinds_are_seen_and_all_that_is_there_is_wanted() {
    use crate::engine::tests::world::{World, WorldObject, config, desired, reading};
    let maps = config("a").group_kind();
    let check = async |is_listed: bool, has_unwanted: bool, expected: Option<&str>| {
        let mut reconciler = looped().await;
        reconciler.change(Change::Lost);
        let wanted = reading("r1", &[("a", Some(desired(&config("a"), 1, "a")))]);
        reconciler.engine.read(FIRST, wanted);
        reconciler.engine.begin_list(&maps);
        let owner = ObjectOwner::Ours(cluster::inventory_id_of("rhumb-system", "shop").into());
        for name in [Some("a"), has_unwanted.then_some("b")].into_iter().flatten() {
            let thing = WorldObject::settled(desired(&config(name), 1, name).hash, "r1", 1);
            let live = LiveObject { owner: owner.clone(), ..World::live(&config(name), &thing) };
            reconciler.engine.observe_object(&config(name), live);
        }
        if is_listed {
            reconciler.engine.end_list(&maps);
        }
        reconciler.find_origins();
        // As when it is read again.
        reconciler.change(Change::Lost);
        assert_eq!(reconciler.other_location(), expected, "{is_listed} {has_unwanted}");
    };
    check(true, false, None).await;
    check(true, true, Some(inventory::UNKNOWN_LOCATION)).await;
    check(false, false, Some(inventory::UNKNOWN_LOCATION)).await;
}

// Under `head` the next commit is not judged by the accepted one.
#[test]
fn a_source_has_to_record_the_accepted_revision_first_where_the_next_one_is_judged_by_it() {
    let check = |commits: Option<VerifiedCommits>, expected: AcceptanceRecord| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
            .unwrap();
        let keys = dir.path().join("keys");
        let verify = commits.map(|commits| SignatureVerification { keys, commits });
        let location = GitLocation { verify, ..GitLocation::new("https://git.example.org/shop.git") };
        let (location, state) = (ResolvedLocation::Git(location), dir.path().join("state"));
        let followed = Source::open_with("shop", &location, &state, SourceSettings::default()).unwrap();
        let setup = SourceSetup { files: SourceFiles::Source(followed), ..source(dir.path()) };
        assert_eq!(setup.declaration("set", "rhumb-system").acceptance, expected, "{commits:?}");
    };
    check(Some(VerifiedCommits::Range), AcceptanceRecord::Required);
    check(Some(VerifiedCommits::Head), AcceptanceRecord::Optional);
    check(None, AcceptanceRecord::Optional);
}

#[test]
fn failed_contents_whose_record_is_gone_are_named_with_their_count() {
    let rejected = |names: &[&str]| {
        let id = |name: &str| ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), name);
        let member =
            || UnitMember { content: None, rollback_target: RollbackTarget::Unknown, restarted: None };
        let members = names.iter().map(|name| (id(name), member())).collect();
        let unit = ReleaseUnit { inventory_id: "a-v1".into(), revision: Revision::new("r1"), members };
        Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() }
    };
    let check = |rejections: &[Rejection], expected: Option<&str>| {
        assert_eq!(lost_rejections_text(rejections).as_deref(), expected);
    };
    check(&[], None);
    let one = "the failed content of Deployment shop/web is tried again, as its record is gone";
    check(&[rejected(&["web"])], Some(one));
    let more = "the failed content of Deployment shop/a and of 2 other objects is tried again, as its record is gone";
    check(&[rejected(&["web", "a"]), rejected(&["b"])], Some(more));
}
