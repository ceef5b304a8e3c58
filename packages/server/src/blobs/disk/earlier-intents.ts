import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { isMediaId, type MediaId } from '../../core/media-id.ts'
import type { BlobRecovery } from '../blobs.ts'

/** Earlier versions recorded their commits as empty files in `pending/`, named by an id or by the directory of its file. */
export function createEarlierIntents(
  pending: string,
  root: string,
): Pick<BlobRecovery, 'earlierIntents' | 'clearEarlierIntents'> {
  return {
    async earlierIntents() {
      const names = await namesIn(pending)
      const ids = await Promise.all(
        names.map((name) => (isMediaId(name) ? [name] : namesIn(join(root, name)))),
      )
      return ids.flat().filter((name): name is MediaId => isMediaId(name))
    },
    clearEarlierIntents: () => rm(pending, { recursive: true, force: true }),
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return []
    throw error
  }
}
