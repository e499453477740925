//! The flags of commands about rollouts and single objects.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::super::help;
use super::super::object_argument::{ObjectArgument, ParseObjectArgumentError};
use super::LocationArgs;
use super::inspection::SocketArgs;
use crate::config::{DnsLabel, PositiveDuration};

/// The subcommands of `rhumb rollout`.
#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Show the progress of a rollout, or of all
    #[command(after_help = help::STATUS)]
    Status(RolloutStatusArgs),
    /// Show the rollout history of a workload
    #[command(after_help = help::HISTORY)]
    History(ObjectArgs),
    /// Go back to older content, until it changes in git
    #[command(after_help = help::UNDO)]
    Undo(UndoArgs),
    /// Try again what failed or was undone
    Retry(ObjectArgs),
    /// Release nothing new of an object or a source; repairs and rollbacks go on
    #[command(after_help = help::PAUSE)]
    Pause(PauseArgs),
    /// End a pause
    Resume(ResumeArgs),
    /// Let a held rollout continue to its next step
    Promote(PromoteArgs),
    /// Roll back a rollout that is running or queued
    Abort(ObjectArgs),
    /// Replace a workload's pods
    #[command(after_help = help::RESTART)]
    Restart(ObjectArgs),
}

/// An object's name.
#[derive(Debug, Args)]
pub(crate) struct ObjectArgs {
    /// Object, for example deploy/web, sts/shop/db or shop/deployment.apps/web
    #[arg(value_name = "OBJECT")]
    pub object: ObjectArgument,
}

/// `rhumb why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Object, for example deploy/web, sts/shop/db or shop/deployment.apps/web
    #[arg(value_name = "OBJECT")]
    pub object: ObjectArgument,
    /// Directory, git repository on this host, or git URL: shows file and line of the object, and
    /// whether it differs
    #[arg(value_name = "SOURCE")]
    pub source: Option<String>,
    /// Output format: text or json
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t, hide_possible_values = true)]
    pub output: WhyOutputFormat,
    /// The daemon that names the file and the line of the object.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// The location within the source.
    #[command(flatten)]
    pub location: LocationArgs,
}

/// Form of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhyOutputFormat {
    /// A line for each fact
    #[default]
    Text,
    /// One object with `reasons`, each with its code
    Json,
}

/// `rhumb rollout status`.
#[derive(Debug, Args)]
pub(crate) struct RolloutStatusArgs {
    /// Object, for example deploy/web, sts/shop/db or shop/deployment.apps/web [default: all that roll]
    #[arg(value_name = "OBJECT")]
    pub object: Option<ObjectArgument>,
    /// Keep running until the rollout ends
    #[arg(long, short)]
    pub watch: bool,
}

/// `rhumb rollout undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Object, for example deploy/web, sts/shop/db or shop/deployment.apps/web
    #[arg(value_name = "OBJECT")]
    pub object: ObjectArgument,
    /// Commit to go back to, or the first digits of its hash [default: the content before]
    #[arg(long, value_name = "COMMIT", value_parser = NonEmptyStringValueParser::new())]
    pub to_revision: Option<String>,
}

/// `rhumb rollout promote`.
#[derive(Debug, Args)]
pub(crate) struct PromoteArgs {
    /// Object, for example deploy/web, sts/shop/db or shop/deployment.apps/web
    #[arg(value_name = "OBJECT")]
    pub object: ObjectArgument,
    /// Skip all remaining steps
    #[arg(long)]
    pub full: bool,
}

/// `rhumb rollout pause`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Object (for example deploy/web or shop/deployment.apps/web) or source (shop)
    #[arg(value_name = "OBJECT|SOURCE", value_parser = parse_object_or_source)]
    pub object: ObjectArgument,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub reason: String,
}

/// `rhumb rollout resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Object (for example deploy/web or shop/deployment.apps/web) or source (shop)
    #[arg(value_name = "OBJECT|SOURCE", value_parser = parse_object_or_source)]
    pub object: ObjectArgument,
}

/// `rhumb hold`.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// Object, for example deploy/web, sts/shop/db or shop/deployment.apps/web
    #[arg(value_name = "OBJECT")]
    pub object: ObjectArgument,
    /// How long
    #[arg(long = "for", value_name = "DURATION")]
    pub time: PositiveDuration,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub reason: String,
}

/// Parses an object or a source: a single word is the name of a source.
pub(super) fn parse_object_or_source(text: &str) -> Result<ObjectArgument, String> {
    let source = text.parse::<DnsLabel>().ok().map(|name| ObjectArgument::of_source(name.as_str()));
    source.map_or_else(|| text.parse().map_err(|error: ParseObjectArgumentError| error.to_string()), Ok)
}
