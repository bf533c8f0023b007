-- Times are microseconds since 1970 by the clock of the server. To read one: to_timestamp(begun_at / 1e6).
CREATE TABLE riprap_schema (version integer PRIMARY KEY);

CREATE TABLE riprap_keys (
	id          bytea    PRIMARY KEY CHECK (octet_length(id) = 32),
	fingerprint bytea    NOT NULL,
	operation   text     NOT NULL,
	state       smallint NOT NULL CHECK (state IN (1, 2, 3)), -- in progress, completed, unknown
	owner       bytea    NOT NULL CHECK (octet_length(owner) = 16),
	generation  bigint   NOT NULL CHECK (generation > 0),
	reexecute   boolean  NOT NULL,
	begun_at    bigint   NOT NULL,
	lease_until bigint   NOT NULL,
	expires_at  bigint   NOT NULL,
	status      integer,
	tombstone   boolean  NOT NULL DEFAULT false,
	header      bytea,
	body        bytea,
	CHECK ((state = 2) = (status IS NOT NULL))
);

CREATE INDEX riprap_keys_expires_at ON riprap_keys (expires_at);

INSERT INTO riprap_schema (version) VALUES (1);
