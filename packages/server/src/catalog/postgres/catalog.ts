import { type Actor, service } from '../../core/actor.ts'
import { createSigning } from '../audit-log/sign-changes.ts'
import type { Catalog } from '../catalog.ts'
import { expiryLimit } from '../changes.ts'
import { createNameBuilder } from '../names/builder.ts'
import type { NameTask } from '../names/index-tasks.ts'
import { createNameIndexer } from '../names/indexer.ts'
import { createSearchQueue } from '../names/search-queue.ts'
import { text } from '../rows.ts'
import { createHotReads, requirePage } from './hot-reads.ts'
import { readItems } from './item-lists.ts'
import { readBlock, readChunks, readUnindexed } from './name-index.ts'
import { searchItems } from './name-search.ts'
import { openDatabase } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import { createReads } from './reads.ts'
import type { Session } from './session.ts'
import { requireNoTransfer } from './transfer-marks.ts'
import { openWriter } from './writer.ts'

export interface PostgresCatalogOptions {
  /** The URL of the database. */
  readonly url: string
  /** `server` for the service, `command` for commands, which use fewer connections. */
  readonly role: 'server' | 'command'
  /** Who makes the changes for which no actor is given. Without it, nothing is recorded in the audit log. */
  readonly actor?: Actor | null
  /** Receives the seconds of each transaction. */
  readonly onCommit?: (seconds: number) => void
  /** Called when names cannot be indexed; searches then read more names. */
  readonly onNameIndexError?: (error: unknown) => void
}

const connectionCounts = {
  server: { readers: 6, writers: 3 },
  command: { readers: 1, writers: 1 },
} as const

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresCatalog(options: PostgresCatalogOptions): Promise<Catalog> {
  const counts = connectionCounts[options.role]
  const connections = await openDatabase(options.url, counts)
  await requireNoTransfer(connections).catch(async (error: unknown) => {
    await connections.close()
    throw error
  })
  const writer = openWriter(connections, counts.writers, options.onCommit ?? (() => {}))
  let isClosed = false

  async function reading<T>(work: (session: Session) => Promise<T>): Promise<T> {
    if (isClosed) throw new Error('the catalog is closed')
    try {
      return await connections.read(work)
    } catch (error) {
      throw asFault(error)
    }
  }
  const run = (statement: string, ...values: unknown[]) =>
    reading((session) => session.run(statement, ...values))

  const { grants, pages, media, buckets, contents, keys } = createHotReads(run)
  const { statistics, ...reads } = createReads(run)
  const { apply } = writer
  const { signed, signedItems } = createSigning(options.actor ?? null)
  const [row = []] = await run("SELECT value FROM meta WHERE key = 'epoch'")

  const builder = createNameBuilder()
  const queue = createSearchQueue(counts.readers > 1 ? counts.readers / 3 : 1)
  async function buildNames({ bucketId, first, merged }: NameTask) {
    if (merged.length === 0) return builder.build({ first, rows: await readBlock(run, bucketId, first) })
    const parts = []
    for (const segment of merged) parts.push({ segment, chunks: await readChunks(run, segment) })
    return builder.build({ parts })
  }
  const indexer = createNameIndexer({
    pending: () => readUnindexed(run),
    claim: (bucketId) => apply({ kind: 'claim-names', input: { bucketId, now: Date.now() } }),
    build: buildNames,
    store: (names) => apply({ kind: 'store-names', input: names }),
    onError: options.onNameIndexError ?? (() => {}),
    closeBuilder: builder.close,
  })

  return {
    epoch: text(row, 0),
    ...reads,
    findGrant: grants.read,
    page: async (bucketId, page) => requirePage(await pages.read({ bucketId, page })),
    async items(selection, after, limit) {
      const { bucketId, name } = selection
      if (name === null) return readItems(run, selection, after, limit)
      const { scanned, ...found } = await queue(() =>
        reading((session) => searchItems(session, selection, name, after, limit)),
      )
      indexer.scanned(bucketId, scanned)
      return found
    },
    indexNames: indexer.indexAll,
    media: media.read,
    content: contents.read,
    bucket: buckets.read,
    async addMedia(bucketId, items, by) {
      indexer.added(bucketId, items.length)
      await apply({ kind: 'add-media', input: { bucketId, items: signedItems(items, by) } })
    },
    addMediaOnce(bucketId, items, request, by) {
      indexer.added(bucketId, items.length)
      return apply({ kind: 'add-media-once', input: { bucketId, items: signedItems(items, by), request } })
    },
    forgetRequests: (now) => apply({ kind: 'forget-requests', input: { now } }),
    removeMedia: (bucketId, ids, by, now = Date.now()) =>
      apply({ kind: 'remove-media', input: signed({ bucketId, ids, now }, by) }),
    restoreMedia: (bucketId, ids, by, now = Date.now()) =>
      apply({ kind: 'restore-media', input: signed({ bucketId, ids, now }, by) }),
    expireItems: (bucketId, now = Date.now()) =>
      apply({
        kind: 'expire-items',
        input: signed({ bucketId, now, limit: expiryLimit }, options.actor && service),
      }),
    purgeMedia: (bucketId, ids, by) => apply({ kind: 'purge-media', input: signed({ bucketId, ids }, by) }),
    setPreview: (bucketId, id, preview) => apply({ kind: 'set-preview', input: { bucketId, id, preview } }),
    editMedia: (bucketId, id, edit, expected, by) =>
      apply({ kind: 'edit-media', input: signed({ bucketId, id, edit, expected }, by) }),
    addIntents: (ids, lifetime) => apply({ kind: 'add-intents', input: { ids, lifetime } }),
    retireIntents: (ids) => apply({ kind: 'retire-intents', input: { ids } }),
    clearIntents: (ids) => apply({ kind: 'clear-intents', input: { ids } }),
    clearTombstones: (ids) => apply({ kind: 'clear-tombstones', input: { ids } }),
    createUpload: (upload) => apply({ kind: 'create-upload', input: upload }),
    declareLength: (id, length) => apply({ kind: 'declare-length', input: { id, length } }),
    moveUpload: (id, from, to, expiresAt) =>
      apply({ kind: 'move-upload', input: { id, from, to, expiresAt } }),
    beginParts: (id, multipart) => apply({ kind: 'begin-parts', input: { id, multipart } }),
    storeParts: (id, stored, move) => apply({ kind: 'store-parts', input: { id, stored, move } }),
    finishUpload(id, added, expiresAt, by, received = added.item.size) {
      indexer.addedToAny()
      return apply({ kind: 'finish-upload', input: { id, added: signed(added, by), expiresAt, received } })
    },
    removeUpload: (id, onlyUnfinished = false) =>
      apply({ kind: 'remove-upload', input: { id, onlyUnfinished } }),
    createBucket: (name, settings, createdAt, by) =>
      apply({ kind: 'create-bucket', input: signed({ name, settings, createdAt }, by) }),
    deleteBucketChunk: (id, limit, now, by) =>
      apply({ kind: 'delete-bucket-chunk', input: signed({ id, limit, now }, by) }),
    setBucket: (bucket, settings, by) =>
      apply({ kind: 'set-bucket', input: signed({ bucket, settings }, by) }),
    addToken: (token, by) => apply({ kind: 'add-token', input: signed(token, by) }),
    addUser: (user, newBucket, by) => apply({ kind: 'add-user', input: signed({ user, newBucket }, by) }),
    createBucketWithToken: (token, by) =>
      apply({ kind: 'create-bucket-with-token', input: signed(token, by) }),
    grantToken: (bucketId, grantor, token, by) =>
      apply({ kind: 'grant-token', input: signed({ bucketId, grantor, token }, by) }),
    rotateToken: (bucketId, grantor, successor, by) =>
      apply({ kind: 'rotate-token', input: signed({ bucketId, grantor, successor }, by) }),
    revokeToken: (id, at, by) => apply({ kind: 'revoke-token', input: signed({ id, at }, by) }),
    touchToken: (id, at) => apply({ kind: 'touch-token', input: { id, at } }),
    signingKeys: () => keys.read('all'),
    addSigningKey: (key, onlyFirst) => apply({ kind: 'add-key', input: signed({ key, onlyFirst }) }),
    removeSigningKey: (id) => apply({ kind: 'remove-key', input: signed({ id }) }),
    recordUpkeep: (upkeep, by) => apply({ kind: 'record-upkeep', input: signed(upkeep, by) }),
    async recordEvents(events) {
      if (options.actor) await apply({ kind: 'record-events', input: { events } })
    },
    removeEvents: (before, limit) => apply({ kind: 'remove-events', input: { before, limit } }),
    claimBlobsIdentity: (identity) => apply({ kind: 'claim-blobs-identity', input: { identity } }),
    async statistics() {
      return { ...(await statistics()), waitingChanges: writer.pendingCount(), logBytes: 0 }
    },
    settle: () => apply({ kind: 'settle', input: null }),
    async checkReads() {
      await reads.isNew()
    },
    checkWrites: () => apply({ kind: 'check', input: null }),
    async close() {
      await indexer.close()
      isClosed = true
      await writer.close()
      await connections.close()
    },
  }
}
