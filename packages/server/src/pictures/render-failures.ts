import { LRUCache } from 'lru-cache'
import { Fault } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { failureKeyOf, type PictureTool, toolFor, type VariantKey } from '../core/variants.ts'
import type { VariantStore } from '../storage/blobs/blobs.ts'
import type { Item } from '../storage/catalog/records.ts'

/** Each kind of failure, and the milliseconds until a retry. A damaged picture stays damaged; an exceeded limit may be due to load. */
const retryDelays = { damaged: 600_000, 'unknown-form': 600_000, 'too-hard': 60_000 } as const
export type FailureKind = keyof typeof retryDelays

const details: Readonly<Record<FailureKind, string>> = {
  damaged: 'The picture is damaged, or has more pixels than the service takes on.',
  'unknown-form':
    'The picture has a form that the service does not decode, such as a TIFF file with the compression Zstandard or with Lab colours.',
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
  readonly onLostFailure: (id: ItemId, error: unknown) => void
}

/** The failed renders of items. They are stored beside their variants, so that a restart does not try them again. */
export interface RenderFailures {
  /** Why the item must not be tried now; null if it may be. */
  reasonOf(item: Item): Promise<string | null>
  /** Returns the reason. */
  add(item: Item, kind: FailureKind): Promise<string>
}

/** Failures in memory. */
const cacheSize = 10_000
/** Bytes of a stored failure. */
const maxLength = 64

export function createRenderFailures(parts: FailureParts): RenderFailures {
  const { variants } = parts.blobs
  // With `max` it would allocate all places at the start.
  const cache = new LRUCache<ItemId, Failure>({ maxSize: cacheSize, sizeCalculation: () => 1 })
  const keys = new Map<PictureTool | null, Promise<VariantKey>>()

  function keyFor({ contentType }: Item): Promise<VariantKey> {
    const tool = toolFor(contentType)
    const known = keys.get(tool)
    if (known !== undefined) return known
    const key = parts.rendererOf(tool).then(failureKeyOf)
    keys.set(tool, key)
    // The version of the program could not be read; the next failure tries again.
    key.catch(() => keys.delete(tool))
    return key
  }

  async function load(item: Item): Promise<Failure | null> {
    const opened = await variants.open(item.id, await keyFor(item), { wholeUpTo: maxLength })
    if (opened === null) return null
    try {
      const bytes = Buffer.alloc(Math.min(opened.size, maxLength))
      await opened.read(bytes, 0)
      return parse(bytes.toString('latin1'))
    } finally {
      await opened.close()
    }
  }

  async function find(item: Item): Promise<Failure | null> {
    try {
      const failure = cache.get(item.id) ?? (await load(item))
      if (failure) cache.set(item.id, failure)
      return failure
    } catch (error) {
      if (isStopping(error)) throw error
      // The render is tried.
      parts.onLostFailure(item.id, error)
      return null
    }
  }

  return {
    async reasonOf(item) {
      const failure = await find(item)
      return failure && !isOver(failure) ? details[failure.kind] : null
    },

    async add(item, kind) {
      const known = await find(item)
      // Several variants can fail at the same time.
      if (known && !isOver(known)) return details[known.kind]
      const failure = { kind, retryAt: known ? null : Date.now() + retryDelays[kind] }
      cache.set(item.id, failure)
      try {
        const text = `${failure.kind} ${failure.retryAt ?? 'never'}`
        if (parts.hasRoom()) await variants.store(item.id, await keyFor(item), Buffer.from(text))
      } catch (error) {
        if (!isStopping(error)) parts.onLostFailure(item.id, error)
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
  const [, kind, time] = /^(damaged|unknown-form|too-hard) (never|\d{1,15})$/.exec(text) ?? []
  if (kind !== 'damaged' && kind !== 'unknown-form' && kind !== 'too-hard') return null
  return { kind, retryAt: time === 'never' ? null : Number(time) }
}
