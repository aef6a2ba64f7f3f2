//! The built-in functions that command generators use.

use std::rc::Rc;

use super::eval::{Eval, Machine, Stop, index_text};
use super::value::{Val, set_member};

/// A global name.
pub(crate) fn global(name: &str) -> Val {
    match name {
        "Object" | "Array" | "Math" | "JSON" | "String" | "Number" | "Boolean" | "parseInt" | "parseFloat"
        | "console" | "useState" | "useEffect" | "useMemo" | "useCallback" | "useRef" | "React" | "Set" => {
            Val::Global(name.into())
        }
        "NaN" => Val::Num(f64::NAN),
        "Infinity" => Val::Num(f64::INFINITY),
        _ => Val::unknown(name),
    }
}

const METHODS: &[&str] = &[
    "map",
    "filter",
    "find",
    "findIndex",
    "some",
    "every",
    "includes",
    "indexOf",
    "join",
    "push",
    "unshift",
    "concat",
    "slice",
    "splice",
    "forEach",
    "flat",
    "flatMap",
    "reduce",
    "reverse",
    "sort",
    "at",
    "has",
    "add",
    "delete",
    "get",
    "set",
    "startsWith",
    "endsWith",
    "replace",
    "replaceAll",
    "split",
    "trim",
    "trimEnd",
    "trimStart",
    "toLowerCase",
    "toUpperCase",
    "substring",
    "repeat",
    "padEnd",
    "padStart",
    "toString",
    "toFixed",
    "keys",
    "values",
    "entries",
    "pop",
    "shift",
    "charAt",
    "match",
    "test",
    "hasOwnProperty",
];

/// Reads a member.
pub(crate) fn get(object: &Val, key: &str) -> Val {
    if let Some(value) = object.member(key) {
        return value;
    }
    match object {
        Val::Unknown(name) => Val::unknown(format!("{name}.{key}")),
        Val::Global(name) => Val::Global(format!("{name}.{key}").into()),
        Val::Arr(items) | Val::Set(items) => {
            if key == "length" || key == "size" {
                return Val::Num(items.borrow().len() as f64);
            }
            match key.parse::<usize>() {
                Ok(i) => items.borrow().get(i).cloned().unwrap_or(Val::Undefined),
                Err(_) => method_value(object, key),
            }
        }
        Val::Str(text) => match key {
            "length" => Val::Num(text.chars().count() as f64),
            _ => match key.parse::<usize>() {
                Ok(i) => text.chars().nth(i).map_or(Val::Undefined, |c| Val::str(c.to_string())),
                Err(_) => method_value(object, key),
            },
        },
        Val::Num(_) | Val::Obj(_) | Val::Bool(_) => method_value(object, key),
        _ => Val::Undefined,
    }
}

fn method_value(object: &Val, key: &str) -> Val {
    let on_object = matches!(
        key,
        "hasOwnProperty" | "get" | "has" | "set" | "keys" | "values" | "entries"
    );
    match object {
        Val::Obj(_) if !on_object => Val::Undefined,
        _ if METHODS.contains(&key) => Val::Method(Box::new(object.clone()), key.into()),
        _ => Val::Undefined,
    }
}

/// A prefix operator.
pub(crate) fn unary(op: &str, value: &Val) -> Val {
    match (op, value) {
        (_, Val::Unknown(name)) if op != "!" => Val::Unknown(name.clone()),
        ("!", v) => Val::Bool(!v.truthy()),
        ("-", v) => v.number().map_or_else(|| Val::unknown("-"), |n| Val::Num(-n)),
        ("+", v) => v.number().map_or_else(|| Val::unknown("+"), Val::Num),
        ("typeof", v) => Val::str(match v {
            Val::Undefined => "undefined",
            Val::Bool(_) => "boolean",
            Val::Num(_) => "number",
            Val::Str(_) => "string",
            Val::Func(_) | Val::Method(..) | Val::Global(_) => "function",
            _ => "object",
        }),
        _ => Val::Undefined,
    }
}

/// An infix operator other than string concatenation.
pub(crate) fn binary(op: &str, left: &Val, right: &Val) -> Val {
    let equal = |loose: bool| -> Val {
        if loose && left.is_nullish() && right.is_nullish() {
            return Val::Bool(true);
        }
        left.same(right).map_or_else(|| Val::unknown("comparison"), Val::Bool)
    };
    let negate = |v: Val| if let Val::Bool(b) = v { Val::Bool(!b) } else { v };
    match op {
        "===" => return equal(false),
        "==" => return equal(true),
        "!==" => return negate(equal(false)),
        "!=" => return negate(equal(true)),
        "in" => {
            return match right {
                Val::Obj(_) => Val::Bool(right.member(&left.text()).is_some()),
                _ => Val::unknown("in"),
            };
        }
        _ => {}
    }
    for side in [left, right] {
        if let Val::Unknown(name) = side {
            return Val::Unknown(name.clone());
        }
    }
    if let (Val::Str(a), Val::Str(b)) = (left, right) {
        match op {
            "<" => return Val::Bool(a < b),
            ">" => return Val::Bool(a > b),
            "<=" => return Val::Bool(a <= b),
            ">=" => return Val::Bool(a >= b),
            _ => {}
        }
    }
    let (Some(a), Some(b)) = (left.number(), right.number()) else {
        return Val::unknown(op);
    };
    match op {
        "+" => Val::Num(a + b),
        "-" => Val::Num(a - b),
        "*" => Val::Num(a * b),
        "/" => Val::Num(a / b),
        "%" => Val::Num(a % b),
        "**" => Val::Num(a.powf(b)),
        "<" => Val::Bool(a < b),
        ">" => Val::Bool(a > b),
        "<=" => Val::Bool(a <= b),
        ">=" => Val::Bool(a >= b),
        _ => Val::unknown(op),
    }
}

/// A call of a global function.
pub(crate) fn global_call(m: &mut Machine, name: &str, args: Vec<Val>) -> Eval<Val> {
    let arg = |i: usize| args.get(i).cloned().unwrap_or(Val::Undefined);
    let members = |v: &Val| match v {
        Val::Obj(members) => members.borrow().clone(),
        Val::Arr(items) => items
            .borrow()
            .iter()
            .enumerate()
            .map(|(i, v)| (index_text(i).into(), v.clone()))
            .collect(),
        _ => Vec::new(),
    };
    let first = arg(0);
    m.spend(members(&first).len() as u64)?;
    Ok(match name {
        "Object.keys" => return m.arr(members(&first).into_iter().map(|(k, _)| Val::Str(k)).collect()),
        "Object.values" => return m.arr(members(&first).into_iter().map(|(_, v)| v).collect()),
        "Object.entries" => {
            let mut pairs = Vec::new();
            for (key, value) in members(&first) {
                pairs.push(m.arr(vec![Val::Str(key), value])?);
            }
            return m.arr(pairs);
        }
        "Object.fromEntries" => {
            let pairs = first.items().unwrap_or_default();
            let pairs = pairs
                .iter()
                .filter_map(Val::items)
                .filter(|p| p.len() == 2)
                .map(|p| (p[0].text(), p[1].clone()))
                .collect();
            return m.obj(pairs);
        }
        "Object.assign" => {
            for source in args.iter().skip(1) {
                for (key, value) in members(source) {
                    m.touch(&first)?;
                    if let Val::Obj(target) = &first {
                        set_member(target, &key, value);
                    }
                }
            }
            first
        }
        "Object.freeze" | "structuredClone" => first,
        "Array.isArray" => Val::Bool(matches!(first, Val::Arr(_))),
        "Array.from" => match first.items() {
            Some(items) => return m.arr(items),
            None => Val::unknown(name),
        },
        "Math.max" | "Math.min" => {
            let numbers: Option<Vec<f64>> = args.iter().map(Val::number).collect();
            match numbers {
                Some(n) if name == "Math.max" => Val::Num(n.into_iter().fold(f64::NEG_INFINITY, f64::max)),
                Some(n) => Val::Num(n.into_iter().fold(f64::INFINITY, f64::min)),
                None => Val::unknown(name),
            }
        }
        "Math.floor" | "Math.ceil" | "Math.round" | "Math.abs" | "Math.log2" | "Math.sqrt" | "Math.trunc" => {
            first.number().map_or_else(
                || Val::unknown(name),
                |n| {
                    Val::Num(match name {
                        "Math.floor" => n.floor(),
                        "Math.ceil" => n.ceil(),
                        "Math.round" => n.round(),
                        "Math.abs" => n.abs(),
                        "Math.log2" => n.log2(),
                        "Math.sqrt" => n.sqrt(),
                        _ => n.trunc(),
                    })
                },
            )
        }
        "Math.pow" => binary("**", &first, &arg(1)),
        "String" => Val::Str(first.text()),
        "Number" | "parseFloat" => first.number().map_or_else(|| Val::unknown(name), Val::Num),
        "parseInt" => {
            let text = first.text();
            let digits: String = text
                .trim()
                .chars()
                .take_while(|c| c.is_ascii_digit())
                .take(15)
                .collect();
            Val::Num(digits.parse().unwrap_or(f64::NAN))
        }
        "Boolean" => Val::Bool(first.truthy()),
        "JSON.stringify" => {
            let mut out = String::new();
            json(m, &first, &mut out, 0)?;
            return m.string(out);
        }
        // React: the state is what the caller of the evaluator will change.
        "useState" | "React.useState" => {
            let state = match &first {
                Val::Func(_) => m.call(&first, Val::Undefined, Vec::new())?,
                other => other.clone(),
            };
            m.states.push(state.clone());
            return m.arr(vec![state, Val::unknown("setState")]);
        }
        "useMemo" | "React.useMemo" => m.call(&first, Val::Undefined, Vec::new())?,
        "useCallback" | "React.useCallback" => first,
        _ if name.starts_with("console.") || name.contains("useEffect") => Val::Undefined,
        _ => Val::unknown(format!("{name}()")),
    })
}

fn json(m: &mut Machine, value: &Val, out: &mut String, depth: usize) -> Eval<()> {
    m.spend(1)?;
    if depth > 30 || out.len() > 60_000 {
        return Err(Stop);
    }
    match value {
        Val::Obj(members) => {
            out.push('{');
            for (i, (key, value)) in members
                .borrow()
                .iter()
                .filter(|(_, v)| !matches!(v, Val::Undefined))
                .enumerate()
            {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&format!("{key:?}:"));
                json(m, value, out, depth + 1)?;
            }
            out.push('}');
        }
        Val::Arr(items) => {
            out.push('[');
            for (i, value) in items.borrow().iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json(m, value, out, depth + 1)?;
            }
            out.push(']');
        }
        Val::Str(text) => {
            out.push('"');
            out.push_str(&text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
            out.push('"');
        }
        other => out.push_str(&other.text()),
    }
    Ok(())
}

/// A call of a method.
pub(crate) fn method(m: &mut Machine, target: &Val, name: &str, args: Vec<Val>) -> Eval<Val> {
    match target {
        Val::Arr(_) | Val::Set(_) => list_method(m, target, name, args),
        Val::Str(text) => string_method(m, text, name, &args),
        Val::Num(n) => Ok(match name {
            "toFixed" => {
                let digits = args.first().and_then(Val::number).unwrap_or(0.0).clamp(0.0, 10.0) as usize;
                Val::str(format!("{n:.digits$}"))
            }
            _ => Val::Str(target.text()),
        }),
        Val::Obj(members) => {
            let key = args.first().map(Val::text).unwrap_or_else(|| "".into());
            Ok(match name {
                "has" | "hasOwnProperty" => Val::Bool(target.member(&key).is_some()),
                "get" => target.member(&key).unwrap_or(Val::Undefined),
                "set" => {
                    let value = args.get(1).cloned().unwrap_or(Val::Undefined);
                    m.touch(target)?;
                    set_member(members, &key, value);
                    target.clone()
                }
                "keys" | "values" | "entries" => {
                    return global_call(m, &format!("Object.{name}"), vec![target.clone()]);
                }
                _ => Val::unknown(name),
            })
        }
        _ => Ok(Val::unknown(format!("{name}()"))),
    }
}

fn index(value: Option<&Val>, len: usize, default: usize) -> usize {
    match value.and_then(Val::number) {
        Some(n) if n < 0.0 => len.saturating_sub((-n).min(len as f64) as usize),
        Some(n) => (n.min(len as f64)) as usize,
        None => default,
    }
}

fn list_method(m: &mut Machine, target: &Val, name: &str, args: Vec<Val>) -> Eval<Val> {
    let items = target.items().unwrap_or_default();
    m.spend(items.len() as u64)?;
    let first = args.first().cloned().unwrap_or(Val::Undefined);
    let call = |m: &mut Machine, i: usize, item: &Val| {
        m.call(
            &first,
            Val::Undefined,
            vec![item.clone(), Val::Num(i as f64), target.clone()],
        )
    };
    let found = |wanted: &Val| items.iter().position(|v| v.same(wanted) == Some(true));
    Ok(match name {
        "map" | "flatMap" | "forEach" => {
            let mut out = Vec::new();
            for (i, item) in items.iter().enumerate() {
                let value = call(m, i, item)?;
                match value.items() {
                    Some(more) if name == "flatMap" => out.extend(more),
                    _ => out.push(value),
                }
            }
            if name == "forEach" {
                Val::Undefined
            } else {
                return m.arr(out);
            }
        }
        "filter" => {
            let mut out = Vec::new();
            for (i, item) in items.iter().enumerate() {
                let keep = matches!(&first, Val::Global(g) if &**g == "Boolean") && item.truthy();
                if keep || (matches!(first, Val::Func(_)) && call(m, i, item)?.truthy()) {
                    out.push(item.clone());
                }
            }
            return m.arr(out);
        }
        "find" | "findIndex" | "some" | "every" => {
            let mut hit = None;
            for (i, item) in items.iter().enumerate() {
                if call(m, i, item)?.truthy() != (name == "every") {
                    hit = Some(i);
                    break;
                }
            }
            match name {
                "find" => hit.and_then(|i| items.get(i).cloned()).unwrap_or(Val::Undefined),
                "findIndex" => Val::Num(hit.map_or(-1.0, |i| i as f64)),
                "some" => Val::Bool(hit.is_some()),
                _ => Val::Bool(hit.is_none()),
            }
        }
        "includes" | "has" => match first {
            Val::Unknown(name) => Val::Unknown(name),
            _ => Val::Bool(found(&first).is_some()),
        },
        "indexOf" => Val::Num(found(&first).map_or(-1.0, |i| i as f64)),
        "join" => {
            let separator = if matches!(first, Val::Undefined) {
                ",".into()
            } else {
                first.text()
            };
            let texts: Vec<Rc<str>> = items
                .iter()
                .map(|v| if v.is_nullish() { "".into() } else { v.text() })
                .collect();
            return m.string(texts.join(&separator));
        }
        "push" | "unshift" | "add" => {
            for arg in &args {
                m.touch(target)?;
                if let Val::Arr(list) | Val::Set(list) = target {
                    if name == "unshift" {
                        list.borrow_mut().insert(0, arg.clone());
                    } else if name == "push" || found(arg).is_none() {
                        list.borrow_mut().push(arg.clone());
                    }
                }
            }
            target.clone()
        }
        "pop" | "shift" | "delete" | "splice" => match target {
            Val::Arr(list) | Val::Set(list) => {
                let mut list = list.borrow_mut();
                match name {
                    "pop" => list.pop().unwrap_or(Val::Undefined),
                    "shift" if !list.is_empty() => list.remove(0),
                    "splice" => {
                        let from = index(args.first(), list.len(), 0);
                        let count = args
                            .get(1)
                            .and_then(Val::number)
                            .map_or(list.len(), |n| n.max(0.0) as usize);
                        let to = from.saturating_add(count).min(list.len());
                        let out: Vec<Val> = list.splice(from..to, args.iter().skip(2).cloned()).collect();
                        return m.arr(out);
                    }
                    _ => Val::Undefined,
                }
            }
            _ => Val::Undefined,
        },
        "concat" => {
            let mut out = items;
            for arg in &args {
                match arg.items() {
                    Some(more) => out.extend(more),
                    None => out.push(arg.clone()),
                }
            }
            m.spend(out.len() as u64)?;
            return m.arr(out);
        }
        "slice" => {
            let from = index(args.first(), items.len(), 0);
            let to = index(args.get(1), items.len(), items.len());
            return m.arr(items.get(from..to.max(from)).unwrap_or(&[]).to_vec());
        }
        "flat" => {
            return m.arr(
                items
                    .iter()
                    .flat_map(|v| v.items().unwrap_or_else(|| vec![v.clone()]))
                    .collect(),
            );
        }
        "reduce" => {
            let mut rest = items.iter().enumerate();
            let mut acc = match args.get(1) {
                Some(start) => start.clone(),
                None => rest.next().map_or(Val::Undefined, |(_, v)| v.clone()),
            };
            for (i, item) in rest {
                acc = m.call(&first, Val::Undefined, vec![acc, item.clone(), Val::Num(i as f64)])?;
            }
            acc
        }
        "reverse" => return m.arr(items.into_iter().rev().collect()),
        "sort" => target.clone(),
        "at" => items
            .get(index(args.first(), items.len(), 0))
            .cloned()
            .unwrap_or(Val::Undefined),
        "keys" => return m.arr((0..items.len()).map(|i| Val::Num(i as f64)).collect()),
        "values" => return m.arr(items),
        "entries" => {
            let mut pairs = Vec::new();
            for (i, value) in items.into_iter().enumerate() {
                pairs.push(m.arr(vec![Val::Num(i as f64), value])?);
            }
            return m.arr(pairs);
        }
        "toString" => Val::Str(target.text()),
        _ => Val::unknown(format!("{name}()")),
    })
}

fn string_method(m: &mut Machine, text: &Rc<str>, name: &str, args: &[Val]) -> Eval<Val> {
    m.spend(1 + text.len() as u64 / 32)?;
    let arg = |i: usize| args.get(i).map(Val::text).unwrap_or_else(|| "".into());
    let known = !matches!(args.first(), Some(Val::Unknown(_)));
    Ok(match name {
        "includes" if known => Val::Bool(text.contains(&*arg(0))),
        "startsWith" if known => Val::Bool(text.starts_with(&*arg(0))),
        "endsWith" if known => Val::Bool(text.ends_with(&*arg(0))),
        "indexOf" if known => Val::Num(text.find(&*arg(0)).map_or(-1.0, |i| text[..i].chars().count() as f64)),
        "replace" | "replaceAll" if known => {
            let out = if name == "replace" {
                text.replacen(&*arg(0), &arg(1), 1)
            } else {
                text.replace(&*arg(0), &arg(1))
            };
            return m.string(out);
        }
        // A pattern that is not a plain string is not understood; the text without the replacement is close enough.
        "replace" | "replaceAll" => Val::Str(text.clone()),
        "split" if known && !arg(0).is_empty() => {
            let parts: Vec<Val> = text.split(&*arg(0)).map(Val::str).collect();
            m.spend(parts.len() as u64)?;
            return m.arr(parts);
        }
        "trim" => Val::str(text.trim()),
        "trimEnd" => Val::str(text.trim_end()),
        "trimStart" => Val::str(text.trim_start()),
        "toLowerCase" => Val::str(text.to_lowercase()),
        "toUpperCase" => Val::str(text.to_uppercase()),
        "slice" | "substring" => {
            let chars: Vec<char> = text.chars().collect();
            let from = index(args.first(), chars.len(), 0);
            let to = index(args.get(1), chars.len(), chars.len());
            Val::str(chars.get(from..to.max(from)).unwrap_or(&[]).iter().collect::<String>())
        }
        "charAt" => get(&Val::Str(text.clone()), &arg(0)),
        "concat" => return m.string(format!("{text}{}", arg(0))),
        "repeat" => {
            let n = args.first().and_then(Val::number).unwrap_or(0.0).clamp(0.0, 1_000.0) as usize;
            if n.saturating_mul(text.len()) > 60_000 {
                return Err(Stop);
            }
            Val::str(text.repeat(n))
        }
        "padEnd" | "padStart" | "toString" => Val::Str(text.clone()),
        _ => Val::unknown(format!("{name}()")),
    })
}
