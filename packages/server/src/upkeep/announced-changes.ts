import type { BlobsDirectory } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { maxTold, type ToldChange } from '../storage/catalog/history.ts'
import { bucketIdOf } from '../storage/catalog/statements.ts'

// The last changes that a service has delivered are also recorded beside the bytes. The next start compares them with the catalog, and so notices if
// only the catalog has gone back (storage/catalog/history.ts).

/** The changes of a record. What cannot be read is left out: a power failure may have damaged it. */
export async function readToldChanges(
  directory: Pick<BlobsDirectory, 'readTold'>,
): Promise<readonly ToldChange[]> {
  const text = (await directory.readTold()) ?? ''
  return text.split('\n').flatMap((line) => {
    const [, bucketId, number] = /^(\d{1,15}) (\d{1,15}|[1-8]\d{15})$/.exec(line) ?? []
    return bucketId === undefined
      ? []
      : [{ bucketId: bucketIdOf([Number(bucketId)], 0), number: Number(number) }]
  })
}

/**
 * Returns a function that records what the process has told since its last call, beside the `earlier` record, whose buckets perhaps nobody reads
 * again. Nothing waits for it.
 */
export function createToldRecorder(parts: {
  readonly catalog: Pick<Catalog, 'toldChanges'>
  readonly directory: Pick<BlobsDirectory, 'writeTold'>
  readonly earlier: readonly ToldChange[]
}): () => Promise<void> {
  const { catalog, directory, earlier } = parts
  const textOf = (changes: readonly ToldChange[]) =>
    changes.map(({ bucketId, number }) => `${bucketId} ${number}\n`).join('')
  let recorded = textOf(earlier)
  return async () => {
    const told = catalog.toldChanges()
    const buckets = new Set(told.map(({ bucketId }) => bucketId))
    const others = earlier.filter(({ bucketId }) => !buckets.has(bucketId))
    const text = textOf([...others, ...told].slice(-maxTold))
    if (text === recorded) return
    await directory.writeTold(text)
    recorded = text
  }
}
