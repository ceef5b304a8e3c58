/**
 * The audit log (docs/architecture/storage.md, Audit log). The number of an event is at least 2048 times its time, and increases with each event,
 * so that numbers are both the order of the events and an index by time. Numbers are not reused. Nearly all events are uploads, so the
 * index by action has only the others.
 */
export const auditLog = `
CREATE TABLE audit_events (
  id INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  action INTEGER NOT NULL,
  bucket_id INTEGER,
  target TEXT,
  name TEXT,
  size INTEGER,
  detail TEXT,
  actor INTEGER NOT NULL,
  token_id TEXT,
  subject TEXT,
  address TEXT,
  request_id TEXT
) STRICT;

CREATE INDEX audit_by_target ON audit_events (target) WHERE target IS NOT NULL;
CREATE INDEX audit_by_token ON audit_events (token_id) WHERE token_id IS NOT NULL;
CREATE INDEX audit_by_bucket ON audit_events (bucket_id) WHERE bucket_id IS NOT NULL;
CREATE INDEX audit_by_action ON audit_events (action) WHERE action > 1;
`
