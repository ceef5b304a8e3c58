import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { copyBackup } from '../../packages/server/src/storage/catalog/engines/sqlite/sqlite-transfer.ts'
import { databaseSettings, usePostgres } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { catalogRows } from '../harness/rows.ts'
import { startServer } from '../harness/server.ts'
import { outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

/** Changes of the tables that a development version may have made, and what the message names. */
const changes: Readonly<Record<'sqlite' | 'postgres', (readonly [string, string])[]>> = {
  sqlite: [
    ['ALTER TABLE webhooks DROP COLUMN owner', '"owner" of the table "webhooks"'],
    ['ALTER TABLE tokens ADD COLUMN colour TEXT', '"colour" of the table "tokens"'],
    ['ALTER TABLE signing_keys RENAME TO keys', 'the table "signing_keys"'],
    ['DROP INDEX items_by_path', '"items_by_path"'],
  ],
  postgres: [
    ['ALTER TABLE webhooks DROP COLUMN owner', '"owner" of the table "webhooks"'],
    ['ALTER TABLE tokens ALTER COLUMN name TYPE varchar', '"name" of the table "tokens"'],
    ['ALTER TABLE signing_keys RENAME TO keys', 'the table "signing_keys"'],
    [
      'CREATE OR REPLACE FUNCTION revision_step() RETURNS int8 LANGUAGE sql VOLATILE AS $$ SELECT 1::int8 $$',
      '"revision_step"',
    ],
  ],
}

describe.each(['sqlite', 'postgres'] as const)('O8 with %s', (engine) => {
  test.each(changes[engine])(
    'O8 %s: data of this version with other tables are refused by name',
    async (change, named) => {
      const restore = engine === 'postgres' ? usePostgres() : () => undefined
      await using server = await startServer().finally(restore)
      await server.stop()
      const settings = await databaseSettings(server.data)
      // A second start accepts what the first one has created.
      await using again = await startServer(settings, server.data)
      await again.stop()
      await (await catalogRows(server.data)).change(change)
      for (const command of ['serve', 'fsck']) {
        const { code, stderr } = await outcome([command], server.data, { ...settings, MEDIABUCKET_PORT: '0' })
        expect([code, stderr]).toEqual([1, expect.stringContaining(named)])
        expect(stderr).toContain('Make a backup of it')
      }
    },
  )
})

test('O8, F8 rows of a backup of this version with other tables get the tables of this program', async () => {
  await using server = await startServer()
  await using directory = await temporaryDirectory()
  const { id } = await upload(server, 'kept')
  await server.stop()
  await (await catalogRows(server.data)).change(
    'ALTER TABLE webhooks DROP COLUMN owner; ALTER TABLE tokens ADD COLUMN colour TEXT',
  )
  copyBackup(join(server.data, 'catalog.db'), directory.path)
  const rows = await catalogRows(directory.path)
  expect(await rows.read('SELECT id FROM items')).toEqual([{ id }])
  expect(await rows.read('SELECT owner FROM webhooks')).toEqual([])
  await expect(rows.read('SELECT colour FROM tokens')).rejects.toThrow('no such column')
})
