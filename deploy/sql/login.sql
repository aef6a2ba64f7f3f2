-- The server's login, a member of countersign_server (roles.sql). Run as the owner of the tables:
--
--   psql "$OWNER_DATABASE_URL" -v ON_ERROR_STOP=1 -v password="…" -f deploy/sql/login.sql
--
-- Safe to run again: it then sets the password.
SELECT 'CREATE ROLE countersign LOGIN IN ROLE countersign_server'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign')
\gexec
ALTER ROLE countersign PASSWORD :'password';
