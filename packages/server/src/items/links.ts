import { Fault } from '../core/faults.ts'
import type { Actor } from '../core/token-rules.ts'
import type { AuditEvent } from '../storage/catalog/audit/audit-events.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'

/** What an event has of an item. */
type LinkedItem = Pick<Item, 'id' | 'bucketId' | 'filename' | 'size'>

/** What the links of a request are for. `expires` is in seconds since 1970. */
interface CreatedLinks {
  readonly expires: number
  readonly variant: string | null
  readonly isDownload: boolean
}

export type RecordLinks = ReturnType<typeof recordLinksOperation>

/**
 * Records the links of a request that have a lifetime of their own, as one event (docs/interface.md Y1). Throws Fault `storage-full` if the
 * disk of the catalog has no space for events: unlike downloads, links are not created without them.
 */
export function recordLinksOperation(parts: {
  readonly catalog: Pick<Catalog, 'recordEvents'>
  /** Whether the disk of the catalog has space for events that clients can cause in any number. */
  readonly hasRoom: () => boolean
}) {
  return async function recordLinks(
    by: Actor,
    items: readonly LinkedItem[],
    links: CreatedLinks,
  ): Promise<void> {
    const [first] = items
    if (first === undefined) return
    if (!parts.hasRoom())
      throw new Fault(
        'storage-full',
        'The disk has too little free space for the event of these links in the audit log.',
      )
    await parts.catalog.recordEvents([
      items.length === 1 ? linkEvent(by, first, links) : linksEvent(by, first, items, links),
    ])
  }
}

const linkEvent = (
  by: Actor,
  { bucketId, id, filename, size }: LinkedItem,
  links: CreatedLinks,
): AuditEvent => ({
  action: 'link',
  by,
  bucketId,
  target: id,
  name: filename,
  size,
  detail: detailOf(links),
})

const linksEvent = (
  by: Actor,
  { bucketId }: LinkedItem,
  items: readonly LinkedItem[],
  links: CreatedLinks,
): AuditEvent => ({
  action: 'link',
  by,
  bucketId,
  target: null,
  detail: { ...detailOf(links), items: items.map(({ id }) => id) },
})

const detailOf = ({ expires, variant, isDownload }: CreatedLinks) => ({
  expires_at: new Date(expires * 1000).toISOString(),
  variant,
  download: isDownload,
})
