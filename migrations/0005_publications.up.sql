-- The outbox: what GitHub ought to show, one row for each thing shown there. A newer wish replaces an older one.
CREATE TABLE publications (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository       text        NOT NULL,
    pull_request     bigint      NOT NULL,
    -- comment, status, check_run, minimise, reaction
    kind             text        NOT NULL,
    -- What is made equal to `desired`, such as a sign-off's key or a commit and a context.
    target           text        NOT NULL,
    evaluation_id    uuid        REFERENCES evaluations (id),
    desired          jsonb       NOT NULL,
    desired_digest   text        NOT NULL,
    -- Grows with each new wish: an answer about an older one does not settle the newer.
    revision         bigint      NOT NULL DEFAULT 1,
    state            text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'failed', 'superseded')),
    attempts         integer     NOT NULL DEFAULT 0,
    max_attempts     integer     NOT NULL DEFAULT 20 CHECK (max_attempts > 0),
    next_attempt_at  timestamptz NOT NULL DEFAULT now(),
    -- Set before the request leaves, cleared when its outcome is known. Found set: GitHub may have done it already.
    started_at       timestamptz,
    last_error       text,
    remote_id        text,
    remote_url       text,
    published_digest text,
    published_at     timestamptz,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (repository, kind, target)
);
CREATE INDEX publications_open ON publications (repository, pull_request, next_attempt_at) WHERE state = 'pending';
CREATE INDEX publications_of_pull_request ON publications (repository, pull_request);
CREATE INDEX publications_failed ON publications (updated_at) WHERE state = 'failed';
