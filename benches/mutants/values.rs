//! The values that a function can evidently return without doing anything.

use syn::{GenericArgument, Path, PathArguments, ReturnType, Type};

/// Returns the values as code; the empty text is the value of a function that returns nothing.
pub(crate) fn values_of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec![String::new()],
        ReturnType::Type(_, kind) => values(kind),
    }
}

fn values(kind: &Type) -> Vec<String> {
    match kind {
        Type::Tuple(tuple) if tuple.elems.is_empty() => vec!["()".to_owned()],
        Type::Paren(inner) => values(&inner.elem),
        Type::Reference(reference) if reference.mutability.is_none() => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => vec!["\"\"".to_owned()],
            Type::Slice(_) => vec!["&[]".to_owned()],
            _ => Vec::new(),
        },
        Type::Path(path) if path.qself.is_none() => values_of_path(&path.path),
        _ => Vec::new(),
    }
}

fn values_of_path(path: &Path) -> Vec<String> {
    let Some(last) = path.segments.last() else { return Vec::new() };
    // The first argument of the type.
    let inner = || match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(kind)) => values(kind),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match last.ident.to_string().as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => texts(&["0", "1"]),
        "f32" | "f64" => texts(&["0.0", "1.0"]),
        "Option" => {
            let some = inner().into_iter().map(|value| format!("Some({value})"));
            std::iter::once("None".to_owned()).chain(some).collect()
        }
        "Result" => inner().into_iter().map(|value| format!("Ok({value})")).collect(),
        "Vec" | "VecDeque" | "BTreeMap" | "BTreeSet" | "HashMap" | "HashSet" | "Duration" => {
            texts(&["Default::default()"])
        }
        _ => Vec::new(),
    }
}
