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

/** Failures in memory. */
const cacheSize = 10_000
/** Bytes of a stored failure. */
const maxLength = 64

/** The failed renders of items. They are stored beside their variants, so that a restart does not try them again. */
export class RenderFailures {
  readonly #parts: FailureParts
  // With `max` it would allocate all places at the start.
  readonly #cache = new LRUCache<ItemId, Failure>({ maxSize: cacheSize, sizeCalculation: () => 1 })
  readonly #keys = new Map<PictureTool | null, Promise<VariantKey>>()

  constructor(parts: FailureParts) {
    this.#parts = parts
  }

  /** Why the item must not be tried now; null if it may be. */
  async reasonOf(item: Item): Promise<string | null> {
    const failure = await this.#find(item)
    return failure && !isOver(failure) ? details[failure.kind] : null
  }

  /** Returns the reason. */
  async add(item: Item, kind: FailureKind): Promise<string> {
    const { blobs, hasRoom, onLostFailure } = this.#parts
    const known = await this.#find(item)
    // Several variants can fail at the same time.
    if (known && !isOver(known)) return details[known.kind]
    const failure = { kind, retryAt: known ? null : Date.now() + retryDelays[kind] }
    this.#cache.set(item.id, failure)
    try {
      const text = `${failure.kind} ${failure.retryAt ?? 'never'}`
      if (hasRoom()) await blobs.variants.store(item.id, await this.#keyFor(item), Buffer.from(text))
    } catch (error) {
      if (!isStopping(error)) onLostFailure(item.id, error)
    }
    return details[kind]
  }

  async #find(item: Item): Promise<Failure | null> {
    try {
      const failure = this.#cache.get(item.id) ?? (await this.#load(item))
      if (failure) this.#cache.set(item.id, failure)
      return failure
    } catch (error) {
      if (isStopping(error)) throw error
      // The render is tried.
      this.#parts.onLostFailure(item.id, error)
      return null
    }
  }

  async #load(item: Item): Promise<Failure | null> {
    const { variants } = this.#parts.blobs
    const opened = await variants.open(item.id, await this.#keyFor(item), { wholeUpTo: maxLength })
    if (opened === null) return null
    try {
      const bytes = Buffer.alloc(Math.min(opened.size, maxLength))
      await opened.read(bytes, 0)
      return parse(bytes.toString('latin1'))
    } finally {
      await opened.close()
    }
  }

  #keyFor({ contentType }: Item): Promise<VariantKey> {
    const tool = toolFor(contentType)
    const known = this.#keys.get(tool)
    if (known !== undefined) return known
    const key = this.#parts.rendererOf(tool).then(failureKeyOf)
    this.#keys.set(tool, key)
    // The version of the program could not be read; the next failure tries again.
    key.catch(() => this.#keys.delete(tool))
    return key
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
