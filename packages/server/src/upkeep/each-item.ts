import type { AuditedItem, CatalogAudit } from '../catalog/audit.ts'

const chunk = 500

/** All items, some at a time, each read done before the next begins: no snapshot stays open meanwhile. */
export async function* eachItem(audit: Pick<CatalogAudit, 'items'>): AsyncGenerator<AuditedItem[]> {
  let last: AuditedItem | null = null
  for (;;) {
    const items: AuditedItem[] = await audit.items(last, chunk)
    if (items.length > 0) yield items
    if (items.length < chunk) return
    last = items.at(-1) ?? null
  }
}
