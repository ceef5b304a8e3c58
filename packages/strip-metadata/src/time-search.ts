import { type ByteSource, type Range, UnreadableFile } from './pieces.ts'
import { parseTimeText, type TakenTime } from './time-text.ts'
import { readXmp, type XmpProperty } from './xmp.ts'

/** Where a time is found; those that come first are used first. */
const sources = [
  'exif-original',
  'movie-text',
  'xmp-original',
  'xmp-photoshop',
  'exif-digitized',
  'xmp-created',
  'movie-header',
] as const

export type TimeSource = (typeof sources)[number]

/** What a search follows at most. */
export interface SearchLimits {
  /** Parts of a file that are visited: segments, chunks, boxes. */
  readonly parts: number
  /** Bytes of XMP, or of a box, that are read. */
  readonly loaded: number
  /** Items of metadata in a file of pictures, which can be the same bytes. */
  readonly items: number
  /** Whether the chunks of pixels of a PNG file are followed. Otherwise the chunks behind them are searched at the end of the file. */
  readonly followsPixels: boolean
}

const earliest = Date.UTC(1826, 0, 1)
const zeros: ReadonlySet<number> = new Set([0, Date.UTC(1904, 0, 1)])
const day = 86_400_000

/** The times that are found in a file, and whether there may be others. */
export class TimeSearch {
  readonly limits: SearchLimits
  readonly #now: number
  readonly #found = new Map<TimeSource, TakenTime>()
  #fault: string | null = null

  constructor(now: number, limits: SearchLimits) {
    this.#now = now
    this.limits = limits
  }

  /** Why a part that may state a time could not be read; null if there was none. */
  get fault(): string | null {
    return this.#fault
  }

  get best(): TakenTime | null {
    for (const source of sources) {
      const found = this.#found.get(source)
      if (found) return found
    }
    return null
  }

  /** The first time of a source counts. Times that no camera can have had are none. */
  add(source: TimeSource, taken: TakenTime | null): void {
    if (taken === null || this.#found.has(source)) return
    const { time } = taken
    const isZero = zeros.has(Math.floor(time / 1000) * 1000)
    if (time >= earliest && time < this.#now + day && !isZero) this.#found.set(source, taken)
  }

  /** Reads a part of the file. If that fails, the search continues in others. */
  async attempt(read: () => Promise<void>): Promise<void> {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof UnreadableFile || error instanceof RangeError)) throw error
      this.#fault ??= error instanceof UnreadableFile ? error.message : 'a part is damaged'
    }
  }
}

const xmpSources = ['xmp-original', 'xmp-photoshop', 'xmp-created'] as const

/** Reads a packet of XMP, and returns its properties. Throws UnreadableFile if only a part of it can be read. */
export async function searchXmp(
  source: ByteSource,
  { start, end }: Range,
  search: TimeSearch,
): Promise<ReadonlyMap<XmpProperty, string>> {
  const { values, isDamaged } = readXmp(await source.read(start, Math.min(search.limits.loaded, end - start)))
  for (const each of xmpSources)
    await search.attempt(async () => search.add(each, parseTimeText(values.get(each) ?? '')))
  if (isDamaged) throw new UnreadableFile('its XMP is damaged or too long')
  return values
}
