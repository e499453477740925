//! The deletions that wait for a person, as the inventory of a source lists them: one line of JSON
//! each.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::engine::{Uid, object_word, parse_object_word};
use crate::object::ObjectId;

/// One deletion that waits for a person's confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingPrune {
    /// The incarnation that is to go.
    pub uid: Uid,
    /// The object.
    pub id: ObjectId,
    /// The reason for which a person has to confirm.
    pub reason: String,
}

/// The form of a [`PendingPrune`] in JSON.
#[derive(Serialize, Deserialize)]
struct PendingPruneText<'a> {
    uid: Cow<'a, str>,
    object: Cow<'a, str>,
    reason: Cow<'a, str>,
}

impl PendingPrune {
    /// Returns its line, without the end of that.
    pub(crate) fn line(&self) -> String {
        let text = PendingPruneText {
            uid: (&*self.uid.0).into(),
            object: object_word(&self.id).into(),
            reason: self.reason.as_str().into(),
        };
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// Reads its line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        if !line.starts_with('{') {
            return Self::parse_older(line);
        }
        let read: PendingPruneText<'_> = serde_json::from_str(line).ok()?;
        let id = parse_object_word(&read.object)?;
        Some(Self { uid: Uid((&*read.uid).into()), id, reason: read.reason.into_owned() })
    }

    /// Reads the line of an earlier version: `<uid> ConfigMap shop/env <reason>`.
    fn parse_older(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let (uid, kind, name, reason) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let id = parse_older_object(kind, name)?;
        Some(Self { uid: Uid(uid.into()), id, reason: reason.to_owned() })
    }
}

/// The characters that would have ended a name or its line in an earlier version, and what stood
/// for them. Names of RBAC objects may hold all of them.
const OLDER_ESCAPES: [(&str, &str); 3] = [(" ", "%20"), ("\n", "%0A"), ("\r", "%0D")];

/// Reads an object from the two words of an earlier version: `ConfigMap shop/env`.
pub(in crate::engine) fn parse_older_object(kind: &str, name: &str) -> Option<ObjectId> {
    let (namespace, name) = name.split_once('/')?;
    let name = OLDER_ESCAPES.iter().fold(name.to_owned(), |name, (plain, coded)| name.replace(coded, plain));
    parse_object_word(&format!("{kind}/{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    #[test]
    fn each_is_one_line_and_no_name_is_read_as_another_or_as_two() {
        for name in
            ["env", "a b", "it's 2 of 7", "a\n{\"uid\":\"u\"}", "a\r\n", "system:auth", "a%20b", "\"\\"]
        {
            let kind = GroupKind::new("rbac.authorization.k8s.io", "ClusterRole");
            let id = ObjectId::new(&kind, None, name);
            let pending =
                PendingPrune { uid: Uid("5a1c".into()), id, reason: "it is \"named\"\nalone".into() };
            let line = pending.line();
            assert_eq!(line.lines().count(), 1, "{line}");
            assert_eq!(PendingPrune::parse(&line), Some(pending), "{line}");
        }
    }

    #[test]
    fn a_line_says_uid_object_and_reason() {
        let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "env");
        let pending = PendingPrune { uid: Uid("5a1c".into()), id, reason: "it is named".into() };
        let line = r#"{"uid":"5a1c","object":"ConfigMap/shop/env","reason":"it is named"}"#;
        assert_eq!(pending.line(), line);
        // A key that a later version adds is passed over.
        let longer = line.replace('}', r#","more":1}"#);
        assert_eq!(PendingPrune::parse(&longer), Some(pending));
    }

    #[test]
    fn lines_of_an_earlier_version_are_read() {
        let check = |line: &str, expected: Option<(&str, &str)>| {
            let read = PendingPrune::parse(line);
            let read = read.as_ref().map(|one| (object_word(&one.id), one.reason.clone()));
            let expected = expected.map(|(object, reason)| (object.to_owned(), reason.to_owned()));
            assert_eq!(read, expected, "{line}");
        };
        check("5a1c ConfigMap shop/env it is named", Some(("ConfigMap/shop/env", "it is named")));
        let role = "ClusterRole.rbac.authorization.k8s.io";
        let object = format!("{role}//a b\n");
        check(&format!("5a1c {role} /a%20b%0A x"), Some((object.as_str(), "x")));
        check("5a1c ConfigMap env it is named", None);
        check("5a1c ConfigMap shop/env", None);
        check("garbage", None);
        check("", None);
        check(r#"{"uid":"5a1c","object":"env","reason":"x"}"#, None);
    }
}
