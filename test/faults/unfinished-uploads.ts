import { openConnection } from '../harness/connection.ts'
import { parseResponse } from '../harness/raw-http.ts'
import { metadataOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { arriving } from '../harness/upload.ts'
import { parseItem } from '../harness/wire.ts'
import { must, type Stage } from './stage.ts'

/** Starts a raw upload; `finish` sends its last bytes. */
export async function startRawUpload({ instance, ledger }: Stage) {
  const { server, authorization } = instance()
  // More than is held in memory, so that its temporary file exists.
  const sending = ledger.newSending(200_000)
  const [file] = sending.files
  const bytes = file?.bytes ?? new Uint8Array()
  const connection = await openConnection(server.url)
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nConnection: close\r\n` +
      `Content-Disposition: attachment; filename="${file?.name}"\r\nContent-Length: ${bytes.length}\r\n\r\n`,
  )
  connection.send(bytes.subarray(0, 100_000))
  await until('the upload has a temporary file', async () => (await arriving(server)).length > 0)
  return {
    async finish(): Promise<void> {
      connection.send(bytes.subarray(100_000))
      await connection.closed
      const { status, body } = parseResponse(connection.received())
      must(`an upload in progress receives 201, not ${status}`, status === 201)
      ledger.stored(sending, [parseItem(body).id])
    },
  }
}

/** Creates a resumable upload and sends its first half; `finish` sends the rest. */
export async function startResumableUpload({ instance, ledger }: Stage) {
  const sending = ledger.newSending(20_000)
  const [file] = sending.files
  const metadata = metadataOf({ filename: file?.name ?? '' })
  const bytes = file?.bytes ?? new Uint8Array()
  const url = await instance().tus.createWithLength(bytes.length, { 'upload-metadata': metadata })
  await instance().tus.sendChunk(url, 0, bytes.subarray(0, 10_000))
  return {
    async finish(): Promise<void> {
      must('a resumable upload keeps its offset', (await instance().tus.offset(url)) === 10_000)
      const { headers } = await instance().tus.sendChunk(url, 10_000, bytes.subarray(10_000))
      ledger.stored(sending, [headers.get('content-location')?.split('/').at(-1) ?? ''])
    },
  }
}
