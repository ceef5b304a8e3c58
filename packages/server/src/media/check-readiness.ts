import type { Catalog } from '../catalog/catalog.ts'
import type { FreeSpace } from './space/free-space.ts'

/** Why reads or writes are not possible. */
type ReadinessReason = 'catalog-unreadable' | 'catalog-unwritable' | 'bytes-unavailable' | 'disk-full'

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
  /** False while the store does not hold the bytes of the catalog, or cannot be reached. */
  readonly hasBytes: () => Promise<boolean>
}): () => Promise<Readiness> {
  const { catalog, space, hasBytes } = parts
  let writing: Promise<boolean> | null = null

  /** Concurrent calls share one check, so that checks do not accumulate while the catalog is locked. */
  function canWrite(): Promise<boolean> {
    writing ??= catalog
      .checkWrites()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        writing = null
      })
    return writing
  }

  return async () => {
    const reasons: ReadinessReason[] = []
    const canRead = catalog.checkReads().then(
      () => true,
      () => false,
    )
    const reads = await within(checkTimeout, canRead)
    if (!reads) reasons.push('catalog-unreadable')
    if (!(await within(checkTimeout, canWrite()))) reasons.push('catalog-unwritable')
    if (!(await within(bytesTimeout, hasBytes()))) reasons.push('bytes-unavailable')
    else if (!space.hasRoom()) reasons.push('disk-full')
    return { reads: !reasons.some((reason) => stopsReads.has(reason)), writes: reasons.length === 0, reasons }
  }
}

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
