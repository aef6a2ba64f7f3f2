-- Which head a sign-off was taken for. A later edit by its author takes it again, for the head of that moment.
CREATE TABLE signoff_pins (
    repository  text        NOT NULL,
    signoff     text        NOT NULL,
    body_digest text        NOT NULL,
    head_sha    text        NOT NULL,
    pinned_at   timestamptz NOT NULL,
    PRIMARY KEY (repository, signoff)
);

-- When each head of a pull request was first seen: confirmations must be younger.
CREATE TABLE heads (
    repository    text        NOT NULL,
    pull_request  bigint      NOT NULL,
    head_sha      text        NOT NULL,
    first_seen_at timestamptz NOT NULL,
    PRIMARY KEY (repository, pull_request, head_sha)
);
