//! The tokens of YAML.

use std::borrow::Cow;

use crate::manifest::scalar::Tag;
use crate::manifest::tree::Mark;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What<'a> {
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
    Tag(Tag),
    /// A scalar that is not quoted.
    Plain(Cow<'a, str>),
    /// A scalar in quotes or in block form.
    Quoted(Cow<'a, str>),
}

/// A token and its place.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) what: What<'a>,
    pub(super) mark: Mark,
}
