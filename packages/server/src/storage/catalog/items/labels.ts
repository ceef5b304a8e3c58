import type { Labels } from '../../../core/item-labels.ts'
import type { BucketId, LabelKey } from '../records.ts'
import {
  all,
  type EngineName,
  eachEngine,
  first,
  integer,
  labelsOf,
  type Query,
  type Row,
  text,
  type Work,
  write,
} from '../statements.ts'
import { kindExpression, kindNumberOf } from './item-kinds.ts'

// The labels of an item are a column of its row. The tables `labels` and `item_labels` are an index of them, with rows only for items of buckets
// that have labels. In `item_labels` the items of a label are in the order of their kinds and times, as in the index items_by_kind: so a list with
// labels continues at any place, whatever kind and times it selects.

/** What one read of the labels of a bucket returns at most. */
interface LabelLimits {
  readonly maxKeys: number
  /** Of each key. */
  readonly maxValues: number
}

/** What the index has of an item. */
export interface LabelledRow {
  readonly seq: number
  readonly contentType: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly labels?: Labels | null
}

/** Reads the type, the time and the labels of a row from three columns, if it has labels. */
export const labelledRow = (seq: number, row: Row, column: number): readonly LabelledRow[] =>
  row[column + 2] === null
    ? []
    : [
        {
          seq,
          contentType: text(row, column),
          createdAt: integer(row, column + 1),
          labels: labelsOf(row, column + 2),
        },
      ]

/** A label as its key in a map: keys have no `=`. */
const labelOf = ([key, value]: readonly [string, string]): string => `${key}=${value}`

/** The rows by their labels. */
function rowsByLabel(rows: readonly LabelledRow[]): Map<string, LabelledRow[]> {
  const byLabel = new Map<string, LabelledRow[]>()
  for (const row of rows)
    for (const label of Object.entries(row.labels ?? {}).map(labelOf)) {
      const others = byLabel.get(label)
      if (others) others.push(row)
      else byLabel.set(label, [row])
    }
  return byLabel
}

const pairOf = (label: string): readonly [key: string, value: string] => {
  const end = label.indexOf('=')
  return [label.slice(0, end), label.slice(end + 1)]
}

/** The rows as a JSON parameter: arrays of the kind, the time and the number. */
const placesOf = (rows: readonly LabelledRow[]): string =>
  JSON.stringify(rows.map(({ contentType, createdAt, seq }) => [kindNumberOf(contentType), createdAt, seq]))

/** The rows of a JSON parameter, one for each element. */
const elementsOf = (engine: EngineName, parameter: string): string =>
  engine === 'sqlite'
    ? `json_each(${parameter})`
    : `json_array_elements(${parameter}::text::json) AS element (value)`

const place = '(value ->> 0)::int4, (value ->> 1)::int8, (value ->> 2)::int8'

const insertion = eachEngine(
  (engine) => `INSERT INTO item_labels (bucket_id, label_id, kind, created_at, seq)
    SELECT $1::int8, $2::int8, ${place} FROM ${elementsOf(engine, '$3')}`,
)

const removal = eachEngine(
  (engine) => `DELETE FROM item_labels WHERE bucket_id = $1 AND label_id = $2
    AND (kind, created_at, seq) IN (SELECT ${place} FROM ${elementsOf(engine, '$3')})`,
)

/** Adds rows of a bucket to the index. To be called in the transaction that adds or restores them. */
export function* indexRows(bucketId: BucketId, rows: readonly LabelledRow[]): Work<void> {
  for (const [label, labelled] of rowsByLabel(rows)) {
    const id = yield* first(
      (row) => integer(row, 0),
      `INSERT INTO labels (bucket_id, key, value, items) VALUES ($1, $2, $3, $4)
      ON CONFLICT (bucket_id, key, value) DO UPDATE SET items = labels.items + excluded.items RETURNING id`,
      ...[bucketId, ...pairOf(label), labelled.length],
    )
    yield* write(insertion, bucketId, id, placesOf(labelled))
  }
}

/** Removes rows of a bucket from the index. To be called in the transaction that removes or trashes them. */
export function* unindexRows(bucketId: BucketId, rows: readonly LabelledRow[]): Work<void> {
  for (const [label, labelled] of rowsByLabel(rows)) {
    const found = yield* first(
      (row) => ({ id: integer(row, 0), items: integer(row, 1) }),
      'SELECT id, items FROM labels WHERE bucket_id = $1 AND key = $2 AND value = $3',
      ...[bucketId, ...pairOf(label)],
    )
    // A wrong index is corrected by fsck. It must not keep items from being removed.
    if (found === null) continue
    const left = found.items - labelled.length
    if (left > 0) yield* write('UPDATE labels SET items = $2 WHERE id = $1', found.id, left)
    else yield* write('DELETE FROM labels WHERE id = $1', found.id)
    yield* write(removal, bucketId, found.id, placesOf(labelled))
  }
}

/** Indexes other labels of rows of a bucket. */
export function* indexEdits(
  bucketId: BucketId,
  edits: readonly { readonly row: LabelledRow; readonly labels: Labels | null }[],
): Work<void> {
  const without = (labels: Labels | null | undefined, others: Labels | null | undefined): Labels =>
    Object.fromEntries(Object.entries(labels ?? {}).filter(([key, value]) => others?.[key] !== value))
  const removed = edits.map(({ row, labels }) => ({ ...row, labels: without(row.labels, labels) }))
  const added = edits.map(({ row, labels }) => ({ ...row, labels: without(labels, row.labels) }))
  yield* unindexRows(bucketId, removed)
  yield* indexRows(bucketId, added)
}

/** The pairs of an item and a label in the rows of a bucket: key, value, kind, time and number. */
const labelledPairs = (engine: EngineName, bucket = '$1'): string =>
  `SELECT ${engine === 'sqlite' ? 'label.key, label.value' : 'label.key COLLATE "C" AS key, label.value COLLATE "C" AS value'},
    ${kindExpression} AS kind, created_at, seq
  FROM items, ${engine === 'sqlite' ? 'json_each(items.labels)' : 'json_each_text(items.labels::json)'} AS label
  WHERE items.bucket_id = ${bucket} AND items.labels IS NOT NULL`

/** A statement of PostgreSQL that adds new items of a bucket to the index. `bucket` is an expression, and `isNew` a condition on the items. */
export const newItemIndexing = (bucket: string, isNew: string): string => `WITH pair AS MATERIALIZED (
    ${labelledPairs('postgres', bucket)} AND ${isNew}
  ), label AS (
    INSERT INTO labels (bucket_id, key, value, items)
    SELECT ${bucket}, key, value, count(*) FROM pair GROUP BY key, value ORDER BY key, value
    ON CONFLICT (bucket_id, key, value) DO UPDATE SET items = labels.items + excluded.items RETURNING id, key, value
  )
  INSERT INTO item_labels (bucket_id, label_id, kind, created_at, seq)
  SELECT ${bucket}, label.id, pair.kind, pair.created_at, pair.seq FROM pair JOIN label USING (key, value)`

/** The same of the index. */
const indexedPairs = `SELECT labels.key, labels.value, item_labels.kind, item_labels.created_at, item_labels.seq
  FROM labels JOIN item_labels ON item_labels.bucket_id = labels.bucket_id AND item_labels.label_id = labels.id
  WHERE labels.bucket_id = $1`

const wrongRows = eachEngine(
  (engine) => `SELECT
    (SELECT count(*) FROM (SELECT * FROM (${labelledPairs(engine)}) AS pair EXCEPT ${indexedPairs}) AS missing)
    + (SELECT count(*) FROM (SELECT * FROM (${indexedPairs}) AS pair EXCEPT ${labelledPairs(engine)}) AS unknown)
    + (SELECT count(*) FROM labels WHERE bucket_id = $1 AND items <>
      (SELECT count(*) FROM item_labels WHERE item_labels.bucket_id = $1 AND label_id = labels.id))
    + (SELECT count(*) FROM item_labels WHERE bucket_id = $1 AND label_id NOT IN (SELECT id FROM labels WHERE bucket_id = $1))`,
)

/** How many rows of the index of a bucket do not match its items. */
export function* countWrongLabels(bucketId: BucketId): Query<number> {
  // The id of a trash is negative.
  if (bucketId < 0) return 0
  return (yield* first((row) => integer(row, 0), wrongRows, bucketId)) ?? 0
}

const newLabels = eachEngine(
  (engine) => `INSERT INTO labels (bucket_id, key, value, items)
    SELECT $1::int8, key, value, count(*) FROM (${labelledPairs(engine)}) AS pair GROUP BY key, value ORDER BY key, value`,
)

const newRows = eachEngine(
  (engine) => `INSERT INTO item_labels (bucket_id, label_id, kind, created_at, seq)
    SELECT $1::int8, labels.id, pair.kind, pair.created_at, pair.seq FROM (${labelledPairs(engine)}) AS pair
    JOIN labels ON labels.bucket_id = $1 AND labels.key = pair.key AND labels.value = pair.value
    ORDER BY 2, 3, 4, 5`,
)

/** Builds the index of a bucket from its items. */
export function* rebuildLabels(bucketId: BucketId): Work<void> {
  for (const table of ['labels', 'item_labels'])
    yield* write(`DELETE FROM ${table} WHERE bucket_id = $1`, bucketId)
  yield* write(newLabels, bucketId)
  yield* write(newRows, bucketId)
}

/** The keys of a bucket in their order from one of them, without reading all of their values. */
const keys = `WITH RECURSIVE found (key) AS (
    SELECT min(key) FROM labels WHERE bucket_id = $1 AND key >= $3
    UNION ALL
    SELECT (SELECT min(key) FROM labels WHERE bucket_id = $1 AND labels.key > found.key) FROM found WHERE found.key IS NOT NULL
  ) SELECT key FROM found WHERE key IS NOT NULL LIMIT $2`

/** The most frequent values of a key. */
const values =
  'SELECT value, items FROM labels WHERE bucket_id = $1 AND key = $2 ORDER BY items DESC, value LIMIT $3'

/** Both in one statement on PostgreSQL, because each one is a round trip; on SQLite two are faster. */
const keysAndValues = {
  sqlite: null,
  postgres: `WITH name AS MATERIALIZED (${keys})
    SELECT name.key, labels.value, labels.items FROM name
    CROSS JOIN LATERAL (
      SELECT value, items FROM labels WHERE bucket_id = $1 AND key = name.key ORDER BY items DESC, value LIMIT $4
    ) AS labels
    ORDER BY name.key, labels.items DESC, labels.value`,
}

/** The keys of the labels of a bucket in their order, or one of them, each with its most frequent values. */
export function* listLabels(
  bucketId: BucketId,
  key: string | null,
  { maxKeys, maxValues }: LabelLimits,
): Query<LabelKey[]> {
  const from = [bucketId, key === null ? maxKeys : 1, key ?? ''] as const
  const found = yield* all(
    (row) => ({ key: text(row, 0), value: text(row, 1), items: integer(row, 2) }),
    keysAndValues,
    ...[...from, maxValues],
  )
  const names = yield* all((row) => text(row, 0), { sqlite: keys, postgres: null }, ...from)
  for (const name of names)
    found.push(
      ...(yield* all(
        (row) => ({ key: name, value: text(row, 0), items: integer(row, 1) }),
        values,
        ...[bucketId, name, maxValues],
      )),
    )
  const byKey = Map.groupBy(found, (label) => label.key)
  return [...byKey]
    .filter(([name]) => key === null || name === key)
    .map(([name, labels]) => ({ key: name, values: labels.map(({ value, items }) => ({ value, items })) }))
}

export const reads = { listLabels }
