//! Rollouts: the budget, the rollout ledger, units, pods, steps and the rollback.

pub(super) mod budget;
pub(super) mod budget_claims;
pub(super) mod budget_loads;
pub(super) mod budget_tally;
pub(super) mod counted_pods;
pub(super) mod daemon_set_steps;
pub(super) mod dry_run_impact;
pub(super) mod foreign_claims;
pub(super) mod kept_answers;
pub(super) mod ledger;
pub(super) mod ledger_recovery;
pub(super) mod overlay;
pub(super) mod pod_eviction;
pub(super) mod pods;
pub(super) mod queue;
pub(super) mod rollback;
pub(super) mod rollout_events;
pub(super) mod rollout_verdict;
pub(super) mod rollouts;
pub(super) mod scale_balance;
pub(super) mod start_rate;
pub(super) mod step_annotations;
pub(super) mod step_overlay;
pub(super) mod steps;
pub(super) mod stuck_stateful_set;
pub(super) mod units;
