import { existsSync, statfsSync, statSync } from 'node:fs'
import { Fault } from '../core/faults.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import type { SpacePlaces } from '../storage/engines.ts'

/** A file system on which data are stored. Bytes. */
export interface FileSystemSpace {
  readonly stores: 'blobs' | 'catalog' | 'blobs and catalog'
  readonly free: number
  readonly total: number
  /** Uploads leave at least this much free. */
  readonly reserve: number
}

/** The default of the reserve: a tenth of the file system, 64 MB at the most. Bytes. */
const defaultReserve = (total: number): number => Math.min(64e6, Math.floor(total / 10))

/**
 * Returns a function that reads the free space of the file systems of bytes and rows, which may be one, as far as they are on this machine.
 * It is synchronous: it takes a few microseconds and does not access the disk. `minFree` is null for the default of the reserve.
 */
export function createSpaceReader(
  { blobs, catalog }: SpacePlaces,
  minFree: number | null,
): () => FileSystemSpace[] {
  function spaceAt(path: string, stores: FileSystemSpace['stores'], held: number) {
    const { bsize, bavail, blocks } = statfsSync(path)
    const total = blocks * bsize
    return { stores, free: bavail * bsize + held, total, reserve: minFree ?? defaultReserve(total) }
  }
  return () => {
    // While the disk of the bytes is not mounted, the store refuses uploads (docs/interface.md S9).
    const bytes = blobs !== null && existsSync(blobs) ? blobs : null
    const rows = catalog && { path: catalog.directory(), held: catalog.held() }
    if (bytes !== null && rows !== null && statSync(bytes).dev === statSync(rows.path).dev)
      return [spaceAt(bytes, 'blobs and catalog', rows.held)]
    return [
      ...(bytes === null ? [] : [spaceAt(bytes, 'blobs', 0)]),
      ...(rows === null ? [] : [spaceAt(rows.path, 'catalog', rows.held)]),
    ]
  }
}

/** A reading is reused for at most 100 ms, in which other processes write too. */
const readingLifetime = 100

/**
 * Within that time, a reading is also reused for at most a hundredth of the space that is not claimed, or 1 MiB if that is more. The bytes of
 * streamed uploads count. This process subtracts them from the reading, but not what they add to the log and the rows.
 */
const readingShare = 100
const minReadingBytes = 1024 * 1024

/** Received bytes of an upload that may not be on the disk yet: small files are held in memory. */
const unwritten = 65_536

/** Upper bound for the small files of uploads in progress, which the catalog will store: uploads/received-files.ts. Bytes. */
const maxInline = 16 * 1024 * 1024

/** Upper bound for an item's rows and index entries, in the write-ahead log and the database. Bytes. */
const rowSize = 65_536

/** The free space of the data's file systems, minus the claims of uploads (docs/interface.md S4). */
export class FreeSpace {
  readonly #readSpaces: () => readonly FileSystemSpace[]
  readonly #now: () => number
  readonly #peers: PeerCounts | null
  #spaces: readonly FileSystemSpace[] = []
  #readAt = Number.NEGATIVE_INFINITY
  /** Bytes that have arrived since the reading, and those for which it is reused. */
  #arrivedSince = 0
  #reusedFor = 0
  /** Bytes that uploads in progress will still write, in all processes. */
  #outstanding = 0

  constructor(parts: {
    readonly readSpaces: () => readonly FileSystemSpace[]
    /** Milliseconds of a clock that nobody sets; tests replace it. */
    readonly now?: () => number
    /** Null for a service of one process. */
    readonly peers: PeerCounts | null
  }) {
    this.#readSpaces = parts.readSpaces
    this.#now = parts.now ?? (() => performance.now())
    this.#peers = parts.peers
    this.#peers?.subscribe('claimed-bytes', (_key, change) => {
      this.#outstanding += change
    })
  }

  /** Reads the file systems now. */
  read(): readonly FileSystemSpace[] {
    this.#spaces = this.#readSpaces()
    this.#readAt = this.#now()
    this.#arrivedSince = 0
    // Infinite if no file system is this machine's, and then nothing is refused.
    const room = Math.min(...this.#spaces.map(({ free, reserve }) => free - reserve)) - this.#outstanding
    this.#reusedFor = Math.max(minReadingBytes, room / readingShare)
    return this.#spaces
  }

  /** False if every upload would be refused. Reads the file systems now. */
  hasRoom(): boolean {
    this.read()
    return this.fits()
  }

  /** Claims space for an upload of `declared` bytes, 0 if its size is unknown. Throws Fault `storage-full`. */
  claim(declared: number): SpaceClaim {
    return new SpaceClaim(this, declared)
  }

  /** Counts bytes that the disk may have or not. */
  addArrived(bytes: number): void {
    this.#arrivedSince += bytes
  }

  changeOutstanding(change: number): void {
    this.#outstanding += change
    this.#peers?.add('claimed-bytes', '', change)
  }

  /** Whether what is outstanding fits. */
  fits(): boolean {
    const isStale = this.#now() - this.#readAt >= readingLifetime || this.#arrivedSince >= this.#reusedFor
    if (isStale) this.read()
    if (this.#fitsReading()) return true
    // Space may have been freed since.
    if (!isStale) this.read()
    return this.#fitsReading()
  }

  #fitsReading(): boolean {
    // Bytes received since the reading may be on the disk or not.
    const expected = this.#outstanding + this.#arrivedSince
    return this.#spaces.every(
      ({ stores, free, reserve }) =>
        free - (stores === 'catalog' ? rowSize + Math.min(expected, maxInline) : expected) >= reserve,
    )
  }
}

/** The free space that one upload has claimed. */
export class SpaceClaim {
  readonly #space: FreeSpace
  readonly #declared: number
  #arrived = 0
  /** Bytes of the claim that will still be written. */
  #mine = 0

  /** Throws Fault `storage-full`. */
  constructor(space: FreeSpace, declared: number) {
    this.#space = space
    this.#declared = declared
    this.#take()
  }

  /** Call it for received bytes. Throws Fault `storage-full`. */
  arrived(bytes: number): void {
    this.#arrived += bytes
    this.#space.addArrived(bytes)
    this.#take()
  }

  release(): void {
    this.#space.changeOutstanding(-this.#mine)
    this.#mine = 0
  }

  #take(): void {
    const rest = Math.max(this.#declared, this.#arrived) - Math.max(0, this.#arrived - unwritten)
    this.#space.changeOutstanding(rest - this.#mine)
    this.#mine = rest
    let accepted = false
    try {
      accepted = this.#space.fits()
    } finally {
      if (!accepted) this.release()
    }
    if (!accepted) throw storageFull()
  }
}

const storageFull = () =>
  new Fault('storage-full', 'The upload would leave less free space than the service reserves on its disk.')

/**
 * Returns a check that calls `onFull` when a disk becomes too full for uploads, and `onFreed` when all disks have enough space again. If
 * they have, the check also recreates the ballast.
 */
export function createFreeSpaceMonitor(parts: {
  readonly space: Pick<FreeSpace, 'read'>
  /** Creates the ballast on the disk of the catalog, which has this reserve. Bytes. */
  readonly ensureBallast: (reserve: number) => Promise<void>
  readonly onFull: (full: readonly FileSystemSpace[]) => void
  readonly onFreed: () => void
}): () => Promise<void> {
  let isFull = false
  return async () => {
    const spaces = parts.space.read()
    const full = spaces.filter(({ free, reserve }) => free < reserve)
    if (full.length > 0 && !isFull) parts.onFull(full)
    if (full.length === 0 && isFull) parts.onFreed()
    isFull = full.length > 0
    const catalog = spaces.find(({ stores }) => stores !== 'blobs')
    if (!isFull && catalog) await parts.ensureBallast(catalog.reserve)
  }
}

/** Events that clients can cause in any number leave this multiple of the space that uploads leave, so that they do not use the space of uploads. */
const eventReserveFactor = 2

/** Whether the disk of the catalog has space for events of downloads and links (docs/interface.md Y1, Y8). */
export const hasRoomForEvents = (spaces: readonly FileSystemSpace[]): boolean =>
  spaces.every(({ stores, free, reserve }) => stores === 'blobs' || free >= eventReserveFactor * reserve)
