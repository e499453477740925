//! Rollouts: the budget, the rollout ledger, units, pods, steps and the rollback.
//!
//! A workload is in one of these states, by the sets in `rollouts::Rollouts` and its parts that
//! name it. The third column says what `Engine::next_ledger` makes of its claim:
//!
//! | state of the workload | sets | claim |
//! |---|---|---|
//! | idle | none | is taken out |
//! | waits for the budget | `requests`, `requests_by_id`, `slot_verdicts` with a shortage | none |
//! | is granted a slot | the same without a shortage, `claims_to_write` | is written |
//! | is claimed, not written | `requests_by_id`; `unused_claims` where it got a start | stays |
//! | is being written | `in_flight` without a version, `writes_in_flight` | stays |
//! | rolls out | `in_flight` with a slot | stays |
//! | was deleted to be created again | the same, until it is complete | stays, and says so |
//! | failed, goes back | the same; then `requests_by_id` for the rollback | becomes the rollback's |
//! | failed and quarantined | `in_flight` without a slot | is taken out |
//! | failed, not judged yet | `in_flight`, in the end without a slot | stays, or is taken out |
//! | has a held step | `in_flight` without a slot | is taken out |
//! | asks for the next step | the same, `requests_by_id`, `claims_to_write` | is written |
//! | has ended | `ended_claims`, until the ledger has no claim of it | is taken out |
//! | is another process's | `foreign_workloads` | stays while it counts |
//!
//! A claim also stays in two cases: the last write of the workload is not shown yet, or no informer
//! can show the workload. A start is written with a claim where the workload held no slot.

pub(super) mod budget;
pub(super) mod budget_claims;
pub(super) mod budget_loads;
pub(super) mod budget_tally;
pub(super) mod counted_pods;
pub(super) mod daemon_set_steps;
pub(super) mod decision_memo;
pub(super) mod dry_run_impact;
pub(super) mod evaluation;
pub(super) mod events;
pub(super) mod failure_cause;
pub(super) mod foreign_claims;
pub(super) mod ledger;
pub(super) mod ledger_authors;
pub(super) mod ledger_recovery;
pub(super) mod ledger_state;
pub(super) mod ledger_text;
pub(super) mod lost_writes;
pub(super) mod nodes;
pub(super) mod pod_counts;
pub(super) mod pod_eviction;
pub(super) mod pods;
pub(super) mod progress;
pub(super) mod queue;
pub(super) mod record_seals;
pub(super) mod record_size;
pub(super) mod recreation;
pub(super) mod rollback;
pub(super) mod rollouts;
pub(super) mod scale_balance;
pub(super) mod slot_requests;
pub(super) mod start_rate;
pub(super) mod step_overlay;
pub(super) mod step_tracking;
pub(super) mod steps;
pub(super) mod stuck_stateful_set;
pub(super) mod unit_transfer;
pub(super) mod units;
pub(super) mod watched_pods;
pub(super) mod writes_in_flight;
