import type { Reply } from './route.ts'

/** Bytes of the items of one response (docs/interface.md N7). */
const maxListBytes = 1_048_576

/** Milliseconds for which a list occupies the event loop at once. */
const longestStep = 5

/** Items that become text at once, between two looks at the clock. */
const itemsPerStep = 8

/**
 * Collects the texts of the items of a list, up to `maxBytes`, in steps, so that neither many nor long items delay other requests. `pause` lets
 * them run: it waits for the next turn of the caller (core/tasks.ts).
 */
export class ListTexts<Item> {
  readonly texts: string[] = []
  readonly pause: () => Promise<void>
  readonly #textOf: (items: readonly Item[]) => string
  readonly #maxBytes: number
  #count = 0
  #bytes = 0

  constructor(
    textOf: (items: readonly Item[]) => string,
    pause: () => Promise<void>,
    maxBytes: number = maxListBytes,
  ) {
    this.#textOf = textOf
    this.pause = pause
    this.#maxBytes = maxBytes
  }

  /** The items in the texts. */
  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Adds items, and returns how many there was room for: all of them, unless the list is full. A list has at least one. */
  async add(items: readonly Item[]): Promise<number> {
    let startedAt = performance.now()
    let length = itemsPerStep
    for (let at = 0; at < items.length; ) {
      const step = items.slice(at, at + length)
      const text = this.#textOf(step)
      const bytes = Buffer.byteLength(text)
      if (this.#bytes + bytes > this.#maxBytes && this.#count + step.length > 1) {
        if (step.length === 1) return at
        // The first of them may have room.
        length = 1
        continue
      }
      this.texts.push(text)
      this.#bytes += bytes
      this.#count += step.length
      at += step.length
      if (performance.now() - startedAt > longestStep && at < items.length) {
        await this.pause()
        startedAt = performance.now()
      }
    }
    return items.length
  }
}

/** The JSON of items without the brackets of their array. */
export const itemsText = (array: string): string => array.slice(1, -1)

/** The object of a list: its items and the other members. */
export const listText = (texts: readonly string[], members: object): string =>
  `{"data":[${texts.join(',')}],${JSON.stringify(members).slice(1)}`

/** The response with a list. */
export const listReply = (
  headers: Readonly<Record<string, string>>,
  texts: readonly string[],
  members: object,
): Reply => ({
  status: 200,
  headers: { ...headers, 'content-type': 'application/json; charset=utf-8' },
  body: listText(texts, members),
})
