//! YAML into the shared [`Tree`], through the workspace's span-keeping reader.

use countersign_yaml as y;

use crate::tree::{MAX_DEPTH, Masked, Node, Tree};
use crate::value::Text;

/// Bounds for one recipe or options file.
fn limits() -> y::Limits {
    y::Limits {
        max_bytes: 1 << 20,
        max_nodes: 60_000,
        max_depth: MAX_DEPTH,
        max_scalar_bytes: 2 << 20,
    }
}

/// Reads a YAML text.
///
/// # Errors
/// The reader's own message with line and column.
pub(crate) fn parse(text: &str) -> Result<Tree, y::YamlError> {
    y::parse(text, &limits()).map(|doc| convert(&doc.root, doc.root.span.line, 0))
}

/// Reads a YAML text that may hold unknowns; `first_line` is the line of its first line in the file that holds it.
///
/// # Errors
/// The reader's own message; its line counts from the text's own first line.
pub(crate) fn parse_text(text: &Text, first_line: u32) -> Result<Tree, y::YamlError> {
    let masked = Masked::new(text);
    let doc = y::parse(&masked.text, &limits())?;
    let add = first_line.saturating_sub(1);
    Ok(masked.restore_tree(convert(&doc.root, doc.root.span.line + add, add)))
}

fn convert(node: &y::Node, line: u32, add: u32) -> Tree {
    let here = match &node.value {
        y::Value::Null => Node::Null,
        y::Value::Seq(items) => Node::Seq(items.iter().map(|n| convert(n, n.span.line + add, add)).collect()),
        // A member's line is its key's: that is where a reader looks for it.
        y::Value::Map(map) => Node::Map(
            map.entries
                .iter()
                .map(|e| (e.key.scalar_text(), convert(&e.value, e.key.span.line + add, add)))
                .collect(),
        ),
        _ => Node::Scalar(Text::known(node.scalar_text())),
    };
    Tree { node: here, line }
}
