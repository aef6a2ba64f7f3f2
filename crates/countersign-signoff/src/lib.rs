//! Recognition of sign-offs, checklist items, templates and commands in Markdown. Pure.
