import { databaseName, openUnfinishedStore } from './unfinished-store.ts'

/**
 * Whether a bucket has unfinished uploads from before the browser was closed. Looked up here, so that the uploader is
 * loaded for them and not otherwise; false where it cannot be told.
 */
export async function hasUnfinishedUploads(bucket: string): Promise<boolean> {
  try {
    const all = await indexedDB.databases()
    if (!all.some(({ name }) => name === databaseName)) return false
    return (await openUnfinishedStore(bucket, '').all()).length > 0
  } catch {
    return false
  }
}
