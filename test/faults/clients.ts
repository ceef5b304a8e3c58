import { filePart, formBytes, formType } from '../harness/form.ts'
import { metadataOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readItem, readStoredItems } from '../harness/wire.ts'
import { KeyedUploads, mayBeRefused, settleUpload } from './keyed-uploads.ts'
import type { Ledger, Sending } from './ledger.ts'
import type { OtherServer } from './other-server.ts'
import type { Instance } from './server-instances.ts'

/** A resumable upload that a crash may interrupt, and that is resumed on the next server. */
interface ResumableUpload {
  readonly sending: Sending
  readonly url: string
  /** The last acknowledged offset. */
  acknowledged: number
  /** The largest number of bytes that the server may have received. */
  sent: number
  /** A chunk received a 5xx, or the scanner refused the file: the server may have dropped the upload. */
  failed: boolean
}

/** Returns the status of the last response. */
type Client = (instance: Instance) => Promise<number>

export interface Clients {
  readonly raw: Client
  readonly form: Client
  /** Uploads from a URL, or bytes if there is no other server. */
  readonly fromUrl: Client
  /** Repeats an upload whose connection was lost. */
  readonly repeat: Client
  /** Creates a resumable upload, or resumes an interrupted one, and sends chunks until it is complete or fails. */
  readonly resumable: Client
  readonly remove: Client
  /** Completes every interrupted upload. For `refusedFor` milliseconds, by default none, a chunk that receives 503 is sent again. */
  resumeAll(instance: Instance, refusedFor?: number): Promise<void>
  /** Runs all operations in random order with `count` concurrent clients until the server process ends. */
  workUntilGone(instance: Instance, count: number): Promise<void>
  /** The same until `isDone` returns true. */
  workUntil(isDone: () => boolean, instance: Instance, count: number): Promise<void>
  uploadUntilGone(instance: Instance, count: number): Promise<void>
  resumableUntilGone(instance: Instance, count: number): Promise<void>
  /** Deletes items, and uploads some when none are left. */
  removeUntilGone(instance: Instance, count: number): Promise<void>
}

/**
 * Clients that record requests and responses in the ledger. They throw if a connection ends without a response. Files have up to `largest` bytes, three times
 * as many if they are sent in chunks. `other` has the files of uploads from URLs.
 */
export function createClients(ledger: Ledger, largest = 100_000, other: OtherServer | null = null): Clients {
  const { random } = ledger
  const keyed = new KeyedUploads(ledger, other)
  const interrupted: ResumableUpload[] = []

  const post = (instance: Instance, body: Uint8Array<ArrayBuffer>, headers: Record<string, string>) =>
    instance.server.request('/api/media', {
      method: 'POST',
      body,
      headers: { authorization: instance.authorization, ...headers },
    })

  async function raw(instance: Instance): Promise<number> {
    if (random(2)) return await keyed.raw(instance, random(largest))
    const sending = ledger.newSending(random(largest))
    const [file] = sending.files
    const headers = { 'content-disposition': `attachment; filename="${file?.name}"` }
    return settleUpload(
      ledger,
      sending,
      () => post(instance, file?.bytes ?? new Uint8Array(), headers),
      async (response) => [(await readItem(response)).id],
    )
  }

  const fromUrl = (instance: Instance) => keyed.fromUrl(instance, random(largest))
  const repeat = (instance: Instance) => keyed.repeat(instance, random(largest))

  async function form(instance: Instance): Promise<number> {
    const sending = ledger.newSending(...Array.from({ length: 2 + random(2) }, () => random(largest)))
    const parts = sending.files.map(({ name, bytes }) => filePart(name, bytes))
    return settleUpload(
      ledger,
      sending,
      () => post(instance, formBytes(...parts), { 'content-type': formType }),
      async (response) => (await readStoredItems(response)).map(({ id }) => id),
    )
  }

  /** Returns the status if the server refuses the upload. */
  async function begin(instance: Instance): Promise<ResumableUpload | number> {
    const sending = ledger.newSending(1 + random(3 * largest))
    const [file] = sending.files
    const response = await instance.tus.send('POST', '/api/uploads', {
      'upload-length': `${file?.bytes.length}`,
      'upload-metadata': metadataOf({ filename: file?.name ?? '' }),
    })
    await response.arrayBuffer()
    if (response.status !== 201) return response.status
    const { pathname } = new URL(response.headers.get('location') ?? '')
    return { sending, url: pathname, acknowledged: 0, sent: 0, failed: false }
  }

  /** Reads the offset of an interrupted upload and compares it with the sent and acknowledged bytes. */
  async function resume(instance: Instance, upload: ResumableUpload): Promise<Response> {
    const response = await instance.tus.head(upload.url)
    const offset = Number(response.headers.get('upload-offset') ?? Number.NaN)
    const mayBeGone = upload.failed || (other !== null && mayBeRefused(upload.sending))
    if (response.status >= 500 || (response.status === 404 && mayBeGone)) return response
    if (!(response.status === 200 && offset >= upload.acknowledged && offset <= upload.sent)) {
      const { acknowledged, sent } = upload
      ledger.fault('lost', `an upload has offset ${offset}: ${acknowledged} acknowledged, ${sent} sent`)
      throw new Error('an upload is lost')
    }
    return response
  }

  /** The body of the last response that refused a chunk. */
  let refusal = ''

  async function resumable(instance: Instance): Promise<number> {
    const old = interrupted.splice(random(interrupted.length), 1)[0]
    const upload = old ?? (await begin(instance))
    if (typeof upload === 'number') return upload
    const bytes = upload.sending.files[0]?.bytes ?? new Uint8Array()
    try {
      let response = old ? await resume(instance, old) : null
      if (response?.status === 404) {
        upload.sending.state = 'refused'
        return 404
      }
      if (response && response.status >= 500) {
        interrupted.push(upload)
        return response.status
      }
      for (;;) {
        const offset = Number(response?.headers.get('upload-offset') ?? 0)
        upload.acknowledged = offset
        if (offset === bytes.length) break
        const end = Math.min(bytes.length, offset + 1 + random(largest))
        upload.sent = Math.max(upload.sent, end)
        response = await instance.tus.sendChunk(upload.url, offset, bytes.subarray(offset, end))
        if (response.status !== 204) {
          refusal = await response.text()
          upload.failed ||= response.status >= 500 || response.status === 422
          interrupted.push(upload)
          return response.status
        }
      }
      const location = response?.headers.get('content-location')
      if (!location) throw new Error('the response to a complete upload names no item')
      ledger.stored(upload.sending, [location.split('/').at(-1) ?? ''])
      return response?.status ?? 0
    } catch (error) {
      interrupted.push(upload)
      throw error
    }
  }

  async function remove(instance: Instance): Promise<number> {
    const item = ledger.takeForRemoval()
    if (item === null) return raw(instance)
    const headers = { authorization: instance.authorization }
    const { status } = await instance.server.request(`/api/media/${item.id}`, { method: 'DELETE', headers })
    if (status === 204) item.acknowledge()
    return status
  }

  const kinds = [raw, form, resumable, resumable, remove, ...(other ? [fromUrl, fromUrl] : []), repeat]

  const runClients = (
    count: number,
    instance: Instance,
    kinds: readonly Client[],
    isDone: () => boolean = () => false,
  ) =>
    Promise.all(
      Array.from({ length: count }, async () => {
        while (
          !isDone() &&
          instance.server.process.signalCode === null &&
          instance.server.process.exitCode === null
        )
          await kinds[random(kinds.length)]?.(instance).catch(() => undefined)
      }),
    )

  return {
    raw,
    form,
    fromUrl,
    repeat,
    resumable,
    remove,
    async resumeAll(instance, refusedFor = 0) {
      while (interrupted.length > 0) {
        const status = await until(
          'a response to a chunk that is not 503',
          async () => {
            const status = await resumable(instance)
            return status === 503 ? null : status
          },
          refusedFor,
        ).catch((error: unknown) => {
          throw new Error(`a chunk is refused: ${refusal}`, { cause: error })
        })
        // 200: HEAD reports a complete upload. 404: the server dropped it after an error. 422: the scanner refuses it.
        if (![200, 204, 404, 422].includes(status)) throw new Error(`a chunk received ${status}: ${refusal}`)
      }
    },
    async workUntilGone(instance, count) {
      await runClients(count, instance, kinds)
    },
    async workUntil(isDone, instance, count) {
      await runClients(count, instance, kinds, isDone)
    },
    async uploadUntilGone(instance, count) {
      await runClients(count, instance, [raw, form])
    },
    async resumableUntilGone(instance, count) {
      await runClients(count, instance, [resumable])
    },
    async removeUntilGone(instance, count) {
      await runClients(count, instance, [remove])
    },
  }
}
