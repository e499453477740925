//! The files in packages are as the program would write them now.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
    };
    entries.map(named).collect()
}

#[test]
fn man_pages_completions_and_reference_are_those_of_the_program() {
    for (what, folder) in
        [("man", "dist/man"), ("completions", "dist/completions"), ("reference", "docs/reference")]
    {
        let made = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        assert!(command.args(["generate", what]).arg(made.path()).status().unwrap().success());
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let (made, committed) = (files(made.path()), files(&committed));
        let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&made), names(&committed), "`rhumb generate {what} {folder}` writes them");
        for (name, text) in made {
            assert!(
                text == committed[&name],
                "{folder}/{name}: `rhumb generate {what} {folder}` writes it anew"
            );
        }
    }
}

#[test]
fn each_command_has_a_man_page() {
    let pages = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/man"));
    let main = &pages["rhumb.8"];
    for heading in ["EXIT STATUS", "SIGNALS", "FILES", "ENVIRONMENT", "SECURITY"] {
        assert!(main.contains(&format!(".SH \"{heading}\"")), "{heading}");
    }
    for page in ["rhumb-run.8", "rhumb-rollout-status.8", "rhumb.yaml.5"] {
        assert!(pages.contains_key(page), "{page}");
    }
    assert!(pages.keys().all(|name| !name.contains("generate")), "{:?}", pages.keys());
}

// Roots render where the package or the image is, and nothing else has to be found.
#[test]
fn the_package_suggests_the_programs_that_render_and_the_image_has_them() {
    let line = |file: &str, begin: &str| {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let found = text.lines().rfind(|line| line.starts_with(begin)).map(str::to_owned);
        found.unwrap_or_else(|| panic!("{file} has no line {begin}"))
    };
    let package = line("Cargo.toml", "suggests = ");
    let image = line("examples/in-cluster/Dockerfile", "RUN apk add ");
    for program in ["kustomize", "helm"] {
        assert!(package.contains(program), "{package}");
        assert!(image.split(' ').any(|word| word == program), "{image}");
    }
}

// A key of that Secret is a file of that folder, where an identity of age is looked for.
#[test]
fn the_pod_has_its_credentials_in_the_secret_that_the_book_names() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster/deployment.yaml");
    let text = fs::read_to_string(file).unwrap();
    let between = |begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
        rest.split_once(end).map(|(found, _)| found.to_owned()).unwrap()
    };
    let folder = between("{name: CREDENTIALS_DIRECTORY, value: ", "}");
    let mount = format!(", mountPath: {folder},");
    let line = text.lines().find(|line| line.contains(&mount)).unwrap_or_else(|| panic!("no {mount}"));
    let volume = line.split_once("{name: ").and_then(|(_, rest)| rest.split_once(',')).unwrap().0;
    let volume = between(&format!("- name: {volume}\n"), "\n");
    assert!(volume.contains("secret: {secretName: rhumb-git,"), "{volume}");
}
