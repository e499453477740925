//! The tokens of YAML.

use std::borrow::Cow;

use crate::manifest::scalar::ScalarTag;
use crate::manifest::tree::TextMark;

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    End,
    Directive,
    DocumentStart,
    DocumentEnd,
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    /// `-`
    BlockEntry,
    /// `,`
    FlowEntry,
    /// `?`, or the beginning of a key that has none.
    Key,
    /// `:`
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(ScalarTag),
    /// A scalar that is not quoted.
    Plain(Cow<'a, str>),
    /// A scalar in quotes or in block form.
    Quoted(Cow<'a, str>),
}

/// A token and its place.
#[derive(Clone, Debug)]
pub(super) struct YamlToken<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) mark: TextMark,
}
