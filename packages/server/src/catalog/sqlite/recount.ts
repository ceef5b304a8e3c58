import type { DatabaseSync } from 'node:sqlite'
import { type BucketFault, lateExpiry } from '../audit.ts'
import { indexOf, defaultShape as shape, slotOf, topLevel } from '../rank-shape.ts'
import type { BucketId } from '../records.ts'
import { bytes, integer, integerOrNull, text } from '../rows.ts'
import { isTrash } from '../trash.ts'
import { prepareRefreshExpiry } from './item-expiry.ts'
import { RankNode } from './rank-nodes.ts'
import { all, one } from './rows.ts'

interface Recount {
  /** By name. */
  buckets(): BucketId[]
  /** Compares the bucket's stored counters with its rows; to be called within a transaction. */
  faults(id: BucketId): BucketFault[]
  /** Also corrects them, and increments the revision, because pages may contain the wrong total. */
  correct(id: BucketId): BucketFault[]
}

interface Counted {
  readonly id: number
  readonly faults: BucketFault[]
  readonly total: number
  readonly bytes: number
  readonly nextSeq: number
  readonly reserved: readonly [items: number, bytes: number]
  readonly nodes: ReadonlyMap<string, RankNode>
}

const keyOf = (level: number, slot: number) => `${level}/${slot}`

export function prepareRecount(db: DatabaseSync): Recount {
  const buckets = db.prepare('SELECT id FROM buckets ORDER BY name')
  const bucketRow = db.prepare(`SELECT id, name, total, bytes, next_seq, reserved_items, reserved_bytes,
    next_expiry FROM buckets WHERE id = ?`)
  const firstExpiry = db.prepare(`SELECT min(item_expires_at) FROM media INDEXED BY media_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL`)
  // One row for each leaf block, so that a million items are not a million rows here.
  const blocks = db.prepare(`SELECT seq / ${shape.leaf}, count(*), sum(size), max(seq) FROM media
    WHERE bucket_id = ? GROUP BY seq / ${shape.leaf}`)
  const trashBytes = db.prepare('SELECT coalesce(sum(size), 0) FROM media WHERE bucket_id = -?')
  const reservations = db.prepare(`SELECT count(*), coalesce(sum(coalesce(length, received)), 0)
    FROM uploads WHERE bucket_id = ? AND finished = 0`)
  const ranks = db.prepare('SELECT level, slot, counts FROM ranks WHERE bucket_id = ?')
  const dropRanks = db.prepare('DELETE FROM ranks WHERE bucket_id = ?')
  const addRank = db.prepare('INSERT INTO ranks (bucket_id, level, slot, counts) VALUES (?, ?, ?, ?)')
  const update = db.prepare(`UPDATE buckets SET revision = revision + 1, total = ?, bytes = ?, next_seq = ?,
    reserved_items = ?, reserved_bytes = ? WHERE id = ?`)
  const refreshExpiry = prepareRefreshExpiry(db)

  function count(bucketId: BucketId): Counted | null {
    const row = one(bucketRow, bucketId)
    if (!row) return null
    const [id, bucket] = [integer(row, 0), text(row, 1)]
    const found = all(blocks, id).map((block) => [0, 1, 2, 3].map((column) => integer(block, column)))
    const sum = (column: number) => found.reduce((all, block) => all + (block[column] ?? 0), 0)
    const total = sum(1)
    // The bytes of a bucket include those of its trash.
    const size = sum(2) + (isTrash(id) ? 0 : integer(one(trashBytes, id) ?? [], 0))
    const storedNextSeq = integer(row, 4)
    const nextSeq = found.reduce((highest, block) => Math.max(highest, (block[3] ?? 0) + 1), storedNextSeq)
    const nodes = new Map<string, RankNode>()
    for (let level = topLevel(shape, nextSeq); level > 0; level--)
      for (const [block = 0, items = 0] of found) {
        const seq = block * shape.leaf
        const key = keyOf(level, slotOf(shape, level, seq))
        const node = nodes.get(key) ?? RankNode.empty(shape)
        node.add(indexOf(shape, level, seq), items)
        nodes.set(key, node)
      }
    const reservation = one(reservations, id) ?? []
    const reserved = [integer(reservation, 0), integer(reservation, 1)] as const

    const faults: BucketFault[] = []
    const compare = (what: BucketFault['what'], stored: number | string, counted: number | string) => {
      if (stored !== counted)
        faults.push({ bucket, what, detail: `${stored} is stored, the rows add up to ${counted}` })
    }
    compare('total', integer(row, 2), total)
    compare('bytes', integer(row, 3), size)
    compare('sequence', storedNextSeq, nextSeq)
    compare(
      'reserved',
      `${integer(row, 5)} items, ${integer(row, 6)} bytes`,
      `${reserved[0]} items, ${reserved[1]} bytes`,
    )
    // The next expiry of the trash is not checked: earlier versions did not store it, and a sweep removes expired items of the trash.
    const nextExpiry = isTrash(id) ? null : integerOrNull(one(firstExpiry, id) ?? [null], 0)
    const late = lateExpiry(integerOrNull(row, 7), nextExpiry)
    if (late !== null) faults.push({ bucket, what: 'expiry', detail: late })
    const wrong = wrongNodes(id, nodes)
    if (wrong > 0) faults.push({ bucket, what: 'ranks', detail: `${wrong} nodes do not match the rows` })
    return { id, faults, total, bytes: size, nextSeq, reserved, nodes }
  }

  function wrongNodes(bucketId: number, nodes: ReadonlyMap<string, RankNode>): number {
    const missing = new Set(nodes.keys())
    let wrong = 0
    for (const row of all(ranks, bucketId)) {
      const key = keyOf(integer(row, 0), integer(row, 1))
      const expected = (nodes.get(key) ?? RankNode.empty(shape)).bytes
      if (Buffer.compare(bytes(row, 2), expected) !== 0) wrong += 1
      missing.delete(key)
    }
    return wrong + missing.size
  }

  return {
    buckets: () => all(buckets).map((row) => integer(row, 0) as BucketId),

    // A bucket that was deleted during the recount has no row.
    faults: (bucketId) => count(bucketId)?.faults ?? [],

    correct(bucketId) {
      const counted = count(bucketId)
      if (counted === null || counted.faults.length === 0) return []
      const { id, faults, total, bytes, nextSeq, reserved, nodes } = counted
      dropRanks.run(id)
      for (const [key, node] of nodes) {
        const [level = 0, slot = 0] = key.split('/').map(Number)
        addRank.run(id, level, slot, node.bytes)
      }
      update.run(total, bytes, nextSeq, ...reserved, id)
      if (!isTrash(id)) refreshExpiry(bucketId)
      return faults
    },
  }
}
