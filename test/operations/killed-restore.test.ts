import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { acquireDataLock } from '../../packages/server/src/storage/catalog/engines/sqlite/locks.ts'
import { requireNoRestore } from '../../packages/server/src/upkeep/interrupted-restore.ts'
import { runAndKillAt } from '../faults/kill-upkeep.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { seed } from '../harness/seed.ts'
import { startServer } from '../harness/server.ts'
import { outcome } from '../harness/upkeep.ts'

/** More calls than a restore makes before it copies anything. */
const firstCalls = 20

test('F8 no service starts on a directory in which a killed restore has created its first entry, and the same command completes it', async () => {
  await using directory = await temporaryDirectory()
  const at = (name: string) => join(directory.path, name)
  await seed({ data: at('source') }, '--bucket', 'b', '--items', '3')
  await outcome(['backup', at('backup')], at('source'))

  let marked = ''
  for (let call = 1; call <= firstCalls; call += 1) {
    const data = at(`data-${call}`)
    await runAndKillAt(['restore', at('backup')], data, call)
    const names = existsSync(data) ? await readdir(data) : []
    if (names.includes('restoring')) break
    if (names.length === 0) continue
    expect(() => requireNoRestore(data), `after call ${call}: ${names}`).toThrow(/restore .* was interrupted/)
    marked ||= data
  }
  // A restore that runs has the lock. The service looks for a restore only when it has the lock itself.
  const lock = acquireDataLock(marked)
  await expect(startServer({}, marked)).rejects.toThrow(/exited with 1: .*already served/)
  lock.release()
  await expect(startServer({}, marked)).rejects.toThrow(/exited with 1: .*A restore into .* was interrupted/)
  const completed = await outcome(['restore', at('backup')], marked)
  expect(completed.stdout).toMatch(/^Restored 3 items/)
  expect(await readdir(marked)).toContain('catalog.db')
})
