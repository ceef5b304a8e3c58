import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { errorCode, Fault } from '../../../core/faults.ts'
import { type ItemId, isItemId, requireItemId, shardOf } from '../../../core/ids.ts'
import { isVariantKey, type VariantKey } from '../../../core/variants.ts'
import { type BatchThread, OnDemandThread, startBatchThread } from '../../batch-threads.ts'
import { isFull, isIoError, isShortage } from '../../sqlite.ts'
import type { StoredVariant, VariantStore } from '../blobs.ts'
import { openMemoryBlob } from '../memory-blob.ts'
import { entryTypeAt, type Files, ForeignEntry, unlinkIfThere } from './files.ts'
import { type FileReaders, isStored, openStoredFile } from './stored-files.ts'
import {
  ExistingVariants,
  type VariantDatabase,
  type VariantOutput,
  type VariantRequest,
} from './variant-database.ts'

/** The files in `tmp/`. A handle is the path of one inside the data directory. */
export class TemporaryFiles {
  readonly #directory: string
  /** What the names of new files begin with. */
  readonly #prefix: string

  constructor(directory: string, owner: string | undefined) {
    this.#directory = directory
    this.#prefix = owner === undefined ? '' : `${owner}.`
  }

  newHandle(): string {
    return join('tmp', this.#prefix + randomUUID())
  }

  pathOf(handle: string): string {
    return join(this.#directory, handle)
  }

  newPath(): string {
    return this.pathOf(this.newHandle())
  }

  /** Removes all files, or those of an owner. Returns how many. */
  async removeAll(owner?: string): Promise<number> {
    const temporary = this.pathOf('tmp')
    const names = readdirSync(temporary).filter((name) => owner === undefined || name.startsWith(`${owner}.`))
    for (const name of names) await rm(join(temporary, name), { recursive: true, force: true })
    return names.length
  }
}

/**
 * Stores small variants in `variants.db`, so that serving a page of thumbnails opens no files; all others as files,
 * `<first two characters of the id>/<id>.<key>` in `root`, which are written under temporary names first. A variant that
 * was stored before the limit changed is read where it is. Creates database and directories on demand, so an operator can
 * remove all variants at any time.
 */
export class DiskVariants implements VariantStore {
  readonly #parts: DiskVariantParts

  constructor(parts: DiskVariantParts) {
    this.#parts = parts
  }

  async store(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    const { inlineSize, database } = this.#parts
    if (bytes.byteLength > inlineSize) return this.#storeFile(id, key, bytes)
    await database.run({ kind: 'store', name: variantName(id, key), bytes })
  }

  async open(
    id: ItemId,
    key: VariantKey,
    { pictureSize, wholeUpTo = 0 }: { readonly pictureSize?: number; readonly wholeUpTo?: number } = {},
  ) {
    const { root, pictures, database, readers } = this.#parts
    const [name, shard] = [variantName(id, key), shardOf(id)]
    const required = pictureSize === undefined ? null : { root: pictures, shard, name: id, size: pictureSize }
    const bytes = await database.run({ kind: 'read', name, required }).catch(nullIfUnreadable)
    if (bytes instanceof Uint8Array) return openMemoryBlob(bytes)
    if (readers) return readers.open({ root, shard, name, hasIdentity: false, wholeUpTo, required })
    if (required !== null && !isStored(required)) return null
    const directory = join(root, shard)
    return openStoredFile(join(directory, name), () => this.#exists(directory))
  }

  async remove(id: ItemId): Promise<void> {
    const { root, database, files } = this.#parts
    const directory = join(root, shardOf(id))
    await database.run({ kind: 'remove', id })
    if (!(await this.#exists(directory))) return
    for (const name of await readdir(directory))
      if (name.startsWith(`${id}.`)) await unlinkIfThere(files, join(directory, name))
  }

  async *list(id?: ItemId): AsyncGenerator<StoredVariant> {
    yield* this.#rows(id)
    yield* this.#files(id)
  }

  async removeOne(id: ItemId, key: VariantKey): Promise<void> {
    const { root, database, files } = this.#parts
    const name = variantName(id, key)
    await database.run({ kind: 'remove-one', name })
    const directory = join(root, shardOf(id))
    if (await this.#exists(directory)) await unlinkIfThere(files, join(directory, name))
  }

  async *#rows(id: ItemId | undefined): AsyncGenerator<StoredVariant> {
    // A list creates no database, and starts no thread for it.
    if (entryTypeAt(this.#parts.files, this.#parts.databasePath) === 'nothing') return
    const start = id === undefined ? '' : `${requireItemId(id)}.`
    for (let after: string | undefined = start; after !== undefined; ) {
      const names: VariantOutput = await this.#parts.database.run({
        kind: 'list',
        after,
        limit: namesPerRead,
      })
      if (!Array.isArray(names)) return
      const own: readonly string[] = names.filter((name) => name.startsWith(start))
      for (const name of own) yield* storedVariantOf(name)
      after = own.length < namesPerRead ? undefined : own.at(-1)
    }
  }

  async *#files(id: ItemId | undefined): AsyncGenerator<StoredVariant> {
    const { root, files } = this.#parts
    if (entryTypeAt(files, root) !== 'directory') return
    for (const shard of id === undefined ? await readdir(root) : [shardOf(id)]) {
      if (entryTypeAt(files, join(root, shard)) !== 'directory') continue
      for (const name of await readdir(join(root, shard)))
        if (id === undefined || name.startsWith(`${id}.`)) yield* storedVariantOf(name)
    }
  }

  async #storeFile(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    const { root, files, temporaries } = this.#parts
    const path = temporaries.newPath()
    try {
      const file = await files.create(path)
      try {
        await file.write(bytes)
        // Otherwise a power failure could leave an empty file under the name. Losing the name is harmless.
        await file.sync()
      } finally {
        await file.close()
      }
      const directory = join(root, shardOf(id))
      await this.#ensure(directory)
      await files.rename(path, join(directory, variantName(id, key)))
    } catch (error) {
      await files.unlink(path).catch(() => undefined)
      throw error
    }
  }

  async #ensure(shard: string): Promise<void> {
    if (await this.#exists(shard)) return
    for (const path of [this.#parts.root, shard])
      await this.#parts.files.mkdir(path, 0o700).catch(ignoreExisting)
  }

  /** Throws ForeignEntry if the shard, or the root, is not a directory. */
  async #exists(shard: string): Promise<boolean> {
    for (const path of [this.#parts.root, shard]) {
      const found = entryTypeAt(this.#parts.files, path)
      if (found === 'nothing') return false
      if (found !== 'directory') throw new ForeignEntry(`${path} is not a directory`)
    }
    return true
  }
}

interface DiskVariantParts {
  readonly root: string
  /** The root of the blobs, which contains the pictures. */
  readonly pictures: string
  readonly temporaries: Pick<TemporaryFiles, 'newPath'>
  readonly files: Files
  readonly database: Pick<VariantRequests, 'run'>
  /** The path of `variants.db`. */
  readonly databasePath: string
  /** The threads of a server that open files; null in a command. */
  readonly readers: Pick<FileReaders, 'open'> | null
  /** Bytes of the largest variant that is stored in `variants.db`. */
  readonly inlineSize: number
}

/** Names of rows that are read together. */
const namesPerRead = 1_000

function* storedVariantOf(name: string): Generator<StoredVariant> {
  const [id = '', key = '', ...more] = name.split('.')
  if (isItemId(id) && isVariantKey(key) && more.length === 0) yield { id, key }
}

const variantName = (id: ItemId, key: VariantKey): string => `${requireItemId(id)}.${key}`

/** Variants in a database that the disk cannot read are rendered again. */
function nullIfUnreadable(error: unknown): VariantOutput {
  if (isFull(error) || isIoError(error)) return null
  if (isShortage(error))
    throw new Fault('overloaded', 'The service has no memory or file descriptor left.', { cause: error })
  throw error
}

function ignoreExisting(error: unknown): void {
  if (errorCode(error) !== 'EEXIST') throw error
}

/** Runs requests on `variants.db`. */
export interface VariantRequests {
  run(request: VariantRequest): Promise<VariantOutput>
  close(): Promise<void>
}

/** For commands: on this thread. */
export class DirectVariants implements VariantRequests {
  readonly #variants: VariantDatabase

  constructor(directory: string) {
    this.#variants = new ExistingVariants(directory)
  }

  async run(request: VariantRequest): Promise<VariantOutput> {
    const [outcome] = this.#variants.apply([request])
    if (outcome === undefined) return null
    if ('error' in outcome) throw outcome.error
    return outcome.output
  }

  async close(): Promise<void> {
    this.#variants.close()
  }
}

// The extension is .ts in the sources and .js in the published build.
const variantThread = new URL(`./variant-thread${extname(import.meta.url)}`, import.meta.url)

/** For the server: a worker thread runs all requests that have arrived together. */
export class VariantThread implements VariantRequests {
  readonly #thread: Pick<BatchThread<VariantRequest, VariantOutput>, 'send' | 'close'>

  /** `onDamage` receives the reason why all variants were lost. */
  constructor(directory: string, onDamage: (reason: string) => void) {
    this.#thread = new OnDemandThread((onFailure) =>
      startBatchThread<VariantRequest, VariantOutput, string | null>({
        file: variantThread,
        name: 'variants',
        workerData: { directory },
        onReport: (damage) => {
          if (damage !== null) onDamage(damage)
        },
        onFailure,
      }),
    )
  }

  run(request: VariantRequest): Promise<VariantOutput> {
    return new Promise((resolve, reject) => this.#thread.send(request, { resolve, reject }))
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}
