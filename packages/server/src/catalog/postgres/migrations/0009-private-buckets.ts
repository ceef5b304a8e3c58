/** A key with a higher number is newer. `secret` has 32 bytes; `created_at` is in milliseconds since 1970. */
export const privateBuckets = `
ALTER TABLE buckets ADD COLUMN private int4 NOT NULL DEFAULT 0, ADD COLUMN signed_pages int4 NOT NULL DEFAULT 0;

CREATE TABLE signing_keys (
  number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  secret bytea NOT NULL,
  created_at int8 NOT NULL
);
`
