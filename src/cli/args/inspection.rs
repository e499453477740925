//! The flags of commands that inspect a running daemon, and of `check`, `rbac` and `generate`,
//! which ask none.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::LocationArgs;
use super::rollout::parse_object_or_source;
use crate::cli::ObjectArgument;
use crate::config::DnsLabel;

/// The daemon to ask.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SocketArgs {
    /// Socket of the daemon [default: $RHUMB_SOCKET, then rhumb.sock in $RUNTIME_DIRECTORY,
    /// $XDG_RUNTIME_DIR/rhumb or /run/rhumb]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// `rhumb status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Source (for example shop) or object (deploy/web, sts/shop/db or shop/deployment.apps/web)
    #[arg(value_name = "SOURCE|OBJECT", value_parser = parse_object_or_source)]
    pub about: Option<ObjectArgument>,
    /// Keep running, and show each change
    #[arg(long, short)]
    pub watch: bool,
    /// Output format: text, wide or json
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: StatusOutputFormat,
    /// Exit with 1 unless everything shown is healthy
    #[arg(long)]
    pub exit_code: bool,
    /// The daemon to ask.
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// Form of the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutputFormat {
    /// A line for each source, and for each object that needs attention
    #[default]
    Text,
    /// The same with places, files and whole revisions
    Wide,
    /// The answer of the daemon, schema status.rhumb.dev/v1
    Json,
}

/// The sources, for commands that read manifests.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceSetArgs {
    /// Directory, git repository on this host, or git URL
    #[arg(value_name = "SOURCE", required_unless_present = "config")]
    pub source: Option<String>,
    /// Configuration file with any number of sources
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["source", "reference", "path", "adopt", "blast_radius"])]
    pub config: Option<PathBuf>,
    /// The location within the source.
    #[command(flatten)]
    pub location: LocationArgs,
}

/// `rhumb check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The sources.
    #[command(flatten)]
    pub sources: SourceSetArgs,
    /// Output format: text or json
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: CheckOutput,
}

/// Output format of `rhumb check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckOutput {
    /// A line for each finding, and the roles that are missing
    #[default]
    Text,
    /// The same as JSON, schema check.rhumb.dev/v1
    Json,
}

/// `rhumb rbac`.
#[derive(Debug, Args)]
pub(crate) struct RbacArgs {
    /// The sources.
    #[command(flatten)]
    pub sources: SourceSetArgs,
    /// Bind the roles to this user
    #[arg(long, value_name = "NAME", conflicts_with = "service_account")]
    pub user: Option<String>,
    /// Bind the roles to this service account
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub service_account: Option<String>,
}

/// `rhumb generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The files to generate
    #[arg(value_name = "WHAT", value_enum)]
    pub target: GenerateTarget,
    /// The folder to write them to
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// The output of `rhumb generate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenerateTarget {
    /// Man pages
    Man,
    /// Completions for bash, zsh and fish
    Completions,
    /// The pages of docs/reference
    Reference,
}

/// `rhumb events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only this source
    #[arg(value_name = "SOURCE")]
    pub source: Option<DnsLabel>,
    /// Keep running, and show new events
    #[arg(long, short)]
    pub follow: bool,
    /// Output format: text or json
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: EventsOutput,
    /// The daemon to ask.
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `rhumb top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Only this source
    #[arg(value_name = "SOURCE")]
    pub source: Option<DnsLabel>,
    /// The daemon to ask.
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// Output format of `rhumb events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsOutput {
    /// A line for each
    #[default]
    Text,
    /// A JSON object for each, in a line
    Json,
}
