import { openConnection } from '../harness/connection.ts'
import { parseAnswer } from '../harness/raw-http.ts'
import { metadataOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { arriving } from '../harness/upload.ts'
import { parseMedia } from '../harness/wire.ts'
import { must, type Stage } from './stage.ts'

/** Begins a raw upload and leaves its last bytes out until it is told to go on. */
export async function halfSent({ life, ledger }: Stage) {
  const { server, authorization } = life()
  // More than is held in memory, so that it can be seen to arrive.
  const sending = ledger.newSending(200_000)
  const [file] = sending.files
  const bytes = file?.bytes ?? new Uint8Array()
  const connection = await openConnection(server.url)
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nConnection: close\r\n` +
      `Content-Disposition: attachment; filename="${file?.name}"\r\nContent-Length: ${bytes.length}\r\n\r\n`,
  )
  connection.send(bytes.subarray(0, 100_000))
  await until('it arrives', async () => (await arriving(server)).length > 0)
  return {
    async goOn(): Promise<void> {
      connection.send(bytes.subarray(100_000))
      await connection.closed
      const { status, body } = parseAnswer(connection.received())
      must(`an upload under way is a 201 in the end, not ${status}`, status === 201)
      ledger.stored(sending, [parseMedia(body).id])
    },
  }
}

/** The first half of an upload in pieces. */
export async function begunInPieces({ life, ledger }: Stage) {
  const sending = ledger.newSending(20_000)
  const [file] = sending.files
  const metadata = metadataOf({ filename: file?.name ?? '' })
  const bytes = file?.bytes ?? new Uint8Array()
  const url = await life().tus.beginOf(bytes.length, { 'upload-metadata': metadata })
  await life().tus.piece(url, 0, bytes.subarray(0, 10_000))
  return {
    async goOn(): Promise<void> {
      must('an upload in pieces stands where it stood', (await life().tus.offset(url)) === 10_000)
      const { headers } = await life().tus.piece(url, 10_000, bytes.subarray(10_000))
      ledger.stored(sending, [headers.get('content-location')?.split('/').at(-1) ?? ''])
    },
  }
}
