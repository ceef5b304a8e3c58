import { pageSize } from '../../../../core/page.ts'
import { defaultShape } from '../../buckets.ts'

const { leaf, fanOut } = defaultShape

/** The functions that count the items of a bucket in the table `ranks`, and find pages by them. */
export const rankFunctions = `
-- The rank tree (docs/architecture/listing.md, Ranks): a counter of level 1 covers ${leaf} numbers, a node has ${fanOut} counters. A node stores the sum
-- of its counters up to each one, in which width_bucket finds a position by binary search.
CREATE FUNCTION change_rank(_bucket int8, _level int4, _counter int8, _delta int8) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _index int4 := _counter % ${fanOut} + 1;
  _count int8;
BEGIN
  UPDATE ranks SET sums = sums[1:_index - 1] || ARRAY(SELECT sum + _delta FROM unnest(sums[_index:${fanOut}]) AS sum)
  WHERE bucket_id = _bucket AND level = _level AND slot = _counter / ${fanOut}
  RETURNING sums[_index] - coalesce(sums[_index - 1], 0) INTO _count;
  IF NOT FOUND THEN
    INSERT INTO ranks (bucket_id, level, slot, sums) VALUES (_bucket, _level, _counter / ${fanOut},
      array_fill(0::int8, ARRAY[_index - 1]) || array_fill(_delta, ARRAY[${fanOut + 1} - _index]));
    _count := _delta;
  END IF;
  IF _count < 0 THEN
    RAISE EXCEPTION 'a rank counter of bucket % would be negative', _bucket;
  END IF;
END $$;

-- Counts items that were appended with the numbers from _first to below _next; before, the bucket had _total items.
CREATE FUNCTION grow_ranks(_bucket int8, _total int8, _first int8, _next int8) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _level int4 := 1;
  _width int8 := ${leaf};
  _seq int8;
  _end int8;
BEGIN
  LOOP
    -- The first counter of a new top level covers node 0 of the old one, which counts all earlier items.
    IF _level > 1 AND _width >= _first THEN
      PERFORM change_rank(_bucket, _level, 0, _total);
    END IF;
    _seq := _first;
    WHILE _seq < _next LOOP
      _end := least(_next, (_seq / _width + 1) * _width);
      PERFORM change_rank(_bucket, _level, _seq / _width, _end - _seq);
      _seq := _end;
    END LOOP;
    _level := _level + 1;
    _width := _width * ${fanOut};
    EXIT WHEN _width >= _next;
  END LOOP;
END $$;

-- Counts items that were removed (_delta -1), or whose earlier numbers are used again (_delta 1).
CREATE FUNCTION change_ranks(_bucket int8, _next int8, _seqs int8[], _delta int8) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _level int4 := 1;
  _width int8 := ${leaf};
BEGIN
  LOOP
    PERFORM change_rank(_bucket, _level, counter, _delta * count(*))
    FROM (SELECT seq / _width AS counter FROM unnest(_seqs) AS seq) AS changed GROUP BY counter;
    _level := _level + 1;
    _width := _width * ${fanOut};
    EXIT WHEN _width >= _next;
  END LOOP;
END $$;

-- ${pageSize} items from the position _first (from 0), with the revision and the total of the same snapshot (STABLE). Each item is
-- its id and, if it has an extension, a dot and the extension; items are separated by spaces. No row if there is no bucket. One plan
-- serves all positions; PostgreSQL would plan each call, which takes longer than the reads.
CREATE FUNCTION read_page(_bucket int8, _first int8, OUT revision int8, OUT total int8, OUT items text)
RETURNS SETOF record
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  _next int8;
  _level int4 := 1;
  _width int8 := ${leaf * fanOut};
  _slot int8 := 0;
  _skip int8 := _first;
  _index int4;
  _sums int8[];
BEGIN
  SELECT b.revision, b.total, b.next_seq INTO revision, total, _next FROM buckets AS b WHERE b.id = _bucket;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF _first < total THEN
    WHILE _width < _next LOOP
      _level := _level + 1;
      _width := _width * ${fanOut};
    END LOOP;
    WHILE _level > 0 LOOP
      SELECT width_bucket(_skip, r.sums), r.sums INTO STRICT _index, _sums FROM ranks AS r
      WHERE r.bucket_id = _bucket AND r.level = _level AND r.slot = _slot;
      IF _index = ${fanOut} THEN
        RAISE EXCEPTION 'the rank counters of bucket % do not reach its total', _bucket;
      END IF;
      _skip := _skip - coalesce(_sums[_index], 0);
      _slot := _slot * ${fanOut} + _index;
      _level := _level - 1;
    END LOOP;
    SELECT string_agg(CASE WHEN m.extension IS NULL THEN m.id ELSE m.id || '.' || m.extension END, ' ' ORDER BY m.seq)
    INTO items FROM (
      SELECT id, extension, seq FROM items WHERE bucket_id = _bucket AND seq >= _slot * ${leaf}
      ORDER BY seq LIMIT ${pageSize} OFFSET _skip
    ) AS m;
  END IF;
  RETURN NEXT;
END $$;`
