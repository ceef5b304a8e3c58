import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { temporaryDirectory } from './directory.ts'
import { needTools } from './tools.ts'
import { until } from './until.ts'

/** The text that every virus scanner reports (https://www.eicar.org/download-anti-malware-testfile/), in two parts, so that no scanner removes this file. */
export const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR', '-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join('')

/** A scanner with the protocol of clamd. */
export interface TestClamd {
  /** The value of MEDIABUCKET_SCAN. */
  readonly setting: string
  readonly port: number
  /** Files whose bytes have arrived. */
  readonly scans: () => number
  /** Until `release` is called, no file gets a verdict. */
  hold(): void
  release(): void
  /** Closes all connections, and accepts no more until `listen`. */
  close(): Promise<void>
  listen(): Promise<void>
}

/** Starts a scanner of clamd's protocol that refuses files with the text of EICAR, and those of more than `maxSize` bytes. */
export async function startClamd({ maxSize = Number.POSITIVE_INFINITY } = {}): Promise<TestClamd> {
  const sockets = new Set<Socket>()
  let scans = 0
  let held: Promise<void> | null = null
  let release: () => void = () => undefined
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    void serve(socket)
  })

  async function serve(socket: Socket): Promise<void> {
    const reply = (text: string) => socket.end(`${text}\0`)
    const read = reader(socket)
    let command = ''
    while (!command.endsWith('\0')) command += `${await read(1)}`
    if (command === 'zPING\0') return void reply('PONG')
    if (command !== 'zINSTREAM\0') return void reply('UNKNOWN COMMAND')
    const chunks: Buffer[] = []
    for (let size = 0; ; ) {
      const length = (await read(4)).readUInt32BE()
      if (length === 0) break
      size += length
      if (size > maxSize) return void reply('INSTREAM size limit exceeded. ERROR')
      chunks.push(await read(length))
    }
    scans += 1
    await held
    reply(Buffer.concat(chunks).includes(eicar) ? 'stream: Eicar-Test-Signature FOUND' : 'stream: OK')
  }

  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((done) => server.close(done))
  }
  return {
    ...{ setting: `clamd:127.0.0.1:${port}`, port, scans: () => scans },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      release = resolve
    },
    release() {
      held = null
      release()
    },
    close,
    listen: () => listen(port),
  }
}

/** Returns a function that reads so many bytes. It waits forever after the end of the connection. */
function reader(socket: Socket): (length: number) => Promise<Buffer> {
  let rest = Buffer.alloc(0)
  let wake: () => void = () => undefined
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    wake()
  })
  return async (length) => {
    while (rest.length < length)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    const bytes = rest.subarray(0, length)
    rest = rest.subarray(length)
    return bytes
  }
}

/** Starts ClamAV with one signature, that of EICAR: its own database is a download. Returns the value of MEDIABUCKET_SCAN. */
export async function startClamav({ maxSize = '1M' } = {}): Promise<string> {
  needTools('clamd')
  const directory = await temporaryDirectory()
  const path = (name: string) => join(directory.path, name)
  await writeFile(path('eicar.ndb'), `Eicar-Test-Signature:0:*:${Buffer.from(eicar).toString('hex')}\n`)
  const lines = [
    ...[`LocalSocket ${path('socket')}`, `DatabaseDirectory ${directory.path}`, 'Foreground yes'],
    ...[`StreamMaxLength ${maxSize}`, 'User root', 'DisableCache yes'],
  ]
  await writeFile(path('clamd.conf'), `${lines.join('\n')}\n`)
  const clamd = spawn('/usr/sbin/clamd', ['-c', path('clamd.conf')], { stdio: 'ignore' })
  const ended = once(clamd, 'exit')
  onTestFinished(async () => {
    clamd.kill('SIGKILL')
    await ended
    await directory[Symbol.asyncDispose]()
  })
  await until('clamd listens', async () => {
    const socket = connect(path('socket'))
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isOpen
  })
  return `clamd:${path('socket')}`
}
