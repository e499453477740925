//! The rows of what came of orders.

use super::*;
use crate::engine::{
    AnsweredOrder, IntentOutcome, OrderObstacle, OrderOutcome, RejectedUnit, UndoTarget, UndoneUnit,
};
use crate::object::Revision;

/// An outcome, its code, its other values and its sentence.
type OrderRow = (OrderOutcome, CauseCode, Value, &'static str);

fn unit() -> RejectedUnit {
    RejectedUnit { object: config(), revision: Revision::new("r2"), objects: 2 }
}

fn undone(target: UndoTarget, kept: Vec<ObjectId>) -> OrderOutcome {
    OrderOutcome::Undone(UndoneUnit { unit: unit(), target, kept })
}

fn confirmed(others: u32, not_pending: u32) -> OrderOutcome {
    OrderOutcome::Confirmed { first: config(), others, not_pending }
}

fn effects() -> Vec<OrderRow> {
    let [before, after] = ["r1", "r2"].map(Revision::new);
    vec![
        (
            OrderOutcome::Promoted(config(), 2),
            CauseCode::StepPromoted,
            json!({"object": config_json(), "step": 2}),
            "promoted: ConfigMap shop/env goes on from step 2",
        ),
        (
            OrderOutcome::Aborted(unit()),
            CauseCode::RolloutAborted,
            json!({"object": config_json(), "revision": "r2", "count": 2}),
            "aborted: revision r2 of ConfigMap shop/env (2 objects) goes back",
        ),
        (
            undone(UndoTarget::Of(before.clone()), Vec::new()),
            CauseCode::RevisionUndone,
            json!({"object": config_json(), "revision": "r2", "count": 2}),
            "undone: revision r2 of ConfigMap shop/env (2 objects) goes back to r1",
        ),
        (
            undone(UndoTarget::Before(after), Vec::new()),
            CauseCode::RevisionUndone,
            json!({"object": config_json(), "revision": "r2", "count": 2}),
            "undone: revision r2 of ConfigMap shop/env (2 objects) goes back to what was before r2",
        ),
        (
            undone(UndoTarget::Of(before), vec![config(), config()]),
            CauseCode::RevisionUndone,
            json!({
                "object": config_json(), "revision": "r2", "count": 2, "objects": [config_json(), config_json()],
            }),
            "undone: revision r2 of ConfigMap shop/env (2 objects) goes back to r1; r1 has no ConfigMap shop/env, \
             ConfigMap shop/env, which stays",
        ),
        (
            OrderOutcome::Retried { objects: 1, cause: x() },
            CauseCode::RejectionRetried,
            json!({"count": 1, "message": "x"}),
            "retried: 1 object, rejected before: x",
        ),
        (
            confirmed(0, 0),
            CauseCode::DeletionsConfirmed,
            json!({"object": config_json(), "count": 1}),
            "confirmed: the deletion of ConfigMap shop/env",
        ),
        (
            confirmed(2, 3),
            CauseCode::DeletionsConfirmed,
            json!({"object": config_json(), "count": 3}),
            "confirmed: the deletions of ConfigMap shop/env and 2 others; 3 of the given ones are not pending",
        ),
    ]
}

fn nothing(obstacle: OrderObstacle, mut details: Value, sentence: &'static str) -> OrderRow {
    if details.is_null() {
        details = json!({"object": config_json()});
    }
    (OrderOutcome::NothingDone(obstacle), CauseCode::NothingDone, details, sentence)
}

fn obstacles() -> Vec<OrderRow> {
    vec![
        nothing(
            OrderObstacle::ForeignObject(config(), "ops".into()),
            json!({"object": config_json(), "source": "ops"}),
            "nothing was done: ConfigMap shop/env is no object of source ops",
        ),
        nothing(
            OrderObstacle::UnknownOrder("destroy".into()),
            json!({"message": "destroy"}),
            "nothing was done: no order is called \"destroy\"",
        ),
        nothing(
            OrderObstacle::NoStep(config()),
            Value::Null,
            "nothing to promote: ConfigMap shop/env has no step in progress",
        ),
        nothing(
            OrderObstacle::NoRollout(config()),
            Value::Null,
            "nothing to abort: no rollout of ConfigMap shop/env is under way",
        ),
        nothing(
            OrderObstacle::NothingRejected(config()),
            Value::Null,
            "nothing to retry: nothing of ConfigMap shop/env was rejected",
        ),
        nothing(
            OrderObstacle::NothingPending("ops".into()),
            json!({"source": "ops"}),
            "nothing was confirmed: of what is named, nothing waits for its deletion in ops",
        ),
        nothing(
            OrderObstacle::TooManyConfirmations("ops".into(), 4000),
            json!({"source": "ops", "limit": 4000}),
            "nothing was confirmed: more than 4000 deletions of ops would be under way at a time",
        ),
    ]
}

fn undo_obstacles() -> Vec<OrderRow> {
    let revision = || Revision::new("r1");
    let of_revision = || json!({"object": config_json(), "revision": "r1"});
    vec![
        nothing(
            OrderObstacle::NoRevision(config()),
            Value::Null,
            "nothing to undo: ConfigMap shop/env shows no content of a revision",
        ),
        nothing(
            OrderObstacle::UnknownContent(config()),
            Value::Null,
            "nothing to undo: the earlier content of ConfigMap shop/env is not known; name a revision with \
             `--to-revision`",
        ),
        nothing(OrderObstacle::UnavailableRevision(x()), json!({"message": "x"}), "nothing to undo: x"),
        nothing(
            OrderObstacle::Lacking(config(), revision()),
            of_revision(),
            "nothing to undo: revision r1 has no ConfigMap shop/env; a commit removes it",
        ),
        nothing(
            OrderObstacle::Unchanged(config(), revision()),
            of_revision(),
            "nothing to undo: ConfigMap shop/env is in revision r1 as it is now",
        ),
        nothing(
            OrderObstacle::Desired(config(), revision()),
            of_revision(),
            "nothing to undo: the newest revision asks for ConfigMap shop/env as it is in revision r1",
        ),
        nothing(
            OrderObstacle::DesiredBefore(config(), UndoTarget::Of(revision())),
            Value::Null,
            "nothing to undo: the newest revision asks for ConfigMap shop/env as it was in r1",
        ),
    ]
}

fn rows() -> Vec<OrderRow> {
    [effects(), obstacles(), undo_obstacles()].concat()
}

/// Returns the codes of all outcomes.
pub(super) fn codes() -> impl Iterator<Item = CauseCode> {
    rows().into_iter().map(|(outcome, ..)| outcome.code())
}

#[test]
fn each_outcome_of_an_order_has_its_code_its_values_and_its_sentence() {
    for (outcome, code, mut details, sentence) in rows() {
        details["cause"] = code.word().into();
        let form = serde_json::to_value(CodedReason::of_order(&outcome)).unwrap();
        let expected = json!({"code": "OrderAnswered", "details": details});
        assert_eq!((form, &*outcome.to_string()), (expected, sentence), "{outcome:?}");
    }
}

#[test]
fn the_giver_of_an_order_is_named_where_that_is_known() {
    for (by, giver) in [("", ""), ("ann", " (ordered by ann)")] {
        let answer = AnsweredOrder { outcome: OrderOutcome::Promoted(config(), 2), by: by.into() };
        let expected = format!("promoted: ConfigMap shop/env goes on from step 2{giver}");
        assert_eq!(answer.to_string(), expected);
        assert_eq!(json!(answer), json!(expected), "a trace has the sentence");
    }
}

#[test]
fn each_pause_and_each_hold_says_what_came_of_it() {
    let check = |outcome: IntentOutcome, expected: &str| assert_eq!(outcome.to_string(), expected);
    check(IntentOutcome::Paused(config()), "paused: ConfigMap shop/env");
    check(IntentOutcome::SourcePaused("shop".into()), "paused: source shop");
    check(
        IntentOutcome::Held(config(), jiff::Timestamp::UNIX_EPOCH),
        "held: ConfigMap shop/env until 1970-01-01T00:00:00Z",
    );
    check(IntentOutcome::EndUnreadable(config()), "not held: ConfigMap shop/env: until when cannot be read");
    check(
        IntentOutcome::Denied(config()),
        "not in effect: ConfigMap shop/env: optOut of its source is denied",
    );
    check(IntentOutcome::Resumed("source shop".into()), "resumed: source shop");
    check(IntentOutcome::Released("ConfigMap shop/env".into()), "released: ConfigMap shop/env");
}
