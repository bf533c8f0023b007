-- Times are microseconds since 1970 by the clock of the host. To read one: datetime(begun_at / 1000000, 'unixepoch').
CREATE TABLE riprap_schema (version INTEGER PRIMARY KEY) STRICT;

CREATE TABLE riprap_keys (
	id          BLOB    PRIMARY KEY CHECK (length(id) = 32),
	fingerprint BLOB    NOT NULL,
	operation   TEXT    NOT NULL,
	state       INTEGER NOT NULL CHECK (state IN (1, 2, 3)), -- in progress, completed, unknown
	owner       BLOB    NOT NULL CHECK (length(owner) = 16),
	generation  INTEGER NOT NULL CHECK (generation > 0),
	reexecute   INTEGER NOT NULL,
	begun_at    INTEGER NOT NULL,
	lease_until INTEGER NOT NULL,
	expires_at  INTEGER NOT NULL,
	status      INTEGER,
	tombstone   INTEGER NOT NULL DEFAULT 0,
	header      BLOB,
	body        BLOB,
	CHECK ((state = 2) = (status IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX riprap_keys_expires_at ON riprap_keys (expires_at);

INSERT INTO riprap_schema (version) VALUES (1);
