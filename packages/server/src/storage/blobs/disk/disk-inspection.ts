import { randomBytes } from 'node:crypto'
import { constants, type Dirent, existsSync } from 'node:fs'
import { access, copyFile, open, readdir, realpath, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCode } from '../../../core/faults.ts'
import { base32Alphabet, isItemId, isUploadId } from '../../../core/ids.ts'
import { isVariantKey } from '../../../core/variants.ts'
import { type BlobEntry, type BlobInspection, EntryUnmovable } from '../blobs.ts'
import { ownNames } from './blobs-directory.ts'
import {
  createDirectorySync,
  createSyncedFile,
  type DirectorySync,
  entryTypeAt,
  type Files,
  nodeFiles,
} from './files.ts'
import { openVariantRows, type VariantRows, VariantsDamaged, variantDatabase } from './variant-database.ts'

/** The first parts of the names in `lost+found/`. They are stable. */
const names: Readonly<Record<BlobEntry['kind'], string>> = {
  stored: 'kept',
  variant: 'variant',
  temporary: 'temporary',
  partial: 'part',
  foreign: 'foreign',
  unreadable: 'unreadable',
}

const lostAndFound = 'lost+found'

const shardName = new RegExp(`^[${base32Alphabet}]{2}$`)

export async function openDiskInspection(options: { readonly directory: string }): Promise<BlobInspection> {
  return new DiskInspection(await realpath(options.directory))
}

/** Lists the directories and the variants of storage/blobs/disk/disk-blobs.ts without following links. Quarantined entries are moved to `lost+found/`. */
class DiskInspection implements BlobInspection {
  readonly #directory: string
  readonly #files: Files = nodeFiles
  readonly #sync: DirectorySync
  readonly #variantRows: VariantRowsInspection

  constructor(directory: string) {
    this.#directory = directory
    this.#sync = createDirectorySync(this.#files)
    this.#variantRows = new VariantRowsInspection(directory, this.#files)
  }

  async *entries(): AsyncGenerator<BlobEntry> {
    yield* this.#sharded('blobs', 'stored')
    yield* this.#sharded('variants', 'variant')
    yield* this.#variantRows.entries()
    const [temporary, partial] = [await this.#list('tmp'), await this.#list('uploads')]
    if (temporary === null) yield { kind: 'unreadable', path: 'tmp' }
    if (partial === null) yield { kind: 'unreadable', path: 'uploads' }
    for (const { name } of temporary ?? []) {
      const path = join('tmp', name)
      yield { kind: 'temporary', path, size: this.#sizeOf(path) ?? 0 }
    }
    for (const entry of partial ?? []) {
      const path = join('uploads', entry.name)
      if (!entry.isFile() || !isUploadId(entry.name)) yield { kind: 'foreign', path }
      else yield { kind: 'partial', path, id: entry.name, size: this.#sizeOf(path) ?? 0 }
    }
  }

  /** The files of one kind in sharded directories: `<id>`, and `<id>.<key>` for variants. */
  async *#sharded(root: string, kind: 'stored' | 'variant'): AsyncGenerator<BlobEntry> {
    const type = entryTypeAt(this.#files, this.#at(root))
    if (type === 'nothing') return
    if (type !== 'directory') return yield { kind: 'foreign', path: root }
    const shards = await this.#list(root)
    if (shards === null) return yield { kind: 'unreadable', path: root }
    for (const shard of shards) {
      if (ownNames.has(shard.name) && shard.isFile()) continue
      if (!shard.isDirectory() || !shardName.test(shard.name))
        yield { kind: 'foreign', path: join(root, shard.name) }
      else yield* this.#filesOf(root, shard.name, kind)
    }
  }

  async *#filesOf(root: string, shard: string, kind: 'stored' | 'variant'): AsyncGenerator<BlobEntry> {
    const named = await this.#list(join(root, shard))
    if (named === null) return yield { kind: 'unreadable', path: join(root, shard) }
    for (const entry of named) {
      const path = join(root, shard, entry.name)
      const [id = '', key, ...more] = entry.name.split('.')
      const isNamed = kind === 'stored' ? key === undefined : isVariantKey(key ?? '') && more.length === 0
      if (!entry.isFile() || !isNamed || !isItemId(id) || !id.startsWith(shard)) {
        yield { kind: 'foreign', path }
        continue
      }
      const size = this.#sizeOf(path)
      if (size !== null) yield { kind, path, id, size }
    }
  }

  async exists({ path }: BlobEntry): Promise<boolean> {
    return this.#variantRows.owns(path)
      ? this.#variantRows.exists(path)
      : entryTypeAt(this.#files, this.#at(path)) !== 'nothing'
  }

  async quarantine(entry: BlobEntry): Promise<string | null> {
    const place = await this.#ensureLostAndFound()
    const target = this.#at(place)
    // Random, so that the names of two entries never collide.
    const name = `${names[entry.kind]}.${basename(entry.path)}.${randomBytes(4).toString('hex')}`
    if (this.#variantRows.owns(entry.path)) {
      if (!(await this.#variantRows.move(entry.path, join(target, name)))) return null
      await this.#sync(target)
      return join(place, name)
    }
    try {
      await this.#move(this.#at(entry.path), join(target, name))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      if (isForbidden(error) || errorCode(error) === 'EXDEV')
        throw new EntryUnmovable(`${entry.path} cannot be moved`, { cause: error })
      throw error
    }
    await this.#sync(target)
    await this.#sync(join(this.#at(entry.path), '..'))
    return join(place, name)
  }

  async setAside(name: string, bytes: Uint8Array): Promise<string> {
    const place = await this.#ensureLostAndFound()
    const path = join(place, `${name}.${randomBytes(4).toString('hex')}`)
    await createSyncedFile(this.#files, this.#at(path), (file) => file.write(bytes))
    await this.#sync(this.#at(place))
    return path
  }

  #at(path: string): string {
    return join(this.#directory, path)
  }

  /** Null if this user cannot read the directory. */
  async #list(path: string): Promise<Dirent[] | null> {
    try {
      const found = await readdir(this.#at(path), { withFileTypes: true })
      // At the root of a volume, this directory belongs to the file system.
      return found.filter((entry) => !(entry.name === lostAndFound && entry.isDirectory()))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return []
      if (isForbidden(error)) return null
      throw error
    }
  }

  /** Null if it is not a regular file, or was removed in the meantime. */
  #sizeOf(path: string): number | null {
    const status = this.#files.lstat(this.#at(path))
    return status?.isFile() ? status.size : null
  }

  /** Returns the name of the directory. That of the file system, at the root of a volume, belongs to root. */
  async #ensureLostAndFound(): Promise<string> {
    for (const name of [lostAndFound, `${lostAndFound}.mediabucket`]) {
      const path = this.#at(name)
      try {
        await this.#files.mkdir(path, 0o700)
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error
      }
      if (entryTypeAt(this.#files, path) !== 'directory') throw new Error(`${path} must be a directory`)
      await this.#sync(this.#directory)
      if (await isWritable(path)) return name
    }
    throw new EntryUnmovable(
      `nothing can be moved to ${this.#at(lostAndFound)}: this user cannot write there`,
    )
  }

  /** Also to another file system, by a copy. */
  async #move(from: string, to: string): Promise<void> {
    try {
      await this.#files.rename(from, to)
    } catch (error) {
      if (errorCode(error) !== 'EXDEV' || entryTypeAt(this.#files, from) !== 'file') throw error
      await copyFile(from, to, constants.COPYFILE_EXCL)
      await using copied = await open(to)
      await copied.sync()
      await unlink(from)
    }
  }
}

/** Whether the system does not permit the operation to this user, or not at this time. */
const isForbidden = (error: unknown): boolean =>
  ['EACCES', 'EPERM', 'EBUSY', 'EROFS'].includes(errorCode(error) ?? '')

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )

/** The most rows that one read returns. */
const batchLength = 500

/** The rows of `variants.db` as entries of an inspection, with the paths `variants.db/<name>`. A server may be running. */
class VariantRowsInspection {
  readonly #directory: string
  readonly #files: Files

  constructor(directory: string, files: Files) {
    this.#directory = directory
    this.#files = files
  }

  owns(path: string): boolean {
    return dirname(path) === variantDatabase
  }

  /** A database that is damaged, or has a row that the service did not write, is one foreign entry. */
  *entries(): Generator<BlobEntry> {
    let last: string | undefined = ''
    try {
      while (last !== undefined) {
        const after: string = last
        const found = this.#withRows((rows) => rows.list(after, batchLength), [])
        for (const { name, size } of found) {
          const [id = '', key = '', ...more] = name.split('.')
          if (!isItemId(id) || !isVariantKey(key) || more.length > 0)
            return yield { kind: 'foreign', path: variantDatabase }
          yield { kind: 'variant', id, size, path: join(variantDatabase, name) }
        }
        last = found.at(-1)?.name
      }
    } catch (error) {
      if (!(error instanceof VariantsDamaged)) throw error
      yield { kind: 'foreign', path: variantDatabase }
    }
  }

  exists(path: string): boolean {
    return this.#read(path) !== null
  }

  /** Moves a row into a new file and syncs it; false if the row was removed in the meantime. */
  async move(path: string, target: string): Promise<boolean> {
    const bytes = this.#read(path)
    if (bytes === null) return false
    await createSyncedFile(this.#files, target, (file) => file.write(bytes))
    this.#withRows((rows) => rows.removeOne(basename(path)), undefined)
    return true
  }

  /** Null if there is no such row. A damaged row counts as missing, because the server never sends it. */
  #read(path: string): Uint8Array | null {
    try {
      return this.#withRows((rows) => rows.read(basename(path)), null)
    } catch (error) {
      if (error instanceof VariantsDamaged) return null
      throw error
    }
  }

  /** Opens the database for each use, because an inspection is not closed. */
  #withRows<T>(work: (rows: VariantRows) => T, otherwise: T): T {
    if (!existsSync(join(this.#directory, variantDatabase))) return otherwise
    const rows = openVariantRows(this.#directory)
    try {
      return work(rows)
    } finally {
      rows.close()
    }
  }
}
