import { isOutage } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { runInSteps, throwFailures } from '../core/tasks.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'

/** Uploads that one step of their removal reads. */
const uploadsPerStep = 100

type Expired = Awaited<ReturnType<Catalog['expiredMultiparts']>>

/**
 * Removes expired uploads in parts with their parts (docs/interface.md MU4), and the records of completed ones. Returns how many. Passes by uploads whose
 * removal fails, and throws after the work; ends at an outage (core/faults.ts).
 */
export async function removeExpiredMultiparts(parts: {
  readonly catalog: Pick<Catalog, 'expiredMultiparts' | 'removeMultipart'>
  readonly deleteLater: (ids: readonly ItemId[]) => void
  readonly now: () => number
  readonly isStopping?: () => boolean
}): Promise<number> {
  const { catalog, deleteLater, now, isStopping = () => false } = parts
  const failures: unknown[] = []
  let removed = 0
  let last: Expired[number] | null = null
  await runInSteps(async () => {
    const at = now()
    const expired: Expired = await catalog.expiredMultiparts(at, uploadsPerStep, last)
    for (const { bucketId, id } of expired) {
      if (isStopping()) break
      try {
        const ids = await catalog.removeMultipart(bucketId, id, at)
        if (ids !== null) removed += 1
        deleteLater(ids ?? [])
      } catch (error) {
        if (isOutage(error)) throw error
        failures.push(error)
      }
    }
    last = expired.at(-1) ?? null
    return expired.length === uploadsPerStep
  }, isStopping)
  throwFailures(failures, 'the removal of expired uploads in parts')
  return removed
}
