import type { BlobAudit } from '../blobs/audit.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import type { Findings } from './findings.ts'

/**
 * Reports bytes in the catalog that no item has; a repair moves them to `lost+found/`. They are removed with their rows, so
 * only a damaged catalog has such bytes, and no item can get them later.
 */
export async function checkContents(parts: {
  readonly audit: Pick<CatalogAudit, 'orphanedContents' | 'content' | 'removeContents'>
  readonly blobAudit: Pick<BlobAudit, 'setAside'>
  readonly findings: Findings
  readonly repair: boolean
}): Promise<void> {
  const { audit, blobAudit, findings, repair } = parts
  for (const id of await audit.orphanedContents()) {
    const bytes = repair ? await audit.content(id) : null
    if (bytes === null) {
      findings.add('content-orphaned', `content ${id} of catalog.db`)
      continue
    }
    const path = await blobAudit.setAside(`content.${id}`, bytes)
    await audit.removeContents([id])
    findings.add('content-orphaned', `content ${id} of catalog.db → ${path}`)
    findings.repaired('content-orphaned')
  }
}
