//! The words of kustomize that may quote a value of a plain Secret.
//!
//! kustomize quotes values in its errors, such as the one that a replacement cannot divide. Its
//! words reach logs and Events, which more people may read than Secrets.
//!
//! **Invariant:** a doubt is a yes. A person who renders the folder by hand reads all words.

use std::collections::HashSet;

/// The marks of a file with values of Secrets: the kind, and the generator.
const SECRET_WORDS: [&str; 2] = ["Secret", "secretGenerator"];

/// The shortest part of a value that is looked for within the words, in bytes. A shorter one must
/// be a whole word, as `a` is a part of nearly all.
const MIN_PART_BYTES: usize = 6;

/// The shortest word that counts as a value, in bytes.
const MIN_WORD_BYTES: usize = 3;

/// Fields whose values are no secrets, and stand in each error.
const OPEN_FIELDS: [&str; 5] = ["apiVersion:", "kind:", "name:", "namespace:", "type:"];

/// Returns whether words of kustomize may quote what one of its files says of a Secret.
///
/// With a generator of Secrets, any file that is no YAML may be its source.
pub(in crate::input) fn can_quote_secret(output: &str, files: &[(&str, &str)]) -> bool {
    let has_generator = files.iter().any(|(_, text)| text.contains(SECRET_WORDS[1]));
    let mut values = HashSet::new();
    for (path, text) in files {
        let is_yaml = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
        let is_kustomization = path.rsplit('/').next() == Some("Kustomization");
        if SECRET_WORDS.iter().any(|mark| text.contains(mark)) {
            values.extend(text.lines().filter_map(value_part).flat_map(words));
        } else if has_generator && !is_yaml && !is_kustomization {
            values.extend(text.lines().flat_map(words));
        }
    }
    let paths: HashSet<&str> = files.iter().flat_map(|(path, _)| words(path)).collect();
    words(output).filter(|word| !paths.contains(word)).any(|word| {
        let is_part = |value: &&str| word.len() >= MIN_PART_BYTES && value.contains(word);
        let has_part = |value: &&str| value.len() >= MIN_PART_BYTES && word.contains(*value);
        values.contains(word) || values.iter().any(|value| is_part(value) || has_part(value))
    })
}

/// Returns the part of a line of YAML that may be a value; none of a comment, and of a field that
/// only names something.
fn value_part(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("- ").trim_start();
    let is_open = OPEN_FIELDS.iter().any(|field| line.starts_with(field)) && !line.contains(['{', ',']);
    if line.starts_with('#') || is_open {
        return None;
    }
    Some(line.split_once(": ").map_or(line, |(_, value)| value)).filter(|value| !value.ends_with(':'))
}

/// Returns the words of a text. Quotes, brackets and signs between keys and values are borders.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_border = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+'));
    text.split(is_border)
        .map(|word| word.trim_matches(['.', '-']))
        .filter(|word| word.len() >= MIN_WORD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_quote_a_value_of_a_secret_are_found() {
        #[track_caller]
        fn check(output: &str, files: &[(&str, &str)], expected: bool) {
            assert_eq!(can_quote_secret(output, files), expected, "{output}");
        }
        let secret =
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  url: canary.k11:5432\n";
        let plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {mode: calm}\n";
        let files = [("secret.yaml", secret), ("env.yaml", plain)];
        let index = "options.index 9 is out of bounds for value ";
        check(&format!("{index}canary.k11:5432"), &files, true);
        check(&format!("{index}\"canary.k11\""), &files, true);
        check(&format!("{index}[canary.k1]"), &files, true);
        check(&format!("{index}calm"), &files, false);
        // Places and names are none.
        check("no resource matches: Secret.v1.[noGrp]/db.[noNs] in secret.yaml", &files, false);
        check("accumulating resources from 'lost.yaml': no such file or directory", &files, false);
        check("", &files, false);
        let generator =
            "secretGenerator:\n- name: db\n  literals:\n  - password=canary-k4\n  envs: [db.env]\n";
        let files = [("kustomization.yaml", generator), ("db.env", "TOKEN=canary-k5\n"), ("env.yaml", plain)];
        check("invalid literal source canary-k4, expected key=value", &files, true);
        check("invalid line TOKEN=canary-k5", &files, true);
        check("env source file: [db.env] not found", &files, false);
        // A file beside it is a source of nobody.
        check("invalid line TOKEN=canary-k5", &files[1..], false);
        let flow = "{kind: Secret, metadata: {name: db}, stringData: {a: canary}}";
        check("for value canary", &[("all.json", flow)], true);
    }
}
