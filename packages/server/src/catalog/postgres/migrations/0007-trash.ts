/**
 * The trash of the bucket n is the bucket -n, in which items are in the order of their deletion (catalog/trash.ts). `home_seq` is the
 * number of an item before its deletion. Times are milliseconds since 1970.
 */
export const trash = `
ALTER TABLE buckets ADD COLUMN trash_days int4 NOT NULL DEFAULT 0;
ALTER TABLE media ADD COLUMN home_seq int8, ADD COLUMN deleted_at int8, ADD COLUMN expires_at int8;
CREATE INDEX media_expiry ON media (expires_at) WHERE expires_at IS NOT NULL;

-- Counts items whose earlier numbers are used again.
CREATE FUNCTION restore_ranks(_bucket int8, _next int8, _seqs int8[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _level int4 := 1;
  _width int8 := 64;
BEGIN
  LOOP
    PERFORM change_rank(_bucket, _level, counter, count(*))
    FROM (SELECT seq / _width AS counter FROM unnest(_seqs) AS seq) AS restored GROUP BY counter;
    _level := _level + 1;
    _width := _width * 128;
    EXIT WHEN _width >= _next;
  END LOOP;
END $$;

-- Moves items of a bucket whose row the transaction has locked to its trash. The ids are in the order of their numbers.
CREATE FUNCTION trash_media(_bucket int8, _ids text[], _now int8, _expiry int8) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  _found text[];
  _seqs int8[];
  _bytes int8;
  _next int8;
  _trash_total int8;
  _trash_next int8;
BEGIN
  SELECT array_agg(id ORDER BY seq), array_agg(seq ORDER BY seq), sum(size)::int8 INTO _found, _seqs, _bytes
  FROM media WHERE bucket_id = _bucket AND id = ANY (_ids);
  IF _found IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO buckets (id, name, created_at) OVERRIDING SYSTEM VALUE VALUES (-_bucket, _bucket || '/trash', _now)
  ON CONFLICT (id) DO NOTHING;
  UPDATE buckets SET revision = revision + revision_step(), total = total + cardinality(_seqs), bytes = bytes + _bytes,
    next_seq = next_seq + cardinality(_seqs)
  WHERE id = -_bucket RETURNING total - cardinality(_seqs), next_seq INTO STRICT _trash_total, _trash_next;
  UPDATE media SET bucket_id = -_bucket, seq = _trash_next - cardinality(_seqs) + number - 1, home_seq = seq,
    deleted_at = _now, expires_at = _expiry
  FROM unnest(_found) WITH ORDINALITY AS found (found_id, number) WHERE media.id = found_id;
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM shrink_ranks(_bucket, _next, _seqs);
  PERFORM mark_names(_bucket, _seqs, true);
  PERFORM grow_ranks(-_bucket, _trash_total, _trash_next - cardinality(_seqs), _trash_next);
  RETURN QUERY SELECT unnest(_found);
END $$;

-- The reverse, for these items of the trash.
CREATE FUNCTION restore_media(_bucket int8, _ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _seqs int8[];
  _homes int8[];
  _bytes int8;
  _next int8;
BEGIN
  SELECT array_agg(seq ORDER BY seq), array_agg(home_seq ORDER BY home_seq), sum(size)::int8 INTO _seqs, _homes, _bytes
  FROM media WHERE bucket_id = -_bucket AND id = ANY (_ids);
  UPDATE media SET bucket_id = _bucket, seq = home_seq, home_seq = NULL, deleted_at = NULL, expires_at = NULL
  WHERE bucket_id = -_bucket AND id = ANY (_ids);
  UPDATE buckets SET revision = revision + revision_step(), total = total + cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM restore_ranks(_bucket, _next, _homes);
  PERFORM mark_names(_bucket, _homes, false);
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs), bytes = bytes - _bytes
  WHERE id = -_bucket RETURNING next_seq INTO STRICT _next;
  PERFORM shrink_ranks(-_bucket, _next, _seqs);
END $$;
`
