//! JavaScript of page snippets, reduced to the part that a command generator uses.
//!
//! tree-sitter gives a tree even for broken text; whatever is not understood becomes [`Expr::Opaque`] and evaluates to
//! an unknown, never to a guess. Depth is bounded here, so that no later stage can overflow the stack.

use std::rc::Rc;

use tree_sitter::Node;

/// Deepest nesting of expressions and statements that is read.
const MAX_DEPTH: usize = 90;

/// An expression.
#[derive(Debug)]
pub(crate) enum Expr {
    /// A constant.
    Undefined,
    Null,
    Bool(bool),
    Num(f64),
    Str(Rc<str>),
    /// Template literal: text and expressions.
    Template(Vec<Part>),
    Name(Rc<str>),
    This,
    Array(Vec<Item>),
    Object(Vec<Prop>),
    /// `object.name`, `object[expr]`; the flag is optional chaining.
    Member(Box<Expr>, Box<Expr>, bool),
    /// Call; the flag is optional chaining.
    Call(Box<Expr>, Vec<Item>, bool),
    New(Box<Expr>, Vec<Item>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Logical(&'static str, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Assign(&'static str, Box<Expr>, Box<Expr>),
    /// `x++` and `x--`: by how much.
    Update(Box<Expr>, f64),
    Func(Rc<Func>),
    Sequence(Vec<Expr>),
    /// Not understood: what it was.
    Opaque(Rc<str>),
}

/// A part of a template literal.
#[derive(Debug)]
pub(crate) enum Part {
    Text(Rc<str>),
    Hole(Expr),
}

/// An element of a list or an argument.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) spread: bool,
    pub(crate) value: Expr,
}

/// A member of an object literal.
#[derive(Debug)]
pub(crate) enum Prop {
    Pair(Expr, Expr),
    Spread(Expr),
}

/// What a parameter or declaration binds.
#[derive(Debug)]
pub(crate) enum Pattern {
    Name(Rc<str>),
    /// Key, inner pattern, default; the last member may be the rest.
    Object(Vec<(Rc<str>, Pattern, Option<Expr>)>, Option<Rc<str>>),
    Array(Vec<Option<Pattern>>),
    Default(Box<Pattern>, Box<Expr>),
    Rest(Rc<str>),
    Skip,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Func {
    pub(crate) params: Vec<Pattern>,
    pub(crate) body: Body,
    /// Arrow functions take `this` from where they are written.
    pub(crate) arrow: bool,
    /// One-based line of its first character.
    pub(crate) line: u32,
}

/// A function's body.
#[derive(Debug)]
pub(crate) enum Body {
    Block(Vec<Stmt>),
    Value(Expr),
}

/// A statement.
#[derive(Debug)]
pub(crate) enum Stmt {
    Declare(Vec<(Pattern, Option<Expr>)>),
    Function(Rc<str>, Rc<Func>),
    Expr(Expr),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Pattern, whether keys are meant, iterable, body.
    ForOf(Pattern, bool, Expr, Vec<Stmt>),
    For(Vec<Stmt>, Option<Expr>, Option<Expr>, Vec<Stmt>),
    While(Expr, Vec<Stmt>),
    Switch(Expr, Vec<(Option<Expr>, Vec<Stmt>)>),
    Return(Option<Expr>),
    Break,
    Continue,
    Block(Vec<Stmt>),
}

/// Parses a file into statements; exported declarations are plain declarations.
pub(crate) fn parse(text: &str) -> Option<Vec<Stmt>> {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_javascript::LANGUAGE.into()).ok()?;
    let tree = parser.parse(text, None)?;
    Some(Reader { text }.statements(tree.root_node(), 0))
}

struct Reader<'t> {
    text: &'t str,
}

type N<'a> = Node<'a>;

impl Reader<'_> {
    fn src(&self, node: N<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn kids<'a>(&self, node: N<'a>) -> Vec<N<'a>> {
        let mut cursor = node.walk();
        node.named_children(&mut cursor)
            .filter(|n| n.kind() != "comment")
            .collect()
    }

    fn opaque(&self, node: N<'_>) -> Expr {
        let text: String = self
            .src(node)
            .chars()
            .take(40)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        Expr::Opaque(text.into())
    }

    fn statements(&self, node: N<'_>, depth: usize) -> Vec<Stmt> {
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        self.kids(node)
            .into_iter()
            .filter_map(|n| self.statement(n, depth + 1))
            .collect()
    }

    fn block_of(&self, node: Option<N<'_>>, depth: usize) -> Vec<Stmt> {
        match node {
            None => Vec::new(),
            Some(n) if n.kind() == "statement_block" => self.statements(n, depth + 1),
            Some(n) => self.statement(n, depth + 1).into_iter().collect(),
        }
    }

    fn statement(&self, node: N<'_>, depth: usize) -> Option<Stmt> {
        if depth > MAX_DEPTH {
            return None;
        }
        let field = |name: &str| node.child_by_field_name(name);
        Some(match node.kind() {
            "export_statement" => {
                let inner = field("declaration").or_else(|| field("value"))?;
                if inner.kind().ends_with("declaration") {
                    return self.statement(inner, depth + 1);
                }
                Stmt::Declare(vec![(
                    Pattern::Name("default".into()),
                    Some(self.expr(inner, depth + 1)),
                )])
            }
            "lexical_declaration" | "variable_declaration" => Stmt::Declare(
                self.kids(node)
                    .into_iter()
                    .filter(|n| n.kind() == "variable_declarator")
                    .map(|d| {
                        let pattern = d
                            .child_by_field_name("name")
                            .map_or(Pattern::Skip, |n| self.pattern(n, depth + 1));
                        (pattern, d.child_by_field_name("value").map(|v| self.expr(v, depth + 1)))
                    })
                    .collect(),
            ),
            "function_declaration" => {
                let name = self.src(field("name")?).into();
                Stmt::Function(name, Rc::new(self.function(node, depth + 1, false)))
            }
            "expression_statement" => Stmt::Expr(self.expr(node.named_child(0)?, depth + 1)),
            "if_statement" => {
                let alternative = field("alternative").and_then(|e| e.named_child(0));
                Stmt::If(
                    self.expr(field("condition")?, depth + 1),
                    self.block_of(field("consequence"), depth),
                    self.block_of(alternative, depth),
                )
            }
            "for_in_statement" => {
                let keys = field("operator").is_some_and(|o| self.src(o) == "in");
                let left = field("left")?;
                Stmt::ForOf(
                    self.pattern(left, depth + 1),
                    keys,
                    self.expr(field("right")?, depth + 1),
                    self.block_of(field("body"), depth),
                )
            }
            "for_statement" => {
                let start = field("initializer")
                    .and_then(|n| self.statement(n, depth + 1))
                    .into_iter()
                    .collect();
                let unwrap = |n: N<'_>| {
                    let inner = if n.kind() == "expression_statement" {
                        n.named_child(0)?
                    } else {
                        n
                    };
                    (inner.kind() != "empty_statement").then(|| self.expr(inner, depth + 1))
                };
                Stmt::For(
                    start,
                    field("condition").and_then(unwrap),
                    field("increment").and_then(unwrap),
                    self.block_of(field("body"), depth),
                )
            }
            "while_statement" => Stmt::While(
                self.expr(field("condition")?, depth + 1),
                self.block_of(field("body"), depth),
            ),
            "switch_statement" => {
                let cases = self
                    .kids(field("body")?)
                    .into_iter()
                    .map(|case| {
                        let test = case.child_by_field_name("value");
                        let body = self
                            .kids(case)
                            .into_iter()
                            .filter(|n| Some(n.id()) != test.map(|t| t.id()))
                            .filter_map(|n| self.statement(n, depth + 1))
                            .collect();
                        (test.map(|t| self.expr(t, depth + 1)), body)
                    })
                    .collect();
                Stmt::Switch(self.expr(field("value")?, depth + 1), cases)
            }
            "return_statement" => Stmt::Return(node.named_child(0).map(|n| self.expr(n, depth + 1))),
            "break_statement" => Stmt::Break,
            "continue_statement" => Stmt::Continue,
            "statement_block" => Stmt::Block(self.statements(node, depth)),
            "try_statement" => Stmt::Block(self.block_of(field("body"), depth)),
            _ => return None,
        })
    }

    fn pattern(&self, node: N<'_>, depth: usize) -> Pattern {
        if depth > MAX_DEPTH {
            return Pattern::Skip;
        }
        match node.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => Pattern::Name(self.src(node).into()),
            "assignment_pattern" | "object_assignment_pattern" => {
                let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
                else {
                    return Pattern::Skip;
                };
                Pattern::Default(
                    Box::new(self.pattern(left, depth + 1)),
                    Box::new(self.expr(right, depth + 1)),
                )
            }
            "rest_pattern" => node
                .named_child(0)
                .map_or(Pattern::Skip, |n| Pattern::Rest(self.src(n).into())),
            "array_pattern" => Pattern::Array(
                self.kids(node)
                    .into_iter()
                    .map(|n| Some(self.pattern(n, depth + 1)))
                    .collect(),
            ),
            "object_pattern" => {
                let mut members = Vec::new();
                let mut rest = None;
                for member in self.kids(node) {
                    match self.pattern(member, depth + 1) {
                        Pattern::Name(name) => members.push((name.clone(), Pattern::Name(name), None)),
                        Pattern::Rest(name) => rest = Some(name),
                        Pattern::Default(inner, value) => {
                            if let Pattern::Name(name) = *inner {
                                members.push((name.clone(), Pattern::Name(name), Some(*value)));
                            }
                        }
                        _ if member.kind() == "pair_pattern" => {
                            let (Some(key), Some(value)) =
                                (member.child_by_field_name("key"), member.child_by_field_name("value"))
                            else {
                                continue;
                            };
                            members.push((self.key(key).into(), self.pattern(value, depth + 1), None));
                        }
                        _ => {}
                    }
                }
                Pattern::Object(members, rest)
            }
            "lexical_declaration" | "variable_declaration" => node
                .named_child(0)
                .and_then(|d| d.child_by_field_name("name"))
                .map_or(Pattern::Skip, |n| self.pattern(n, depth + 1)),
            _ => Pattern::Skip,
        }
    }

    fn function(&self, node: N<'_>, depth: usize, arrow: bool) -> Func {
        let params = match (
            node.child_by_field_name("parameters"),
            node.child_by_field_name("parameter"),
        ) {
            (Some(list), _) => self
                .kids(list)
                .into_iter()
                .map(|n| self.pattern(n, depth + 1))
                .collect(),
            (None, Some(one)) => vec![self.pattern(one, depth + 1)],
            (None, None) => Vec::new(),
        };
        let body = match node.child_by_field_name("body") {
            Some(b) if b.kind() == "statement_block" => Body::Block(self.statements(b, depth + 1)),
            Some(b) => Body::Value(self.expr(b, depth + 1)),
            None => Body::Block(Vec::new()),
        };
        Func {
            params,
            body,
            arrow,
            line: line_of(node),
        }
    }

    fn key(&self, node: N<'_>) -> String {
        match node.kind() {
            "string" => unescape(self.src(node)),
            _ => self.src(node).to_owned(),
        }
    }

    fn items(&self, node: Option<N<'_>>, depth: usize) -> Vec<Item> {
        node.map_or_else(Vec::new, |n| {
            self.kids(n)
                .into_iter()
                .map(|k| {
                    if k.kind() == "spread_element" {
                        let value = k.named_child(0).map_or(Expr::Undefined, |v| self.expr(v, depth + 1));
                        Item { spread: true, value }
                    } else {
                        Item {
                            spread: false,
                            value: self.expr(k, depth + 1),
                        }
                    }
                })
                .collect()
        })
    }

    fn expr(&self, node: N<'_>, depth: usize) -> Expr {
        if depth > MAX_DEPTH {
            return Expr::Opaque("too deep".into());
        }
        let field = |name: &str| node.child_by_field_name(name);
        let sub = |name: &str| field(name).map(|n| Box::new(self.expr(n, depth + 1)));
        let made = match node.kind() {
            "undefined" => Some(Expr::Undefined),
            "null" => Some(Expr::Null),
            "true" => Some(Expr::Bool(true)),
            "false" => Some(Expr::Bool(false)),
            "number" => self.src(node).replace('_', "").parse().ok().map(Expr::Num),
            "string" => Some(Expr::Str(unescape(self.src(node)).into())),
            "template_string" => Some(self.template(node, depth)),
            "identifier" | "property_identifier" if self.src(node) == "undefined" => Some(Expr::Undefined),
            "identifier" => Some(Expr::Name(self.src(node).into())),
            "this" => Some(Expr::This),
            "parenthesized_expression" | "await_expression" => node.named_child(0).map(|n| self.expr(n, depth + 1)),
            "array" => Some(Expr::Array(self.items(Some(node), depth))),
            "object" => Some(self.object(node, depth)),
            "member_expression" => sub("object").zip(field("property")).map(|(object, property)| {
                let optional = field("optional_chain").is_some();
                Expr::Member(object, Box::new(Expr::Str(self.src(property).into())), optional)
            }),
            "subscript_expression" => sub("object")
                .zip(sub("index"))
                .map(|(object, index)| Expr::Member(object, index, field("optional_chain").is_some())),
            "call_expression" => sub("function").map(|f| {
                let arguments = field("arguments");
                if arguments.is_some_and(|a| a.kind() == "template_string") {
                    return self.opaque(node);
                }
                Expr::Call(f, self.items(arguments, depth), field("optional_chain").is_some())
            }),
            "new_expression" => sub("constructor").map(|c| Expr::New(c, self.items(field("arguments"), depth))),
            "arrow_function" => Some(Expr::Func(Rc::new(self.function(node, depth + 1, true)))),
            "function_expression" | "function" => Some(Expr::Func(Rc::new(self.function(node, depth + 1, false)))),
            "ternary_expression" => match (sub("condition"), sub("consequence"), sub("alternative")) {
                (Some(c), Some(a), Some(b)) => Some(Expr::Ternary(c, a, b)),
                _ => None,
            },
            "unary_expression" => {
                let op = field("operator").and_then(|o| known_op(self.src(o)));
                op.zip(sub("argument")).map(|(op, a)| Expr::Unary(op, a))
            }
            "binary_expression" => {
                let op = field("operator").and_then(|o| known_op(self.src(o)));
                match (op, sub("left"), sub("right")) {
                    (Some(op @ ("&&" | "||" | "??")), Some(a), Some(b)) => Some(Expr::Logical(op, a, b)),
                    (Some(op), Some(a), Some(b)) => Some(Expr::Binary(op, a, b)),
                    _ => None,
                }
            }
            "assignment_expression" => sub("left").zip(sub("right")).map(|(a, b)| Expr::Assign("=", a, b)),
            "augmented_assignment_expression" => {
                let op = field("operator").and_then(|o| known_op(self.src(o).trim_end_matches('=')));
                match (op, sub("left"), sub("right")) {
                    (Some(op), Some(a), Some(b)) => Some(Expr::Assign(op, a, b)),
                    _ => None,
                }
            }
            "update_expression" => {
                let by = if self.src(node).contains("--") { -1.0 } else { 1.0 };
                sub("argument").map(|a| Expr::Update(a, by))
            }
            "sequence_expression" => Some(Expr::Sequence(
                self.kids(node).into_iter().map(|n| self.expr(n, depth + 1)).collect(),
            )),
            _ => None,
        };
        made.unwrap_or_else(|| self.opaque(node))
    }

    fn template(&self, node: N<'_>, depth: usize) -> Expr {
        let mut parts = Vec::new();
        for kid in self.kids(node) {
            match kid.kind() {
                "string_fragment" => parts.push(Part::Text(self.src(kid).into())),
                "escape_sequence" => parts.push(Part::Text(escape(self.src(kid)).into())),
                "template_substitution" => {
                    parts.push(Part::Hole(
                        kid.named_child(0).map_or(Expr::Undefined, |n| self.expr(n, depth + 1)),
                    ));
                }
                _ => parts.push(Part::Hole(self.opaque(kid))),
            }
        }
        Expr::Template(parts)
    }

    fn object(&self, node: N<'_>, depth: usize) -> Expr {
        let mut props = Vec::new();
        for kid in self.kids(node) {
            let field = |name: &str| kid.child_by_field_name(name);
            match kid.kind() {
                "pair" => {
                    let (Some(key), Some(value)) = (field("key"), field("value")) else {
                        continue;
                    };
                    let key = if key.kind() == "computed_property_name" {
                        key.named_child(0).map_or(Expr::Undefined, |n| self.expr(n, depth + 1))
                    } else {
                        Expr::Str(self.key(key).into())
                    };
                    props.push(Prop::Pair(key, self.expr(value, depth + 1)));
                }
                "shorthand_property_identifier" => {
                    let name: Rc<str> = self.src(kid).into();
                    props.push(Prop::Pair(Expr::Str(name.clone()), Expr::Name(name)));
                }
                "spread_element" => {
                    props.push(Prop::Spread(
                        kid.named_child(0).map_or(Expr::Undefined, |n| self.expr(n, depth + 1)),
                    ));
                }
                "method_definition" => {
                    if let Some(name) = field("name") {
                        let function = Rc::new(self.function(kid, depth + 1, false));
                        props.push(Prop::Pair(Expr::Str(self.key(name).into()), Expr::Func(function)));
                    }
                }
                _ => {}
            }
        }
        // Cells of a deployment list keep their line under a name that no page uses.
        if props
            .iter()
            .any(|p| matches!(p, Prop::Pair(Expr::Str(k), _) if &**k == "match"))
        {
            props.push(Prop::Pair(Expr::Str(LINE.into()), Expr::Num(f64::from(line_of(node)))));
        }
        Expr::Object(props)
    }
}

/// Member under which a cell keeps its line.
pub(crate) const LINE: &str = "\u{f8e2}line";

fn line_of(node: N<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(0).saturating_add(1)
}

fn known_op(op: &str) -> Option<&'static str> {
    const OPS: &[&str] = &[
        "+",
        "-",
        "*",
        "/",
        "%",
        "**",
        "<",
        ">",
        "<=",
        ">=",
        "===",
        "!==",
        "==",
        "!=",
        "&&",
        "||",
        "??",
        "!",
        "typeof",
        "void",
        "in",
        "instanceof",
        "=",
    ];
    OPS.iter().find(|o| **o == op).copied()
}

fn escape(sequence: &str) -> String {
    let mut chars = sequence.chars().skip(1);
    match chars.next() {
        Some('n') => "\n".into(),
        Some('t') => "\t".into(),
        Some('r') => "\r".into(),
        Some('u') => {
            let hex: String = chars.filter(|c| c.is_ascii_hexdigit()).take(6).collect();
            u32::from_str_radix(&hex, 16)
                .ok()
                .and_then(char::from_u32)
                .map(String::from)
                .unwrap_or_default()
        }
        Some('\n') | None => String::new(),
        Some(other) => other.into(),
    }
}

/// The value of a quoted string literal.
fn unescape(literal: &str) -> String {
    let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or("");
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let end = rest[at + 1..]
            .chars()
            .next()
            .map_or(rest.len(), |c| at + 1 + c.len_utf8());
        // `\u` sequences are rare in commands; four digits are enough.
        let end = if rest[at..].starts_with("\\u") {
            (at + 6).min(rest.len())
        } else {
            end
        };
        match rest.get(at..end) {
            Some(sequence) => out.push_str(&escape(sequence)),
            None => break,
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
