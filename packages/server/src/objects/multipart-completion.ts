import { createHash } from 'node:crypto'
import { compositeChecksum, newChecksum, wholeChecksum } from '../core/checksums.ts'
import { Fault, fileTooLarge } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { maxFileSizeOf } from '../core/quotas.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Completion, StoredPart } from '../storage/catalog/objects/multipart-uploads.ts'
import type { StoreOperations } from '../uploads/commit.ts'
import { defaultExpiry } from '../uploads/new-items.ts'
import { ObjectFault } from './object-faults.ts'
import {
  detailsOf,
  hashed,
  type ObjectConditions,
  parseParts,
  refusal,
  type StoredObject,
  storedHeaders,
} from './object-operations.ts'
import type { ObjectCaller, ObjectChecksum, ObjectPart } from './object-types.ts'
import { findAny, type OpenMultipart, openOf, uploadUnknown } from './open-multiparts.ts'

/** Bytes of each part but the last, at least. */
const minPartSize = 5 * 1024 ** 2

/** The most parts of an object. */
const maxParts = 10_000

/** Milliseconds for which a completed upload is known. */
const keptFor = 86_400_000

/** A part as the client names it. */
interface NamedPart {
  readonly number: number
  /** Without quotes. */
  readonly etag: string
  /** Base64; left out if the client names none. */
  readonly checksum?: string
}

export interface CompletionOptions {
  /** In the order of their numbers. Of those with one number, the last one counts. */
  readonly parts: readonly NamedPart[]
  readonly conditions: ObjectConditions
  /** What the client expects of the object; members that are left out are not checked. */
  readonly expected?: {
    readonly size?: number
    readonly checksum?: Pick<ObjectChecksum, 'algorithm' | 'value'>
    /** Of the checksum. */
    readonly type?: string
  }
}

export interface CompletionParts {
  readonly catalog: Pick<Catalog, 'findMultipart' | 'listParts' | 'completeMultipart' | 'removeMultipart'>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly storeFile: StoreOperations['storeFile']
  /** Bytes. */
  readonly maxFileSize: number
  readonly now: () => number
  /** Deletes the bytes of removed items and parts in the background. */
  readonly deleteLater: (ids: readonly ItemId[]) => void
}

/** Completions in progress in this process, by what makes them equal: a client whose connection was lost sends the request again. */
type Running = Map<string, Promise<StoredObject>>

/** How often a completion begins again because a part was replaced while its bytes were read. */
const maxAttempts = 3

/**
 * Makes one object of parts, in place of the one that has the key (docs/interface.md MU8). A repetition returns the same object for a day (MU9). Throws Fault
 * `upload-unknown`, ObjectFault `part-order`, `part-invalid`, `part-too-small` and `checksum-mismatch`, and as putObject.
 */
export async function completeMultipart(
  parts: CompletionParts & { readonly running: Running },
  caller: ObjectCaller,
  key: string,
  id: string,
  options: CompletionOptions,
): Promise<StoredObject> {
  const upload = await findAny(parts, caller, key, id)
  const named = inOrder(options.parts)
  const etag = etagOfParts(named.map((part) => part.etag))
  if (upload.completed !== null) return repeated(upload, etag)
  const { conditions, expected } = options
  const name = JSON.stringify([id, named, caller.tokenId, conditions, expected])
  const running = parts.running.get(name)
  if (running !== undefined) return running
  const completed = completeAtLast(parts, caller, upload, { ...options, parts: named }, etag).finally(() =>
    parts.running.delete(name),
  )
  parts.running.set(name, completed)
  return completed
}

/** The parts, each number once. Throws ObjectFault `part-order` and `part-invalid`. */
function inOrder(named: readonly NamedPart[]): readonly NamedPart[] {
  if (named.length === 0 || named.length > maxParts)
    throw new ObjectFault('part-invalid', `An object has 1 to ${maxParts} parts.`)
  if (named.some(({ etag }) => !/^[0-9a-f]{32}$/.test(etag))) throw partMissing()
  if (named.some(({ number }, index) => number < (named[index - 1]?.number ?? 0)))
    throw new ObjectFault('part-order', 'The parts must be in the order of their numbers.')
  return named.filter(({ number }, index) => number !== named[index + 1]?.number)
}

/** MD5 of the MD5s of the parts, with their number: the etag of an object that was uploaded in parts. */
const etagOfParts = (etags: readonly string[]): string =>
  `${createHash('md5')
    .update(Buffer.from(etags.join(''), 'hex'))
    .digest('hex')}-${etags.length}`

/** The object that an upload has become, also if it was deleted or replaced since. */
function repeated({ key, completed, isPublic, headers }: OpenMultipart, etag: string): StoredObject {
  if (completed === null || completed.etag !== etag) throw uploadUnknown()
  const item = detailsOf(completed.item)
  return {
    ...{ key, item, etag, isPublic, headers },
    ...{ parts: parseParts(completed.parts), lastModified: item.createdAt },
  }
}

/** A part was replaced or removed while its bytes were read. */
class PartsChanged extends Error {}

/** Completes the upload. Starts again if a part was replaced before the completion was stored. */
async function completeAtLast(
  parts: CompletionParts,
  caller: ObjectCaller,
  first: OpenMultipart,
  options: CompletionOptions,
  etag: string,
): Promise<StoredObject> {
  let upload = first
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await complete(parts, caller, upload, options, etag)
    } catch (error) {
      if (!(error instanceof PartsChanged)) throw error
      if (attempt === maxAttempts) throw partMissing()
    }
    upload = await findAny(parts, caller, upload.key, upload.id)
    if (upload.completed !== null) return repeated(upload, etag)
  }
}

/** Throws PartsChanged. */
async function complete(
  parts: CompletionParts,
  caller: ObjectCaller,
  upload: OpenMultipart,
  { parts: named, conditions, expected = {} }: CompletionOptions,
  etag: string,
): Promise<StoredObject> {
  const { catalog, storeFile, maxFileSize, now, deleteLater } = parts
  const { key, isPublic } = upload
  const chosen = await choose(parts, upload, named)
  const size = chosen.reduce((sum, part) => sum + part.size, 0)
  const limit = maxFileSizeOf(caller, maxFileSize)
  if (size > limit) throw fileTooLarge(limit)
  const checksum = checksumOf(upload, chosen)
  requireExpected(expected, size, checksum)
  const headers = checksum === null ? upload.headers : { ...upload.headers, checksum }
  const objectParts = chosen.map(objectPartOf)
  const details = { etag, isPublic, headers: storedHeaders(headers), parts: JSON.stringify(objectParts) }
  const replacement = { ...conditions, mayReplace: caller.scopes.has('media:delete') }
  const { completion, object } = await storeFile(
    caller,
    {
      sent: { filename: key, declaredType: upload.headers.contentType ?? null, isKey: true },
      body: bytesOf(parts, upload, chosen),
    },
    {
      by: caller.actor,
      expiresAt: defaultExpiry(caller.itemDays, now()),
      atMost: size,
      isReserved: true,
      add: async (item) => {
        // Before the catalog takes over the bytes.
        const stored: StoredObject = {
          ...{ key, etag, isPublic, headers },
          ...{ item: detailsOf(item), parts: objectParts, lastModified: item.createdAt },
        }
        const done = await catalog.completeMultipart(
          caller.bucketId,
          upload.id,
          chosen,
          { ...details, key, item, modifiedAt: item.createdAt },
          { ...replacement, keptUntil: now() + keptFor },
          caller.actor,
        )
        return {
          isAdded: done.outcome === 'completed',
          result: { completion: done, object: stored },
        }
      },
    },
  ).catch(async (error: unknown) => {
    // Of what the scanner refuses, no bytes stay.
    if (error instanceof Fault && error.code === 'file-refused')
      deleteLater((await catalog.removeMultipart(caller.bucketId, upload.id)) ?? [])
    throw error
  })
  if (completion.outcome !== 'completed') return otherwise(completion, etag)
  deleteLater(completion.tombstones)
  return object
}

/** The result of a completion that has added nothing. */
function otherwise(
  completion: Exclude<Completion, { readonly outcome: 'completed' }>,
  etag: string,
): StoredObject {
  switch (completion.outcome) {
    case 'refused':
      throw refusal(completion.refused)
    case 'repeated':
      return repeated(openOf(completion.upload), etag)
    case 'changed':
      throw new PartsChanged()
    case 'unknown':
      throw uploadUnknown()
  }
}

const partMissing = () =>
  new ObjectFault('part-invalid', 'A part that is named is not stored, or was replaced by another one.')

/** Throws ObjectFault `part-invalid` and `checksum-mismatch`. */
function requireExpected(
  expected: NonNullable<CompletionOptions['expected']>,
  size: number,
  found: ObjectChecksum | null,
): void {
  if (expected.size !== undefined && expected.size !== size)
    throw new ObjectFault('part-invalid', `The parts have ${size} bytes together, not ${expected.size}.`)
  const { algorithm = found?.algorithm, value = found?.value } = expected.checksum ?? {}
  if (
    algorithm !== found?.algorithm ||
    value !== found?.value ||
    (expected.type ?? found?.type) !== found?.type
  )
    throw new ObjectFault('checksum-mismatch', 'The checksum of the object is not the one that was sent.')
}

const objectPartOf = ({ size, checksum }: StoredPart): ObjectPart => ({
  size,
  ...(checksum !== null && { checksum }),
})

/** The checksum of the object, which those of its parts determine; null if the upload has none. */
function checksumOf({ checksum }: OpenMultipart, chosen: readonly StoredPart[]): ObjectChecksum | null {
  if (checksum === null) return null
  const parts = chosen.map((part) => ({ size: part.size, value: part.checksum ?? '' }))
  const { algorithm, type } = checksum
  const value = type === 'COMPOSITE' ? compositeChecksum(algorithm, parts) : wholeChecksum(algorithm, parts)
  return value === null ? null : { ...checksum, value }
}

/** The stored parts that the client names. Throws ObjectFault `part-invalid` and `part-too-small`. */
async function choose(
  { catalog }: Pick<CompletionParts, 'catalog'>,
  { id }: OpenMultipart,
  named: readonly NamedPart[],
): Promise<readonly StoredPart[]> {
  const parts = await catalog.listParts(id, 0, maxParts)
  const stored = new Map(parts.map((part) => [part.number, part]))
  const chosen = named.map(({ number, etag, checksum }) => {
    const part = stored.get(number)
    if (part === undefined || part.etag !== etag) throw partMissing()
    if (checksum !== undefined && part.checksum !== null && checksum !== part.checksum) throw partMissing()
    return part
  })
  const small = chosen.slice(0, -1).find(({ size }) => size < minPartSize)
  if (small !== undefined)
    throw new ObjectFault(
      'part-too-small',
      `Each part but the last has at least ${minPartSize} bytes; part ${small.number} has ${small.size}.`,
    )
  return chosen
}

/** The bytes of the parts, in their order. Throws PartsChanged, and Fault `bytes-missing`, also for bytes that are not those that were sent. */
async function* bytesOf(
  parts: Pick<CompletionParts, 'catalog' | 'blobs'>,
  upload: OpenMultipart,
  chosen: readonly StoredPart[],
): AsyncGenerator<Uint8Array> {
  for (const part of chosen) {
    if (part.size === 0) continue
    const blob = await openPart(parts, upload, part)
    const digest = digestOf(upload, part)
    try {
      yield* hashed(blob.stream(0, part.size - 1), [digest])
      if (!digest.isRight()) throw bytesMissing(part)
    } finally {
      await blob.close()
    }
  }
}

/** The digest of a part that takes the least time: the checksum that it was sent with, or else the MD5. */
function digestOf({ checksum }: OpenMultipart, part: StoredPart) {
  const hasChecksum = checksum !== null && part.checksum !== null
  const digest = hasChecksum ? newChecksum(checksum.algorithm) : createHash('md5')
  return {
    update: (bytes: Uint8Array) => digest.update(bytes),
    // Also false after a stream of a store that ended early.
    isRight: () =>
      hasChecksum
        ? digest.digest().toString('base64') === part.checksum
        : digest.digest().toString('hex') === part.etag,
  }
}

async function openPart(
  { catalog, blobs }: Pick<CompletionParts, 'catalog' | 'blobs'>,
  { id }: OpenMultipart,
  part: StoredPart,
) {
  const { number, itemId, size } = part
  const blob = await blobs.open(itemId)
  if (blob?.size === size) return blob
  await blob?.close()
  const [current] = await catalog.listParts(id, number - 1, 1)
  if (current?.itemId !== itemId) throw new PartsChanged()
  throw bytesMissing(part)
}

const bytesMissing = ({ number }: StoredPart) =>
  new Fault(
    'bytes-missing',
    `The bytes of part ${number} are missing or damaged on the server. Send the part again.`,
  )
