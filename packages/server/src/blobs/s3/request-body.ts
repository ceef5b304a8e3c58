import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'

/** Bytes of the head of a response, at most. */
const maxHead = 32 * 1024

/**
 * Requests `length` bytes from `start` on at a signed URL, on a connection of its own. Returns the connection when exactly the body remains
 * to be read from it; null if the response is anything else, or does not begin in time. Node's parser of responses would copy each
 * chunk of the body into memory of its own, which takes more time than all the rest of a large download.
 */
export async function requestBody(
  url: URL,
  { start, length }: { readonly start: number; readonly length: number },
  timeout: number,
): Promise<Socket | null> {
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port) || (isSecure ? 443 : 80)
  // TLS names no server by its address (RFC 6066, section 3).
  const servername = isIP(host) === 0 ? host : ''
  const socket = isSecure ? connectSecurely({ host, port, servername }) : connect({ host, port })
  const signal = AbortSignal.timeout(timeout)
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal })
    const range = `bytes=${start}-${start + length - 1}`
    socket.write(
      `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nRange: ${range}\r\nConnection: close\r\n\r\n`,
    )
    let received = Buffer.alloc(0)
    for (;;) {
      await once(socket, 'readable', { signal })
      const some: Buffer | null = socket.read()
      if (some === null) {
        if (socket.readableEnded || socket.destroyed) break
        continue
      }
      received = Buffer.concat([received, some])
      const end = received.indexOf('\r\n\r\n')
      if (end < 0 && received.byteLength < maxHead) continue
      if (end < 0 || !announces(received.toString('latin1', 0, end), length)) break
      if (received.byteLength > end + 4) socket.unshift(received.subarray(end + 4))
      return socket
    }
  } catch {
    // The caller requests the object again, and gets the reason.
  }
  // A late error has no other listener.
  socket.on('error', () => undefined).destroy()
  return null
}

/** Whether the head is that of a range of this length, which follows without a transfer coding. */
function announces(head: string, length: number): boolean {
  const lengths = [...head.matchAll(/^content-length:[ \t]*(\d+)[ \t]*$/gim)].map(([, digits]) =>
    Number(digits),
  )
  return (
    /^HTTP\/1\.1 206 /.test(head) &&
    !/^(transfer|content)-encoding:/im.test(head) &&
    lengths.length === 1 &&
    lengths[0] === length
  )
}
