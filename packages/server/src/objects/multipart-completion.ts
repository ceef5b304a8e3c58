import { createHash } from 'node:crypto'
import { Fault, fileTooLarge } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { maxFileSizeOf } from '../core/quotas.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Completion, StoredPart } from '../storage/catalog/objects/multipart-uploads.ts'
import type { AddedItem, ItemDetails, NewItem } from '../storage/catalog/records.ts'
import type { StoreOperations } from '../uploads/commit.ts'
import { defaultExpiry } from '../uploads/new-items.ts'
import { ObjectFault } from './object-faults.ts'
import { type ObjectConditions, refusal, type StoredObject, storedHeaders } from './object-operations.ts'
import type { ChecksumState, NewChecksum, ObjectCaller, ObjectHeaders } from './object-types.ts'
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
  /** In the order of their numbers. */
  readonly parts: readonly NamedPart[]
  readonly conditions: ObjectConditions
  readonly newChecksum: NewChecksum
  /** What the client expects of the object; members that are left out are not checked. */
  readonly expected?: { readonly size?: number; readonly checksum?: string }
}

export interface CompletionParts {
  readonly catalog: Pick<Catalog, 'findMultipart' | 'listParts' | 'completeMultipart'>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly storeFile: StoreOperations['storeFile']
  /** Bytes. */
  readonly maxFileSize: number
  readonly now: () => number
  /** Deletes the bytes of removed items and parts in the background. */
  readonly deleteLater: (ids: readonly ItemId[]) => void
}

/** Completions in progress in this process, by upload and etag: a client whose connection was lost sends the request again. */
type Running = Map<string, Promise<StoredObject>>

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
  requireOrder(options.parts)
  const etag = etagOfParts(options.parts.map((part) => part.etag))
  const upload = await findAny(parts, caller, key, id)
  if (upload.completed !== null) return repeated(upload, etag)
  const name = `${id} ${etag}`
  const running = parts.running.get(name)
  if (running !== undefined) return running
  const completed = complete(parts, caller, upload, options, etag).finally(() => parts.running.delete(name))
  parts.running.set(name, completed)
  return completed
}

function requireOrder(named: readonly NamedPart[]): void {
  if (named.length === 0 || named.length > maxParts)
    throw new ObjectFault('part-invalid', `An object has 1 to ${maxParts} parts.`)
  if (named.some(({ etag }) => !/^[0-9a-f]{32}$/.test(etag)))
    throw new ObjectFault('part-invalid', 'A part that is named is not stored.')
  for (const [index, { number }] of named.entries())
    if (index > 0 && number <= (named[index - 1]?.number ?? 0))
      throw new ObjectFault('part-order', 'The parts must be in the order of their numbers.')
}

/** MD5 of the MD5s of the parts, with their number: the etag of an object that was uploaded in parts. */
const etagOfParts = (etags: readonly string[]): string =>
  `${createHash('md5')
    .update(Buffer.from(etags.join(''), 'hex'))
    .digest('hex')}-${etags.length}`

/** The object that an upload has become, also if it was deleted or replaced since. */
function repeated(upload: OpenMultipart, etag: string): StoredObject {
  const { key, completed, isPublic, headers } = upload
  if (completed === null || completed.etag !== etag) throw uploadUnknown()
  const item = detailsOf(completed.item)
  const sizes: unknown = JSON.parse(completed.parts)
  return { ...{ key, item, etag, isPublic, headers }, parts: numbersOf(sizes), lastModified: item.createdAt }
}

const numbersOf = (sizes: unknown): readonly number[] =>
  Array.isArray(sizes) ? sizes.filter((size) => typeof size === 'number') : []

/** The details of a new item. */
const detailsOf = (item: NewItem): ItemDetails => ({
  ...item,
  ...{ thumbhash: null, duration: null, altText: null, caption: null },
})

async function complete(
  parts: CompletionParts,
  caller: ObjectCaller,
  upload: OpenMultipart,
  { parts: named, conditions, newChecksum, expected = {} }: CompletionOptions,
  etag: string,
): Promise<StoredObject> {
  const { catalog, storeFile, maxFileSize, now, deleteLater } = parts
  const { key, isPublic } = upload
  const chosen = await choose(parts, upload, named)
  const sizes = chosen.map(({ size }) => size)
  const size = sizes.reduce((sum, one) => sum + one, 0)
  const limit = maxFileSizeOf(caller, maxFileSize)
  if (size > limit) throw fileTooLarge(limit)
  if (expected.size !== undefined && expected.size !== size)
    throw new ObjectFault('part-invalid', `The parts have ${size} bytes together, not ${expected.size}.`)
  const checksum = upload.checksum && new CompleteChecksum(upload.checksum, newChecksum)
  const known: { details?: KnownDetails; object?: StoredObject; completion?: Completion } = {}
  const onEnd = () => {
    const value = checksum?.valueOf(chosen) ?? null
    if (expected.checksum !== undefined && value !== null && value !== expected.checksum)
      throw new ObjectFault('checksum-mismatch', 'The checksum of the object is not the one that was sent.')
    const headers =
      upload.checksum === null || value === null
        ? upload.headers
        : { ...upload.headers, checksum: { ...upload.checksum, value } }
    known.details = { headers, stored: storedHeaders(headers) }
  }
  const add = async (item: AddedItem) => {
    const { details } = known
    if (details === undefined) throw new TypeError('the parts have not ended')
    const { bytes: _bytes, by: _by, ...described } = item
    known.completion = await catalog.completeMultipart(
      caller.bucketId,
      upload.id,
      chosen.map(({ number, size, etag }) => ({ number, size, etag })),
      {
        ...{ key, item, etag, isPublic, headers: details.stored },
        ...{ parts: JSON.stringify(sizes), modifiedAt: item.createdAt },
      },
      { ...conditions, mayReplace: caller.scopes.has('media:delete'), keptUntil: now() + keptFor },
      caller.actor,
    )
    if (known.completion.outcome !== 'completed') return null
    const { headers } = details
    return {
      ...{ key, etag, isPublic, headers },
      item: detailsOf(described),
      parts: sizes,
      lastModified: item.createdAt,
    }
  }
  const stored = await storeFile(
    caller,
    {
      sent: { filename: key, declaredType: upload.headers.contentType ?? null, isKey: true },
      body: bytesOf(parts, upload, chosen, checksum, onEnd),
    },
    {
      by: caller.actor,
      expiresAt: defaultExpiry(caller.itemDays, now()),
      atMost: size,
      isReserved: true,
      add,
    },
  )
  if (stored === null) return otherwise(known.completion, etag)
  if (known.completion?.outcome === 'completed') deleteLater(known.completion.tombstones)
  return stored
}

interface KnownDetails {
  readonly headers: ObjectHeaders
  readonly stored: string
}

/** The result of a completion that has added nothing. */
function otherwise(completion: Completion | undefined, etag: string): StoredObject {
  if (completion?.outcome === 'refused') throw refusal(completion.refused)
  if (completion?.outcome === 'repeated') return repeated(openOf(completion.upload), etag)
  if (completion?.outcome === 'changed') throw partMissing()
  throw uploadUnknown()
}

const partMissing = () =>
  new ObjectFault('part-invalid', 'A part that is named is not stored, or was replaced by another one.')

/** The stored parts that the client names. Throws ObjectFault `part-invalid` and `part-too-small`. */
async function choose(
  { catalog }: Pick<CompletionParts, 'catalog'>,
  { id }: OpenMultipart,
  named: readonly NamedPart[],
): Promise<readonly StoredPart[]> {
  const stored = new Map<number, StoredPart>()
  for (let last = 0; ; ) {
    const some = await catalog.listParts(id, last, partsPerRead)
    for (const part of some) stored.set(part.number, part)
    const end = some.at(-1)
    if (end === undefined || some.length < partsPerRead) break
    last = end.number
  }
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

const partsPerRead = 1_000

/** The checksum of an object in parts: of all bytes, or of the checksums of the parts. */
class CompleteChecksum {
  readonly #type: NonNullable<OpenMultipart['checksum']>['type']
  readonly #state: ChecksumState

  constructor({ algorithm, type }: NonNullable<OpenMultipart['checksum']>, newChecksum: NewChecksum) {
    this.#type = type
    this.#state = newChecksum(algorithm)
  }

  update(bytes: Uint8Array): void {
    if (this.#type === 'FULL_OBJECT') this.#state.update(bytes)
  }

  /** Null if a part has no checksum. */
  valueOf(parts: readonly StoredPart[]): string | null {
    if (this.#type === 'FULL_OBJECT') return this.#state.digest()
    for (const { checksum } of parts) {
      if (checksum === null) return null
      this.#state.update(Buffer.from(checksum, 'base64'))
    }
    return `${this.#state.digest()}-${parts.length}`
  }
}

/** The bytes of the parts, in their order. Throws Fault `upload-unknown` if the upload was removed, and ObjectFault `part-invalid` if a part was. */
async function* bytesOf(
  parts: Pick<CompletionParts, 'catalog' | 'blobs'>,
  upload: OpenMultipart,
  chosen: readonly StoredPart[],
  checksum: CompleteChecksum | null,
  onEnd: () => void,
): AsyncGenerator<Uint8Array> {
  for (const part of chosen) {
    if (part.size === 0) continue
    const blob = await openPart(parts, upload, part)
    try {
      let left = part.size
      for await (const chunk of blob.stream(0, part.size - 1)) {
        left -= chunk.byteLength
        checksum?.update(chunk)
        yield chunk
      }
      if (left !== 0) throw bytesMissing()
    } finally {
      await blob.close()
    }
  }
  onEnd()
}

const bytesMissing = () => new Fault('bytes-missing', 'The bytes of a part are missing on the server.')

/** Opens the blob of a part, or of the equal one that has replaced it. */
async function openPart(
  { catalog, blobs }: Pick<CompletionParts, 'catalog' | 'blobs'>,
  { bucketId, id }: OpenMultipart,
  part: StoredPart,
) {
  let { itemId } = part
  for (;;) {
    const blob = await blobs.open(itemId)
    if (blob !== null && blob.size === part.size) return blob
    await blob?.close()
    const upload = await catalog.findMultipart(bucketId, id)
    if (upload === null || upload.completed !== null) throw uploadUnknown()
    const [current] = await catalog.listParts(id, part.number - 1, 1)
    if (current?.number !== part.number || current.etag !== part.etag) throw partMissing()
    if (current.itemId === itemId) throw bytesMissing()
    itemId = current.itemId
  }
}
