//! Small pure text helpers: escapes of `echo -e`, `printf` and `$'…'`, and quoting for `%q`.

/// Decode what follows a backslash. Returns the text and the number of bytes used. `ansi` is the `$'…'` and
/// `printf` dialect; without it octal needs a leading zero (`echo -e`).
pub(crate) fn escape(rest: &str, ansi: bool) -> (String, usize) {
    let Some(first) = rest.chars().next() else {
        return ("\\".into(), 0);
    };
    let one = |c: char| (c.to_string(), 1);
    match first {
        'n' => one('\n'),
        't' => one('\t'),
        'r' => one('\r'),
        'a' => one('\u{7}'),
        'b' => one('\u{8}'),
        'f' => one('\u{c}'),
        'v' => one('\u{b}'),
        'e' | 'E' => one('\u{1b}'),
        '\\' => one('\\'),
        '\'' if ansi => one('\''),
        '"' if ansi => one('"'),
        '?' if ansi => one('?'),
        'x' | 'u' | 'U' => {
            let most = match first {
                'x' => 2,
                'u' => 4,
                _ => 8,
            };
            let digits = rest[1..].bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
            let code = u32::from_str_radix(&rest[1..1 + digits], 16)
                .ok()
                .and_then(char::from_u32);
            match code {
                Some(c) if c != '\0' => (c.to_string(), 1 + digits),
                _ => (format!("\\{first}"), 1),
            }
        }
        '0'..='7' if ansi || first == '0' => {
            let most = if ansi { 3 } else { 4 };
            let digits = rest
                .bytes()
                .take(most)
                .take_while(|b| (b'0'..=b'7').contains(b))
                .count();
            let code = u32::from_str_radix(&rest[..digits], 8)
                .ok()
                .and_then(|c| char::from_u32(c & 0xff));
            match code {
                Some(c) if c != '\0' => (c.to_string(), digits),
                _ => (String::new(), digits),
            }
        }
        other => (format!("\\{other}"), other.len_utf8()),
    }
}

/// All escapes of a text decoded; stops at `\c` (second value true).
pub(crate) fn unescape(text: &str, ansi: bool) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if rest.starts_with('c') {
            return (out, true);
        }
        let (decoded, used) = escape(rest, ansi);
        out.push_str(&decoded);
        rest = &rest[used..];
    }
    out.push_str(rest);
    (out, false)
}

/// Quote a text so that the shell reads it back as one word (`printf %q`).
pub(crate) fn quote(text: &str) -> String {
    if text.is_empty() {
        return "''".into();
    }
    if text.chars().any(char::is_control) {
        let mut out = String::from("$'");
        for c in text.chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '\'' => out.push_str("\\'"),
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => out.push_str(&format!("\\{:03o}", c as u32)),
                c => out.push(c),
            }
        }
        out.push('\'');
        return out;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (index, c) in text.chars().enumerate() {
        let special = " \t!\"#$&'()*,;<>?[\\]^`{|}".contains(c) || (c == '~' && index == 0);
        if special && !(c == '#' && index > 0) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
