-- Who did what: overrides, confirmations, repairs, re-asserted statuses. Never changed, by no one.
CREATE TABLE audit_log (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT now(),
    -- A login, or `countersign` for ourselves.
    actor         text        NOT NULL,
    action        text        NOT NULL,
    repository    text,
    pull_request  bigint,
    evaluation_id uuid,
    -- One sentence for a person.
    message       text        NOT NULL,
    detail        jsonb       NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_log_of_pull_request ON audit_log (repository, pull_request, id DESC);

CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION countersign_append_only();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION countersign_append_only();
