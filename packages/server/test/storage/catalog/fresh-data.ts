import { onTestFinished } from 'vitest'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'

/** New, empty data. Each call of `open` opens it as another process does. Deleted when the test ends. */
interface FreshData {
  open(): Promise<Catalog>
}

/** Creates new data; called within a test. */
export type Fresh = () => Promise<FreshData>

export async function openOne(fresh: Fresh): Promise<Catalog> {
  const catalog = await (await fresh()).open()
  onTestFinished(() => catalog.close())
  return catalog
}

/** Two catalogs on the same data, as in two processes. */
export async function openTwo(fresh: Fresh): Promise<{ catalog: Catalog; other: Catalog }> {
  const data = await fresh()
  const catalog = await data.open()
  onTestFinished(() => catalog.close())
  const other = await data.open()
  onTestFinished(() => other.close())
  return { catalog, other }
}
