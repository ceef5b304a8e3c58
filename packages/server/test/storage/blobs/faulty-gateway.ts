import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { Gateway } from '../../../../../test/harness/ceph.ts'

/** What happens to a request: it is passed on, or one of the faults of a store and its network. */
export type Treatment =
  | 'pass'
  /** An answer without a request to the store. */
  | { readonly status: number }
  /** It is passed on after these milliseconds. */
  | { readonly delay: number }
  /** No answer. */
  | 'stall'
  /** The connection ends. */
  | 'reset'
  /** The store executes the request, and the connection ends before its answer. */
  | 'lose-answer'
  /** The connection ends after a part of the body of the answer. */
  | 'cut'
  /** The body of the answer stops. */
  | 'stall-body'
  /** A byte of the body of the request is changed. */
  | 'corrupt'

/** A proxy before a gateway, which treats each request as `treat` says. */
export async function faultyGateway(
  gateway: Pick<Gateway, 'endpoint'>,
  treat: (request: IncomingMessage) => Treatment,
) {
  const requests: string[] = []
  const server = createServer((incoming, response) => {
    requests.push(`${incoming.method} ${new URL(incoming.url ?? '', 'http://x').search.replace(/=.*/, '')}`)
    const treatment = treat(incoming)
    if (treatment === 'stall') return
    if (treatment === 'reset') return void incoming.destroy()
    if (typeof treatment === 'object' && 'delay' in treatment) {
      setTimeout(() => forward(gateway, incoming, response, 'pass'), treatment.delay)
      return
    }
    if (typeof treatment === 'object') {
      incoming.resume().on('end', () => response.writeHead(treatment.status).end())
      return
    }
    forward(gateway, incoming, response, treatment)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

function forward(
  gateway: Pick<Gateway, 'endpoint'>,
  incoming: IncomingMessage,
  response: ServerResponse,
  treatment: Treatment,
): void {
  const { method, headers, url = '' } = incoming
  const sent = request(new URL(url, gateway.endpoint), { ...(method && { method }), headers }, (answer) => {
    if (treatment === 'lose-answer') {
      answer.resume().on('end', () => response.destroy())
      return
    }
    answer.on('error', () => response.destroy())
    response.writeHead(answer.statusCode ?? 500, answer.headers)
    if (treatment !== 'cut' && treatment !== 'stall-body') return void answer.pipe(response)
    answer.once('data', (bytes: Buffer) => {
      answer.pause()
      response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => {
        if (treatment === 'cut') response.destroy()
      })
      response.once('close', () => answer.destroy())
    })
  })
  sent.on('error', () => response.destroy())
  if (treatment !== 'corrupt') return void incoming.pipe(sent)
  let isChanged = false
  incoming.on('data', (bytes: Buffer) => {
    const copy = Buffer.from(bytes)
    if (!isChanged) copy[0] = (copy[0] ?? 0) ^ 1
    isChanged = true
    sent.write(copy)
  })
  incoming.on('end', () => sent.end())
}
