//! Reads loose objects of a repository that others write, and copies them into a store of ours. So
//! a commit that was just made costs no process.
//!
//! Such a file holds one whole object, and no delta of another one. So reading it takes no more
//! memory than it may have. A child copies packed objects, larger ones, and those with another
//! name.
//! The format: <https://git-scm.com/book/en/v2/Git-Internals-Git-Objects>, "Object Storage".

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use flate2::read::ZlibDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use git2::{ObjectType, Oid};

use super::folder::{FileReadResult, OpenFolder};
use super::tree_builder::ObjectSink;

/// The largest object that is read here, packed or not. A manifest has less.
const MAX_OBJECT_BYTES: u64 = 1 << 20;

/// The most that one commit brings: a larger one is worth a process.
const MAX_COPY_BYTES: u64 = 16 << 20;

/// The most objects of one commit.
const MAX_COPY_OBJECTS: usize = 1_000;

/// The bytes of a file that are looked at together.
const CHUNK_BYTES: usize = 16 << 10;

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
    pub(super) fn try_copy(&mut self, id: Oid, kind: ObjectType, store: &mut impl ObjectSink) -> bool {
        let Some(content) = self.read(id, kind) else { return false };
        store.put(kind, &content).is_ok_and(|written| written == id)
    }

    /// Returns the content of an object of this type, whose id it has.
    pub(super) fn read(&mut self, id: Oid, kind: ObjectType) -> Option<Vec<u8>> {
        if self.objects >= MAX_COPY_OBJECTS {
            return None;
        }
        let read = self.folder.read(&file_of(id), MAX_OBJECT_BYTES).ok()?;
        let FileReadResult::Whole(_, packed) = read else { return None };
        let content = unpack(&packed, kind)?;
        self.objects += 1;
        self.bytes += content.len() as u64;
        let is_named = Oid::hash_object(kind, &content).is_ok_and(|found| found == id);
        (is_named && self.bytes <= MAX_COPY_BYTES).then_some(content)
    }
}

/// Returns the path of an object's file in the folder of objects.
fn file_of(id: Oid) -> String {
    let name = id.to_string();
    let (folder, file) = name.split_at(2);
    format!("{folder}/{file}")
}

/// The content of a blob, as far as a store has it in a file of its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LooseBlob {
    /// There is no such file.
    Absent,
    /// All of it is there, and it has its own name.
    Sound(Vec<u8>),
    /// It is large, another object, or damaged. libgit2 says which.
    Unproven,
}

impl LooseBlob {
    /// Judges and reads the file of a blob in one pass.
    pub(super) fn read(folder: &Path, id: Oid) -> Self {
        let Ok(file) = File::open(folder.join(file_of(id))) else { return Self::Absent };
        read_sound(file, id).map_or(Self::Unproven, Self::Sound)
    }
}

fn read_sound(file: impl Read, id: Oid) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    file.take(MAX_OBJECT_BYTES).read_to_end(&mut packed).ok()?;
    let content = unpack(&packed, ObjectType::Blob)?;
    let is_named = Oid::hash_object(ObjectType::Blob, &content).is_ok_and(|found| found == id);
    is_named.then_some(content)
}

/// Returns whether a store has a file for an object, and the file ends before the object does.
/// One that is damaged in another way fails in libgit2 by itself.
pub(super) fn is_cut(folder: &Path, id: Oid) -> bool {
    let Ok(file) = File::open(folder.join(file_of(id))) else { return false };
    is_truncated(file).unwrap_or(false)
}

/// Returns whether a compressed stream ends before its end mark.
fn is_truncated(mut file: impl Read) -> io::Result<bool> {
    let mut stream = Decompress::new(true);
    let (mut input, mut output) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let count = match file.read(&mut input) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut chunk = input.get(..count).unwrap_or_default();
        loop {
            let (taken, given) = (stream.total_in(), stream.total_out());
            match stream.decompress(chunk, &mut output, FlushDecompress::None) {
                Ok(Status::StreamEnd) | Err(_) => return Ok(false),
                Ok(Status::Ok | Status::BufError) => {}
            }
            let used = (stream.total_in() - taken) as usize;
            chunk = chunk.get(used..).unwrap_or_default();
            if used == 0 && stream.total_out() == given {
                break;
            }
        }
        if count == 0 {
            return Ok(true);
        }
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
    fn a_stream_without_its_end_is_told_from_one_that_is_whole_or_spoilt() {
        let check = |bytes: &[u8], expected: bool| {
            assert_eq!(is_truncated(bytes).unwrap(), expected, "{} bytes", bytes.len());
        };
        // One that is read in several pieces, and one that gives far more than it has.
        let noise: Vec<u8> =
            (0..50_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for content in [b"blob 3\0abc".as_slice(), b"", &noise, &vec![b'x'; 1 << 20]] {
            let stream = packed(content);
            check(&stream, false);
            check(&[stream.as_slice(), b"garbage"].concat(), false);
            for end in [0, 1, 2, stream.len() / 2, stream.len() - 1] {
                check(&stream[..end], true);
            }
        }
        check(b"no zlib", false);
    }

    #[test]
    fn a_blob_is_taken_in_one_pass_only_where_all_of_it_is_sound() {
        let dir = TempDir::new().unwrap();
        let check = |file: Option<&[u8]>, of: &[u8], expected: LooseBlob| {
            let id = Oid::hash_object(ObjectType::Blob, of).unwrap();
            let path = dir.path().join(file_of(id));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&path);
            if let Some(file) = file {
                std::fs::write(&path, file).unwrap();
            }
            assert_eq!(LooseBlob::read(dir.path(), id), expected, "{} bytes", file.unwrap_or_default().len());
        };
        let stream = packed(b"blob 3\0abc");
        check(None, b"abc", LooseBlob::Absent);
        check(Some(&stream), b"abc", LooseBlob::Sound(b"abc".to_vec()));
        check(Some(&packed(b"blob 0\0")), b"", LooseBlob::Sound(Vec::new()));
        check(Some(&packed(b"blob 3\0abd")), b"abc", LooseBlob::Unproven);
        check(Some(&packed(b"tree 3\0abc")), b"abc", LooseBlob::Unproven);
        check(Some(b"no zlib"), b"abc", LooseBlob::Unproven);
        // The checksum at the end counts too.
        for end in 0..stream.len() {
            check(Some(&stream[..end]), b"abc", LooseBlob::Unproven);
        }
        let large = vec![b'x'; (1 << 20) + 1];
        check(Some(&packed(&[b"blob 1048577\0", large.as_slice()].concat())), &large, LooseBlob::Unproven);
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
