//! Statements of the evaluator: blocks, loops, branches and bindings.

use super::ast::{Expr, Pattern, Stmt};
use super::builtins;
use super::eval::{Eval, Flow, MAX_DEPTH, Machine, Scope, Stop};
use super::value::Val;

impl Machine {
    pub(super) fn block(&mut self, body: &[Stmt], scope: Scope) -> Eval<Flow> {
        for stmt in body {
            // Functions are visible before their line.
            if let Stmt::Function(name, func) = stmt {
                let closure = self.closure(func, scope);
                self.declare(scope, name, closure);
            }
        }
        for stmt in body {
            match self.statement(stmt, scope)? {
                Flow::Normal => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Normal)
    }

    fn inner_block(&mut self, body: &[Stmt], scope: Scope) -> Eval<Flow> {
        let needs = body.iter().any(|s| matches!(s, Stmt::Declare(_) | Stmt::Function(..)));
        let scope = if needs { self.inner(scope)? } else { scope };
        self.block(body, scope)
    }

    pub(super) fn deeper(&mut self) -> Eval<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            return Err(Stop);
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt, scope: Scope) -> Eval<Flow> {
        self.spend(1)?;
        self.deeper()?;
        let flow = self.statement_inner(stmt, scope);
        self.depth -= 1;
        flow
    }

    fn statement_inner(&mut self, stmt: &Stmt, scope: Scope) -> Eval<Flow> {
        match stmt {
            Stmt::Declare(list) => {
                for (pattern, value) in list {
                    let value = match value {
                        Some(expr) => self.expr(expr, scope)?,
                        None => Val::Undefined,
                    };
                    self.bind(pattern, value, scope)?;
                }
            }
            Stmt::Function(..) => {}
            Stmt::Expr(expr) => {
                self.expr(expr, scope)?;
            }
            Stmt::If(test, yes, no) => {
                let branch = if self.expr(test, scope)?.truthy() { yes } else { no };
                return self.inner_block(branch, scope);
            }
            Stmt::ForOf(pattern, keys, iterable, body) => return self.for_of(pattern, *keys, iterable, body, scope),
            Stmt::For(start, test, step, body) => {
                return self.for_loop(start, test.as_ref(), step.as_ref(), body, scope);
            }
            Stmt::While(test, body) => return self.for_loop(&[], Some(test), None, body, scope),
            Stmt::Switch(value, cases) => return self.switch(value, cases, scope),
            Stmt::Return(value) => {
                let value = match value {
                    Some(expr) => self.expr(expr, scope)?,
                    None => Val::Undefined,
                };
                return Ok(Flow::Return(value));
            }
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Block(body) => return self.inner_block(body, scope),
        }
        Ok(Flow::Normal)
    }

    fn for_of(&mut self, pattern: &Pattern, keys: bool, iterable: &Expr, body: &[Stmt], scope: Scope) -> Eval<Flow> {
        let iterable = self.expr(iterable, scope)?;
        let items = if keys {
            match &iterable {
                Val::Obj(members) => members.borrow().iter().map(|(k, _)| Val::Str(k.clone())).collect(),
                other => (0..other.items().map_or(0, |i| i.len()))
                    .map(|i| Val::str(i.to_string()))
                    .collect(),
            }
        } else {
            iterable.items().unwrap_or_default()
        };
        for item in items {
            let inner = self.inner(scope)?;
            self.bind(pattern, item, inner)?;
            match self.block(body, inner)? {
                Flow::Break => break,
                Flow::Return(v) => return Ok(Flow::Return(v)),
                Flow::Normal | Flow::Continue => {}
            }
        }
        Ok(Flow::Normal)
    }

    fn for_loop(
        &mut self,
        start: &[Stmt],
        test: Option<&Expr>,
        step: Option<&Expr>,
        body: &[Stmt],
        scope: Scope,
    ) -> Eval<Flow> {
        let inner = self.inner(scope)?;
        self.block(start, inner)?;
        loop {
            self.spend(1)?;
            if let Some(test) = test
                && !self.expr(test, inner)?.truthy()
            {
                break;
            }
            match self.inner_block(body, inner)? {
                Flow::Break => break,
                Flow::Return(v) => return Ok(Flow::Return(v)),
                Flow::Normal | Flow::Continue => {}
            }
            if let Some(step) = step {
                self.expr(step, inner)?;
            }
        }
        Ok(Flow::Normal)
    }

    fn switch(&mut self, value: &Expr, cases: &[(Option<Expr>, Vec<Stmt>)], scope: Scope) -> Eval<Flow> {
        let value = self.expr(value, scope)?;
        let mut start = None;
        for (i, (test, _)) in cases.iter().enumerate() {
            if let Some(test) = test {
                let test = self.expr(test, scope)?;
                if value.same(&test) == Some(true) {
                    start = Some(i);
                    break;
                }
            }
        }
        let start = start.or_else(|| cases.iter().position(|(t, _)| t.is_none()));
        let inner = self.inner(scope)?;
        for (_, body) in cases.iter().skip(start.unwrap_or(cases.len())) {
            match self.block(body, inner)? {
                Flow::Normal => {}
                Flow::Break => break,
                other => return Ok(other),
            }
        }
        Ok(Flow::Normal)
    }

    pub(super) fn bind(&mut self, pattern: &Pattern, value: Val, scope: Scope) -> Eval<()> {
        self.spend(1)?;
        match pattern {
            Pattern::Name(name) | Pattern::Rest(name) => self.declare(scope, name, value),
            Pattern::Skip => {}
            Pattern::Default(inner, default) => {
                let value = if matches!(value, Val::Undefined) {
                    self.expr(default, scope)?
                } else {
                    value
                };
                self.bind(inner, value, scope)?;
            }
            Pattern::Object(members, rest) => {
                for (key, inner, default) in members {
                    let mut member = builtins::get(&value, key);
                    if let (Val::Undefined, Some(default)) = (&member, default) {
                        member = self.expr(default, scope)?;
                    }
                    self.bind(inner, member, scope)?;
                }
                if let (Some(rest), Val::Obj(all)) = (rest, &value) {
                    let left = all
                        .borrow()
                        .iter()
                        .filter(|(k, _)| !members.iter().any(|(m, ..)| m == k))
                        .cloned()
                        .collect();
                    let left = self.obj(left)?;
                    self.declare(scope, rest, left);
                }
            }
            Pattern::Array(inner) => {
                let items = value.items().unwrap_or_default();
                for (i, pattern) in inner.iter().enumerate() {
                    match pattern {
                        Some(Pattern::Rest(name)) => {
                            let rest = self.arr(items.iter().skip(i).cloned().collect())?;
                            self.declare(scope, name, rest);
                        }
                        Some(pattern) => {
                            let item = items.get(i).cloned().unwrap_or(match &value {
                                Val::Unknown(name) => Val::Unknown(name.clone()),
                                _ => Val::Undefined,
                            });
                            self.bind(pattern, item, scope)?;
                        }
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }
}
