//! From parser events to the tree: aliases copied within the limits, merge keys flattened, duplicate keys resolved as
//! PyYAML resolves them and reported. Iterative, so the depth of the text never becomes depth of the stack here.

use std::collections::{HashMap, HashSet};

use serde_yaml::granit_parser::{Event, Options, Parser, ScalarStyle, Span as RawSpan, StrInput, StructureStyle, Tag};

use crate::error::{YamlError, YamlErrorKind};
use crate::mapping::MapBuilder;
use crate::node::{Document, DuplicateKey, Node, Span, Value};
use crate::resolve::{self, Kind, clip};
use crate::source;
use crate::{HARD_MAX_DEPTH, Limits};

/// Reads a text that must hold at most one document, as `yaml.safe_load` does. An empty text is `Null`.
///
/// # Errors
/// [`YamlError`] with position and remedy for whatever is not YAML, or not safe, or beyond `limits`.
pub fn parse(text: &str, limits: &Limits) -> Result<Document, YamlError> {
    let mut composer = Composer::new(text, limits, true)?;
    composer.run()?;
    Ok(composer.documents.pop().unwrap_or_else(|| Document {
        root: Node {
            span: Span {
                line: 1,
                column: 1,
                start: 0,
                end: 0,
            },
            value: Value::Null,
        },
        duplicate_keys: Vec::new(),
        anchors: false,
    }))
}

/// Reads every document of a text, as `yaml.safe_load_all` does. The limits hold for all of them together.
///
/// # Errors
/// As [`parse`].
pub fn parse_all(text: &str, limits: &Limits) -> Result<Vec<Document>, YamlError> {
    let mut composer = Composer::new(text, limits, false)?;
    composer.run()?;
    Ok(composer.documents)
}

/// How much of the limits a subtree uses; kept for anchored nodes so that an alias is paid for before it is copied.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// What a composed value is besides its node: a plain `<<` or `=` matters only where it stands as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Ordinary,
    Merge,
    DefaultValue,
}

struct Composed {
    node: Node,
    role: Role,
    weight: Weight,
}

/// A collection that is still open.
struct Frame {
    span: Span,
    anchor: usize,
    /// Written between brackets.
    flow: bool,
    weight: Weight,
    content: Content,
}

enum Content {
    Seq(Vec<Node>),
    Map {
        builder: MapBuilder,
        key: Option<(Node, Role)>,
    },
}

struct Composer<'t> {
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    limits: Limits,
    single: bool,
    stack: Vec<Frame>,
    root: Option<Node>,
    anchors: HashMap<usize, (Node, Role, Weight)>,
    anchor_names: HashSet<String>,
    /// How many of the open collections are written in flow style.
    flow_depth: usize,
    total: Weight,
    duplicates: Vec<DuplicateKey>,
    documents: Vec<Document>,
}

impl<'t> Composer<'t> {
    fn new(text: &'t str, limits: &Limits, single: bool) -> Result<Self, YamlError> {
        source::check(text, limits.max_bytes)?;
        let limits = Limits {
            max_depth: limits.max_depth.min(HARD_MAX_DEPTH),
            ..*limits
        };
        let mut options = Options::default();
        options.set_emit_comments(false);
        // As libyaml and PyYAML: a block scalar that ends with the text gets no line feed of its own.
        options.block_scalar_eof_without_line_feed = true;
        options.emit_anchor_events = true;
        options.flow_nesting_limit = limits.max_depth + 1;
        options.block_nesting_limit = limits.max_depth + 1;
        Ok(Self {
            text,
            events: Parser::new_from_str_with_options(text, options),
            limits,
            single,
            stack: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            anchor_names: HashSet::new(),
            flow_depth: 0,
            total: Weight::default(),
            duplicates: Vec::new(),
            documents: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<(), YamlError> {
        let mut tabs = source::TabCheck::new(self.text);
        while let Some(next) = self.events.next_event() {
            let (event, raw) = next.map_err(|error| source::syntax_error(self.text, &error))?;
            let span = span_of(&raw);
            tabs.token(&event, &span)?;
            match event {
                Event::DocumentStart(..) if self.single && !self.documents.is_empty() => {
                    return Err(YamlError::new(
                        YamlErrorKind::Documents,
                        span,
                        "a second document begins here",
                        "keep one document in the file: remove the `---`",
                    ));
                }
                Event::DocumentEnd => {
                    self.anchors.clear();
                    let anchors = !self.anchor_names.is_empty();
                    self.anchor_names.clear();
                    let root = self.root.take().unwrap_or(Node {
                        span,
                        value: Value::Null,
                    });
                    let mut duplicate_keys = std::mem::take(&mut self.duplicates);
                    // Inner mappings close before outer ones; report in the order of the text.
                    duplicate_keys.sort_by_key(|duplicate| (duplicate.line, duplicate.column));
                    self.documents.push(Document {
                        root,
                        duplicate_keys,
                        anchors,
                    });
                }
                Event::Scalar(text, style, anchor, tag) => {
                    source::check_scalar(self.text, style, &span, self.flow_depth > 0, self.stack.is_empty())?;
                    let composed = scalar(&text, style, tag.as_deref(), span)?;
                    self.charge(composed.weight, span)?;
                    self.finish(composed, anchor)?;
                }
                Event::Anchor(_, name) => {
                    source::check_anchor(&name, span)?;
                    if !self.anchor_names.insert(name.into_owned()) {
                        return Err(YamlError::new(
                            YamlErrorKind::Alias,
                            span,
                            "this anchor name is already taken in the document",
                            "give one of the two anchors another name",
                        ));
                    }
                }
                Event::Alias(id) => {
                    source::check_anchor(self.text.get(span.start + 1..span.end).unwrap_or_default(), span)?;
                    self.alias(id, span)?;
                }
                Event::SequenceStart(structure, anchor, tag) => {
                    check_collection_tag(tag.as_deref(), "seq", span)?;
                    self.open(span, anchor, structure, Content::Seq(Vec::new()))?;
                }
                Event::MappingStart(structure, anchor, tag) => {
                    check_collection_tag(tag.as_deref(), "map", span)?;
                    let content = Content::Map {
                        builder: MapBuilder::default(),
                        key: None,
                    };
                    self.open(span, anchor, structure, content)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
                _ => {}
            }
        }
        tabs.end()
    }

    fn open(
        &mut self,
        span: Span,
        anchor: usize,
        structure: StructureStyle,
        content: Content,
    ) -> Result<(), YamlError> {
        if self.stack.len() >= self.limits.max_depth {
            return Err(self.too_deep(span));
        }
        self.charge(
            Weight {
                nodes: 1,
                bytes: 0,
                depth: 0,
            },
            span,
        )?;
        let flow = structure == StructureStyle::Flow;
        self.flow_depth += usize::from(flow);
        self.stack.push(Frame {
            span,
            anchor,
            flow,
            weight: Weight::default(),
            content,
        });
        Ok(())
    }

    fn too_deep(&self, span: Span) -> YamlError {
        YamlError::new(
            YamlErrorKind::Limit,
            span,
            format!("more than {} levels of nesting", self.limits.max_depth),
            "flatten the structure",
        )
    }

    fn charge(&mut self, weight: Weight, span: Span) -> Result<(), YamlError> {
        self.total.nodes = self.total.nodes.saturating_add(weight.nodes);
        self.total.bytes = self.total.bytes.saturating_add(weight.bytes);
        if self.total.nodes > self.limits.max_nodes {
            return Err(YamlError::new(
                YamlErrorKind::Limit,
                span,
                format!("more than {} values in one file", self.limits.max_nodes),
                "split the file, or remove aliases that multiply its contents",
            ));
        }
        if self.total.bytes > self.limits.max_scalar_bytes {
            return Err(YamlError::new(
                YamlErrorKind::Limit,
                span,
                format!(
                    "more than {} bytes of text values in one file",
                    self.limits.max_scalar_bytes
                ),
                "split the file, or remove aliases that multiply its contents",
            ));
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), YamlError> {
        let Some((node, role, weight)) = self.anchors.get(&id) else {
            return Err(YamlError::new(
                YamlErrorKind::Alias,
                span,
                "the alias refers to a collection that contains it",
                "write the value out instead of referring to it",
            ));
        };
        let (role, weight) = (*role, *weight);
        if self.stack.len() + weight.depth > self.limits.max_depth {
            return Err(self.too_deep(span));
        }
        let node = node.clone();
        self.charge(weight, span)?;
        self.finish(Composed { node, role, weight }, 0)
    }

    fn close(&mut self, end: Span) -> Result<(), YamlError> {
        // The parser balances starts and ends; an end without a start cannot reach here.
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let Frame {
            mut span,
            anchor,
            flow,
            mut weight,
            content,
        } = frame;
        self.flow_depth -= usize::from(flow);
        let value = match content {
            Content::Seq(items) => Value::Seq(items),
            Content::Map { builder, .. } => Value::Map(builder.finish(&mut self.duplicates)),
        };
        // A block collection's end event lies at the next token; the collection itself ends no later.
        span.end = end.end.max(span.start);
        weight.nodes += 1;
        weight.depth += 1;
        self.finish(
            Composed {
                node: Node { span, value },
                role: Role::Ordinary,
                weight,
            },
            anchor,
        )
    }

    fn finish(&mut self, composed: Composed, anchor: usize) -> Result<(), YamlError> {
        let Composed { node, role, weight } = composed;
        if anchor != 0 {
            // The stored copy is paid for too: many anchors nested in each other would otherwise cost the square.
            self.charge(weight, node.span)?;
            self.anchors.insert(anchor, (node.clone(), role, weight));
        }
        let Some(parent) = self.stack.last_mut() else {
            refuse_special(role, &node)?;
            self.root = Some(node);
            return Ok(());
        };
        parent.weight.nodes += weight.nodes;
        parent.weight.bytes += weight.bytes;
        parent.weight.depth = parent.weight.depth.max(weight.depth);
        match &mut parent.content {
            Content::Seq(items) => {
                refuse_special(role, &node)?;
                items.push(node);
            }
            Content::Map { builder, key } => match key.take() {
                None => {
                    check_key(self.text, &node)?;
                    *key = Some((node, role));
                }
                Some((key_node, key_role)) => {
                    refuse_special(role, &node)?;
                    if key_role == Role::Merge {
                        builder.merge(node, key_node.span)?;
                    } else {
                        builder.insert(key_node, node);
                    }
                }
            },
        }
        Ok(())
    }
}

/// Keys are scalars on one line. YAML 1.2 also lets a key be left out before `:` or, between brackets, run over
/// several lines; PyYAML does not.
fn check_key(text: &str, node: &Node) -> Result<(), YamlError> {
    let written = text.get(node.span.start..node.span.end).unwrap_or_default();
    let (message, remedy) = if matches!(node.value, Value::Seq(_) | Value::Map(_)) {
        (
            format!("{} cannot be a key", node.type_name()),
            "use a string as the key",
        )
    } else if node.is_null() && written.is_empty() {
        (
            "there is no key before the colon".to_owned(),
            "write the key, or put the text in quotes",
        )
    } else if written.trim_end().contains(['\n', '\r']) {
        (
            "the key runs over more than one line".to_owned(),
            "write the key on one line",
        )
    } else {
        return Ok(());
    };
    Err(YamlError::new(YamlErrorKind::Key, node.span, message, remedy))
}

fn span_of(raw: &RawSpan) -> Span {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Span {
        line: small(raw.start.line()),
        column: small(raw.start.col().saturating_add(1)),
        start: raw.start.byte_offset().unwrap_or(0),
        end: raw.end.byte_offset().unwrap_or(0),
    }
}

/// `<<` and `=` have no value of their own: the safe reader has no constructor for their tags.
fn refuse_special(role: Role, node: &Node) -> Result<(), YamlError> {
    let shown = match role {
        Role::Ordinary => return Ok(()),
        Role::Merge => "<<",
        Role::DefaultValue => "=",
    };
    Err(YamlError::new(
        YamlErrorKind::Tag,
        node.span,
        format!("a plain `{shown}` is not a value"),
        format!("write it in quotes: \"{shown}\""),
    ))
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Composed, YamlError> {
    // The parser writes an omitted plain scalar as `~` with an empty span.
    let kind = match tag {
        None if style == ScalarStyle::Plain => resolve::kind_of_plain(text),
        None => Kind::Str,
        Some(tag) if is_non_specific(tag) => resolve::kind_of_plain(text),
        Some(tag) => match tag.core_suffix() {
            Some("null") => Kind::Null,
            Some("bool") => Kind::Bool,
            Some("int") => Kind::Int,
            Some("float") => Kind::Float,
            Some("timestamp") => Kind::Timestamp,
            Some("str") => Kind::Str,
            Some("merge") => Kind::Merge,
            Some("value") => Kind::DefaultValue,
            _ => return Err(unknown_tag(tag, span)),
        },
    };
    let (role, value) = match kind {
        Kind::Merge => (Role::Merge, Value::Str(text.to_owned())),
        Kind::DefaultValue => (Role::DefaultValue, Value::Str(text.to_owned())),
        _ => (
            Role::Ordinary,
            resolve::construct(
                kind,
                if text == "~" && span.start == span.end {
                    ""
                } else {
                    text
                },
            )
            .map_err(|message| {
                YamlError::new(
                    YamlErrorKind::Scalar,
                    span,
                    message,
                    "correct it, or put it in quotes if it is text",
                )
            })?,
        ),
    };
    let weight = Weight {
        nodes: 1,
        bytes: text.len(),
        depth: 0,
    };
    Ok(Composed {
        node: Node { span, value },
        role,
        weight,
    })
}

/// The lone `!`. PyYAML then resolves even a quoted scalar as if it were plain.
fn is_non_specific(tag: &Tag) -> bool {
    tag.original() == "!"
}

fn check_collection_tag(tag: Option<&Tag>, wanted: &str, span: Span) -> Result<(), YamlError> {
    match tag {
        Some(tag) if !is_non_specific(tag) && tag.core_suffix() != Some(wanted) => Err(unknown_tag(tag, span)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, span: Span) -> YamlError {
    YamlError::new(
        YamlErrorKind::Tag,
        span,
        format!("the tag `{}` is not one that is read here", clip(&tag.original())),
        "remove the tag",
    )
}
