/**
 * Items that expire, and the default lifetime of new items in days. `next_expiry` is when the next item of the bucket expires; null if none
 * does. Times are milliseconds since 1970. An item in the trash keeps its expiry, and leaves the trash by then (`expires_at`).
 */
export const itemExpiry = `
ALTER TABLE buckets ADD COLUMN item_days int4, ADD COLUMN next_expiry int8;
ALTER TABLE media ADD COLUMN item_expires_at int8;
CREATE INDEX media_item_expiry ON media (bucket_id, item_expires_at) WHERE item_expires_at IS NOT NULL;

-- Moves items of a bucket whose row the transaction has locked to its trash. The ids are in the order of their numbers.
CREATE OR REPLACE FUNCTION trash_media(_bucket int8, _ids text[], _now int8, _expiry int8) RETURNS SETOF text
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
    deleted_at = _now, expires_at = least(_expiry, item_expires_at)
  FROM unnest(_found) WITH ORDINALITY AS found (found_id, number) WHERE media.id = found_id;
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM shrink_ranks(_bucket, _next, _seqs);
  PERFORM mark_names(_bucket, _seqs, true);
  PERFORM grow_ranks(-_bucket, _trash_total, _trash_next - cardinality(_seqs), _trash_next);
  RETURN QUERY SELECT unnest(_found);
END $$;
`
