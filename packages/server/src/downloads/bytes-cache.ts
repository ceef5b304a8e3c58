import { webcrypto } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { allocateWithHeadRoom, hasHeadRoom, headRoom, stringHash, withHeadRoom } from '../core/bytes.ts'
import { Fault, itemUnknown } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import type { Variant, VariantKey, VariantWait } from '../core/variants.ts'
import type { OpenVariant, Variants } from '../pictures/variants.ts'
import type { BlobStore, OpenBlob } from '../storage/blobs/blobs.ts'
import { openMemoryBlob } from '../storage/blobs/memory-blob.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'

/** If the item has at most `wholeUpTo` bytes (0 by default), the blob may hold them in memory. */
export type OpenBytes = (item: Item, wholeUpTo?: number) => Promise<OpenBlob>

/**
 * Opens an item's bytes. Throws Fault `bytes-missing` if they are missing, have the wrong length, or fsck has marked them
 * as damaged (docs/interface.md B9, F3).
 */
export function openBytesOperation(parts: {
  readonly catalog: Pick<Catalog, 'item' | 'content'>
  readonly blobs: Pick<BlobStore, 'open'>
}): OpenBytes {
  const { catalog, blobs } = parts
  const damaged = () => new Fault('bytes-missing', 'The bytes of this item are damaged on the server.')

  async function open({ id, contentId }: Item, wholeUpTo: number): Promise<OpenBlob | null> {
    if (contentId === null) return blobs.open(id, wholeUpTo)
    const bytes = await catalog.content(contentId)
    return bytes && openMemoryBlob(bytes)
  }

  return async (item, wholeUpTo = 0) => {
    if (item.isDamaged) throw damaged()
    const blob = await open(item, wholeUpTo)
    if (blob === null) {
      // The item may have been deleted since its row was read.
      if ((await catalog.item(item.id)) === null) throw itemUnknown()
      throw new Fault('bytes-missing', 'The bytes of this item are missing on the server.')
    }
    if (blob.size !== item.size) {
      await blob.close()
      throw damaged()
    }
    return blob
  }
}

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

/** A cache of bytes that never change, and the reads that fill it. */
export interface BytesCache {
  /**
   * The cached bytes, or those that `open` opens. Bytes up to `maxWholeLength` are returned in memory (`content`).
   * Concurrent calls for a key (`readKey`) share one read, which may have begun before its item was deleted. So the caller checks first
   * that the item exists.
   */
  open(key: string, known: KnownBytes, open: Opener): Promise<OpenVariant>
  /**
   * The cached bytes, or null. They have `headRoom` in front of them. Does not count as a request, since the response may not
   * be sent.
   */
  openCached(key: string): OpenVariant | null
  /** Counts a request that received the bytes of `openCached`. */
  countRequest(key: string): void
  remove(key: string): void
  statistics(): CacheStatistics
}

/** Bytes in memory, and how many callers have them open. */
interface Entry {
  readonly bytes: OwnedBytes
  blob: OpenVariant
  users: number
  /** Whether the memory is freed after the last use. */
  isDisposable: boolean
}

/**
 * `capacity` is in bytes; 0 disables the cache. The least recently requested entries are evicted, but only for bytes that
 * are requested more often than all of these together: reading many files once evicts none that are in demand.
 * `callersMemory` is the memory that callers keep for each entry as long as it is cached.
 */
export function createBytesCache(capacity: number, callersMemory = 0): BytesCache {
  const frequency = createRequestFrequency()
  const memoryOf = ({ blob }: Entry) => blob.size + entryOverhead + callersMemory
  const entries =
    capacity > 0
      ? new LRUCache<string, Entry>({
          maxSize: capacity,
          sizeCalculation: memoryOf,
        })
      : null
  /** `entry` is null after the read has ended, because removed values of a Map stay in memory (core/slab.ts). */
  const reads = new Map<string, { entry: Promise<Entry | null> | null }>()
  let inUse = 0
  let hits = 0
  let misses = 0

  /** As much as an eighth of the remaining room, so that further requests find room too. */
  const wholeLimit = () =>
    Math.max(smallLength, Math.min(maxWholeLength, Math.floor((memoryLimit - inUse) / 8)))

  function isAdmitted(cache: LRUCache<string, Entry>, key: string, size: number): boolean {
    let room = capacity - cache.calculatedSize
    let demand = frequency.of(key)
    for (const victim of cache.rkeys()) {
      if (room >= size) break
      const evicted = cache.peek(victim)
      room += evicted ? memoryOf(evicted) : 0
      demand -= frequency.of(victim)
      if (demand > 0) continue
      // Makes the victim the most recently requested entry. Otherwise the same one would win every comparison, even if nobody
      // requests it any more.
      cache.get(victim)
      return false
    }
    return room >= size
  }

  /** Opens an entry for one caller. */
  function openEntry(key: string, entry: Entry): OpenVariant {
    const { blob } = entry
    const counted = blob.size > smallLength ? blob.size : 0
    if (counted === 0 && entries?.peek(key) === entry) return blob
    if (entry.users === 0) inUse += counted
    entry.users += 1
    let isOpen = true
    return {
      ...blob,
      async close() {
        if (!isOpen) return
        isOpen = false
        entry.users -= 1
        if (entry.users > 0) return
        inUse -= counted
        if (entry.isDisposable) setImmediate(dispose, entry)
      },
    }
  }

  /** Null if the bytes are too long. The memory is reserved at once, before other requests begin to read. */
  async function readWhole(size: number | null, open: Opener): Promise<Entry | null> {
    let reserved = size ?? 0
    inUse += reserved
    try {
      const blob = await open(maxWholeLength)
      try {
        if (blob.size > maxWholeLength) return null
        inUse += blob.size - reserved
        reserved = blob.size
        const bytes = await bytesOf(blob)
        return newEntry(bytes)
      } finally {
        await blob.close()
      }
    } finally {
      inUse -= reserved
    }
  }

  async function admit(
    key: string,
    entry: Entry | null,
    { sha256, isOwn = false }: KnownBytes,
  ): Promise<void> {
    if (entry === null) return
    if (entries && isAdmitted(entries, key, memoryOf(entry)) && (await isIntact(entry.bytes, sha256))) {
      const cached = hasHeadRoom(entry.bytes) ? entry : newEntry(withHeadRoom(entry.bytes))
      cached.blob = openMemoryBlob(cached.bytes, true)
      entries.set(key, cached)
      if (cached === entry) return
    }
    entry.isDisposable = isOwn
    // Its users may have closed it while it was hashed.
    if (isOwn) setImmediate(dispose, entry)
  }

  /** Until the bytes are cached, requests share them. */
  function readOnce(key: string, known: KnownBytes, open: Opener): Promise<Entry | null> {
    misses += 1
    const entry = readWhole(known.size, open)
    const read: { entry: Promise<Entry | null> | null } = { entry }
    const { readKey = key } = known
    reads.set(readKey, read)
    entry
      .then((opened) => admit(key, opened, known))
      .catch(() => undefined)
      .finally(() => {
        reads.delete(readKey)
        read.entry = null
      })
    return entry
  }

  return {
    async open(key, known, open) {
      if ((known.size ?? 0) > maxWholeLength) return open(0)
      frequency.count(key)
      const cached = entries?.get(key) ?? reads.get(known.readKey ?? key)?.entry
      if (cached) hits += 1
      else if ((known.size ?? 0) > wholeLimit()) {
        misses += 1
        return open(0)
      }
      const entry = await (cached ?? readOnce(key, known, open))
      return entry ? openEntry(key, entry) : open(0)
    },
    openCached(key) {
      const entry = entries?.peek(key)
      if (!entry) return null
      return openEntry(key, entry)
    },
    countRequest(key) {
      frequency.count(key)
      hits += 1
      // The eviction order is that of the last requests.
      entries?.get(key)
    },
    remove: (key) => void entries?.delete(key),

    statistics: () => ({ hits, misses, size: entries?.calculatedSize ?? 0 }),
  }
}

/**
 * Frees the memory at once. Left to the garbage collector, the bytes of a few thousand cold files start a complete
 * collection, which took a third of the time of such requests. Runs in a later tick, because another request that shared the
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
async function bytesOf({ content, size, read }: OpenVariant): Promise<OwnedBytes> {
  if (content.type === 'bytes') return ownsMemory(content.bytes) ? content.bytes : withHeadRoom(content.bytes)
  const bytes = allocateWithHeadRoom(size)
  if (size > 0) await read(bytes, 0)
  return bytes
}

const ownsMemory = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength

/** The number of counters in each row, a power of two: more than the entries of a cache of the default size. */
const width = 2 ** 16
const mask = width - 1
const maxCount = 255

/** Estimates how often keys were requested lately. */
export interface RequestFrequency {
  count(key: string): void
  /** At least the true count up to 255, and rarely more. */
  of(key: string): number
}

/**
 * A count-min sketch of two rows, whose counters are halved after as many requests as a row has counters. So the memory is
 * constant, and requests of the past lose their weight (Einziger, Friedman, Manes: TinyLFU, 2017).
 */
export function createRequestFrequency(): RequestFrequency {
  const first = new Uint8Array(width)
  const second = new Uint8Array(width)
  let counted = 0

  function halve(): void {
    for (let index = 0; index < width; index += 1) {
      first[index] = (first[index] ?? 0) >>> 1
      second[index] = (second[index] ?? 0) >>> 1
    }
  }

  const read = (hash: number) => Math.min(first[hash & mask] ?? 0, second[hash >>> 16] ?? 0)

  return {
    count(key) {
      const hash = stringHash(key)
      const next = Math.min(read(hash) + 1, maxCount)
      // Only the lower counters are increased, which makes collisions cost less.
      if ((first[hash & mask] ?? 0) < next) first[hash & mask] = next
      if ((second[hash >>> 16] ?? 0) < next) second[hash >>> 16] = next
      counted += 1
      if (counted % width === 0) halve()
    },
    of: (key) => read(stringHash(key)),
  }
}
