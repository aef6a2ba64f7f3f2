//! Expressions as bash computes them.

use super::*;
use crate::value::Span;
use std::collections::BTreeMap;

#[derive(Default)]
struct Map(BTreeMap<String, Value>, Lanes);

impl Vars for Map {
    fn get(&mut self, name: &str, _: Option<&Num>) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }
    fn set(&mut self, name: &str, _: Option<&Num>, value: &Num) {
        if let Num::Known(n) = value {
            self.0.insert(name.into(), Value::text(n.to_string(), Span::NOWHERE));
        }
    }
    fn lanes(&mut self) -> &mut Lanes {
        &mut self.1
    }
}

#[test]
fn several_points_at_once() {
    // Each point gets what bash gives for its own numbers; what a point does not share with the first leaves it out.
    let eval_for = |text: &str| {
        let mut vars = Map(BTreeMap::new(), Lanes::new(3));
        let conc = crate::lanes::each_value(vec!["4".into(), "16".into(), "64".into()], Span::NOWHERE);
        vars.0.insert("CONC".into(), conc);
        let number = eval(&Value::text(text, Span::NOWHERE), &mut vars);
        (number, vars.1.held())
    };
    for (text, expected) in [
        ("CONC * 10", [40, 160, 640]),
        ("-CONC + 1", [-3, -15, -63]),
        ("CONC > 16 ? CONC : 16", [16, 16, 64]),
        ("CONC < 16 ? 4096 : CONC * 2", [4096, 32, 128]),
        ("CONC >= 16", [0, 1, 1]),
        ("(CONC + 63) / 64 * 64 + !CONC", [64, 64, 64]),
    ] {
        let (number, held) = eval_for(text);
        assert_eq!(held, [0, 1, 2], "{text}");
        let number = number.unwrap();
        assert_eq!([0, 1, 2].map(|lane| number.in_lane(lane).unwrap()), expected, "{text}");
    }
    assert_eq!(eval_for("CONC > 8 && 7"), (Ok(Num::Known(0)), vec![0]));
    assert_eq!(eval_for("CONC < 32 || 7 / 0"), (Ok(Num::Known(1)), vec![0, 1]));
    assert_eq!(
        eval_for("CONC > 32 ? (x = 1) : (x = 2)"),
        (Ok(Num::Known(2)), vec![0, 1])
    );
    assert_eq!(eval_for("100 / (CONC - 16)").1, [0, 2]);
    assert_eq!(eval_for("100 / (CONC - 4)"), (Err("division by zero".into()), vec![0]));
    assert_eq!(eval_for("CONC > 32 ? 1 / 0 : 2").1, [0_usize; 0]);
}

#[test]
fn as_bash_computes() {
    let mut vars = Map::default();
    vars.0.insert("TP".into(), Value::text("8", Span::NOWHERE));
    vars.0.insert("EXPR".into(), Value::text("TP + 1", Span::NOWHERE));
    // Expected values are bash's own (`echo $((…))`).
    for (text, expected) in [
        ("", 0),
        ("2 * TP", 16),
        ("TP > 16 ? TP : 16", 16),
        ("TP - 4096 / 2", -2040),
        ("1 + 2 * 3 ** 2", 19),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("0x1f + 010 + 2#101", 44),
        ("(1, 2, 3)", 3),
        ("!0 + ~0", 0),
        ("1 << 4 | 3", 19),
        ("TP && 0 || 5", 1),
        ("0 && 1 / 0", 0),
        ("EXPR * 2", 18),
        ("unset_name + 1", 1),
        ("x = 5, x += 2, x++, x", 8),
        ("++y + y++", 2),
        ("2 ** 63", i64::MIN),
        ("9223372036854775807 + 1", i64::MIN),
    ] {
        assert_eq!(
            eval(&Value::text(text, Span::NOWHERE), &mut vars),
            Ok(Num::Known(expected)),
            "{text}"
        );
    }
    for text in ["1 /", "1 / 0", "(1", "1 2", "08", "a[1", "$"] {
        assert!(eval(&Value::text(text, Span::NOWHERE), &mut vars).is_err(), "{text}");
    }
    let deep = "(".repeat(20_000);
    assert!(eval(&Value::text(deep, Span::NOWHERE), &mut vars).is_err());
    let deep = "-".repeat(20_000);
    assert!(eval(&Value::text(deep, Span::NOWHERE), &mut vars).is_err());
}
