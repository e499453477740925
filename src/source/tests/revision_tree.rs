//! Every file of a revision, from git and from disk.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::fixture::{TestRepository, put, write_commit, write_tree};
use crate::object::Revision;
use crate::source::object_stores::StorePath;
use crate::source::reader::{ReadLimits, RevisionForm, RevisionReader};
use crate::source::refusal::RefusalReason;
use crate::source::{BlobId, DiskTree, FileDefect, RevisionTree, TreeEntry, TreeFile, TreeLink};

fn reader(repo: &TestRepository, path: Option<&str>, limits: ReadLimits) -> RevisionReader {
    let stores = vec![StorePath::Trusted(repo.path().to_owned())];
    RevisionReader::new(stores, RevisionForm::Commits, "repo".to_owned(), path.map(str::to_owned), limits)
}

fn tree(repo: &TestRepository, revision: &Revision) -> RevisionTree {
    reader(repo, None, ReadLimits::default()).tree(revision).unwrap()
}

/// Creates a work tree with a file of each form.
fn every_form() -> (TestRepository, Revision) {
    let repo = TestRepository::new();
    put(
        repo.path(),
        &[
            ("clusters/prod/kustomization.yaml", "resources: [../../base]"),
            ("base/kustomization.yaml", "resources: []"),
            (".hidden/settings.env", "A=B"),
            (".rhumbignore", "base"),
            ("run.sh", "#!/bin/sh"),
            ("pointer.yaml", &format!("version https://git-lfs.github.com/spec/v1\n{}", "x".repeat(90))),
        ],
    );
    fs::set_permissions(repo.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../base", repo.path().join("clusters/base")).unwrap();
    let head = repo.commit(&[]);
    (repo, head)
}

fn file(text: &str, is_executable: bool) -> TreeEntry {
    let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
    TreeEntry::File(TreeFile { blob, size, is_executable })
}

#[test]
fn every_file_can_be_looked_at_whatever_its_name() {
    let (repo, head) = every_form();
    // A source's folder bounds what it lists, not what it renders from.
    let git = reader(&repo, Some("clusters/prod"), ReadLimits::default()).tree(&head).unwrap();
    let disk = DiskTree::open(repo.path()).unwrap();
    let check = |path: &str, expected: Option<TreeEntry>| {
        assert_eq!(git.entry(path).unwrap(), expected, "{path} in git");
        assert_eq!(disk.entry(path).unwrap(), expected, "{path} on disk");
    };
    check("", Some(TreeEntry::Folder));
    check("clusters/prod", Some(TreeEntry::Folder));
    check("clusters/prod/kustomization.yaml", Some(file("resources: [../../base]", false)));
    check(".hidden/settings.env", Some(file("A=B", false)));
    check(".rhumbignore", Some(file("base", false)));
    check("run.sh", Some(file("#!/bin/sh", true)));
    check("pointer.yaml", Some(TreeEntry::Defect(FileDefect::LfsPointer)));
    let link = TreeLink { blob: BlobId::of(b"../base"), target: "../base".to_owned() };
    check("clusters/base", Some(TreeEntry::Link(link)));
    // Nothing is found over a link, below a file, or above the revision.
    for path in ["clusters/base/kustomization.yaml", "run.sh/x", "no", "no/such", "..", ".git", ".git/config"]
    {
        check(path, None);
    }
    check(&"x/".repeat(5000), None);
    assert_eq!(git.read(BlobId::of(b"A=B")).unwrap(), b"A=B");
    assert_eq!(&*disk.read(BlobId::of(b"A=B")).unwrap(), b"A=B");
    assert!(disk.read(BlobId::of(b"never looked at")).is_err());

    let names = |expected: Option<&[&str]>, folder: &str| {
        let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(git.names(folder).unwrap(), expected, "{folder} in git");
        assert_eq!(disk.names(folder).unwrap(), expected, "{folder} on disk");
    };
    names(Some(&[".hidden", ".rhumbignore", "base", "clusters", "pointer.yaml", "run.sh"]), "");
    names(Some(&["base", "prod"]), "clusters");
    names(None, "clusters/base");
    names(None, "run.sh");
}

// A folder without such a file must not be taken for complete.
#[test]
fn a_name_that_is_no_text_is_listed_and_nothing_is_found_there() {
    let repo = TestRepository::new();
    put(repo.path(), &[("web/a.yaml", "a")]);
    fs::write(repo.path().join("web").join(OsStr::from_bytes(b"b\xff.yaml")), "b").unwrap();
    let head = repo.commit(&[]);
    let (git, disk) = (tree(&repo, &head), DiskTree::open(repo.path()).unwrap());
    let expected = Some(vec!["a.yaml".to_owned(), "b\u{fffd}.yaml".to_owned()]);
    assert_eq!((git.names("web").unwrap(), disk.names("web").unwrap()), (expected.clone(), expected));
    let path = "web/b\u{fffd}.yaml";
    assert_eq!((git.entry(path).unwrap(), disk.entry(path).unwrap()), (None, None));
}

#[test]
fn the_files_of_a_folder_are_looked_at_together() {
    let (repo, head) = TestRepository::with(&[("a/1.yaml", "1"), ("a/2.yaml", "2"), ("b/1.yaml", "1")]);
    let reader = reader(&repo, None, ReadLimits::default());
    let tree = reader.tree(&head).unwrap();
    let contents = [BlobId::of(b"2"), BlobId::of(b"1")];
    let read = tree.read_all(&contents).unwrap();
    assert_eq!(read.iter().map(|bytes| &**bytes).collect::<Vec<_>>(), [b"2", b"1"]);
    assert!(tree.read_all(&[contents[0], BlobId::of(b"lost")]).is_err());
    assert_eq!(tree.entry("a/1.yaml").unwrap(), Some(file("1", false)));

    fs::remove_dir_all(repo.path().join(".git")).unwrap();
    reader.close();
    assert_eq!(tree.entry("a/2.yaml").unwrap(), Some(file("2", false)), "it was looked at with the first");
    assert!(tree.entry("b/1.yaml").is_err(), "another folder takes a look of its own");
}

#[test]
fn what_is_no_file_is_not_read() {
    let (repo, head) = TestRepository::with(&[("inner/a.yaml", "a"), ("sub/.keep", "x")]);
    let large = TestRepository::with(&[("large.yaml", &"x".repeat(200)), ("deep/folder/a", "1")]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},module")]);
    repo.git(&["commit", "--quiet", "--message=submodule"]);
    assert_eq!(
        tree(&repo, &repo.head()).entry("module").unwrap(),
        Some(TreeEntry::Defect(FileDefect::Submodule))
    );

    let limits = ReadLimits { file: 100, ..ReadLimits::default() };
    let limited = reader(&large.0, None, limits).tree(&large.1).unwrap();
    assert_eq!(limited.entry("large.yaml").unwrap(), Some(TreeEntry::Defect(FileDefect::TooLarge)));
    let limits = ReadLimits { entries: 2, ..ReadLimits::default() };
    assert!(reader(&large.0, None, limits).tree(&large.1).unwrap().entry("deep/folder/a").is_err());

    let pipe = repo.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    put(repo.path(), &[("nested/.git/config", "secret"), ("nested/a.yaml", "a")]);
    fs::File::create(repo.path().join("huge")).unwrap().set_len(17 << 20).unwrap();
    let disk = DiskTree::open(repo.path()).unwrap();
    assert_eq!(disk.entry("pipe").unwrap(), Some(TreeEntry::Defect(FileDefect::NotAFile)));
    assert_eq!(disk.entry("huge").unwrap(), Some(TreeEntry::Defect(FileDefect::TooLarge)));
    assert_eq!(disk.entry("nested").unwrap(), Some(TreeEntry::Defect(FileDefect::Submodule)));
    assert_eq!(disk.entry("nested/a.yaml").unwrap(), None);
    assert_eq!(disk.entry("nested/.GIT/config").unwrap(), None);
}

// Else whoever may write to a repository could put reasons into it that nobody has found.
#[test]
fn only_a_snapshot_says_why_something_was_not_read() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "a")]);
    let repository = git2::Repository::open(repo.path()).unwrap();
    let unknown = BlobId::of(b"unreadable").oid();
    let root = write_tree(
        &repository,
        &[
            ("10644", b"closed", RefusalReason::Unreadable.id()),
            ("10644", b"large", RefusalReason::TooLarge.id()),
            ("10644", b"other", unknown),
        ],
    );
    let revision = write_commit(&repository, root, "x");
    let check = |form, expected: [FileDefect; 3]| {
        let stores = vec![StorePath::Trusted(repo.path().to_owned())];
        let reader = RevisionReader::new(stores, form, "repo".to_owned(), None, ReadLimits::default());
        let tree = reader.tree(&revision).unwrap();
        let seen = ["closed", "large", "other"].map(|path| tree.entry(path).unwrap());
        assert_eq!(seen, expected.map(|defect| Some(TreeEntry::Defect(defect))), "{form:?}");
    };
    check(RevisionForm::Snapshots, [FileDefect::Unreadable, FileDefect::TooLarge, FileDefect::NotAFile]);
    check(RevisionForm::Commits, [FileDefect::NotAFile; 3]);
}

#[test]
fn a_file_on_disk_stays_what_it_was_first() {
    let repo = TestRepository::new();
    put(repo.path(), &[("a.yaml", "first")]);
    let disk = DiskTree::open(repo.path()).unwrap();
    assert_eq!(disk.entry("a.yaml").unwrap(), Some(file("first", false)));
    put(repo.path(), &[("a.yaml", "second")]);
    assert_eq!(disk.entry("a.yaml").unwrap(), Some(file("first", false)));
    assert_eq!(DiskTree::open(repo.path()).unwrap().entry("a.yaml").unwrap(), Some(file("second", false)));
}

#[test]
fn two_revisions_differ_by_every_name() {
    let (repo, first) = TestRepository::with(&[
        ("a/kustomization.yaml", "1"),
        ("a/.env", "1"),
        ("b/deep/x.txt", "1"),
        ("c", "1"),
        ("same/x", "1"),
    ]);
    put(repo.path(), &[("a/.env", "2"), ("b/deep/x.txt", ""), ("c", ""), ("new/Chart.yaml", "1")]);
    put(repo.path(), &[("c/now/a/folder", "1")]);
    fs::set_permissions(repo.path().join("a/kustomization.yaml"), fs::Permissions::from_mode(0o755)).unwrap();
    let second = repo.commit(&[]);
    let (first, second) = (tree(&repo, &first), tree(&repo, &second));
    let expected =
        ["a/.env", "a/kustomization.yaml", "b/deep/x.txt", "c", "c/now/a/folder", "new/Chart.yaml"];
    assert_eq!(first.changed_paths(&second).unwrap(), expected);
    assert_eq!(second.changed_paths(&first).unwrap(), expected);
    assert_eq!(second.changed_paths(&second).unwrap(), Vec::<String>::new());
}
