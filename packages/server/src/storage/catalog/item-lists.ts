import { type ItemKind, type ItemOrder, itemKinds } from '../../core/queries.ts'
import { kindExpression, kindNumber } from './item-kinds.ts'
import { isLive, itemColumns } from './items.ts'
import type { ItemPlace, ItemSelection } from './records.ts'

/** A statement that reads the rows of Catalog.items: `itemColumns` and `seq`. The first values are the id of the bucket and the time. */
interface ItemStatement {
  readonly sql: string
  /** The terms of the order. */
  readonly order: string
  readonly values: readonly number[]
}

/** Before all times, and after all of them. Milliseconds. */
const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

const orders = {
  oldest: { after: '>', until: '<', direction: 'ASC' },
  newest: { after: '<', until: '>=', direction: 'DESC' },
} as const

/**
 * Returns the statements of an engine, whose parameters are `?1` or `$1`. Without a filter the items are in the order of their
 * numbers. With a filter they are in the order of their times, because one index on kind and time then serves all filters: the
 * items of all kinds are merged in this order.
 */
export function createItemStatements(
  mark: '?' | '$',
): (selection: ItemSelection, after: ItemPlace | null, limit: number, now: number) => ItemStatement {
  const rows = `SELECT ${itemColumns}, seq FROM items WHERE bucket_id = ${mark}1 AND ${isLive(`${mark}2`)}`

  function textsOf(order: ItemOrder) {
    const { after, until, direction } = orders[order]
    const byNumber = `seq ${direction}`
    const byTime = `created_at ${direction}, seq ${direction}`
    const ofKind = (kind: string) =>
      `${rows} AND ${kindExpression} = ${kind}
        AND (created_at, seq) ${after} (${mark}3, ${mark}4) AND created_at ${until} ${mark}5`
    const inTime = (selected: string) => `${selected} ORDER BY ${byTime} LIMIT ${mark}6`
    // SQLite merges ordered ranges as they are read. PostgreSQL sorts them, so it gets only the first rows of each.
    const rangeOf = (kind: ItemKind) => {
      const range = ofKind(`${kindNumber(kind)}`)
      return mark === '?' ? range : `(${inTime(range)})`
    }
    return {
      unfiltered: {
        sql: `${rows} AND seq ${after} ${mark}3 ORDER BY ${byNumber} LIMIT ${mark}4`,
        order: byNumber,
      },
      anyKind: { sql: inTime(itemKinds.map(rangeOf).join(' UNION ALL ')), order: byTime },
      oneKind: { sql: inTime(ofKind(`${mark}7`)), order: byTime },
    }
  }
  const texts = { oldest: textsOf('oldest'), newest: textsOf('newest') }

  return ({ bucketId, order, kind, from, to }, after, limit, now) => {
    const { unfiltered, anyKind, oneKind } = texts[order]
    const isOldest = order === 'oldest'
    if (kind === null && from === null && to === null)
      return { ...unfiltered, values: [bucketId, now, after?.seq ?? (isOldest ? -1 : endOfTime), limit] }
    const [start, end] = isOldest
      ? [from ?? firstTime, to ?? endOfTime]
      : [to ?? endOfTime, from ?? firstTime]
    const { createdAt, seq } = after ?? { createdAt: start, seq: -1 }
    const values = [bucketId, now, createdAt, seq, end, limit]
    return kind === null ? { ...anyKind, values } : { ...oneKind, values: [...values, kindNumber(kind)] }
  }
}
