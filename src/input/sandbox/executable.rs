//! The files that a program needs to start: its own, and the loader and libraries of one that is
//! linked at run time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The bytes of a header of the file, and of one of its segments.
const ELF_HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
/// Segments that are looked at; real programs have about a dozen.
const MAX_SEGMENTS: u16 = 64;
/// The longest path of a loader that is read.
const MAX_LOADER_PATH_BYTES: u64 = 4096;
/// The kind of segment that names the loader.
const INTERPRETER_SEGMENT: u32 = 3;

/// The folders and files that hold the libraries of the system. None of them holds a secret.
const LIBRARY_PATHS: [&str; 7] =
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/ld.so.preload"];
/// Stores of systems that keep each library in a folder of its own.
const PACKAGE_STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// The way in which a program is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgramLinkage {
    /// It needs no other file.
    Static,
    /// It is started by this loader.
    Loader(PathBuf),
}

impl ProgramLinkage {
    /// Returns what of the system's libraries is there to be read.
    pub(super) fn libraries(&self) -> Vec<PathBuf> {
        let Self::Loader(loader) = self else { return Vec::new() };
        let store = PACKAGE_STORES.into_iter().filter(|store| loader.starts_with(store));
        LIBRARY_PATHS.into_iter().chain(store).map(PathBuf::from).filter(|path| path.exists()).collect()
    }
}

/// The reason for which a file is no program that can be sandboxed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkageError {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("is a script, which a shell would have to run: name the program that it starts")]
    Script,
    #[error("is no program of this machine")]
    NoProgram,
}

/// Reads how a program is linked from its headers.
pub(super) fn read(path: &Path) -> Result<ProgramLinkage, LinkageError> {
    let mut file = crate::secret::open_regular(path)?;
    let mut start = Vec::with_capacity(ELF_HEADER_BYTES);
    file.by_ref().take(ELF_HEADER_BYTES as u64).read_to_end(&mut start)?;
    if start.starts_with(b"#!") {
        return Err(LinkageError::Script);
    }
    // A file of 64 bits, with the least significant byte first.
    if !start.starts_with(b"\x7fELF\x02\x01") {
        return Err(LinkageError::NoProgram);
    }
    let header = ElfReader(&start);
    let begin = header.word(32)?;
    let (size, count) = (header.read_u16(54)?, header.read_u16(56)?);
    if usize::from(size) < PROGRAM_HEADER_BYTES || count > MAX_SEGMENTS {
        return Err(LinkageError::NoProgram);
    }
    for number in 0..u64::from(count) {
        let at = begin.checked_add(number * u64::from(size)).ok_or(LinkageError::NoProgram)?;
        let segment = part(&mut file, at, PROGRAM_HEADER_BYTES as u64)?;
        let segment = ElfReader(&segment);
        if segment.read_u32(0)? == INTERPRETER_SEGMENT {
            let length = segment.word(32)?.min(MAX_LOADER_PATH_BYTES);
            let name = part(&mut file, segment.word(8)?, length)?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            return Ok(ProgramLinkage::Loader(Path::new(std::ffi::OsStr::from_bytes(name)).to_owned()));
        }
    }
    Ok(ProgramLinkage::Static)
}

fn part(file: &mut File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bytes with numbers in them.
struct ElfReader<'a>(&'a [u8]);

impl ElfReader<'_> {
    fn array<const N: usize>(&self, from: usize) -> Result<[u8; N], LinkageError> {
        let bytes = self.0.get(from..from + N).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or(LinkageError::NoProgram)
    }

    fn read_u16(&self, from: usize) -> Result<u16, LinkageError> {
        self.array(from).map(u16::from_le_bytes)
    }

    fn read_u32(&self, from: usize) -> Result<u32, LinkageError> {
        self.array(from).map(u32::from_le_bytes)
    }

    fn word(&self, from: usize) -> Result<u64, LinkageError> {
        self.array(from).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a program with these segments, each a kind and the text that it points to.
    fn program(segments: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; ELF_HEADER_BYTES];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32..40].copy_from_slice(&(ELF_HEADER_BYTES as u64).to_le_bytes());
        bytes[54..56].copy_from_slice(&(PROGRAM_HEADER_BYTES as u16).to_le_bytes());
        bytes[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
        let mut texts = Vec::new();
        for (kind, text) in segments {
            let mut segment = [0; PROGRAM_HEADER_BYTES];
            segment[..4].copy_from_slice(&kind.to_le_bytes());
            let at = ELF_HEADER_BYTES + segments.len() * PROGRAM_HEADER_BYTES + texts.len();
            segment[8..16].copy_from_slice(&(at as u64).to_le_bytes());
            segment[32..40].copy_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend(segment);
            texts.extend_from_slice(text);
        }
        [bytes, texts].concat()
    }

    fn linkage(bytes: &[u8]) -> Result<ProgramLinkage, String> {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("program");
        std::fs::write(&path, bytes).unwrap();
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_loader_is_found_and_what_is_no_program_is_reported() {
        #[track_caller]
        fn check(bytes: &[u8], expected: Result<ProgramLinkage, &str>) {
            assert_eq!(linkage(bytes), expected.map_err(str::to_owned));
        }
        const NO_PROGRAM: Result<ProgramLinkage, &str> = Err("is no program of this machine");
        let loader = |path: &str| Ok(ProgramLinkage::Loader(path.into()));
        check(&program(&[]), Ok(ProgramLinkage::Static));
        check(&program(&[(1, b"text"), (2, b"")]), Ok(ProgramLinkage::Static));
        check(&program(&[(1, b"text"), (3, b"/lib/ld.so\0")]), loader("/lib/ld.so"));
        check(&program(&[(3, b"/lib/ld.so")]), loader("/lib/ld.so"));
        check(b"", NO_PROGRAM);
        check(b"apiVersion: v1", NO_PROGRAM);
        check(&program(&[(3, b"/lib/ld.so\0")])[..ELF_HEADER_BYTES + 8], NO_PROGRAM);
        check(&program(&[])[..40], NO_PROGRAM);
        check(
            b"#!/bin/sh\n",
            Err("is a script, which a shell would have to run: name the program that it starts"),
        );
    }

    #[test]
    fn this_program_names_a_loader_that_is_there() {
        let linkage = read(&std::env::current_exe().unwrap()).unwrap();
        if let ProgramLinkage::Loader(loader) = &linkage {
            assert!(loader.is_absolute() && loader.exists(), "{loader:?}");
            assert!(linkage.libraries().iter().any(|path| loader.starts_with(path)), "{linkage:?}");
        }
    }
}
