import type { Media } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { mayHaveCameraData, readCameraData } from '../service/camera-data.ts'
import type { FileAccess } from '../service/file-access.ts'
import { isPrivate } from '../service/urls.ts'

/** A picture that the person decides about: it has a location, or could not be loaded to examine it. */
interface LocationQuestion {
  readonly media: Media
  readonly examined: boolean
}

/** Asks before the links or the bytes of pictures that have, or may have, a location are shared. */
export interface LocationWarning {
  /** Null while there is no question. */
  readonly pending: ReadonlySignal<LocationQuestion | null>
  /**
   * Whether the files may be shared: none of them has a location, or the person confirms it. Asks once for each picture with a location,
   * and each time about one that could not be examined.
   */
  allows(media: readonly Media[]): Promise<boolean>
  confirm(): void
  cancel(): void
}

/** Pictures of a selection that are examined. */
const maxExamined = 100

/** Pictures that are examined at the same time. */
const parallelism = 4

export function createLocationWarning(
  files: Pick<FileAccess, 'bytes' | 'renew'>,
  closing: AbortSignal,
): LocationWarning {
  const pending = signal<LocationQuestion | null>(null)
  const harmless = new Set<string>()
  let answer: ((allowed: boolean) => void) | null = null

  const decide = (allowed: boolean) => {
    if (allowed && pending.value?.examined) harmless.add(pending.value.media.id)
    pending.value = null
    answer?.(allowed)
    answer = null
  }

  /** A signed URL may have expired. */
  const read = async (media: Media) =>
    readCameraData(files, (isPrivate(media) && (await files.renew(media.id))) || media, closing)

  /** The first picture that has a location, or else the first that could not be examined; null if there is none. */
  async function findQuestion(media: readonly Media[]): Promise<LocationQuestion | null> {
    const pictures = media.filter(
      ({ id, content_type }) => mayHaveCameraData(content_type) && !harmless.has(id),
    )
    const waiting = pictures.slice(0, maxExamined)
    let located: Media | null = null
    let failed: Media | null = null
    const examine = async () => {
      for (let next = waiting.shift(); next && located === null; next = waiting.shift())
        try {
          const data = await read(next)
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

  return {
    pending,
    async allows(media) {
      const question = await findQuestion(media)
      if (question === null) return true
      if (closing.aborted) return false
      decide(false)
      pending.value = question
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    confirm: () => decide(true),
    cancel: () => decide(false),
  }
}
