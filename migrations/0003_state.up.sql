-- What GitHub last told us. It is a memory for reconciling and for pages; a verdict rests on what is gathered afresh.
CREATE TABLE repositories (
    repository         text        PRIMARY KEY,
    -- A repository that fails is left alone until then; the others go on.
    quarantined_until  timestamptz,
    quarantine_reason  text,
    failures           integer     NOT NULL DEFAULT 0,
    reconciled_at      timestamptz,
    first_seen_at      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE pull_requests (
    repository    text        NOT NULL,
    number        bigint      NOT NULL CHECK (number > 0),
    head_sha      text        NOT NULL,
    base_ref      text        NOT NULL,
    base_sha      text        NOT NULL,
    draft         boolean     NOT NULL,
    open          boolean     NOT NULL,
    author        text        NOT NULL,
    -- The `updated_at` of the version we hold: an event about an older version changes nothing.
    version_at    timestamptz NOT NULL,
    head_since    timestamptz NOT NULL DEFAULT now(),
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz NOT NULL DEFAULT now(),
    reconciled_at timestamptz,
    PRIMARY KEY (repository, number)
);
CREATE INDEX pull_requests_open ON pull_requests (repository, reconciled_at) WHERE open;

-- Comments, reviews and review comments that ever held a sign-off or a command. The row outlives what it held:
-- it is how a late event about an older version is recognised.
CREATE TABLE remarks (
    repository   text        NOT NULL,
    -- `issuecomment-<id>`, `pullrequestreview-<id>` or `discussion_r<id>`
    source       text        NOT NULL,
    pull_request bigint      NOT NULL,
    author       text        NOT NULL,
    body_digest  text        NOT NULL,
    created_at   timestamptz NOT NULL,
    version_at   timestamptz NOT NULL,
    deleted_at   timestamptz,
    PRIMARY KEY (repository, source)
);

CREATE TABLE signoffs (
    repository    text        NOT NULL,
    signoff       text        NOT NULL,
    pull_request  bigint      NOT NULL,
    author        text        NOT NULL,
    body_digest   text        NOT NULL,
    state         text        NOT NULL CHECK (state IN
                              ('counted', 'waiting_for_ready', 'edited_by_other', 'deleted', 'withdrawn')),
    created_at    timestamptz NOT NULL,
    edited_at     timestamptz,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    changed_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (repository, signoff),
    FOREIGN KEY (repository, signoff) REFERENCES remarks (repository, source)
);
CREATE INDEX signoffs_of_pull_request ON signoffs (repository, pull_request, created_at);

CREATE TABLE commands (
    repository   text        NOT NULL,
    source       text        NOT NULL,
    ordinal      integer     NOT NULL CHECK (ordinal >= 0),
    pull_request bigint      NOT NULL,
    author       text        NOT NULL,
    association  text        NOT NULL,
    name         text        NOT NULL,
    arguments    jsonb       NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL,
    -- Deleted, or edited away.
    revoked_at   timestamptz,
    PRIMARY KEY (repository, source, ordinal),
    FOREIGN KEY (repository, source) REFERENCES remarks (repository, source)
);
CREATE INDEX commands_of_pull_request ON commands (repository, pull_request, created_at);
