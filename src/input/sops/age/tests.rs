use super::super::tests::sealing::{age_file, armored, header, identity, payload, secret, stanza};
use super::*;

fn identities(bytes: &[u8]) -> AgeIdentities {
    let lines: Vec<String> = bytes.iter().map(|byte| identity(*byte)).collect();
    AgeIdentities::parse(&lines.join("\n")).unwrap()
}

/// Opens a file for key 1.
fn opened(bytes: &[u8]) -> Result<Option<Vec<u8>>, AgeFault> {
    let opened = open_bytes(bytes, &identities(&[1]), &mut AttemptBudget::new());
    opened.map(|plain| plain.map(|plain| plain.to_vec()))
}

fn file(header: &str, chunks: &[&[u8]]) -> Vec<u8> {
    [header.as_bytes(), &payload(chunks)].concat()
}

#[test]
fn identities_are_read_between_comments() {
    let text = format!("# created: today\n# public key: age1x\n\n{}\r\n   \n{}", identity(1), identity(2));
    let identities = AgeIdentities::parse(&text).unwrap();
    let recipients: Vec<String> = identities.recipients().collect();
    assert_eq!(recipients.len(), 2);
    assert!(recipients.iter().all(|recipient| recipient.starts_with("age1") && recipient.len() == 62));
    // The answer of `age-keygen` for the same file.
    let text = include_str!("../tests/fixtures/identity.txt");
    let public = text.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    assert_eq!(AgeIdentities::parse(text).unwrap().recipients().next().as_deref(), Some(public));
}

#[test]
fn other_identities_are_refused_by_name_and_not_shown() {
    let good = identity(1);
    let line = |text: &str| format!("# comment\n{text}\n");
    for (text, expected) in [
        (String::new(), "there is no age identity in it"),
        ("# only comments\n".to_owned(), "there is no age identity in it"),
        (line("AGE-SECRET-KEY-PQ-1QQQ"), "line 2: post-quantum identities are not supported"),
        (line("AGE-PLUGIN-YUBIKEY-1QQQ"), "line 2: identities of plugins are not supported"),
        (line("-----BEGIN OPENSSH PRIVATE KEY-----"), "line 2: SSH keys are not supported"),
        (line("-----BEGIN RSA PRIVATE KEY-----"), "line 2: SSH keys are not supported"),
        (line("age1qqq"), "line 2: this is a recipient, which is public"),
        (line("canary"), "line 2: this is not an age identity"),
        (line(&good[..good.len() - 1]), "line 2: this is not an age identity"),
        (line(&good.replace("KEY-1", "KEY-1Q")), "line 2: this is not an age identity"),
        (line(&good.to_lowercase()), "line 2: this is not an age identity"),
        ("age-encryption.org/v1\n-> scrypt".to_owned(), "it is encrypted itself"),
        (armored(b"x"), "it is encrypted itself"),
        ("#".repeat(70_000), "it has more than 65536 bytes or 64 identities"),
        (format!("{good}\n").repeat(65), "it has more than 65536 bytes or 64 identities"),
    ] {
        let error = AgeIdentities::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains("canary"), "{error}");
    }
}

#[test]
fn identities_of_other_kinds_are_passed_over_beside_one_that_is_read() {
    let good = identity(1);
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA==\n-----END OPENSSH PRIVATE KEY-----";
    for other in ["AGE-PLUGIN-YUBIKEY-1QQQ", "AGE-SECRET-KEY-PQ-1QQQ", key] {
        for text in [format!("{good}\n{other}\n"), format!("{other}\n{good}\n")] {
            let read = AgeIdentities::parse(&text).map(|identities| identities.recipients().count());
            assert_eq!(read, Ok(1), "{text}");
        }
    }
    for slip in ["canary", "age1qqq", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbg=="] {
        let error = AgeIdentities::parse(&format!("{good}\n{slip}\n")).unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && !error.contains("canary"), "{error}");
    }
}

#[test]
fn a_file_opens_for_each_of_its_recipients() {
    let armored = age_file(&[3, 1, 2], b"plain");
    for (ours, expected) in [
        (&[1][..], Some(b"plain".to_vec())),
        (&[4, 2], Some(b"plain".to_vec())),
        (&[4, 5], None),
        (&[], None),
    ] {
        let ours = if ours.is_empty() { AgeIdentities::default() } else { identities(ours) };
        let opened = open(&armored, &ours, &mut AttemptBudget::new()).unwrap();
        assert_eq!(opened.map(|plain| plain.to_vec()), expected);
    }
}

#[test]
fn stanzas_of_other_kinds_are_passed_over() {
    let foreign = "-> ssh-ed25519 mhir0Q AAAA\n\n-> grease! x\nAAAA\n";
    let file = file(&header(&format!("{foreign}{}", stanza(1))), &[b"plain"]);
    assert_eq!(opened(&file), Ok(Some(b"plain".to_vec())));
}

#[test]
fn chunks_come_in_order_and_complete() {
    let chunk = vec![7; 64 << 10];
    let header = header(&stanza(1));
    let joined = |parts: &[&[u8]]| Ok(Some(parts.concat()));
    for parts in [&[b"".as_slice()][..], &[b"x"], &[&chunk], &[&chunk, b"x"], &[&chunk, &chunk]] {
        assert_eq!(opened(&file(&header, parts)), joined(parts));
    }
    let valid = file(&header, &[&chunk, b"x"]);
    let sealed = (64 << 10) + 16;
    let start = valid.len() - sealed - 17;
    let mut swapped = valid[..start].to_vec();
    swapped.extend_from_slice(&valid[start + sealed..]);
    swapped.extend_from_slice(&valid[start..start + sealed]);
    for (what, bytes) in [
        ("no payload", header.clone().into_bytes()),
        ("cut", valid[..valid.len() - 1].to_vec()),
        ("without the last chunk", valid[..start + sealed].to_vec()),
        ("extended", [valid.as_slice(), b"x"].concat()),
        ("swapped", swapped),
        ("an empty last chunk", file(&header, &[&chunk, b""])),
    ] {
        assert_eq!(opened(&bytes), Err(AgeFault::Payload), "{what}");
    }
}

#[test]
fn headers_are_read_strictly() {
    let one = stanza(1);
    let good = header(&one);
    let (share, body) = one.strip_prefix("-> X25519 ").unwrap().split_once('\n').unwrap();
    let low = "A".repeat(43);
    let malformed = AgeFault::Header("a recipient is malformed");
    for (what, text, expected) in [
        ("version", good.replace("/v1", "/v2"), AgeFault::Header("it is not of age v1")),
        ("no recipients", header(""), AgeFault::Header("it has no recipients")),
        ("no end", format!("age-encryption.org/v1\n{one}"), AgeFault::Header("it has no end")),
        ("not text", good.replace("X25519", "X2551é"), AgeFault::Header("it is not text")),
        ("MAC", good.replace("--- ", "---"), AgeFault::Header("its last line is malformed")),
        ("short MAC", good[..good.len() - 2].to_owned() + "\n", AgeFault::Header("its MAC is malformed")),
        ("another recipient", good.replace("---", "-> x\n\n---"), AgeFault::HeaderMac),
        ("no kind", header(&one.replace("-> X25519", "-> ")), malformed),
        ("two blanks", header(&one.replace("X25519 ", "X25519  ")), malformed),
        ("an argument more", header(&one.replace(share, &format!("{share} x"))), malformed),
        ("a short share", header(&one.replace(share, &share[1..])), malformed),
        ("a share of low order", header(&one.replace(share, &low)), malformed),
        ("a short body", header(&one.replace(body.trim(), &body.trim()[4..])), malformed),
        ("base64 with padding", header(&one.replace(share, &format!("{share}="))), malformed),
        ("a long line", header(&one.replace(body.trim(), &"A".repeat(68))), malformed),
        ("a passphrase", header(&format!("{one}-> scrypt AAAA 18\nAAAA\n")), AgeFault::Passphrase),
        ("256 and one", header(&one.repeat(257)), AgeFault::TooManyStanzas),
        ("ten thousand", header(&"-> x\n\n".repeat(10_000)), AgeFault::TooManyStanzas),
    ] {
        assert_eq!(opened(&file(&text, &[b"plain"])), Err(expected), "{what}");
    }
}

#[test]
fn armor_is_read_strictly() {
    let good = age_file(&[1], b"plain");
    let open =
        |text: &str| open(text, &identities(&[1]), &mut AttemptBudget::new()).map(|plain| plain.is_some());
    let lines: Vec<&str> = good.lines().collect();
    let without = |number: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != number).map(|(_, line)| *line);
        kept.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(open(&good), Ok(true));
    assert_eq!(open(&format!("\n  \n{}\n\n", good.replace('\n', "\r\n"))), Ok(true));
    for (what, text) in [
        ("no begin", without(0)),
        ("no end", without(lines.len() - 1)),
        ("more behind it", format!("{good}x")),
        ("a broken line", good.replacen('\n', "\n\n", 2)),
        ("a short line inside", lines[..2].join("\n") + "\nAAAA\n" + &lines[2..].join("\n")),
        ("a long line", good.replace(lines[1], &format!("{}{}", lines[1], "AAAA"))),
        ("other characters", good.replace(lines[1], &lines[1].replace('Y', "*"))),
        ("blanks without end", format!("{}{good}", "\n".repeat(2000))),
        ("no end of size", format!("{}\n{}", lines[0], format!("{}\n", lines[1]).repeat(2000))),
    ] {
        assert!(matches!(open(&text), Err(AgeFault::Armor(_))), "{what}: {:?}", open(&text));
    }
}

#[test]
fn attempts_are_counted_over_all_files() {
    let armored = age_file(&[3; 200], b"plain");
    let (ours, mut budget) = (identities(&[1]), AttemptBudget::new());
    let outcomes: Vec<_> =
        (0..6).map(|_| open(&armored, &ours, &mut budget).map(|plain| plain.is_some())).collect();
    assert_eq!(outcomes[..5], [Ok(false); 5]);
    assert_eq!(outcomes[5], Err(AgeFault::TooManyAttempts));
    drop(secret(1));
}
