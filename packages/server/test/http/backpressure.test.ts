import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Backpressure, createBodyReader, createWholeBodyReader } from '../../src/http/bodies.ts'
import { closeOnIdleTimeout, refusePipelining } from '../../src/http/client-connections.ts'

const room = 50_000
/** The bytes of one read, and so the least that a body can add before its connection is paused. */
const oneRead = 65_536
const size = 4_000_000

interface Reading {
  readonly request: IncomingMessage
  /** Bytes that the reader has received. */
  taken: number
  /** The reader waits for it after the first chunk. */
  readonly holds: Promise<void>
  readonly began: PromiseWithResolvers<void>
  readonly done: Promise<void>
}

/** A server whose readers hold the first chunk of their body until `goOn` is called. */
async function readingServer() {
  const readBody = createBodyReader(new Backpressure(room))
  const readings = new Map<string, Reading>()
  const holds = new Map<string, PromiseWithResolvers<void>>()
  const began = new Map<string, PromiseWithResolvers<void>>()
  const of = (all: Map<string, PromiseWithResolvers<void>>, name: string) => {
    const known = all.get(name) ?? Promise.withResolvers<void>()
    all.set(name, known)
    return known
  }
  const { server, port } = await listening(async (request, response) => {
    const name = request.url?.slice(1) ?? ''
    if (request.method === 'GET') return void response.end('here')
    const done = Promise.withResolvers<void>()
    const reading: Reading = {
      request,
      taken: 0,
      holds: of(holds, name).promise,
      began: of(began, name),
      done: done.promise,
    }
    readings.set(name, reading)
    try {
      for await (const chunk of readBody(request)) {
        reading.taken += chunk.byteLength
        reading.began.resolve()
        await reading.holds
      }
      response.end('taken')
    } catch {
      // The client disconnected.
    }
    done.resolve()
  })
  const sockets: Socket[] = []
  return {
    http: server,
    reading: (name: string) => readings.get(name) ?? expect.unreachable(`nobody reads ${name}`),
    began: (name: string) => of(began, name).promise,
    goOn: (name: string) => of(holds, name).resolve(),
    /** Sends a complete body as fast as the server reads it. */
    async send(name: string, first = size): Promise<Socket> {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      await once(socket, 'connect')
      socket.write(`POST /${name} HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`)
      socket.write(Buffer.alloc(first, 'x'))
      socket.on('error', () => undefined)
      return socket
    },
    /** Waits for this many ticks of the server's event loop. */
    async rounds(count: number) {
      for (let round = 0; round < count; round += 1) await (await fetch(`http://127.0.0.1:${port}/`)).text()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function listening(handle: RequestListener) {
  const server = createServer(handle)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test('while more bytes are held than there is room for, no body is read; afterwards all are', async () => {
  await using server = await readingServer()
  await server.send('first')
  await server.began('first')
  const others = ['second', 'third', 'fourth']
  for (const name of others) {
    server.goOn(name)
    await server.send(name)
  }
  await server.rounds(30)
  for (const name of others) {
    const { request, taken } = server.reading(name)
    expect(taken).toBe(0)
    // One read with the headers, and one before the end of the tick.
    expect(request.socket.bytesRead).toBeLessThanOrEqual(2 * oneRead)
  }
  expect(server.reading('first').request.socket.bytesRead).toBeLessThanOrEqual(3 * oneRead)
  server.goOn('first')
  for (const name of ['first', ...others]) {
    const reading = server.reading(name)
    await reading.done
    expect(reading.taken).toBe(size)
  }
})

test('bytes that a reader never releases are released when its connection closes', async () => {
  await using server = await readingServer()
  await server.send('stuck')
  await server.began('stuck')
  server.goOn('other')
  await server.send('other')
  await server.rounds(10)
  expect(server.reading('other').taken).toBe(0)
  server.reading('stuck').request.socket.destroy()
  await server.reading('other').done
  expect(server.reading('other').taken).toBe(size)
})

test('a connection whose body is complete is read while others are paused', async () => {
  await using server = await readingServer()
  const client = await server.send('first')
  await server.began('first')
  server.goOn('first')
  const [response] = await once(client, 'data')
  expect(String(response)).toContain('taken')
  await server.send('second')
  await server.began('second')
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const [next] = await once(client, 'data')
  expect(String(next)).toContain('here')
  server.goOn('second')
  await server.reading('second').done
})

test('failed readers release their bytes', async () => {
  const readBody = createBodyReader(new Backpressure(room))
  await using server = await listening(async (request, response) => {
    try {
      for await (const _ of readBody(request)) if (request.url === '/refused') throw new Error('refused')
    } catch {
      response.statusCode = 400
    }
    response.end()
  })
  const post = (path: string) => fetch(`${server.url}/${path}`, { method: 'POST', body: 'x'.repeat(20_000) })
  for (let round = 0; round < 10; round += 1) expect((await post('refused')).status).toBe(400)
  expect((await post('taken')).status).toBe(200)
})

async function* wholeBody(request: IncomingMessage) {
  // Some ticks later all of a body may have arrived.
  for (let tick = 0; tick < Number(request.headers['x-ticks']); tick += 1) await setImmediate()
  yield (await createWholeBodyReader(new Backpressure(room), 8 * 1024 * 1024)(request)) ??
    expect.unreachable('there is room')
}

test.each([
  ['in chunks', 0, createBodyReader(new Backpressure(room))],
  ['whole', 0, wholeBody],
  ['whole, some ticks later', 10, wholeBody],
])('every pipelined body on one connection is read %s', async (_, ticks, readBody) => {
  await using server = await listening(async (request, response) => {
    let taken = 0
    for await (const { byteLength } of readBody(request)) {
      taken += byteLength
      await setImmediate()
    }
    response.end(`took ${taken}.`)
  })
  const socket = connect(server.port, '127.0.0.1')
  const body = 'x'.repeat(60_000)
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nX-Ticks: ${ticks}\r\nContent-Length: ${body.length}\r\n\r\n${body}`.repeat(
      5,
    ),
  )
  let received = ''
  for await (const chunk of socket) {
    received += chunk
    if (received.split('took 60000.').length === 6) break
  }
  expect(received.match(/took \d+\./g)).toEqual(Array(5).fill('took 60000.'))
})

test('with many readers no request buffers more than the high-water mark of a stream', async () => {
  const readBody = createBodyReader(new Backpressure(8 * oneRead))
  let mostBuffered = 0
  await using server = await listening(async (request, response) => {
    for await (const _ of readBody(request)) {
      mostBuffered = Math.max(mostBuffered, request.readableLength)
      for (let turn = 0; turn < 20; turn += 1) await setImmediate()
    }
    response.end()
  })
  const body = 'x'.repeat(size)
  const posts = Array.from({ length: 24 }, () => fetch(server.url, { method: 'POST', body }))
  for (const { status } of await Promise.all(posts)) expect(status).toBe(200)
  // One read more than the mark, because a stream pauses only after it has exceeded it.
  expect(mostBuffered).toBeLessThanOrEqual(3 * oneRead)
})

test('U12 a client whose connection is paused is not idle', async () => {
  await using server = await readingServer()
  const idle = 1_500
  let timeouts = 0
  const enough = Promise.withResolvers<void>()
  server.http.on('timeout', () => {
    timeouts += 1
    if (timeouts === 6) enough.resolve()
  })
  refusePipelining(server.http)
  closeOnIdleTimeout(server.http, idle)
  // One client has no unread bytes here while reading is paused; the other starts after the pause.
  const begun = 1_000
  server.goOn('second')
  const second = await server.send('second', begun)
  await server.began('second')
  await server.send('first')
  await server.began('first')
  second.write(Buffer.alloc(size - begun))
  server.goOn('third')
  await server.send('third')
  await enough.promise
  await setImmediate()
  server.goOn('first')
  for (const name of ['first', 'second', 'third']) {
    await server.reading(name).done
    expect(server.reading(name).taken).toBe(size)
  }
})

test('only a limited number of incomplete small bodies is collected', async () => {
  const size = 60_000
  const readWholeBody = createWholeBodyReader(new Backpressure(8 * oneRead), 10 * size)
  let refused = 0
  const results: Promise<unknown>[] = []
  await using server = await listening(async (request) => {
    const whole = readWholeBody(request)
    results.push(whole.catch(() => undefined))
    if ((await whole.catch(() => undefined)) === null) refused += 1
  })
  const open = () => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size - 1)}`)
    return socket
  }
  const sockets = Array.from({ length: 25 }, open)
  await expect.poll(() => refused, { timeout: 60_000 }).toBe(15)
  // Those that fail release their room.
  for (const socket of sockets) socket.destroy()
  await expect.poll(() => results.length, { timeout: 60_000 }).toBe(25)
  await Promise.all(results)
  const more = Array.from({ length: 11 }, open)
  await expect.poll(() => refused, { timeout: 60_000 }).toBe(16)
  for (const socket of more) socket.destroy()
})
