import type { IncomingMessage } from 'node:http'
import type { AnswerListing, ListingAnswer } from './listing-answer.ts'

// An answer is right for every request that was there before its reading began, and for no other. So requests that
// come in together and ask the same of the same bucket share one: collect, then look; never look, then reuse.

/** `answer`, shared by the requests of one turn of the event loop that are alike in all that shapes it. */
export function shareAnswers(answer: AnswerListing): AnswerListing {
  let gathered: Map<string, Promise<ListingAnswer>> | null = null
  let over = Promise.resolve()

  function gather() {
    over = new Promise((resolve) => {
      setImmediate(() => {
        // From here on nobody can join.
        gathered = null
        resolve()
      })
    })
    return new Map<string, Promise<ListingAnswer>>()
  }

  return (request) => {
    gathered ??= gather()
    const alike = likenessOf(request)
    const known = gathered.get(alike)
    if (known) return known
    const begun = over.then(() => answer(request))
    gathered.set(alike, begun)
    return begun
  }
}

/** All of a plain GET that a listing depends on; no header's value holds a line end. */
const likenessOf = ({ url, headers }: IncomingMessage): string =>
  `${url}\n${headers.authorization}\n${headers['accept-encoding']}\n${headers['if-none-match']}`
