import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readReached, type StepName, withFailpoints } from '../faults/steps.ts'
import { traces } from '../harness/resources.ts'
import { startServer } from '../harness/server.ts'
import { fsck } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

test('S8 crashes between bytes and row, one after another, leave nothing that a start does not remove', async () => {
  await using first = await startServer()
  await upload(first, 'stored')
  await first.stop()
  const authorization = `Bearer ${first.token}`
  const steps: StepName[] = [
    'renamed',
    'directory synced',
    'before the item is committed',
    'file synced',
    'renamed',
  ]
  for (const [index, step] of steps.entries()) {
    const crashing = await startServer(withFailpoints({ step, nth: 1, action: 'kill' }), first.data)
    // Held in memory, and on the disk.
    const body = 'x'.repeat(index % 2 === 0 ? 10 : 200_000)
    const sent = crashing.request('/api/media', { method: 'POST', body, headers: { authorization } })
    await expect(sent).rejects.toThrow()
    expect(readReached(first.data)).toEqual([step])
    const blobs = await readdir(join(first.data, 'blobs'), { recursive: true, withFileTypes: true })
    const names = blobs.filter((entry) => entry.isFile() && entry.name !== '.identity')
    expect(names).toHaveLength(step === 'file synced' ? 1 : 2)
    await crashing[Symbol.asyncDispose]()
    await using next = await startServer({}, first.data)
    const request: typeof next.request = (path) => next.request(path, { headers: { authorization } })
    expect(await traces({ ...next, request })).toEqual({ total: 1, blobs: 1, temporary: 0 })
    await next.stop()
  }
  expect(await readdir(join(first.data, 'pending'))).toEqual([])
  expect(await fsck(first.data, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
})
