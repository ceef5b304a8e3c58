import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { readItem } from '../harness/wire.ts'
import type { Sending } from './ledger.ts'
import type { Instance } from './server-instances.ts'
import { faultOnStage, must } from './stage.ts'

const length = 50_000

const headersOf = (instance: Instance, sending: Sending, key: string) => ({
  authorization: instance.authorization,
  'idempotency-key': `"${key}"`,
  'content-disposition': `attachment; filename="${sending.files[0]?.name}"`,
})

const bytesOf = (sending: Sending) => sending.files[0]?.bytes ?? new Uint8Array()

const send = (instance: Instance, sending: Sending, key: string) =>
  instance.server.request('/api/media', {
    method: 'POST',
    body: bytesOf(sending),
    headers: headersOf(instance, sending, key),
  })

export const sameKey = faultOnStage(
  'twenty concurrent requests with the same Idempotency-Key',
  async ({ ledger, instance }) => {
    const sending = ledger.newSending(length)
    const key = randomUUID()
    const responses = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const response = await send(instance(), sending, key)
        return [response.status, await response.text()] as const
      }),
    )
    const [first] = responses
    must(
      'twenty responses are equal and have the status 201',
      first?.[0] === 201 && responses.every(([status, text]) => status === 201 && text === first[1]),
    )
    ledger.stored(sending, [(await readItem(new Response(first?.[1]))).id])
  },
)

/** Sends a complete request and closes the connection as soon as it is written, or `pause` milliseconds later. */
async function sendAndLeave(
  instance: Instance,
  { sending, key, pause }: { sending: Sending; key: string; pause: number },
): Promise<void> {
  const { hostname, port } = new URL(instance.server.url)
  const headers = Object.entries({
    host: hostname,
    'content-length': length,
    ...headersOf(instance, sending, key),
  })
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  await new Promise<unknown>((written) => {
    socket.write(`POST /api/media HTTP/1.1\r\n${head}\r\n`)
    socket.write(bytesOf(sending), written)
  })
  await setTimeout(pause)
  socket.resetAndDestroy()
}

export const clientGone = faultOnStage(
  'a client that disconnects after its last byte and sends again with the same key',
  async ({ ledger, instance, restart }, nth) => {
    const sending = ledger.newSending(length)
    const key = randomUUID()
    await sendAndLeave(instance(), { sending, key, pause: ledger.random(10) })
    // In some rounds the service is killed as well.
    if (nth % 5 === 0) await restart()
    const response = await send(instance(), sending, key)
    must(`it is taken at the second time, not ${response.status}`, response.status === 201)
    ledger.stored(sending, [(await readItem(response)).id])
  },
)
