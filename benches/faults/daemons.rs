//! Faults of two and three daemons, whose sources exchange objects.

use crate::fault::{Fault, Obstacle};
use crate::processes::holder;
use crate::stage::{Effect, Shape, Stage, letter};

/// The file that moves.
const WEB: &str = "web.yaml";
const ENV: &str = "env.yaml";

/// Moves the workload and its configuration to another folder.
fn exchange(stage: &mut Stage, from: usize, to: usize) {
    for file in [WEB, ENV] {
        stage.rename(&format!("{}/{file}", letter(from)), &format!("{}/{file}", letter(to)));
    }
    stage.commit("Move the workload");
}

/// Returns a row of daemons with a source each. A deletion of what moves breaks I3, and its second
/// creation I7.
fn moved(
    name: &'static str,
    daemons: usize,
    work: impl Fn(&mut Stage) -> Result<(), Obstacle> + Send + Sync + 'static,
) -> Fault {
    Fault::new(name, "sources of several daemons", work).of(Shape::Folders(daemons))
}

fn moves() -> Vec<Fault> {
    vec![
        moved("a file moves to another source", 2, |stage| {
            exchange(stage, 0, 1);
            stage.pass(500, 3000);
            Ok(())
        }),
        moved("a file moves and comes back", 2, |stage| {
            exchange(stage, 0, 1);
            stage.pass(0, 1500);
            exchange(stage, 1, 0);
            stage.pass(0, 1500);
            Ok(())
        }),
        moved("a file moves with a change", 2, |stage| {
            exchange(stage, 0, 1);
            stage.change();
            stage.pass(500, 3000);
            Ok(())
        }),
        moved("a file moves while its new daemon is down", 2, |stage| {
            stage.replicas[1].kill();
            exchange(stage, 0, 1);
            stage.pass(2000, 5000);
            stage.replicas[1].start();
            Ok(())
        }),
        moved("a file moves while its old daemon is down", 2, |stage| {
            stage.replicas[0].kill();
            exchange(stage, 0, 1);
            stage.pass(2000, 5000);
            stage.replicas[0].start();
            Ok(())
        }),
        moved("a file moves while its new daemon sleeps", 2, |stage| {
            stage.replicas[1].signal("STOP");
            exchange(stage, 0, 1);
            stage.pass(2000, 8000);
            stage.replicas[1].signal("CONT");
            Ok(())
        }),
        moved("both daemons are killed during a move", 2, |stage| {
            exchange(stage, 0, 1);
            for _ in 0..3 {
                stage.pass(100, 900);
                let number = usize::try_from(stage.random.below(2)).unwrap_or(0);
                stage.replicas[number].restart();
            }
            Ok(())
        }),
        moved("a file goes round three sources", 3, |stage| {
            for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2)] {
                exchange(stage, from, to);
                stage.pass(0, 1500);
            }
            Ok(())
        }),
        moved("a file is in two sources for a while", 2, |stage| {
            let text = stage.desired.text("a/web.yaml");
            stage.write("b/web.yaml", &text);
            stage.commit("Copy the workload");
            stage.pass(500, 3000);
            stage.remove("a/web.yaml");
            stage.commit("Remove the first one");
            stage.pass(500, 2000);
            Ok(())
        }),
    ]
}

/// Disturbs the holder of the first source's Lease around both commits.
fn of_holder(name: &'static str, daemons: usize, work: fn(&mut Stage, usize)) -> Fault {
    Fault::new(name, "the holder of a Lease", move |stage| {
        let number = holder(stage)?;
        stage.change();
        stage.pass(0, 1000);
        work(stage, number);
        Ok(())
    })
    .of(Shape::Leases(daemons))
}

fn leases() -> Vec<Fault> {
    vec![
        of_holder("the holder is killed", 2, |stage, number| {
            stage.replicas[number].kill();
            stage.remove_old();
            stage.pass(1000, 3000);
        }),
        of_holder("the holder ends", 2, |stage, number| {
            stage.replicas[number].stop();
            stage.remove_old();
        }),
        of_holder("each of three daemons is killed in turn", 3, |stage, number| {
            for more in 0..3 {
                stage.replicas[(number + more) % 3].restart();
                stage.pass(500, 2500);
            }
        }),
        of_holder("somebody deletes the Leases", 2, |stage, _| {
            stage.allow(Effect::DeletesRecords);
            for folder in ["a", "b"] {
                let lease = stage.record("Lease", &format!("rhumb-{}", stage.source_name(folder)));
                stage.site.api.delete(&lease);
                stage.pass(100, 900);
            }
            stage.remove_old();
        }),
    ]
}

fn twins() -> Vec<Fault> {
    vec![
        Fault::new("two daemons with the same source", "both daemons", |stage| {
            // Each of them asks for each write.
            stage.allowance.edits += 6;
            stage.change();
            stage.pass(0, 1000);
            stage.remove_old();
            Ok(())
        })
        .of(Shape::Twins),
        Fault::new("two daemons with the same source, and one is killed", "both daemons", |stage| {
            stage.allowance.edits += 6;
            stage.change();
            stage.pass(0, 2000);
            stage.replicas[1].kill();
            stage.remove_old();
            Ok(())
        })
        .of(Shape::Twins),
    ]
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    [moves(), leases(), twins()].into_iter().flatten().collect()
}
