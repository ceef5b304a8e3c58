import { LRUCache } from 'lru-cache'
import type { VariantStore } from '../../blobs/blobs.ts'
import type { Media } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { type PictureTool, toolFor } from '../../core/picture-tools.ts'
import { failureKeyOf, type VariantKey } from '../../core/variant.ts'

/** Each kind of failure, and the milliseconds until a retry. A damaged picture stays damaged; an exceeded limit may be due to load. */
const retryDelays = { damaged: 600_000, 'too-hard': 60_000 } as const
type FailureKind = keyof typeof retryDelays

const details: Readonly<Record<FailureKind, string>> = {
  damaged: 'The picture is damaged, or has more pixels than the service takes on.',
  'too-hard': 'The picture takes more time or memory than the service allows.',
}

interface Failure {
  readonly kind: FailureKind
  /** When the item may be tried again, in milliseconds since 1970; null after its second failure. */
  readonly retryAt: number | null
}

export interface FailureParts {
  readonly blobs: { readonly variants: Pick<VariantStore, 'open' | 'store'> }
  /** What renders the pictures of a program, or of none, with its version and limits. Failures of others do not count. May reject. */
  readonly rendererOf: (tool: PictureTool | null) => Promise<string>
  readonly hasRoom: () => boolean
  /** A failed render could not be stored or read. Its item may be tried again too early. */
  readonly onLostFailure: (id: MediaId, error: unknown) => void
}

/** The failed renders of items. They are stored beside their variants, so that a restart does not try them again. */
export interface RenderFailures {
  /** Why the item must not be tried now; null if it may be. */
  reasonOf(media: Media): Promise<string | null>
  /** Returns the reason. */
  add(media: Media, kind: FailureKind): Promise<string>
}

/** Failures in memory. */
const cacheSize = 10_000
/** Bytes of a stored failure. */
const maxLength = 64

export function createRenderFailures(parts: FailureParts): RenderFailures {
  const { variants } = parts.blobs
  const cache = new LRUCache<MediaId, Failure>({ max: cacheSize })
  const keys = new Map<PictureTool | null, Promise<VariantKey>>()

  function keyFor({ contentType }: Media): Promise<VariantKey> {
    const tool = toolFor(contentType)
    const known = keys.get(tool)
    if (known !== undefined) return known
    const key = parts.rendererOf(tool).then(failureKeyOf)
    keys.set(tool, key)
    // The version of the program could not be read; the next failure tries again.
    key.catch(() => keys.delete(tool))
    return key
  }

  async function load(media: Media): Promise<Failure | null> {
    const opened = await variants.open(media.id, await keyFor(media), { wholeUpTo: maxLength })
    if (opened === null) return null
    try {
      const bytes = Buffer.alloc(Math.min(opened.size, maxLength))
      await opened.read(bytes, 0)
      return parse(bytes.toString('latin1'))
    } finally {
      await opened.close()
    }
  }

  async function find(media: Media): Promise<Failure | null> {
    try {
      const failure = cache.get(media.id) ?? (await load(media))
      if (failure) cache.set(media.id, failure)
      return failure
    } catch (error) {
      if (isStopping(error)) throw error
      // The render is tried.
      parts.onLostFailure(media.id, error)
      return null
    }
  }

  return {
    async reasonOf(media) {
      const failure = await find(media)
      return failure && !isOver(failure) ? details[failure.kind] : null
    },

    async add(media, kind) {
      const known = await find(media)
      // Several variants can fail at the same time.
      if (known && !isOver(known)) return details[known.kind]
      const failure = { kind, retryAt: known ? null : Date.now() + retryDelays[kind] }
      cache.set(media.id, failure)
      try {
        const text = `${failure.kind} ${failure.retryAt ?? 'never'}`
        if (parts.hasRoom()) await variants.store(media.id, await keyFor(media), Buffer.from(text))
      } catch (error) {
        if (!isStopping(error)) parts.onLostFailure(media.id, error)
      }
      return details[kind]
    },
  }
}

/** A time far beyond the delay is of a clock that was ahead. */
function isOver({ kind, retryAt }: Failure): boolean {
  if (retryAt === null) return false
  const remaining = retryAt - Date.now()
  return remaining <= 0 || remaining > 2 * retryDelays[kind]
}

const isStopping = (error: unknown): boolean => error instanceof Fault && error.code === 'shutting-down'

function parse(text: string): Failure | null {
  const [, kind, time] = /^(damaged|too-hard) (never|\d{1,15})$/.exec(text) ?? []
  if (kind !== 'damaged' && kind !== 'too-hard') return null
  return { kind, retryAt: time === 'never' ? null : Number(time) }
}
