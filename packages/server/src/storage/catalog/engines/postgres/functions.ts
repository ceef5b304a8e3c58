import { namesPerRow } from '../../../../core/names.ts'
import { expiredQuery, stepFunction, uncountedQuery } from '../../buckets.ts'
import { itemChangeKinds } from '../../items/item-changes.ts'
import { isLive } from '../../items/items.ts'
import { newItemIndexing } from '../../items/labels.ts'
import { keyedBlock } from '../../objects/keyed-counts.ts'
import { appendParts } from './item-arrays.ts'
import { rankFunctions } from './postgres-ranks.ts'

/** The functions of a catalog, which `schema` contains. One call takes one round trip, and its plans are prepared once for each connection. */
export const functions = `
${rankFunctions}

${stepFunction}

-- Numbers of contents have 16 random bits, so that data which have gone back do not repeat a number for other bytes.
CREATE FUNCTION new_content_id() RETURNS int8
LANGUAGE sql VOLATILE AS $$ SELECT nextval('content_numbers') * 65536 + floor(random() * 65536)::int8 $$;

-- Adds the labels of new items, which have numbers from _first to below _next, to their index. The plan is made once, also of an empty table.
CREATE FUNCTION index_labels(_bucket int8, _first int8, _next int8) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  ${newItemIndexing('_bucket', 'seq >= _first AND seq < _next')};
END $$;

-- As enterCounts of catalog/items/expired-items.ts.
CREATE FUNCTION enter_counts(_bucket int8, _expiries int8[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM buckets WHERE id = _bucket AND counted_expiry >= ANY (_expiries)) THEN
    DELETE FROM expired_counts WHERE bucket_id = _bucket;
    UPDATE buckets SET counted_expiry = -1, counted_seq = -1, counted_items = 0, counted_bytes = 0 WHERE id = _bucket;
  END IF;
END $$;

-- Appends items to a bucket whose row the transaction has locked. The arrays have an element for each item. Everything that belongs to them is in
-- this one call: the commit is sent after it, without waiting for its result.
CREATE FUNCTION append_items(
  ${appendParts.parameters}
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _count int8 := cardinality(_ids);
  _bytes int8;
  _next int8;
  _total int8;
  _revision int8;
BEGIN
  SELECT sum(size)::int8 INTO STRICT _bytes FROM unnest(_sizes) AS size;
  UPDATE buckets SET revision = revision + revision_step() + _count - 1, total = total + _count, bytes = bytes + _bytes,
    added_items = added_items + _count, added_bytes = added_bytes + _bytes, next_seq = next_seq + _count,
    next_expiry = least(next_expiry, (SELECT min(expiry) FROM unnest(_expiries) AS expiry))
  WHERE id = _bucket RETURNING next_seq, total - _count, revision INTO STRICT _next, _total, _revision;

  WITH item AS MATERIALIZED (
    SELECT *, CASE WHEN content IS NOT NULL THEN new_content_id() END AS content_id
    FROM unnest(${appendParts.arrays})
      WITH ORDINALITY
      AS item (${appendParts.elements}, number)
  ), stored AS (
    INSERT INTO contents (id, bucket_id, bytes)
    SELECT content_id, _bucket, content FROM item WHERE content IS NOT NULL
  ), changed AS (
    INSERT INTO changes (bucket_id, number, kind, item_id, time)
    SELECT _bucket, _revision - _count + number, ${itemChangeKinds.added}, id, _now FROM item
  )
  INSERT INTO items (bucket_id, seq, ${appendParts.columns})
  SELECT _bucket, _next - _count + number - 1, ${appendParts.values}
  FROM item;

  -- The padding stands for the lines that the row has already, or had before its items were removed.
  INSERT INTO item_names AS present (bucket_id, slot, names)
  SELECT _bucket, seq / ${namesPerRow}, repeat(E'\\n', (min(seq) % ${namesPerRow})::int4) || string_agg(line, E'\\n' ORDER BY seq)
  FROM (
    SELECT line, _next - _count + number - 1 AS seq FROM unnest(_name_lines) WITH ORDINALITY AS named (line, number)
  ) AS added
  GROUP BY seq / ${namesPerRow}
  ON CONFLICT (bucket_id, slot) DO UPDATE
  SET names = present.names || E'\\n' || substr(excluded.names, 1 + ((_next - _count) % ${namesPerRow})::int4);

  -- After the insertion, whose lock retire_ids waits for.
  IF EXISTS (SELECT 1 FROM retired WHERE id = ANY (_ids)) OR EXISTS (SELECT 1 FROM tombstones WHERE id = ANY (_ids)) THEN
    RAISE EXCEPTION 'the bytes of this item were set aside by a check, or are being deleted';
  END IF;
  DELETE FROM intents WHERE id = ANY (_ids);
  PERFORM grow_ranks(_bucket, _total, _next - _count, _next);
  IF _expiries IS NOT NULL THEN
    PERFORM enter_counts(_bucket, _expiries);
  END IF;
  IF _labels IS NOT NULL THEN
    PERFORM index_labels(_bucket, _next - _count, _next);
  END IF;
END $$;

-- Removes the rows with the names of items whose rows no item is left of, after these items were removed.
CREATE FUNCTION clear_names(_bucket int8, _seqs int8[]) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM item_names
  WHERE bucket_id = _bucket AND slot IN (SELECT seq / ${namesPerRow} FROM unnest(_seqs) AS seq)
    AND NOT EXISTS (SELECT FROM items WHERE items.bucket_id = _bucket AND seq >= slot * ${namesPerRow} AND seq < slot * ${namesPerRow} + ${namesPerRow})
$$;

-- Removes the keys of items that leave a bucket; the arrays have an element for each.
CREATE FUNCTION remove_keys(_bucket int8, _ids text[], _seqs int8[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  WITH removed AS (
    DELETE FROM object_keys WHERE item_id = ANY (_ids) RETURNING item_id
  ), counted AS (
    SELECT seq / ${keyedBlock} AS slot, count(*) AS items
    FROM unnest(_ids, _seqs) AS item (id, seq) JOIN removed ON item_id = item.id GROUP BY 1
  )
  UPDATE keyed_counts SET items = keyed_counts.items - counted.items FROM counted
  WHERE bucket_id = _bucket AND keyed_counts.slot = counted.slot;
END $$;

-- Completes the removal of items whose rows the transaction has deleted. A trash has no usage.
CREATE FUNCTION forget_items(_bucket int8, _seqs int8[], _ids text[], _bytes int8, _contents int8[], _tombstones text[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _next int8;
BEGIN
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs), bytes = bytes - _bytes,
    removed_items = CASE WHEN id > 0 THEN removed_items + cardinality(_seqs) ELSE 0 END,
    removed_bytes = CASE WHEN id > 0 THEN removed_bytes + _bytes ELSE 0 END
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  DELETE FROM contents WHERE id = ANY (_contents);
  PERFORM remove_keys(_bucket, _ids, _seqs);
  INSERT INTO tombstones (id) SELECT unnest(_tombstones) ON CONFLICT DO NOTHING;
  PERFORM change_ranks(_bucket, _next, _seqs, -1);
  PERFORM clear_names(_bucket, _seqs);
END $$;

-- Moves items of a bucket whose row the transaction has locked to its trash. Returns their ids in the order of their numbers, and what
-- their labels are indexed by.
CREATE FUNCTION trash_items(_bucket int8, _ids text[], _now int8, _expiry int8)
RETURNS TABLE (item_id text, item_seq int8, item_type text, item_time int8, item_labels text, item_expiry int8)
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
  FROM items WHERE bucket_id = _bucket AND id = ANY (_ids) AND ${isLive('_now')};
  IF _found IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO buckets (id, name, created_at) OVERRIDING SYSTEM VALUE VALUES (-_bucket, _bucket || '/trash', _now)
  ON CONFLICT (id) DO NOTHING;
  UPDATE buckets SET revision = revision + revision_step(), total = total + cardinality(_seqs), bytes = bytes + _bytes,
    next_seq = next_seq + cardinality(_seqs)
  WHERE id = -_bucket RETURNING total - cardinality(_seqs), next_seq INTO STRICT _trash_total, _trash_next;
  UPDATE items SET bucket_id = -_bucket, seq = _trash_next - cardinality(_seqs) + number - 1, home_seq = seq,
    deleted_at = _now, expires_at = least(_expiry, item_expires_at)
  FROM unnest(_found) WITH ORDINALITY AS found (found_id, number) WHERE items.id = found_id;
  PERFORM remove_keys(_bucket, _found, _seqs);
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs),
    removed_items = removed_items + cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM change_ranks(_bucket, _next, _seqs, -1);
  PERFORM clear_names(_bucket, _seqs);
  PERFORM grow_ranks(-_bucket, _trash_total, _trash_next - cardinality(_seqs), _trash_next);
  RETURN QUERY SELECT id, home_seq, content_type, created_at, labels, item_expires_at FROM items
    WHERE id = ANY (_found) ORDER BY home_seq;
END $$;

-- The reverse, for these items of the trash.
CREATE FUNCTION restore_items(_bucket int8, _ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _seqs int8[];
  _homes int8[];
  _bytes int8;
  _next int8;
BEGIN
  SELECT array_agg(seq ORDER BY seq), array_agg(home_seq ORDER BY home_seq), sum(size)::int8 INTO _seqs, _homes, _bytes
  FROM items WHERE bucket_id = -_bucket AND id = ANY (_ids);
  UPDATE items SET bucket_id = _bucket, seq = home_seq, home_seq = NULL, deleted_at = NULL, expires_at = NULL
  WHERE bucket_id = -_bucket AND id = ANY (_ids);
  UPDATE buckets SET revision = revision + revision_step(), total = total + cardinality(_seqs),
    added_items = added_items + cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM change_ranks(_bucket, _next, _homes, 1);
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs), bytes = bytes - _bytes
  WHERE id = -_bucket RETURNING next_seq INTO STRICT _next;
  PERFORM change_ranks(-_bucket, _next, _seqs, -1);
END $$;

-- Ids that no item, tombstone, unfinished upload or part has.
CREATE FUNCTION unreferenced_ids(_ids text[]) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT id FROM unnest(_ids) WITH ORDINALITY AS wanted (id, number)
  WHERE NOT EXISTS (SELECT 1 FROM items WHERE items.id = wanted.id)
    AND NOT EXISTS (SELECT 1 FROM tombstones WHERE tombstones.id = wanted.id)
    AND NOT EXISTS (SELECT 1 FROM uploads WHERE item_id = wanted.id AND finished = 0)
    AND NOT EXISTS (SELECT 1 FROM object_parts WHERE item_id = wanted.id)
  ORDER BY number
$$;

-- Permanently reserves those ids. The lock waits for transactions that have added items and delays others, so that no item gets an
-- id between the check and the commit. It fails soon, because all additions queue behind its wait, for example for a VACUUM.
CREATE FUNCTION retire_ids(_ids text[]) RETURNS SETOF text
LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
DECLARE
  _retired text[];
BEGIN
  LOCK TABLE items, object_parts IN SHARE MODE;
  _retired := ARRAY(SELECT unreferenced_ids(_ids));
  INSERT INTO retired (id) SELECT unnest(_retired) ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT unnest(_retired);
END $$;

-- As retire_ids, of those ids whose intents have expired.
CREATE FUNCTION retire_intents(_ids text[]) RETURNS SETOF text
LANGUAGE sql AS $$
  SELECT retire_ids(ARRAY(
    SELECT id FROM unnest(_ids) WITH ORDINALITY AS wanted (id, number) JOIN intents USING (id)
    WHERE expires_at <= clock_timestamp() ORDER BY number))
$$;

-- Of a bucket or a trash: the number and the bytes of its items that have expired and are not removed yet, or of those that are not counted either, and
-- the number of these before a position (catalog/buckets.ts).
${(['items', 'bytes'] as const)
  .flatMap((value) => [
    { name: `expired_${value}`, query: expiredQuery(value, '_bucket', '_now') },
    { name: `uncounted_${value}`, query: uncountedQuery(value, '_bucket', '_now') },
  ])
  .map(
    ({ name, query }) => `CREATE FUNCTION ${name}(_bucket int8, _now int8) RETURNS int8
LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (${query}); END $$;`,
  )
  .join('\n')}
CREATE FUNCTION expired_before(_bucket int8, _now int8, _seq int8) RETURNS int8
LANGUAGE plpgsql STABLE AS $$ BEGIN
  RETURN (SELECT count(*) FROM items WHERE bucket_id = _bucket AND item_expires_at <= _now AND seq < _seq);
END $$;

-- Fails on a replica, where a token may still be valid that was revoked.
CREATE FUNCTION require_primary() RETURNS bool
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'the server is a replica';
  END IF;
  RETURN true;
END $$;

-- Where the database is: a copy has another value, a replica the same. Empty if the server does not tell it.
CREATE FUNCTION catalog_location() RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT concat_ws('/', system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()),
    'meta'::regclass::oid) FROM pg_control_system());
EXCEPTION WHEN OTHERS THEN
  RETURN '';
END $$;
`
