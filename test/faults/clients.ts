import { randomUUID } from 'node:crypto'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { metadataOf } from '../harness/tus.ts'
import { readManyMedia, readMedia } from '../harness/wire.ts'
import type { Ledger, Sending } from './ledger.ts'
import type { Life } from './lives.ts'

/** An upload in pieces that a crash may interrupt, and that is gone on with in the next life. */
interface Pieces {
  readonly sending: Sending
  readonly url: string
  /** Bytes that an answer has told of. */
  answered: number
  /** Bytes that were sent at the most. */
  sent: number
  /** A piece was answered with an error of the server, which may have had to drop the upload. */
  failed: boolean
}

/** Each answers the status that it heard last. */
type Client = (life: Life) => Promise<number>

export interface Clients {
  readonly raw: Client
  readonly form: Client
  /** Begins an upload in pieces, or goes on with one that was interrupted, to its end or an error. */
  readonly pieces: Client
  readonly remove: Client
  /** Goes on with every upload that was interrupted. */
  resumeAll(life: Life): Promise<void>
  /** All of this in any order, `count` clients at a time, until the service is gone. */
  workUntilGone(life: Life, count: number): Promise<void>
  uploadUntilGone(life: Life, count: number): Promise<void>
  piecesUntilGone(life: Life, count: number): Promise<void>
  /** Deletes, and stores what is to be deleted. */
  removeUntilGone(life: Life, count: number): Promise<void>
}

const largest = 100_000

/** Clients that write into the ledger what they sent and what they were answered. They throw when they hear nothing. */
export function createClients(ledger: Ledger): Clients {
  const { random } = ledger
  const interrupted: Pieces[] = []

  /** Sends, and enters what came of it; nothing heard leaves it in doubt. */
  async function settle(
    sending: Sending,
    send: () => Promise<Response>,
    idsOf: (answer: Response) => Promise<string[]>,
  ): Promise<number> {
    try {
      const answer = await send()
      if (answer.status === 201) ledger.stored(sending, await idsOf(answer))
      else {
        // An error of the server may have come after the commit: then the item is whole.
        sending.state = answer.status === 500 ? 'unanswered' : 'refused'
        await answer.arrayBuffer()
      }
      return answer.status
    } catch (error) {
      sending.state = 'unanswered'
      throw error
    }
  }

  const post = (life: Life, body: Uint8Array<ArrayBuffer>, headers: Record<string, string>) =>
    life.server.request('/api/media', {
      method: 'POST',
      body,
      headers: { authorization: life.authorization, ...headers },
    })

  async function raw(life: Life): Promise<number> {
    const sending = ledger.newSending(random(largest))
    const [file] = sending.files
    const key: Record<string, string> = random(2) ? { 'idempotency-key': `"${randomUUID()}"` } : {}
    const headers = { 'content-disposition': `attachment; filename="${file?.name}"`, ...key }
    return settle(
      sending,
      () => post(life, file?.bytes ?? new Uint8Array(), headers),
      async (answer) => [(await readMedia(answer)).id],
    )
  }

  async function form(life: Life): Promise<number> {
    const sending = ledger.newSending(...Array.from({ length: 2 + random(2) }, () => random(largest)))
    const parts = sending.files.map(({ name, bytes }) => filePart(name, bytes))
    return settle(
      sending,
      () => post(life, formBytes(...parts), { 'content-type': formType }),
      async (answer) => (await readManyMedia(answer)).map(({ id }) => id),
    )
  }

  /** The status where it is refused. */
  async function begin(life: Life): Promise<Pieces | number> {
    const sending = ledger.newSending(1 + random(3 * largest))
    const [file] = sending.files
    const answer = await life.tus.send('POST', '/api/uploads', {
      'upload-length': `${file?.bytes.length}`,
      'upload-metadata': metadataOf({ filename: file?.name ?? '' }),
    })
    await answer.arrayBuffer()
    if (answer.status !== 201) return answer.status
    const { pathname } = new URL(answer.headers.get('location') ?? '')
    return { sending, url: pathname, answered: 0, sent: 0, failed: false }
  }

  /** What the service tells of an interrupted upload, held to what was sent and answered. */
  async function resume(life: Life, upload: Pieces): Promise<Response> {
    const answer = await life.tus.head(upload.url)
    const offset = Number(answer.headers.get('upload-offset') ?? Number.NaN)
    if (answer.status === 404 && upload.failed) return answer
    if (!(answer.status === 200 && offset >= upload.answered && offset <= upload.sent)) {
      const { answered, sent } = upload
      ledger.fault('lost', `an upload stands at ${offset}: ${answered} answered, ${sent} sent`)
      throw new Error('an upload is lost')
    }
    return answer
  }

  async function pieces(life: Life): Promise<number> {
    const old = interrupted.splice(random(interrupted.length), 1)[0]
    const upload = old ?? (await begin(life))
    if (typeof upload === 'number') return upload
    const bytes = upload.sending.files[0]?.bytes ?? new Uint8Array()
    try {
      let answer = old ? await resume(life, old) : null
      if (answer?.status === 404) {
        upload.sending.state = 'refused'
        return 404
      }
      for (;;) {
        const offset = Number(answer?.headers.get('upload-offset') ?? 0)
        upload.answered = offset
        if (offset === bytes.length) break
        const end = Math.min(bytes.length, offset + 1 + random(largest))
        upload.sent = Math.max(upload.sent, end)
        answer = await life.tus.piece(upload.url, offset, bytes.subarray(offset, end))
        if (answer.status !== 204) {
          upload.failed ||= answer.status >= 500
          interrupted.push(upload)
          return answer.status
        }
      }
      const location = answer?.headers.get('content-location')
      if (!location) throw new Error('an upload is complete and names no item')
      ledger.stored(upload.sending, [location.split('/').at(-1) ?? ''])
      return answer?.status ?? 0
    } catch (error) {
      interrupted.push(upload)
      throw error
    }
  }

  async function remove(life: Life): Promise<number> {
    const item = ledger.takeForRemoval()
    if (item === null) return raw(life)
    const headers = { authorization: life.authorization }
    const { status } = await life.server.request(`/api/media/${item.id}`, { method: 'DELETE', headers })
    if (status === 204) item.answered()
    return status
  }

  const lanes = (count: number, life: Life, kinds: readonly Client[]) =>
    Promise.all(
      Array.from({ length: count }, async () => {
        while (life.server.process.signalCode === null && life.server.process.exitCode === null)
          await kinds[random(kinds.length)]?.(life).catch(() => undefined)
      }),
    )

  return {
    raw,
    form,
    pieces,
    remove,
    async resumeAll(life) {
      while (interrupted.length > 0) {
        const status = await pieces(life)
        // A HEAD finds it finished, or dropped after an error.
        if (![200, 204, 404].includes(status)) throw new Error(`a piece was answered with ${status}`)
      }
    },
    async workUntilGone(life, count) {
      await lanes(count, life, [raw, form, pieces, pieces, remove])
    },
    async uploadUntilGone(life, count) {
      await lanes(count, life, [raw, form])
    },
    async piecesUntilGone(life, count) {
      await lanes(count, life, [pieces])
    },
    async removeUntilGone(life, count) {
      await lanes(count, life, [remove])
    },
  }
}
