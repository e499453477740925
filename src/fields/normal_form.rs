//! The normal forms of values: what the server spells otherwise than the manifest that it was sent.
//!
//! Two values of one form mean the same to the server. Where that is not known for sure, they have
//! two forms. A form too many costs a dry run, and one too few hides a change. So each equality is
//! one of the Go types of Kubernetes: a plain `bool` that is false is not there, but a `*bool` is.
//!
//! **Invariant:** a name that a user chose, such as the key of a label, is never taken for a field.

use serde_json::{Number, Value};

use super::entry::{ChildKey, EntryNode};
use super::{FieldPath, PathElement, parse_quantity};
use crate::object::{GroupKind, Gvk, annotations, canonical_json, text_at};

/// Maps from names that users choose to texts. Nothing in them has another spelling.
const TEXT_MAPS: [&str; 12] = [
    "annotations",
    "attributes",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "parameters",
    "selector",
    "stringData",
    "volumeAttributes",
];

/// The text maps that say the same when they are empty as when they are absent. An empty `selector`
/// may mean all pods.
const EMPTY_MAPS: [&str; 7] =
    ["annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "stringData"];

/// Maps whose values are quantities, in the kinds of Kubernetes itself.
const QUANTITY_MAPS: [&str; 6] = ["allocatable", "capacity", "hard", "limits", "podFixed", "requests"];

/// Fields that are quantities, in the kinds of Kubernetes itself.
const QUANTITY_FIELDS: [&str; 4] = ["averageValue", "divisor", "sizeLimit", "storage"];

/// Fields of the type `bool` with `omitempty`: false and absent are one value to the server. A
/// `*bool`, such as `hostUsers`, has a default of its own.
const FALSE_OR_ABSENT: [&str; 13] = [
    "globalDefault",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "insecureSkipTLSVerify",
    "paused",
    "preserveUnknownFields",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "unschedulable",
];

/// Numbers with `omitempty` that are no pointers.
const ZERO_OR_ABSENT: [&str; 3] = ["hostPort", "initialDelaySeconds", "minReadySeconds"];

/// Texts with `omitempty` that are no pointers. A `*string`, such as `storageClassName`, says
/// another thing by an empty text than by none.
const EMPTY_OR_ABSENT: [&str; 15] = [
    "apiGroup",
    "description",
    "effect",
    "fsType",
    "host",
    "hostname",
    "key",
    "namespace",
    "operator",
    "priorityClassName",
    "secretName",
    "serviceAccount",
    "serviceAccountName",
    "subPath",
    "value",
];

/// Texts that the server fills in where an atomic list or map leaves them out.
const DEFAULT_TEXTS: [(&str, &str); 6] = [
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("apiVersion", "v1"),
    ("kind", "PersistentVolumeClaim"),
    ("protocol", "TCP"),
    ("scope", "*"),
    ("volumeMode", "Filesystem"),
];

/// The groups of the kinds of Kubernetes itself, whose normal forms are known.
const BUILTIN_GROUPS: [&str; 16] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The normal forms of values that are known of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSchema {
    /// A kind of Kubernetes itself: quantities, some zero values, a few defaults.
    BuiltIn,
    /// As those, and the data are base64, in which the server drops line breaks.
    Secret,
    /// Any other: nothing but the spelling of numbers.
    Custom,
    /// Two answers of the server, of whatever kind: it has spelled both.
    ServerOutput,
}

impl ValueSchema {
    /// Returns the schema of a kind.
    pub fn of(kind: &GroupKind) -> Self {
        match &*kind.group {
            "" if &*kind.kind == "Secret" => Self::Secret,
            group if BUILTIN_GROUPS.contains(&group) => Self::BuiltIn,
            _ => Self::Custom,
        }
    }

    /// Returns the schema of an object that names its kind.
    pub(super) fn of_object(object: &Value) -> Self {
        let (version, kind) = (text_at(object, &["apiVersion"]), text_at(object, &["kind"]));
        Self::of(&Gvk::from_api_version(version, kind).group_kind())
    }

    /// Returns whether the Go types of the kind are known.
    fn is_typed(self) -> bool {
        matches!(self, Self::BuiltIn | Self::Secret)
    }
}

/// The position of a walk: by name and depth alone, on which normal forms depend.
#[derive(Clone, Copy)]
pub(super) struct ValuePosition<'a> {
    /// The field of the object itself that it lies in.
    top: &'a str,
    parent: &'a str,
    field: &'a str,
    pub(super) depth: usize,
    text: TextScope,
}

/// Indicates whether names and values of a position are a user's own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextScope {
    /// They are fields of Kubernetes.
    Fields,
    /// Texts under names that a user chose, or JSON that nobody but the user reads.
    Free,
}

impl<'a> ValuePosition<'a> {
    pub(super) const ROOT: Self = Self { top: "", parent: "", field: "", depth: 0, text: TextScope::Fields };

    pub(super) fn child(self, name: &'a str) -> Self {
        let top = if self.depth == 0 { name } else { self.top };
        // A label selector is a `selector` too: its two fields are none that have another spelling.
        let is_free = TEXT_MAPS.contains(&self.field) || self.field == "openAPIV3Schema";
        let text = if is_free { TextScope::Free } else { self.text };
        Self { top, parent: self.field, field: name, depth: self.depth + 1, text }
    }

    /// Returns the place of an item of a list, which has the name of the list.
    pub(super) fn item(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    pub(super) fn is_release_annotation(self) -> bool {
        self.depth == 3
            && self.top == "metadata"
            && self.parent == "annotations"
            && self.field == annotations::RELEASE
    }

    fn is_datum(self) -> bool {
        self.depth == 2 && self.top == "data"
    }

    /// Returns whether it is a field of the kind, of which another spelling may be known.
    fn is_known(self, schema: ValueSchema) -> bool {
        schema.is_typed() && self.text == TextScope::Fields
    }

    fn is_quantity(self, schema: ValueSchema) -> bool {
        self.is_known(schema)
            && (QUANTITY_MAPS.contains(&self.parent) || QUANTITY_FIELDS.contains(&self.field))
    }
}

/// Writes the shape of a value that an entry says has something below it. A scalar counts with all
/// of its value, as nothing below it would.
///
/// Of a kind with a schema of its own the whole list counts. It may be atomic to the server, and
/// keep an entry that names items, where somebody wrote one. An added item or field, or another
/// order, then shows nowhere else.
pub(super) fn write_shape(
    out: &mut Vec<u8>,
    value: Option<&Value>,
    node: EntryNode<'_>,
    schema: ValueSchema,
) {
    match value {
        None | Some(Value::Null) => out.push(b'-'),
        Some(Value::Object(_)) => out.push(b'o'),
        Some(Value::Array(items)) => {
            out.push(b'a');
            let names_items =
                node.children().any(|child| matches!(child.child(), ChildKey::Item(_) | ChildKey::Value(_)));
            if !names_items {
                out.extend_from_slice(&items.len().to_be_bytes());
            } else if !schema.is_typed() {
                for item in items {
                    write_value(out, item, ValuePosition::ROOT, schema);
                }
            }
        }
        Some(scalar) => {
            out.push(b's');
            write_value(out, scalar, ValuePosition::ROOT, ValueSchema::ServerOutput);
        }
    }
}

/// Writes the normal form of a value, which shows where it ends.
pub(super) fn write_leaf(
    out: &mut Vec<u8>,
    value: Option<&Value>,
    position: ValuePosition<'_>,
    schema: ValueSchema,
) {
    match value {
        Some(Value::String(text)) if schema == ValueSchema::Secret && position.is_datum() => {
            write_text(out, &text.replace(['\n', '\r'], ""));
        }
        Some(value) if !is_left_out(value, position, schema) => write_value(out, value, position, schema),
        _ => out.push(b'0'),
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value, position: ValuePosition<'_>, schema: ValueSchema) {
    match value {
        Value::Null => out.push(b'n'),
        Value::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Value::Number(number) if position.is_quantity(schema) => {
            write_amount(out, number.as_f64().unwrap_or_default());
        }
        Value::Number(number) => write_number(out, number),
        Value::String(text) => match parse_quantity(text).filter(|_| position.is_quantity(schema)) {
            Some(amount) => write_amount(out, amount),
            None => write_text(out, text),
        },
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_value(out, item, position.item(), schema);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (key, value) in map {
                let position = position.child(key);
                if !is_left_out(value, position, schema) && !is_default(value, position, schema) {
                    write_text(out, key);
                    write_value(out, value, position, schema);
                }
            }
            out.push(b'}');
        }
    }
}

/// Writes a text with its length before it, so that no text looks like two.
fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(&text.len().to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    out.push(b'#');
    // A whole number may be spelled as a float.
    out.extend_from_slice(canonical_json(&Value::Number(number.clone())).as_bytes());
    out.push(b';');
}

/// Writes an amount with twelve digits, as 300 × 1e-3 and 0.3 are different floats.
fn write_amount(out: &mut Vec<u8>, amount: f64) {
    out.extend_from_slice(format!("~{amount:.11e};").as_bytes());
}

/// Returns whether the server writes the same for this value as for none. That holds for nulls, and
/// for empty maps and lists of the kinds of Kubernetes itself. It also holds for the zero values of
/// fields that are no pointers.
///
/// An empty struct is none of them: `podSelector: {}` means all pods.
fn is_left_out(value: &Value, position: ValuePosition<'_>, schema: ValueSchema) -> bool {
    let is_among = |names: &[&str]| position.is_known(schema) && names.contains(&position.field);
    match value {
        Value::Null => position.is_known(schema),
        Value::Bool(value) => !value && is_among(&FALSE_OR_ABSENT),
        Value::Number(number) => number.as_f64() == Some(0.0) && is_among(&ZERO_OR_ABSENT),
        Value::String(text) => text.is_empty() && is_among(&EMPTY_OR_ABSENT),
        Value::Array(items) => items.is_empty() && position.is_known(schema),
        Value::Object(map) => map.is_empty() && (is_among(&EMPTY_MAPS) || is_among(&QUANTITY_MAPS)),
    }
}

/// Returns whether the server writes the same for an empty list or map at a path as for none. The
/// metadata of all kinds has the same types.
pub(super) fn is_left_out_at(value: &Value, path: &FieldPath, schema: ValueSchema) -> bool {
    let mut position = ValuePosition::ROOT;
    for element in path.elements() {
        position = match element {
            PathElement::Key(name) => position.child(name),
            _ => position.item(),
        };
    }
    let schema = if position.top == "metadata" { ValueSchema::BuiltIn } else { schema };
    is_left_out(value, position, schema)
}

/// Returns whether the server writes this value into the items of an atomic list that leave it out.
fn is_default(value: &Value, position: ValuePosition<'_>, schema: ValueSchema) -> bool {
    let field = position.field;
    position.is_known(schema)
        && match value {
            Value::String(text) => {
                DEFAULT_TEXTS.contains(&(field, text)) || field == "divisor" && text == "0"
            }
            Value::Number(number) => field == "expirationSeconds" && number.as_i64() == Some(3600),
            Value::Object(map) => {
                field == "status"
                    && map.len() == 1
                    && map.get("phase").is_some_and(|phase| phase == "Pending")
            }
            _ => false,
        }
}
