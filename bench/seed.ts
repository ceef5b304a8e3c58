import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { UsageError } from '../packages/cli/src/command.ts'
import { createItemProgress } from '../packages/cli/src/terminal.ts'
import { issueToken } from '../packages/server/src/access/token-operations.ts'
import { newItemId } from '../packages/server/src/core/ids.ts'
import type { Labels } from '../packages/server/src/core/item-labels.ts'
import { bucketNameRule, isBucketName } from '../packages/server/src/core/names.ts'
import { defaultScopes } from '../packages/server/src/core/token-rules.ts'
import { type Config, readConfig } from '../packages/server/src/service/config.ts'
import { ConfigError } from '../packages/server/src/service/environment.ts'
import type { Catalog } from '../packages/server/src/storage/catalog/catalog.ts'
import type { AddedItem } from '../packages/server/src/storage/catalog/records.ts'
import { openCatalog } from '../packages/server/src/storage/engines.ts'
import { SharedMemory } from '../packages/server/src/uploads/received-files.ts'
import { createFiles, type SeededFile } from './seed-files.ts'

/** Items of one transaction. It takes about 20 ms, during which a running server's writes wait. */
const chunk = 1_000
/** Milliseconds between two transactions, in which a waiting server can write (storage/catalog/engines/sqlite/sqlite-database.ts). */
const gap = 3

interface Seeding {
  readonly items: number
  /** Every n-th of the new items is deleted again. */
  readonly deleteEvery?: number
  /** Whether all items are pictures, with their ThumbHashes. */
  readonly pictures?: boolean
  /** The labels of each of the new items by its number, from 0. */
  readonly labelsOf?: (number: number) => Labels
  readonly onProgress?: (done: number, of: number) => void
}

/** Adds small files to a bucket, and creates the bucket with a token; safe while servers are running. Returns its new total. */
export async function seedBucket(
  catalog: Catalog,
  bucket: string,
  {
    items,
    deleteEvery = Number.POSITIVE_INFINITY,
    pictures = false,
    labelsOf,
    onProgress = () => {},
  }: Seeding,
): Promise<{ readonly token: string; readonly total: number }> {
  const request = { bucket, name: 'seed', scopes: defaultScopes, expiresAt: null, now: Date.now() }
  const { token } = await issueToken(catalog, request)
  const found = await catalog.findBucketNamed(bucket)
  if (found === null) throw new Error(`the bucket ${bucket} was deleted`)
  const create = createFiles(pictures)
  for (let done = 0; done < items; ) {
    const files = Array.from({ length: Math.min(chunk, items - done) }, (_, index) => create(done + index))
    const memory = new SharedMemory()
    const added = files.map((file, index) => {
      const item = itemOf(file, memory)
      return labelsOf ? { ...item, labels: labelsOf(done + index) } : item
    })
    await catalog.addItems(found.id, added)
    if (pictures)
      await Promise.all(
        files.map(async ({ thumbhash, width, height }, index) => {
          const id = added[index]?.id
          if (id) await catalog.setPreview(found.id, id, { thumbhash, duration: null, width, height })
        }),
      )
    const deleted = added.filter((_, index) => (done + index + 1) % deleteEvery === 0).map(({ id }) => id)
    if (deleted.length > 0) {
      const { tombstones } = await catalog.removeItems(found.id, deleted)
      // All bytes are in the catalog.
      await catalog.clearTombstones(tombstones)
    }
    done += files.length
    onProgress(done, items)
    await sleep(gap)
  }
  return { token, total: (await catalog.bucket(found.id))?.items ?? 0 }
}

/**
 * The item of a file, whose bytes are in memory of their own: the catalog takes it over. As after an upload, the service need not read when it was
 * taken: its sweep would otherwise read the bytes of all items beside a benchmark.
 */
function itemOf({ bytes, thumbhash: _, ...file }: SeededFile, memory: SharedMemory): AddedItem {
  const own = memory.allocate(bytes.length)
  own.set(bytes)
  const sha256 = hash('sha256', own, 'buffer')
  const stored = { size: own.length, sha256, createdAt: Date.now(), takenRead: true, bytes: own }
  return { id: newItemId(), ...file, ...stored }
}

/** Seeds the bucket that the arguments name, with the settings of the service. Throws UsageError. */
export async function runSeed(
  args: readonly string[],
  config: Config,
  onProgress?: (done: number, of: number) => void,
): Promise<{ readonly bucket: string; readonly token: string; readonly total: number }> {
  const { values } = readArguments(args)
  const { bucket, pictures } = values
  const deleteEvery = values['delete-every']
  if (!isBucketName(bucket)) throw new UsageError(`"${bucket}" is not a valid bucket name. ${bucketNameRule}`)
  const catalog = await openCatalog(config, {
    // The previews of many pictures are committed at once.
    writer: 'thread',
    onWriterFailure: (error) => console.error(error),
    onCommit: () => {},
    onRenewal: () => {},
  })
  try {
    const seeded = await seedBucket(catalog, bucket, {
      ...{ items: count('--items', values.items), pictures },
      ...(deleteEvery !== undefined && { deleteEvery: count('--delete-every', deleteEvery) }),
      ...(onProgress && { onProgress }),
    })
    return { bucket, ...seeded }
  } finally {
    await catalog.close()
  }
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        items: { type: 'string', default: '' },
        'delete-every': { type: 'string' },
        pictures: { type: 'boolean', default: false },
        bucket: { type: 'string', default: 'seeded' },
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : `${error}`)
  }
}

function count(option: string, text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text))
    throw new UsageError(`${option} takes a whole number of at least 1, not "${text}"`)
  return Number(text)
}

const usage = `Usage: npm run seed -- --items N [--delete-every K] [--pictures] [--bucket NAME]

Adds small files to the data that the settings of the service name, and prints one line of JSON: the bucket, a token and its new total.

  --items N         How many files to add.
  --delete-every K  Delete every K-th of them again.
  --pictures        Add pictures with their ThumbHashes only.
  --bucket NAME     The bucket; it is created if there is none. Default: seeded.`

if (import.meta.main) {
  const args = process.argv.slice(2)
  if (args.some((arg) => arg === '--help' || arg === '-h')) console.log(usage)
  else {
    const progress = createItemProgress('Added')
    try {
      const seeded = await runSeed(args, readConfig(process.env).config, progress.show).finally(progress.end)
      console.log(JSON.stringify(seeded))
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof ConfigError)) throw error
      console.error(`${error.message}\n\n${usage}`)
      process.exitCode = 2
    }
  }
}
