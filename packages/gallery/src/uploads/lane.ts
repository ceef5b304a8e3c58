import type { Client, Media } from '@mediabucket/client'
import { isUnreachable } from '../service/explain.ts'
import { strings } from '../strings.ts'
import type { Board } from './board.ts'
import { formerKey, mostForForm, nextForm, type ReadFile, sendForm } from './form.ts'
import { createFileReader } from './read-file.ts'
import { Refusal, refusal } from './refusal.ts'
import { createServerWait } from './server-wait.ts'
import type { UploadEntry } from './upload-entry.ts'

export interface LaneOptions {
  readonly client: Client
  readonly token: string
  /** Where resumable uploads begin, on the page's own origin. */
  readonly endpoint: string
  loadResumable(): Promise<typeof import('./resumable.ts')>
  onChange(): void
  onStored(entries: readonly UploadEntry[]): void
  /** What a later visit must know of these entries has changed. */
  onSending(entries: readonly UploadEntry[]): void
  /** The service did not respond. */
  onUnreachable(): void
  /** The service refused with this status. */
  onRefused(status: number): void
}

/**
 * Sends files one request after another, in the order in which they wait, so that the listing has that order. Small
 * files share a form, which makes up for there being one request at a time; larger ones are resumable uploads.
 */
export interface Lane {
  /** Sends what waits, if nothing is being sent. */
  run(): void
  /** Holds everything, until `release`. */
  hold(): void
  release(): void
  readonly held: boolean
  readonly waitingForServer: boolean
  /** Stops the request of this entry, if it is sent alone; its new state says what becomes of it. */
  stop(entry: UploadEntry): void
  isAlone(entry: UploadEntry): boolean
  /** Ends the request that is under way, whatever it carries. */
  cancel(): void
  /** The service responds again. */
  serverBack(): void
  close(): void
}

/** What the lane sends at this moment. */
interface Request {
  readonly entries: readonly UploadEntry[]
  /** Stops it, unless all of it was sent; what was not stored is sent again. */
  readonly stop: () => void
  readonly cancel: () => void
  /** Milliseconds since 1970. */
  movedAt: number
}

/** A request that has not moved for so long when the service comes back is a lost one. Milliseconds. */
const stale = 2000

export function createLane(board: Board, options: LaneOptions): Lane {
  const { client, token, endpoint } = options
  const server = createServerWait()
  const reader = createFileReader(board)
  let [running, held, closed] = [false, false, false]
  let current: Request | null = null
  let released = () => {}
  /** What the service said of the last file that found no room in the bucket. */
  let full: { readonly from: number; readonly reason: string } | null = null

  const isListed = (entry: UploadEntry) => board.get(entry.id) !== undefined

  const whileHeld = () =>
    new Promise<void>((resolve) => {
      released = resolve
    })

  async function send(): Promise<void> {
    if (running || closed) return
    running = true
    full = null
    try {
      while (!closed) {
        if (held) await whileHeld()
        const [first] = board.in('waiting')
        if (first === undefined || closed) return
        if (first.size > mostForForm) await sendAlone(first)
        else await sendTogether(nextForm(board.in('waiting')))
        current = null
        options.onChange()
      }
    } finally {
      running = false
    }
  }

  async function sendTogether(entries: readonly UploadEntry[]): Promise<void> {
    for (const entry of entries) board.move(entry, 'sending')
    current = { entries, stop: () => undefined, cancel: () => undefined, movedAt: Date.now() }
    const files = await reader.read(entries)
    // The disk and the network work at the same time.
    reader.prefetch(nextForm(board.in('waiting')))
    if (files.length > 0) await deliver(files)
  }

  /** Stores the files of one form. Where one of them is refused, halves find out which, and the others are stored. */
  async function deliver(all: readonly ReadFile[]): Promise<void> {
    const files = all.filter(({ entry }) => hasRoom(entry))
    for (const { entry } of all) if (!hasRoom(entry)) refuse(entry, full?.reason ?? '')
    if (files.length === 0) return
    const entries = files.map(({ entry }) => entry)
    // One key for all tries of these files: a form whose response was lost is not stored twice.
    let former = formerKey(entries)
    let idempotencyKey = former ?? randomKey()
    for (const entry of entries) entry.form = { key: idempotencyKey, count: entries.length }
    options.onSending(entries)
    for (let tries = 1; !closed; ) {
      if (held) await whileHeld()
      if (closed || entries.every(({ id }) => !board.get(id))) return
      const aborting = new AbortController()
      let complete = false
      const request: Request = {
        entries,
        // What was sent whole may be stored by now; its response says so.
        stop: () => !complete && aborting.abort(),
        cancel: () => aborting.abort(),
        movedAt: Date.now(),
      }
      current = request
      const onProgress = (share: number) => {
        complete = share === 1
        request.movedAt = Date.now()
        for (const entry of entries.filter(isListed))
          board.update(entry, { sent: Math.floor(entry.size * share) })
        options.onChange()
      }
      try {
        return stored(
          entries,
          await sendForm(client, files, { idempotencyKey, signal: aborting.signal, onProgress }),
        )
      } catch (error) {
        for (const entry of entries.filter(isListed)) board.update(entry, { sent: 0 })
        if (closed) return
        if (aborting.signal.aborted) continue
        const refused = await patiently(error, tries)
        // The files of an earlier visit are not what was sent under their key.
        const isOther = refused?.status === 422 && former !== null
        if (isOther) {
          former = null
          idempotencyKey = randomKey()
        }
        if (refused === null || isOther) {
          tries += 1
          continue
        }
        for (const entry of entries) entry.form = null
        const [only] = entries
        if (files.length === 1 && only) return fail(only, refused)
        const middle = Math.ceil(files.length / 2)
        await deliver(files.slice(0, middle))
        return await deliver(files.slice(middle))
      }
    }
  }

  async function sendAlone(entry: UploadEntry): Promise<void> {
    board.move(entry, 'sending')
    options.onChange()
    const loaded = await options.loadResumable().catch(() => null)
    if (loaded === null) return refuse(entry, strings.uploads.notLoaded)
    const { sendResumable, NoResponse } = loaded
    for (let tries = 1; !closed; ) {
      if (held) await whileHeld()
      // It may have been paused or cancelled meanwhile.
      if (closed || board.get(entry.id)?.state !== 'sending') return
      const file = await reader.usable(entry)
      if (file === null) return
      const before = entry.sent
      const upload = sendResumable({
        file,
        name: entry.name,
        contentType: entry.contentType,
        endpoint,
        token,
        uploadUrl: entry.uploadUrl,
        onUrl(url) {
          if (entry.uploadUrl === url) return
          entry.uploadUrl = url
          options.onSending([entry])
        },
        onProgress(sent) {
          request.movedAt = Date.now()
          if (isListed(entry)) board.update(entry, { sent })
          options.onChange()
        },
      })
      let stop = () => {}
      const stopped = new Promise<null>((resolve) => {
        stop = () => {
          upload.stop()
          resolve(null)
        }
      })
      const request: Request = { entries: [entry], stop, cancel: stop, movedAt: Date.now() }
      current = request
      try {
        const id = await Promise.race([upload.finished, stopped])
        if (id !== null) return stored([entry], [{ id, url: null }])
      } catch (error) {
        if (closed) return
        // A file that changed on the disk ends a request just as a lost connection does.
        if (error instanceof NoResponse && (await reader.usable(entry)) === null) return
        if (entry.sent > before) tries = 1
        const refused = await patiently(error instanceof NoResponse ? null : error, tries)
        if (refused !== null) return fail(entry, refused)
        tries += 1
      }
    }
  }

  /** Waits where another try may succeed, and resolves with null; otherwise with why not. `null`: no response. */
  async function patiently(error: unknown, tries: number): Promise<Refusal | null> {
    if (error === null || isUnreachable(error) || (error instanceof Refusal && error.isGateway)) {
      options.onUnreachable()
      const back = server.untilBack()
      options.onChange()
      await back
      return null
    }
    if (!(error instanceof Refusal)) return new Refusal(0, '', null)
    if (error.status === 401) options.onRefused(401)
    const delay = closed ? null : error.delayAfter(tries)
    if (delay === null) return error
    await server.delay(delay)
    return null
  }

  function stored(
    entries: readonly UploadEntry[],
    media: readonly (Pick<Media, 'id'> & { url: string | null })[],
  ): void {
    for (const [index, entry] of entries.entries()) {
      const item = media[index]
      if (item) entry.item = { id: item.id, url: item.url }
      if (isListed(entry)) board.move(entry, 'done')
      entry.file = null
    }
    options.onStored(entries)
  }

  function fail(entry: UploadEntry, { status, body }: Refusal): void {
    const reason = refusal(status, body)
    refuse(entry, reason)
    options.onRefused(status)
    if (status !== 507) return
    // Where a file has no room, one at least as large has none either; where no further file has, none has.
    full = { from: /"max_items"/.test(body) ? 0 : entry.size, reason }
    for (const other of [...board.in('waiting')]) if (!hasRoom(other)) refuse(other, reason)
  }

  const hasRoom = ({ size }: UploadEntry): boolean => full === null || size < full.from

  function refuse(entry: UploadEntry, reason: string): void {
    if (!isListed(entry)) return
    entry.reason = reason || strings.uploads.unknown
    board.update(entry, { sent: 0 })
    board.move(entry, 'failed')
  }

  const run = () => void send()
  return {
    run,
    hold() {
      held = true
      current?.stop()
    },
    release() {
      held = false
      released()
      run()
    },
    get held() {
      return held
    },
    get waitingForServer() {
      return server.waiting
    },
    stop(entry) {
      if (current?.entries.length === 1 && current.entries[0] === entry) {
        current.stop()
        server.cutShort()
      }
    },
    cancel() {
      current?.cancel()
      server.cutShort()
    },
    isAlone: (entry) => entry.size > mostForForm || entry.state !== 'sending',
    serverBack() {
      if (server.waiting) server.cutShort()
      else if (current && Date.now() - current.movedAt > stale) current.stop()
    },
    close() {
      closed = true
      current?.stop()
      server.cutShort()
      released()
    },
  }
}

const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join('-')
