import type { DatabaseSync } from 'node:sqlite'
import type { NameTask } from '../names/index-tasks.ts'
import {
  blockSize,
  buildSegment,
  chunksPerSegment,
  mergeSegments,
  type NewSegment,
} from '../names/segments.ts'
import { bytes, integer, text, textOrNull } from '../rows.ts'
import { all } from './rows.ts'

/** Builds the segment of a task from what is stored. */
export function prepareBuildNames(db: DatabaseSync): (task: NameTask) => NewSegment {
  const rows = db.prepare(`SELECT seq, filename, content_type, created_at FROM media
    WHERE bucket_id = ? AND seq >= ? AND seq < ? ORDER BY seq`)
  const chunks = db.prepare('SELECT bytes FROM name_chunks WHERE id >= ? AND id < ? ORDER BY id')

  return ({ bucketId, first, merged }) => {
    if (merged.length > 0)
      return mergeSegments(
        merged.map((segment) => ({
          segment,
          chunks: all(chunks, segment.id * chunksPerSegment, (segment.id + 1) * chunksPerSegment).map((row) =>
            bytes(row, 0),
          ),
        })),
      )
    const items = all(rows, bucketId, first, first + blockSize).map((row) => ({
      seq: integer(row, 0),
      filename: textOrNull(row, 1),
      contentType: text(row, 2),
      createdAt: integer(row, 3),
    }))
    return buildSegment(first, items)
  }
}
