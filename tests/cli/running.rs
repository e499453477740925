//! The words of `rhumb run` before it runs.

use insta::assert_snapshot;

use crate::fixture::Fixture;

#[test]
fn a_daemon_that_speaks_json_says_nothing_else() {
    let fixture =
        Fixture::new(&[("bad.yaml", "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresnyc: 5m\n")]);
    for (line, code, expected) in [
        ("run --config bad.yaml --log-format json", 78, ["unknown key `resnyc`", "no usable configuration"]),
        ("run --config none.yaml --log-format json", 78, ["cannot read none.yaml", "no such file"]),
        ("run . --ref main --log-format json", 2, ["is in no git repository", "name a repository as SOURCE"]),
    ] {
        let output = fixture.command(line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        for line in said.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{said}"));
            assert!(line["timestamp"].is_string() && line["message"].is_string(), "{line}");
            assert_eq!(line["level"], "ERROR", "{line}");
        }
        assert!(expected.iter().all(|text| said.contains(text)), "{said}");
    }
    // Other commands speak to people.
    let shown = fixture.run("diff none --log-format json");
    assert!(shown.contains("\nerror: none"), "{shown}");
}

#[test]
fn run_has_a_source_or_a_configuration() {
    let fixture = Fixture::new(&[("bad.yaml", "kind: [")]);
    assert_snapshot!(fixture.run("run --config bad.yaml"), @r"
    $ rhumb run --config bad.yaml
    --- standard error
    bad.yaml:1:7: error: unclosed bracket '['
        kind: [
              ^
    error: bad.yaml is no usable configuration: 1 error
    --- exit code 78
    ");
    assert_snapshot!(fixture.run("run --config nowhere.yaml"), @r"
    $ rhumb run --config nowhere.yaml
    --- standard error
    error: cannot read nowhere.yaml: no such file or directory
    --- exit code 78
    ");
    assert_snapshot!(fixture.run("run --config rhumb.yaml --source shop"), @r"
    $ rhumb run --config rhumb.yaml --source shop
    --- standard error
    error: --source cannot be used with --config
    hint: the file says it for each source
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("run --config rhumb.yaml shop"), @r"
    $ rhumb run --config rhumb.yaml shop
    --- standard error
    error: the argument '--config <FILE>' cannot be used with '[SOURCE]'

    Usage: rhumb run [OPTIONS] <SOURCE>
           rhumb run [OPTIONS] --config <FILE>

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_snapshot!(fixture.run("run"), @r"
    $ rhumb run
    --- standard error
    error: the following required arguments were not provided:
      <SOURCE>

    Usage: rhumb run [OPTIONS] <SOURCE>
           rhumb run [OPTIONS] --config <FILE>

    For more information, try '--help'.
    --- exit code 2
    ");
}
