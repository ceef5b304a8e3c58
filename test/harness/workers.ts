import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { childrenOf, commandOf } from './processes.ts'
import { parseResponse } from './raw-http.ts'
import type { TestServer } from './server.ts'
import { until } from './until.ts'

/** The processes of a service with several workers that handle requests. */
export function workersOf({
  process: { pid },
}: {
  readonly process: Pick<TestServer['process'], 'pid'>
}): number[] {
  return childrenOf(pid ?? 0).filter((child) => commandOf(child).includes('serve-worker'))
}

interface WorkerResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** A connection to one worker. */
export interface WorkerConnection extends Disposable {
  readonly pid: number
  readonly socket: Socket
  request(path: string, init?: RequestOptions): Promise<WorkerResponse>
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** Opens a connection to each worker: all others are paused until it has responded once. */
export async function connectToWorkers(server: TestServer): Promise<WorkerConnection[]> {
  const connections: WorkerConnection[] = []
  for (const pid of workersOf(server)) connections.push(await connectToWorker(server, pid))
  return connections
}

export async function connectToWorker(server: TestServer, pid: number): Promise<WorkerConnection> {
  const others = workersOf(server).filter((other) => other !== pid)
  for (const other of others) process.kill(other, 'SIGSTOP')
  try {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    await once(socket, 'connect')
    const connection = connectionOn(server, socket, pid)
    await connection.request('/healthz')
    return connection
  } finally {
    for (const other of others) process.kill(other, 'SIGCONT')
  }
}

function connectionOn(server: TestServer, socket: Socket, pid: number): WorkerConnection {
  let received = Buffer.alloc(0)
  socket.on('data', (bytes) => {
    received = Buffer.concat([received, bytes])
  })
  let closed: string | null = null
  socket.on('error', ({ message }) => {
    closed = message
  })
  socket.on('close', () => {
    closed ??= 'closed'
  })

  /** The response at the beginning of the received bytes, if it is complete. */
  function take(method: string): WorkerResponse | null {
    const end = received.indexOf('\r\n\r\n')
    if (end === -1) return null
    const { status, headers } = parseResponse(received.subarray(0, end).toString('latin1'))
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    const length = hasBody ? Number(headers.get('content-length')) : 0
    const body = received.subarray(end + 4, end + 4 + length)
    if (body.length < length) return null
    received = received.subarray(end + 4 + length)
    return { status, headers: Object.fromEntries(headers), text: body.toString() }
  }

  return {
    pid,
    socket,
    async request(path, { method = 'GET', headers = {}, body } = {}) {
      const all = {
        host: 'x',
        authorization: `Bearer ${server.token}`,
        ...(body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` }),
        ...headers,
      }
      const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
      socket.write([`${method} ${path} HTTP/1.1`, ...lines, '\r\n'].join('\r\n'))
      if (body !== undefined) socket.write(body)
      return until('a response', () => {
        const response = take(method)
        if (response === null && closed !== null) throw new Error(`no response: ${closed}`)
        return response
      })
    },
    [Symbol.dispose]() {
      socket.destroy()
    },
  }
}

/** Waits until this many workers have the listening socket. */
export async function listeningWorkers(server: TestServer, count: number): Promise<number[]> {
  const port = Number(new URL(server.url).port)
  return until('listening workers', () => {
    const inode = listeningInode(port)
    const workers = workersOf(server).filter((pid) => hasSocket(pid, inode))
    return workers.length === count && workers
  })
}

/** The inode of the socket that listens on the port. */
function listeningInode(port: number): string {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const listening = '0A'
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  return rows.find(([, local, , state]) => local?.endsWith(suffix) && state === listening)?.[9] ?? ''
}

function hasSocket(pid: number, inode: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some(
      (fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`,
    )
  } catch {
    // The process has ended, or has closed a descriptor.
    return false
  }
}
