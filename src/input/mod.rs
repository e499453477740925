//! The step from files to manifests: rendering, decryption and variables.
//!
//! Owns which folders of a revision are roots to be rendered, and which files each of them reads
//! ([`kustomize::Closure`], [`helm::ChartClosure`]). Owns the key of a render, and the place in the
//! repository that a rendered object comes from. Also owns the reading of encrypted files
//! ([`sops`]) and the variables in rendered files ([`variables`]). The sandbox of programs that
//! render is here too ([`sandbox`]), and so are the charts of servers ([`charts`]).
//!
//! **Invariant:** decides from the text of files alone, and is pure. Nothing is started, written or
//! fetched here but in [`sandbox`], by the run of a program in it, and in [`charts`]. A file
//! outside the revision is refused by name before any program starts.

mod buffered_tree;
mod chart_layer;
mod chart_lock;
mod chart_resolver;
mod chart_supply;
pub(crate) mod charts;
mod decryption;
mod disk;
mod encryption;
mod exposure;
pub(crate) mod helm;
mod holder_files;
mod inflation;
mod key;
pub(crate) mod kustomize;
mod last_revision;
mod memory_folder;
#[cfg(test)]
mod memory_supply;
#[cfg(test)]
mod memory_tree;
mod named_resources;
mod needed_programs;
mod opened_inputs;
mod origin;
mod own_thread;
mod paths;
mod plain_files;
mod plaintext_index;
mod plaintext_layout;
mod printed_root;
mod program_slots;
mod reading;
mod release_render;
mod render_cipher;
mod render_host;
mod render_pass;
mod render_workspace;
mod rendered_names;
mod root_closure;
mod root_job;
mod root_lock;
mod root_names;
mod root_render;
mod roots;
pub(crate) mod sandbox;
mod secret_exposure;
mod server_charts;
pub(crate) mod sops;
mod source_renderer;
mod stderr_texts;
mod substitution;
mod thread_runtime;
mod tree;
mod value_files;
mod variable_seal;
pub(crate) mod variables;

pub(crate) use chart_lock::is_lock;
pub(crate) use chart_supply::PinPolicy;
#[cfg(test)]
pub(crate) use decryption::NO_KEY;
pub(crate) use decryption::{Decrypter, is_key_missing};
pub(crate) use disk::{ReadFolder, render_folders};
#[cfg(test)]
pub(crate) use memory_tree::MemoryTree;
pub(crate) use needed_programs::needed_programs;
pub use origin::strip_origin;
pub(crate) use reading::{has_sealed_values, read_manifest};
pub(crate) use release_render::{ASSUMED_VERSION, HelmReleaseSettings};
pub use render_host::RenderHost;
pub(crate) use root_lock::{LockState, RootLock, RootLocks, find_locks};
pub(crate) use source_renderer::{SourceRenderer, SourceVariables};
pub(crate) use substitution::VariableMode;
pub(crate) use thread_runtime::ThreadRuntime;
pub use tree::FileTree;
