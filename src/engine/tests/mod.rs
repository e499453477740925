//! The engine's specification: tables for each decision, enumerations of the small guards, and a simulated
//! world in which commits, foreign writers, lost events and crashes come in any order.

mod budget;
mod decisions;
mod pods;
mod prune;
mod returns;
mod safety;
mod simulation;
mod wakes;
mod words;
mod world;
