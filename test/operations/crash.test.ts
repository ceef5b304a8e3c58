import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { intentsIn } from '../faults/check-leftovers.ts'
import { withFailpoints } from '../faults/preload.ts'
import { readReached, type StepName } from '../faults/steps.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { fsck } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

test('S8 consecutive crashes between rename and commit leave no file that a start does not remove', async () => {
  await using first = await startServer()
  await upload(first, 'x'.repeat(100_000))
  await first.stop()
  const headers = { authorization: `Bearer ${first.token}` }
  const expectCleared = (server: TestServer) =>
    expect(countStored({ ...server, request: (path) => server.request(path, { headers }) })).resolves.toEqual(
      {
        total: 1,
        blobs: 1,
        temporary: 0,
      },
    )
  const crashes: (readonly [StepName, number])[] = [
    ['renamed', 70_000],
    ['file synced', 200_000],
    ['before the item is committed', 70_000],
  ]
  for (const [step, size] of crashes) {
    await using server = await startServer(withFailpoints({ step, nth: 1, action: 'kill' }), first.data)
    await expectCleared(server)
    const sent = server.request('/api/media', { method: 'POST', body: 'x'.repeat(size), headers })
    await expect(sent).rejects.toThrow()
    expect(readReached(first.data)).toEqual([step])
    const blobs = await readdir(join(first.data, 'blobs'), { recursive: true, withFileTypes: true })
    const names = blobs.filter((entry) => entry.isFile() && entry.name !== '.identity')
    expect(names).toHaveLength(step === 'file synced' ? 1 : 2)
  }
  await using last = await startServer({}, first.data)
  await expectCleared(last)
  await last.stop()
  expect(await intentsIn(first.data)).toEqual([])
  expect(await fsck(first.data, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
})
