import { createHash } from 'node:crypto'
import type { SharedServer } from './server.ts'
import { readItem } from './wire.ts'

type Bytes = string | Uint8Array<ArrayBuffer>
type Extra = Readonly<Record<string, string>>

export const chunkType = 'application/offset+octet-stream'

export const metadataOf = (pairs: Readonly<Record<string, string>>): string =>
  Object.entries(pairs)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join(',')

export const checksumOf = (algorithm: string, bytes: Bytes): string =>
  `${algorithm} ${createHash(algorithm).update(bytes).digest('base64')}`

/** Single requests of the tus protocol. */
export function tusOf(server: Pick<SharedServer, 'url' | 'token'>, authorization = `Bearer ${server.token}`) {
  const send = (method: string, url: string, headers: Extra, body?: RequestInit['body']) =>
    fetch(new URL(url, server.url), {
      method,
      headers: { authorization, 'tus-resumable': '1.0.0', ...headers },
      ...(body === undefined ? {} : { body, duplex: 'half' }),
    } as RequestInit)

  /** Creates an upload and returns its path. */
  async function create(headers: Extra): Promise<string> {
    const response = await send('POST', '/api/uploads', headers)
    if (response.status !== 201)
      throw new Error(`no upload was created: ${response.status} ${await response.text()}`)
    return new URL(response.headers.get('location') ?? '').pathname
  }

  return {
    send,
    create,
    createWithLength: (length: number, extra: Extra = {}) =>
      create({ 'upload-length': `${length}`, ...extra }),
    head: (url: string) => send('HEAD', url, {}),
    sendChunk: (url: string, offset: number, body: RequestInit['body'], extra: Extra = {}) =>
      send('PATCH', url, { 'content-type': chunkType, 'upload-offset': `${offset}`, ...extra }, body),
    terminate: (url: string) => send('DELETE', url, {}),
    /** The Upload-Offset of the upload. */
    async offset(url: string): Promise<number> {
      const response = await send('HEAD', url, {})
      if (response.status !== 200) throw new Error(`no such upload: ${response.status}`)
      return Number(response.headers.get('upload-offset'))
    },
  }
}

/** The headers of a response that belong to the protocol. */
export const tusHeaders = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries(
    [...headers].filter(([name]) => /^(tus|upload)-|^(location|content-location|cache-control)$/.test(name)),
  )

/** The media object that the response to the last chunk names. */
export async function itemOf(server: Pick<SharedServer, 'request'>, response: Response) {
  const location = response.headers.get('content-location')
  if (!location) throw new Error('the response names no item')
  return await readItem(await server.request(new URL(location).pathname))
}
