import type { IncomingMessage } from 'node:http'
import type { PageBody } from '../media/page-body.ts'
import type { CorsHeaders } from './cors.ts'
import type { AnswerListing } from './listing-answer.ts'

// An answer is right for every request that was there before its reading began, and for no other. So requests that
// come in together and ask the same of the same bucket share one: collect, then look; never look, then reuse.

/** An answer as it is written: `head` holds names and values in turn, which Node writes fastest. */
interface SharedAnswer {
  readonly status: number
  readonly head: string[]
  readonly body: PageBody | null
}

/** `answer`, shared by the requests of one turn of the event loop that are alike in all that shapes it. */
export function shareAnswers(answer: AnswerListing, corsHeaders: CorsHeaders) {
  let gathered: Map<string, Promise<SharedAnswer>> | null = null
  let over = Promise.resolve()

  function gather() {
    over = new Promise((resolve) => {
      setImmediate(() => {
        // From here on nobody can join.
        gathered = null
        resolve()
      })
    })
    return new Map<string, Promise<SharedAnswer>>()
  }

  async function begin(request: IncomingMessage, turnOver: Promise<void>): Promise<SharedAnswer> {
    await turnOver
    const { status, headers, body } = await answer(request)
    const head = Object.entries({ ...corsHeaders(request.headers), ...headers }).flatMap(([name, value]) => [
      name,
      String(value),
    ])
    return { status, head, body }
  }

  return (request: IncomingMessage): Promise<SharedAnswer> => {
    gathered ??= gather()
    const alike = likenessOf(request)
    const known = gathered.get(alike)
    if (known) return known
    const begun = begin(request, over)
    gathered.set(alike, begun)
    return begun
  }
}

/** All of a plain GET that a listing and its headers depend on; no header's value holds a line end. */
const likenessOf = ({ url, headers }: IncomingMessage): string =>
  `${url}\n${headers.authorization}\n${headers['accept-encoding']}\n${headers['if-none-match']}\n${headers.origin}`
