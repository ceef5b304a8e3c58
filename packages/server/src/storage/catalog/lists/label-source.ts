import { itemKinds } from '@mediabucket/client/rules'
import { kindNumber } from '../items/item-kinds.ts'
import type { ItemPlace, ItemSelection } from '../records.ts'
import {
  all,
  type EngineName,
  eachEngine,
  first,
  integer,
  type Query,
  type Row,
  type Sql,
} from '../statements.ts'
import { filtersAmong } from './item-filters.ts'
import {
  columnsFor,
  endOfTime,
  firstOfRanges,
  firstTime,
  inOrder,
  orders,
  placeOf,
  readRowFor,
} from './item-lists.ts'
import type { Source } from './item-scan.ts'

/**
 * Rows that are read together, if items that have one label need others: at first, and at most. A part ends early when it has found enough
 * items, so its size costs nothing where many items have all labels.
 */
const batches = [1_024, 8_192] as const

const compared = new Set(['kind', 'from', 'to', 'labels'])

/**
 * The items that have all labels of a selection, in the order of their times: the rows of the rarest label are read from its index, and looked
 * up in the others.
 */
export function createLabelSource(selection: ItemSelection, by = selection.by): Source {
  const { bucketId, order, kind, from, to } = selection
  const pairs = Object.entries(selection.labels ?? {})
  const isSparse = pairs.length > 1
  const [start, end] = inOrder(order, from ?? firstTime, to ?? endOfTime)
  return {
    bucketId,
    compared: filtersAmong(selection, compared),
    isSparse,
    ...(isSparse && { batches }),
    *open() {
      const labels = yield* readLabels(selection, pairs)
      const [rarest, ...others] = labels.toSorted(
        (one, other) => one.items - other.items || one.id - other.id,
      )
      const texts = textsOf(selection, others.length, by)
      return function* read(after, { count, wanted }) {
        if (rarest === undefined || labels.length < pairs.length)
          return { rows: [], last: null, cost: {}, isFull: false }
        const place = after ?? { createdAt: start, seq: -1 }
        const range = [
          ...[bucketId, rarest.id, place.createdAt, place.seq, end, count],
          ...(kind === null ? [] : [kindNumber(kind)]),
        ]
        const most = Math.min(count, wanted)
        const rows = yield* all(readRowFor(by), texts.found, ...range, most, ...others.map(({ id }) => id))
        const cost = { rows: count }
        const lastRow = rows[most - 1]
        if (lastRow !== undefined) return { rows, last: placeOf({}, lastRow), cost, isFull: true }
        const isEnd = others.length === 0 || rarest.items < count
        return {
          rows,
          last: isEnd ? null : yield* first(readPlace, texts.last, ...range),
          cost,
          isFull: true,
        }
      }
    },
  }
}

const readPlace = (row: Row): ItemPlace => ({ createdAt: integer(row, 0), seq: integer(row, 1) })

const labelColumn = (column: string) =>
  `(SELECT ${column} FROM labels WHERE bucket_id = $1 AND key = element.value ->> 0 AND value = element.value ->> 1)`

const labelsText = eachEngine(
  (engine) => `SELECT ${labelColumn('id')}, ${labelColumn('items')}
    FROM ${engine === 'sqlite' ? 'json_each($2) AS element' : 'json_array_elements($2::text::json) AS element (value)'}`,
)

interface StoredLabel {
  readonly id: number
  /** How many items have it. */
  readonly items: number
}

/** Reads those labels that items have. */
function* readLabels(
  { bucketId }: ItemSelection,
  pairs: readonly (readonly [string, string])[],
): Query<readonly StoredLabel[]> {
  const labels = yield* all(
    (row) => (row[0] === null ? [] : [{ id: integer(row, 0), items: integer(row, 1) }]),
    labelsText,
    ...[bucketId, JSON.stringify(pairs)],
  )
  return labels.flat()
}

interface LabelTexts {
  /** The items that have all labels. */
  readonly found: Sql
  /** The last place of a part. */
  readonly last: Sql
}

const texts = new Map<string, LabelTexts>()

/** The same texts for the same form of a selection, because statements are found by their texts. */
function textsOf(selection: ItemSelection, others: number, by: ItemSelection['by']): LabelTexts {
  const key = `${selection.order} ${selection.kind === null} ${others} ${by}`
  const known = texts.get(key) ?? writeTexts(selection, others, by)
  texts.set(key, known)
  return known
}

/** A lookup for each place, whatever an engine knows of the bucket. Places that are joined stay in their order. */
const joinItems: Readonly<Record<EngineName, string>> = {
  sqlite: 'CROSS JOIN items ON items.bucket_id = $1 AND items.seq = place_seq',
  postgres:
    'CROSS JOIN LATERAL (SELECT * FROM items WHERE bucket_id = $1 AND seq = place_seq OFFSET 0) AS items',
}

/** The first values are the bucket, the label, the place, the end, the batch, and the kind if there is one. The most items and the other labels follow. */
function writeTexts({ order, kind }: ItemSelection, others: number, by: ItemSelection['by']): LabelTexts {
  const { after, until, direction } = orders[order]
  const wanted = kind === null ? 7 : 8
  const ofKind = (kind: string) => `SELECT kind AS place_kind, created_at AS place_time, seq AS place_seq
    FROM item_labels WHERE bucket_id = $1 AND label_id = $2 AND kind = ${kind}
      AND (created_at, seq) ${after} ($3, $4) AND created_at ${until} $5`
  const kinds = kind === null ? itemKinds.map((kind) => `${kindNumber(kind)}`) : ['$7']
  const places = firstOfRanges(kinds.map(ofKind), `place_time ${direction}, place_seq ${direction} LIMIT $6`)
  // A scalar, because PostgreSQL may read all rows of the other label for an EXISTS.
  const hasOther = Array.from(
    { length: others },
    (
      _,
      index,
    ) => `(SELECT 1 FROM item_labels AS other WHERE bucket_id = $1 AND label_id = $${wanted + 1 + index}
      AND kind = place_kind AND created_at = place_time AND seq = place_seq) IS NOT NULL`,
  )
  const hasAll = hasOther.length === 0 ? '' : `WHERE ${hasOther.join(' AND ')}`
  return {
    found: eachEngine(
      (
        engine,
      ) => `SELECT ${columnsFor(by)} FROM (SELECT * FROM (${places[engine]}) AS part ${hasAll} LIMIT $${wanted}) AS place
        ${joinItems[engine]}`,
    ),
    last: eachEngine(
      (engine) => `SELECT place_time, place_seq FROM (${places[engine]}) AS place LIMIT 1 OFFSET $6 - 1`,
    ),
  }
}
