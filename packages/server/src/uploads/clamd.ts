import { once } from 'node:events'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { setImmediate as nextTick } from 'node:timers/promises'
import { errorCode } from '../core/faults.ts'
import { ScanCutOff, type ScannedFile, type Scanner, type Verdict } from './scanner.ts'

// The protocol of clamd, the service of ClamAV: https://docs.clamav.net/manual/Usage/Scanning.html#clamd

/** Bytes of one chunk of a stream, and of the longest response that is read. */
const chunkLength = 65_536
const maxResponse = 4_096

/** Has files scanned by clamd. Each has a connection of its own, as clamd closes it after a scan. */
export class ClamdScanner implements Scanner {
  readonly #address: NetConnectOpts

  constructor(address: NetConnectOpts) {
    this.#address = address
  }

  async scan({ bytes }: ScannedFile, signal: AbortSignal): Promise<Verdict> {
    let isCutOff = false
    const reply = await converse(this.#address, signal, async (socket, replied) => {
      await write(socket, Buffer.from('zINSTREAM\0'), replied)
      isCutOff = true
      for await (const chunk of bytes)
        for (let start = 0; start < chunk.byteLength; start += chunkLength) {
          const part = chunk.subarray(start, start + chunkLength)
          const length = Buffer.alloc(4)
          length.writeUInt32BE(part.byteLength)
          // clamd responds before the end if the file has too many bytes.
          if (!(await write(socket, Buffer.concat([length, part]), replied))) return
        }
      isCutOff = !(await write(socket, Buffer.alloc(4), replied))
    }).catch((error: unknown) => {
      if (isCutOff && ['EPIPE', 'ECONNRESET'].includes(errorCode(error) ?? '')) return ''
      throw error
    })
    if (isCutOff && reply === '') throw new ScanCutOff('clamd closed the connection in the middle of a file')
    return verdictOf(reply)
  }

  async check(signal: AbortSignal): Promise<void> {
    const reply = await converse(this.#address, signal, async (socket, replied) => {
      await write(socket, Buffer.from('zPING\0'), replied)
    })
    if (reply !== 'PONG') throw new Error(`clamd responded ${JSON.stringify(reply)} to PING`)
  }
}

/** Throws for a reply that says nothing about the file. */
function verdictOf(reply: string): Verdict {
  if (/^stream: OK$/.test(reply)) return { outcome: 'clean' }
  const [, signature] = /^stream: (.*) FOUND$/.exec(reply) ?? []
  if (signature !== undefined) return { outcome: 'refused', reason: signature }
  if (/size limit exceeded/i.test(reply)) return { outcome: 'too-large' }
  throw new Error(
    reply === ''
      ? 'clamd closed the connection without a response'
      : `clamd responded ${JSON.stringify(reply)}`,
  )
}

/** Opens a connection, has `send` write to it, and returns the reply. */
async function converse(
  address: NetConnectOpts,
  signal: AbortSignal,
  send: (socket: Socket, replied: AbortSignal) => Promise<void>,
): Promise<string> {
  signal.throwIfAborted()
  const socket = connect(address)
  const replied = new AbortController()
  const reply = readReply(socket).finally(() => replied.abort())
  // It is awaited below, after what is sent.
  reply.catch(() => undefined)
  const abort = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    await send(socket, replied.signal)
    return await reply
  } finally {
    signal.removeEventListener('abort', abort)
    socket.destroy()
  }
}

/** The reply up to its NUL, or to the end of the connection. */
async function readReply(socket: Socket): Promise<string> {
  let text = ''
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  socket.setEncoding('latin1')
  socket.on('data', (part: string) => {
    text += part
    if (text.includes('\0') || text.length > maxResponse) resolve(text)
  })
  socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)))
  socket.on('close', () => resolve(text))
  return (await promise).split('\0', 1)[0]?.trim() ?? ''
}

/** Reads what has arrived, and waits until the socket accepts more. False once there is a reply, or the connection has ended. */
async function write(socket: Socket, bytes: Uint8Array, replied: AbortSignal): Promise<boolean> {
  await nextTick()
  if (replied.aborted || socket.destroyed) return false
  if (socket.write(bytes)) return true
  try {
    await once(socket, 'drain', { signal: replied })
    return true
  } catch {
    return false
  }
}
