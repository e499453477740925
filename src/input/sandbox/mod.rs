//! Foreign programs on foreign input, in a sandbox of the kernel: what they may read, write, call
//! and use up.
//!
//! Owns the sandbox ([`SandboxPolicy`]), and the process that sets it up around itself and then
//! becomes the program ([`enter`]). Also owns the run of that process ([`Sandbox::run`]), and the
//! search for the programs ([`ProgramFinder`]). The part that ended a program is named
//! ([`SandboxPart`]).
//!
//! The sandbox needs no privilege and no namespace. Landlock bounds files, seccomp bounds system
//! calls, limits of the process bound memory, processor time and files. A program in it has no
//! network on any kernel, as it can make no socket, unless its policy names ports
//! ([`NetworkReach`]). It starts no process, so that nothing outlives it.
//!
//! **Invariants:** a program never runs with fewer parts of it than its policy asks for: what
//! cannot be set up is an error. No variable and no descriptor of this process reaches the program.
//! Knows nothing of what a program renders.

mod entry_point;
mod error;
mod executable;
mod files;
mod outcome;
mod policy;
mod probe;
mod process;
mod program;
mod program_finder;
mod run;
mod system_calls;
mod words;

pub use entry_point::{ENTRY_COMMAND, enter};
pub use error::SandboxError;
pub use outcome::{RunOutput, SandboxPart};
pub use policy::{NetworkReach, ProgramCommand, SandboxLimits, SandboxPolicy};
pub use probe::SandboxSupport;
pub use program::{ProgramError, ProgramVersion, RenderProgram};
pub use program_finder::{InstalledProgram, ProgramFinder, ProgramLookup};
pub(in crate::input) use run::OMISSION_MARK;
pub use run::Sandbox;
