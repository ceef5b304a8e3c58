import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'

// Sends one large file, and prints the milliseconds until the response, and the path of the new item.
// Arguments: bare, raw, multipart, tus or put; the URL of the server, or of the object; bytes; a token, unless the URL is signed.
const [form = '', base = '', bytes, token] = process.argv.slice(2)
const size = Number(bytes)

/** Bytes of one write. */
const block = Buffer.alloc(1024 * 1024, '0123456789')
/** Bytes of one PATCH. */
const chunkSize = 8 * 1024 * 1024

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const authorization = { authorization: `Bearer ${token}` }

/** Writes this many bytes and respects backpressure. */
async function write(to: NodeJS.WritableStream, length: number): Promise<void> {
  for (let left = length; left > 0; left -= block.length)
    if (!to.write(left < block.length ? block.subarray(0, left) : block)) await once(to, 'drain')
}

async function responseTo(sent: ClientRequest, status: number): Promise<IncomingMessage> {
  const [response]: IncomingMessage[] = await once(sent, 'response')
  if (!response) throw new Error('no response')
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== status) throw new Error(`got the status ${response.statusCode}`)
  return response
}

async function post(
  headers: Record<string, string | number>,
  before = '',
  after = '',
): Promise<string | undefined> {
  const length = before.length + size + after.length
  const sent = request(`${base}/api/media`, {
    agent,
    method: 'POST',
    headers: { ...authorization, ...headers, 'content-length': length },
  })
  const response = responseTo(sent, 201)
  if (before) sent.write(before)
  await write(sent, size)
  sent.end(after)
  return (await response).headers.location
}

const forms: Record<string, () => Promise<string | undefined>> = {
  async bare() {
    const { hostname, port } = new URL(base)
    const socket = connect({ host: hostname, port: Number(port) })
    const response = once(socket, 'data')
    await write(socket, size)
    socket.end()
    await response
    return undefined
  },

  async put() {
    const sent = request(base, { agent, method: 'PUT', headers: { 'content-length': size } })
    const response = responseTo(sent, 200)
    await write(sent, size)
    sent.end()
    await response
    return undefined
  },

  raw: () => post({ 'content-type': 'application/octet-stream' }),

  multipart: () =>
    post(
      { 'content-type': 'multipart/form-data; boundary=boundary' },
      '--boundary\r\nContent-Disposition: form-data; name="file"; filename="large"\r\n\r\n',
      '\r\n--boundary--\r\n',
    ),

  async tus() {
    const headers = { ...authorization, 'tus-resumable': '1.0.0' }
    const created = request(`${base}/api/uploads`, {
      agent,
      method: 'POST',
      headers: { ...headers, 'upload-length': size },
    })
    created.end()
    const { location } = (await responseTo(created, 201)).headers
    if (location === undefined) throw new Error('an upload without a location')
    for (let offset = 0; ; offset += chunkSize) {
      const length = Math.min(chunkSize, size - offset)
      const sent = request(location, {
        agent,
        method: 'PATCH',
        headers: {
          ...headers,
          'content-type': 'application/offset+octet-stream',
          'content-length': length,
          'upload-offset': offset,
        },
      })
      const response = responseTo(sent, 204)
      await write(sent, length)
      sent.end()
      const item = (await response).headers['content-location']
      if (offset + length === size) return item?.toString()
    }
  },
}

const startedAt = performance.now()
const location = await forms[form]?.()
console.log(JSON.stringify({ milliseconds: performance.now() - startedAt, location: location ?? null }))
process.exit(0)
