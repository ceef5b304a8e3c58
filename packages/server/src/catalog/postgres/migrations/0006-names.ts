/**
 * The index of names (docs/architecture/listing.md, Search by name). The chunks of a segment have ids from 4096 times its id. A block of 4,096
 * numbers has marks if its items were deleted or renamed. A claim prevents two processes from indexing the same block.
 */
export const names = `
CREATE TABLE name_segments (
  id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  bucket_id int8 NOT NULL,
  first int8 NOT NULL,
  size int8 NOT NULL,
  bits int4 NOT NULL,
  times bytea NOT NULL,
  UNIQUE (bucket_id, first)
);

CREATE TABLE name_chunks (
  id int8 PRIMARY KEY,
  bytes bytea NOT NULL
);

ALTER TABLE name_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE name_marks (
  bucket_id int8 NOT NULL,
  block int8 NOT NULL,
  removed bytea NOT NULL,
  changed bytea NOT NULL,
  PRIMARY KEY (bucket_id, block)
) WITH (fillfactor = 50);

CREATE TABLE name_claims (
  bucket_id int8 PRIMARY KEY,
  until int8 NOT NULL
);

-- Records that items of a bucket, whose row the transaction has locked, differ from the index: they were removed, or else renamed or
-- added with earlier numbers.
CREATE FUNCTION mark_names(_bucket int8, _seqs int8[], _removed bool) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _seq int8;
BEGIN
  INSERT INTO name_marks (bucket_id, block, removed, changed)
  SELECT DISTINCT _bucket, seq / 4096, decode(repeat('00', 512), 'hex'), decode(repeat('00', 512), 'hex')
  FROM unnest(_seqs) AS seq
  ON CONFLICT DO NOTHING;
  FOREACH _seq IN ARRAY _seqs LOOP
    UPDATE name_marks SET
      removed = CASE WHEN _removed THEN set_bit(removed, _seq % 4096, 1) ELSE removed END,
      changed = set_bit(changed, _seq % 4096, CASE WHEN _removed THEN 0 ELSE 1 END)
    WHERE bucket_id = _bucket AND block = _seq / 4096;
  END LOOP;
END $$;
`
