//! `rhumb rbac`: the minimal roles for what sources hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::accounts::{ACCOUNT_COMMENT, AccountRights};
use super::args::{GlobalArgs, RbacArgs};
use super::rights::{RBAC_GROUP, RightScope, RightSubject, Rights, SourceAccess, defined_plurals};
use super::{CommandError, ExitStatus, Terminal, session, settings, source_contents};
use crate::change::write_yaml;
use crate::cluster::ServiceAccount;
use crate::config::{Config, DnsLabel, LeaseMode, ServiceAccountName, SourceConfig};
use crate::manifest::KindScopes;
use crate::object::{Diagnostic, ErrorClass, GroupKind};
use crate::render;

const RBAC_API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The note on a binding whose policy no source has.
pub(super) const UNKNOWN_PARAMETER_KIND: &str = "its policy is in no source, so the kind of its parameters is not known; to write it may \
                                  take the right to list them";

/// The subject that gets the roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoleSubject {
    /// A user.
    User(String),
    /// A service account of a namespace.
    ServiceAccount(String, String),
}

impl RoleSubject {
    /// Returns the subject with this name.
    pub(super) fn of(user: &str) -> Self {
        let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        account.map_or_else(
            || Self::User(user.to_owned()),
            |(namespace, name)| Self::ServiceAccount(namespace.to_owned(), name.to_owned()),
        )
    }

    /// Returns a service account.
    pub(super) fn for_account(account: &ServiceAccount) -> Self {
        Self::ServiceAccount(account.namespace.to_string(), account.name.to_string())
    }

    fn subject(&self) -> Value {
        match self {
            Self::User(name) => json!({"kind": "User", "name": name, "apiGroup": RBAC_GROUP}),
            Self::ServiceAccount(namespace, name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
        }
    }
}

/// Carries the command out. Asks no API server.
pub(super) fn carry_out(
    args: &RbacArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let config = settings::source_set(global, &args.sources, terminal)?;
    let bound = named_subject(args)?;
    let (actors, guessed, refused) =
        session::start_runtime()?.block_on(read_rights(&config, bound.as_ref()))?;
    let rights = &actors.own;
    // The roles leave it out, and that is reported where nobody applies it.
    terminal.report(&render::diagnostics(&refused, terminal.error_palette()));
    let name = role_name(&config);
    let whose = match &config.sources[..] {
        [source] => format!("source {}", source.name),
        _ => "these sources".to_owned(),
    };
    terminal.write_output(&format!(
        "# The minimal roles for {whose}. They change with what is held; for what it has and no longer holds, `rhumb \
         check` asks the cluster.\n"
    ))?;
    for source in &config.sources {
        if let Some(bound) = narrowing_settings(source) {
            terminal.write_output(&format!("# Source {} {bound}\n", source.name))?;
        }
    }
    // As documents they would be deleted with the roles, and all that is in them.
    let own = [config.namespace.as_str()].into_iter();
    let namespaces: BTreeSet<&str> = own.chain(rights.namespaces.iter().map(String::as_str)).collect();
    let namespaces: Vec<&str> = namespaces.into_iter().collect();
    terminal.write_output(&format!(
        "# These namespaces must be there before (`kubectl create namespace NAME`): {}\n",
        namespaces.join(", ")
    ))?;
    if !guessed.is_empty() {
        let kinds: Vec<String> = guessed.iter().map(ToString::to_string).collect();
        terminal.write_output(&format!(
            "# Neither Kubernetes nor the source defines these kinds, so what they are called in roles, and whether they \
             live in namespaces, is a guess; `rhumb check` asks the server: {}\n",
            kinds.join(", ")
        ))?;
    }
    for binding in &rights.unbound {
        terminal.write_output(&format!("# {binding}: {UNKNOWN_PARAMETER_KIND}\n"))?;
    }
    warn(rights, terminal)?;
    terminal.write_output(&role_documents(rights, &name, bound.as_ref()))?;
    for (account, rights) in actors.service_accounts(&config.namespace) {
        terminal.write_output(&format!("# {account}: {ACCOUNT_COMMENT}\n"))?;
        warn(rights, terminal)?;
        let name = account_role(&config, &account);
        terminal.write_output(&role_documents(rights, &name, Some(&RoleSubject::for_account(&account))))?;
    }
    Ok(ExitStatus::Done)
}

/// Returns the rights, the kinds that neither Kubernetes nor a source defines, and what sources may
/// not have.
async fn read_rights(
    config: &Config,
    bound: Option<&RoleSubject>,
) -> Result<(AccountRights, BTreeSet<GroupKind>, Vec<Diagnostic>), CommandError> {
    let mut rights = Rights::of_rhumb(&config.namespace, SourceAccess::of_all(config));
    // A service account is that of pods, of which there may be several.
    let shared = match config.leases {
        LeaseMode::Always => true,
        LeaseMode::Never => false,
        LeaseMode::Auto => matches!(bound, Some(RoleSubject::ServiceAccount(..))),
    };
    if shared && !config.is_observe_only() {
        rights.add_leases(&config.namespace);
    }
    if config.custom_sources.is_open() {
        rights.add_source_resources(&config.namespace);
    }
    let (mut holdings, mut refused, scopes) = (Vec::new(), Vec::new(), KindScopes::builtin());
    for (source, contents) in
        config.sources.iter().zip(source_contents::read(&config.sources, scopes.clone()).await?)
    {
        let contents = contents?;
        if !contents.complete {
            let why = contents.first_error.map(|found| format!(": {}: {}", found.origin, found.message));
            let why = why.unwrap_or_default();
            let message = format!("source {}: not all files are understood{why}", source.name);
            return Err(CommandError::new(ErrorClass::Source, message)
                .hint("roles for their objects would be missing; `rhumb validate` says what is wrong"));
        }
        refused.extend(contents.refused);
        holdings.push((source, contents.objects));
    }
    let own = defined_plurals(holdings.iter().flat_map(|(_, contents)| contents));
    let plural = |kind: &GroupKind| own.get(kind).cloned();
    let mut actors = AccountRights::new(rights);
    actors.add(&holdings, &plural);
    let kinds = holdings.iter().flat_map(|(_, contents)| contents).map(|object| object.id.group_kind());
    let guessed = kinds.filter(|kind| scopes.get(kind).is_none() && !own.contains_key(kind)).collect();
    Ok((actors.complete(&config.namespace), guessed, refused))
}

/// Says where rights amount to those over the whole cluster, beside the roles and to whoever asks
/// for them.
fn warn(rights: &Rights, terminal: &Terminal) -> Result<(), CommandError> {
    for warning in rights.breadth_warnings() {
        terminal.write_output(&format!("# WARNING: {warning}\n"))?;
        terminal.report(&format!("warning: these roles grant {warning}\n"));
    }
    Ok(())
}

/// Returns the settings of a source that narrow its roles.
pub(super) fn narrowing_settings(source: &SourceConfig) -> Option<&'static str> {
    match SourceAccess::of(source) {
        SourceAccess::Observe => Some(
            "has `observe: true`, so it needs no right to write: print its roles again before you remove that. Without \
             these rights there is no dry run, so the effect of a change is not checked by the API server",
        ),
        SourceAccess::Apply => Some(
            "does not prune, so it may delete only what asks to be recreated: print its roles again before `prune` is on",
        ),
        SourceAccess::Prune => None,
    }
}

/// Returns who is named by the flags.
fn named_subject(args: &RbacArgs) -> Result<Option<RoleSubject>, CommandError> {
    let wrong = |text: &str| {
        CommandError::usage_error(format!("{text} is no service account (for example rhumb-system/rhumb)"))
    };
    match (&args.user, &args.service_account) {
        (Some(user), _) if user.is_empty() => Err(CommandError::usage_error("--user names nobody")),
        (Some(user), _) => Ok(Some(RoleSubject::User(user.clone()))),
        (None, Some(account)) => {
            let (namespace, name) = account.split_once('/').ok_or_else(|| wrong(account))?;
            let namespace: DnsLabel = namespace.parse().map_err(|_| wrong(account))?;
            let name: ServiceAccountName = name.parse().map_err(|_| wrong(account))?;
            Ok(Some(RoleSubject::ServiceAccount(namespace.to_string(), name.to_string())))
        }
        (None, None) => Ok(None),
    }
}

/// Returns the name of the roles of these sources: `rhumb:rhumb-system:shop`, or
/// `rhumb:rhumb-system` for several. Names of sources and namespaces have no colon. So no two of
/// these names collide, nor does one with a role that people have named plainly.
pub(super) fn role_name(config: &Config) -> String {
    match &config.sources[..] {
        [source] => format!("rhumb:{}:{}", config.namespace, source.name),
        _ => format!("rhumb:{}", config.namespace),
    }
}

/// Returns the name of the roles of a service account of sources: `rhumb:rhumb-system:as:shop`.
pub(super) fn account_role(config: &Config, account: &ServiceAccount) -> String {
    format!("rhumb:{}:as:{}", config.namespace, account.name)
}

/// Returns the name of the roles that grant missing rights. Applying them takes no existing right
/// away.
pub(super) fn missing_name(name: &str) -> String {
    name.replacen("rhumb:", "rhumb-missing:", 1)
}

fn yaml_document(object: &Value) -> String {
    format!("---\n{}", write_yaml(object))
}

/// Returns the roles with these rights, and their bindings.
pub(super) fn role_documents(rights: &Rights, name: &str, bound: Option<&RoleSubject>) -> String {
    let mut scopes: BTreeMap<&RightScope, Vec<(&RightSubject, BTreeSet<&str>)>> = BTreeMap::new();
    for ((scope, subject), verbs) in &rights.all {
        scopes.entry(scope).or_default().push((subject, verbs.keys().map(String::as_str).collect()));
    }
    let mut text = String::new();
    for (scope, subjects) in scopes {
        let (kind, metadata) = match scope {
            RightScope::Cluster => ("ClusterRole", json!({"name": name})),
            RightScope::Namespace(namespace) => ("Role", json!({"name": name, "namespace": namespace})),
        };
        let role = json!({"apiVersion": RBAC_API_VERSION, "kind": kind, "metadata": metadata, "rules": role_rules(&subjects)});
        text += &yaml_document(&role);
        if let Some(bound) = bound {
            text += &yaml_document(&json!({
                "apiVersion": RBAC_API_VERSION,
                "kind": format!("{kind}Binding"),
                "metadata": metadata,
                "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
                "subjects": [bound.subject()],
            }));
        }
    }
    text
}

/// Returns the rules of a role, one for all resources of a group with the same verbs.
fn role_rules(subjects: &[(&RightSubject, BTreeSet<&str>)]) -> Vec<Value> {
    type ObjectRule<'a> = (&'a str, Option<&'a BTreeSet<String>>, &'a BTreeSet<&'a str>);
    let mut objects: BTreeMap<ObjectRule<'_>, BTreeSet<&str>> = BTreeMap::new();
    let mut paths: BTreeMap<&BTreeSet<&str>, BTreeSet<&str>> = BTreeMap::new();
    for (subject, verbs) in subjects {
        match subject {
            RightSubject::Objects { group, resource, names } => {
                objects.entry((group, names.as_ref(), verbs)).or_default().insert(resource);
            }
            RightSubject::Path(path) => drop(paths.entry(verbs).or_default().insert(path)),
        }
    }
    let objects = objects.into_iter().map(|((group, names, verbs), resources)| {
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if let Some(names) = names {
            rule["resourceNames"] = json!(names);
        }
        rule
    });
    let paths = paths.into_iter().map(|(verbs, paths)| json!({"nonResourceURLs": paths, "verbs": verbs}));
    objects.chain(paths).collect()
}
