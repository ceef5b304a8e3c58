import { expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { startBatchThread } from '../../src/storage/batch-threads.ts'

interface Report {
  readonly batch: number
  readonly size: number
}

async function start<Request = string>(workerData: unknown = null) {
  const reports: Report[] = []
  const failures: Error[] = []
  const failed = Promise.withResolvers<Error>()
  const thread = await startBatchThread<Request, string, Report>({
    file: new URL('./sample-thread.ts', import.meta.url),
    name: 'sample',
    workerData,
    onReport: (report) => reports.push(report),
    onFailure(error) {
      failures.push(error)
      failed.resolve(error)
    },
  })
  onTestFinished(() => thread.close())
  const send = (request: Request, transfer: readonly ArrayBuffer[] = []) =>
    new Promise<string>((resolve, reject) => thread.send(request, { resolve, reject }, transfer))
  return { thread, send, reports, failures, failed: failed.promise }
}

test('requests of one tick are one batch, and each receives its own output', async () => {
  const { thread, send, reports } = await start()
  const sent = ['a', 'b', 'c'].map((request) => send(request))
  expect(thread.pendingCount()).toBe(3)
  expect(await Promise.all(sent)).toEqual(['A', 'B', 'C'])
  expect(thread.pendingCount()).toBe(0)
  expect(reports).toEqual([{ batch: 1, size: 3 }])
})

test.each([
  ['a function', () => () => undefined],
  ['a buffer that is gone', detached],
])('a request with %s fails alone', async (_what, make) => {
  const { thread, send, reports } = await start<unknown>()
  const value = make()
  const pending = await Promise.allSettled([
    send('a'),
    send(value, value instanceof ArrayBuffer ? [value] : []),
    send('b', [new ArrayBuffer(1)]),
  ])
  const reason = expect.objectContaining({ message: 'a request cannot be sent to its thread' })
  expect(pending).toEqual([
    { status: 'fulfilled', value: 'A' },
    { status: 'rejected', reason },
    { status: 'fulfilled', value: 'B' },
  ])
  expect(thread.pendingCount()).toBe(0)
  expect(reports).toEqual([{ batch: 1, size: 2 }])
})

function detached(): ArrayBuffer {
  const buffer = new ArrayBuffer(1)
  structuredClone(buffer, { transfer: [buffer] })
  return buffer
}

test('batches may overlap: one that waits does not delay the next', async () => {
  const { send } = await start()
  const waiting = send('wait')
  // Requests of the next tick are sent in a separate message.
  await new Promise((resolve) => setImmediate(resolve))
  expect(await send('release')).toBe('RELEASE')
  expect(await waiting).toBe('WAIT')
})

test('errors keep their codes, their parameters and their cause', async () => {
  const { send } = await start()
  const reasonOf = (request: string) => send(request).catch((error: unknown) => error)
  expect(await reasonOf('system')).toMatchObject({ message: 'no space', code: 'ENOSPC' })
  expect(await reasonOf('sqlite')).toMatchObject({ message: 'disk I/O error', errcode: 1034 })
  expect(await reasonOf('text')).toMatchObject({ message: 'only a text' })
  const fault = await reasonOf('fault')
  expect(fault).toBeInstanceOf(Fault)
  expect(fault).toMatchObject({
    code: 'storage-full',
    parameters: [{ parameter: 'scope', detail: 'x' }],
    cause: { code: 'ENOSPC' },
  })
})

test('a worker that throws before it is ready rejects the start with its error', async () => {
  await expect(start('throw')).rejects.toMatchObject({ message: 'no such disk', code: 'ENODEV' })
})

test('a worker that exits before it is ready rejects the start', async () => {
  await expect(start('exit')).rejects.toThrow('the thread sample exited with code 7 before it was ready')
})

test('a batch whose handler throws fails as a whole, and the thread continues', async () => {
  const { send, failures, reports } = await start()
  const pending = await Promise.allSettled(['a', 'throw', 'b'].map((request) => send(request)))
  const reason = expect.objectContaining({ message: 'the handler failed' })
  expect(pending).toEqual(Array(3).fill({ status: 'rejected', reason }))
  expect(await send('c')).toBe('C')
  expect([failures, reports]).toEqual([[], [{ batch: 2, size: 1 }]])
})

test.each([
  ['die', undefined],
  ['twice', expect.objectContaining({ message: 'a batch has two replies' })],
])(
  'a worker that ends at "%s" rejects all pending requests and reports one failure',
  async (request, cause) => {
    const { thread, send, failures, failed } = await start()
    const first = Promise.allSettled([send(request)])
    const error = await failed
    expect(error).toMatchObject({ message: expect.stringContaining('the thread sample has ended'), cause })
    await first
    await expect(send('late')).rejects.toBe(error)
    await thread.close()
    expect(failures).toEqual([error])
  },
)

test('a worker that ends rejects all pending requests', async () => {
  const { send, failed } = await start()
  const pending = Promise.allSettled([send('a'), send('die'), send('b')])
  expect(await pending).toEqual(Array(3).fill({ status: 'rejected', reason: await failed }))
})

test('close finishes the pending requests, rejects later ones, and does not report a failure', async () => {
  const { thread, send, failures } = await start()
  const pending = [send('a'), send('b')]
  const closed = thread.close()
  await expect(send('late')).rejects.toMatchObject({ code: 'shutting-down' })
  expect(await Promise.all(pending)).toEqual(['A', 'B'])
  await Promise.all([closed, thread.close()])
  expect(failures).toEqual([])
})
