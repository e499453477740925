//! `rhumb check`: whether all is there that rhumb needs.

mod credentials;
mod granted;
mod records;
mod renderers;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use self::credentials::{check_chart_credentials, check_secret_files};
use self::granted::{DeniedAccess, check_permissions};
use self::renderers::CheckedPrograms;
use super::accounts::AccountRights;
use super::args::{CheckArgs, CheckOutput, GlobalArgs};
use super::derived_name::{self, NameOrigin};
use super::rbac;
use super::rights::{Rights, SourceAccess, defined_plurals};
use super::session::retry_when_throttled;
use super::{
    CommandError, ExitStatus, Terminal, process_sources, session, settings, source_contents, unwanted_objects,
};
use crate::announce::delivery_obstacle;
use crate::cluster::{
    self, AccessRequest, Cluster, ClusterFault, KindLookup, KindTable, LiveLookup, explain_unread_claims,
    explain_unreadable_ledger, missing_key_remedy,
};
use crate::config::{Config, CustomSource, DeletionPolicy, SourceConfig, custom_path};
use crate::engine::{HashCiphers, PrunePolicy, RolloutLedger, SourceLifecycle};
use crate::manifest::KindScopes;
use crate::object::{ErrorClass, GroupKind, Gvk, Object, count_text, verb_to_be};
use crate::render::{Palette, TextStyle};
use crate::source::{GitVersion, unusable_keys};

/// The form of the JSON.
const CHECK_SCHEMA: &str = "check.rhumb.dev/v1";

/// The oldest Kubernetes with aggregated discovery.
const MIN_KUBERNETES: (u32, u32) = (1, 27);

/// Questions to the server at a time.
const CONCURRENT_REVIEWS: usize = 8;

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckLevel {
    Ok,
    Warning,
    Missing,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CheckFinding {
    level: CheckLevel,
    text: String,
}

impl CheckFinding {
    fn new(level: CheckLevel, text: impl Into<String>) -> Self {
        Self { level, text: super::overview::clean_text(&text.into()) }
    }

    fn label(&self) -> &'static str {
        match self.level {
            CheckLevel::Ok => "ok",
            CheckLevel::Warning => "warning",
            CheckLevel::Missing => "missing",
        }
    }

    fn line(&self, palette: Palette) -> String {
        let style = match self.level {
            CheckLevel::Ok => TextStyle::Added,
            CheckLevel::Warning => TextStyle::Warning,
            CheckLevel::Missing => TextStyle::Error,
        };
        let word = format!("{:<8}", self.label());
        format!("{}{}\n", palette.paint(style, &word), self.text)
    }
}

/// All that was found.
#[derive(Debug, Default)]
struct CheckReport {
    findings: Vec<CheckFinding>,
    denied: Vec<DeniedAccess>,
    /// The roles that grant the missing rights.
    roles: String,
    /// Sources of which not all is known.
    unread: BTreeSet<String>,
    /// Sources that were deleted in the cluster, and whose objects go first.
    ending: Vec<SourceConfig>,
}

impl CheckReport {
    fn add(&mut self, level: CheckLevel, text: impl Into<String>) {
        self.findings.push(CheckFinding::new(level, text));
    }

    /// Records the finding of a step; returns its value where it succeeded.
    fn record<T>(&mut self, tried: Result<T, CommandError>, subject: &str) -> Option<T> {
        tried.map_err(|error| self.add(CheckLevel::Missing, format!("{subject}: {error}"))).ok()
    }

    fn is_met(&self) -> bool {
        self.findings.iter().all(|finding| finding.level != CheckLevel::Missing)
    }
}

/// Carries the command out. Writes nothing to the cluster.
pub(super) fn carry_out(
    args: &CheckArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let config = settings::source_set(global, &args.sources, terminal)?;
    let mut report = CheckReport::default();
    for source in &config.sources {
        report.add(CheckLevel::Ok, format!("source {} is configured", source.name));
    }
    check_git(&mut report);
    check_secret_files(&config, &mut report);
    check_chart_credentials(&config, &mut report);
    keys(&config, &mut report);
    check_notifications(&config, &mut report);
    let naming = if args.sources.config.is_some() { NameOrigin::Explicit } else { NameOrigin::of(global) };
    session::start_runtime()?.block_on(async {
        let checked = renderers::check_renderers(&config, &mut report).await;
        Box::pin(check_sources_in_cluster(config, naming, checked, &mut report)).await;
    });
    match args.output {
        CheckOutput::Text => {
            for finding in &report.findings {
                terminal.print(&finding.line(terminal.palette()))?;
            }
            if !report.roles.is_empty() {
                terminal.print(&format!("# Grants what is missing:\n{}", report.roles))?;
            }
        }
        CheckOutput::Json => terminal.write_output(&format!("{}\n", report_json(&report)))?,
    }
    Ok(if report.is_met() { ExitStatus::Done } else { ExitStatus::Differs })
}

fn report_json(report: &CheckReport) -> serde_json::Value {
    let findings = report.findings.iter();
    let findings: Vec<_> =
        findings.map(|finding| json!({"level": finding.label(), "message": finding.text})).collect();
    let denied = report.denied.iter().map(|denied| {
        let mut fields = denied_json(denied);
        if let Some(account) = &denied.account {
            fields["account"] = json!(account.to_string());
        }
        fields
    });
    json!({
        "apiVersion": CHECK_SCHEMA,
        "kind": "Check",
        "ok": report.is_met(),
        "findings": findings,
        "denied": denied.collect::<Vec<_>>(),
        "roles": report.roles,
    })
}

fn denied_json(denied: &DeniedAccess) -> serde_json::Value {
    match &denied.access {
        AccessRequest::Path { verb, path } => {
            json!({"verb": verb, "path": path, "reason": denied.why, "said": denied.server_reason()})
        }
        AccessRequest::Objects { verb, group, resource, namespace, name } => json!({
            "verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name,
            "reason": denied.why, "said": denied.server_reason(),
        }),
    }
}

fn check_git(report: &mut CheckReport) {
    let output = Command::new("git").arg("--version").output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match text.as_deref().map(|text| (text, GitVersion::read(text))) {
        Some((text, Some(version))) if version.is_safe() => match version.repaired_version() {
            None => report.add(CheckLevel::Ok, text),
            Some(repaired) => report.add(
                CheckLevel::Warning,
                format!(
                    "{text}: a repository of this host may run commands by it, unless its packagers mended \
                     that: {repaired} has the repair"
                ),
            ),
        },
        Some((text, _)) => report.add(
            CheckLevel::Missing,
            format!(
                "{text}: git {} or newer is needed, as older ones run commands that a repository's \
                 configuration names",
                GitVersion::MIN_GIT_VERSION
            ),
        ),
        None => {
            report.add(CheckLevel::Missing, "git is not in the PATH: it fetches from remote repositories");
        }
    }
}

/// Returns the first two numbers in a text, as `v1.36.4` has them.
fn version(text: &str) -> Option<(u32, u32)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Checks that commits can be verified by the keys of the sources.
fn keys(config: &Config, report: &mut CheckReport) {
    for file in config.key_files() {
        match unusable_keys(file) {
            Some(why) => report.add(CheckLevel::Missing, why),
            None => {
                report.add(
                    CheckLevel::Ok,
                    format!("commits can be verified by the keys of {}", file.display()),
                );
            }
        }
    }
}

/// Checks that recipients of notifications can be reached: reads their files. Sends nothing.
fn check_notifications(config: &Config, report: &mut CheckReport) {
    for recipient in &config.notify {
        if let Some(why) = delivery_obstacle(&recipient.to) {
            report.add(CheckLevel::Missing, why);
        }
    }
    for unseen in config.commit_status_errors() {
        report.add(CheckLevel::Warning, unseen.to_string());
    }
}

async fn check_sources_in_cluster(
    mut config: Config,
    naming: NameOrigin,
    checked: CheckedPrograms,
    report: &mut CheckReport,
) {
    let Some(cluster) = report.record(session::connect(&config).await, "the cluster") else { return };
    let answered = cluster.server_version().await.map_err(CommandError::from);
    let Some(version_text) = report.record(answered, "the API server") else { return };
    if version(&version_text).is_some_and(|version| version >= MIN_KUBERNETES) {
        report.add(
            CheckLevel::Ok,
            format!("the API server answers: Kubernetes {version_text}, context {}", cluster.context_name()),
        );
    } else {
        report.add(CheckLevel::Missing, format!("Kubernetes {version_text}: 1.27 or newer is needed"));
    }
    let settled = derived_name::require_free_name(&mut config, naming, None, &cluster).await;
    if let Some(Some(note)) = report.record(settled, "the name of the source") {
        report.add(CheckLevel::Ok, note);
    }
    let kinds = match retry_when_throttled(|| cluster.discover()).await {
        Ok(kinds) => kinds,
        Err(error) => {
            let role = "system:discovery";
            return report.add(
                CheckLevel::Missing,
                format!(
                    "which kinds the server has is not known, and nothing else was checked: {}",
                    hidden_refusal_text(&error, role)
                ),
            );
        }
    };
    match kinds.unknown_groups() {
        silent if silent.is_empty() => {
            report.add(CheckLevel::Ok, format!("it serves {}", count_text(kinds.scopes().count(), "kind")));
        }
        silent => {
            let groups: Vec<&str> = silent.into_iter().collect();
            let text = format!(
                "the servers of these API groups do not answer: {}; `kubectl get apiservices` says why",
                groups.join(", ")
            );
            report.add(CheckLevel::Warning, text);
        }
    }
    if let Some(folder) = report.record(session::state(&config, &cluster).await, "the state directory") {
        check_writable(&folder, report);
    }
    check_ledger(&cluster, &config.namespace, report).await;
    records::check(&cluster, &config.namespace, &kinds, report).await;
    check_key(&cluster, &config.namespace, report).await;
    let config = with_cluster_sources(&config, &cluster, &kinds, report).await;
    if let Some(actors) = check_rights(&config, &cluster, &kinds, checked, report).await {
        check_permissions(&cluster, &actors, &config, report).await;
    }
}

/// Returns the finding for a request that the server refused though everybody with this role may
/// make it.
fn hidden_refusal_text(error: &cluster::ClusterError, role: &str) -> String {
    match error.class() {
        ErrorClass::Forbidden => format!("{error}; the ClusterRole {role} grants it"),
        _ => error.to_string(),
    }
}

/// Reports whether the rollout ledger can be read and written, or what mends it. The right to read
/// it is asked about with all others.
async fn check_ledger(cluster: &Cluster, namespace: &str, report: &mut CheckReport) {
    let Ok(Some(budget)) = retry_when_throttled(|| cluster.read_rollout_ledger(namespace)).await else {
        return;
    };
    if let Some(why) = &budget.unwritable {
        report.add(CheckLevel::Missing, explain_unreadable_ledger(namespace, why));
    }
    match RolloutLedger::parse(&budget.text, &HashCiphers::default()) {
        Ok(ledger) if !ledger.unreadable_claims.is_empty() => {
            report.add(CheckLevel::Missing, explain_unread_claims(namespace, ledger.unreadable_claims.len()));
        }
        Ok(_) if budget.unwritable.is_none() => report.add(CheckLevel::Ok, "the rollout budget can be read"),
        Ok(_) => {}
        Err(error) => {
            report.add(CheckLevel::Missing, explain_unreadable_ledger(namespace, &error.to_string()));
        }
    }
}

/// Reports a Secret without a key in the place of the key of seals. The right to read it is asked
/// about with all others. One that was never made is made by the first write.
async fn check_key(cluster: &Cluster, namespace: &str, report: &mut CheckReport) {
    if let Err(error) = retry_when_throttled(|| cluster.read_config_key(namespace)).await
        && matches!(error.fault(), ClusterFault::Garbled { .. })
    {
        let remedy = missing_key_remedy(namespace, Some(error.fault()));
        report.add(CheckLevel::Missing, format!("{error}; nothing is pruned; {remedy}"));
    }
}

/// Checks that caches can be written.
fn check_writable(folder: &Path, report: &mut CheckReport) {
    let tried = std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    match tried {
        Ok(_) => report.add(CheckLevel::Ok, format!("state directory {} can be written", folder.display())),
        Err(error) => {
            let why = super::exit::os_message(&error);
            report.add(CheckLevel::Missing, format!("state directory {}: {why}", folder.display()));
        }
    }
}

/// Returns the configuration with the sources in the cluster.
async fn with_cluster_sources(
    config: &Config,
    cluster: &Cluster,
    kinds: &KindTable,
    report: &mut CheckReport,
) -> Config {
    if !config.custom_sources.is_open() {
        return config.clone();
    }
    if let KindLookup::Unserved { .. } = kinds.preferred_kind(&GroupKind::new("rhumb.dev", "Source")) {
        report.add(
            CheckLevel::Missing,
            "the server has no kind Source: examples/in-cluster/crd.yaml defines it",
        );
        return config.clone();
    }
    let path = custom_path(&config.namespace);
    let listed = match retry_when_throttled(|| cluster.list_custom_sources(&path)).await {
        // The right to list them is asked about, and reported, with all others.
        Err(error) if error.class() == ErrorClass::Forbidden => return config.clone(),
        listed => report.record(listed.map_err(CommandError::from), "the sources in the cluster"),
    };
    let read = listed.into_iter().flatten();
    let read = read.filter_map(|object| CustomSource::read(object, &config.custom_sources));
    let (deleted, customs): (Vec<CustomSource>, Vec<CustomSource>) = read.partition(|custom| custom.deleted);
    let followed = deleted
        .iter()
        .filter(|custom| !config.has_source(&custom.name))
        .filter_map(CustomSource::followed_config);
    report.ending = followed.filter(|source| source.life == SourceLifecycle::Deleting).collect();
    for custom in &customs {
        let name = &custom.name;
        match &custom.config {
            _ if config.has_source(name) => {
                let text =
                    format!("source {name} is defined in the cluster too: the one in the file is followed");
                report.add(CheckLevel::Warning, text);
            }
            Ok(_) => report.add(CheckLevel::Ok, format!("source {name} is defined in the cluster")),
            Err(why) => {
                let text = format!("source {name} of the cluster cannot be followed: {why}");
                report.add(CheckLevel::Missing, text);
                report.unread.insert(name.clone());
            }
        }
    }
    // The finalizer of one that has none yet is no matter of whether it could be followed.
    let configs = customs.into_iter().filter(|custom| !config.has_source(&custom.name));
    let mut joined = config.clone();
    joined.sources.extend(configs.filter_map(|custom| {
        // Deleting such a Source deletes all of its objects, whatever `prune` says.
        let takes_all = custom.policy == DeletionPolicy::Delete;
        let source = custom.config.ok()?;
        let prune = if takes_all { PrunePolicy::On } else { source.prune };
        Some(SourceConfig { prune, renderers: config.renderers.clone(), ..source })
    }));
    joined
}

async fn check_rights(
    config: &Config,
    cluster: &Cluster,
    kinds: &KindTable,
    mut checked: CheckedPrograms,
    report: &mut CheckReport,
) -> Option<AccountRights> {
    let mut rights = Rights::of_rhumb(&config.namespace, SourceAccess::of_all(config));
    if process_sources::is_shared(config, || cluster.is_in_cluster()) && !config.is_observe_only() {
        rights.add_leases(&config.namespace);
    }
    if config.custom_sources.is_open() {
        rights.add_source_resources(&config.namespace);
    }
    let mut scopes = KindScopes::builtin();
    for (kind, scope) in kinds.scopes() {
        scopes.insert(kind.clone(), scope.into());
    }
    let read = report.record(source_contents::read(&config.sources, scopes).await, "the sources")?;
    let mut all = Vec::new();
    for (source, held) in config.sources.iter().zip(read) {
        // One that cannot be read hides nothing of the others.
        let Some(held) = report.record(held, &format!("source {}", source.name)) else {
            report.unread.insert(source.name.clone());
            continue;
        };
        let kinds: BTreeSet<_> = held.objects.iter().map(|object| object.id.group_kind()).collect();
        let (objects, kinds) = (count_text(held.objects.len(), "object"), count_text(kinds.len(), "kind"));
        let text = format!("source {}: {objects} of {kinds}", source.name);
        report.add(CheckLevel::Ok, text);
        checked.check_programs(source, held.programs, report).await;
        if !held.complete {
            let text = format!("source {}: not all files are understood: `rhumb validate`", source.name);
            report.add(CheckLevel::Missing, text);
            report.unread.insert(source.name.clone());
        }
        for found in &held.refused {
            report.add(
                CheckLevel::Warning,
                format!("source {}: {}: {}", source.name, found.origin, found.message),
            );
        }
        all.push((source, held.objects));
    }
    let mut actors = AccountRights::new(rights);
    add(&mut actors, &all, kinds);
    let ending: Vec<SourceConfig> = report.ending.clone();
    let held = all.iter().map(|(source, held)| (*source, &held[..]));
    for (source, held) in held.chain(ending.iter().map(|source| (source, &[][..]))) {
        let rights = actors.of(source);
        let seen = unwanted_objects::add(cluster, kinds, &config.namespace, source, held, rights).await;
        let name = format!("the inventory of source {}", source.name);
        for unseen in report.record(seen.map_err(CommandError::from), &name).into_iter().flatten() {
            report.add(CheckLevel::Missing, unseen);
        }
    }
    let actors = actors.complete(&config.namespace);
    let rights = &actors.own;
    for binding in &rights.unbound {
        report.add(CheckLevel::Warning, format!("{binding}: {}", rbac::UNKNOWN_PARAMETER_KIND));
    }
    let all: Vec<Object> = all.into_iter().flat_map(|(_, held)| held).collect();
    check_kinds(&all, kinds, report);
    check_namespaces(rights, &all, cluster, kinds, report).await;
    Some(actors)
}

/// Adds what follows from all that sources hold.
fn add(actors: &mut AccountRights, all: &[(&SourceConfig, Vec<Object>)], kinds: &KindTable) {
    let own = defined_plurals(all.iter().flat_map(|(_, held)| held));
    let plural = |kind: &GroupKind| match (own.get(kind), kinds.preferred_kind(kind)) {
        (Some(plural), _) => Some(plural.clone()),
        (None, KindLookup::Served(kind)) => Some(kind.plural.to_string()),
        (None, KindLookup::Unserved { .. } | KindLookup::Unknown) => None,
    };
    actors.add(all, &plural);
}

/// Reports kinds of objects that neither the server has nor a source defines, or of which the
/// server does not answer.
fn check_kinds(held: &[Object], kinds: &KindTable, report: &mut CheckReport) {
    let own = defined_plurals(held.iter());
    let requested: BTreeSet<&Gvk> = held.iter().map(|object| &object.gvk).collect();
    for gvk in requested.into_iter().filter(|gvk| !own.contains_key(&gvk.group_kind())) {
        match kinds.get(gvk) {
            KindLookup::Served(_) => {}
            KindLookup::Unserved { versions } => {
                let others = if versions.is_empty() {
                    String::new()
                } else {
                    format!(": it serves {}", versions.join(", "))
                };
                report.add(CheckLevel::Missing, format!("the server has no kind {gvk}{others}"));
            }
            KindLookup::Unknown => {
                let text = format!(
                    "the server of the API group {} does not answer, so nothing of the kind {} can be read or written, \
                     and what rights on it are called is a guess",
                    gvk.group, gvk.kind
                );
                report.add(CheckLevel::Missing, text);
            }
        }
    }
}

/// Finds namespaces that do not exist and that no source holds. Without the right to look, it
/// reports nothing.
async fn check_namespaces(
    rights: &Rights,
    held: &[Object],
    cluster: &Cluster,
    kinds: &KindTable,
    report: &mut CheckReport,
) {
    let KindLookup::Served(kind) = kinds.preferred_kind(&GroupKind::new("", "Namespace")) else { return };
    let comes =
        |name: &str| held.iter().any(|object| object.id.is("", "Namespace") && object.id.name() == name);
    let names = rights.namespaces.iter().filter(|name| !comes(name)).cloned().collect();
    let Ok(there) = retry_when_throttled(|| cluster.look_up(&kind, None, &names)).await else { return };
    for name in names.iter().filter(|name| matches!(there.get(*name), Some(LiveLookup::Absent))) {
        report
            .add(CheckLevel::Missing, format!("namespace {name} does not exist, and no source contains it"));
    }
}

fn note_all_granted(count: usize, config: &Config, report: &mut CheckReport) {
    for source in &config.sources {
        if let Some(bound) = rbac::narrowing_settings(source) {
            report.add(CheckLevel::Ok, format!("source {} {bound}", source.name));
        }
    }
    let unread: Vec<&str> = report.unread.iter().map(String::as_str).collect();
    if unread.is_empty() {
        let text = match count {
            1 => "the 1 right that these sources need is granted".to_owned(),
            count => format!("all {count} rights that these sources need are granted"),
        };
        report.add(CheckLevel::Ok, text);
    } else {
        let unread = unread.join(", ");
        let granted = format!("{} {} granted", count_text(count, "right"), verb_to_be(count));
        let text = format!("{granted}; which others are needed is not known: {unread}");
        report.add(CheckLevel::Warning, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_the_first_numbers() {
        fn check(text: &str, expected: Option<(u32, u32)>) {
            assert_eq!(version(text), expected, "{text}");
        }
        check("git version 2.39.5 (Apple Git-154)", Some((2, 39)));
        check("v1.36.4", Some((1, 36)));
        check("v1.27+", Some((1, 27)));
        check("git", None);
    }
}
