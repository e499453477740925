use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use super::*;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.2.3\n";

fn reference() -> ChartReference {
    ChartReference { repository: "https://example.org".into(), name: "web".into(), version: "v1.2.3".into() }
}

/// An entry of an archive.
#[derive(Clone, Copy)]
struct Item<'a> {
    name: &'a [u8],
    kind: EntryType,
    content: &'a [u8],
}

fn file<'a>(name: &'a str, content: &'a str) -> Item<'a> {
    Item { name: name.as_bytes(), kind: EntryType::Regular, content: content.as_bytes() }
}

fn other(name: &str, kind: EntryType) -> Item<'_> {
    Item { name: name.as_bytes(), kind, content: b"" }
}

/// Adds an entry whose name is in its header as it is, which a builder would refuse.
fn append(tar: &mut Builder<Vec<u8>>, item: Item<'_>) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..item.name.len()].copy_from_slice(item.name);
    header.set_entry_type(item.kind);
    if matches!(item.kind, EntryType::Symlink | EntryType::Link) {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_size(item.content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append(&header, item.content).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn archive(items: &[Item<'_>]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for item in items {
        append(&mut tar, *item);
    }
    gzip(&tar.into_inner().unwrap())
}

/// Returns a chart with more in it.
fn with(items: &[Item<'_>]) -> Vec<u8> {
    archive(&[&[file("web/Chart.yaml", CHART)], items].concat())
}

fn read(archive: &[u8]) -> Result<Vec<String>, String> {
    let files = unpack(archive, &reference(), UnpackLimits::default());
    let path = |file: ChartFile| file.path;
    files.map(|files| files.into_iter().map(path).collect()).map_err(|error| error.to_string())
}

#[test]
fn a_chart_is_its_files() {
    let items = [
        other("web/templates/", EntryType::Directory),
        file("web/templates/a.yaml", "a"),
        file("web/charts/part/Chart.yaml", "b"),
        other("pax_global_header", EntryType::XGlobalHeader),
    ];
    let expected = ["Chart.yaml", "charts/part/Chart.yaml", "templates/a.yaml"].map(str::to_owned);
    assert_eq!(read(&with(&items)), Ok(expected.to_vec()));
    let dotted = [other("./", EntryType::Directory), file("./web/Chart.yaml", CHART)];
    assert_eq!(read(&archive(&dotted)), Ok(vec!["Chart.yaml".to_owned()]));
    // Some programs write an archive in several parts.
    let archive = with(&[file("web/a", "a")]);
    let mut tar = Vec::new();
    MultiGzDecoder::new(&*archive).read_to_end(&mut tar).unwrap();
    let parts = [gzip(&tar[..700]), gzip(&tar[700..])].concat();
    assert_eq!(read(&parts), read(&archive));
}

#[test]
fn a_long_name_is_read_completely() {
    let mut tar = Builder::new(Vec::new());
    append(&mut tar, file("web/Chart.yaml", CHART));
    let name = format!("web/{}/{}", "a".repeat(150), "b".repeat(150));
    let mut header = Header::new_gnu();
    header.set_size(1);
    tar.append_data(&mut header, &name, &b"a"[..]).unwrap();
    let files = read(&gzip(&tar.into_inner().unwrap())).unwrap();
    assert_eq!(files[1], name[4..]);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    #[track_caller]
    fn check(name: &[u8], reason: &str) {
        let item = Item { name, kind: EntryType::Regular, content: b"a" };
        let error = read(&with(&[item])).unwrap_err();
        assert!(error.ends_with(&format!("has a name that {reason}")), "{name:?}: {error}");
        let folder = Item { kind: EntryType::Directory, content: b"", ..item };
        assert!(name == b"." || read(&with(&[folder])).is_err(), "{name:?}");
    }
    for name in ["web/../../a", "../a", "..", "web/..", "web/./a", "web//a", ".", "./../a"] {
        check(name.as_bytes(), "has an empty part, `.` or `..`");
    }
    check(b"/etc/passwd", "is absolute");
    for name in ["web\\a", "web/..\\..\\a", "web/a\nb", "web/\u{1b}[31m"] {
        check(name.as_bytes(), "has a backslash or a control character");
    }
    check(b"web/\xff", "is no text");
    check(["a"; 40].join("/").as_bytes(), "is too long");
    let trailing = read(&with(&[file("web/a/", "a")])).unwrap_err();
    assert!(trailing.contains("an empty part"), "{trailing}");
}

// The pax form may carry any bytes.
#[test]
fn a_name_with_a_zero_byte_is_refused() {
    let mut tar = Builder::new(Vec::new());
    append(&mut tar, file("web/Chart.yaml", CHART));
    tar.append_pax_extensions([("path", &b"web/a\0b"[..])]).unwrap();
    append(&mut tar, file("web/plain", "a"));
    let error = read(&gzip(&tar.into_inner().unwrap())).unwrap_err();
    assert!(error.contains("control character"), "{error}");
}

#[test]
fn links_devices_and_pipes_are_refused() {
    for (kind, word) in [
        (EntryType::Symlink, "a link"),
        (EntryType::Link, "a link"),
        (EntryType::Char, "a device"),
        (EntryType::Block, "a device"),
        (EntryType::Fifo, "a pipe"),
        (EntryType::Continuous, "of an odd kind"),
        (EntryType::new(b'V'), "of an odd kind"),
    ] {
        let error = read(&with(&[other("web/a", kind)])).unwrap_err();
        assert_eq!(error, format!("its entry \"web/a\" is {word}, and no file or folder"));
    }
    let sparse = read(&with(&[other("web/a", EntryType::GNUSparse)]));
    assert!(sparse.is_err(), "{sparse:?}");
}

#[test]
fn one_name_occurs_once() {
    let duplicates: [&[Item<'_>]; 6] = [
        &[file("web/Chart.yaml", CHART)],
        &[file("web/a", "1"), file("web/a", "2")],
        &[file("web/a", "1"), file("./web/a", "2")],
        &[file("web/a", "1"), file("web/a/b", "2")],
        &[file("web/a/b", "1"), file("web/a", "2")],
        &[other("web/a/", EntryType::Directory), file("web/a", "2")],
    ];
    for items in duplicates {
        let error = read(&with(items)).unwrap_err();
        assert!(error.contains("it has the file ") && error.ends_with("twice"), "{error}");
    }
}

#[test]
fn it_is_the_one_folder_of_the_chart_that_was_asked_for() {
    #[track_caller]
    fn check(items: &[Item<'_>], expected: &str) {
        assert_eq!(read(&archive(items)), Err(expected.to_owned()));
    }
    let chart = |name: &str, version: &str| format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    check(&[], "its Chart.yaml is missing");
    check(&[file("Chart.yaml", CHART)], "it has \"Chart.yaml\" beside the folder \"Chart.yaml\"");
    check(&[file("web/a", "")], "its Chart.yaml is missing");
    check(&[file("web/Chart.yaml", "")], "its Chart.yaml cannot be read");
    check(&[file("web/Chart.yaml", CHART), file("b/a", "")], "it has \"b/a\" beside the folder \"web\"");
    check(&[file("b/Chart.yaml", CHART)], "its folder is \"b\", and \"web\" was asked for");
    for name in ["..", "../web", "web2", "[web]"] {
        let error = read(&archive(&[file("web/Chart.yaml", &chart(name, "1.2.3"))])).unwrap_err();
        assert!(error.starts_with("its name is ") && error.ends_with("\"web\" was asked for"), "{error}");
    }
    let dots = ChartReference { name: "..".into(), ..reference() };
    let error =
        unpack(&archive(&[file("../Chart.yaml", &chart("'..'", "1.2.3"))]), &dots, UnpackLimits::default());
    assert!(matches!(error, Err(UnpackError::Name { .. })), "{error:?}");
    check(
        &[file("web/Chart.yaml", &chart("web", "1.2.4"))],
        "its version is \"1.2.4\", and \"v1.2.3\" was asked for",
    );
}

#[test]
fn a_number_as_name_or_version_is_what_helm_reads_in_it() {
    #[track_caller]
    fn check(name: &str, version: &str, expected: Result<usize, &str>) {
        let text = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
        let wanted = ChartReference { name: "2048".into(), version: "1".into(), ..reference() };
        let archive = archive(&[file("2048/Chart.yaml", &text)]);
        let files = unpack(&archive, &wanted, UnpackLimits::default()).map(|files| files.len());
        assert_eq!(files.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }
    check("2048", "1", Ok(1));
    check("'2048'", "'1'", Ok(1));
    check("0x800", "1.0", Ok(1));
    check("2049", "1", Err("its name is \"2049\", and \"2048\" was asked for"));
    check("true", "1", Err("its name is \"\", and \"2048\" was asked for"));
    check("2048", "1.1", Err("its version is \"1.1\", and \"1\" was asked for"));
}

#[test]
fn what_is_too_large_ends_by_count() {
    let limits = UnpackLimits { archive: 1 << 20, total: 100_000, file: 5_000, entries: 20 };
    let check = |archive: &[u8], expected: &str| {
        let error = unpack(archive, &reference(), limits).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let long = "a".repeat(5_001);
    check(&with(&[file("web/a", &long)]), "it has more than 5000 bytes in one file");
    let names: Vec<String> = (0..20).map(|number| format!("web/{number}")).collect();
    let many: Vec<_> = names.iter().map(|name| file(name, "")).collect();
    check(&with(&many), "it has more than 20 entries");
    let full = "a".repeat(5_000);
    let many: Vec<_> = names[..19].iter().map(|name| file(name, &full)).collect();
    check(&with(&many), "it has more than 100000 bytes when unpacked");
    check(&vec![0; (1 << 20) + 1], "it has more than 1048576 bytes");
    // Files of one kind that are passed over count too, and so does what is in a long name.
    let large = vec![b'a'; 200_000];
    let skipped = Item { content: &large, ..other("pax_global_header", EntryType::XGlobalHeader) };
    check(&with(&[skipped]), "it has more than 100000 bytes when unpacked");
    let long_name = Item { content: &large, ..other("././@LongLink", EntryType::GNULongName) };
    check(&with(&[long_name, file("web/a", "")]), "it has more than 100000 bytes when unpacked");
}

/// Unpacks many zeros from a small archive.
#[test]
fn a_bomb_takes_no_memory() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let mut tar = Builder::new(Vec::new());
    append(&mut tar, file("web/Chart.yaml", CHART));
    encoder.write_all(&tar.into_inner().unwrap()[..1024]).unwrap();
    let mut header = Header::new_gnu();
    header.set_path("web/a").unwrap();
    header.set_size(128 << 20);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..128 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    assert_eq!(read(&bomb), Err("it has more than 5242880 bytes in one file".to_owned()));
}

#[test]
fn what_is_no_archive_is_reported() {
    for bytes in [&b""[..], b"\x1f\x8b", b"apiVersion: v2\n", &with(&[])[..40]] {
        let error = read(bytes).unwrap_err();
        assert!(error.starts_with("it cannot be read: "), "{bytes:?}: {error}");
    }
    let archive = with(&[file("web/a", &"random 1 2 3 text".repeat(99))]);
    for length in [archive.len() / 2, archive.len() - 9] {
        let error = read(&archive[..length]).unwrap_err();
        assert!(error.starts_with("it cannot be read: "), "{error}");
    }
}
