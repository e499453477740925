//! Foreign programs on foreign input, behind walls of the kernel: what they may read, write, call
//! and use up.
//!
//! Owns the walls ([`SandboxPolicy`]), and the process that raises them around itself and then
//! becomes the program ([`enter`]). Also owns the run of that process ([`Sandbox::run`]), and the
//! search for the programs ([`ProgramCatalog`]). Which wall ended a program is told by name
//! ([`SandboxWall`]).
//!
//! The walls need no privilege and no namespace. Landlock bounds files, seccomp bounds system
//! calls, limits of the process bound memory, processor time and files. A confined program has no
//! network on any kernel, as it can make no socket, unless its policy names ports
//! ([`NetworkReach`]). It starts no process, so that nothing outlives it.
//!
//! **Invariants:** a program never runs with fewer walls than its policy asks for: what cannot be
//! raised is an error. No variable and no descriptor of this process reaches the program. Knows
//! nothing of what a program renders.

mod catalog;
mod entry;
mod error;
mod executable;
mod files;
mod outcome;
mod policy;
mod probe;
mod process;
mod program;
mod run;
mod system_calls;
mod words;

pub use catalog::{InstalledProgram, ProgramCatalog, ProgramPlace};
pub use entry::{ENTRY, enter};
pub use error::SandboxError;
pub use outcome::{RunOutput, SandboxWall};
pub use policy::{Confinement, NetworkReach, ProgramCommand, SandboxLimits, SandboxPolicy};
pub use probe::SandboxSupport;
pub use program::{ProgramError, ProgramVersion, RenderProgram};
pub use run::Sandbox;
