import type { Media } from '@mediabucket/client'
import { mayHaveCameraData, readCameraData } from '../service/camera-data.ts'
import type { FileAccess } from '../service/file-access.ts'

/** A picture that the person decides about: it has a location, or could not be loaded to examine it. */
export interface LocationQuestion {
  readonly media: Media
  readonly examined: boolean
}

/** Pictures of a selection that are examined. */
const maxExamined = 100

/** Pictures that are examined at the same time. */
const parallelism = 4

/** The first picture that has a location, or else the first that could not be examined; null if there is none. Adds the others to `harmless`. */
export async function findLocated(
  media: readonly Media[],
  {
    files,
    harmless,
    closing,
  }: {
    readonly files: Pick<FileAccess, 'bytes'>
    /** The ids of pictures that need no question. */
    readonly harmless: Set<string>
    readonly closing: AbortSignal
  },
): Promise<LocationQuestion | null> {
  const waiting = media
    .filter(({ id, content_type }) => mayHaveCameraData(content_type) && !harmless.has(id))
    .slice(0, maxExamined)
  let located: Media | null = null
  let failed: Media | null = null
  const examine = async () => {
    for (let next = waiting.shift(); next && located === null; next = waiting.shift())
      try {
        const data = await readCameraData(files, next, closing)
        if (data?.location) located ??= next
        else harmless.add(next.id)
      } catch {
        failed ??= next
      }
  }
  await Promise.all(Array.from({ length: parallelism }, examine))
  if (located) return { media: located, examined: true }
  return failed && { media: failed, examined: false }
}
