import { type Actor, service } from '../../core/actor.ts'
import type { MediaId } from '../../core/media-id.ts'
import { createSigning } from '../audit-log/sign-changes.ts'
import type { Catalog } from '../catalog.ts'
import { expiryLimit } from '../changes.ts'
import { createNameIndexer } from '../names/indexer.ts'
import type { BucketId } from '../records.ts'
import { createBatchedReads } from './batched-reads.ts'
import { readTimeout } from './connection.ts'
import { type ContentReader, createContentReaderThread, openDirectContentReader } from './content-readers.ts'
import { openDataDirectory } from './data-directory.ts'
import { createNameThreads, openDirectNameSearches } from './name-searches.ts'
import { openReads } from './open-reads.ts'
import type { PageKey } from './reads.ts'
import { asFault } from './sqlite-errors.ts'
import { logBytes } from './statistics.ts'
import { createUnchangedRows } from './unchanged-rows.ts'
import { openDirectWriter, startWriterThread, type Writer } from './writers.ts'

export interface SqliteCatalogOptions {
  /** The data directory; created if it does not exist. */
  readonly directory: string
  /** `thread` for the server, `direct` for commands: see writers.ts and content-readers.ts. */
  readonly writer: 'thread' | 'direct'
  /** Who makes the changes for which no actor is given. Without it, nothing is recorded in the audit log. */
  readonly actor?: Actor | null
  /** Called when the writing thread has ended unexpectedly: all later changes fail. */
  readonly onWriterFailure?: (error: Error) => void
  /** Receives the seconds of each transaction of the writer thread. */
  readonly onCommit?: (seconds: number) => void
  /** Called when names cannot be indexed; searches then read more names. */
  readonly onNameIndexError?: (error: unknown) => void
}

export async function openSqliteCatalog(options: SqliteCatalogOptions): Promise<Catalog> {
  const { directory, onWriterFailure = () => {}, onCommit = () => {}, onNameIndexError = () => {} } = options
  const db = openDataDirectory(directory, readTimeout)
  let writer: Writer
  try {
    writer =
      options.writer === 'thread'
        ? await startWriterThread(directory, onWriterFailure, onCommit)
        : openDirectWriter(directory)
  } catch (error) {
    db.close()
    throw error
  }
  const { reads, epoch, servability, readUnindexed, statistics } = await openReads(db, directory).catch(
    async (error: unknown) => {
      db.close()
      await writer.close()
      throw error
    },
  )
  const contents: ContentReader =
    options.writer === 'thread' ? createContentReaderThread(directory) : openDirectContentReader(db)

  const names = options.writer === 'thread' ? createNameThreads(directory) : openDirectNameSearches(db)
  const indexer = createNameIndexer({
    pending: async () => reading(readUnindexed),
    claim: (bucketId) => writer.apply({ kind: 'claim-names', input: { bucketId, now: Date.now() } }),
    build: names.build,
    store: (indexed) => writer.apply({ kind: 'store-names', input: indexed }),
    onError: onNameIndexError,
    closeBuilder: names.close,
  })

  const { signed, signedItems } = createSigning(options.actor ?? null)

  /** As if no item had expired, because the rows stay in memory. */
  const grantRows = createUnchangedRows(db, {
    keyOf: latin1,
    read: (tokenHash: Uint8Array) => reads.findGrant(tokenHash, Number.NEGATIVE_INFINITY),
  })
  const grants = createBatchedReads(db, (tokenHash: Uint8Array, isFirst) =>
    reading(() => {
      if (isFirst) grantRows.refresh()
      const grant = grantRows.read(tokenHash)
      if (grant === null || grant.nextExpiry === null) return grant
      const now = Date.now()
      return grant.nextExpiry <= now ? reads.findGrant(tokenHash, now) : grant
    }),
  )
  const media = createBatchedReads(db, (id: MediaId) => reading(() => reads.media(id)))
  const pages = createBatchedReads(db, (key: PageKey, isFirst) => reading(() => reads.page(key, isFirst)))
  const buckets = createBatchedReads(db, (id: BucketId) => reading(() => reads.bucket(id)))

  return {
    epoch,
    findGrant: grants.read,
    newUserGrant: async (bucket, id) => reading(() => reads.newUserGrant(bucket, id)),
    page: (bucketId, page) => pages.read({ bucketId, page }),
    async items(selection, after, limit) {
      const { name } = selection
      if (name === null) return reading(() => reads.items(selection, after, limit))
      const { scanned, ...found } = await names.search({ selection, terms: name, after, limit })
      indexer.scanned(selection.bucketId, scanned)
      return found
    },
    indexNames: indexer.indexAll,
    media: media.read,
    servability: async (ids) => reading(() => servability(ids)),
    content: contents.read,
    addMedia(bucketId, items, by) {
      indexer.added(bucketId, items.length)
      return writer.apply({ kind: 'add-media', input: { bucketId, items: signedItems(items, by) } })
    },
    addMediaOnce(bucketId, items, request, by) {
      indexer.added(bucketId, items.length)
      return writer.apply({
        kind: 'add-media-once',
        input: { bucketId, items: signedItems(items, by), request },
      })
    },
    findRepeated: async (request) => reading(() => reads.findRepeated(request)),
    forgetRequests: (now) => writer.apply({ kind: 'forget-requests', input: { now } }),
    removeMedia: (bucketId, ids, by, now = Date.now()) =>
      writer.apply({ kind: 'remove-media', input: signed({ bucketId, ids, now }, by) }),
    restoreMedia: (bucketId, ids, by, now = Date.now()) =>
      writer.apply({ kind: 'restore-media', input: signed({ bucketId, ids, now }, by) }),
    purgeMedia: (bucketId, ids, by) =>
      writer.apply({ kind: 'purge-media', input: signed({ bucketId, ids }, by) }),
    trashState: async (bucketId) => reading(() => reads.trashState(bucketId)),
    trash: async (bucketId, after, limit, now = Date.now()) =>
      reading(() => reads.trash(bucketId, after, limit, now)),
    expireItems: (bucketId, now = Date.now()) =>
      writer.apply({
        kind: 'expire-items',
        input: signed({ bucketId, now, limit: expiryLimit }, options.actor && service),
      }),
    expiringBuckets: async (now) => reading(() => reads.expiringBuckets(now)),
    expiredTrash: async (now, limit) => reading(() => reads.expiredTrash(now, limit)),
    setPreview: (bucketId, id, preview) =>
      writer.apply({ kind: 'set-preview', input: { bucketId, id, preview } }),
    editMedia: (bucketId, id, edit, expected, by) =>
      writer.apply({ kind: 'edit-media', input: signed({ bucketId, id, edit, expected }, by) }),
    addIntents: (ids, lifetime) => writer.apply({ kind: 'add-intents', input: { ids, lifetime } }),
    intents: async () => reading(() => reads.intents()),
    expiredIntents: async () => reading(() => reads.expiredIntents()),
    retireIntents: (ids) => writer.apply({ kind: 'retire-intents', input: { ids } }),
    clearIntents: (ids) => writer.apply({ kind: 'clear-intents', input: { ids } }),
    findUnreferenced: async (ids) => reading(() => reads.findUnreferenced(ids)),
    tombstones: async () => reading(() => reads.tombstones()),
    clearTombstones: (ids) => writer.apply({ kind: 'clear-tombstones', input: { ids } }),
    createUpload: (upload) => writer.apply({ kind: 'create-upload', input: upload }),
    upload: async (id) => reading(() => reads.upload(id)),
    declareLength: (id, length) => writer.apply({ kind: 'declare-length', input: { id, length } }),
    moveUpload: (id, from, to, expiresAt) =>
      writer.apply({ kind: 'move-upload', input: { id, from, to, expiresAt } }),
    uploadParts: async (id) => reading(() => reads.uploadParts(id)),
    uploadPieces: async (id) => reading(() => reads.uploadPieces(id)),
    beginParts: (id, multipart) => writer.apply({ kind: 'begin-parts', input: { id, multipart } }),
    storeParts: (id, stored, move) => writer.apply({ kind: 'store-parts', input: { id, stored, move } }),
    finishUpload(id, added, expiresAt, by, received = added.item.size) {
      indexer.addedToAny()
      return writer.apply({
        kind: 'finish-upload',
        input: { id, added: signed(added, by), expiresAt, received },
      })
    },
    removeUpload: (id, onlyUnfinished = false) =>
      writer.apply({ kind: 'remove-upload', input: { id, onlyUnfinished } }),
    unfinishedUploads: async () => reading(() => reads.unfinishedUploads()),
    expiredUploads: async (now) => reading(() => reads.expiredUploads(now)),
    bucket: buckets.read,
    bucketNamed: async (name) => reading(() => reads.bucketNamed(name)),
    uploadsOf: async (id) => reading(() => reads.uploadsOf(id)),
    buckets: async () => reading(() => reads.buckets()),
    createBucket: (name, settings, createdAt, by) =>
      writer.apply({ kind: 'create-bucket', input: signed({ name, settings, createdAt }, by) }),
    deleteBucketChunk: (id, limit, now, by) =>
      writer.apply({ kind: 'delete-bucket-chunk', input: signed({ id, limit, now }, by) }),
    setBucket: (bucket, settings, by) =>
      writer.apply({ kind: 'set-bucket', input: signed({ bucket, settings }, by) }),
    addToken: (token, by) => writer.apply({ kind: 'add-token', input: signed(token, by) }),
    addUser: (user, newBucket, by) =>
      writer.apply({ kind: 'add-user', input: signed({ user, newBucket }, by) }),
    createBucketWithToken: (token, by) =>
      writer.apply({ kind: 'create-bucket-with-token', input: signed(token, by) }),
    token: async (id) => reading(() => reads.token(id)),
    tokensAfter: async (bucketId, after, limit) => reading(() => reads.tokensAfter(bucketId, after, limit)),
    tokens: async (bucket) => reading(() => reads.tokens(bucket ?? null)),
    grantToken: (bucketId, grantor, token, by) =>
      writer.apply({ kind: 'grant-token', input: signed({ bucketId, grantor, token }, by) }),
    rotateToken: (bucketId, grantor, successor, by) =>
      writer.apply({ kind: 'rotate-token', input: signed({ bucketId, grantor, successor }, by) }),
    revokeToken: (id, at, by) => writer.apply({ kind: 'revoke-token', input: signed({ id, at }, by) }),
    touchToken: (id, at) => writer.apply({ kind: 'touch-token', input: { id, at } }),
    signingKeys: async () => reading(() => reads.signingKeys()),
    addSigningKey: (key, onlyFirst) => writer.apply({ kind: 'add-key', input: signed({ key, onlyFirst }) }),
    removeSigningKey: (id) => writer.apply({ kind: 'remove-key', input: signed({ id }) }),
    statistics: async () =>
      reading(() => ({
        ...statistics(),
        waitingChanges: writer.pendingCount(),
        logBytes: logBytes(directory),
      })),
    recordUpkeep: (run, by) => writer.apply({ kind: 'record-upkeep', input: signed(run, by) }),
    async recordEvents(events) {
      if (options.actor) await writer.apply({ kind: 'record-events', input: { events } })
    },
    removeEvents: (before, limit) => writer.apply({ kind: 'remove-events', input: { before, limit } }),
    blobsIdentity: async () => reading(() => reads.blobsIdentity()),
    claimBlobsIdentity: (identity) => writer.apply({ kind: 'claim-blobs-identity', input: { identity } }),
    someWithBlobs: async () => reading(() => reads.someWithBlobs()),
    isNew: async () => reading(() => reads.isNew()),

    // A transaction of SQLite ends with its process.
    settle: async () => undefined,
    async checkReads() {
      reading(() => reads.isNew())
    },
    checkWrites: () => writer.apply({ kind: 'check', input: null }),

    async close() {
      grants.flush()
      media.flush()
      pages.flush()
      buckets.flush()
      const indexing = indexer.close()
      // The last connection to close checkpoints the log; that sync must run on the writer thread.
      if (db.isOpen) db.close()
      await contents.close()
      await indexing
      await writer.close()
    },
  }
}

/** The bytes as a string of the same length, which takes less time than hexadecimal digits. */
const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1')

function reading<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw asFault(error)
  }
}
