import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import type { BucketId, Catalog, Media, NewMedia } from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import { cleanFilename } from '../core/filename.ts'
import { keptType } from '../core/kept-type.ts'
import { newMediaId } from '../core/media-id.ts'
import { settleAll } from './in-parallel.ts'
import { sniffType } from './sniff.ts'

/** A file on its way in; `filename` and `declaredType` are as the client sent them. */
export interface IncomingFile {
  readonly source: AsyncIterable<Uint8Array>
  readonly filename: string | null
  readonly declaredType: string | null
}

/** Each waits for syncs of the disk; more at once would leave other requests too few of the pool's threads. */
const atOnce = 4

/**
 * Stores the files in the order given: all of them or none (docs/interface.md U2), durable when it resolves. Each is
 * read to its end before the next one is asked for. No files are no items.
 */
export function createStoreMedia(parts: {
  readonly catalog: Pick<Catalog, 'addMedia'>
  readonly blobs: BlobStore
  /** Bytes. */
  readonly maxFileSize: number
  readonly now: () => number
}): (bucketId: BucketId, files: AsyncIterable<IncomingFile>) => Promise<Media[]> {
  const { catalog, blobs, maxFileSize, now } = parts

  async function itemOf(file: IncomingFile, blob: ReceivedBlob): Promise<NewMedia> {
    const filename = cleanFilename(file.filename)
    const sniffed = await sniffType(blobs, blob)
    return {
      id: newMediaId(),
      filename,
      ...keptType({ sniffed, declared: file.declaredType, filename }),
      size: blob.size,
      sha256: blob.sha256,
      width: null,
      height: null,
      createdAt: now(),
    }
  }

  async function keepAll(arrivals: readonly Arrival[]): Promise<void> {
    for (const kept of await settleAll(arrivals, atOnce, ({ blob, item }) => blobs.keep(blob, item.id)))
      if (kept.status === 'rejected') throw kept.reason
  }

  // What cannot be undone now is found later: temporary bytes at the next start, bytes without a row by a check.
  const discardAll = (received: readonly ReceivedBlob[]) =>
    settleAll(received, atOnce, (blob) => blobs.discard(blob))
  const removeAll = (items: readonly NewMedia[]) => settleAll(items, atOnce, ({ id }) => blobs.remove(id))

  return async (bucketId, files) => {
    const received: ReceivedBlob[] = []
    const arrivals: Arrival[] = []
    try {
      for await (const file of files) {
        const blob = await blobs.receive(file.source, maxFileSize)
        received.push(blob)
        arrivals.push({ blob, item: await itemOf(file, blob) })
      }
    } catch (error) {
      await discardAll(received)
      throw error
    }
    if (arrivals.length === 0) return []
    const items = arrivals.map(({ item }) => item)
    try {
      await keepAll(arrivals)
    } catch (error) {
      await Promise.all([discardAll(received), removeAll(items)])
      throw error
    }
    try {
      await catalog.addMedia(bucketId, items)
    } catch (error) {
      // Any other error may have come after the commit; bytes that a row may name are never destroyed.
      if (error instanceof Fault && certainlyAbsent.has(error.code)) await removeAll(items)
      throw error
    }
    return items.map((item) => ({ ...item, bucketId }))
  }
}

interface Arrival {
  readonly blob: ReceivedBlob
  readonly item: NewMedia
}

/** The faults with which a catalog says that it has not written the rows. */
const certainlyAbsent: ReadonlySet<string> = new Set(['storage-full', 'catalog-busy'])
