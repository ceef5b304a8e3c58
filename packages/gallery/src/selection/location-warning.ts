import type { Media } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { FileAccess } from '../service/file-access.ts'
import type { LocationQuestion } from './located-pictures.ts'

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

export function createLocationWarning(
  files: Pick<FileAccess, 'bytes'>,
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

  return {
    pending,
    async allows(media) {
      const { findLocated } = await import('./located-pictures.ts')
      const question = await findLocated(media, { files, harmless, closing })
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
