//! The configuration file: which documents are in it, and what they say together.

use std::sync::Arc;

use super::commit_status::{ClusterSources, context_faults};
use super::fault::{ConfigFault, suggestion};
use super::notify::entry_mark;
use super::spec::{ConfigurationDocument, SourceDocument, default_resync};
use super::tree::{self, ConfigNode, ConfigNodeMark};
use super::{
    ApiSpec, BudgetSpec, CONFIG_API_VERSION, Config, ConnectionSpec, CustomSourcePolicy, DnsLabel,
    Environment, LeaseMode, NotifyConfig, RendererConfig, ServeConfig, SourceConfig, reader,
};
use crate::fields::mask_likely_secrets;
use crate::object::{Diagnostic, ManifestOrigin};

const DOCUMENT_KINDS: [&str; 2] = ["Configuration", "Source"];

/// Reads a configuration file. `file` is the name under which findings show it.
///
/// # Errors
///
/// Everything that is wrong with it, in the order of the lines.
pub fn read(file: &str, text: &str, environment: &Environment) -> Result<Config, Vec<Diagnostic>> {
    let mut findings = ConfigFindings { file: file.into(), text, faults: Vec::new() };
    let documents = match tree::documents(text) {
        Ok(documents) => documents,
        Err(error) => {
            findings.faults.push(ConfigFault::new("config-syntax", error.message).with_mark(error.mark));
            return Err(findings.into_diagnostics());
        }
    };
    let mut reading = ConfigFileReader {
        environment,
        configuration: None,
        notify: Vec::new(),
        sources: Vec::new(),
        names: Vec::new(),
    };
    for mut document in documents {
        reading.take(&mut document, &mut findings.faults);
    }
    findings.faults.extend(reading.context_faults());
    if findings.faults.is_empty() && reading.sources.is_empty() && !reading.has_custom_sources() {
        let fault = ConfigFault::new("config-no-source", "the file names no source");
        findings
            .faults
            .push(fault.hint(format!("add a document of apiVersion {CONFIG_API_VERSION} and kind Source")));
    }
    if findings.faults.is_empty() { Ok(reading.into_config()) } else { Err(findings.into_diagnostics()) }
}

struct ConfigFileReader<'a> {
    environment: &'a Environment,
    /// The position and contents of the first `Configuration`, if it could be read.
    configuration: Option<(ConfigNodeMark, Option<ConfigurationDocument>)>,
    /// The recipients, each with the place of its entry.
    notify: Vec<(ConfigNodeMark, NotifyConfig)>,
    sources: Vec<SourceConfig>,
    names: Vec<(String, ConfigNodeMark)>,
}

impl ConfigFileReader<'_> {
    fn take(&mut self, document: &mut ConfigNode, faults: &mut Vec<ConfigFault>) {
        let Some(kind) = document.get("kind") else {
            let fault =
                ConfigFault::new("config-missing-key", "the key `kind` is missing").with_mark(document.mark);
            return faults.push(fault.hint(format!("kinds: {}", DOCUMENT_KINDS.join(", "))));
        };
        let mark = kind.mark;
        match kind.text() {
            Some("Configuration") => self.configuration(document, mark, faults),
            Some("Source") => self.source(document, faults),
            Some(other) => {
                let fault =
                    ConfigFault::new("config-kind", format!("unknown kind `{other}`")).with_mark(mark);
                faults.push(fault.hint(suggestion(other, &DOCUMENT_KINDS)));
            }
            None => faults.push(ConfigFault::new("config-type", "the kind must be text").with_mark(mark)),
        }
    }

    fn configuration(
        &mut self,
        document: &mut ConfigNode,
        mark: ConfigNodeMark,
        faults: &mut Vec<ConfigFault>,
    ) {
        let mut read: Option<ConfigurationDocument> = reader::read(document, faults);
        if let Some(read) = &mut read {
            read.serve.check(self.environment, document, faults);
            for (number, spec) in std::mem::take(&mut read.notify).into_iter().enumerate() {
                let entry = spec.validate(self.environment, document, number, faults);
                self.notify.extend(entry.map(|entry| (entry_mark(document, number), entry)));
            }
        }
        if let Some((first, _)) = &self.configuration {
            let message = format!("a second Configuration; the first is on line {}", first.line);
            let fault = ConfigFault::new("config-two-configurations", message).with_mark(mark);
            return faults.push(fault.hint("keep one Configuration, and a Source for each source"));
        }
        self.configuration = Some((mark, read));
    }

    fn source(&mut self, document: &mut ConfigNode, faults: &mut Vec<ConfigFault>) {
        self.name_once(document, faults);
        refuse_deletion_policy(document, faults);
        let spec = document.get("spec").map_or(document.mark, |spec| spec.mark);
        let Some(source) = reader::read::<SourceDocument>(document, faults) else { return };
        match source.spec.into_config(&source.metadata.name, self.environment) {
            Ok(source) => self.sources.push(source),
            Err(error) => {
                let fault = ConfigFault::new(error.code(), error.to_string()).with_mark(spec);
                faults.push(fault.hint(error.hint()));
            }
        }
    }

    fn name_once(&mut self, document: &ConfigNode, faults: &mut Vec<ConfigFault>) {
        let Some(node) = document.get("metadata").and_then(|metadata| metadata.get("name")) else { return };
        let Some(name) = node.text() else { return };
        if let Some((_, first)) = self.names.iter().find(|(known, _)| known == name) {
            let message = format!("a second source `{name}`; the first is on line {}", first.line);
            let fault = ConfigFault::new("config-two-sources", message).with_mark(node.mark);
            return faults
                .push(fault.hint("a source's name is the name of its inventory: give each its own"));
        }
        self.names.push((name.to_owned(), node.mark));
    }

    /// Returns whether sources may come from the cluster, so that the file need name none.
    fn has_custom_sources(&self) -> bool {
        let document = self.configuration.as_ref().and_then(|(_, document)| document.as_ref());
        document.is_some_and(|document| document.custom_sources.is_open())
    }

    /// Returns the faults of commit statuses that two sources would share.
    fn context_faults(&self) -> Vec<ConfigFault> {
        let customs =
            if self.has_custom_sources() { ClusterSources::Followed } else { ClusterSources::Ignored };
        context_faults(&self.notify, &self.sources, customs)
    }

    fn into_config(self) -> Config {
        let Some((_, Some(document))) = self.configuration else {
            let serve = ServeConfig::of_environment(self.environment);
            return Config { serve, sources: self.sources, ..Config::default() };
        };
        let resolve = |path: std::path::PathBuf| self.environment.resolve(&path);
        let renderers = RendererConfig {
            programs: document.programs.resolve(self.environment),
            sandbox: document.sandbox,
        };
        let rendered = |source| SourceConfig { renderers: renderers.clone(), ..source };
        Config {
            connection: ConnectionSpec {
                kubeconfig: document.kubeconfig.map(resolve),
                context: document.context,
                api: document.api,
            },
            state_directory: document.state_directory.map(resolve),
            namespace: document.namespace.into(),
            resync: document.resync,
            budget: document.budget,
            leases: document.leases,
            custom_sources: document.custom_sources.resolve(self.environment),
            serve: document.serve.resolve(self.environment),
            notify: self.notify.into_iter().map(|(_, entry)| entry).collect(),
            sources: self.sources.into_iter().map(rendered).collect(),
            renderers,
        }
    }
}

/// Refuses a deletion policy in the file: a source of the file has no object that anybody could
/// delete.
fn refuse_deletion_policy(document: &mut ConfigNode, faults: &mut Vec<ConfigFault>) {
    let Some(mark) = document.get("spec").and_then(|spec| spec.mark_of("deletionPolicy")) else { return };
    let why = "`deletionPolicy` is for a Source object in the cluster";
    let fault = ConfigFault::new("config-deletion-policy", why).with_mark(mark);
    faults.push(fault.hint(
        "leave it out: the objects of a source that is taken out of the file stay; to delete them, take them out of git before",
    ));
    document.try_remove_entry(mark);
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connection: ConnectionSpec { kubeconfig: None, context: None, api: ApiSpec::default() },
            state_directory: None,
            namespace: DnsLabel::system_namespace().into(),
            resync: default_resync(),
            budget: BudgetSpec::default(),
            leases: LeaseMode::default(),
            custom_sources: CustomSourcePolicy::default(),
            serve: ServeConfig::default(),
            renderers: RendererConfig::default(),
            notify: Vec::new(),
            sources: Vec::new(),
        }
    }
}

struct ConfigFindings<'a> {
    file: Arc<str>,
    text: &'a str,
    faults: Vec<ConfigFault>,
}

impl ConfigFindings<'_> {
    fn into_diagnostics(self) -> Vec<Diagnostic> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut diagnostics: Vec<Diagnostic> = self
            .faults
            .into_iter()
            .map(|fault| {
                let (line, column) = fault.mark.map_or((0, 0), |mark| (mark.line, mark.column));
                Diagnostic {
                    hint: fault.hint.as_deref().map(mask_likely_secrets),
                    excerpt: (line as usize)
                        .checked_sub(1)
                        .and_then(|index| lines.get(index))
                        .map(|line| mask_likely_secrets(line)),
                    ..Diagnostic::error(
                        ManifestOrigin::new(self.file.clone(), line, column),
                        fault.code,
                        mask_likely_secrets(&fault.message),
                    )
                }
            })
            .collect();
        diagnostics.sort();
        diagnostics
    }
}
