import type { AuthoriseHeader } from './caller.ts'
import type { CorsHeaders } from './cors.ts'
import type { AnswerListing, ListingAnswer } from './listing-answer.ts'
import { areAlike, type PlainListing } from './plain-listing.ts'

// An answer is right for every request that was there before its reading began, and for no other. So requests that
// come in together and ask the same of the same bucket share one: collect, then look; never look, then reuse.

/** An answer under way, and the request that began it. */
interface Shared {
  readonly asked: PlainListing
  readonly answer: Promise<ListingAnswer>
}

/** `answer`, shared by the requests of one turn of the event loop that are alike in all that shapes it. */
export function shareAnswers(parts: {
  readonly authorise: AuthoriseHeader
  readonly answer: AnswerListing
  readonly corsHeaders: CorsHeaders
}): (asked: PlainListing) => Promise<ListingAnswer> {
  const { authorise, answer, corsHeaders } = parts
  /** By Authorization header: who asks tells most requests apart. */
  let gathered: Map<string, Shared[]> | null = null
  let over = Promise.resolve()

  function gather() {
    over = new Promise((resolve) => {
      setImmediate(() => {
        // From here on nobody can join.
        gathered = null
        resolve()
      })
    })
    return new Map<string, Shared[]>()
  }

  async function begin(asked: PlainListing, turnOver: Promise<void>): Promise<ListingAnswer> {
    await turnOver
    const grant = await authorise(asked.authorization, 'media:read')
    const answered = await answer(grant, asked)
    // A listing's own Vary names the origin where it matters.
    const { vary, ...cors } = corsHeaders({ origin: asked.origin })
    const added = Object.entries(cors).flat()
    return added.length === 0 ? answered : { ...answered, head: [...added, ...answered.head] }
  }

  return (asked) => {
    gathered ??= gather()
    const sameCaller = gathered.get(asked.authorization)
    const known = sameCaller?.find((one) => areAlike(one.asked, asked))
    if (known) return known.answer
    const shared = { asked, answer: begin(asked, over) }
    if (sameCaller) sameCaller.push(shared)
    else gathered.set(asked.authorization, [shared])
    return shared.answer
  }
}
