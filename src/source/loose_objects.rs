//! Reads loose objects of a repository that others write, and copies them into a store of ours. So
//! a commit that was just made costs no process.
//!
//! Such a file holds one whole object, and no delta of another one. So reading it takes no more
//! memory than it may have. A child copies packed objects, larger ones, and those with another
//! name.
//! The format: <https://git-scm.com/book/en/v2/Git-Internals-Git-Objects>, "Object Storage".

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use flate2::read::ZlibDecoder;
use git2::{ObjectType, Oid, Repository};

use super::folder::{FileReadResult, OpenFolder};

/// The largest object that is read here, packed or not. A manifest has less.
const MAX_OBJECT_BYTES: u64 = 1 << 20;

/// The most that one commit brings: a larger one is worth a process.
const MAX_COPY_BYTES: u64 = 16 << 20;

/// The most objects of one commit.
const MAX_COPY_OBJECTS: usize = 1_000;

/// The longest header: the type, a space, the size in digits and a zero byte.
const MAX_HEADER_BYTES: u64 = 32;

/// The loose objects of a repository.
pub(super) struct LooseObjects {
    folder: OpenFolder,
    objects: usize,
    bytes: u64,
}

impl LooseObjects {
    /// Returns those in a folder of objects. None where it cannot be opened, or a link leads there:
    /// the link may lead to a repository that only this user may read.
    pub(super) fn open(folder: &Path) -> Option<Self> {
        let folder = OpenFolder::open_without_links(folder)?;
        Some(Self { folder, objects: 0, bytes: 0 })
    }

    /// Copies an object into a store. Returns whether it is there now.
    pub(super) fn copy(&mut self, id: Oid, kind: ObjectType, store: &Repository) -> bool {
        let Some(content) = self.read(id, kind) else { return false };
        let written = store.odb().and_then(|odb| odb.write(kind, &content));
        written.is_ok_and(|written| written == id)
    }

    /// Returns the bytes that were copied.
    pub(super) const fn copied_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the content of an object of this type, whose id it has.
    pub(super) fn read(&mut self, id: Oid, kind: ObjectType) -> Option<Vec<u8>> {
        if self.objects >= MAX_COPY_OBJECTS {
            return None;
        }
        let name = id.to_string();
        let (folder, file) = name.split_at(2);
        let read = self.folder.read(&format!("{folder}/{file}"), MAX_OBJECT_BYTES).ok()?;
        let FileReadResult::Whole(_, packed) = read else { return None };
        let content = unpack(&packed, kind)?;
        self.objects += 1;
        self.bytes += content.len() as u64;
        let is_named = Oid::hash_object(kind, &content).is_ok_and(|found| found == id);
        (is_named && self.bytes <= MAX_COPY_BYTES).then_some(content)
    }
}

/// Returns the content of an object of this type out of its file.
fn unpack(packed: &[u8], kind: ObjectType) -> Option<Vec<u8>> {
    let mut stream = BufReader::new(ZlibDecoder::new(packed));
    let mut header = Vec::new();
    (&mut stream).take(MAX_HEADER_BYTES).read_until(0, &mut header).ok()?;
    let header = std::str::from_utf8(header.strip_suffix(b"\0")?).ok()?;
    let size: u64 = header.strip_prefix(kind.str())?.strip_prefix(' ')?.parse().ok()?;
    if size > MAX_OBJECT_BYTES {
        return None;
    }
    let mut content = Vec::new();
    (&mut stream).take(size + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 == size).then_some(content)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use tempfile::TempDir;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn an_object_is_what_its_header_says_and_nothing_else() {
        let check = |text: &[u8], expected: Option<&[u8]>| {
            let found = unpack(&packed(text), ObjectType::Blob);
            assert_eq!(found.as_deref(), expected, "{}", String::from_utf8_lossy(text));
        };
        check(b"blob 3\0abc", Some(b"abc"));
        check(b"blob 0\0", Some(b""));
        check(b"blob 3\0abcd", None);
        check(b"blob 4\0abc", None);
        check(b"tree 3\0abc", None);
        check(b"blob3\0abc", None);
        check(b"blob -3\0abc", None);
        check(b"blob 3", None);
        check(b"", None);
        check(b"blob 99999999999999999999999999999999\0abc", None);
        check(&vec![b'x'; 1 << 20], None);
        let largest = vec![b'x'; 1 << 20];
        check(&[b"blob 1048576\0", largest.as_slice()].concat(), Some(&largest));
        check(&[b"blob 1048577\0x", largest.as_slice()].concat(), None);
        assert_eq!(unpack(b"no zlib", ObjectType::Blob), None);
    }

    #[test]
    fn only_objects_that_have_their_own_name_are_read_and_only_so_many() {
        let dir = TempDir::new().unwrap();
        let put = |name: &str, content: &[u8]| {
            let (folder, file) = name.split_at(2);
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            let text = [format!("blob {}\0", content.len()).as_bytes(), content].concat();
            std::fs::write(dir.path().join(folder).join(file), packed(&text)).unwrap();
        };
        let id_of = |content: &[u8]| Oid::hash_object(ObjectType::Blob, content).unwrap();
        let read = |loose: &mut LooseObjects, id: Oid| loose.read(id, ObjectType::Blob);
        put(&id_of(b"one").to_string(), b"one");
        put(&id_of(b"two").to_string(), b"three");
        let mut loose = LooseObjects::open(dir.path()).unwrap();
        assert_eq!(read(&mut loose, id_of(b"one")).as_deref(), Some(b"one".as_slice()));
        assert_eq!(loose.read(id_of(b"one"), ObjectType::Tree), None);
        assert_eq!(read(&mut loose, id_of(b"two")), None);
        assert_eq!(read(&mut loose, id_of(b"three")), None);
        // A link leads to the same bytes, and is not followed.
        let (one, four) = (id_of(b"one").to_string(), id_of(b"four").to_string());
        std::fs::create_dir_all(dir.path().join(&four[..2])).unwrap();
        let link = dir.path().join(&four[..2]).join(&four[2..]);
        std::os::unix::fs::symlink(dir.path().join(&one[..2]).join(&one[2..]), link).unwrap();
        assert_eq!(read(&mut loose, id_of(b"four")), None);

        // Nor is a link to the whole folder, or to one on the way to it.
        let other = TempDir::new().unwrap();
        std::os::unix::fs::symlink(dir.path(), other.path().join("objects")).unwrap();
        assert!(LooseObjects::open(&other.path().join("objects")).is_none());
        let (folder, _) = one.split_at(2);
        assert!(LooseObjects::open(&other.path().join("objects").join(folder)).is_none());

        let large: Vec<Vec<u8>> = (0..17_u8).map(|number| vec![number; 1_000_000]).collect();
        for content in &large {
            put(&id_of(content).to_string(), content);
        }
        let mut loose = LooseObjects::open(dir.path()).unwrap();
        let found: Vec<bool> =
            large.iter().map(|content| read(&mut loose, id_of(content)).is_some()).collect();
        assert_eq!(found, [vec![true; 16], vec![false]].concat());
        let mut loose = LooseObjects::open(dir.path()).unwrap();
        let reads = (0..MAX_COPY_OBJECTS).filter(|_| read(&mut loose, id_of(b"one")).is_some());
        assert_eq!(reads.count(), MAX_COPY_OBJECTS);
        assert_eq!(read(&mut loose, id_of(b"one")), None);
    }
}
