import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, createServer as createListener } from 'node:net'
import { expect, test } from 'vitest'
import { bindPort } from '../../src/http/server.ts'

test('a free port is bound at once: no other process gets it, and early connections are served', async () => {
  const bound = await bindPort('127.0.0.1', 0)
  const other = createListener().listen(bound.port, '127.0.0.1')
  const [error] = await once(other, 'error')
  expect(error).toMatchObject({ code: 'EADDRINUSE' })

  const early = connect(bound.port, '127.0.0.1')
  early.write('GET /early HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(early, 'connect')
  const server = createServer((request, response) => response.end(`served ${request.url}`))
  await bound.serve(server)
  const [response] = await once(early, 'data')
  expect(String(response)).toContain('served /early')
  expect(await (await fetch(`http://127.0.0.1:${bound.port}/later`)).text()).toBe('served /later')

  early.destroy()
  server.closeAllConnections()
  await bound.close()
  await expect(fetch(`http://127.0.0.1:${bound.port}/`)).rejects.toThrow()
})

test('close frees a port without a server', async () => {
  const bound = await bindPort('127.0.0.1', 0)
  await bound.close()
  const again = await bindPort('127.0.0.1', bound.port)
  expect(again.port).toBe(bound.port)
  await again.close()
})

test('a port in use is an error', async () => {
  const bound = await bindPort('127.0.0.1', 0)
  await expect(bindPort('127.0.0.1', bound.port)).rejects.toMatchObject({
    code: 'EADDRINUSE',
    syscall: 'listen',
  })
  await bound.close()
})
