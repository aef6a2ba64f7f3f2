//! Values of the small JavaScript evaluator.

use std::cell::RefCell;
use std::rc::Rc;

use super::ast::Func;
use super::eval::Scope;

/// Marks where an unknown stands inside a string: `MARK name MARK_END`. Both are private-use characters, and string
/// literals of the source are cleared of them.
pub(crate) const MARK: char = '\u{f8e0}';
/// Ends an unknown inside a string.
pub(crate) const MARK_END: char = '\u{f8e1}';

/// Members of an object in order.
pub(crate) type Members = Rc<RefCell<Vec<(Rc<str>, Val)>>>;

/// A value.
#[derive(Clone)]
pub(crate) enum Val {
    Undefined,
    Null,
    Bool(bool),
    Num(f64),
    Str(Rc<str>),
    Arr(Rc<RefCell<Vec<Val>>>),
    Obj(Members),
    Set(Rc<RefCell<Vec<Val>>>),
    Func(Rc<Closure>),
    /// A method of a value, looked up but not yet called.
    Method(Box<Val>, Rc<str>),
    /// A global such as `Object`, or one of its functions such as `Object.entries`.
    Global(Rc<str>),
    /// Nothing is known but what it was.
    Unknown(Rc<str>),
}

/// A function with the scope it was written in.
pub(crate) struct Closure {
    pub(crate) func: Rc<Func>,
    pub(crate) scope: Scope,
    pub(crate) this: Val,
}

impl Val {
    pub(crate) fn str(text: impl AsRef<str>) -> Val {
        Val::Str(text.as_ref().into())
    }

    pub(crate) fn unknown(name: impl AsRef<str>) -> Val {
        Val::Unknown(name.as_ref().into())
    }

    /// Whether it counts as true; an unknown does not, so that nothing is claimed on its account.
    pub(crate) fn truthy(&self) -> bool {
        match self {
            Val::Undefined | Val::Null | Val::Unknown(_) => false,
            Val::Bool(b) => *b,
            Val::Num(n) => *n != 0.0 && !n.is_nan(),
            Val::Str(s) => !s.is_empty(),
            _ => true,
        }
    }

    pub(crate) fn is_nullish(&self) -> bool {
        matches!(self, Val::Undefined | Val::Null)
    }

    /// As in string concatenation; an unknown stays marked.
    pub(crate) fn text(&self) -> Rc<str> {
        match self {
            Val::Undefined => "undefined".into(),
            Val::Null => "null".into(),
            Val::Bool(b) => b.to_string().into(),
            Val::Num(n) => number(*n).into(),
            Val::Str(s) => s.clone(),
            Val::Arr(items) => {
                let items = items.borrow();
                let texts: Vec<String> = items
                    .iter()
                    .take(10_000)
                    .map(|v| if v.is_nullish() { String::new() } else { v.shallow() })
                    .collect();
                texts.join(",").into()
            }
            Val::Unknown(name) => format!("{MARK}{name}{MARK_END}").into(),
            other => other.shallow().into(),
        }
    }

    fn shallow(&self) -> String {
        match self {
            Val::Arr(_) | Val::Obj(_) | Val::Set(_) => "[object Object]".into(),
            Val::Func(_) | Val::Method(..) | Val::Global(_) => format!("{MARK}function{MARK_END}"),
            simple => simple.text().to_string(),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Val::Num(n) => Some(*n),
            Val::Bool(b) => Some(f64::from(u8::from(*b))),
            Val::Null => Some(0.0),
            Val::Str(s) => {
                let s = s.trim();
                if s.is_empty() {
                    Some(0.0)
                } else {
                    Some(s.parse().unwrap_or(f64::NAN))
                }
            }
            Val::Undefined => Some(f64::NAN),
            _ => None,
        }
    }

    /// A member of an object.
    pub(crate) fn member(&self, key: &str) -> Option<Val> {
        match self {
            Val::Obj(members) => members
                .borrow()
                .iter()
                .rev()
                .find(|(k, _)| &**k == key)
                .map(|(_, v)| v.clone()),
            _ => None,
        }
    }

    /// The items of a list or set.
    pub(crate) fn items(&self) -> Option<Vec<Val>> {
        match self {
            Val::Arr(items) | Val::Set(items) => Some(items.borrow().clone()),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Val::Str(s) => Some(s),
            _ => None,
        }
    }

    /// `===`; `None` where an unknown decides.
    pub(crate) fn same(&self, other: &Val) -> Option<bool> {
        Some(match (self, other) {
            (Val::Unknown(_), _) | (_, Val::Unknown(_)) => return None,
            (Val::Str(a), Val::Str(b)) if a.contains(MARK) || b.contains(MARK) => return None,
            (Val::Undefined, Val::Undefined) | (Val::Null, Val::Null) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::Num(a), Val::Num(b)) => a == b,
            (Val::Str(a), Val::Str(b)) => a == b,
            (Val::Arr(a), Val::Arr(b)) => Rc::ptr_eq(a, b),
            (Val::Obj(a), Val::Obj(b)) => Rc::ptr_eq(a, b),
            (Val::Func(a), Val::Func(b)) => Rc::ptr_eq(a, b),
            _ => false,
        })
    }
}

/// A number as JavaScript prints it, for the range that commands use.
pub(crate) fn number(n: f64) -> String {
    if n.is_finite() && n == n.trunc() && n.abs() < 1e15 {
        format!("{}", n as i64)
    } else {
        format!("{n}")
    }
}

/// Sets a member of an object, keeping its place.
pub(crate) fn set_member(members: &Members, key: &str, value: Val) {
    let mut members = members.borrow_mut();
    match members.iter_mut().find(|(k, _)| &**k == key) {
        Some((_, old)) => *old = value,
        None => members.push((key.into(), value)),
    }
}
