//! PyYAML's implicit resolution of plain scalars and its construction of numbers, booleans and dates (YAML 1.1 as
//! `yaml.safe_load` reads it). Written out by hand because the parser underneath follows YAML 1.2 here.

use crate::node::{OpaqueKind, Value};

/// What a scalar's text says it is, before a value is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    /// A plain `<<`.
    Merge,
    /// A plain `=`, which means "the default value" in YAML 1.1.
    DefaultValue,
    Str,
}

/// The kind of a plain scalar. The order of the tests is the order of PyYAML's resolver table.
pub(crate) fn kind_of_plain(text: &str) -> Kind {
    let bytes = text.as_bytes();
    let Some(&first) = bytes.first() else {
        return Kind::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => {
            if bool_of(text).is_some() {
                Kind::Bool
            } else if matches!(text, "null" | "Null" | "NULL") {
                Kind::Null
            } else {
                Kind::Str
            }
        }
        b'-' | b'+' | b'.' | b'0'..=b'9' => {
            if is_float(bytes) {
                Kind::Float
            } else if is_int(bytes) {
                Kind::Int
            } else if first.is_ascii_digit() && is_timestamp(bytes) {
                Kind::Timestamp
            } else {
                Kind::Str
            }
        }
        b'~' if text == "~" => Kind::Null,
        b'<' if text == "<<" => Kind::Merge,
        b'=' if text == "=" => Kind::DefaultValue,
        _ => Kind::Str,
    }
}

/// Builds the value of a scalar of a known kind; `Err` is what Python would raise, in one sentence.
pub(crate) fn construct(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Null => Ok(Value::Null),
        Kind::Str => Ok(Value::Str(text.to_owned())),
        Kind::Bool => bool_of_any_case(text)
            .map(Value::Bool)
            .ok_or_else(|| format!("`{}` is not a boolean", clip(text))),
        Kind::Int => int(text).ok_or_else(|| format!("`{}` is not an integer", clip(text))),
        Kind::Float => float(text)
            .map(Value::Float)
            .ok_or_else(|| format!("`{}` is not a number", clip(text))),
        Kind::Timestamp => {
            if is_timestamp(text.as_bytes()) && timestamp_in_range(text) {
                Ok(Value::Opaque(OpaqueKind::Timestamp, text.to_owned()))
            } else {
                Err(format!("`{}` is not a date of the calendar", clip(text)))
            }
        }
        Kind::Merge => Err("`<<` stands where a value is expected".to_owned()),
        Kind::DefaultValue => Err("a plain `=` has a special meaning in YAML 1.1 and no value".to_owned()),
    }
}

/// Shortens text for messages, on a character boundary.
pub(crate) fn clip(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(end, _)| &text[..end])
}

fn bool_of(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// An explicitly tagged boolean is looked up without regard to case.
fn bool_of_any_case(text: &str) -> Option<bool> {
    bool_of(text).or_else(|| {
        if text.len() <= 5 {
            bool_of(&text.to_ascii_lowercase())
        } else {
            None
        }
    })
}

fn skip_while(bytes: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> usize {
    let mut at = from;
    while bytes.get(at).is_some_and(|&b| accept(b)) {
        at += 1;
    }
    at
}

fn digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

fn after_sign(bytes: &[u8]) -> usize {
    usize::from(matches!(bytes.first(), Some(b'-' | b'+')))
}

/// An exponent needs its sign in YAML 1.1, which is why `1.5e3` is text. Returns the end of the exponent, or `from`.
fn skip_exponent(bytes: &[u8], from: usize) -> usize {
    if matches!(bytes.get(from), Some(b'e' | b'E')) && matches!(bytes.get(from + 1), Some(b'-' | b'+')) {
        let end = skip_while(bytes, from + 2, |b| b.is_ascii_digit());
        if end > from + 2 {
            return end;
        }
    }
    from
}

/// Reads `(:[0-5]?[0-9])+` from `from`; `None` when there is not even one group.
fn skip_sexagesimal(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while bytes.get(at) == Some(&b':') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        let two = matches!(bytes[at + 1], b'0'..=b'5') && bytes.get(at + 2).is_some_and(u8::is_ascii_digit);
        at += if two { 3 } else { 2 };
    }
    (at > from).then_some(at)
}

fn is_float(bytes: &[u8]) -> bool {
    let start = after_sign(bytes);
    let rest = &bytes[start..];
    if matches!(rest, b".inf" | b".Inf" | b".INF") || matches!(bytes, b".nan" | b".NaN" | b".NAN") {
        return true;
    }
    if rest.first().is_some_and(u8::is_ascii_digit) {
        let whole = skip_while(bytes, start, digit_or_underscore);
        if bytes.get(whole) == Some(&b'.') {
            let fraction = skip_while(bytes, whole + 1, digit_or_underscore);
            return skip_exponent(bytes, fraction) == bytes.len();
        }
        return skip_sexagesimal(bytes, whole).is_some_and(|end| {
            bytes.get(end) == Some(&b'.') && skip_while(bytes, end + 1, digit_or_underscore) == bytes.len()
        });
    }
    // The form without a whole part takes no sign.
    if bytes.first() == Some(&b'.') && bytes.get(1).is_some_and(u8::is_ascii_digit) {
        let fraction = skip_while(bytes, 1, digit_or_underscore);
        return skip_exponent(bytes, fraction) == bytes.len();
    }
    false
}

fn is_int(bytes: &[u8]) -> bool {
    let rest = &bytes[after_sign(bytes)..];
    let all = |from: usize, accept: fn(u8) -> bool| rest.len() > from && rest[from..].iter().all(|&b| accept(b));
    match rest {
        [b'0'] => true,
        [b'0', b'b', ..] => all(2, |b| matches!(b, b'0' | b'1' | b'_')),
        [b'0', b'x', ..] => all(2, |b| b.is_ascii_hexdigit() || b == b'_'),
        [b'0', ..] => all(1, |b| matches!(b, b'0'..=b'7' | b'_')),
        [b'1'..=b'9', ..] => {
            let whole = skip_while(rest, 0, digit_or_underscore);
            whole == rest.len() || skip_sexagesimal(rest, whole) == Some(rest.len())
        }
        _ => false,
    }
}

fn int(text: &str) -> Option<Value> {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    let negative = plain.starts_with('-');
    let digits = plain.strip_prefix(['-', '+']).unwrap_or(&plain);
    let parsed = if digits == "0" {
        Some(0)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        radix(binary, 2)?
    } else if let Some(hex) = digits.strip_prefix("0x") {
        radix(hex, 16)?
    } else if digits.starts_with('0') {
        radix(digits, 8)?
    } else if digits.contains(':') {
        sexagesimal_int(digits)?
    } else {
        radix(digits, 10)?
    };
    let signed = parsed.and_then(|magnitude| {
        if negative {
            0_i128.checked_sub(magnitude)
        } else {
            Some(magnitude)
        }
    });
    Some(match signed.and_then(|number| i64::try_from(number).ok()) {
        Some(number) => Value::Int(number),
        None => Value::Opaque(OpaqueKind::BigInt, plain),
    })
}

/// Outer `None`: not a number in this base. Inner `None`: one, but beyond 128 bits.
#[allow(clippy::option_option)]
fn radix(digits: &str, base: u32) -> Option<Option<i128>> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    Some(i128::from_str_radix(digits, base).ok())
}

#[allow(clippy::option_option)]
fn sexagesimal_int(digits: &str) -> Option<Option<i128>> {
    let mut total = Some(0_i128);
    for part in digits.split(':') {
        let value = radix(part, 10)?;
        total = total
            .and_then(|t| t.checked_mul(60))
            .and_then(|t| t.checked_add(value?));
    }
    Some(total)
}

fn float(text: &str) -> Option<f64> {
    let plain: String = text
        .chars()
        .filter(|&c| c != '_')
        .collect::<String>()
        .to_ascii_lowercase();
    let negative = plain.starts_with('-');
    let digits = plain.strip_prefix(['-', '+']).unwrap_or(&plain);
    let magnitude = match digits {
        ".inf" => f64::INFINITY,
        ".nan" => return Some(f64::NAN),
        _ if digits.contains(':') => {
            let mut base = 1.0;
            let mut total = 0.0;
            for part in digits.rsplit(':') {
                total += decimal(part)? * base;
                base *= 60.0;
            }
            total
        }
        _ => decimal(digits)?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Python's `float()` and Rust's agree on plain decimal notation; words such as `infinity` are not let through.
fn decimal(text: &str) -> Option<f64> {
    let plausible = text.bytes().any(|b| b.is_ascii_digit())
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'-' | b'+'));
    if plausible { text.parse().ok() } else { None }
}

fn digits_at(bytes: &[u8], at: &mut usize, least: usize, most: usize) -> bool {
    let end = skip_while(&bytes[..bytes.len().min(*at + most)], *at, |b| b.is_ascii_digit());
    let found = end.saturating_sub(*at);
    *at = end;
    found >= least
}

fn byte_at(bytes: &[u8], at: &mut usize, wanted: u8) -> bool {
    let found = bytes.get(*at) == Some(&wanted);
    *at += usize::from(found);
    found
}

fn is_timestamp(bytes: &[u8]) -> bool {
    let mut at = 0;
    if !(digits_at(bytes, &mut at, 4, 4) && byte_at(bytes, &mut at, b'-')) {
        return false;
    }
    let month = at;
    if !(digits_at(bytes, &mut at, 1, 2) && byte_at(bytes, &mut at, b'-')) {
        return false;
    }
    let day = at;
    if !digits_at(bytes, &mut at, 1, 2) {
        return false;
    }
    if at == bytes.len() {
        // A bare date has two digits each.
        return day - month == 3 && at - day == 2;
    }
    if matches!(bytes[at], b'T' | b't') {
        at += 1;
    } else {
        let blanks = skip_while(bytes, at, |b| b == b' ' || b == b'\t');
        if blanks == at {
            return false;
        }
        at = blanks;
    }
    if !(digits_at(bytes, &mut at, 1, 2)
        && byte_at(bytes, &mut at, b':')
        && digits_at(bytes, &mut at, 2, 2)
        && byte_at(bytes, &mut at, b':')
        && digits_at(bytes, &mut at, 2, 2))
    {
        return false;
    }
    if byte_at(bytes, &mut at, b'.') {
        at = skip_while(bytes, at, |b| b.is_ascii_digit());
    }
    if at == bytes.len() {
        return true;
    }
    at = skip_while(bytes, at, |b| b == b' ' || b == b'\t');
    match bytes.get(at) {
        Some(b'Z') => at + 1 == bytes.len(),
        Some(b'-' | b'+') => {
            at += 1;
            if !digits_at(bytes, &mut at, 1, 2) {
                return false;
            }
            at == bytes.len() || (byte_at(bytes, &mut at, b':') && digits_at(bytes, &mut at, 2, 2) && at == bytes.len())
        }
        _ => false,
    }
}

/// Python refuses a month 13 or a 30 February when it builds the date; so do we. `text` has passed [`is_timestamp`].
fn timestamp_in_range(text: &str) -> bool {
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty());
    let mut next = || {
        numbers
            .next()
            .and_then(|part| part.get(..part.len().min(6)))
            .and_then(|p| p.parse::<u32>().ok())
    };
    let (Some(year), Some(month), Some(day)) = (next(), next(), next()) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    if year == 0 || day == 0 || day > days {
        return false;
    }
    let (hour, minute, second) = (next().unwrap_or(0), next().unwrap_or(0), next().unwrap_or(0));
    hour < 24 && minute < 60 && second < 60
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match construct(kind_of_plain(text), text) {
            Ok(Value::Null) => "null".to_owned(),
            Ok(Value::Bool(b)) => format!("bool {b}"),
            Ok(Value::Int(i)) => format!("int {i}"),
            Ok(Value::Float(f)) => format!("float {f:?}"),
            Ok(Value::Str(s)) => format!("str {s}"),
            Ok(Value::Opaque(OpaqueKind::BigInt, s)) => format!("big {s}"),
            Ok(Value::Opaque(OpaqueKind::Timestamp, s)) => format!("date {s}"),
            Ok(Value::Seq(_) | Value::Map(_)) => "collection".to_owned(),
            Err(_) => "error".to_owned(),
        }
    }

    /// Expectations taken from PyYAML's `safe_load`, one by one.
    #[test]
    fn plain_scalars_read_as_pyyaml_reads_them() {
        for (text, expected) in [
            ("", "null"),
            ("~", "null"),
            ("null", "null"),
            ("NULL", "null"),
            ("nULL", "str nULL"),
            ("yes", "bool true"),
            ("Off", "bool false"),
            ("oN", "str oN"),
            ("y", "str y"),
            ("N", "str N"),
            ("1_998_848", "int 1998848"),
            ("010", "int 8"),
            ("08", "str 08"),
            ("0o17", "str 0o17"),
            ("0x1F", "int 31"),
            ("-0x1F", "int -31"),
            ("0x__1", "int 1"),
            ("0x_", "error"),
            ("0b_", "error"),
            ("0b101", "int 5"),
            ("0_1", "int 1"),
            ("0_", "int 0"),
            ("22:22", "int 1342"),
            ("190:20:30", "int 685230"),
            ("190:20:30.15", "float 685230.15"),
            ("22:62", "str 22:62"),
            ("+1", "int 1"),
            ("-", "str -"),
            ("1e5", "str 1e5"),
            ("1.5e3", "str 1.5e3"),
            ("1.5e+3", "float 1500.0"),
            ("1.", "float 1.0"),
            ("1_0.0", "float 10.0"),
            (".5", "float 0.5"),
            ("-.5", "str -.5"),
            ("._", "str ._"),
            ("-.inf", "float -inf"),
            ("-.nan", "str -.nan"),
            (".NaN", "float NaN"),
            ("1.2.3", "str 1.2.3"),
            ("9223372036854775807", "int 9223372036854775807"),
            ("-9223372036854775808", "int -9223372036854775808"),
            ("9223372036854775808", "big 9223372036854775808"),
            ("2026-08-07", "date 2026-08-07"),
            ("2026-8-7", "str 2026-8-7"),
            ("2026-8-7 1:02:03", "date 2026-8-7 1:02:03"),
            ("2026-08-07T01:02:03.5 +1:30", "date 2026-08-07T01:02:03.5 +1:30"),
            ("2026-13-01", "error"),
            ("2026-02-29", "error"),
            ("2024-02-29", "date 2024-02-29"),
            ("<<", "error"),
            ("=", "error"),
            ("<", "str <"),
            ("v0.21.0", "str v0.21.0"),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
