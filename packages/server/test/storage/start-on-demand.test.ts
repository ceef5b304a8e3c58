import { expect, onTestFinished, test } from 'vitest'
import { OnDemandThread, startBatchThread } from '../../src/storage/batch-threads.ts'

function create(failures: Error[] = []) {
  let starts = 0
  const thread = new OnDemandThread<string, string>(async (onFailure) => {
    starts += 1
    const failure = failures.shift()
    if (failure) throw failure
    return await startBatchThread({
      file: new URL('./sample-thread.ts', import.meta.url),
      name: 'sample',
      workerData: null,
      onReport: () => undefined,
      onFailure,
    })
  })
  onTestFinished(() => thread.close())
  const send = (request: string) =>
    new Promise<string>((resolve, reject) => thread.send(request, { resolve, reject }))
  return { thread, send, starts: () => starts }
}

test('the thread starts once, with the first requests, and processes them and later ones', async () => {
  const { send, starts } = create()
  expect(starts()).toBe(0)
  expect(await Promise.all(['a', 'b'].map(send))).toEqual(['A', 'B'])
  expect(await send('c')).toBe('C')
  expect(starts()).toBe(1)
})

test('a failed start fails the requests that wait for it, and the next one starts the thread', async () => {
  const { send, starts } = create([new Error('no memory')])
  const waiting = await Promise.allSettled(['a', 'b'].map(send))
  expect(waiting.map((result) => result.status === 'rejected' && result.reason.message)).toEqual([
    'no memory',
    'no memory',
  ])
  expect(await send('c')).toBe('C')
  expect(starts()).toBe(2)
})

test('after a thread that has ended, the next request starts another one', async () => {
  const { send, starts } = create()
  await expect(send('die')).rejects.toThrow('the thread sample has ended')
  expect(await send('a')).toBe('A')
  expect(starts()).toBe(2)
})

test('a close finishes the requests that wait for the start, and later ones fail', async () => {
  const { thread, send } = create()
  const waiting = send('a')
  await thread.close()
  expect(await waiting).toBe('A')
  await expect(send('b')).rejects.toMatchObject({ code: 'shutting-down' })
})

test('a close before any request starts nothing', async () => {
  const { thread, send, starts } = create()
  await thread.close()
  await expect(send('a')).rejects.toMatchObject({ code: 'shutting-down' })
  expect(starts()).toBe(0)
})
