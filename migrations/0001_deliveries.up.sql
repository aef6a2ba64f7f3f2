-- Every webhook that carried a right signature, stored before the answer (product page, section 3).
CREATE TABLE deliveries (
    guid             text        PRIMARY KEY CHECK (length(guid) BETWEEN 1 AND 128),
    seq              bigint      GENERATED ALWAYS AS IDENTITY,
    event            text        NOT NULL,
    action           text,
    repository       text,
    pull_request     bigint,
    received_at      timestamptz NOT NULL DEFAULT now(),
    headers          jsonb       NOT NULL DEFAULT '{}',
    payload          bytea       NOT NULL,
    payload_encoding text        NOT NULL DEFAULT 'raw' CHECK (payload_encoding IN ('raw', 'lz4')),
    status           text        NOT NULL DEFAULT 'pending'
                                 CHECK (status IN ('pending', 'processed', 'ignored', 'dead')),
    ignored_reason   text        CHECK (ignored_reason IS NULL OR status = 'ignored'),
    -- The piece of work that takes this delivery along; null: a dispatcher claims it by itself.
    work_kind        text,
    work_key         text,
    attempts         integer     NOT NULL DEFAULT 0,
    -- When it may be claimed next. A claim moves it forward, so that it is also the claim's time-out.
    next_attempt_at  timestamptz NOT NULL DEFAULT now(),
    last_error       text,
    processed_at     timestamptz,
    CHECK ((work_kind IS NULL) = (work_key IS NULL))
);

-- It comes compressed.
ALTER TABLE deliveries ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE INDEX deliveries_unrouted ON deliveries (next_attempt_at, seq) WHERE status = 'pending' AND work_key IS NULL;
CREATE INDEX deliveries_routed ON deliveries (work_kind, work_key) WHERE status = 'pending' AND work_key IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (seq) WHERE status = 'dead';
-- For pruning and for pages; rows arrive in this order, so a block range index is enough and costs nothing to keep.
CREATE INDEX deliveries_received ON deliveries USING brin (received_at);

-- Requests that were refused before anything could be trusted: nothing of them is kept but their number.
CREATE TABLE rejected_requests (
    reason text   NOT NULL CHECK (length(reason) BETWEEN 1 AND 64),
    day    date   NOT NULL,
    count  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (reason, day)
);
