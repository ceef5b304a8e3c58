import { webcrypto } from 'node:crypto'
import type { Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import { allocateWithHeadRoom, hasHeadRoom, headRoom, stringHash, withHeadRoom } from '../core/bytes.ts'
import { Fault, itemUnknown } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import type { Variant, VariantKey, VariantWait } from '../core/variants.ts'
import type { OpenVariant, Variants } from '../pictures/rendered-variants.ts'
import type { BlobStore, OpenBlob } from '../storage/blobs/blobs.ts'
import { openMemoryBlob } from '../storage/blobs/memory-blob.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'

/** If the item has at most `wholeUpTo` bytes (0 by default), the blob may hold them in memory. */
export type OpenBytes = (item: Item, wholeUpTo?: number) => Promise<OpenBlob>

/** Where the bytes of items are: in the catalog, or in the blob store. */
interface ByteSources {
  readonly catalog: Pick<Catalog, 'item' | 'content'>
  readonly blobs: Pick<BlobStore, 'open'>
}

/**
 * Opens an item's bytes. Throws Fault `bytes-missing` if they are missing, have the wrong length, or fsck has marked them
 * as damaged (docs/interface.md B9, F3).
 */
export function openBytesOperation(parts: ByteSources): OpenBytes {
  return (item, wholeUpTo = 0) => openBytes(parts, item, wholeUpTo)
}

async function openBytes({ catalog, blobs }: ByteSources, item: Item, wholeUpTo: number): Promise<OpenBlob> {
  if (item.isDamaged) throw bytesDamaged()
  const blob =
    item.contentId === null
      ? await blobs.open(item.id, wholeUpTo)
      : await openContent(catalog, item.contentId)
  if (blob === null) {
    // The item may have been deleted since its row was read.
    if ((await catalog.item(item.id)) === null) throw itemUnknown()
    throw new Fault('bytes-missing', 'The bytes of this item are missing on the server.')
  }
  if (blob.size !== item.size) {
    await blob.close()
    throw bytesDamaged()
  }
  return blob
}

async function openContent(
  catalog: ByteSources['catalog'],
  id: NonNullable<Item['contentId']>,
): Promise<OpenBlob | null> {
  const bytes = await catalog.content(id)
  return bytes && openMemoryBlob(bytes)
}

export const bytesDamaged = (): Fault =>
  new Fault('bytes-missing', 'The bytes of this item are damaged on the server.')

export type CachedBytesOperations = ReturnType<typeof cachedBytesOperations>

/** The bytes that are in the cache. */
export type CachedBytes = CachedBytesOperations['cachedBytes']

/**
 * Opens bytes and variants through the cache. The bytes of an id never change, so only the row can say that they must not
 * be served: pass a row that was read for this request.
 */
export function cachedBytesOperations(parts: {
  readonly cache: BytesCache
  readonly openBytes: OpenBytes
  readonly openVariant: Variants['open']
  readonly variantKeys: readonly VariantKey[]
  /** True if files on the disk are opened for a proxy that sends them. */
  readonly leavesFiles: boolean
}) {
  const { cache, openBytes, openVariant, variantKeys, leavesFiles } = parts
  return {
    cachedBytes: {
      /** Null if they are not cached. They may be sent only if the catalog's `servability` of the id is `servable` after this request. */
      open: (id: ItemId, variant: Variant | null): OpenVariant | null => cache.openCached(keyOf(id, variant)),
      /** Counts a request to which opened bytes are sent. */
      countRequest: (id: ItemId, variant: Variant | null): void => cache.countRequest(keyOf(id, variant)),
      /** Removes the bytes of an item that is not servable, and their variants. */
      remove(id: ItemId): void {
        cache.remove(keyOf(id, null))
        for (const key of variantKeys) cache.remove(`${id}.${key}`)
      },
    },
    openBytes: async (item: Item): Promise<OpenVariant> =>
      // `openBytesOperation` refuses damaged bytes.
      item.isDamaged || (leavesFiles && item.contentId === null)
        ? openBytes(item)
        : cache.open(keyOf(item.id, null), { ...item, isOwn: true }, (wholeUpTo) =>
            openBytes(item, wholeUpTo),
          ),
    /** Throws as Variants.open. */
    openVariant: async (item: Item, variant: Variant, wait: VariantWait): Promise<OpenVariant> =>
      item.isDamaged
        ? openVariant(item, variant)
        : cache.open(
            keyOf(item.id, variant),
            // Requests that wait for different times do not share a read.
            {
              size: null,
              sha256: null,
              ...(wait !== null && { readKey: `${keyOf(item.id, variant)}.${wait}` }),
            },
            (wholeUpTo) => openVariant(item, variant, { wholeUpTo, wait }),
          ),
  }
}

const keyOf = (id: ItemId, variant: Variant | null): string =>
  variant === null ? id : `${id}.${variant.key}`

const { subtle } = webcrypto

/** Bytes up to this length are read whole, and may be cached. Longer ones are streamed. */
const maxWholeLength = 1_048_576

/** Bytes up to this length are read whole even if many clients receive others slowly. */
const smallLength = 65_536

/** The limit for bytes in memory that are being read or sent, except small ones. */
const memoryLimit = 64 * 1024 * 1024

/** The measured memory of an entry without its bytes. */
const entryOverhead = headRoom + 600

interface CacheStatistics {
  readonly hits: number
  /** Reads. */
  readonly misses: number
  /** The memory of the cache in bytes. */
  readonly size: number
}

/** Size and hash of the bytes from the catalog. A field is null if the catalog does not have it. */
interface KnownBytes {
  readonly size: number | null
  /** Bytes with another hash are returned but not cached, so that a repair takes effect. */
  readonly sha256: Uint8Array | null
  /** True if only this cache refers to the memory of the bytes that are read. If they are not cached, the last close frees it. */
  readonly isOwn?: boolean
  /** Concurrent calls share a read only if this is the same; the key by default. */
  readonly readKey?: string
}

/** Opens bytes; up to `wholeUpTo` may be returned in memory. */
type Opener = (wholeUpTo: number) => Promise<OpenVariant>

/** Bytes in memory, and how many callers have them open. */
interface Entry {
  readonly bytes: OwnedBytes
  blob: OpenVariant
  users: number
  /** Whether the memory is freed after the last use. */
  isDisposable: boolean
}

/** A read, which requests share until its bytes are cached. Its entry is null if the bytes are too long. */
interface Read {
  /** Null after the read has ended, because removed values of a Map stay in memory (core/slab.ts). */
  entry: Promise<Entry | null> | null
}

/** A cache of bytes that never change, and the reads that fill it. */
export class BytesCache {
  readonly #capacity: number
  /** The memory of an entry without its bytes. */
  readonly #overhead: number
  readonly #frequency = new RequestFrequency()
  readonly #entries: LRUCache<string, Entry> | null
  readonly #reads = new Map<string, Read>()
  /** Bytes that are being read or sent, except small ones. */
  #inUse = 0
  #hits = 0
  #misses = 0

  /**
   * `capacity` is in bytes; 0 disables the cache. The least recently requested entries are evicted, but only for bytes that
   * are requested more often than all of these together: reading many files once evicts none that are in demand.
   * `callersMemory` is the memory that callers keep for each entry as long as it is cached.
   */
  constructor(capacity: number, callersMemory = 0) {
    this.#capacity = capacity
    this.#overhead = entryOverhead + callersMemory
    const sizeCalculation = (entry: Entry) => this.#memoryOf(entry)
    this.#entries = capacity > 0 ? new LRUCache({ maxSize: capacity, sizeCalculation }) : null
  }

  /**
   * The cached bytes, or those that `open` opens. Bytes up to `maxWholeLength` are returned in memory (`content`).
   * Concurrent calls for a key (`readKey`) share one read, which may have begun before its item was deleted. So the caller checks first
   * that the item exists.
   */
  async open(key: string, known: KnownBytes, open: Opener): Promise<OpenVariant> {
    if ((known.size ?? 0) > maxWholeLength) return open(0)
    this.#frequency.count(key)
    const cached = this.#entries?.get(key) ?? this.#reads.get(known.readKey ?? key)?.entry
    if (cached) this.#hits += 1
    else if ((known.size ?? 0) > this.#wholeLimit()) {
      this.#misses += 1
      return open(0)
    }
    const entry = await (cached ?? this.#readOnce(key, known, open))
    return entry ? this.#openEntry(key, entry) : open(0)
  }

  /**
   * The cached bytes, or null. They have `headRoom` in front of them. Does not count as a request, since the response may not
   * be sent.
   */
  openCached(key: string): OpenVariant | null {
    const entry = this.#entries?.peek(key)
    return entry ? this.#openEntry(key, entry) : null
  }

  /** Counts a request that received the bytes of `openCached`. */
  countRequest(key: string): void {
    this.#frequency.count(key)
    this.#hits += 1
    // The eviction order is that of the last requests.
    this.#entries?.get(key)
  }

  remove(key: string): void {
    this.#entries?.delete(key)
  }

  statistics(): CacheStatistics {
    return { hits: this.#hits, misses: this.#misses, size: this.#entries?.calculatedSize ?? 0 }
  }

  #memoryOf({ blob }: Entry): number {
    return blob.size + this.#overhead
  }

  /** As much as an eighth of the remaining room, so that further requests find room too. */
  #wholeLimit(): number {
    return Math.max(smallLength, Math.min(maxWholeLength, Math.floor((memoryLimit - this.#inUse) / 8)))
  }

  /** Until the bytes are cached, requests share them. */
  #readOnce(key: string, known: KnownBytes, open: Opener): Promise<Entry | null> {
    this.#misses += 1
    const entry = this.#readWhole(known.size, open)
    const read: Read = { entry }
    const { readKey = key } = known
    this.#reads.set(readKey, read)
    entry
      .then((opened) => this.#admit(key, opened, known))
      .catch(() => undefined)
      .finally(() => {
        this.#reads.delete(readKey)
        read.entry = null
      })
    return entry
  }

  /** Null if the bytes are too long. The memory is reserved at once, before other requests begin to read. */
  async #readWhole(size: number | null, open: Opener): Promise<Entry | null> {
    let reserved = size ?? 0
    this.#inUse += reserved
    try {
      const blob = await open(maxWholeLength)
      try {
        if (blob.size > maxWholeLength) return null
        this.#inUse += blob.size - reserved
        reserved = blob.size
        const bytes = await bytesOf(blob)
        return newEntry(bytes)
      } finally {
        await blob.close()
      }
    } finally {
      this.#inUse -= reserved
    }
  }

  /** Caches the bytes, if they are requested more often than those that they would evict, and are those of the catalog. */
  async #admit(key: string, entry: Entry | null, { sha256, isOwn = false }: KnownBytes): Promise<void> {
    if (entry === null) return
    const entries = this.#entries
    if (
      entries &&
      this.#isAdmitted(entries, key, this.#memoryOf(entry)) &&
      (await isIntact(entry.bytes, sha256))
    ) {
      const cached = hasHeadRoom(entry.bytes) ? entry : newEntry(withHeadRoom(entry.bytes))
      cached.blob = openMemoryBlob(cached.bytes, true)
      entries.set(key, cached)
      if (cached === entry) return
    }
    entry.isDisposable = isOwn
    // Its users may have closed it while it was hashed.
    if (isOwn) setImmediate(dispose, entry)
  }

  #isAdmitted(entries: LRUCache<string, Entry>, key: string, size: number): boolean {
    let room = this.#capacity - entries.calculatedSize
    let demand = this.#frequency.of(key)
    for (const victim of entries.rkeys()) {
      if (room >= size) break
      const evicted = entries.peek(victim)
      room += evicted ? this.#memoryOf(evicted) : 0
      demand -= this.#frequency.of(victim)
      if (demand > 0) continue
      // Makes the victim the most recently requested entry. Otherwise the same one would win every comparison, even if nobody
      // requests it any more.
      entries.get(victim)
      return false
    }
    return room >= size
  }

  /** Opens an entry for one caller. */
  #openEntry(key: string, entry: Entry): OpenVariant {
    const { blob } = entry
    const counted = blob.size > smallLength ? blob.size : 0
    // Small cached bytes are not counted, so nothing has to be closed.
    if (counted === 0 && this.#entries?.peek(key) === entry) return blob
    if (entry.users === 0) this.#inUse += counted
    entry.users += 1
    return new CountedBlob(blob, () => this.#closeEntry(entry, counted))
  }

  #closeEntry(entry: Entry, counted: number): void {
    entry.users -= 1
    if (entry.users > 0) return
    this.#inUse -= counted
    if (entry.isDisposable) setImmediate(dispose, entry)
  }
}

/** Bytes of an entry, opened for one caller. */
class CountedBlob implements OpenVariant {
  readonly #blob: OpenVariant
  #onClose: (() => void) | null

  constructor(blob: OpenVariant, onClose: () => void) {
    this.#blob = blob
    this.#onClose = onClose
  }

  get size(): number {
    return this.#blob.size
  }

  get content(): OpenVariant['content'] {
    return this.#blob.content
  }

  read(into: Uint8Array, position: number): Promise<void> {
    return this.#blob.read(into, position)
  }

  stream(start: number, end: number): Readable {
    return this.#blob.stream(start, end)
  }

  async close(): Promise<void> {
    this.#onClose?.()
    this.#onClose = null
  }
}

/**
 * Frees the memory at once. Left to the garbage collector, the bytes of a few thousand cold files start a complete
 * collection, which delays such requests. Runs in a later tick, because another request that shared the
 * read may still open the bytes. If that request has closed them too, this runs a second time.
 */
function dispose({ users, bytes }: Entry): void {
  if (users === 0 && !bytes.buffer.detached) bytes.buffer.transfer(0)
}

const newEntry = (bytes: OwnedBytes): Entry => ({
  bytes,
  blob: openMemoryBlob(bytes),
  users: 0,
  isDisposable: false,
})

/** Hashes on another thread. */
async function isIntact(bytes: OwnedBytes, sha256: Uint8Array | null): Promise<boolean> {
  return sha256 === null || Buffer.from(await subtle.digest('SHA-256', bytes)).equals(sha256)
}

/** Bytes whose memory has nothing else in it, except unused memory in front of them. */
type OwnedBytes = Uint8Array<ArrayBuffer>

/** The whole bytes, in memory of their own. */
async function bytesOf(blob: OpenVariant): Promise<OwnedBytes> {
  const { content, size } = blob
  if (content.type === 'bytes') return ownsMemory(content.bytes) ? content.bytes : withHeadRoom(content.bytes)
  const bytes = allocateWithHeadRoom(size)
  if (size > 0) await blob.read(bytes, 0)
  return bytes
}

const ownsMemory = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength

/** The number of counters in each row, a power of two: more than the entries of a cache of the default size. */
const width = 2 ** 16
const mask = width - 1
const maxCount = 255

/**
 * Estimates how often keys were requested lately: a count-min sketch of two rows, whose counters are halved after as many requests as a row
 * has counters. So the memory is constant, and requests of the past lose their weight (Einziger, Friedman, Manes: TinyLFU, 2017).
 */
export class RequestFrequency {
  readonly #first = new Uint8Array(width)
  readonly #second = new Uint8Array(width)
  #counted = 0

  count(key: string): void {
    const first = this.#first
    const second = this.#second
    const hash = stringHash(key)
    const next = Math.min(this.#read(hash) + 1, maxCount)
    // Only the lower counters are increased, which makes collisions cost less.
    if ((first[hash & mask] ?? 0) < next) first[hash & mask] = next
    if ((second[hash >>> 16] ?? 0) < next) second[hash >>> 16] = next
    this.#counted += 1
    if (this.#counted % width === 0) this.#halve()
  }

  /** At least the true count up to 255, and rarely more. */
  of(key: string): number {
    return this.#read(stringHash(key))
  }

  #read(hash: number): number {
    return Math.min(this.#first[hash & mask] ?? 0, this.#second[hash >>> 16] ?? 0)
  }

  #halve(): void {
    for (const row of [this.#first, this.#second])
      for (let index = 0; index < width; index += 1) row[index] = (row[index] ?? 0) >>> 1
  }
}
