//! The facts: sources and their entries, live objects, kinds, and what annotations and records say.
//! Its folders are `causes` and `records`.
//!
//! **Invariant:** decides nothing. Each fact comes from a source, an informer or an answer.

pub(super) mod allow_enforcement;
pub(super) mod allow_list;
pub(super) mod annotation_words;
pub(super) mod authors;
pub(super) mod budget;
pub(super) mod causes;
pub(super) mod changed_data;
pub(super) mod config_hash;
pub(super) mod config_stamp;
pub(super) mod desired;
pub(super) mod dry_run_impact;
pub(super) mod effective_content;
pub(super) mod entry;
pub(super) mod finished_jobs_text;
pub(super) mod generated_mark;
pub(super) mod hash_seal;
pub(super) mod ignore_fields;
pub(super) mod informer_groups;
pub(super) mod key_answers;
pub(super) mod kinds;
pub(super) mod label_selector;
pub(super) mod live_object;
pub(super) mod lookup_counts;
pub(super) mod manifest_fault;
pub(super) mod manifest_index;
pub(super) mod moved_objects;
pub(super) mod needed_contents;
pub(super) mod object_counts;
pub(super) mod object_facts;
pub(super) mod observations;
pub(super) mod overlay;
pub(super) mod prune_decisions;
pub(super) mod prune_timing;
pub(super) mod rare_facts;
pub(super) mod read_state;
pub(super) mod records;
pub(super) mod refused_manifests;
pub(super) mod release_annotation;
pub(super) mod release_seal;
pub(super) mod source_declaration;
pub(super) mod source_id;
pub(super) mod source_policy;
pub(super) mod source_set;
pub(super) mod sources;
pub(super) mod step_annotations;
pub(super) mod steps;
pub(super) mod tool_variables;
pub(super) mod tool_vocabulary;
pub(super) mod update_strategy;
pub(super) mod volume_claim_retention;
pub(super) mod wakes;
pub(super) mod watch_fault;
