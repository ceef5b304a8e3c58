import { randomBytes } from 'node:crypto'
import { constants, type Dirent, existsSync } from 'node:fs'
import { access, copyFile, open, readdir, realpath, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCode } from '../../../core/faults.ts'
import { base32Alphabet, isItemId, isUploadId } from '../../../core/ids.ts'
import { isVariantKey } from '../../../core/variants.ts'
import { type BlobEntry, type BlobInspection, EntryUnmovable } from '../blobs.ts'
import { ownNames } from './blobs-directory.ts'
import { createDirectorySync, createSyncedFile, entryTypeAt, type Files, nodeFiles } from './files.ts'
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

/** Lists the directories and the variants of storage/blobs/disk/blobs.ts without following links. Quarantined entries are moved to `lost+found/`. */
export async function openDiskInspection(options: { readonly directory: string }): Promise<BlobInspection> {
  const files: Files = nodeFiles
  const directory = await realpath(options.directory)
  const sync = createDirectorySync(files)
  const at = (path: string) => join(directory, path)
  const variantRows = inspectVariantRows(directory, files)

  /** Null if this user cannot read the directory. */
  async function entries(path: string): Promise<Dirent[] | null> {
    try {
      const found = await readdir(at(path), { withFileTypes: true })
      // At the root of a volume, this directory belongs to the file system.
      return found.filter((entry) => !(entry.name === lostAndFound && entry.isDirectory()))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return []
      if (isForbidden(error)) return null
      throw error
    }
  }

  /** Null if it is not a regular file, or was removed in the meantime. */
  async function sizeOf(path: string): Promise<number | null> {
    const status = files.lstat(at(path))
    return status?.isFile() ? status.size : null
  }

  /** The files of one kind in sharded directories: `<id>`, and `<id>.<key>` for variants. */
  async function* sharded(root: string, kind: 'stored' | 'variant'): AsyncGenerator<BlobEntry> {
    const type = entryTypeAt(files, at(root))
    if (type === 'nothing') return
    if (type !== 'directory') return yield { kind: 'foreign', path: root }
    const shards = await entries(root)
    if (shards === null) return yield { kind: 'unreadable', path: root }
    for (const shard of shards) {
      if (ownNames.has(shard.name) && shard.isFile()) continue
      if (!shard.isDirectory() || !shardName.test(shard.name)) {
        yield { kind: 'foreign', path: join(root, shard.name) }
        continue
      }
      const named = await entries(join(root, shard.name))
      if (named === null) {
        yield { kind: 'unreadable', path: join(root, shard.name) }
        continue
      }
      for (const entry of named) {
        const path = join(root, shard.name, entry.name)
        const [id = '', key, ...more] = entry.name.split('.')
        const isNamed = kind === 'stored' ? key === undefined : isVariantKey(key ?? '') && more.length === 0
        if (!entry.isFile() || !isNamed || !isItemId(id) || !id.startsWith(shard.name)) {
          yield { kind: 'foreign', path }
          continue
        }
        const size = await sizeOf(path)
        if (size !== null) yield { kind, path, id, size }
      }
    }
  }

  /** Returns the name of the directory. That of the file system, at the root of a volume, belongs to root. */
  async function ensureLostAndFound(): Promise<string> {
    for (const name of [lostAndFound, `${lostAndFound}.mediabucket`]) {
      const path = at(name)
      try {
        await files.mkdir(path, 0o700)
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error
      }
      if (entryTypeAt(files, path) !== 'directory') throw new Error(`${path} must be a directory`)
      await sync(directory)
      if (await isWritable(path)) return name
    }
    throw new EntryUnmovable(`nothing can be moved to ${at(lostAndFound)}: this user cannot write there`)
  }

  /** Also to another file system, by a copy. */
  async function move(from: string, to: string): Promise<void> {
    try {
      await files.rename(from, to)
    } catch (error) {
      if (errorCode(error) !== 'EXDEV' || entryTypeAt(files, from) !== 'file') throw error
      await copyFile(from, to, constants.COPYFILE_EXCL)
      await using copied = await open(to)
      await copied.sync()
      await unlink(from)
    }
  }

  return {
    async *entries() {
      yield* sharded('blobs', 'stored')
      yield* sharded('variants', 'variant')
      yield* variantRows.entries()
      const [temporary, partial] = [await entries('tmp'), await entries('uploads')]
      if (temporary === null) yield { kind: 'unreadable', path: 'tmp' }
      if (partial === null) yield { kind: 'unreadable', path: 'uploads' }
      for (const { name } of temporary ?? []) {
        const path = join('tmp', name)
        yield { kind: 'temporary', path, size: (await sizeOf(path)) ?? 0 }
      }
      for (const entry of partial ?? []) {
        const path = join('uploads', entry.name)
        if (!entry.isFile() || !isUploadId(entry.name)) yield { kind: 'foreign', path }
        else yield { kind: 'partial', path, id: entry.name, size: (await sizeOf(path)) ?? 0 }
      }
    },

    exists: async ({ path }) =>
      variantRows.owns(path) ? variantRows.exists(path) : entryTypeAt(files, at(path)) !== 'nothing',

    async quarantine(entry) {
      const place = await ensureLostAndFound()
      const target = at(place)
      // Random, so that the names of two entries never collide.
      const name = `${names[entry.kind]}.${basename(entry.path)}.${randomBytes(4).toString('hex')}`
      if (variantRows.owns(entry.path)) {
        if (!(await variantRows.move(entry.path, join(target, name)))) return null
        await sync(target)
        return join(place, name)
      }
      try {
        await move(at(entry.path), join(target, name))
      } catch (error) {
        if (errorCode(error) === 'ENOENT') return null
        if (isForbidden(error) || errorCode(error) === 'EXDEV')
          throw new EntryUnmovable(`${entry.path} cannot be moved`, { cause: error })
        throw error
      }
      await sync(target)
      await sync(join(at(entry.path), '..'))
      return join(place, name)
    },

    async setAside(name, bytes) {
      const place = await ensureLostAndFound()
      const path = join(place, `${name}.${randomBytes(4).toString('hex')}`)
      await createSyncedFile(files, at(path), (file) => file.write(bytes))
      await sync(at(place))
      return path
    },
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
interface VariantRowsInspection {
  owns(path: string): boolean
  /** A database that is damaged, or has a row that the service did not write, is one foreign entry. */
  entries(): Generator<BlobEntry>
  exists(path: string): boolean
  /** Moves a row into a new file and syncs it; false if the row was removed in the meantime. */
  move(path: string, target: string): Promise<boolean>
}

function inspectVariantRows(directory: string, files: Files): VariantRowsInspection {
  /** Opened for each use, because an inspection is not closed. */
  function withRows<T>(work: (rows: VariantRows) => T, otherwise: T): T {
    if (!existsSync(join(directory, variantDatabase))) return otherwise
    const rows = openVariantRows(directory)
    try {
      return work(rows)
    } finally {
      rows.close()
    }
  }

  /** Null if there is no such row. A damaged row counts as missing, because the server never sends it. */
  function read(path: string): Uint8Array | null {
    try {
      return withRows((rows) => rows.read(basename(path)), null)
    } catch (error) {
      if (error instanceof VariantsDamaged) return null
      throw error
    }
  }

  return {
    owns: (path) => dirname(path) === variantDatabase,

    *entries() {
      let last: string | undefined = ''
      try {
        while (last !== undefined) {
          const after: string = last
          const found = withRows((rows) => rows.list(after, batchLength), [])
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
    },

    exists: (path) => read(path) !== null,

    async move(path, target) {
      const bytes = read(path)
      if (bytes === null) return false
      await createSyncedFile(files, target, (file) => file.write(bytes))
      withRows((rows) => rows.removeOne(basename(path)), undefined)
      return true
    },
  }
}
