import { randomUUID } from 'node:crypto'
import { readItem } from '../harness/wire.ts'
import type { Ledger, Sending } from './ledger.ts'
import { isRefusedFile, type OtherServer } from './other-server.ts'
import type { Instance } from './server-instances.ts'

const isProblem = ({ headers }: Response) =>
  headers.get('content-type')?.startsWith('application/problem+json') === true

/** Sends an upload and records its outcome, which is unknown without a response. */
export async function settleUpload(
  ledger: Ledger,
  sending: Sending,
  send: () => Promise<Response>,
  idsOf: (response: Response) => Promise<string[]>,
): Promise<number> {
  try {
    const response = await send()
    if (response.status === 201) ledger.stored(sending, await idsOf(response))
    else {
      sending.state = isKnown(response) ? 'refused' : 'unanswered'
      await response.arrayBuffer()
    }
    return response.status
  } catch (error) {
    sending.state = 'unanswered'
    throw error
  }
}

/** A 500 may follow the commit, in which case the item is stored completely. A proxy does not know the outcome. */
const isKnown = (response: Response) => response.status !== 500 && isProblem(response)

/** An upload of one file with an `Idempotency-Key`. */
interface KeyedUpload {
  readonly sending: Sending
  /** Null for the bytes themselves. */
  readonly url: string | null
  readonly send: (instance: Instance) => Promise<Response>
}

const idOf = async (response: Response): Promise<string> => (await readItem(response)).id

/** Uploads of bytes and from URLs with an `Idempotency-Key`. Those whose response was lost are repeated, and are stored once. */
export class KeyedUploads {
  readonly #ledger: Ledger
  readonly #other: OtherServer | null
  readonly #lost: KeyedUpload[] = []

  constructor(ledger: Ledger, other: OtherServer | null) {
    this.#ledger = ledger
    this.#other = other
  }

  async raw(instance: Instance, length: number): Promise<number> {
    const sending = this.#ledger.newSending(length)
    const { name, bytes } = fileOf(sending)
    const headers = {
      'content-disposition': `attachment; filename="${name}"`,
      'idempotency-key': `"${randomUUID()}"`,
    }
    const send = ({ server, authorization }: Instance) =>
      server.request('/api/media', { method: 'POST', body: bytes, headers: { ...headers, authorization } })
    return await this.#sendFirst(instance, { sending, url: null, send })
  }

  /** Without another server, the bytes are sent. */
  async fromUrl(instance: Instance, length: number): Promise<number> {
    if (this.#other === null) return await this.raw(instance, length)
    const sending = this.#ledger.newSending(length)
    const { name, bytes } = fileOf(sending)
    const url = this.#other.offer(name, bytes)
    const headers = { 'content-type': 'application/json', 'idempotency-key': `"${randomUUID()}"` }
    const body = JSON.stringify({ url })
    const send = ({ server, authorization }: Instance) =>
      server.request('/api/media/from-url', { method: 'POST', body, headers: { ...headers, authorization } })
    return await this.#sendFirst(instance, { sending, url, send })
  }

  async #sendFirst(instance: Instance, upload: KeyedUpload): Promise<number> {
    const send = () => upload.send(instance)
    try {
      const status = await settleUpload(this.#ledger, upload.sending, send, async (response) => [
        await idOf(response),
      ])
      // Some clients lose the response after it has arrived.
      if (status === 201 && this.#ledger.random(4) === 0) this.#lost.push(upload)
      return status
    } catch (error) {
      this.#lost.push(upload)
      throw error
    }
  }

  /** Repeats one whose response was lost; sends another one if there is none. */
  async repeat(instance: Instance, length: number): Promise<number> {
    const { random } = this.#ledger
    const [upload] = this.#lost.splice(random(this.#lost.length), 1)
    if (upload === undefined) return await this.fromUrl(instance, length)
    try {
      const status = await this.#repeat(instance, upload)
      // Another upload of the key may be in progress, the service may be busy.
      if (status >= 500 || status === 409 || status === 429) this.#lost.push(upload)
      return status
    } catch (error) {
      this.#lost.push(upload)
      throw error
    }
  }

  async #repeat(instance: Instance, { sending, url, send }: KeyedUpload): Promise<number> {
    // Those that a response or a check has named have their id; those that a check has not found were not stored.
    const known = this.#ledger.idOf(sending)
    const wasRefused = sending.state === 'refused'
    const requests = url === null ? 0 : this.#other?.requests(url)
    if (wasRefused) sending.state = 'unanswered'
    const response = await send(instance)
    const { status } = response
    if (status !== 201) {
      await response.arrayBuffer()
      if (wasRefused && isKnown(response)) sending.state = 'refused'
      if (known !== null && isKnown(response) && status < 500 && status !== 429)
        this.#ledger.fault('lost', `the repetition of ${known} receives ${status}`)
      return status
    }
    const id = await idOf(response)
    if (known !== null && id !== known)
      this.#ledger.fault('halfVisible', `the repetition of ${known} has stored ${id}`)
    if (known !== null && url !== null && this.#other?.requests(url) !== requests)
      this.#ledger.fault('halfVisible', `the repetition of ${known} has requested its URL again`)
    if (known === null) this.#ledger.stored(sending, [id])
    return status
  }
}

function fileOf({ files: [file] }: Sending) {
  if (file === undefined) throw new TypeError('an upload has no file')
  return file
}

/** Whether a scanner refuses it, which ends a resumable upload. */
export const mayBeRefused = (sending: Sending): boolean =>
  sending.files.some(({ bytes }) => isRefusedFile(bytes))
