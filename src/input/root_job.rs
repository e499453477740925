//! One root to be rendered: what its outcome follows from, and what becomes of the run.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::decryption::NO_KEY;
use super::key::ProgramIdentity;
use super::kustomize::Closure;
use super::origin::ObjectOrigin;
use super::paths;
use super::render_host::NO_MEMORY_HINT;
use super::root_closure::RootClosure;
use super::root_render::{RenderError, RenderOutput, RenderedObject};
use super::roots::{RenderRoot, RootForm};
use super::sandbox::{InstalledProgram, ProgramError, RenderProgram, SandboxPart};
use super::substitution::RevisionVariables;
use crate::object::{Diagnostic, ManifestOrigin, RenderOrigin};
use crate::source::{
    BlobId, RenderedContent, RenderedRoot, RootKey, RootOutcome, SharedTexts, SnapshotFile, SourceError,
};

/// The code of a root that its program does not render.
pub(super) const RENDER_FAILED: &str = "render-failed";
/// The code of the finding that a program ran into a limit of time.
pub(super) const RENDER_STOPPED: &str = "render-stopped";
/// The code of a root whose program is missing, or cannot be used.
pub(super) const NO_RENDERER: &str = "no-program";

/// The remedy where a program fails.
const FAILED_HINT: &str = "run the same program on this folder to see all it says";
/// The remedy where it fails, and read Secrets or opened files.
const WORDLESS_HINT: &str = "run the same program on this folder to see all it says; encrypted files must be decrypted for \
                             that, in a copy of the folder in memory";

/// The programs that the roots at hand need, each found or not.
pub(super) type FoundPrograms = BTreeMap<RenderProgram, Result<InstalledProgram, ProgramError>>;

/// A root, and what its outcome follows from.
pub(super) struct RootJob {
    /// The folder that is the source's root.
    pub(super) start: Arc<str>,
    /// The folder that is rendered.
    pub(super) folder: Arc<str>,
    /// The path inside the source of the file that makes its folder a root.
    pub(super) path: Arc<str>,
    pub(super) closure: Arc<RootClosure>,
    /// The programs that it needs: first its own.
    pub(super) programs: Vec<InstalledProgram>,
    pub(super) key: RootKey,
    pub(super) variables: Option<Arc<RevisionVariables>>,
}

/// The outcome of one job.
pub(super) struct JobOutcome {
    pub(super) root: RenderedRoot,
    pub(super) contents: Vec<RenderedContent>,
}

/// Returns what is known of a root without a run of its program, or what has to be run.
pub(super) fn plan_root(
    root: RenderRoot,
    start: &str,
    closure: Arc<RootClosure>,
    programs: &FoundPrograms,
    variables: Option<&Arc<RevisionVariables>>,
    known: &HashMap<RootKey, RenderedRoot>,
) -> Result<RootJob, Box<JobOutcome>> {
    let path = root_path(&root, closure.closure(), start);
    let without = |outcome| {
        let root = RenderedRoot::new(path.clone(), RootKey::default(), outcome);
        Box::new(JobOutcome { root, contents: Vec::new() })
    };
    let seen = |found: Diagnostic| finding_from(start, found);
    if !closure.closure().is_renderable() {
        let found = closure.closure().diagnostics.iter().filter(|found| found.is_error()).cloned();
        return Err(without(RootOutcome::Refused(found.map(seen).collect())));
    }
    if !closure.interruptions().is_empty() {
        let found = closure.interruptions().iter().cloned();
        return Err(without(RootOutcome::Interrupted(found.map(seen).collect())));
    }
    let mut needed = Vec::with_capacity(closure.programs().len());
    for program in closure.programs() {
        match programs.get(program) {
            Some(Ok(program)) => needed.push(program.clone()),
            None => return Err(without(RootOutcome::Interrupted(vec![unknown_program(&path)]))),
            Some(Err(error)) => {
                let found = Diagnostic::file_error(path.clone(), NO_RENDERER, error.to_string());
                return Err(without(RootOutcome::Interrupted(vec![found])));
            }
        }
    }
    let identity = |program: &InstalledProgram| ProgramIdentity {
        name: program.program.name().to_owned(),
        version: program.version.to_string(),
        digest: program.digest,
    };
    let identities: Vec<ProgramIdentity> = needed.iter().map(identity).collect();
    let variables = match root.form {
        RootForm::Kustomize => variables.cloned(),
        // A chart has values instead.
        RootForm::Helm => None,
    };
    let Some(mut inputs) = closure.inputs(&identities) else {
        return Err(without(RootOutcome::Interrupted(vec![unknown_program(&path)])));
    };
    if let Some(variables) = &variables {
        inputs.variables = variables.key_values();
        inputs.options.insert("substitute".to_owned(), "1".to_owned());
    }
    let key = inputs.key().bytes();
    match known.get(&key) {
        Some(same) if same.path == path && matches!(same.outcome, RootOutcome::Rendered(_)) => {
            Err(Box::new(JobOutcome { root: same.clone(), contents: Vec::new() }))
        }
        _ => {
            let (start, folder) = (start.into(), root.folder);
            Ok(RootJob { start, folder, path, closure, programs: needed, key, variables })
        }
    }
}

fn unknown_program(path: &Arc<str>) -> Diagnostic {
    Diagnostic::file_error(path.clone(), NO_RENDERER, "its program was not looked for")
}

/// Returns the path of a root inside the source: of the file that makes its folder one.
fn root_path(root: &RenderRoot, closure: &Closure, start: &str) -> Arc<str> {
    let file = match root.form {
        RootForm::Kustomize => closure.folders.first().map(|folder| &*folder.file),
        RootForm::Helm => None,
    };
    let file = file.and_then(|file| file.rsplit('/').next()).unwrap_or(root.form.file_name());
    let folder = root.folder.strip_prefix(start).unwrap_or(&root.folder).trim_start_matches('/');
    paths::append(folder, file).into()
}

/// Returns what came of a run. The origins of its objects share these texts with those of other
/// roots.
///
/// # Errors
/// Fails where the revision could not be read.
pub(super) fn outcome_of(
    job: RootJob,
    run: Result<RenderOutput, RenderError>,
    texts: &Mutex<SharedTexts>,
) -> Result<JobOutcome, SourceError> {
    let RootJob { start, folder, path, key, variables, .. } = job;
    let (mut contents, mut warnings) = (Vec::new(), Vec::<Diagnostic>::new());
    let outcome = match run {
        Ok(RenderOutput { objects, warnings: found }) => {
            warnings.extend(found.into_iter().map(|found| finding_from(&start, found)));
            let mut seen = SeenPaths::of_root(&folder, &start, texts);
            contents.reserve_exact(objects.len());
            let files = objects.into_iter().map(|object| file_of(&mut seen, &path, object, &mut contents));
            let mut files: Vec<SnapshotFile> = files.collect();
            files.sort_unstable();
            RootOutcome::Rendered(files.into())
        }
        Err(RenderError::Source(error)) => return Err(error),
        Err(RenderError::Variables(found) | RenderError::Refused(found)) => {
            let found = found.into_iter().map(|found| finding_from(&start, found)).collect();
            RootOutcome::Refused(variables.unwrap_or_default().explain(found))
        }
        Err(RenderError::Encrypted(found)) => {
            let found = finding_from(&start, *found);
            // An identity may come.
            if found.code == NO_KEY {
                RootOutcome::Interrupted(vec![found])
            } else {
                RootOutcome::Refused(vec![found])
            }
        }
        Err(error) => {
            let code = if is_out_of_time(&error) { RENDER_STOPPED } else { RENDER_FAILED };
            let found = Diagnostic::file_error(path.clone(), code, error.to_string());
            match error {
                RenderError::NoMemoryFolder => RootOutcome::Interrupted(vec![found.hint(NO_MEMORY_HINT)]),
                RenderError::MessageWithheld { .. } => RootOutcome::Refused(vec![found.hint(WORDLESS_HINT)]),
                error if error.is_passing() => RootOutcome::Interrupted(vec![found]),
                _ => RootOutcome::Refused(vec![found.hint(FAILED_HINT)]),
            }
        }
    };
    let root = RenderedRoot { warnings: warnings.into(), ..RenderedRoot::new(path, key, outcome) };
    Ok(JobOutcome { root, contents })
}

/// Returns whether a program had no time left.
fn is_out_of_time(error: &RenderError) -> bool {
    let RenderError::Sandbox(error) = error else { return false };
    matches!(error.part(), Some(SandboxPart::Deadline | SandboxPart::Processor))
}

fn file_of(
    seen: &mut SeenPaths<'_>,
    root: &str,
    object: RenderedObject,
    contents: &mut Vec<RenderedContent>,
) -> SnapshotFile {
    let bytes: Arc<[u8]> = object.body.to_string().into_bytes().into();
    let (blob, size) = (BlobId::of(&bytes), bytes.len() as u64);
    contents.push(RenderedContent { blob, bytes });
    SnapshotFile {
        path: RenderedRoot::object_path(root, &object.name),
        blob,
        size,
        origin: Some(seen.render_origin(object.origin).into()),
    }
}

/// Paths of the revision as they are seen from the source's folder. The objects of all roots of a
/// pass share the text of each: many roots read the same bases.
///
/// No text of a closure is among them. One that is kept would lie between what is free once the
/// closure is dropped.
struct SeenPaths<'a> {
    start: &'a str,
    texts: &'a Mutex<SharedTexts>,
    /// The paths that this root has asked for.
    known: HashMap<Arc<str>, Arc<str>>,
}

impl<'a> SeenPaths<'a> {
    /// Returns the paths for a root, whose folder is kept anyway.
    fn of_root(folder: &Arc<str>, start: &'a str, texts: &'a Mutex<SharedTexts>) -> Self {
        let seen = Self { start, texts, known: HashMap::new() };
        seen.texts().add(folder);
        seen
    }

    fn texts(&self) -> MutexGuard<'a, SharedTexts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&mut self, path: &Arc<str>) -> Arc<str> {
        if let Some(seen) = self.known.get(path) {
            return seen.clone();
        }
        let seen = paths::relative_to(self.start, path);
        let seen = self.texts().share(&seen);
        self.known.insert(path.clone(), seen.clone());
        seen
    }

    fn render_origin(&mut self, origin: ObjectOrigin) -> RenderOrigin {
        let ObjectOrigin { root, renderer, places } = origin;
        let root = self.path(&root);
        let seen = |place: ManifestOrigin| ManifestOrigin { file: self.path(&place.file), ..place };
        RenderOrigin { root, renderer, places: places.into_iter().map(seen).collect() }
    }
}

/// Returns a place of the revision as it is seen from the source's folder.
fn relative_origin(start: &str, origin: &ManifestOrigin) -> ManifestOrigin {
    ManifestOrigin { file: paths::relative_to(start, &origin.file).into(), ..origin.clone() }
}

/// Returns a finding as it is seen from the source's folder.
fn finding_from(start: &str, found: Diagnostic) -> Diagnostic {
    Diagnostic { origin: relative_origin(start, &found.origin), ..found }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::input::sandbox::SandboxError;

    #[test]
    fn a_program_without_time_is_told_from_one_that_fails_by_either_clock() {
        let check = |error: SandboxError, expected: bool| {
            let error = RenderError::Sandbox(error);
            assert_eq!(is_out_of_time(&error), expected, "{error}");
        };
        let program = || "helm".to_owned();
        let stopped = |part| SandboxError::Stopped { program: program(), part, stderr: String::new() };
        check(SandboxError::Deadline { program: program(), deadline: Duration::from_mins(1) }, true);
        check(stopped(SandboxPart::Processor), true);
        check(stopped(SandboxPart::Memory), false);
    }

    #[test]
    fn the_objects_of_two_roots_share_the_text_of_a_base_and_each_the_folder_of_its_root() {
        let texts = Mutex::default();
        let origin = |folder: &Arc<str>, start: &str| {
            let object = RenderedObject {
                name: "ConfigMap//a".to_owned(),
                body: json!({"kind": "ConfigMap"}),
                origin: ObjectOrigin {
                    root: folder.clone(),
                    renderer: "kustomize".into(),
                    places: vec![ManifestOrigin::new("all/base/a.yaml".into(), 1, 1)],
                },
            };
            let mut seen = SeenPaths::of_root(folder, start, &texts);
            let mut contents = Vec::new();
            let file = file_of(&mut seen, "root", object, &mut contents);
            assert_eq!(contents.len(), 1);
            file.origin.unwrap()
        };
        let folders: [Arc<str>; 2] = ["all/dev".into(), "all/prod".into()];
        let [dev, prod] = folders.each_ref().map(|folder| origin(folder, ""));
        assert!(Arc::ptr_eq(&dev.places[0].file, &prod.places[0].file));
        assert_eq!(&*dev.places[0].file, "all/base/a.yaml");
        assert!(Arc::ptr_eq(&dev.root, &folders[0]) && Arc::ptr_eq(&prod.root, &folders[1]));
        let seen = origin(&folders[0], "all");
        assert_eq!((&*seen.root, &*seen.places[0].file), ("dev", "base/a.yaml"));
    }
}
