//! Webhook server, workers and configuration.
