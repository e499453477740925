//! The engine's specification: tables for each decision, enumerations of the small guards, and a simulated
//! world in which commits, foreign writers, lost events and crashes come in any order.

mod authors;
mod budget;
mod carried;
mod config_hash;
mod decisions;
mod evictions;
mod flapping;
mod fleet;
mod foresee;
mod freed;
mod ignore;
mod left_alone;
mod lost;
mod model;
mod node_steps;
mod orders;
mod overlay;
mod pausing;
mod pods;
mod prune;
mod queue;
mod refused;
mod restart;
mod restart_faults;
mod returns;
mod rig;
mod rollouts;
mod safety;
mod seal;
mod simulation;
mod steps;
mod unknown;
mod wakes;
mod words;
mod world;
