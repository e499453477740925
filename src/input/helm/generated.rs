//! Values that a chart makes up anew each time it is rendered: passwords, keys, certificates,
//! times.
//!
//! A chart whose templates name a function that does so is rendered twice. A field that differs
//! would change the cluster each time rhumb renders the chart, for nothing that anybody changed.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use zeroize::Zeroizing;

use crate::engine::GeneratedMark;
use crate::input::kustomize::sanitize_text;
use crate::input::sops::ENCRYPTED_PREFIX;
use crate::input::tree::FileTree;
use crate::object::annotations::{GENERATED, IGNORE_FIELDS};
use crate::object::{Diagnostic, annotation_text, hex_text, text_at};
use crate::source::SourceError;

use super::closure::{ChartClosure, ChartValues};
use super::hooks::{is_made_once, is_never_run};
use super::options::{HelmOptions, MAX_RELEASE_NAME_CHARS};
use super::output::ChartObject;

/// Functions of templates whose answer is another one each time, besides those whose names begin
/// with `rand` and `gen`.
const CHANGING_FUNCTIONS: [&str; 15] = [
    "ago",
    "bcrypt",
    "date",
    "dateInZone",
    "date_in_zone",
    "durationRound",
    "encryptAES",
    "htmlDate",
    "htmlDateInZone",
    "htpasswd",
    "keys",
    "now",
    "shuffle",
    "uuidv4",
    "values",
];

/// The path of the mark of a render.
const MARK_PATH: &str = "/metadata/annotations/rhumb.dev~1generated";

/// The number of random bytes that keep one render apart from another.
const RENDER_ID_BYTES: usize = 16;

/// Bytes of the paths of all fields of a chart that differ. Each path has all keys above its field,
/// so they may be far more than what the chart prints. One object bears 256 KiB of annotations.
const MAX_COMPARED_PATH_BYTES: usize = 1 << 20;

/// Fields of one object that are named in a finding.
const MAX_NAMED_FIELDS: usize = 5;

/// The remedy for values that are made up.
const GIVE_VALUE_HINT: &str = "give the value yourself, often by the name of a Secret as `existingSecret`";

/// Returns whether a render may make up values. The tree has the files as helm gets them: encrypted
/// ones are in the open there.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(super) fn may_generate<T: FileTree>(
    chart: &ChartClosure,
    files: &T,
    tree: &Path,
) -> Result<bool, SourceError> {
    for values in &chart.values {
        if let ChartValues::Inline(text) = values
            && has_changing_function(text)
        {
            return Ok(true);
        }
    }
    for (path, file) in &chart.closure.files {
        // The content of an archive is not looked at.
        if path.ends_with(".tgz") {
            return Ok(true);
        }
        let bytes = files.read(file.file.blob)?;
        let text = String::from_utf8_lossy(&bytes);
        if has_changing_function(&text) || text.contains(ENCRYPTED_PREFIX) && has_changing_action(tree, path)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a file has such an action in the tree that helm gets. One that cannot be read
/// may have any.
fn has_changing_action(tree: &Path, path: &str) -> bool {
    match fs::read(tree.join(path)).map(Zeroizing::new) {
        Ok(bytes) => has_changing_function(&String::from_utf8_lossy(&bytes)),
        Err(_) => true,
    }
}

/// Returns whether an action of a template names such a function. Any text may be a template.
pub(crate) fn has_changing_function(text: &str) -> bool {
    let actions =
        text.split("{{").skip(1).map(|rest| rest.split_once("}}").map_or(rest, |(action, _)| action));
    actions
        .filter(|action| !action.trim_start_matches(['-', ' ']).starts_with("/*"))
        .any(|action| function_names(action).any(is_changing))
}

/// Returns the names in an action that may be those of functions: none of fields and variables.
/// A method behind a name is none of its parts: `now.Unix`.
fn function_names(action: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '$');
    let words = action.split(move |letter| !is_part(letter));
    let names = words.map(|word| word.split_once('.').map_or(word, |(name, _)| name));
    names.filter(|name| !name.is_empty() && !name.contains('$'))
}

fn is_changing(name: &str) -> bool {
    let is_family = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_uppercase());
    CHANGING_FUNCTIONS.contains(&name)
        || ["rand", "gen"].iter().any(|head| name.strip_prefix(head).is_some_and(is_family))
}

/// Compares the objects of two renders of the same, and notes with each of the first which of its
/// fields differ. Fields that are created once and then left alone may differ, and so may hooks
/// that are not run.
///
/// # Errors
/// Fails with the objects that are not in both: no field of them can be left alone. Fails also
/// where the fields are too many.
pub(super) fn compare(first: &mut [ChartObject], second: &[ChartObject]) -> Result<(), Vec<Diagnostic>> {
    let mut others: HashMap<String, Vec<&ChartObject>> = HashMap::new();
    for object in second.iter().rev() {
        others.entry(name_of(&object.body)).or_default().push(object);
    }
    let (mut faults, mut left) = (Vec::new(), MAX_COMPARED_PATH_BYTES);
    for object in first.iter_mut().filter(|object| !is_never_run(&object.body)) {
        match others.get_mut(&name_of(&object.body)).and_then(Vec::pop) {
            Some(_) if is_made_once(&object.body) => {}
            Some(other) => {
                let mut found = DifferingPaths { paths: Vec::new(), left };
                if found.add_differences(&object.body, &other.body, &mut String::new()).is_err() {
                    let message = format!(
                        "{}: more fields differ from render to render than can be named",
                        name_of(&object.body)
                    );
                    return Err(vec![finding(object, message).hint(GIVE_VALUE_HINT)]);
                }
                left = found.left;
                object.generated = found.paths;
            }
            None => faults.push(unpaired_finding(object)),
        }
    }
    // Else these are the same objects under other names.
    if faults.is_empty() {
        let unpaired = others.into_values().flatten().filter(|object| !is_never_run(&object.body));
        faults.extend(unpaired.map(unpaired_finding));
        faults.sort_unstable();
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Returns the finding about an object that only one of two renders makes.
fn unpaired_finding(object: &ChartObject) -> Diagnostic {
    let message = format!("{}: another object is made at each render", name_of(&object.body));
    finding(object, message).hint("the chart must not make up names: look for a value that sets it")
}

/// Returns the findings of a chart that may not make up values.
pub(super) fn refusals(objects: &[ChartObject]) -> Vec<Diagnostic> {
    let made_up = objects.iter().filter(|object| !object.generated.is_empty());
    let refusal = |object: &ChartObject| {
        let message = format!(
            "{}: {} from render to render",
            name_of(&object.body),
            difference_text(&object.generated)
        );
        finding(object, message).hint(format!(
            "{GIVE_VALUE_HINT}; or set `generated: once`, by which rhumb makes it once and leaves it alone from then on"
        ))
    };
    made_up.map(refusal).collect()
}

fn difference_text(paths: &[String]) -> String {
    let named: Vec<String> = paths.iter().take(MAX_NAMED_FIELDS).map(|path| sanitize_text(path)).collect();
    match (paths.len() - named.len(), named.as_slice()) {
        (0, [one]) => format!("{one} differs"),
        (0, several) => format!("{} differ", several.join(", ")),
        (more, several) => format!("{} and {more} more differ", several.join(", ")),
    }
}

/// Leaves what is made up to whoever has it in the cluster: it is created once. The mark names the
/// render, so that values of two renders never meet.
///
/// # Errors
/// Fails with the fields that no annotation can name.
pub(super) fn leave_alone(objects: &mut [ChartObject], mark: &GeneratedMark) -> Result<(), Vec<Diagnostic>> {
    let mut faults = Vec::new();
    for object in objects.iter_mut().filter(|object| !object.generated.is_empty()) {
        let unnamed = object.generated.iter().find(|path| path.contains([',', '[', ']', '"', '\'', '\n']));
        if let Some(path) = unnamed {
            let message = format!("{}: {} cannot be left alone", name_of(&object.body), sanitize_text(path));
            faults.push(finding(object, message).hint("give the value yourself"));
            continue;
        }
        super::hooks::annotate(&mut object.body, GENERATED, &mark.to_string());
        object.generated.push(MARK_PATH.to_owned());
        let known = annotation_text(&object.body, IGNORE_FIELDS);
        let paths = known.split(',').map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned);
        let text = paths.chain(object.generated.iter().cloned()).collect::<Vec<_>>().join(", ");
        super::hooks::annotate(&mut object.body, IGNORE_FIELDS, &text);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Returns the mark of one render of a release. Its number is random: one that was made of the
/// values would say something of them.
pub(super) fn new_mark(options: &HelmOptions) -> GeneratedMark {
    let mut bytes = [0; RENDER_ID_BYTES];
    // The kernel gives so few bytes completely. Marks that were equal would only hold nothing back.
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    let template = options.name_template.as_deref().unwrap_or(&options.release);
    let is_word = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let name: String = template.chars().filter(is_word).take(MAX_RELEASE_NAME_CHARS).collect();
    GeneratedMark::new(&format!("{}/{name}", options.namespace), &hex_text(&bytes))
}

fn finding(object: &ChartObject, message: String) -> Diagnostic {
    let origin = object.origin.places.first().cloned();
    let origin = origin.unwrap_or_else(|| Diagnostic::file_error(object.origin.root.clone(), "", "").origin);
    Diagnostic::error(origin, "generated-value", message)
}

/// Returns an object's kind, namespace and name, as people write it. An object without a name has
/// its `generateName` there.
pub(super) fn name_of(body: &Value) -> String {
    let text = |path: &[&str]| sanitize_text(text_at(body, path));
    let namespace = text(&["metadata", "namespace"]);
    let separator = if namespace.is_empty() { "" } else { "/" };
    let name = match text(&["metadata", "name"]) {
        name if name.is_empty() => text(&["metadata", "generateName"]),
        name => name,
    };
    format!("{} {namespace}{separator}{name}", text(&["kind"]))
}

/// The JSON pointers of what differs.
struct DifferingPaths {
    paths: Vec<String>,
    /// The bytes that may still be added.
    left: usize,
}

/// More differs than may be named.
struct TooManyPaths;

impl DifferingPaths {
    /// Collects the pointers of what differs. A list of another length differs as a whole.
    fn add_differences(&mut self, a: &Value, b: &Value, at: &mut String) -> Result<(), TooManyPaths> {
        let length = at.len();
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                let added = b.iter().filter(|(key, _)| !a.contains_key(*key));
                for (key, value) in a.iter().chain(added) {
                    at.push('/');
                    at.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    match b.get(key) {
                        Some(other) if a.contains_key(key) => self.add_differences(value, other, at)?,
                        _ => self.add(at)?,
                    }
                    at.truncate(length);
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for ((a, b), number) in a.iter().zip(b).zip(0..) {
                    let number: usize = number;
                    at.push('/');
                    at.push_str(&number.to_string());
                    self.add_differences(a, b, at)?;
                    at.truncate(length);
                }
            }
            (a, b) if a == b => {}
            _ => self.add(at)?,
        }
        Ok(())
    }

    fn add(&mut self, path: &str) -> Result<(), TooManyPaths> {
        self.left = self.left.checked_sub(path.len()).ok_or(TooManyPaths)?;
        self.paths.push(path.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::helm::{ChartLimits, find_closure};
    use crate::input::origin::ObjectOrigin;

    fn object(body: Value) -> ChartObject {
        let origin = ObjectOrigin { root: "web".into(), renderer: "helm".into(), places: Vec::new() };
        ChartObject { body, origin, generated: Vec::new(), is_definition: false }
    }

    // `tpl` renders values, and these may be encrypted.
    #[test]
    fn functions_that_make_up_values_are_found_in_encrypted_values_too() {
        let check = |values: &str, opened: Option<&str>, expected: bool| {
            let tree = MemoryTree::new()
                .file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
                .file("web/values.yaml", values);
            let options = HelmOptions { release: "web".into(), ..HelmOptions::default() };
            let chart = find_closure(&tree, "web", "", &options, ChartLimits::default()).unwrap();
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("web")).unwrap();
            if let Some(opened) = opened {
                fs::write(folder.path().join("web/values.yaml"), opened).unwrap();
            }
            let found = may_generate(&chart, &tree, folder.path()).unwrap();
            assert_eq!(found, expected, "{values} {opened:?}");
        };
        let sealed = "a: ENC[AES256_GCM,data:x,type:str]\n";
        check(sealed, Some("a: '{{ randAlpha 8 }}'\n"), true);
        check(sealed, Some("a: '{{ .Release.Name }}'\n"), false);
        check(sealed, None, true);
        check("a: '{{ uuidv4 }}'\n", None, true);
        check("a: b\n", None, false);
    }

    #[test]
    fn functions_that_make_up_values_are_found_where_they_are_called() {
        for text in [
            "{{ randAlphaNum 10 }}",
            "a {{- now | date \"2006\" }}",
            "{{ $ca := genCA \"a\" 1 }}",
            "{{ (uuidv4) }}",
            "{{ .Values.a | default (htpasswd \"a\" \"b\") }}",
            "{{/* x */}}{{ bcrypt .Values.a }}",
            "{{now}}",
            "{{ now.Unix }}",
            "{{ (now.UTC).Year }}",
            "{{ dateInZone \"2006\" \"\" \"UTC\" }}{{/* x */}}",
            "{{ date_in_zone \"2006\" .Values.a \"UTC\" }}",
            "{{ toDate \"2006\" \"2001\" | durationRound }}",
            "{{ keys .Values.a | join \",\" }}",
            "{{ range values .Values.a }}{{ . }}{{ end }}",
        ] {
            assert!(has_changing_function(text), "{text}");
        }
        for text in [
            "randAlphaNum",
            "{{/* randAlphaNum 10 */}}",
            "{{- /* now */ -}}",
            "{{ .Values.now }}",
            "{{ $now }}",
            "{{ random }}",
            "{{ generate }}",
            "{{ genome }}",
            "",
            "{{ .Values.genCA.now }}",
            "{{ .now.Unix }}{{ $now.Unix }}{{ $.Values.keys.now }}{{ (.a).now.keys }}",
            "{{ known.now }}",
        ] {
            assert!(!has_changing_function(text), "{text}");
        }
        assert!(CHANGING_FUNCTIONS.is_sorted());
    }

    #[test]
    fn what_differs_is_named_by_its_path() {
        let check = |a: Value, b: Value, expected: &[&str]| {
            let mut found = DifferingPaths { paths: Vec::new(), left: MAX_COMPARED_PATH_BYTES };
            assert!(found.add_differences(&a, &b, &mut String::new()).is_ok());
            assert_eq!(found.paths, expected);
        };
        check(json!({"a": 1, "b": [1, {"c": 2}]}), json!({"a": 1, "b": [1, {"c": 2}]}), &[]);
        check(
            json!({"a": {"b/c~d": 1}, "e": [1, {"f": 2}]}),
            json!({"a": {"b/c~d": 2}, "e": [1, {"f": 3}]}),
            &["/a/b~1c~0d", "/e/1/f"],
        );
        check(json!({"a": [1], "b": 1}), json!({"a": [1, 2], "c": 1}), &["/a", "/b", "/c"]);
        check(json!({"a": {"b": 1}}), json!({"a": 1}), &["/a"]);
    }

    #[test]
    fn more_fields_that_differ_than_can_be_named_refuse_their_object() {
        let long = "k".repeat(1_000);
        let made = |text: &str, leaves: usize| {
            let mut value: Value = (0..leaves).map(|leaf| (leaf.to_string(), json!(text))).collect();
            for _ in 0..20 {
                value = json!({ long.as_str(): value });
            }
            object(json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": value}))
        };
        let paths = |leaves: usize| {
            let mut first = [made("1", leaves)];
            compare(&mut first, &[made("2", leaves)]).map(|()| first[0].generated.len())
        };
        assert_eq!(paths(10), Ok(10));
        let message = "ConfigMap a: more fields differ from render to render than can be named";
        assert_eq!(paths(1_000).unwrap_err()[0].message, message);
    }

    #[test]
    fn an_object_that_only_one_render_makes_is_refused_whichever_it_is() {
        let map = |name: &str, hook: &str| {
            let annotations = if hook.is_empty() { json!({}) } else { json!({"helm.sh/hook": hook}) };
            object(json!({"kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}}))
        };
        let check = |first: &[ChartObject], second: &[ChartObject], expected: &[&str]| {
            let found = compare(&mut first.to_vec(), second).err().unwrap_or_default();
            let found: Vec<_> = found.iter().map(|found| found.message.as_str()).collect();
            assert_eq!(found, expected);
        };
        let (a, b, never_run) = (map("a", ""), map("b", ""), map("c", "pre-delete"));
        check(&[a.clone(), b.clone()], &[b.clone(), a.clone()], &[]);
        let only_b = ["ConfigMap b: another object is made at each render"];
        let only_a = std::slice::from_ref(&a);
        check(&[a.clone(), b.clone()], only_a, &only_b);
        check(only_a, &[a.clone(), b], &only_b);
        check(only_a, &[a.clone(), never_run], &[]);
    }

    #[test]
    fn what_is_made_up_is_refused_or_left_alone() {
        let secret = |data: Value| {
            object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "a", "namespace": "prod", "annotations": {"rhumb.dev/ignore-fields": "/data/c"}}, "data": data}))
        };
        let mut first = [secret(json!({"a": "canary-1", "b": "x"}))];
        compare(&mut first, &[secret(json!({"a": "canary-2", "b": "x"}))]).unwrap();
        assert_eq!(first[0].generated, ["/data/a"]);
        let refused = refusals(&first);
        assert_eq!(refused[0].message, "Secret prod/a: /data/a differs from render to render");
        assert!(refused[0].hint.as_ref().unwrap().contains("existingSecret"));
        assert!(!format!("{refused:?}").contains("canary"));
        let mark = GeneratedMark::new("prod/web", "1");
        leave_alone(&mut first, &mark).unwrap();
        let ignored = "/data/c, /data/a, /metadata/annotations/rhumb.dev~1generated";
        assert_eq!(annotation_text(&first[0].body, IGNORE_FIELDS), ignored);
        assert_eq!(annotation_text(&first[0].body, GENERATED), "prod/web 1");
        let mut first = [secret(json!({"a,b": "1"}))];
        compare(&mut first, &[secret(json!({"a,b": "2"}))]).unwrap();
        assert_eq!(
            leave_alone(&mut first, &mark).unwrap_err()[0].message,
            "Secret prod/a: /data/a,b cannot be left alone"
        );
    }

    #[test]
    fn a_name_that_is_made_up_cannot_be_left_alone() {
        let job = |name: &str| object(json!({"kind": "Job", "metadata": {"name": name}}));
        let faults = compare(&mut [job("a-1")], &[job("a-2")]).unwrap_err();
        assert_eq!(faults[0].message, "Job a-1: another object is made at each render");
        let mut twice = [job("a"), job("a")];
        assert!(compare(&mut twice, &[job("a"), job("a")]).is_ok());
    }

    #[test]
    fn a_hook_that_is_not_run_may_have_any_name() {
        let pod = |name: &str, hook: &str| {
            let annotations = json!({"helm.sh/hook": hook});
            object(json!({"kind": "Pod", "metadata": {"name": name, "annotations": annotations}}))
        };
        for hook in ["test", "pre-delete", "test-success, post-rollback"] {
            assert_eq!(compare(&mut [pod("a-1", hook)], &[pod("a-2", hook)]), Ok(()), "{hook}");
        }
        assert!(compare(&mut [pod("a-1", "post-install")], &[pod("a-2", "post-install")]).is_err());
    }

    #[test]
    fn what_only_an_installation_makes_may_be_made_up() {
        let hook = |value: &str| {
            object(json!({"kind": "Secret", "data": {"a": value}, "metadata": {
            "name": "a", "annotations": {"helm.sh/hook": "pre-install"}}}))
        };
        let mut first = [hook("1")];
        compare(&mut first, &[hook("2")]).unwrap();
        assert_eq!(first[0].generated, [""; 0]);
    }
}
