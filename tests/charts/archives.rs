//! Archives of charts, well made and not.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// Returns a chart with one template that says this.
pub(crate) fn chart(name: &str, version: &str, word: &str) -> Vec<u8> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let template = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {word}}}\n");
    let file = |path: &str, text: &str| (format!("{name}/{path}"), EntryType::Regular, text.to_owned());
    archive(&[file("Chart.yaml", &metadata), file("templates/a.yaml", &template)])
}

/// Returns a chart `web` 1.0.0 with one more entry.
pub(crate) fn chart_with(path: &str, kind: EntryType) -> Vec<u8> {
    let metadata = "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned();
    let entries =
        [("web/Chart.yaml".to_owned(), EntryType::Regular, metadata), (path.to_owned(), kind, String::new())];
    archive(&entries)
}

/// Returns an archive with these names as they are, which a builder would refuse.
pub(crate) fn archive(entries: &[(String, EntryType, String)]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, kind, text) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    gzip(&tar.into_inner().unwrap())
}

/// Returns a chart `web` 1.0.0 of a few kilobytes, with a file of so many zeros.
pub(crate) fn bomb(zeros: usize) -> Vec<u8> {
    let metadata = "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned();
    archive(&[
        ("web/Chart.yaml".to_owned(), EntryType::Regular, metadata),
        ("web/files/zeros".to_owned(), EntryType::Regular, "\0".repeat(zeros)),
    ])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
