/**
 * The audit log (docs/architecture/storage.md, Audit log). Events are in the order of their times and numbers. `tx` is the transaction that added
 * the event: numbers do not become visible in their order, so a reader that follows the log compares snapshots. Nearly all events are
 * uploads, so the index by action has only the others.
 */
export const auditLog = `
CREATE TABLE audit_events (
  time int8 NOT NULL,
  number int8 GENERATED ALWAYS AS IDENTITY,
  tx int8 NOT NULL DEFAULT pg_current_xact_id()::text::int8,
  action int4 NOT NULL,
  bucket_id int8,
  target text COLLATE "C",
  name text,
  size int8,
  detail text,
  actor int4 NOT NULL,
  token_id text COLLATE "C",
  subject text,
  address text,
  request_id text,
  PRIMARY KEY (time, number)
);

CREATE INDEX audit_by_target ON audit_events (target, time, number) WHERE target IS NOT NULL;
CREATE INDEX audit_by_token ON audit_events (token_id, time, number) WHERE token_id IS NOT NULL;
CREATE INDEX audit_by_bucket ON audit_events (bucket_id, time, number) WHERE bucket_id IS NOT NULL;
CREATE INDEX audit_by_action ON audit_events (action, time, number) WHERE action > 1;
CREATE INDEX audit_by_transaction ON audit_events USING brin (tx) WITH (pages_per_range = 16, autosummarize = on);
`
