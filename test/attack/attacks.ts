import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

/** The server, and the token and items of the attackers' own bucket. */
export interface Targets {
  readonly port: number
  readonly token: string
  /** Paths of items: one of several megabytes, a script, and pictures that are expensive to decode. */
  readonly large: string
  readonly script: string
  readonly pictures: readonly string[]
}

const host = '127.0.0.1'

/** One exchange: sends the bytes, reads until the server closes the connection or `patience` milliseconds are over. */
function exchange(
  targets: Targets,
  address: string,
  bytes: string | Uint8Array,
  patience: number,
  onSocket?: (socket: Socket) => void,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: targets.port, localAddress: address })
    const timer = setTimeout(() => socket.destroy(), patience)
    let text = ''
    socket.on('connect', () => socket.write(bytes))
    if (onSocket) onSocket(socket)
    else
      socket.on('data', (chunk) => {
        text = (text + chunk.toString('latin1')).slice(0, 4_096)
      })
    // The server may refuse or reset the connection.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
  })
}

const head = (target: string, lines = '') => `GET ${target} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`
const pipelined = (request: string) => request.repeat(Math.floor(63_000 / request.length))
const authorization = ({ token }: Targets) => `Authorization: Bearer ${token}\r\n`

const form = (targets: Targets, body: string) =>
  `POST /api/media HTTP/1.1\r\nHost: x\r\n${authorization(targets)}Content-Type: multipart/form-data; boundary=b\r\n` +
  `Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\nConnection: close\r\n\r\n${body}`
const filePart = '--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nhello'

const malformedForms = [
  `${filePart}\r\n--b-- and more\r\n${filePart}\r\n--b--\r\n`,
  `${filePart}\r\n--bb\r\n\r\nhello\r\n--b`,
  `${filePart}\n--b--\n`,
  `${filePart}\r\n--b--\r\n${filePart}\r\n--b--\r\n`,
]

const otherProtocols: readonly (string | Uint8Array)[] = [
  'DESCRIBE rtsp://x/media RTSP/1.0\r\nCSeq: 1\r\n\r\n',
  'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n',
  Buffer.concat([Buffer.from('160301020001', 'hex'), randomBytes(512)]),
  'POST /api/media HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n',
]

interface Attack {
  readonly name: string
  /** How many run concurrently. */
  readonly width: number
  readonly run: (targets: Targets, address: string) => Promise<unknown>
}

export const attacks: readonly Attack[] = [
  ...['/docs', '/metrics', '/healthz', '/api/media', '/openapi.json'].map((path) => ({
    name: `pipelined ${path}`,
    width: 20,
    run: (targets: Targets, address: string) => exchange(targets, address, pipelined(head(path)), 1_000),
  })),
  {
    name: 'pipelined, never read',
    width: 30,
    run: (targets, address) =>
      exchange(targets, address, pipelined(head('/docs')), 2_000, (socket) => socket.pause()),
  },
  {
    name: 'malformed forms',
    width: 4,
    run: async (targets, address) => {
      for (const body of malformedForms) await exchange(targets, address, form(targets, body), 2_000)
    },
  },
  {
    name: 'stalled small bodies',
    width: 80,
    run: (targets, address) =>
      exchange(
        targets,
        address,
        `POST /api/media HTTP/1.1\r\nHost: x\r\n${authorization(targets)}Content-Length: 65536\r\n\r\n${'x'.repeat(65_000)}`,
        2_000,
      ),
  },
  {
    name: 'other protocols',
    width: 4,
    run: async (targets, address) => {
      for (const bytes of otherProtocols) await exchange(targets, address, bytes, 2_000)
    },
  },
  {
    name: 'secrets in URLs',
    width: 2,
    run: async (targets, address) => {
      const encoded = targets.token.replace('m', '%6d')
      for (const target of [`/x/${targets.token}`, `/?token=${encoded}`, `/media/${encoded}`])
        await exchange(targets, address, head(target, 'Connection: close\r\n'), 2_000)
    },
  },
  {
    name: 'scripts',
    width: 2,
    run: (targets, address) =>
      exchange(
        targets,
        address,
        head(
          targets.script,
          'Sec-Fetch-Dest: script\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n',
        ),
        2_000,
      ),
  },
  {
    name: 'expensive pictures',
    width: 12,
    run: async (targets, address) => {
      for (const path of targets.pictures)
        await exchange(targets, address, head(`${path}?variant=medium`, 'Connection: close\r\n'), 5_000)
    },
  },
  {
    name: 'slow readers',
    width: 120,
    run: (targets, address) =>
      exchange(targets, address, head(targets.large), 5_000, (socket) => {
        const pace = setInterval(() => socket.read(1_000), 1_000)
        socket.on('readable', () => undefined)
        socket.once('close', () => clearInterval(pace))
      }),
  },
  {
    name: 'guessed tokens',
    width: 4,
    run: (targets, address) =>
      exchange(
        targets,
        address,
        head('/api/media', `Authorization: Bearer mbkt_${'0'.repeat(38)}\r\nConnection: close\r\n`),
        2_000,
      ),
  },
  {
    name: 'uploads until the disk is full',
    width: 2,
    run: (targets, address) => {
      const bytes = randomBytes(500_000)
      return exchange(
        targets,
        address,
        Buffer.concat([
          Buffer.from(
            `POST /api/media HTTP/1.1\r\nHost: x\r\n${authorization(targets)}Content-Length: ${bytes.length}\r\nConnection: close\r\n\r\n`,
          ),
          bytes,
        ]),
        5_000,
      )
    },
  },
]
