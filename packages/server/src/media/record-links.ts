import type { Catalog } from '../catalog/catalog.ts'
import type { Media } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'

/**
 * Records links of items that have a lifetime of their own (docs/interface.md Y1), if the audit log is on. `expires` is in seconds since
 * 1970.
 */
export async function recordLinks(
  catalog: Pick<Catalog, 'recordEvents'>,
  by: Actor,
  items: readonly Media[],
  { expires, variant, isDownload }: { expires: number; variant: string | null; isDownload: boolean },
): Promise<void> {
  const detail = { expires_at: new Date(expires * 1000).toISOString(), variant, download: isDownload }
  await catalog.recordEvents(
    items.map(({ id: target, bucketId, filename: name, size }) => {
      return { action: 'link', by, bucketId, target, name, size, detail }
    }),
  )
}
