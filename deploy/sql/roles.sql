-- The rights of the server, run as the owner of the tables, after `countersign migrate`:
--
--   psql "$OWNER_DATABASE_URL" -v ON_ERROR_STOP=1 -f deploy/sql/roles.sql
--   psql "$OWNER_DATABASE_URL" -c "CREATE ROLE countersign LOGIN PASSWORD '…' IN ROLE countersign_server"
--
-- Migrations run as the owner, the server as a member of countersign_server. It may add to the audit log, to evaluations and
-- to what they rest on, and change or remove nothing there; it may change no table's shape.
-- Safe to run again, which each migration that adds a table needs.
DO $$
BEGIN
    CREATE ROLE countersign_server NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;

GRANT USAGE ON SCHEMA public TO countersign_server;
REVOKE CREATE ON SCHEMA public FROM countersign_server;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM countersign_server;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO countersign_server;

-- Working state.
GRANT SELECT, INSERT, UPDATE, DELETE ON
    deliveries, rejected_requests, work, repository_turns,
    repositories, pull_requests, remarks, signoffs, commands, signoff_pins, heads, publications
    TO countersign_server;

-- Append-only.
GRANT SELECT, INSERT ON blobs, evaluations, audit_log TO countersign_server;

-- To see at start whether the schema is the one it was built for.
GRANT SELECT ON _sqlx_migrations TO countersign_server;
