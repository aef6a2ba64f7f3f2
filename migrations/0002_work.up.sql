-- One row for each thing that may need work, such as one pull request, never one row for each event.
-- It waits while requested > done; a claim remembers the `requested` it saw, and finishing sets `done` to that.
-- So events that arrive while it runs make it run once more, whatever their number
-- (docs/decisions/0003-job-queue.md).
CREATE TABLE work (
    kind         text        NOT NULL CHECK (length(kind) BETWEEN 1 AND 64),
    key          text        NOT NULL CHECK (length(key) BETWEEN 1 AND 512),
    repository   text        NOT NULL,
    pull_request bigint,
    requested    bigint      NOT NULL DEFAULT 1,
    done         bigint      NOT NULL DEFAULT 0,
    run_at       timestamptz NOT NULL DEFAULT now(),
    -- A floor under run_at that no new event may lower: a rate limit, not a backoff.
    not_before   timestamptz,
    -- Counted at the claim, so that a run that kills its process counts too.
    attempts     integer     NOT NULL DEFAULT 0,
    max_attempts integer     NOT NULL DEFAULT 10 CHECK (max_attempts > 0),
    -- Grows with each claim: a holder whose number is not the newest has lost the lease.
    lease_no     bigint      NOT NULL DEFAULT 0,
    leased_until timestamptz,
    leased_by    text,
    payload      jsonb       NOT NULL DEFAULT '{}',
    last_error   text,
    dead_at      timestamptz,
    -- When the oldest request that is not served yet came in.
    waiting_since timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz,
    PRIMARY KEY (kind, key),
    CHECK (done <= requested),
    CHECK ((leased_until IS NULL) = (leased_by IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- What can be claimed once it is due, and nothing else: a claimed row leaves it.
CREATE INDEX work_ready ON work (kind, repository, run_at, key)
    WHERE requested > done AND dead_at IS NULL AND leased_until IS NULL;
CREATE INDEX work_leased ON work (leased_until) WHERE leased_until IS NOT NULL;
CREATE INDEX work_dead ON work (dead_at) WHERE dead_at IS NOT NULL;

-- Whose turn it is: the repository that was served longest ago goes first.
CREATE TABLE repository_turns (
    repository text        PRIMARY KEY,
    served_at  timestamptz NOT NULL
) WITH (fillfactor = 50);
