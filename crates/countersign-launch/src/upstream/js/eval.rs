//! A small, bounded evaluator for the command generators of documentation pages.
//!
//! It has no access to anything: unknown functions and globals yield named unknowns, an unknown condition counts as
//! false, and steps, depth, string sizes and scopes are limited.

use std::cell::RefCell;
use std::rc::Rc;

use super::ast::{Body, Expr, Func, Item, Part, Pattern, Prop, Stmt};
use super::builtins;
use super::value::{Closure, Members, Val, number, set_member};

/// Index of a scope in the evaluator.
pub(crate) type Scope = usize;

/// The budget is used up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop;

pub(crate) type Eval<T> = Result<T, Stop>;

/// How a statement ended.
pub(super) enum Flow {
    Normal,
    Return(Val),
    Break,
    Continue,
}

struct ScopeData {
    vars: Vec<(Rc<str>, Val)>,
    parent: Option<Scope>,
    this: Val,
}

/// Limits of one evaluation.
pub(super) const MAX_DEPTH: u32 = 160;
const MAX_STRING: usize = 64 * 1024;
const MAX_ITEMS: usize = 20_000;
const MAX_SCOPES: usize = 100_000;
const MAX_CONTAINERS: usize = 200_000;

/// The evaluator.
pub(crate) struct Machine {
    scopes: Vec<ScopeData>,
    steps: u64,
    bytes: u64,
    pub(super) depth: u32,
    /// Every list, object and set that was made. They are emptied one by one at the end, so that neither cycles keep
    /// memory nor deep nesting is dropped recursively.
    made: Vec<Val>,
    /// State objects handed out by `useState`, oldest first.
    pub(crate) states: Vec<Val>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.scopes.clear();
        self.states.clear();
        for val in &self.made {
            empty(val);
        }
    }
}

/// Empties a container that other handles may still hold.
fn empty(val: &Val) {
    match val {
        Val::Arr(items) | Val::Set(items) => {
            if let Ok(mut items) = items.try_borrow_mut() {
                items.clear();
            }
        }
        Val::Obj(members) => {
            if let Ok(mut members) = members.try_borrow_mut() {
                members.clear();
            }
        }
        _ => {}
    }
}

/// How many handles to a container exist.
fn handles(val: &Val) -> usize {
    match val {
        Val::Arr(items) | Val::Set(items) => Rc::strong_count(items),
        Val::Obj(members) => Rc::strong_count(members),
        _ => 1,
    }
}

impl Machine {
    /// A machine that may take so many steps.
    pub(crate) fn new(steps: u64) -> Self {
        let global = ScopeData {
            vars: Vec::new(),
            parent: None,
            this: Val::Undefined,
        };
        Machine {
            scopes: vec![global],
            steps,
            bytes: 64 << 20,
            depth: 0,
            made: Vec::new(),
            states: Vec::new(),
        }
    }

    /// Steps left.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Runs a file's statements in the global scope.
    pub(crate) fn run(&mut self, program: &[Stmt]) -> Eval<()> {
        self.block(program, 0).map(|_| ())
    }

    /// The variables of a scope, with their values.
    pub(crate) fn variables(&self, scope: Scope) -> Vec<(Rc<str>, Val)> {
        self.scopes.get(scope).map_or_else(Vec::new, |s| s.vars.clone())
    }

    /// What exists now; pass it to [`Machine::forget`] to drop what was made since.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.scopes.len(), self.made.len())
    }

    /// Drops the scopes and the unreachable containers made since `mark`.
    pub(crate) fn forget(&mut self, mark: (usize, usize)) {
        self.scopes.truncate(mark.0.max(1));
        let tail = self.made.split_off(mark.1.min(self.made.len()));
        // Containers are made after what they hold, so the newest go first and nothing is dropped through another.
        let mut held: Vec<Val> = tail;
        let mut kept = Vec::new();
        while let Some(val) = held.pop() {
            if handles(&val) > 1 {
                kept.push(val);
            } else {
                empty(&val);
            }
        }
        self.made.extend(kept.into_iter().rev());
    }

    fn keep(&mut self, val: Val) -> Eval<Val> {
        self.spend(1)?;
        if self.made.len() >= MAX_CONTAINERS {
            return Err(Stop);
        }
        self.made.push(val.clone());
        Ok(val)
    }

    /// A new list.
    pub(crate) fn arr(&mut self, items: Vec<Val>) -> Eval<Val> {
        self.spend(items.len() as u64 / 8)?;
        self.keep(Val::Arr(Rc::new(RefCell::new(items))))
    }

    /// A new object.
    pub(crate) fn obj(&mut self, members: Vec<(Rc<str>, Val)>) -> Eval<Val> {
        self.spend(members.len() as u64 / 8)?;
        self.keep(Val::Obj(Rc::new(RefCell::new(members))))
    }

    pub(crate) fn spend(&mut self, steps: u64) -> Eval<()> {
        self.steps = self.steps.checked_sub(steps).ok_or(Stop)?;
        Ok(())
    }

    /// A string within the limits.
    pub(crate) fn string(&mut self, text: String) -> Eval<Val> {
        self.bytes = self.bytes.checked_sub(text.len() as u64).ok_or(Stop)?;
        if text.len() > MAX_STRING {
            Err(Stop)
        } else {
            Ok(Val::Str(text.into()))
        }
    }

    /// Pays for a change of a container and bounds its size.
    pub(crate) fn touch(&mut self, container: &Val) -> Eval<()> {
        self.spend(1)?;
        let len = match container {
            Val::Arr(items) | Val::Set(items) => items.borrow().len(),
            Val::Obj(members) => members.borrow().len(),
            _ => 0,
        };
        if len > MAX_ITEMS { Err(Stop) } else { Ok(()) }
    }

    /// A scope of a block: `this` stays what it is.
    pub(super) fn inner(&mut self, parent: Scope) -> Eval<Scope> {
        let this = self.scopes.get(parent).map_or(Val::Undefined, |s| s.this.clone());
        self.scope(parent, this)
    }

    fn scope(&mut self, parent: Scope, this: Val) -> Eval<Scope> {
        if self.scopes.len() >= MAX_SCOPES {
            return Err(Stop);
        }
        self.scopes.push(ScopeData {
            vars: Vec::new(),
            parent: Some(parent),
            this,
        });
        Ok(self.scopes.len() - 1)
    }

    pub(super) fn declare(&mut self, scope: Scope, name: &Rc<str>, value: Val) {
        if let Some(data) = self.scopes.get_mut(scope) {
            match data.vars.iter_mut().find(|(n, _)| n == name) {
                Some((_, old)) => *old = value,
                None => data.vars.push((name.clone(), value)),
            }
        }
    }

    fn lookup(&self, mut scope: Scope, name: &str) -> Option<Val> {
        loop {
            let data = self.scopes.get(scope)?;
            if let Some((_, value)) = data.vars.iter().find(|(n, _)| &**n == name) {
                return Some(value.clone());
            }
            scope = data.parent?;
        }
    }

    fn assign(&mut self, mut scope: Scope, name: &Rc<str>, value: Val) {
        loop {
            let Some(data) = self.scopes.get_mut(scope) else { return };
            if let Some((_, old)) = data.vars.iter_mut().find(|(n, _)| n == name) {
                *old = value;
                return;
            }
            match data.parent {
                Some(parent) => scope = parent,
                None => {
                    data.vars.push((name.clone(), value));
                    return;
                }
            }
        }
    }

    // Expressions.

    pub(crate) fn expr(&mut self, expr: &Expr, scope: Scope) -> Eval<Val> {
        self.spend(1)?;
        self.deeper()?;
        let value = self.expr_inner(expr, scope);
        self.depth -= 1;
        value
    }

    fn expr_inner(&mut self, expr: &Expr, scope: Scope) -> Eval<Val> {
        Ok(match expr {
            Expr::Undefined => Val::Undefined,
            Expr::Null => Val::Null,
            Expr::Bool(b) => Val::Bool(*b),
            Expr::Num(n) => Val::Num(*n),
            Expr::Str(s) => Val::Str(s.clone()),
            Expr::Opaque(what) => Val::Unknown(what.clone()),
            Expr::Name(name) => match self.lookup(scope, name) {
                Some(value) => value,
                None => builtins::global(name),
            },
            Expr::This => self.scopes.get(scope).map_or(Val::Undefined, |s| s.this.clone()),
            Expr::Func(func) => self.closure(func, scope),
            Expr::Template(parts) => return self.template(parts, scope),
            Expr::Array(items) => {
                let items = self.items(items, scope)?;
                return self.arr(items);
            }
            Expr::Object(props) => return self.object(props, scope),
            Expr::Member(object, key, optional) => return self.member(object, key, *optional, scope),
            Expr::Call(function, args, optional) => return self.call_expr(function, args, *optional, scope),
            Expr::New(what, args) => return self.construct(what, args, scope),
            Expr::Ternary(test, yes, no) => {
                let branch = if self.expr(test, scope)?.truthy() { yes } else { no };
                return self.expr(branch, scope);
            }
            Expr::Logical(op, left, right) => {
                let left = self.expr(left, scope)?;
                let take_right = match *op {
                    "&&" => left.truthy(),
                    "||" => !left.truthy(),
                    _ => left.is_nullish(),
                };
                if take_right {
                    return self.expr(right, scope);
                }
                left
            }
            Expr::Unary(op, inner) => {
                let value = self.expr(inner, scope)?;
                builtins::unary(op, &value)
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.expr(left, scope)?, self.expr(right, scope)?);
                return self.binary(op, &left, &right);
            }
            Expr::Assign(op, target, value) => return self.assign_expr(op, target, value, scope),
            Expr::Update(target, by) => {
                let old = self.expr(target, scope)?;
                let new = old
                    .number()
                    .map_or_else(|| Val::unknown("update"), |n| Val::Num(n + by));
                self.store(target, new, scope)?;
                old
            }
            Expr::Sequence(list) => {
                let mut last = Val::Undefined;
                for item in list {
                    last = self.expr(item, scope)?;
                }
                last
            }
        })
    }

    pub(super) fn closure(&self, func: &Rc<Func>, scope: Scope) -> Val {
        let this = self.scopes.get(scope).map_or(Val::Undefined, |s| s.this.clone());
        Val::Func(Rc::new(Closure {
            func: func.clone(),
            scope,
            this,
        }))
    }

    fn template(&mut self, parts: &[Part], scope: Scope) -> Eval<Val> {
        let mut out = String::new();
        for part in parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Hole(expr) => out.push_str(&self.expr(expr, scope)?.text()),
            }
            if out.len() > MAX_STRING {
                return Err(Stop);
            }
        }
        self.string(out)
    }

    fn items(&mut self, items: &[Item], scope: Scope) -> Eval<Vec<Val>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let value = self.expr(&item.value, scope)?;
            if item.spread {
                match value.items() {
                    Some(more) => {
                        self.spend(more.len() as u64)?;
                        out.extend(more);
                    }
                    None if matches!(value, Val::Unknown(_)) => out.push(value),
                    None => {}
                }
            } else {
                out.push(value);
            }
            if out.len() > MAX_ITEMS {
                return Err(Stop);
            }
        }
        Ok(out)
    }

    fn object(&mut self, props: &[Prop], scope: Scope) -> Eval<Val> {
        let members: Members = Rc::new(RefCell::new(Vec::with_capacity(props.len())));
        for prop in props {
            match prop {
                Prop::Pair(key, value) => {
                    let key = self.expr(key, scope)?.text();
                    let value = self.expr(value, scope)?;
                    set_member(&members, &key, value);
                }
                Prop::Spread(value) => {
                    if let Val::Obj(more) = self.expr(value, scope)? {
                        let more = more.borrow().clone();
                        self.spend(more.len() as u64)?;
                        for (key, value) in more {
                            set_member(&members, &key, value);
                        }
                    }
                }
            }
        }
        self.keep(Val::Obj(members))
    }

    fn member(&mut self, object: &Expr, key: &Expr, optional: bool, scope: Scope) -> Eval<Val> {
        let object = self.expr(object, scope)?;
        if optional && object.is_nullish() {
            return Ok(Val::Undefined);
        }
        let key = self.expr(key, scope)?;
        if let Val::Unknown(name) = &key {
            return Ok(Val::Unknown(name.clone()));
        }
        Ok(builtins::get(&object, &key.text()))
    }

    fn call_expr(&mut self, function: &Expr, args: &[Item], optional: bool, scope: Scope) -> Eval<Val> {
        let (this, callee) = match function {
            Expr::Member(object, key, inner_optional) => {
                let object = self.expr(object, scope)?;
                if *inner_optional && object.is_nullish() {
                    return Ok(Val::Undefined);
                }
                let key = self.expr(key, scope)?.text();
                let callee = builtins::get(&object, &key);
                (object, callee)
            }
            other => (Val::Undefined, self.expr(other, scope)?),
        };
        if optional && callee.is_nullish() {
            return Ok(Val::Undefined);
        }
        let args = self.items(args, scope)?;
        self.call(&callee, this, args)
    }

    /// Calls a function value.
    pub(crate) fn call(&mut self, callee: &Val, this: Val, args: Vec<Val>) -> Eval<Val> {
        self.spend(1)?;
        match callee {
            Val::Func(closure) => self.call_closure(closure, this, args).map(|(value, _)| value),
            Val::Method(target, name) => builtins::method(self, target, name, args),
            Val::Global(name) => builtins::global_call(self, name, args),
            Val::Unknown(name) => Ok(Val::unknown(format!("{name}()"))),
            _ => Ok(Val::unknown("call of what is no function")),
        }
    }

    /// Calls a closure; also gives the scope of its body.
    pub(crate) fn call_closure(&mut self, closure: &Closure, this: Val, args: Vec<Val>) -> Eval<(Val, Scope)> {
        let this = if closure.func.arrow { closure.this.clone() } else { this };
        let scope = self.scope(closure.scope, this)?;
        let mut args = args.into_iter();
        for pattern in &closure.func.params {
            if let Pattern::Rest(name) = pattern {
                let rest: Vec<Val> = args.by_ref().collect();
                let rest = self.arr(rest)?;
                self.declare(scope, name, rest);
                break;
            }
            let value = args.next().unwrap_or(Val::Undefined);
            self.bind(pattern, value, scope)?;
        }
        let value = match &closure.func.body {
            Body::Value(expr) => self.expr(expr, scope)?,
            Body::Block(body) => match self.block(body, scope)? {
                Flow::Return(value) => value,
                _ => Val::Undefined,
            },
        };
        Ok((value, scope))
    }

    fn construct(&mut self, what: &Expr, args: &[Item], scope: Scope) -> Eval<Val> {
        let name = match what {
            Expr::Name(name) => name.clone(),
            _ => "constructor".into(),
        };
        let args = self.items(args, scope)?;
        Ok(match &*name {
            "Set" => {
                let items = args.first().and_then(Val::items).unwrap_or_default();
                return self.keep(Val::Set(Rc::new(RefCell::new(items))));
            }
            "Map" => {
                let pairs = args.first().and_then(Val::items).unwrap_or_default();
                let members = pairs
                    .iter()
                    .filter_map(Val::items)
                    .filter(|p| p.len() == 2)
                    .map(|p| (p[0].text(), p[1].clone()));
                let members = members.collect();
                return self.obj(members);
            }
            other => Val::unknown(format!("new {other}")),
        })
    }

    fn binary(&mut self, op: &str, left: &Val, right: &Val) -> Eval<Val> {
        if op == "+" {
            let texty = |v: &Val| matches!(v, Val::Str(_) | Val::Arr(_) | Val::Obj(_));
            if texty(left) || texty(right) {
                let mut out = left.text().to_string();
                out.push_str(&right.text());
                return self.string(out);
            }
        }
        Ok(builtins::binary(op, left, right))
    }

    fn assign_expr(&mut self, op: &'static str, target: &Expr, value: &Expr, scope: Scope) -> Eval<Val> {
        let value = match op {
            "=" => self.expr(value, scope)?,
            "&&" | "||" | "??" => {
                let old = self.expr(target, scope)?;
                let take = match op {
                    "&&" => old.truthy(),
                    "||" => !old.truthy(),
                    _ => old.is_nullish(),
                };
                if !take {
                    return Ok(old);
                }
                self.expr(value, scope)?
            }
            op => {
                let old = self.expr(target, scope)?;
                let value = self.expr(value, scope)?;
                self.binary(op, &old, &value)?
            }
        };
        self.store(target, value.clone(), scope)?;
        Ok(value)
    }

    fn store(&mut self, target: &Expr, value: Val, scope: Scope) -> Eval<()> {
        match target {
            Expr::Name(name) => self.assign(scope, name, value),
            Expr::Member(object, key, _) => {
                let object = self.expr(object, scope)?;
                let key = self.expr(key, scope)?;
                self.touch(&object)?;
                match &object {
                    Val::Obj(members) => set_member(members, &key.text(), value),
                    Val::Arr(items) => {
                        let index = key
                            .number()
                            .filter(|n| *n >= 0.0 && *n < MAX_ITEMS as f64)
                            .map(|n| n as usize);
                        if let Some(index) = index {
                            let mut items = items.borrow_mut();
                            while items.len() <= index {
                                items.push(Val::Undefined);
                            }
                            items[index] = value;
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The text of a number, for keys.
pub(crate) fn index_text(n: usize) -> String {
    number(n as f64)
}
