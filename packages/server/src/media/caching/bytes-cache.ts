import { webcrypto } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { openMemoryBlob } from '../../blobs/memory-blob.ts'
import { hasHeadRoom, headRoom, withHeadRoom } from '../../core/head-room.ts'
import type { OpenVariant } from '../pictures/open-variant.ts'
import { bytesOf, type OwnedBytes } from './owned-bytes.ts'
import { createRequestFrequency } from './request-frequency.ts'

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
  readonly blob: OpenVariant
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
