import type { BucketId, Catalog } from '../catalog/catalog.ts'
import { type Page, type PageForm, pageObject } from '../core/page.ts'

/** A page and the revision of the bucket that it shows. */
export interface Listing {
  readonly revision: number
  readonly page: Page
}

/** Lists page `page` (from 1) of a bucket, all of it from one snapshot (docs/interface.md L4). */
export function createListMedia(parts: { catalog: Catalog; form: PageForm }) {
  const { catalog, form } = parts
  return async (bucketId: BucketId, page: number): Promise<Listing> => {
    const { revision, total, rows } = await catalog.page(bucketId, page)
    return { revision, page: pageObject(form, page, total, rows) }
  }
}
