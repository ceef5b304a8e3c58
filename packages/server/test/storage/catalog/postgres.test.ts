import { describe, expect, onTestFinished, test } from 'vitest'
import { onServer } from '../../../../../test/harness/postgres.ts'
import { operator } from '../../../src/core/token-rules.ts'
import { readEvents } from '../../../src/storage/catalog/audit/audit-log.ts'
import { openPostgresAuditLog } from '../../../src/storage/catalog/engines/postgres/postgres-audit-log.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openPostgresInspection } from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import { describeAuditLog } from './audit-log-contract.ts'
import { describeCatalog } from './catalog-contract.ts'
import { describeAudit } from './inspection-contract.ts'
import { freshCatalog } from './postgres-database.ts'

const tampering = {
  counters: 'UPDATE buckets SET total = 7, bytes = 3, reserved_items = 0',
  ranks: 'DELETE FROM ranks WHERE level = 1 AND slot = 0; UPDATE ranks SET sums = array_fill(0, ARRAY[128])',
  names: "DELETE FROM item_names WHERE slot = 2; UPDATE item_names SET names = 'other' WHERE slot = 9",
  contents: "INSERT INTO contents (id, bucket_id, bytes) VALUES (1, 1, '\\x00')",
  labels: "UPDATE labels SET items = items + 1 WHERE value = 'x'; DELETE FROM item_labels WHERE seq < 5",
  expiry: 'UPDATE buckets SET next_expiry = NULL',
  feed: 'UPDATE buckets SET revision = (SELECT min(number) FROM changes)',
  'feed-start': 'UPDATE buckets SET changes_start = revision + 1000',
  'feed-early': 'UPDATE buckets SET changes_start = (SELECT max(number) FROM changes)',
  usage: 'UPDATE buckets SET added_items = added_items + 1',
  'usage-damaged':
    'UPDATE bucket_usage SET removed_bytes = 9223372036854775807; UPDATE buckets SET added_bytes = -5',
  'name-keys': `UPDATE items SET name_key = CASE filename WHEN 'b' THEN 'd~' WHEN 'd' THEN 'b~' ELSE 'e~' END
    WHERE filename IN ('b', 'd', 'e')`,
  limits: "UPDATE token_limits SET reserved_items = CASE WHEN id = 'a' THEN 2 ELSE 0 END",
}

describe('with a PostgreSQL server', () => {
  describeCatalog('PostgreSQL', async () => {
    const url = await freshCatalog()
    return { open: () => openPostgresCatalog({ url, role: 'server' }) }
  })

  describeAuditLog('PostgreSQL', async () => {
    const url = await freshCatalog()
    return {
      open: (actor) => openPostgresCatalog({ url, role: 'server', actor }),
      openLog: () => openPostgresAuditLog(url),
    }
  })

  test('Y5 events that were copied from a server with later transactions are read', async () => {
    const url = await freshCatalog()
    const catalog = await openPostgresCatalog({ url, role: 'command', actor: operator('ada') })
    const log = await openPostgresAuditLog(url)
    onTestFinished(async () => {
      await log.close()
      await catalog.close()
    })
    await catalog.createBucket('copied', {}, Date.now())
    await onServer(url, 'UPDATE audit_events SET tx = tx + 1000000, time = time - 60000')
    await catalog.createBucket('own', {}, Date.now())
    const names = []
    const filter = { since: null, until: null, buckets: null, target: null, tokenId: null, action: null }
    for await (const events of readEvents(log, filter, null)) names.push(...events.map(({ name }) => name))
    expect(names).toEqual(['copied', 'own'])
  })

  describeAudit('PostgreSQL', async () => {
    const url = await freshCatalog()
    return {
      catalog: await openPostgresCatalog({ url, role: 'command' }),
      inspection: await openPostgresInspection(url),
      tamper: (fault) => onServer(url, tampering[fault]),
    }
  })
})
