import { once } from 'node:events'
import { Agent, type RequestListener, request as startRequest } from 'node:http'
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { discardUnreadBody } from '../../src/http/bodies.ts'
import { collectAll, collectYoung, countInMemory } from '../minor-collection.ts'
import { serve } from './exchange.ts'

test('collections of the young generation free the requests of an open connection', async () => {
  let memory = countInMemory()
  const listener: RequestListener = (request, response) => {
    memory.mark(request)
    discardUnreadBody(request, response)
    request.resume()
    request.once('end', () => response.end())
  }

  await serve(listener, async (port) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    async function upload() {
      const sent = startRequest({ port, method: 'POST', agent })
      sent.end('bytes')
      const [response] = await once(sent, 'response')
      response.resume()
      await once(response, 'end')
      await nextTick()
    }

    for (let i = 0; i < 20; i += 1) await upload()
    collectAll()
    memory = countInMemory()
    for (let i = 0; i < 60; i += 1) {
      await upload()
      if (i % 6 === 0) collectYoung()
    }
    agent.destroy()
  })
  // A request that is in use during two collections moves to the old generation.
  expect(memory.count()).toBeLessThan(20)
})
