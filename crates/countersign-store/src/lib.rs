//! Postgres: deliveries, jobs, evaluations, publications, audit log, and a private server for tests and demos.
