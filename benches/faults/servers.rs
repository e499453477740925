//! Faults of the control plane itself. No other run shares it meanwhile.

use controlplane::Part;
use serde_json::json;

use crate::fault::{Fault, Obstacle};
use crate::stage::Stage;

/// Stops a part in the middle of a change, and lets it go on.
fn paused(name: &'static str, part: Part) -> Fault {
    Fault::new(name, "the control plane", move |stage| {
        stage.change();
        stage.pass(200, 1500);
        let cluster = stage.site.cluster;
        part_of(cluster.pause(part))?;
        stage.remove_old();
        stage.pass(3000, 6000);
        part_of(cluster.resume(part))
    })
    .alone()
}

fn part_of(done: Result<(), controlplane::Error>) -> Result<(), Obstacle> {
    done.map_err(|error| Obstacle::Unmet(error.to_string()))
}

/// Kills the API server, with or without etcd, and starts it again.
fn killed(name: &'static str, with_etcd: &'static [Part]) -> Fault {
    Fault::new(name, "the control plane", move |stage| {
        stage.change();
        stage.pass(200, 1500);
        let cluster = stage.site.cluster;
        part_of(cluster.kill_apiserver())?;
        for part in with_etcd {
            part_of(cluster.kill(*part))?;
        }
        stage.remove_old();
        stage.pass(2000, 5000);
        for part in with_etcd {
            part_of(cluster.start_part(*part))?;
        }
        part_of(cluster.start_apiserver())?;
        foreign_edit(stage);
        Ok(())
    })
    .alone()
}

/// Changes an object before the watches of the daemon are there again.
fn foreign_edit(stage: &mut Stage) {
    stage.edit("ConfigMap", "env", &json!({"data": {"key": "theirs"}}));
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    vec![
        killed("the API server is killed", &[]),
        killed("the API server and etcd are killed", &[Part::Etcd]),
        paused("the API server hangs", Part::Apiserver),
        paused("etcd hangs", Part::Etcd),
        paused("the controllers hang", Part::ControllerManager),
    ]
}
