//! The command line's grammar, without its meaning.

#![allow(clippy::doc_markdown, reason = "clap prints these comments as they are, backticks included")]

mod inspection;
mod rollout;
mod suggestion;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use super::help;
use super::object_argument::ObjectArgument;
use crate::config::{DnsLabel, PositiveDuration, TreePath};
use crate::engine::{AdoptPolicy, BlastRadius};

pub(super) use inspection::{
    CheckArgs, CheckOutput, EventsArgs, EventsOutput, GenerateArgs, GenerateTarget, RbacArgs, SourceSetArgs,
    StatusArgs, StatusOutputFormat, TopArgs,
};
pub(super) use rollout::{
    HoldArgs, ObjectArgs, PromoteArgs, RolloutCommand, RolloutStatusArgs, WhyArgs, WhyOutputFormat,
};

/// Makes a Kubernetes cluster follow a git repository, or a directory, of manifests.
#[derive(Debug, Parser)]
#[command(
    name = "rhumb",
    version,
    about = "Makes a Kubernetes cluster follow a git repository, or a directory, of manifests",
    after_help = help::MAIN,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct CommandLine {
    /// The flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The flags of every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GlobalArgs {
    /// Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(long, global = true, display_order = 91, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, global = true, display_order = 92, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,
    /// Namespace of rhumb's own ConfigMaps [default: rhumb-system]
    #[arg(long, global = true, display_order = 93, value_name = "NAMESPACE", help_heading = "Cluster")]
    pub system_namespace: Option<DnsLabel>,
    /// Namespace of objects that name none [default: default]
    #[arg(long, short, global = true, display_order = 94, value_name = "NAMESPACE", help_heading = "Source")]
    pub namespace: Option<DnsLabel>,
    /// Name of the source [default: from its location; with a file or a cluster, all sources]
    #[arg(
        long = "source",
        alias = "name",
        global = true,
        display_order = 95,
        value_name = "NAME",
        help_heading = "Source"
    )]
    pub name: Option<DnsLabel>,
    /// Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG's state home]
    #[arg(long, global = true, display_order = 96, value_name = "DIR", help_heading = "Source")]
    pub state_directory: Option<PathBuf>,
    /// Log more; -vv logs each API call
    #[arg(long, short, global = true, display_order = 97, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
    /// Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default:
    /// $RUST_LOG]
    #[arg(long, global = true, display_order = 98, value_name = "LEVEL", help_heading = "Output")]
    pub log_level: Option<String>,
    /// Format of the log: auto, text or json
    #[arg(
        long,
        global = true,
        display_order = 99,
        value_name = "FORM",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Output"
    )]
    pub log_format: LogFormat,
    /// Use colors: auto (not with NO_COLOR), always or never
    #[arg(
        long,
        global = true,
        display_order = 100,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Output"
    )]
    pub color: Color,
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// The journal's own fields where standard error is the journal, else text
    #[default]
    Auto,
    /// A line of text for each event
    Text,
    /// A JSON object for each event
    Json,
}

/// The choice of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Follow a source, or those of a configuration, until stopped
    #[command(override_usage = help::RUN_USAGE, after_help = help::RUN)]
    Run(RunArgs),
    /// Show what would change in the cluster, and write nothing
    #[command(override_usage = help::DIFF_USAGE, after_help = help::DIFF)]
    Diff(DiffArgs),
    /// Apply a source once
    #[command(override_usage = help::APPLY_USAGE, after_help = help::APPLY)]
    Apply(ApplyArgs),
    /// Check manifests without a cluster
    #[command(override_usage = help::VALIDATE_USAGE, after_help = help::VALIDATE)]
    Validate(ValidateArgs),
    /// Print manifests as Kubernetes reads them, without a cluster
    #[command(override_usage = help::RENDER_USAGE, after_help = help::RENDER)]
    Render(RenderArgs),
    /// Write rhumb.lock, with the version and digest of each remote chart
    #[command(after_help = help::LOCK)]
    Lock(LockArgs),
    /// List and confirm pending deletions
    #[command(after_help = help::PRUNE, subcommand_required = true)]
    Prune {
        /// The subcommand.
        #[command(subcommand)]
        command: PruneCommand,
    },
    /// Show and control rollouts
    #[command(after_help = help::ROLLOUT, subcommand_required = true)]
    Rollout {
        /// The subcommand.
        #[command(subcommand)]
        command: RolloutCommand,
    },
    /// Show sources, their revisions, and what needs attention
    #[command(after_help = help::OVERVIEW)]
    Status(StatusArgs),
    /// Watch sources, rollouts, the budget and the queue on one screen
    #[command(after_help = help::TOP)]
    Top(TopArgs),
    /// Show events
    #[command(after_help = help::EVENTS)]
    Events(EventsArgs),
    /// Explain the state of an object: its revision, health, and what it waits for
    #[command(after_help = help::WHY)]
    Why(WhyArgs),
    /// Keep an object as it is for a time: drift is shown, and nothing is written
    #[command(after_help = help::HOLD)]
    Hold(HoldArgs),
    /// End a hold
    Release(ObjectArgs),
    /// Check the prerequisites: API server, git, files, rights
    #[command(after_help = help::CHECK)]
    Check(CheckArgs),
    /// Remove rhumb's own objects from the cluster, and on request those that it manages
    #[command(after_help = help::UNINSTALL)]
    Uninstall(UninstallArgs),
    /// Print the minimal roles that a source needs
    #[command(after_help = help::RBAC)]
    Rbac(RbacArgs),
    /// Examine what a daemon has recorded
    #[command(subcommand_required = true)]
    Debug {
        /// The subcommand.
        #[command(subcommand)]
        command: DebugCommand,
    },
    /// Write man pages or completions
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// Print the version
    Version(VersionArgs),
}

/// The input of a one-shot command: a source, or single files.
#[derive(Clone, Debug, Args)]
pub(crate) struct OneShotArgs {
    /// Directory, git repository on this host, git URL, file, or - for standard input
    #[arg(value_name = "SOURCE", required_unless_present_any = ["files", "config"])]
    pub source: Option<String>,
    /// Only this file or directory, or - for standard input; may be repeated; deletes nothing
    #[arg(long = "filename", short = 'f', value_name = "FILE", conflicts_with_all = ["source", "reference", "path"])]
    pub files: Vec<PathBuf>,
    /// Configuration file, whose sources are taken with their settings
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["reference", "path", "adopt", "blast_radius"])]
    pub config: Option<PathBuf>,
    /// The location within the source.
    #[command(flatten)]
    pub location: LocationArgs,
}

/// The location within a source, and the policy for it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LocationArgs {
    /// Branch, tag or commit
    #[arg(long = "ref", value_name = "REF", value_parser = NonEmptyStringValueParser::new(), help_heading = "Source")]
    pub reference: Option<String>,
    /// Folder inside the source
    #[arg(long, value_name = "PATH", help_heading = "Source")]
    pub path: Option<TreePath>,
    /// Take over objects that exist already: never, if-unowned or always
    #[arg(long, value_name = "POLICY", default_value_t, value_parser = adopt, hide_possible_values = true, help_heading = "Source")]
    pub adopt: AdoptPolicy,
    /// Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at
    /// most 10%]
    #[arg(long, value_name = "BOUND", help_heading = "Source")]
    pub blast_radius: Option<BlastRadius>,
}

/// `rhumb run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Directory, git repository on this host, or git URL
    #[arg(value_name = "SOURCE", required_unless_present = "config")]
    pub source: Option<String>,
    /// Configuration file with any number of sources
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["source", "reference", "path", "adopt", "blast_radius", "interval", "no_prune"])]
    pub config: Option<PathBuf>,
    /// The location within the source.
    #[command(flatten)]
    pub location: LocationArgs,
    /// How often a remote repository is polled [default: 1m]
    #[arg(long, value_name = "DURATION", help_heading = "Source", value_parser = PositiveDuration::parse_interval)]
    pub interval: Option<PositiveDuration>,
    /// Delete no objects that leave the source
    #[arg(long, help_heading = "Source")]
    pub no_prune: bool,
    /// Decide everything, and write nothing
    #[arg(long, help_heading = "Source")]
    pub observe: bool,
    /// Record each decision, and its facts, in a new file for `rhumb debug replay`
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// `rhumb diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The input.
    #[command(flatten)]
    pub source: OneShotArgs,
    /// Compare this revision (branch, tag, commit, or an ancestor as HEAD~1) with another instead of
    /// the cluster
    #[arg(long, value_name = "REV", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["files", "reference"])]
    pub from: Option<String>,
    /// The revision to compare with [default: the files on disk; of a bare repository HEAD]
    #[arg(long, value_name = "REV", value_parser = NonEmptyStringValueParser::new(), requires = "from")]
    pub to: Option<String>,
    /// Output format: text, unified, json or name
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: DiffOutput,
}

/// Form of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffOutput {
    /// A line for each object and its changed fields
    #[default]
    Text,
    /// A patch of the whole objects
    Unified,
    /// The plan as JSON, schema rhumb.dev/plan/v1
    Json,
    /// The names alone
    Name,
}

/// `rhumb apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The input.
    #[command(flatten)]
    pub source: OneShotArgs,
    /// Delete objects that left the source
    #[arg(long, conflicts_with_all = ["files", "config"])]
    pub prune: bool,
    /// Wait until everything is healthy, at most this long [default: 10m]
    #[arg(long, value_name = "TIMEOUT", num_args = 0..=1, require_equals = true, default_missing_value = "10m")]
    pub wait: Option<PositiveDuration>,
    /// Let the API server check it, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before deleting
    #[arg(long, short)]
    pub yes: bool,
    /// Output format: text or json
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: ApplyOutput,
}

/// Form of what was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApplyOutput {
    /// A line for each object, as it happens
    #[default]
    Text,
    /// The plan as JSON at the end, schema rhumb.dev/plan/v1
    Json,
}

/// `rhumb validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Directory or file, or - for standard input
    #[arg(value_name = "PATH", required_unless_present = "config")]
    pub path: Option<PathBuf>,
    /// Configuration file, whose sources are checked against what each may have
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `rhumb render`.
#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// Directory or file, or - for standard input
    #[arg(value_name = "PATH", required_unless_present = "config")]
    pub path: Option<PathBuf>,
    /// Configuration file, whose source is rendered with its settings
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Output format: yaml or json
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: RenderFormat,
    /// Print the values of Secrets, which are masked else
    #[arg(long)]
    pub show_secrets: bool,
}

/// `rhumb lock`.
#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// Directories with roots [default: this one]
    #[arg(value_name = "ROOT")]
    pub roots: Vec<PathBuf>,
    /// Configuration file, which says from where charts may be fetched
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Take the newest version in each range, also where a lock names one
    #[arg(long)]
    pub update: bool,
    /// Write nothing, and exit with 1 where a lock is not up to date
    #[arg(long)]
    pub check: bool,
}

/// Form of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderFormat {
    /// A document for each object
    #[default]
    Yaml,
    /// One object with `objects` and `diagnostics`
    Json,
}

/// The subcommands of `rhumb prune`.
#[derive(Debug, Subcommand)]
pub(crate) enum PruneCommand {
    /// List pending deletions with their reasons
    List(PruneListArgs),
    /// Confirm deletions by name
    #[command(after_help = help::PRUNE)]
    Confirm(PruneConfirmArgs),
}

/// `rhumb debug`.
#[derive(Debug, Subcommand)]
pub(crate) enum DebugCommand {
    /// Replay a trace of `rhumb run --trace`, and compare what is decided
    #[command(after_help = help::REPLAY)]
    Replay(ReplayArgs),
}

/// `rhumb debug replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print no effects, only where they differ
    #[arg(long, short)]
    pub quiet: bool,
}

/// `rhumb prune list`.
#[derive(Debug, Args)]
pub(crate) struct PruneListArgs {
    /// Output format: text or name
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: PruneListOutput,
}

/// Form of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PruneListOutput {
    /// A line for each object, with its reason
    #[default]
    Text,
    /// The names alone, as `prune confirm` takes them
    Name,
}

/// `rhumb prune confirm`.
#[derive(Debug, Args)]
pub(crate) struct PruneConfirmArgs {
    /// Objects, as `prune list -o name` prints them: [NAMESPACE/]KIND[.GROUP]/NAME
    #[arg(value_name = "OBJECT", required_unless_present = "count", conflicts_with = "count")]
    pub objects: Vec<ObjectArgument>,
    /// Confirm all pending deletions of the source, if there are exactly this many
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
}

/// `rhumb uninstall`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Name of the source [default: all of them, and what they share]
    #[arg(value_name = "SOURCE")]
    pub source: Option<DnsLabel>,
    /// Also delete the objects of the source, except those that annotations keep
    #[arg(long)]
    pub delete_objects: bool,
    /// Delete without asking, if there are exactly this many objects
    #[arg(long, value_name = "N", requires = "delete_objects")]
    pub count: Option<usize>,
    /// Only list what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}

/// `rhumb version`.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {}

fn adopt(word: &str) -> Result<AdoptPolicy, String> {
    let known = || AdoptPolicy::ALL.map(AdoptPolicy::label).join(", ");
    AdoptPolicy::ALL
        .into_iter()
        .find(|adopt| adopt.label() == word)
        .ok_or_else(|| format!("none of {}", known()))
}

/// Reads a command line; help and version are "errors" too, as clap has it.
pub(super) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<CommandLine, clap::Error> {
    let mut command = command_line();
    let words: Vec<OsString> = words.into_iter().collect();
    let matches = command.try_get_matches_from_mut(&words);
    let mut matches = matches.map_err(|error| suggestion::add_known_tips(error, &command, &words))?;
    CommandLine::from_arg_matches_mut(&mut matches)
}

/// Returns the command line. Commands that read files alone accept the flags of clusters and
/// sources, but do not list them.
pub(super) fn command_line() -> clap::Command {
    let root_command = CommandLine::command();
    let flags_under =
        |heading| root_command.get_arguments().filter(move |flag| flag.get_help_heading() == Some(heading));
    let needless = |flag: &clap::Arg| flag.clone().hide(true);
    let cluster: Vec<clap::Arg> = flags_under("Cluster").map(needless).collect();
    let source: Vec<clap::Arg> = flags_under("Source").map(needless).collect();
    let beside_namespace =
        source.iter().filter(|flag| flag.get_id() != "namespace").cloned().collect::<Vec<_>>();
    let own_namespace = |help: &'static str| {
        let own = move |flag: &clap::Arg| match flag.clone() {
            flag if flag.get_id() == "namespace" => flag.help(help).hide(false),
            flag => flag,
        };
        source.iter().map(own).collect::<Vec<clap::Arg>>()
    };
    let running = own_namespace("Namespace of objects that name none [default: the context's]");
    let looking = own_namespace("Namespace of NAME [default: any]");
    let root_command =
        ["rollout", "why", "hold", "release"].into_iter().fold(root_command, |root_command, name| {
            let running = running.clone();
            root_command.mut_subcommand(name, |command| command.args(running))
        });
    let here = ["files", "config", "from"];
    root_command
        .mut_subcommand("diff", |command| {
            command.mut_arg("source", |source| source.required_unless_present_any(here))
        })
        .mut_subcommand("status", |command| command.args(looking))
        .mut_subcommand("top", |command| command.args(&source))
        .mut_subcommand("events", |command| command.args(&source))
        .mut_subcommand("validate", |command| command.args(&cluster).args(&beside_namespace))
        .mut_subcommand("render", |command| command.args(&cluster).args(&source))
        .mut_subcommand("version", |command| command.args(&cluster).args(&source))
}
