CREATE FUNCTION countersign_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END
$$;

-- Evidence, policies and whatever else a verdict rests on, by digest.
CREATE TABLE blobs (
    digest     text        PRIMARY KEY CHECK (length(digest) BETWEEN 1 AND 128),
    kind       text        NOT NULL,
    encoding   text        NOT NULL CHECK (encoding IN ('raw', 'zlib')),
    size       bigint      NOT NULL CHECK (size >= 0),
    -- SHA-256 of the uncompressed bytes, whatever the digest's own recipe is.
    sha256     bytea       NOT NULL CHECK (length(sha256) = 32),
    bytes      bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
-- They come compressed.
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE evaluations (
    id              uuid        PRIMARY KEY,
    seq             bigint      GENERATED ALWAYS AS IDENTITY,
    repository      text        NOT NULL,
    pull_request    bigint      NOT NULL,
    signoff         text        NOT NULL,
    head_sha        text        NOT NULL,
    base_sha        text        NOT NULL,
    decision        text        NOT NULL,
    evidence_digest text        NOT NULL REFERENCES blobs (digest),
    policy_digest   text        NOT NULL REFERENCES blobs (digest),
    policy_name     text        NOT NULL,
    engine_version  text        NOT NULL,
    -- json, not jsonb: the text is kept byte for byte, so that a replay can be compared with it.
    verdict         json        NOT NULL,
    supersedes      uuid        REFERENCES evaluations (id),
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX evaluations_of_signoff ON evaluations (repository, pull_request, signoff, head_sha, seq DESC);
CREATE INDEX evaluations_by_age ON evaluations (seq DESC);

CREATE TRIGGER blobs_append_only BEFORE UPDATE OR DELETE ON blobs
    FOR EACH ROW EXECUTE FUNCTION countersign_append_only();
CREATE TRIGGER blobs_no_truncate BEFORE TRUNCATE ON blobs
    FOR EACH STATEMENT EXECUTE FUNCTION countersign_append_only();
CREATE TRIGGER evaluations_append_only BEFORE UPDATE OR DELETE ON evaluations
    FOR EACH ROW EXECUTE FUNCTION countersign_append_only();
CREATE TRIGGER evaluations_no_truncate BEFORE TRUNCATE ON evaluations
    FOR EACH STATEMENT EXECUTE FUNCTION countersign_append_only();
