//! Lasting states and orders of people: written with their own rights, and waited for until
//! acknowledged.

use crate::object::annotations;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::object_argument::ObjectArgument;
use super::overview::clean_text;
use super::target::{ClusterSession, ManagedObject};
use super::{CommandError, ExitStatus, Terminal};
use crate::cluster::{AnnotationTarget, Cluster, InventoryObject, orders_name};
use crate::daemon::UnreadableRecords;
use crate::engine::{HoldIntent, PauseIntent, is_workload, order_text};
use crate::object::ErrorClass;

/// The time limit for an acknowledgement: a busy daemon or API server may need some seconds.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which the inventory is read meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The annotation with which kubectl restarts a workload.
const RESTARTED_AT_ANNOTATION: &str = "kubectl.kubernetes.io/restartedAt";

/// A state that lasts until it is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PersistedState {
    Paused,
    OnHold,
}

impl PersistedState {
    fn key(self) -> &'static str {
        match self {
            Self::Paused => annotations::PAUSED,
            Self::OnHold => annotations::HOLD,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Paused => "is not paused",
            Self::OnHold => "is not on hold",
        }
    }

    fn token(self, text: &str) -> Option<String> {
        match self {
            Self::Paused => Some(PauseIntent::parse(text)?.token.to_string()),
            Self::OnHold => Some(HoldIntent::parse(text)?.token.to_string()),
        }
    }
}

/// The object or source that carries the annotation.
pub(super) enum OrderSubject {
    Object(Box<ManagedObject>),
    /// A source, by its name, with its inventory.
    Source(String, InventoryObject),
}

impl OrderSubject {
    /// Returns an object, or `source/shop`.
    pub(super) async fn find(session: &ClusterSession, name: &ObjectArgument) -> Result<Self, CommandError> {
        if let Some(source) = name.source() {
            return Ok(Self::Source(source.to_owned(), session.read_inventory(source).await?));
        }
        Ok(Self::Object(Box::new(session.find_object(name).await?)))
    }

    fn source(&self) -> &str {
        match self {
            Self::Object(target) => &target.source,
            Self::Source(name, _) => name,
        }
    }

    fn annotation_value(&self, key: &str) -> &str {
        match self {
            Self::Object(target) => target.annotation_value(key),
            Self::Source(_, inventory) => inventory.annotations.get(key).map_or("", String::as_str),
        }
    }

    async fn set_annotation(
        &self,
        session: &ClusterSession,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), CommandError> {
        match self {
            Self::Object(target) => {
                session
                    .cluster
                    .patch_annotation(&target.kind, &target.id, AnnotationTarget::Object, key, value)
                    .await?;
            }
            Self::Source(name, _) => {
                session.cluster.annotate_inventory(&session.inventory_namespace, name, key, value).await?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for OrderSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(target) => target.id.fmt(f),
            Self::Source(name, _) => write!(f, "source {name}"),
        }
    }
}

/// Returns a new token of an intent or order: the time, and a random part.
pub(super) fn token() -> String {
    let random = RandomState::new().build_hasher().finish() & 0xffff;
    format!("{}-{random:04x}", Timestamp::now().as_millisecond())
}

/// Gives an order, which is a verb and its argument, and reports its outcome.
pub(super) async fn give_order(
    session: &ClusterSession,
    name: &ObjectArgument,
    verb: &str,
    argument: &str,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let OrderSubject::Object(target) = OrderSubject::find(session, name).await? else {
        return Err(CommandError::usage_error("only pause and resume take a source").hint("name an object"));
    };
    let token = token();
    // The name is informational; the right to write there decides.
    let by = session.cluster.user().await.unwrap_or_default();
    let text = order_text(&target.id, verb, argument, &by, Timestamp::now())
        .map_err(|error| CommandError::new(ErrorClass::Internal, error.to_string()))?;
    let source = target.source.clone();
    give(&session.cluster, &session.inventory_namespace, &source, &token, &text).await?;
    let subject_text = format!("in {}", object_text(&session.inventory_namespace, &source));
    wait_for_acknowledgement(session, &source, &subject_text, &token, StateLifetime::Persistent, terminal)
        .await
}

/// Returns the orders object of a source in words.
pub(super) fn object_text(system: &str, source: &str) -> String {
    format!("ConfigMap {system}/{}", orders_name(source))
}

/// Writes an order.
pub(super) async fn give(
    cluster: &Cluster,
    system: &str,
    source: &str,
    token: &str,
    text: &str,
) -> Result<(), CommandError> {
    cluster.give_order(system, source, token, text).await.map_err(|error| {
        let is_forbidden = error.class() == ErrorClass::Forbidden;
        let (error, object) = (CommandError::from(error), object_text(system, source));
        if is_forbidden {
            error.hint(format!(
                "the rights to `get` and `patch` {object} allow to give orders to source {source}"
            ))
        } else {
            error
        }
    })
}

/// Waits until the source's inventory says what came of an order; none where it does not in time.
pub(super) async fn answer(
    cluster: &Cluster,
    system: &str,
    source: &str,
    token: &str,
) -> Result<Option<String>, CommandError> {
    let deadline = Instant::now() + ACKNOWLEDGEMENT_TIMEOUT;
    loop {
        let inventory = cluster.read_inventory(system, source).await?;
        let outcome = inventory.and_then(|inventory| outcome(&inventory, token, StateLifetime::Persistent));
        if outcome.is_some() || Instant::now() >= deadline {
            return Ok(outcome);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Sets a state: the words behind its token.
pub(super) async fn set(
    session: &ClusterSession,
    name: &ObjectArgument,
    state: PersistedState,
    words: &str,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let subject = OrderSubject::find(session, name).await?;
    if let (PersistedState::OnHold, OrderSubject::Source(..)) = (state, &subject) {
        return Err(
            CommandError::usage_error("a source cannot be held").hint("`rhumb rollout pause` pauses it")
        );
    }
    let token = token();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    subject.set_annotation(session, state.key(), Some(format!("{token} {words}").trim())).await?;
    let subject_text = format!("on {subject}");
    wait_for_acknowledgement(
        session,
        subject.source(),
        &subject_text,
        &token,
        StateLifetime::Persistent,
        terminal,
    )
    .await
}

/// Ends a state.
pub(super) async fn end(
    session: &ClusterSession,
    name: &ObjectArgument,
    state: PersistedState,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let subject = OrderSubject::find(session, name).await?;
    let Some(token) = state.token(subject.annotation_value(state.key())) else {
        terminal.print(&format!("nothing to do: {subject} {}\n", state.label()))?;
        return Ok(ExitStatus::Differs);
    };
    let inventory = session.read_inventory(subject.source()).await?;
    subject.set_annotation(session, state.key(), None).await?;
    if !inventory.acknowledgements().iter().any(|one| *one.token == *token) {
        terminal.print(&format!("ended before rhumb took note of it: {subject}\n"))?;
        return Ok(ExitStatus::Done);
    }
    let subject_text = format!("on {subject}");
    wait_for_acknowledgement(session, subject.source(), &subject_text, &token, StateLifetime::Ended, terminal)
        .await
}

/// Replaces a workload's pods, as `kubectl rollout restart` does it.
pub(super) async fn restart(
    session: &ClusterSession,
    name: &ObjectArgument,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let target = session.find_object(name).await?;
    if !is_workload(&target.id) {
        let message = format!("{} cannot be restarted", target.id);
        return Err(CommandError::usage_error(message).hint("name a Deployment, StatefulSet or DaemonSet"));
    }
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    session
        .cluster
        .patch_annotation(
            &target.kind,
            &target.id,
            AnnotationTarget::Template,
            RESTARTED_AT_ANNOTATION,
            Some(&now),
        )
        .await?;
    terminal.print(&format!("restarted: {}\n", target.id))?;
    Ok(ExitStatus::Done)
}

/// Indicates whether what was asked for goes on from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateLifetime {
    /// It holds until somebody ends it.
    Persistent,
    /// It was ended, or it was done once.
    Ended,
}

/// Returns the acknowledgement of a token in the inventory. For a state that was ended, only the
/// acknowledgement of its end counts.
fn outcome(inventory: &InventoryObject, token: &str, lasts: StateLifetime) -> Option<String> {
    let all = inventory.acknowledgements();
    let found = all.iter().find(|one| *one.token == *token)?;
    let begun = ["paused: ", "held: "].iter().any(|word| found.outcome.starts_with(word));
    (lasts == StateLifetime::Persistent || !begun).then(|| found.outcome.to_string())
}

/// Returns whether an order or intent has changed nothing.
pub(super) fn is_idle(outcome: &str) -> bool {
    ["nothing ", "not "].iter().any(|word| outcome.starts_with(word))
}

/// Waits until the source's inventory says what came of an intent, which is at some place.
async fn wait_for_acknowledgement(
    session: &ClusterSession,
    source: &str,
    subject_text: &str,
    token: &str,
    lasts: StateLifetime,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let deadline = Instant::now() + ACKNOWLEDGEMENT_TIMEOUT;
    loop {
        let inventory = session.read_inventory(source).await?;
        if let Some(outcome) = outcome(&inventory, token, lasts) {
            terminal.print(&format!("{}\n", clean_text(&outcome)))?;
            return Ok(if is_idle(&outcome) { ExitStatus::Differs } else { ExitStatus::Done });
        }
        if Instant::now() >= deadline {
            let message = format!("it is {subject_text}, but rhumb has not acknowledged it within 10 s");
            let hint = "it is read as soon as `rhumb run` follows the source, and answered with what came of it; see whether that runs";
            let unwritable =
                UnreadableRecords::find(&inventory, &session.inventory_namespace, source).unwritable;
            return Err(CommandError::new(ErrorClass::Transient, message)
                .with_exit(ExitStatus::TimedOut)
                .hint(unwritable.unwrap_or_else(|| hint.to_owned())));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
