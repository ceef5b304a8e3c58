import { connect } from 'node:net'

export interface RawResponse {
  readonly status: number
  /** Lower-case names; repeated headers joined by `, `. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/**
 * Sends bytes as they are and reads until the server closes the connection: for requests that no client library
 * would send. Send `Connection: close` where the server would keep the connection open.
 */
export function sendRaw(url: string, bytes: string | Uint8Array): Promise<RawResponse> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', (error) => (chunks.length > 0 ? undefined : reject(error)))
    socket.on('close', () => resolve(parseResponse(Buffer.concat(chunks).toString('latin1'))))
  })
}

/** The first response in the received text, with everything after its head as its body. */
export function parseResponse(text: string): RawResponse {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [status = '', ...lines] = head.split('\r\n')
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return { status: Number(status.split(' ')[1]), headers, body: rest.join('\r\n\r\n') }
}

/** The same as a Response of fetch. */
export const responseOf = ({ status, headers, body }: RawResponse): Response =>
  new Response(Buffer.from(body, 'latin1'), { status, headers: [...headers] })
