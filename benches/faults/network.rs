//! Faults between the daemon and the API server, by a proxy.

use std::time::Duration;

use controlplane::{Answer, Fault as ApiFault, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::fault::{Fault, Obstacle};
use crate::stage::{Stage, writes};

/// Returns a row that spoils requests around both commits, with a chance for each of them.
fn spoiled(
    name: &'static str,
    place: &'static str,
    chance: f64,
    requests: Requests,
    fault: ApiFault,
) -> Fault {
    Fault::new(name, place, move |stage| {
        let rule = stage.spoil(Rule::new(requests.clone(), fault.clone()).chance(chance));
        stage.change();
        stage.pass(1000, 4000);
        stage.remove_old();
        stage.pass(1000, 3000);
        stage.check_status();
        stage.end(rule).map(drop)
    })
}

/// Returns a row that spoils the first requests of a kind, and none after them.
fn spoiled_at_first(
    name: &'static str,
    place: &'static str,
    times: u64,
    requests: Requests,
    fault: ApiFault,
) -> Fault {
    Fault::new(name, place, move |stage| {
        let rule = stage.spoil(Rule::new(requests.clone(), fault.clone()).times(times));
        stage.change();
        stage.remove_old();
        stage.await_fired(rule, 1)?;
        stage.pass(1000, 4000);
        stage.end(rule).map(drop)
    })
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    [whole_connections(), answers(), after_the_effect(), views(), parts()].into_iter().flatten().collect()
}

fn error(code: u16, reason: &str) -> ApiFault {
    ApiFault::Replace(Answer::error(code, reason))
}

fn millis(least: u64, most: u64) -> ApiFault {
    ApiFault::Delay(Duration::from_millis(least), Duration::from_millis(most))
}

fn whole_connections() -> Vec<Fault> {
    let (any, watches) = (Requests::any, || Requests::any().watches());
    let cut = |bytes: usize| ApiFault::Cut(bytes, ResponseCut::Reset);
    vec![
        spoiled("connections reset", "every call", 1.0, any(), ApiFault::Refuse(ResponseCut::Reset)),
        spoiled("connections closed", "every call", 1.0, any(), ApiFault::Refuse(ResponseCut::Close)),
        spoiled("silence", "every call", 1.0, any(), ApiFault::Refuse(ResponseCut::Silence)),
        spoiled("half of all calls reset", "every call", 0.5, any(), ApiFault::Refuse(ResponseCut::Reset)),
        spoiled("slow server", "every call", 1.0, any(), millis(300, 1500)),
        spoiled("reordered writes", "half of the writes", 0.5, writes(), millis(50, 1500)),
        spoiled("half answers", "every call but watches", 1.0, any().no_watches(), cut(100)),
        spoiled("watches cut", "watches", 1.0, watches(), cut(100)),
        spoiled("watches reset at random", "half of the watches", 0.5, watches(), cut(2000)),
        spoiled("watches end at once", "watches", 1.0, watches(), ApiFault::Truncate(0)),
        spoiled("short answers that look complete", "reads", 1.0, reads(), ApiFault::Truncate(200)),
        first_lists("streamed lists end early", ApiFault::Truncate(3000)),
        first_lists("streamed lists are cut", ApiFault::Cut(3000, ResponseCut::Reset)),
    ]
}

fn reads() -> Requests {
    Requests::any().method("GET").no_watches()
}

/// Spoils the lists of a start, most of them; nothing may count as gone by them.
fn first_lists(name: &'static str, fault: ApiFault) -> Fault {
    Fault::new(name, "the first lists of a start", move |stage| {
        stage.daemon().kill();
        let streamed = Requests::any().watches().query_contains("sendInitialEvents");
        let rule = stage.spoil(Rule::new(streamed, fault.clone()).chance(0.7));
        stage.remove_old();
        stage.change();
        stage.daemon().start();
        stage.pass(2000, 5000);
        stage.end(rule).map(drop)
    })
}

fn answers() -> Vec<Fault> {
    let any = Requests::any;
    let busy =
        |wait: &str| ApiFault::Replace(Answer::error(429, "TooManyRequests").header("Retry-After", wait));
    let page =
        Answer::new(200, "<html><body>Please log in</body></html>").header("Content-Type", "text/html");
    vec![
        spoiled("401", "every call", 1.0, any(), error(401, "Unauthorized")),
        spoiled("403", "every call", 1.0, any(), error(403, "Forbidden")),
        spoiled(
            "404",
            "reads of single objects",
            1.0,
            any().method("GET").no_watches(),
            error(404, "NotFound"),
        ),
        spoiled("409", "every write", 1.0, writes(), error(409, "Conflict")),
        spoiled("409 now and then", "half of the writes", 0.5, writes(), error(409, "Conflict")),
        spoiled("429 with Retry-After", "every write", 1.0, writes(), busy("2")),
        spoiled("429 with a Retry-After that is no number", "every call", 1.0, any(), busy("soon")),
        spoiled_at_first("429 with a Retry-After of a day", "three writes", 3, writes(), busy("86400")),
        spoiled("500", "every call", 1.0, any(), error(500, "InternalError")),
        spoiled("503 now and then", "half of all calls", 0.5, any(), error(503, "ServiceUnavailable")),
        spoiled("504", "every write", 1.0, writes(), error(504, "Timeout")),
        spoiled("a page for people in place of answers", "every call", 1.0, any(), ApiFault::Replace(page)),
    ]
}

fn after_the_effect() -> Vec<Fault> {
    let failed = |code: u16, reason: &str| ApiFault::ReplaceAfter(Answer::error(code, reason));
    let lost = ApiFault::DropAnswer;
    let deletes = || Requests::any().method("DELETE");
    vec![
        spoiled(
            "500 after the write took effect",
            "every write",
            1.0,
            writes(),
            failed(500, "InternalError"),
        ),
        spoiled("409 after the write took effect", "every write", 1.0, writes(), failed(409, "Conflict")),
        spoiled("answers lost after the write", "every write", 1.0, writes(), lost(ResponseCut::Silence)),
        spoiled(
            "answers reset after the write",
            "half of the writes",
            0.5,
            writes(),
            lost(ResponseCut::Reset),
        ),
        spoiled("writes delivered twice", "every write", 1.0, writes(), ApiFault::Duplicate),
        spoiled_at_first("a deletion's answer lost", "the deletion", 1, deletes(), lost(ResponseCut::Reset)),
        spoiled_at_first("a deletion delivered twice", "the deletion", 1, deletes(), ApiFault::Duplicate),
        spoiled_at_first("a deletion refused by 409", "the deletion", 2, deletes(), error(409, "Conflict")),
    ]
}

fn views() -> Vec<Fault> {
    let watches = || Requests::any().watches();
    let expired = ApiFault::Replace(Answer::watch_error(410, "Expired"));
    let busy = ApiFault::Replace(Answer::watch_error(429, "TooManyRequests"));
    let resumed = watches().query_lacks("sendInitialEvents");
    vec![
        spoiled("410 in the stream", "watches that go on", 1.0, resumed, expired),
        spoiled("410 at the start", "watches", 1.0, watches(), error(410, "Expired")),
        spoiled("429 in the stream", "watches", 1.0, watches(), busy),
        Fault::new("watches silent while a person edits", "running watches", |stage| {
            stage.proxy.end_open(&Requests::any().watches(), ResponseCut::Silence);
            stage.edit("ConfigMap", "env", &json!({"data": {"key": "theirs"}}));
            stage.change();
            stage.pass(1000, 3000);
            stage.proxy.end_open(&Requests::any().watches(), ResponseCut::Reset);
            // Nothing that was held back comes later: a new connection shows the rest.
            stage.daemon().restart();
            Ok(())
        }),
        Fault::new("watches cut in a storm", "running watches", |stage| {
            stage.change();
            let mut cut = 0;
            for _ in 0..20 {
                cut += stage.proxy.end_open(&Requests::any().watches(), ResponseCut::Reset);
                stage.pass(50, 200);
            }
            if cut == 0 { Err(Obstacle::Unmet("no watch was cut".to_owned())) } else { Ok(()) }
        }),
    ]
}

/// Notes how long an object of another kind takes while one kind fails.
pub(crate) fn bystander(stage: &mut Stage) {
    let version =
        stage.desired.objects()[&("ConfigMap".to_owned(), "counter".to_owned())]["data"]["key"].clone();
    let moved = stage.await_live("a bystander is applied", |stage| {
        stage.value("ConfigMap", "counter", "/data/key") == version
    });
    if let Err(obstacle) = moved {
        let what = format!("{obstacle:?}");
        stage.violations.push(crate::invariant::Violation::new(crate::invariant::Invariant::I10, what));
    }
}

/// Returns a row in which one kind fails and another goes on.
fn one_kind(name: &'static str, place: &'static str, requests: Requests, fault: ApiFault) -> Fault {
    Fault::new(name, place, move |stage| {
        let rule = stage.spoil(Rule::new(requests.clone(), fault.clone()));
        stage.change();
        bystander(stage);
        stage.pass(500, 2000);
        stage.check_status();
        stage.end(rule).map(drop)
    })
}

fn parts() -> Vec<Fault> {
    let forbidden = || error(403, "Forbidden");
    let of = |resource: &str| Requests::any().path_contains(resource);
    vec![
        one_kind("one kind forbidden", "Deployments", of("/deployments"), forbidden()),
        one_kind("one kind fails", "Services", of("/services"), error(500, "InternalError")),
        one_kind(
            "one object refused",
            "writes of a Deployment",
            of("/deployments/api").method("PATCH"),
            error(422, "Invalid"),
        ),
        Fault::new("discovery fails at a start", "discovery", |stage| {
            stage.daemon().kill();
            let rules = ["/api/v1", "/apis", "/apis/apps/v1"].map(|path| {
                let requests = Requests::any().path_prefix(path).path_suffix(path);
                stage.spoil(Rule::new(requests, error(503, "ServiceUnavailable")))
            });
            stage.daemon().start();
            stage.change();
            stage.remove_old();
            stage.while_unknown(|stage| stage.pass(3000, 6000));
            let fired: u64 = rules.map(|rule| stage.proxy.remove(rule).fired).into_iter().sum();
            if fired == 0 { Err(Obstacle::Unmet("nothing was discovered".to_owned())) } else { Ok(()) }
        }),
        spoiled(
            "the records fail",
            "rhumb's own ConfigMaps",
            1.0,
            of("-rhumb/configmaps").method("PATCH").method("POST").method("PUT"),
            error(500, "InternalError"),
        ),
        spoiled(
            "the ledger conflicts",
            "the rollout ledger",
            0.7,
            of("rollout-budget").method("PATCH").method("PUT").method("POST"),
            error(409, "Conflict"),
        ),
    ]
}
