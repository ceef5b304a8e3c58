import type { IncomingMessage, ServerResponse } from 'node:http'

/** The text of a head, and the second of its `Date`. */
interface HeadText {
  readonly second: number
  readonly text: string
}

/** Writes the head of a 200 response. `head` must not change between two calls. */
export type HeadWriter = (request: IncomingMessage, response: ServerResponse, head: string[]) => void

/**
 * Node checks and formats every header of every response, which takes as long as all else that is done for a small file.
 * The head of the same bytes is the same text for a second, so it is formatted once: by Node, which has no public API for
 * its text. Without that text, every head is formatted.
 */
export function createHeadWriter(now: () => number = Date.now): HeadWriter {
  const texts = new WeakMap<readonly string[], HeadText>()
  return (request, response, head) => {
    // Other responses have other connection headers.
    const isUsual = response.shouldKeepAlive && request.httpVersionMinor === 1
    const second = Math.floor(now() / 1000)
    const known = isUsual ? texts.get(head) : undefined
    if (known?.second === second) {
      Object.assign(response, { _header: known.text })
      return
    }
    response.writeHead(200, head)
    const text = isUsual && '_header' in response ? response._header : null
    if (typeof text === 'string') texts.set(head, { second, text: contiguous(text) })
  }
}

/** The same text in one piece of memory: V8 keeps a concatenated string as a tree of its parts, which takes four times as much. */
const contiguous = (text: string): string => Buffer.from(text, 'latin1').toString('latin1')
