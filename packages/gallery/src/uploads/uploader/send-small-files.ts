import { formerKey, type ReadFile, sendForm } from './form.ts'
import type { SendContext } from './send-context.ts'

/** Sends files in one form. If it is refused, each half is sent again, until only the files at fault have failed. */
export async function sendSmallFiles(context: SendContext, all: readonly ReadFile[]): Promise<void> {
  const { list, outcomes, options } = context
  const files = all.filter(({ entry }) => outcomes.hasRoom(entry))
  if (files.length === 0) return
  const entries = files.map(({ entry }) => entry)
  const listed = () => entries.filter(({ id }) => list.get(id))
  // All tries use one key, so that a form whose response was lost is not stored twice.
  let former = formerKey(entries)
  let idempotencyKey = former ?? randomKey()
  for (const entry of entries) entry.form = { key: idempotencyKey, count: entries.length }
  options.onSending(entries)
  for (let tries = 1; await context.untilResumed(); ) {
    if (listed().length === 0) return
    const aborting = new AbortController()
    let complete = false
    const request = {
      entries,
      // A complete form may be stored already, so wait for its response.
      stop: () => !complete && aborting.abort(),
      cancel: () => aborting.abort(),
      progressAt: Date.now(),
    }
    context.begin(request)
    const onProgress = (share: number) => {
      complete = share === 1
      request.progressAt = Date.now()
      for (const entry of listed()) list.update(entry, { sent: Math.floor(entry.size * share) })
      options.onChange()
    }
    const { signal } = aborting
    try {
      const media = await sendForm(options.client, files, { idempotencyKey, signal, onProgress })
      return outcomes.stored(entries, media)
    } catch (error) {
      for (const entry of listed()) list.update(entry, { sent: 0 })
      if (signal.aborted) continue
      const refused = await outcomes.waitForRetry(error, tries)
      tries += 1
      if (refused === null) continue
      if (refused.status === 422 && former !== null) {
        // The files differ from those that an earlier visit sent with this key.
        former = null
        idempotencyKey = randomKey()
        continue
      }
      for (const entry of entries) entry.form = null
      if (entries.length === 1 || appliesToAll.has(refused.status)) {
        for (const entry of entries) outcomes.refused(entry, refused)
        return
      }
      const middle = Math.ceil(files.length / 2)
      await sendSmallFiles(context, files.slice(0, middle))
      return await sendSmallFiles(context, files.slice(middle))
    }
  }
}

/** Statuses that apply to all files: an invalid token, or an unreadable response (0), after which anything may be stored. */
const appliesToAll = new Set([0, 401, 403])

const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join('-')
