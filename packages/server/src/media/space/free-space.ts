import { Fault } from '../../core/fault.ts'
import type { FileSystemSpace } from '../../core/file-system-space.ts'
import type { PeerCounts } from '../../core/peer-counts.ts'

/** The free space that one upload has claimed. */
export interface SpaceClaim {
  /** Call it for received bytes. Throws Fault `storage-full`. */
  arrived(bytes: number): void
  release(): void
}

/** The free space of the data's file systems, minus the claims of uploads (docs/interface.md S4). */
export interface FreeSpace {
  /** Reads the file systems now. */
  read(): readonly FileSystemSpace[]
  /** False if every upload would be refused. Reads the file systems now. */
  hasRoom(): boolean
  /** Claims space for an upload of `declared` bytes, 0 if its size is unknown. Throws Fault `storage-full`. */
  claim(declared: number): SpaceClaim
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

/** Upper bound for the small files of uploads in progress, which the catalog will store: receive-files.ts. Bytes. */
const maxInline = 16 * 1024 * 1024

/** Upper bound for an item's rows and index entries, in the write-ahead log and the database. Bytes. */
const rowSize = 65_536

export function createFreeSpace(parts: {
  readonly readSpaces: () => readonly FileSystemSpace[]
  /** Milliseconds. */
  readonly now: () => number
  readonly peers: PeerCounts
}): FreeSpace {
  const { peers } = parts
  let spaces: readonly FileSystemSpace[] = []
  let readAt = Number.NEGATIVE_INFINITY
  let arrivedSince = 0
  /** The received bytes for which the reading is reused. */
  let reusedFor = 0
  /** Bytes that uploads in progress will still write, in all processes. */
  let outstanding = 0
  const key = ''
  peers.subscribe('claimed-bytes', (_key, change) => {
    outstanding += change
  })
  const changeOutstanding = (change: number) => {
    outstanding += change
    peers.add('claimed-bytes', key, change)
  }

  function read(): readonly FileSystemSpace[] {
    spaces = parts.readSpaces()
    readAt = parts.now()
    arrivedSince = 0
    // Infinite if no file system is this machine's, and then nothing is refused.
    const room = Math.min(...spaces.map(({ free, reserve }) => free - reserve)) - outstanding
    reusedFor = Math.max(minReadingBytes, room / readingShare)
    return spaces
  }

  const fits = (): boolean => {
    const isStale = parts.now() - readAt >= readingLifetime || arrivedSince >= reusedFor
    if (isStale) read()
    if (fitsReading()) return true
    // Space may have been freed since.
    if (!isStale) read()
    return fitsReading()
  }

  const fitsReading = (): boolean => {
    // Bytes received since the reading may be on the disk or not.
    const expected = outstanding + arrivedSince
    return spaces.every(
      ({ stores, free, reserve }) =>
        free - (stores === 'catalog' ? rowSize + Math.min(expected, maxInline) : expected) >= reserve,
    )
  }

  return {
    read,
    hasRoom() {
      read()
      return fits()
    },
    claim(declared) {
      let arrived = 0
      let mine = 0
      const release = () => {
        changeOutstanding(-mine)
        mine = 0
      }
      const take = () => {
        const rest = Math.max(declared, arrived) - Math.max(0, arrived - unwritten)
        changeOutstanding(rest - mine)
        mine = rest
        let accepted = false
        try {
          accepted = fits()
        } finally {
          if (!accepted) release()
        }
        if (!accepted) throw storageFull()
      }
      take()
      return {
        arrived(bytes) {
          arrived += bytes
          arrivedSince += bytes
          take()
        },
        release,
      }
    },
  }
}

const storageFull = () =>
  new Fault('storage-full', 'The upload would leave less free space than the service reserves on its disk.')
