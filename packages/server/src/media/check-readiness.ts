import type { BlobStore } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { FreeSpace } from './space/free-space.ts'

/** Why reads or writes are not possible. */
type ReadinessReason =
  | 'catalog-unreadable'
  | 'catalog-unwritable'
  | 'bytes-unavailable'
  | 'bytes-unwritable'
  | 'disk-full'

/** Whether reads and writes are possible now (docs/interface.md O1). Deletes also work on a full disk. */
export interface Readiness {
  readonly reads: boolean
  readonly writes: boolean
  readonly reasons: readonly ReadinessReason[]
}

/** Milliseconds after which a catalog that does not respond, or that another process has locked, counts as not usable. */
const checkTimeout = 2_000

/** Milliseconds after which a store of bytes that does not respond counts as unavailable. */
const bytesTimeout = 2_000

const stopsReads: ReadonlySet<ReadinessReason> = new Set(['catalog-unreadable', 'bytes-unavailable'])

export function checkReadinessOperation(parts: {
  readonly catalog: Pick<Catalog, 'checkReads' | 'checkWrites'>
  readonly space: Pick<FreeSpace, 'hasRoom'>
  /** `isReachable` is false while the store does not hold the bytes of the catalog, or cannot be reached. */
  readonly blobs: Pick<BlobStore, 'isReachable' | 'checkWrites'>
}) {
  const { catalog, space, blobs } = parts
  const canWriteRows = createWriteCheck(catalog.checkWrites)
  const canWriteBytes = createWriteCheck(blobs.checkWrites)

  return async function checkReadiness(): Promise<Readiness> {
    const reasons: ReadinessReason[] = []
    const canRead = catalog.checkReads().then(
      () => true,
      () => false,
    )
    const reads = await within(checkTimeout, canRead)
    if (!reads) reasons.push('catalog-unreadable')
    const hasBytes = await within(bytesTimeout, blobs.isReachable())
    // A full disk is not written to: the space that is left is for deletions.
    const isFull = hasBytes && !space.hasRoom()
    const rows = isFull || within(checkTimeout, canWriteRows())
    const bytes = isFull || !hasBytes || within(bytesTimeout, canWriteBytes())
    if (!(await rows)) reasons.push('catalog-unwritable')
    if (!hasBytes) reasons.push('bytes-unavailable')
    else if (isFull) reasons.push('disk-full')
    else if (!(await bytes)) reasons.push('bytes-unwritable')
    return { reads: !reasons.some((reason) => stopsReads.has(reason)), writes: reasons.length === 0, reasons }
  }
}

/**
 * Returns a function that runs the check and reports whether it succeeded. Concurrent calls share one check, so that checks do not accumulate
 * while the catalog is locked. A success counts for a second, because anyone can call it.
 */
function createWriteCheck(check: () => Promise<void>): () => Promise<boolean> {
  let running: Promise<boolean> | null = null
  let succeededAt = Number.NEGATIVE_INFINITY

  async function run(): Promise<boolean> {
    try {
      await check()
      succeededAt = performance.now()
      return true
    } catch {
      return false
    } finally {
      running = null
    }
  }

  return async () => {
    if (performance.now() - succeededAt < successLifetime) return true
    running ??= run()
    return running
  }
}

/** Milliseconds for which a successful write counts. */
const successLifetime = 1_000

async function within(time: number, check: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, time, false)
  })
  try {
    return await Promise.race([check, late])
  } finally {
    clearTimeout(timer)
  }
}
