import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { readMedia } from '../harness/wire.ts'
import type { Sending } from './ledger.ts'
import type { Life } from './lives.ts'
import { faultOnStage, must } from './stage.ts'

const length = 50_000

const headersOf = (life: Life, sending: Sending, key: string) => ({
  authorization: life.authorization,
  'idempotency-key': `"${key}"`,
  'content-disposition': `attachment; filename="${sending.files[0]?.name}"`,
})

const bytesOf = (sending: Sending) => sending.files[0]?.bytes ?? new Uint8Array()

const send = (life: Life, sending: Sending, key: string) =>
  life.server.request('/api/media', {
    method: 'POST',
    body: bytesOf(sending),
    headers: headersOf(life, sending, key),
  })

export const sameKey = faultOnStage(
  'the same Idempotency-Key twenty times in parallel',
  async ({ ledger, life }) => {
    const sending = ledger.newSending(length)
    const key = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const answer = await send(life(), sending, key)
        return [answer.status, await answer.text()] as const
      }),
    )
    const [first] = answers
    must(
      'twenty answers are equal, and 201',
      first?.[0] === 201 && answers.every(([status, text]) => status === 201 && text === first[1]),
    )
    ledger.stored(sending, [(await readMedia(new Response(first?.[1]))).id])
  },
)

/** Writes a whole request, and goes away as soon as it is written, or a moment later. */
async function sendAndLeave(
  life: Life,
  { sending, key, pause }: { sending: Sending; key: string; pause: number },
): Promise<void> {
  const { hostname, port } = new URL(life.server.url)
  const headers = Object.entries({
    host: hostname,
    'content-length': length,
    ...headersOf(life, sending, key),
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
  'a client that goes away after its last byte, and sends again',
  async ({ ledger, life, restart }, nth) => {
    const sending = ledger.newSending(length)
    const key = randomUUID()
    await sendAndLeave(life(), { sending, key, pause: ledger.random(10) })
    // Now and then the service goes as well, and has been told of nothing.
    if (nth % 5 === 0) await restart()
    const answer = await send(life(), sending, key)
    must(`it is taken at the second time, not ${answer.status}`, answer.status === 201)
    ledger.stored(sending, [(await readMedia(answer)).id])
  },
)
