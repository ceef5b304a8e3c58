import type { Media } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { mayHaveCameraData, readCameraData } from '../service/camera-data.ts'
import type { FileAccess } from '../service/file-access.ts'
import { isPrivate } from '../service/urls.ts'

/** Asks before the links or the bytes of pictures with a location are shared. */
export interface LocationWarning {
  /** The picture that the question is about; null while there is no question. */
  readonly pending: ReadonlySignal<Media | null>
  /** Whether the files may be shared: none of them has a location, or the person confirms it. Asks once for each picture. */
  allows(media: readonly Media[]): Promise<boolean>
  confirm(): void
  cancel(): void
}

/** Pictures of a selection that are examined. */
const maxExamined = 100

/** Pictures that are examined at the same time. */
const parallelism = 4

export function createLocationWarning(renew: FileAccess['renew'], closing: AbortSignal): LocationWarning {
  const pending = signal<Media | null>(null)
  const harmless = new Set<string>()
  let answer: ((allowed: boolean) => void) | null = null

  const decide = (allowed: boolean) => {
    if (allowed && pending.value) harmless.add(pending.value.id)
    pending.value = null
    answer?.(allowed)
    answer = null
  }

  /** A signed URL may have expired. */
  const read = async (media: Media) =>
    readCameraData((isPrivate(media) && (await renew(media.id))) || media, closing)

  /** The first picture that has a location; null if none is found. */
  async function findLocation(media: readonly Media[]): Promise<Media | null> {
    const pictures = media.filter(
      ({ id, content_type }) => mayHaveCameraData(content_type) && !harmless.has(id),
    )
    const waiting = pictures.slice(0, maxExamined)
    let found: Media | null = null
    const examine = async () => {
      for (let next = waiting.shift(); next && found === null; next = waiting.shift()) {
        // A picture that cannot be read is shared without a question.
        const data = await read(next).catch(() => null)
        if (data?.location) found ??= next
        else harmless.add(next.id)
      }
    }
    await Promise.all(Array.from({ length: parallelism }, examine))
    return found
  }

  return {
    pending,
    async allows(media) {
      const found = await findLocation(media)
      if (found === null) return true
      decide(false)
      pending.value = found
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    confirm: () => decide(true),
    cancel: () => decide(false),
  }
}
