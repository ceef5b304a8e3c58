import { type BucketFault, lateExpiry } from '../audit.ts'
import { indexOf, defaultShape as shape, slotOf, topLevel } from '../rank-shape.ts'
import type { BucketId } from '../records.ts'
import { integer, integerOrNull, text } from '../rows.ts'
import { isTrash } from '../trash.ts'
import { refreshExpiry } from './item-expiry.ts'
import type { Session } from './session.ts'

/** The stored counters of a bucket, and those that its rows give. */
interface Counted {
  readonly faults: BucketFault[]
  readonly total: number
  readonly bytes: number
  readonly nextSeq: number
  readonly reserved: readonly [items: number, bytes: number]
  readonly nodes: readonly RankNode[]
}

interface RankNode {
  readonly level: number
  readonly slot: number
  readonly counts: number[]
}

/** Compares the counters of the bucket with its rows, in the transaction of the caller. Null if there is no bucket. */
async function count(session: Session, id: BucketId): Promise<Counted | null> {
  const [row] = await session.run(
    `SELECT name, total, bytes, next_seq, reserved_items, reserved_bytes, next_expiry,
      (SELECT min(item_expires_at) FROM media WHERE bucket_id = $1 AND item_expires_at IS NOT NULL)
    FROM buckets WHERE id = $1`,
    id,
  )
  if (!row) return null
  const bucket = text(row, 0)
  const rows = await session.run(
    `SELECT seq / ${shape.leaf}, count(*), sum(size)::int8, max(seq) FROM media WHERE bucket_id = $1 GROUP BY 1`,
    id,
  )
  const blocks = rows.map((block) => [integer(block, 0), integer(block, 1)] as const)
  const total = blocks.reduce((sum, [, items]) => sum + items, 0)
  // The bytes of a bucket include those of its trash.
  const [trash = []] = await session.run(
    'SELECT coalesce(sum(size), 0)::int8 FROM media WHERE bucket_id = -$1::int8 AND bucket_id < 0',
    id,
  )
  const bytes = rows.reduce((sum, block) => sum + integer(block, 2), integer(trash, 0))
  const nextSeq = rows.reduce((highest, block) => Math.max(highest, integer(block, 3) + 1), integer(row, 3))
  const nodes = rankNodes(blocks, nextSeq)
  const [sums = []] = await session.run(
    `SELECT count(*), coalesce(sum(coalesce(length, received)), 0)::int8
    FROM uploads WHERE bucket_id = $1 AND finished = 0`,
    id,
  )
  const reserved = [integer(sums, 0), integer(sums, 1)] as const

  const faults: BucketFault[] = []
  const compare = (what: BucketFault['what'], stored: number | string, counted: number | string) => {
    if (stored !== counted)
      faults.push({ bucket, what, detail: `${stored} is stored, the rows add up to ${counted}` })
  }
  compare('total', integer(row, 1), total)
  compare('bytes', integer(row, 2), bytes)
  compare('sequence', integer(row, 3), nextSeq)
  compare(
    'reserved',
    `${integer(row, 4)} items, ${integer(row, 5)} bytes`,
    `${reserved[0]} items, ${reserved[1]} bytes`,
  )
  // The next expiry of the trash is not checked: earlier versions did not store it, and a sweep removes expired items of the trash.
  const nextExpiry = isTrash(id) ? null : integerOrNull(row, 7)
  const late = lateExpiry(integerOrNull(row, 6), nextExpiry)
  if (late !== null) faults.push({ bucket, what: 'expiry', detail: late })
  const wrong = await wrongNodes(session, id, nodes)
  if (wrong > 0) faults.push({ bucket, what: 'ranks', detail: `${wrong} nodes do not match the rows` })
  return { faults, total, bytes, nextSeq, reserved, nodes }
}

/** The rank tree of blocks of items: the number of each block, and of its items. */
function rankNodes(blocks: readonly (readonly [number, number])[], nextSeq: number): RankNode[] {
  const nodes = new Map<string, RankNode>()
  for (let level = topLevel(shape, nextSeq); level > 0; level--)
    for (const [block, items] of blocks) {
      const seq = block * shape.leaf
      const slot = slotOf(shape, level, seq)
      const node = nodes.get(`${level}/${slot}`) ?? { level, slot, counts: Array(shape.fanOut).fill(0) }
      const index = indexOf(shape, level, seq)
      node.counts[index] = (node.counts[index] ?? 0) + items
      nodes.set(`${level}/${slot}`, node)
    }
  return [...nodes.values()]
}

/** The sums of the counters up to each one, as PostgreSQL formats an array. */
function sumsOf(counts: readonly number[]): string {
  let sum = 0
  const sums = counts.map((count) => {
    sum += count
    return sum
  })
  return `{${sums.join(',')}}`
}

const noItems = sumsOf(Array(shape.fanOut).fill(0))

async function wrongNodes(session: Session, id: BucketId, nodes: readonly RankNode[]): Promise<number> {
  const expected = new Map(nodes.map(({ level, slot, counts }) => [`${level}/${slot}`, sumsOf(counts)]))
  let wrong = 0
  for (const row of await session.run('SELECT level, slot, sums::text FROM ranks WHERE bucket_id = $1', id)) {
    const key = `${integer(row, 0)}/${integer(row, 1)}`
    if (text(row, 2) !== (expected.get(key) ?? noItems)) wrong += 1
    expected.delete(key)
  }
  return wrong + expected.size
}

/** Ids by name. */
export const bucketIds = async (session: Session): Promise<BucketId[]> =>
  (await session.run('SELECT id FROM buckets ORDER BY name')).map((row) => integer(row, 0) as BucketId)

/** To be called within a transaction with one snapshot. A bucket that was deleted has no faults. */
export const bucketFaults = async (session: Session, id: BucketId): Promise<BucketFault[]> =>
  (await count(session, id))?.faults ?? []

/** Also corrects the counters, in the transaction of the caller, and changes the revision, because pages may contain the wrong total. */
export async function correctBucket(session: Session, id: BucketId): Promise<BucketFault[]> {
  await session.run('SELECT FROM buckets WHERE id = $1 FOR UPDATE', id)
  const counted = await count(session, id)
  if (counted === null || counted.faults.length === 0) return []
  const { faults, total, bytes, nextSeq, reserved, nodes } = counted
  await session.run('DELETE FROM ranks WHERE bucket_id = $1', id)
  await session.run(
    `INSERT INTO ranks (bucket_id, level, slot, sums)
    SELECT $1, level, slot, sums::int8[]
    FROM unnest($2::int4[], $3::int8[], $4::text[]) AS node (level, slot, sums)`,
    id,
    nodes.map(({ level }) => level),
    nodes.map(({ slot }) => slot),
    nodes.map(({ counts }) => sumsOf(counts)),
  )
  await session.run(
    `UPDATE buckets SET revision = revision + revision_step(), total = $1, bytes = $2, next_seq = $3,
      reserved_items = $4, reserved_bytes = $5 WHERE id = $6`,
    total,
    bytes,
    nextSeq,
    ...reserved,
    id,
  )
  if (!isTrash(id)) await refreshExpiry(session, id)
  return faults
}
