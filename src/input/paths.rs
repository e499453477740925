//! Paths inside a revision: names with `/` between them, no dots, the whole being the empty path.

/// Returns the path that a reference means as seen from a folder, by its text alone. None where it
/// leaves the revision, or is absolute.
pub(super) fn join(folder: &str, reference: &str) -> Option<String> {
    if reference.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in reference.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Returns the path of a name in a folder.
pub(super) fn append(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns the folder that holds a path; the empty one for a name at the top.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns whether a folder is another one or holds it.
pub(super) fn holds(folder: &str, other: &str) -> bool {
    folder.is_empty()
        || other.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns a path of a tree as it is seen from a folder in it; `.` for the folder itself.
pub(super) fn relative_to(folder: &str, path: &str) -> String {
    let parts =
        |text: &str| text.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (from, to) = (parts(folder), parts(path));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(common).map(|_| "..");
    let seen: Vec<&str> = up.chain(to.iter().skip(common).map(String::as_str)).collect();
    if seen.is_empty() { ".".to_owned() } else { seen.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_a_folder() {
        for (folder, path, expected) in [
            ("", "base/web.yaml", "base/web.yaml"),
            ("overlays/prod", "overlays/prod/patch.yaml", "patch.yaml"),
            ("overlays/prod", "base/web.yaml", "../../base/web.yaml"),
            ("overlays/prod", "overlays/production", "../production"),
            ("overlays/prod", "overlays/prod", "."),
            ("", "", "."),
        ] {
            assert_eq!(relative_to(folder, path), expected, "{path} from {folder}");
        }
    }

    #[test]
    fn a_reference_is_joined_by_its_text() {
        let check = |folder, reference, expected: Option<&str>| {
            assert_eq!(join(folder, reference).as_deref(), expected, "{folder} + {reference}");
        };
        check("apps/web", "deployment.yaml", Some("apps/web/deployment.yaml"));
        check("apps/web", "./../base//x/", Some("apps/base/x"));
        check("apps/web", "../..", Some(""));
        check("apps/web", "../../..", None);
        check("", "..", None);
        check("apps", "/etc/passwd", None);
        check("apps", "x/../../apps/y", Some("apps/y"));
    }

    #[test]
    fn a_folder_holds_what_is_below_it() {
        assert!(holds("", "a") && holds("a", "a") && holds("a", "a/b"));
        assert!(!holds("a", "ab") && !holds("a/b", "a"));
    }
}
