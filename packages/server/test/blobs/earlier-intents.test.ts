import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newMediaId, shardOf } from '../../src/core/media-id.ts'
import { storeBytes } from './blob-contract.ts'
import { temporaryStore } from './temporary-store.ts'

test('S8, O8 a start reads the intents of earlier versions, which name files or their directories', async () => {
  await using opened = await temporaryStore()
  const { store, directory } = opened
  const { recovery } = store
  if (recovery === null) throw new Error('the disk store recovers')
  const pending = join(directory, 'pending')
  expect(await recovery.earlierIntents()).toEqual([])
  const [named, other] = [newMediaId(), newMediaId()]
  await storeBytes(store, randomBytes(10), other)
  await mkdir(pending)
  const missing = shardOf(other) === '00' ? '11' : '00'
  for (const name of [named, shardOf(other), missing]) await writeFile(join(pending, name), '')
  expect((await recovery.earlierIntents()).toSorted()).toEqual([named, other].toSorted())
  await recovery.clearEarlierIntents()
  expect(existsSync(pending)).toBe(false)
  await recovery.clearEarlierIntents()
})
