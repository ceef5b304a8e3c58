import type { Reply } from './route.ts'

/** Bytes of the items of one response (docs/interface.md N7). */
const maxListBytes = 1_048_576

/** Milliseconds for which a list occupies the event loop at once. */
const longestStep = 5

/** Items between two looks at the clock. */
const itemsPerLook = 8

export interface ListTexts<Item> {
  readonly texts: readonly string[]
  /** The bytes of the texts. */
  readonly bytes: () => number
  /** Adds items in steps, and returns how many there was room for: all of them, unless the list is full. A list has at least one. */
  add(items: readonly Item[]): Promise<number>
  /** Lets other requests run, before more items are read. */
  readonly pause: () => Promise<void>
}

/**
 * Collects the JSON of the items of a list, up to `maxBytes`, so that neither many nor long items delay other requests. `pause` waits for
 * the next turn of the caller (core/tasks.ts).
 */
export function collectTexts<Item>(
  textOf: (item: Item) => string,
  pause: () => Promise<void>,
  maxBytes: number = maxListBytes,
): ListTexts<Item> {
  const texts: string[] = []
  let bytes = 0
  return {
    texts,
    bytes: () => bytes,
    pause,
    async add(items) {
      let startedAt = performance.now()
      for (const [index, item] of items.entries()) {
        if (index % itemsPerLook === 0 && performance.now() - startedAt > longestStep) {
          await pause()
          startedAt = performance.now()
        }
        const text = textOf(item)
        const length = Buffer.byteLength(text)
        if (bytes + length > maxBytes && texts.length > 0) return index
        bytes += length
        texts.push(text)
      }
      return items.length
    },
  }
}

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
