//! The names of manifests, of folders to enter, and of refused entries: one rule for trees and for
//! disks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::refusal::RefusalReason;

/// The name of the files that say what is no manifest.
pub(super) const IGNORE_FILE: &str = ".rhumbignore";
/// An ignore file over this size is refused.
pub(super) const MAX_IGNORE_FILE_BYTES: u64 = 1 << 20;
/// The longest name that the file systems of Linux take: nobody can check out a longer one. A tree
/// may have names of 64 KiB, and a path has up to a hundred of them.
pub(super) const MAX_FILE_NAME_BYTES: usize = 255;
/// Folders nested deeper than this are refused: the walk is recursive.
pub(super) const MAX_FOLDER_DEPTH: usize = 100;

/// The files that make a folder something to be rendered first.
pub(super) const RENDERER_FILES: [(&str, RefusalReason); 4] = [
    ("kustomization.yaml", RefusalReason::Kustomization),
    ("kustomization.yml", RefusalReason::Kustomization),
    ("Kustomization", RefusalReason::Kustomization),
    ("Chart.yaml", RefusalReason::Chart),
];

/// The kind of a folder's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Folder,
    Symlink,
    Submodule,
    Other,
}

/// The verdict about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryVerdict {
    Skip,
    Take,
    Enter,
    Refuse(RefusalReason),
}

/// Judges one entry by its name and kind alone; ignore files come before it.
pub(super) fn classify_name(name: &[u8], kind: EntryKind) -> EntryVerdict {
    if matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git") {
        return EntryVerdict::Refuse(RefusalReason::Name);
    }
    if name == IGNORE_FILE.as_bytes() && kind != EntryKind::File {
        return EntryVerdict::Refuse(RefusalReason::BadIgnore);
    }
    if name.starts_with(b".") {
        return EntryVerdict::Skip;
    }
    let plain_file = matches!(kind, EntryKind::File | EntryKind::Other);
    if plain_file && !is_manifest(name) {
        return EntryVerdict::Skip;
    }
    if name.len() > MAX_FILE_NAME_BYTES || !is_plain(name) {
        return EntryVerdict::Refuse(RefusalReason::Name);
    }
    match kind {
        EntryKind::File => EntryVerdict::Take,
        EntryKind::Folder => EntryVerdict::Enter,
        EntryKind::Symlink => EntryVerdict::Refuse(RefusalReason::Symlink),
        EntryKind::Submodule => EntryVerdict::Refuse(RefusalReason::Submodule),
        EntryKind::Other => EntryVerdict::Refuse(RefusalReason::NotAFile),
    }
}

/// Returns the reason for which a file of this name makes its whole folder refused.
pub(super) fn marker(name: &[u8]) -> Option<RefusalReason> {
    RENDERER_FILES.into_iter().find(|(marker, _)| marker.as_bytes() == name).map(|(_, reason)| reason)
}

/// Returns whether an entry of this kind may make its folder one to be rendered first. A folder of
/// such a name does not: kustomize, helm and Flux pass over it.
pub(super) const fn can_mark(kind: EntryKind) -> bool {
    !matches!(kind, EntryKind::Folder | EntryKind::Submodule)
}

fn is_manifest(name: &[u8]) -> bool {
    [&b".yaml"[..], b".yml", b".json"].iter().any(|ending| name.ends_with(ending))
}

fn is_plain(name: &[u8]) -> bool {
    std::str::from_utf8(name)
        .is_ok_and(|name| !name.chars().any(|c| c.is_control() || matches!(c, '\\' | '/')))
}

/// The ignore files of the folders from the root down to the present one; the nearest one that says
/// something decides, as in git.
#[derive(Default)]
pub(super) struct IgnoreFiles {
    /// Length of the folder's path with its final slash, and what its file says.
    levels: Vec<(usize, Gitignore)>,
}

impl IgnoreFiles {
    /// Reads the ignore file of a folder; an error names the line.
    pub(super) fn push(&mut self, folder: &[u8], text: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(text).map_err(|_| "not UTF-8".to_owned())?;
        // Editors write this mark before the first line, and it is no part of its rule.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut builder = GitignoreBuilder::new(".");
        for (number, line) in (1..).zip(text.lines()) {
            builder.add_line(None, line).map_err(|error| format!("line {number}: {error}"))?;
        }
        let rules = builder.build().map_err(|error| error.to_string())?;
        let prefix = if folder.is_empty() { 0 } else { folder.len() + 1 };
        self.levels.push((prefix, rules));
        Ok(())
    }

    /// Forgets the folders that do not hold this one; both without a final slash, the root empty.
    pub(super) fn leave_to(&mut self, levels: usize) {
        self.levels.truncate(levels);
    }

    /// Returns how many folders have said something.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Returns whether an entry is ignored; its path is that from the root, inside every folder on
    /// the stack.
    pub(super) fn is_ignored(&self, path: &[u8], kind: EntryKind) -> bool {
        for (prefix, rules) in self.levels.iter().rev() {
            let inside = Path::new(OsStr::from_bytes(path.get(*prefix..).unwrap_or(path)));
            match rules.matched(inside, kind == EntryKind::Folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// The sizes of LFS pointers, from an empty file's to one with long extensions.
pub(super) const LFS_SIZES: std::ops::RangeInclusive<u64> = 100..=250;
const LFS_PREFIX: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Returns the reason for which a content is refused at sight.
pub(super) fn refused_content(bytes: &[u8]) -> Option<RefusalReason> {
    let pointer = LFS_SIZES.contains(&(bytes.len() as u64)) && bytes.starts_with(LFS_PREFIX);
    pointer.then_some(RefusalReason::Lfs)
}

/// Returns a foreign text as it may be shown on a terminal.
pub(super) fn sanitize_text(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_entered_skipped_or_refused_by_its_name_and_kind() {
        use EntryKind::{File, Folder, Other, Submodule, Symlink};
        let check = |name: &str, kind: EntryKind, expected: EntryVerdict| {
            assert_eq!(classify_name(name.as_bytes(), kind), expected, "{name:?} {kind:?}");
        };
        let refused = EntryVerdict::Refuse;
        for name in ["a.yaml", "a.yml", "a.json", "two words.yaml", "\u{e4}.yaml"] {
            check(name, File, EntryVerdict::Take);
            check(name, Other, refused(RefusalReason::NotAFile));
        }
        for name in ["a.txt", "yaml", "a.yaml.orig", "a\tb"] {
            check(name, File, EntryVerdict::Skip);
            check(name, Other, EntryVerdict::Skip);
        }
        check("web", Folder, EntryVerdict::Enter);
        // Behind these may be manifests, whatever their name.
        for name in ["web", "a.txt", "a.yaml"] {
            check(name, Symlink, refused(RefusalReason::Symlink));
            check(name, Submodule, refused(RefusalReason::Submodule));
        }
        for kind in [File, Folder, Symlink, Submodule, Other] {
            check(".a.yaml", kind, EntryVerdict::Skip);
            for name in ["", ".", "..", ".git", ".GIT"] {
                check(name, kind, refused(RefusalReason::Name));
            }
            let bad_ignore = refused(RefusalReason::BadIgnore);
            check(IGNORE_FILE, kind, if kind == File { EntryVerdict::Skip } else { bad_ignore });
        }
        for name in ["a\\b", "a/b", "a\u{1b}b"] {
            check(name, Folder, refused(RefusalReason::Name));
            check(&format!("{name}.yaml"), File, refused(RefusalReason::Name));
        }
        let long = |bytes: usize| format!("{}.yaml", "a".repeat(bytes - 5));
        check(&long(MAX_FILE_NAME_BYTES), File, EntryVerdict::Take);
        check(&long(MAX_FILE_NAME_BYTES + 1), File, refused(RefusalReason::Name));
        assert_eq!(classify_name(b"\xff.yaml", File), refused(RefusalReason::Name));
    }

    #[test]
    fn the_nearest_ignore_file_that_says_something_decides() {
        let mut ignores = IgnoreFiles::default();
        ignores.push(b"", b"*.yaml\nfolder/\n").unwrap();
        ignores.push(b"web", b"!/keep.yaml\n").unwrap();
        let check = |ignores: &IgnoreFiles, path: &str, kind: EntryKind, expected: bool| {
            assert_eq!(ignores.is_ignored(path.as_bytes(), kind), expected, "{path} {kind:?}");
        };
        check(&ignores, "web/keep.yaml", EntryKind::File, false);
        check(&ignores, "web/other.yaml", EntryKind::File, true);
        check(&ignores, "web/other.json", EntryKind::File, false);
        check(&ignores, "web/folder", EntryKind::Folder, true);
        check(&ignores, "web/folder", EntryKind::File, false);
        assert_eq!(ignores.depth(), 2);
        ignores.leave_to(1);
        assert_eq!(ignores.depth(), 1);
        check(&ignores, "web/keep.yaml", EntryKind::File, true);
    }

    #[test]
    fn an_ignore_file_is_read_whatever_its_editor_puts_around_lines() {
        let ignored = |text: &str| {
            let mut ignores = IgnoreFiles::default();
            ignores.push(b"", text.as_bytes()).unwrap();
            ["a.yaml", "b.yaml"].map(|name| ignores.is_ignored(name.as_bytes(), EntryKind::File))
        };
        assert_eq!(ignored("/a.yaml\nc.yaml\n"), [true, false]);
        assert_eq!(ignored("\u{feff}/a.yaml\r\nc.yaml\r\n"), [true, false]);
        assert_eq!(ignored("\u{feff}# all\r\nb.yaml"), [false, true]);
    }

    #[test]
    fn an_ignore_file_that_cannot_be_understood_says_nothing_and_names_its_line() {
        let mut ignores = IgnoreFiles::default();
        let error = ignores.push(b"", b"a.yaml\n{b\n").unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
        assert_eq!(ignores.push(b"", b"\xff"), Err("not UTF-8".to_owned()));
        assert_eq!(ignores.depth(), 0);
    }

    #[test]
    fn only_a_text_of_the_size_and_beginning_of_an_lfs_pointer_is_one() {
        let check = |begin: &[u8], bytes: usize, expected: Option<RefusalReason>| {
            let mut text = begin.to_vec();
            text.resize(bytes, b'x');
            assert_eq!(refused_content(&text), expected, "{bytes} bytes");
        };
        for (bytes, expected) in
            [(99, None), (100, Some(RefusalReason::Lfs)), (250, Some(RefusalReason::Lfs)), (251, None)]
        {
            check(LFS_PREFIX, bytes, expected);
            check(b"version: 1", bytes, None);
        }
    }
}
