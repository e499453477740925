//! The words of kustomize that may quote a value of a plain Secret.
//!
//! kustomize quotes values in its errors, such as the one that a replacement cannot divide. Its
//! words reach logs and Events, which more people may read than Secrets.
//!
//! **Invariant:** a doubt is a yes. A person who renders the folder by hand reads all words.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::file::fold_case;

/// The mark of a file with values of Secrets.
const SECRET_WORD: &str = "Secret";
/// The mark of a file with a generator of Secrets, a field or a plugin, with letters of one case.
const GENERATOR_WORD: &str = "secretgenerator";

/// The shortest part of a value that is looked for within the words, in bytes. A shorter one must
/// be a whole word, as `a` is a part of nearly all.
const MIN_PART_BYTES: usize = 6;

/// The shortest word that counts as a value, in bytes.
const MIN_WORD_BYTES: usize = 3;

/// Fields whose values are no secrets, and stand in each error.
const OPEN_FIELDS: [&str; 5] = ["apiVersion:", "kind:", "name:", "namespace:", "type:"];

/// Returns whether words of kustomize may quote what one of its files says of a Secret.
///
/// With a generator of Secrets, any file that is no YAML may be its source. In base64, as it writes
/// what it reads, all files count.
pub(in crate::input) fn can_quote_secret(output: &str, files: &[(&str, &str)]) -> bool {
    let is_generator = |text: &str| fold_case(text).contains(GENERATOR_WORD);
    let has_generator = files.iter().any(|(_, text)| is_generator(text));
    let mut values = HashSet::new();
    for (path, text) in files {
        let is_yaml = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
        let is_kustomization = path.rsplit('/').next() == Some("Kustomization");
        if text.contains(SECRET_WORD) || is_generator(text) {
            values.extend(value_parts(text).into_iter().flat_map(words));
        } else if has_generator && !is_yaml && !is_kustomization {
            values.extend(text.lines().flat_map(words));
        }
    }
    let paths: HashSet<&str> = files.iter().flat_map(|(path, _)| words(path)).collect();
    let has_value = |text: &str| {
        words(text).filter(|word| !paths.contains(word)).any(|word| {
            let is_part = |value: &&str| word.len() >= MIN_PART_BYTES && value.contains(word);
            let has_part = |value: &&str| value.len() >= MIN_PART_BYTES && word.contains(*value);
            values.contains(word) || values.iter().any(|value| is_part(value) || has_part(value))
        })
    };
    let is_content = |text: &str| {
        has_generator && text.len() >= MIN_WORD_BYTES && files.iter().any(|(_, file)| file.contains(text))
    };
    has_value(output) || decoded_parts(output).any(|part| has_value(&part) || is_content(&part))
}

/// Returns the texts that parts of a text have in base64. Of a longer one it is the beginning, as
/// kustomize writes it in several lines.
fn decoded_parts(text: &str) -> impl Iterator<Item = String> {
    let is_border = |letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/'));
    text.split(is_border).filter_map(|part| {
        let begin = part.get(..part.len() / 4 * 4).unwrap_or_default();
        let bytes = STANDARD_NO_PAD.decode(part).or_else(|_| STANDARD_NO_PAD.decode(begin)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // A letter may be cut, and some files end without a line break.
        let is_edge = |letter: char| letter.is_whitespace() || letter == char::REPLACEMENT_CHARACTER;
        Some(text.trim_matches(is_edge).to_owned())
    })
}

/// The lines below `data` or `stringData`: how far that key is indented, and the keys below it.
struct DataLines {
    indent: usize,
    entries: Option<usize>,
}

/// Returns the parts of a text of YAML that may be values.
fn value_parts(text: &str) -> Vec<&str> {
    let (mut parts, mut data) = (Vec::new(), None::<DataLines>);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (content, indent) = (line.trim(), line.len() - line.trim_start().len());
        let is_deep = |block: &DataLines| block.entries.is_some_and(|entries| indent > entries);
        // A comment ends no block, however little it is indented. A deeper one is text of a value.
        if content.starts_with('#') && !data.as_ref().is_some_and(is_deep) {
            continue;
        }
        data = data.filter(|block| indent > block.indent);
        let Some(block) = &mut data else {
            parts.extend(value_part(line));
            let entry = content.trim_start_matches("- ").trim_start();
            if has_data(entry) {
                data = Some(DataLines { indent: indent + content.len() - entry.len(), entries: None });
            }
            continue;
        };
        // No key there is one of the object, and what is deeper is all of it value.
        if *block.entries.get_or_insert(indent) == indent {
            let value = content.split_once(": ").map(|(_, value)| value);
            // JSON needs no blank there.
            parts.extend(value.or_else(|| (!content.ends_with(':')).then_some(content)));
        } else {
            parts.push(content);
        }
    }
    parts
}

/// Returns whether a line begins with the key of data. An anchor or a comment may follow it.
fn has_data(entry: &str) -> bool {
    let key = entry.split_whitespace().next().and_then(|word| word.strip_suffix(':'));
    key.is_some_and(|key| matches!(key.trim_matches(['"', '\'']), "data" | "stringData"))
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

    #[track_caller]
    fn check(output: &str, files: &[(&str, &str)], expected: bool) {
        assert_eq!(can_quote_secret(output, files), expected, "{output}");
    }

    #[test]
    fn words_that_quote_a_value_of_a_secret_are_found() {
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
        // The same key is a name beside the data, and a value in it.
        let data = "kind: Secret\nmetadata:\n  name: db-k7\nstringData:\n  name: canary-k7\n  file: |\n    # canary-k8\n\n    canary-k9: x\ntype: Opaque\n";
        for value in ["canary-k7", "canary-k8", "canary-k9"] {
            check(&format!("{index}{value}"), &[("secret.yaml", data)], true);
        }
        for name in ["db-k7", "Opaque", "file"] {
            check(&format!("{index}{name}"), &[("secret.yaml", data)], false);
        }
        // Neither a comment nor an anchor hides the data.
        for data in ["stringData:\n# open\n", "stringData: # open\n", "stringData: &all\n", "- stringData:\n"]
        {
            let secret = format!("kind: Secret\n{data}    name: canary-k7\n");
            check(&format!("{index}canary-k7"), &[("secret.yaml", &secret)], true);
        }
        let json = "{\n  \"kind\": \"Secret\",\n  \"data\": {\n    \"a\":\"canary-k7\",\n    \"name\": \"canary-k8\"\n  }\n}\n";
        check(&format!("{index}canary-k7"), &[("secret.json", json)], true);
        check(&format!("{index}canary-k8"), &[("secret.json", json)], true);
        let flow = "{kind: Secret, metadata: {name: db}, stringData: {a: canary}}";
        check("for value canary", &[("all.json", flow)], true);
    }

    #[test]
    fn what_a_generator_of_secrets_reads_is_found() {
        // A generator may be a plugin, and a field is one in any case of its letters.
        for generator in [
            "apiVersion: builtin\nkind: SecretGenerator\nenvs: [db.env]\n",
            "secretgenerator: [{envs: [db.env]}]\n",
        ] {
            let files = [("generator.yaml", generator), ("db.env", "TOKEN=canary-k5\n")];
            check("invalid line TOKEN=canary-k5", &files, true);
        }
        // It writes what it reads in base64, in lines of 70 letters.
        let generator = "secretGenerator:\n- name: db\n  literals:\n  - password=canary-k4\n  envs: [db.env]\n  files:\n  - app.yaml\n  - key.pem\n";
        let pem = "-----BEGIN KEY-----\nA0b1C2d3E4f5G6h7I8j9K0l1M2n3O4p5Q6r7S8t9U0v1W2x3Y4z5\n";
        let files = [
            ("kustomization.yaml", generator),
            ("db.env", "TOKEN=canary-k5\n"),
            ("app.yaml", "mode: calm-k6\n"),
            ("key.pem", pem),
        ];
        check("got ScalarNode: node contents: Y2FuYXJ5LWs0", &files, true);
        check("\"data\":map[string]interface {}{\"a\":\"Y2FuYXJ5LWs1\"}", &files, true);
        check("map[string]interface {}{\"app.yaml\":\"bW9kZTogY2FsbS1rNgo=\"}", &files, true);
        check(
            "map[string]interface {}{\"key.pem\":\"LS0tLS1CRUdJTiBLRVktLS0tLQpBMGIxQzJkM0U0ZjVHNmg3SThqOUswbDFNMm4zTzRwNV\\nE2cjdTOHQ5VTB2MVcyeDNZNHo1Cg==\"}",
            &files,
            true,
        );
        check("json: unsupported type: map[interface {}]interface {}", &files, false);
        check(
            "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/a.[noNs]",
            &files,
            false,
        );
    }
}
