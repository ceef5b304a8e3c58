import { createHash } from 'node:crypto'
import type { LocalBytes, VariantStore } from '../blobs.ts'
import { blobKey, variantFolder, variantObjectKey } from './keys.ts'
import { type ObjectCalls, UncertainOutcome } from './object-calls.ts'
import { openObject } from './open-object.ts'

/** Stores variants as objects `variants/<id>/<key>`. */
export function createS3Variants(parts: {
  readonly calls: Pick<ObjectCalls, 'put' | 'get' | 'head' | 'remove' | 'list' | 'signUrl' | 'timeouts'>
  readonly share: (key: string, size: number) => Promise<LocalBytes>
  readonly prefix: string
}): VariantStore {
  const { calls, prefix } = parts

  return {
    async store(id, key, bytes) {
      const sha256 = createHash('sha256').update(bytes).digest()
      await calls.put(variantObjectKey(prefix, id, key), bytes, sha256).catch((error: unknown) => {
        throw error instanceof UncertainOutcome ? error.cause : error
      })
    },

    async open(id, key, { pictureSize, wholeUpTo = 0 } = {}) {
      const [opened, found] = await Promise.all([
        openObject(parts, variantObjectKey(prefix, id, key), wholeUpTo),
        pictureSize === undefined ? null : calls.head(blobKey(prefix, id)),
      ])
      if (opened === null || pictureSize === undefined || found === pictureSize) return opened
      await opened.close()
      return null
    },

    async remove(id) {
      for await (const { key } of calls.list(variantFolder(prefix, id))) await calls.remove(key)
    },
  }
}
