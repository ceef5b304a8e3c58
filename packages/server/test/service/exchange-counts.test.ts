import { expect, test } from 'vitest'
import { type CountChanges, CountExchange, WorkerCounts } from '../../src/service/worker-messages.ts'

/** The parent and three workers; `sent` has what each worker received. */
function exchange() {
  const sent = new Map<string, CountChanges[]>()
  const counts = new CountExchange<string>((worker, changes) => {
    sent.set(worker, [...(sent.get(worker) ?? []), changes])
  })
  for (const worker of ['a', 'b', 'c']) counts.join(worker)
  sent.clear()
  return { counts, received: (worker: string) => sent.get(worker)?.flat() ?? [] }
}

test('O11 the changes of a worker are forwarded to all others', () => {
  const { counts, received } = exchange()
  counts.receive('a', [['token', 'one', 3]])
  expect(['a', 'b', 'c'].map(received)).toEqual([[], [['token', 'one', 3]], [['token', 'one', 3]]])
})

test('O11 the end of a worker sets its connections and claims back, but not the requests that it has counted', () => {
  const { counts, received } = exchange()
  counts.receive('a', [
    ['connections', '192.0.2.1', 2],
    ['claimed-bytes', '', 100],
    ['token', 'one', 3],
  ])
  counts.receive('a', [['connections', '192.0.2.1', -1]])
  counts.leave('a')
  const sum = (topic: string) =>
    received('b').reduce((total, [one, , change]) => (one === topic ? total + change : total), 0)
  expect(['connections', 'claimed-bytes', 'token'].map(sum)).toEqual([0, 0, 3])
})

test('O11 a new worker receives the connections of the others', () => {
  const { counts, received } = exchange()
  counts.receive('a', [['connections', '192.0.2.1', 2]])
  counts.receive('b', [['connections', '', 1]])
  counts.join('d')
  expect(received('d')).toEqual([
    ['connections', '192.0.2.1', 2],
    ['connections', '', 1],
  ])
})

test('O11 a worker adds its changes up before it sends them', async () => {
  const messages: CountChanges[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const counts = new WorkerCounts((changes) => {
    messages.push(changes)
    resolve()
  })
  counts.add('connections', 'x', 1)
  counts.add('connections', 'x', -1)
  counts.add('token', 'one', 1)
  counts.add('token', 'one', 1)
  await promise
  expect(messages).toEqual([[['token', 'one', 2]]])
})
