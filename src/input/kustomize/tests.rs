//! Closures, refusals and the index over small revisions in memory.

mod origins;

use super::*;
use crate::input::MemoryTree;
use crate::source::FileDefect;

fn traced(tree: &MemoryTree, root: &str) -> Closure {
    find_closure(tree, root, ClosureLimits::default(), &mut ParsedFiles::default()).unwrap()
}

fn files(closure: &Closure) -> Vec<&str> {
    closure.files.paths().map(|path| &**path).collect()
}

fn refusals(closure: &Closure) -> Vec<String> {
    closure.diagnostics.iter().map(|found| format!("{} {}", found.origin, found.code)).collect()
}

#[track_caller]
fn check_files(tree: &MemoryTree, root: &str, expected: &[&str]) {
    let closure = traced(tree, root);
    assert_eq!(refusals(&closure), Vec::<String>::new());
    assert_eq!(files(&closure), expected);
}

#[track_caller]
fn check_refusals(tree: &MemoryTree, root: &str, expected: &[&str]) {
    let closure = traced(tree, root);
    assert_eq!(refusals(&closure), expected);
    assert!(!closure.is_renderable() && closure.diagnostics.iter().all(|found| found.hint.is_some()));
}

/// Returns a root that names a file or folder in each field that can.
fn every_field() -> MemoryTree {
    MemoryTree::new()
        .file(
            "app/kustomization.yaml",
            "resources: [web.yaml, ../base]\n\
             bases: [../old]\n\
             components: [../part]\n\
             configurations: [names.yaml]\n\
             crds: [crd.json]\n\
             openapi: {path: schema.json}\n\
             patches: [{path: p.yaml, target: {kind: X}}, {patch: 'kind: A'}]\n\
             patchesStrategicMerge: [s.yaml, 'kind: A']\n\
             patchesJson6902: [{path: j.yaml, target: {kind: X, name: x}}]\n\
             replacements: [{path: r.yaml}, {source: {kind: X}}]\n\
             configMapGenerator: [{name: a, files: [a.txt, k=b.txt], envs: [c.env], env: d.env}]\n\
             secretGenerator: [{name: s, files: [s.txt]}]\n\
             generators: [gen.yaml, ../gens]\n\
             transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: t}, path: t.yaml}']\n\
             validators: []\n",
        )
        .file("app/gen.yaml", "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: g}\nfiles: [g.txt]\n")
        .file("gens/kustomization.yaml", "resources: [g.yaml]")
        .file("gens/g.yaml", "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: h}\nenvs: [h.env]\n")
        .file("gens/h.env", "A=1")
        .file("base/kustomization.yml", "resources: [../shared/x.yaml]\n")
        .file("shared/x.yaml", "")
        .file("old/Kustomization", "resources: []")
        .file("part/kustomization.yaml", "kind: Component\n")
}

#[test]
fn a_closure_holds_what_each_field_names() {
    let tree = every_field();
    let names = [
        "web.yaml",
        "names.yaml",
        "crd.json",
        "schema.json",
        "p.yaml",
        "s.yaml",
        "j.yaml",
        "r.yaml",
        "a.txt",
        "b.txt",
        "c.env",
        "d.env",
        "s.txt",
        "g.txt",
        "h.env",
        "t.yaml",
        "not-named.yaml",
    ];
    let tree = names.iter().fold(tree, |tree, name| tree.file(&format!("app/{name}"), name));
    check_files(
        &tree,
        "app",
        &[
            "app/a.txt",
            "app/b.txt",
            "app/c.env",
            "app/crd.json",
            "app/d.env",
            "app/g.txt",
            "app/gen.yaml",
            "app/h.env",
            "app/j.yaml",
            "app/kustomization.yaml",
            "app/names.yaml",
            "app/p.yaml",
            "app/r.yaml",
            "app/s.txt",
            "app/s.yaml",
            "app/schema.json",
            "app/t.yaml",
            "app/web.yaml",
            "base/kustomization.yml",
            "gens/g.yaml",
            "gens/kustomization.yaml",
            "old/Kustomization",
            "part/kustomization.yaml",
            "shared/x.yaml",
        ],
    );
}

#[test]
fn keys_count_whatever_their_case() {
    let tree = MemoryTree::new()
        .file(
            "kustomization.yaml",
            "Resources: [a.yaml]\nre\u{17f}ources: [b.yaml]\nPATCHES: [{Path: c.yaml}]\n",
        )
        .file("a.yaml", "")
        .file("b.yaml", "")
        .file("c.yaml", "");
    check_files(&tree, "", &["a.yaml", "b.yaml", "c.yaml", "kustomization.yaml"]);
}

#[test]
fn a_link_is_replaced_by_what_it_leads_to() {
    let tree = MemoryTree::new()
        .file("real/kustomization.yaml", "resources: [web.yaml, ../shared/x.yaml]\n")
        .file("real/web.yaml", "w")
        .file("shared/x.yaml", "x")
        .link("apps/web", "../real")
        .link("apps/shared", "../shared")
        .link("top/kustomization.yaml", "../apps/top.yaml")
        .file("apps/top.yaml", "resources: [../apps/web]\n");
    let closure = traced(&tree, "top");
    assert_eq!(refusals(&closure), Vec::<String>::new());
    let sources: Vec<_> = closure.files.iter().map(|(path, file)| (&**path, &*file.source)).collect();
    assert_eq!(
        sources,
        [
            ("apps/shared/x.yaml", "shared/x.yaml"),
            ("apps/web/kustomization.yaml", "real/kustomization.yaml"),
            ("apps/web/web.yaml", "real/web.yaml"),
            ("top/kustomization.yaml", "apps/top.yaml"),
        ]
    );
    let index = ClosureIndex::of([&closure]);
    for path in ["apps/web", "real/web.yaml", "shared/x.yaml", "top/kustomization.yaml", "apps/top.yaml"] {
        assert_eq!(index.impact([path]).roots.len(), 1, "{path}");
    }
    assert_eq!(index.impact(["apps/shared", "real/other.yaml"]).roots.len(), 0);
}

#[test]
fn a_link_to_a_folder_that_would_need_two_contents_is_refused() {
    let tree = MemoryTree::new()
        .file("real/deep/kustomization.yaml", "resources: [../x.yaml]\n")
        .file("real/x.yaml", "one")
        .link("link", "real/deep")
        .file("x.yaml", "two")
        .file("app/kustomization.yaml", "resources: [../x.yaml, ../link]\n");
    // Without the link, `../x.yaml` would be the file at the top.
    check_refusals(&tree, "app", &["real/deep/kustomization.yaml:1 symlink"]);
}

#[test]
fn a_kustomization_in_whose_place_a_link_leads_to_another_file_is_refused() {
    let tree = MemoryTree::new()
        .file("real/kustomization.yaml", "namePrefix: other-\n")
        .file(
            "real/deep/kustomization.yaml",
            "configMapGenerator: [{name: a, files: [../kustomization.yaml]}]\n",
        )
        .link("some/link", "../real/deep")
        .file("some/kustomization.yaml", "namePrefix: own-\n");
    let root =
        |resources: &str| tree.clone().file("app/kustomization.yaml", format!("resources: {resources}\n"));
    // Without the link, the file of the generator would be that of the folder.
    check_refusals(&root("[../some/link, ../some]"), "app", &["app/kustomization.yaml:1 symlink"]);
    check_refusals(&root("[../some, ../some/link]"), "app", &["real/deep/kustomization.yaml:1 symlink"]);
}

#[test]
fn a_path_over_a_link_goes_up_no_farther_than_the_link_is_deep() {
    let check = |link: &str, target: &str, reference: &str, expected: &[&str]| {
        let tree = MemoryTree::new()
            .file("real/deep/kustomization.yaml", format!("resources: ['{reference}']\n"))
            .file("x.yaml", "x")
            .link(link, target)
            .file("app/kustomization.yaml", format!("resources: [../{link}]\n"));
        assert_eq!(refusals(&traced(&tree, "app")), expected, "{link} {target} {reference}");
    };
    // As the system goes it is the file at the top; without the link it would be above that.
    check("link", "real/deep", "../../x.yaml", &["real/deep/kustomization.yaml:1 symlink"]);
    check("some/link", "../real/deep", "../../x.yaml", &[]);
    check("link", "real/deep", "../../../x.yaml", &["real/deep/kustomization.yaml:1 out-of-tree"]);
    // A link that itself goes up above the revision is named where it is used.
    check("link", "../..", "x.yaml", &["app/kustomization.yaml:1 out-of-tree"]);
    check("some/link", "../../..", "x.yaml", &["app/kustomization.yaml:1 out-of-tree"]);
}

#[test]
fn what_is_remote_is_refused_by_name() {
    let check = |text: &str, expected: &[&str]| {
        let tree = MemoryTree::new().file("kustomization.yaml", text).file("github.com/a/b", "local");
        check_refusals(&tree, "", expected);
    };
    check(
        "resources:\n- https://example.com/x.yaml\n- github.com/org/repo?ref=v1\n",
        &["kustomization.yaml:2 remote-base", "kustomization.yaml:3 remote-base"],
    );
    check("bases: ['git@example.com:org/repo']", &["kustomization.yaml:1 remote-base"]);
    check("components: ['ssh://git@example.com/org/repo']", &["kustomization.yaml:1 remote-base"]);
    check(
        "configMapGenerator: [{files: ['a=http://169.254.169.254/x']}]",
        &["kustomization.yaml:1 remote-base"],
    );
    check("patches:\n- path: https://example.com/p.yaml", &["kustomization.yaml:2 remote-base"]);
    check("openapi: {path: 'http://example.com'}", &["kustomization.yaml:1 remote-base"]);
    check("configurations: ['HTTPS://example.com']", &["kustomization.yaml:1 remote-base"]);
    check("crds: ['http://example.com']", &["kustomization.yaml:1 remote-base"]);
    check("replacements: [{path: 'http://example.com'}]", &["kustomization.yaml:1 remote-base"]);
    check("transformers: [github.com/org/repo]", &["kustomization.yaml:1 remote-base"]);
    check("patchesStrategicMerge: ['https://example.com/p.yaml']", &["kustomization.yaml:1 remote-base"]);
    // A folder of that name never counts, but a file does.
    check("components: [github.com/a/b]", &["kustomization.yaml:1 remote-base"]);
    let tree = MemoryTree::new().file("kustomization.yaml", "resources: [github.com/a/b]");
    check_files(&tree.file("github.com/a/b", ""), "", &["github.com/a/b", "kustomization.yaml"]);
}

#[test]
fn what_leaves_the_repository_is_refused() {
    let tree = MemoryTree::new()
        .file(
            "app/kustomization.yaml",
            "resources:\n- /etc/passwd\n- ../../etc/hostname\n- out.yaml\n- proc.yaml\n- pipe\n- gone.yaml\n",
        )
        .link("app/out.yaml", "/etc/passwd")
        .link("app/proc.yaml", "../../../proc/self/environ")
        .link("app/gone.yaml", "no.yaml")
        .defect("app/pipe", FileDefect::NotAFile);
    check_refusals(
        &tree,
        "app",
        &[
            "app/kustomization.yaml:2 out-of-tree",
            "app/kustomization.yaml:3 out-of-tree",
            "app/kustomization.yaml:4 out-of-tree",
            "app/kustomization.yaml:5 out-of-tree",
            "app/kustomization.yaml:6 not-a-file",
            "app/kustomization.yaml:7 missing-file",
        ],
    );
}

#[test]
fn programs_are_refused_by_name() {
    let tree = MemoryTree::new()
        .file(
            "kustomization.yaml",
            "generators:\n- exec.yaml\n- |\n  apiVersion: example.com/v1\n  kind: Inline\n  metadata: {name: x}\n\
             helmCharts:\n- name: web\n  release: a\n",
        )
        .file(
            "exec.yaml",
            "apiVersion: v1\nkind: Exec\nmetadata:\n  name: e\n  annotations:\n    \
             config.kubernetes.io/function: '{exec: {path: /bin/sh}}'\n",
        );
    check_refusals(
        &tree,
        "",
        &[
            "kustomization.yaml:3 kustomize-plugin",
            "kustomization.yaml:9 helm-chart",
            "exec.yaml:1 kustomize-plugin",
        ],
    );
}

#[test]
fn instead_of_a_program_that_opens_secrets_rhumb_opens_them() {
    #[track_caller]
    fn check(plugin: &str, expected: &str) {
        let tree = MemoryTree::new()
            .file("kustomization.yaml", "generators: [plugin.yaml]\n")
            .file("plugin.yaml", format!("{plugin}\nmetadata: {{name: a}}\nfiles: [secret.enc.yaml]\n"));
        let closure = traced(&tree, "");
        let [found] = &closure.diagnostics[..] else { panic!("{:?}", closure.diagnostics) };
        assert!(found.hint.as_ref().is_some_and(|hint| hint.contains(expected)), "{found:?}");
    }
    check("apiVersion: viaduct.ai/v1\nkind: ksops", "encrypted Secrets under `resources`");
    check("apiVersion: goabout.com/v1beta1\nkind: SopsSecretGenerator", "under a `secretGenerator`");
    check("apiVersion: example.com/v1\nkind: Exec", "commit what it generates");
}

#[test]
fn a_folder_needs_one_kustomization_of_the_right_kind() {
    let tree = MemoryTree::new()
        .file("none/x.yaml", "")
        .file("two/kustomization.yaml", "resources: []")
        .file("two/Kustomization", "resources: []")
        .file("part/kustomization.yaml", "kind: Component\nresources: []")
        .file("base/kustomization.yaml", "resources: []")
        // A folder of such a name is none, until a file is there.
        .file("base/kustomization.yml/x.yaml", "")
        .file("broken/kustomization.yaml", "resources: [\n")
        .file(
            "app/kustomization.yaml",
            "resources:\n- ../none\n- ../two\n- ../part\n- ../broken\ncomponents:\n- ../base\n- ../app/x.yaml\n\
             patches:\n- path: ../base\n",
        )
        .file("app/x.yaml", "");
    let closure = traced(&tree, "app");
    assert_eq!(
        refusals(&closure),
        [
            "app/kustomization.yaml:8 missing-file",
            "app/kustomization.yaml:10 missing-file",
            "app/kustomization.yaml:2 no-kustomization",
            "app/kustomization.yaml:3 several-kustomizations",
            "app/kustomization.yaml:4 component",
            "broken/kustomization.yaml:2 yaml-syntax",
            "app/kustomization.yaml:7 component",
        ]
    );
    assert_eq!(refusals(&traced(&tree, "none")), ["none no-kustomization"]);
    assert!(traced(&tree, "part").is_component() && !traced(&tree, "base").is_component());
    let index = ClosureIndex::of([&traced(&tree, "base")]);
    assert_eq!(index.impact(["base/kustomization.yml"]).roots.len(), 1);
}

#[test]
fn circles_are_refused() {
    let tree = MemoryTree::new()
        .file("self/kustomization.yaml", "resources:\n- .\n")
        .file("up/in/kustomization.yaml", "resources:\n- ..\n")
        .file("up/kustomization.yaml", "resources: []\n")
        .file("a/kustomization.yaml", "resources: [../b]\n")
        .file("b/kustomization.yaml", "resources: [../c]\n")
        .file("c/kustomization.yaml", "resources: [../b]\n");
    check_refusals(&tree, "self", &["self/kustomization.yaml:2 kustomize-cycle"]);
    check_refusals(&tree, "up/in", &["up/in/kustomization.yaml:2 kustomize-cycle"]);
    check_refusals(&tree, "a", &["c/kustomization.yaml:1 kustomize-cycle"]);
}

/// Builds levels of folders that include the next one twice: 2^20 builds, of 21 folders.
#[test]
fn diamonds_are_walked_once_and_refused() {
    let level = |tree: MemoryTree, number: u32| {
        let next = number + 1;
        let text = format!("resources: [../{next}, ../{next}/.]\n");
        tree.file(&format!("{number}/kustomization.yaml"), text)
    };
    let tree = (0..20).fold(MemoryTree::new(), level).file("20/kustomization.yaml", "resources: []\n");
    let mut parsed = ParsedFiles::default();
    let closure = find_closure(&tree, "0", ClosureLimits::default(), &mut parsed).unwrap();
    assert_eq!(refusals(&closure), ["0 too-large"]);
    assert_eq!((closure.folders.len(), parsed.len()), (21, 21));
    check_files(
        &tree,
        "17",
        &["17/kustomization.yaml", "18/kustomization.yaml", "19/kustomization.yaml", "20/kustomization.yaml"],
    );
}

#[test]
fn a_root_that_reads_too_much_is_refused() {
    let list = (0..20).map(|number| format!("- {number}.yaml")).collect::<Vec<_>>().join("\n");
    let tree = MemoryTree::new().file("kustomization.yaml", format!("resources:\n{list}"));
    let tree = (0..20).fold(tree, |tree, number| tree.file(&format!("{number}.yaml"), "0123456789"));
    let check = |limits, expected: &str| {
        let closure = find_closure(&tree, "", limits, &mut ParsedFiles::default()).unwrap();
        let message = closure.diagnostics.iter().map(|found| found.message.as_str()).collect::<Vec<_>>();
        assert_eq!(message, [format!("this root reads more than {expected}")]);
    };
    let limits = ClosureLimits::default();
    check(ClosureLimits { files: 10, ..limits }, "10 files");
    check(ClosureLimits { bytes: 350, ..limits }, "350 bytes");
    check(ClosureLimits { references: 10, ..limits }, "10 references");
}

/// Returns the folders 0 to 5000, each of which has the next one as its resource.
fn chain_of_folders() -> MemoryTree {
    let link = |tree: MemoryTree, number: u32| {
        let text = format!("resources: [../{}]\n", number + 1);
        tree.file(&format!("{number}/kustomization.yaml"), text)
    };
    (0..5000).fold(MemoryTree::new(), link).file("5000/kustomization.yaml", "resources: []")
}

// A chain of bases is no recursion, however long.
#[test]
fn a_long_chain_costs_no_stack() {
    assert_eq!(traced(&chain_of_folders(), "0").files.len(), 5001);
}

// Nor is a chain of folders with plugin configurations.
#[test]
fn a_long_chain_of_plugins_costs_no_stack() {
    let tree = chain_of_folders().file("root/kustomization.yaml", "transformers: [../0]\n");
    let closure = traced(&tree, "root");
    assert_eq!((closure.files.len(), refusals(&closure)), (5002, Vec::new()));
}

#[test]
fn a_content_is_parsed_once() {
    let text = "resources: [web.yaml]\n";
    let tree = ["a", "b", "c"].iter().fold(MemoryTree::new(), |tree, folder| {
        tree.file(&format!("{folder}/kustomization.yaml"), text).file(&format!("{folder}/web.yaml"), folder)
    });
    let mut parsed = ParsedFiles::default();
    for root in ["a", "b", "c"] {
        find_closure(&tree, root, ClosureLimits::default(), &mut parsed).unwrap();
    }
    assert_eq!(parsed.len(), 1);
}

#[test]
fn a_change_concerns_the_roots_that_read_it_or_looked_for_it() {
    let tree = MemoryTree::new()
        .file("base/kustomization.yaml", "resources: [web.yaml]\n")
        .file("base/web.yaml", "")
        .file("prod/kustomization.yaml", "resources: [../base, missing.yaml, ../later]\n")
        .file("dev/kustomization.yaml", "resources: [../base]\n")
        .file("other/kustomization.yaml", "resources: []\n");
    let closures: Vec<Closure> = ["base", "prod", "dev", "other"].map(|root| traced(&tree, root)).into();
    let mut index = ClosureIndex::of(&closures);
    let check = |index: &ClosureIndex, path: &str, roots: &[&str], moves_roots: bool| {
        let impact = index.impact([path]);
        assert_eq!(impact.roots.iter().map(|root| &**root).collect::<Vec<_>>(), roots, "{path}");
        assert_eq!(impact.moves_roots, moves_roots, "{path}");
    };
    check(&index, "base/web.yaml", &["base", "dev", "prod"], false);
    check(&index, "base/kustomization.yaml", &["base", "dev", "prod"], false);
    check(&index, "base/kustomization.yml", &["base", "dev", "prod"], false);
    check(&index, "prod/missing.yaml", &["prod"], false);
    check(&index, "later/kustomization.yaml", &["prod"], true);
    check(&index, "later/x/y.yaml", &["prod"], false);
    check(&index, "base/readme.md", &[], false);
    check(&index, "new/kustomization.yaml", &[], true);
    check(&index, "new/Chart.yaml", &[], true);
    check(&index, ".rhumbignore", &[], true);

    let tree = tree.file("dev/kustomization.yaml", "resources: [x.yaml]\n").file("dev/x.yaml", "");
    let mut closure = traced(&tree, "dev");
    index.replace_paths([WatchedPaths::take_from(&mut closure)]);
    assert!(closure.watched.is_empty());
    check(&index, "base/web.yaml", &["base", "prod"], false);
    check(&index, "dev/x.yaml", &["dev"], false);
}

#[test]
fn a_root_that_is_gone_leaves_nothing_in_the_index() {
    let tree = ["a", "b", "c"].iter().fold(MemoryTree::new(), |tree, folder| {
        let text = format!("resources: [{folder}.yaml]\n");
        tree.file(&format!("{folder}/kustomization.yaml"), text)
    });
    let closures: Vec<Closure> = ["a", "b", "c"].map(|root| traced(&tree, root)).into();
    let mut index = ClosureIndex::of(&closures);
    index.retain(|root| root != "b");
    let alone = ClosureIndex::of(closures.iter().filter(|closure| &*closure.root != "b"));
    assert_eq!(index.size(), alone.size());
    for (path, expected) in [("a/a.yaml", &["a"][..]), ("b/b.yaml", &[]), ("c/c.yaml", &["c"])] {
        let roots = index.impact([path]).roots;
        assert_eq!(roots.iter().map(|root| &**root).collect::<Vec<_>>(), expected, "{path}");
    }
    index.retain(|_| false);
    assert_eq!(index.size(), 0);
}

#[test]
fn a_render_tree_holds_the_closure_and_asks_for_origins() {
    let tree = MemoryTree::new()
        .file("app/kustomization.yaml", "resources: [web.yaml]\n")
        .file("app/web.yaml", "kind: X")
        .file("app/secret.txt", "no");
    let closure = traced(&tree, "app");
    let planned = RenderTree::of(&closure, &tree).unwrap();
    let text = "resources: [web.yaml]\nbuildMetadata: [originAnnotations]\n".as_bytes();
    assert_eq!((&*planned.root, planned.origins), ("app", OriginTracking::Added));
    assert_eq!(
        planned.files.iter().map(|file| (&*file.path, &file.content)).collect::<Vec<_>>(),
        [
            ("app/kustomization.yaml", &PlannedContent::Text(text.into())),
            ("app/web.yaml", &PlannedContent::Blob(closure.files.get("app/web.yaml").unwrap().file.blob)),
        ]
    );
    let tree = tree.file("app/kustomization.yaml", text);
    let planned = RenderTree::of(&traced(&tree, "app"), &tree).unwrap();
    assert_eq!(planned.origins, OriginTracking::Requested);
    assert_eq!(
        planned,
        RenderTree { origins: OriginTracking::Requested, ..RenderTree::plain(&traced(&tree, "app")) }
    );
}

#[test]
fn the_environment_of_the_program_gives_no_value() {
    let check = |lines: &str, expected: Option<&str>| {
        let tree = MemoryTree::new()
            .file(
                "app/kustomization.yaml",
                "configMapGenerator: [{name: a, envs: [a.env, b.env], files: [b.env]}]\n",
            )
            .file("app/a.env", lines)
            .file("app/b.env", lines);
        let closure = traced(&tree, "app");
        let planned = RenderTree::of(&closure, &tree).unwrap();
        let content = |path: &str| {
            planned.files.iter().find(|file| &*file.path == path).map(|file| file.content.clone()).unwrap()
        };
        let plain = |path: &str| PlannedContent::Blob(closure.files.get(path).unwrap().file.blob);
        let written = expected.map(|text| PlannedContent::Text(text.as_bytes().into()));
        assert_eq!(content("app/a.env"), written.unwrap_or_else(|| plain("app/a.env")), "{lines}");
        // Its content is data too.
        assert_eq!(content("app/b.env"), plain("app/b.env"), "{lines}");
    };
    check("HOME", Some("HOME="));
    check("\u{feff}HOME\nA=HOME\n  TMPDIR\r\nGOGC\n", Some("\u{feff}HOME=\nA=HOME\n  TMPDIR=\r\nGOGC=\n"));
    check("\u{a0}HOME\n\u{b}\u{2003}GOGC\n", Some("\u{a0}HOME=\n\u{b}\u{2003}GOGC=\n"));
    check("HOME=x\nPATH\n#HOME\nHOME \nA\n", None);
    check("A=1\n\u{feff}HOME\n", None);
}
