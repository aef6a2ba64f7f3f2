//! GitHub: client, webhooks, gathering of evidence, publishing of verdicts.
