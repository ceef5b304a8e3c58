import type { Catalog } from '../catalog.ts'
import { text } from '../rows.ts'
import { createHotReads, requirePage } from './hot-reads.ts'
import { readItems } from './item-lists.ts'
import { openDatabase } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import { createReads } from './reads.ts'
import { requireNoTransfer } from './transfer-target.ts'
import { openWriter } from './writer.ts'

export interface PostgresCatalogOptions {
  /** The URL of the database. */
  readonly url: string
  /** `server` for the service, `command` for commands, which use fewer connections. */
  readonly role: 'server' | 'command'
  /** Receives the seconds of each transaction. */
  readonly onCommit?: (seconds: number) => void
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

  async function run(statement: string, ...values: unknown[]) {
    if (isClosed) throw new Error('the catalog is closed')
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }

  const { grants, pages, media, buckets, contents } = createHotReads(run)
  const { statistics, ...reads } = createReads(run)
  const { apply } = writer
  const [row = []] = await run("SELECT value FROM meta WHERE key = 'epoch'")

  return {
    epoch: text(row, 0),
    ...reads,
    authorise: grants.read,
    page: async (bucketId, page) => requirePage(await pages.read({ bucketId, page })),
    items: (selection, after, limit) => readItems(run, selection, after, limit),
    media: media.read,
    content: contents.read,
    bucket: buckets.read,
    async addMedia(bucketId, items) {
      await apply({ kind: 'add-media', input: { bucketId, items } })
    },
    addMediaOnce: (bucketId, items, request) =>
      apply({ kind: 'add-media-once', input: { bucketId, items, request } }),
    forgetRequests: (now) => apply({ kind: 'forget-requests', input: { now } }),
    removeMedia: (bucketId, ids) => apply({ kind: 'remove-media', input: { bucketId, ids } }),
    setPreview: (bucketId, id, preview) => apply({ kind: 'set-preview', input: { bucketId, id, preview } }),
    editMedia: (bucketId, id, edit, expected) =>
      apply({ kind: 'edit-media', input: { bucketId, id, edit, expected } }),
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
    finishUpload: (id, added, expiresAt) => apply({ kind: 'finish-upload', input: { id, added, expiresAt } }),
    removeUpload: (id, onlyUnfinished = false) =>
      apply({ kind: 'remove-upload', input: { id, onlyUnfinished } }),
    createBucket: (name, quota, createdAt) =>
      apply({ kind: 'create-bucket', input: { name, quota, createdAt } }),
    deleteBucketChunk: (id, limit, now) => apply({ kind: 'delete-bucket-chunk', input: { id, limit, now } }),
    setQuota: (bucket, quota) => apply({ kind: 'set-quota', input: { bucket, quota } }),
    addToken: (token) => apply({ kind: 'add-token', input: token }),
    createBucketWithToken: (token) => apply({ kind: 'create-bucket-with-token', input: token }),
    grantToken: (bucketId, grantor, token) =>
      apply({ kind: 'grant-token', input: { bucketId, grantor, token } }),
    rotateToken: (bucketId, grantor, successor) =>
      apply({ kind: 'rotate-token', input: { bucketId, grantor, successor } }),
    revokeToken: (id, at) => apply({ kind: 'revoke-token', input: { id, at } }),
    touchToken: (id, at) => apply({ kind: 'touch-token', input: { id, at } }),
    recordUpkeep: (upkeep) => apply({ kind: 'record-upkeep', input: upkeep }),
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
      isClosed = true
      await writer.close()
      await connections.close()
    },
  }
}
