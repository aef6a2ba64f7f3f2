//! Typed reading by serde: a deserialiser over a [`Node`] whose errors carry the place of the innermost value that did
//! not fit. Integers are not accepted where a type asks for a string, nor the other way round.

use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};

use crate::error::{YamlError, YamlErrorKind};
use crate::node::{Entry, Node, Span, Value};
use crate::{Limits, parse};

/// Reads a text into a type. Duplicate keys are an error here: what is read into a type is our own configuration, and
/// nobody means to write a key twice.
///
/// # Errors
/// [`YamlError`] with position and remedy.
pub fn from_str<T: DeserializeOwned>(text: &str, limits: &Limits) -> Result<T, YamlError> {
    let document = parse(text, limits)?;
    if let Some(duplicate) = document.duplicate_keys.first() {
        let span = Span {
            line: duplicate.line,
            column: duplicate.column,
            start: 0,
            end: 0,
        };
        return Err(YamlError::new(
            YamlErrorKind::Shape,
            span,
            format!(
                "the key `{}` is already set on line {}",
                duplicate.key, duplicate.first_line
            ),
            "keep one of the two",
        ));
    }
    from_node(&document.root)
}

/// Reads a tree into a type.
///
/// # Errors
/// [`YamlError`] of kind [`YamlErrorKind::Shape`] at the innermost value that does not fit.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, YamlError> {
    T::deserialize(NodeDeserializer(node)).map_err(|error| {
        YamlError::new(
            YamlErrorKind::Shape,
            error.span.unwrap_or(node.span),
            error.message,
            "write the value in the form that is expected",
        )
    })
}

/// A serde error that learns its place on the way out.
#[derive(Debug)]
struct ShapeError {
    message: String,
    span: Option<Span>,
}

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ShapeError {}

impl de::Error for ShapeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            span: None,
        }
    }
}

fn at<T>(span: Span, result: Result<T, ShapeError>) -> Result<T, ShapeError> {
    result.map_err(|error| ShapeError {
        span: error.span.or(Some(span)),
        ..error
    })
}

struct NodeDeserializer<'n>(&'n Node);

impl<'de> de::Deserializer<'de> for NodeDeserializer<'de> {
    type Error = ShapeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        let span = self.0.span;
        at(
            span,
            match &self.0.value {
                Value::Null => visitor.visit_unit(),
                Value::Bool(flag) => visitor.visit_bool(*flag),
                Value::Int(number) => visitor.visit_i64(*number),
                Value::Float(number) => visitor.visit_f64(*number),
                Value::Str(text) | Value::Opaque(_, text) => visitor.visit_borrowed_str(text),
                Value::Seq(items) => {
                    let mut access = de::value::SeqDeserializer::new(items.iter().map(NodeRef));
                    visitor
                        .visit_seq(&mut access)
                        .and_then(|value| access.end().map(|()| value))
                }
                Value::Map(map) => {
                    let mut access = MapAccess {
                        entries: map.entries.iter(),
                        value: None,
                    };
                    visitor.visit_map(&mut access)
                }
            },
        )
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            at(self.0.span, visitor.visit_some(self))
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        at(self.0.span, visitor.visit_newtype_struct(self))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        let span = self.0.span;
        let access = match &self.0.value {
            Value::Str(text) => EnumAccess {
                name: text,
                span,
                content: None,
            },
            Value::Map(map) if map.len() == 1 => {
                let Entry { key, value } = &map.entries[0];
                let Some(name) = key.as_str() else {
                    return at(key.span, Err(de::Error::custom("expected the name of a variant")));
                };
                EnumAccess {
                    name,
                    span: key.span,
                    content: Some(value),
                }
            }
            _ => {
                return at(
                    span,
                    Err(de::Error::custom("expected a name or a mapping with one key")),
                );
            }
        };
        at(span, visitor.visit_enum(access))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Lets serde's own sequence access read nodes.
struct NodeRef<'n>(&'n Node);

impl<'de> IntoDeserializer<'de, ShapeError> for NodeRef<'de> {
    type Deserializer = NodeDeserializer<'de>;

    fn into_deserializer(self) -> NodeDeserializer<'de> {
        NodeDeserializer(self.0)
    }
}

struct MapAccess<'n> {
    entries: std::slice::Iter<'n, Entry>,
    value: Option<&'n Node>,
}

impl<'de> de::MapAccess<'de> for &mut MapAccess<'de> {
    type Error = ShapeError;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ShapeError> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(&entry.value);
        // A key of a map with integer or string keys; JSON-like text keys are what structs ask for.
        at(entry.key.span, seed.deserialize(NodeDeserializer(&entry.key))).map(Some)
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ShapeError> {
        match self.value.take() {
            Some(value) => at(value.span, seed.deserialize(NodeDeserializer(value))),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

struct EnumAccess<'n> {
    name: &'n str,
    span: Span,
    content: Option<&'n Node>,
}

impl<'de> de::EnumAccess<'de> for EnumAccess<'de> {
    type Error = ShapeError;
    type Variant = VariantAccess<'de>;

    fn variant_seed<V: de::DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, VariantAccess<'de>), ShapeError> {
        let name: de::value::BorrowedStrDeserializer<'de, ShapeError> =
            de::value::BorrowedStrDeserializer::new(self.name);
        let value = at(self.span, seed.deserialize(name))?;
        Ok((
            value,
            VariantAccess {
                content: self.content,
                span: self.span,
            },
        ))
    }
}

struct VariantAccess<'n> {
    content: Option<&'n Node>,
    span: Span,
}

impl<'n> VariantAccess<'n> {
    fn need(&self) -> Result<&'n Node, ShapeError> {
        match self.content {
            Some(node) => Ok(node),
            None => at(
                self.span,
                Err(de::Error::custom("this variant needs a value: write `name: value`")),
            ),
        }
    }
}

impl<'de> de::VariantAccess<'de> for VariantAccess<'de> {
    type Error = ShapeError;

    fn unit_variant(self) -> Result<(), ShapeError> {
        match self.content {
            None => Ok(()),
            Some(node) if node.is_null() => Ok(()),
            Some(node) => at(node.span, Err(de::Error::custom("this variant takes no value"))),
        }
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ShapeError> {
        let node = self.need()?;
        at(node.span, seed.deserialize(NodeDeserializer(node)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ShapeError> {
        de::Deserializer::deserialize_any(NodeDeserializer(self.need()?), visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        de::Deserializer::deserialize_any(NodeDeserializer(self.need()?), visitor)
    }
}
