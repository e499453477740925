//! YAML text to a [`Tree`], over the events of the parser.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span};

use super::scalar::Tag;
use super::tree::{Fault, Kind, Mark, NodeId, Tree};
use super::{MAX_DEPTH, MAX_NODES};

/// Reads the first document of a text whose first line is `line` of its file. An empty tree stands for a
/// document of nothing but blanks and comments.
pub(super) fn read(text: &str, line: u32) -> Result<Tree<'_>, Fault> {
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        disallow_directives: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder { tree: Tree::over(text), line, open: Vec::new(), anchors: HashMap::new() };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| builder.fault(&error))?;
        if matches!(event, Event::DocumentEnd | Event::StreamEnd) {
            break;
        }
        builder.take(event, &span)?;
    }
    Ok(builder.tree)
}

struct Open {
    node: NodeId,
    last: Option<NodeId>,
}

struct Builder<'a> {
    tree: Tree<'a>,
    line: u32,
    open: Vec<Open>,
    anchors: HashMap<usize, NodeId>,
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'a>, span: &Span) -> Result<(), Fault> {
        let mark = self.mark(span.start.line(), span.start.col());
        if self.tree.len() >= MAX_NODES {
            return Err(Fault::new(
                mark,
                "too-many-nodes",
                format!("the document has more than {MAX_NODES} values"),
            )
            .hint("split it: an API server takes objects of at most 3 MiB"));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = if style == ScalarStyle::Plain { Kind::Plain } else { Kind::Quoted };
                let node = self.scalar(kind, tag_of(tag.as_deref()), mark, text);
                self.add(node, anchor);
            }
            Event::SequenceStart(_, anchor, tag) => self.begin(Kind::Sequence, anchor, tag.as_deref(), mark),
            Event::MappingStart(_, anchor, tag) => self.begin(Kind::Mapping, anchor, tag.as_deref(), mark),
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(&target) => {
                    let node = self.tree.push_alias(target, mark);
                    self.add(node, 0);
                }
                None => return Err(unknown_anchor(mark, "")),
            },
            Event::UnresolvedAlias(name) => return Err(unknown_anchor(mark, &name)),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, kind: Kind, anchor: usize, tag: Option<&granit_parser::Tag>, mark: Mark) {
        let node = self.tree.push_collection(kind, tag_of(tag), mark);
        self.add(node, anchor);
        self.open.push(Open { node, last: None });
    }

    fn scalar(&mut self, kind: Kind, tag: Tag, mark: Mark, text: Cow<'a, str>) -> NodeId {
        match text {
            Cow::Borrowed(text) => match self.tree.place_of(text) {
                Some(start) => self.tree.push_borrowed(kind, tag, mark, start, text.len()),
                None => self.tree.push_owned(kind, tag, mark, text.into()),
            },
            Cow::Owned(text) => self.tree.push_owned(kind, tag, mark, text.into_boxed_str()),
        }
    }

    fn add(&mut self, node: NodeId, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node);
        }
        let inside = self.open.last().is_some_and(|open| self.tree.is_shared(open.node));
        if inside || anchor != 0 {
            self.tree.share(node);
        }
        if let Some(open) = self.open.last_mut() {
            self.tree.append(open.node, open.last, node);
            open.last = Some(node);
        }
    }

    fn mark(&self, line: usize, column: usize) -> Mark {
        Mark { line: self.line + (line.max(1) - 1) as u32, column: column as u32 + 1 }
    }

    fn fault(&self, error: &ScanError) -> Fault {
        let at = error.marker();
        let mark = self.mark(at.line(), at.col());
        let fault = Fault::new(mark, "yaml-syntax", format!("this is not YAML: {}", error.kind()));
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => {
                Fault::new(mark, "too-deep", format!("nested more than {MAX_DEPTH} levels deep"))
            }
            ErrorKind::DirectiveDisallowed => {
                Fault::new(mark, "yaml-directive", "Kubernetes reads no YAML directives such as %YAML")
                    .hint("remove the line")
            }
            _ => fault,
        }
    }
}

fn unknown_anchor(mark: Mark, name: &str) -> Fault {
    Fault::new(
        mark,
        "unknown-anchor",
        format!("no anchor `&{name}` stands before this alias in its document"),
    )
    .hint("an anchor reaches no further than its own document: repeat the value here")
}

fn tag_of(tag: Option<&granit_parser::Tag>) -> Tag {
    tag.map_or(Tag::None, |tag| {
        let (handle, suffix) = tag.parts();
        Tag::named(&format!("{handle}{suffix}"))
    })
}
