//! Faults in the middle of a rollout that fails, and of its rollback.

use controlplane::{Fault as ApiFault, Requests, ResponseCut, Rule};

use crate::fault::Fault;
use crate::invariant::Invariant;
use crate::judge::note;
use crate::stage::{Stage, writes};

/// Commits an image that cannot be pulled, disturbs what follows, and waits for the rollback.
fn rolled_back(name: &'static str, place: &'static str, disturb: fn(&mut Stage)) -> Fault {
    Fault::new(name, place, move |stage| {
        let good = stage.image("web");
        stage.write_next();
        let web = stage.desired.text("a/web.yaml");
        let bad = web.lines().map(|line| match line.split_once("image: ") {
            Some((before, _)) => format!("{before}image: app:broken\n"),
            None => format!("{line}\n"),
        });
        let bad: String = bad.collect();
        stage.write("a/web.yaml", &bad);
        stage.commit("Break one workload");
        // The failing content and its rollback are writes that nobody else asked for.
        stage.allowance.edits += 4;
        stage.await_live("the failing image is rolled out", |stage| stage.image("web") == "app:broken")?;
        disturb(stage);
        stage.proxy.clear();
        if let Err(obstacle) = stage.await_live("it goes back", |stage| stage.image("web") == good) {
            note(stage, Invariant::I1, format!("no rollback: {obstacle:?}"));
        }
        // Time to try it again, if it does.
        stage.pass(2000, 4000);
        stage.change();
        Ok(())
    })
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    vec![
        rolled_back("an image that cannot be pulled", "a commit", |_| {}),
        rolled_back("kill -9 during a rollback", "the process", |stage| {
            for _ in 0..3 {
                stage.pass(100, 1000);
                stage.daemon().restart();
            }
        }),
        rolled_back("calls reset during a rollback", "half of all calls", |stage| {
            let reset = ApiFault::Refuse(ResponseCut::Reset);
            stage.spoil(Rule::new(Requests::any(), reset).chance(0.5));
            stage.pass(1000, 3000);
        }),
        rolled_back("answers lost during a rollback", "every write", |stage| {
            stage.spoil(Rule::new(writes(), ApiFault::DropAnswer(ResponseCut::Silence)).times(6));
            stage.pass(1000, 3000);
        }),
        rolled_back("SIGSTOP during a rollback", "the process", |stage| {
            stage.daemon().signal("STOP");
            stage.pass(1000, 4000);
            stage.daemon().signal("CONT");
        }),
    ]
}
