import type { BlobsDirectory } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { type AnnouncedChange, maxAnnounced } from '../storage/catalog/feed/history.ts'
import { bucketIdOf } from '../storage/catalog/statements.ts'

// The last changes that a service has delivered are also recorded beside the bytes. The next start compares them with the catalog, and so notices if
// only the catalog has gone back (storage/catalog/feed/history.ts).

/** The changes of a record. What cannot be read is left out: a power failure may have damaged it. */
export async function readAnnouncedChanges(
  directory: Pick<BlobsDirectory, 'readAnnounced'>,
): Promise<readonly AnnouncedChange[]> {
  const text = (await directory.readAnnounced()) ?? ''
  return text.split('\n').flatMap((line) => {
    const [, bucketId, number] = /^(\d{1,15}) (\d{1,15}|[1-8]\d{15})$/.exec(line) ?? []
    return bucketId === undefined
      ? []
      : [{ bucketId: bucketIdOf([Number(bucketId)], 0), number: Number(number) }]
  })
}

/**
 * Returns a function that records what the process has announced since its last call, beside the `earlier` record, whose buckets perhaps nobody reads
 * again. Nothing waits for it.
 */
export function createAnnouncementRecorder(parts: {
  readonly catalog: Pick<Catalog, 'announcedChanges'>
  readonly directory: Pick<BlobsDirectory, 'writeAnnounced'>
  readonly earlier: readonly AnnouncedChange[]
}): () => Promise<void> {
  const { catalog, directory, earlier } = parts
  const textOf = (changes: readonly AnnouncedChange[]) =>
    changes.map(({ bucketId, number }) => `${bucketId} ${number}\n`).join('')
  let recorded = textOf(earlier)
  return async () => {
    const announced = catalog.announcedChanges()
    const buckets = new Set(announced.map(({ bucketId }) => bucketId))
    const others = earlier.filter(({ bucketId }) => !buckets.has(bucketId))
    const text = textOf([...others, ...announced].slice(-maxAnnounced))
    if (text === recorded) return
    await directory.writeAnnounced(text)
    recorded = text
  }
}
