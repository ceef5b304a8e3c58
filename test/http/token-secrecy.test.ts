import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'

/** Every value in every table of the catalog. */
function allValues(data: string): unknown[] {
  const db = new DatabaseSync(join(data, 'catalog.db'), { readOnly: true })
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    return tables.flatMap(({ name }) =>
      db
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .flatMap((row) => Object.values(row)),
    )
  } finally {
    db.close()
  }
}

const lastUse = async (command: (...args: string[]) => Promise<{ stdout: string }>, id: string) => {
  const { stdout } = await command('token', 'list', '--json')
  const tokens: { id: string; last_used_at: string | null }[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return tokens.find((token) => token.id === id)?.last_used_at ?? null
}

test('A8 only the SHA-256 of a token is stored', async () => {
  await using server = await startServer()
  const made = await makeToken(server, '--bucket', 'default', '--name', 'by command')
  const tokens = [server.token, made.token]
  for (const token of tokens) {
    expect(token).toMatch(/^mbkt_[0-9a-hjkmnp-tv-z]{38}$/)
    await server.request('/api/media', { headers: { authorization: `Bearer ${token}` } })
  }

  const values = allValues(server.data)
  const blobs = values.filter((value) => value instanceof Uint8Array).map((value) => Buffer.from(value))
  const texts = values.filter((value) => typeof value === 'string')
  expect(texts).toContain('by command')
  for (const token of tokens) {
    const hash = createHash('sha256').update(token).digest()
    expect(blobs.some((blob) => blob.equals(hash))).toBe(true)
    expect(texts.filter((text) => text.includes(token.slice(5, 25)))).toEqual([])
  }
  await server.stop()
  for (const entry of readdirSync(server.data, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const bytes = readFileSync(join(entry.parentPath, entry.name))
    for (const token of tokens)
      expect([entry.name, bytes.includes(token.slice(5, 25))]).toEqual([entry.name, false])
  }
})

test('A8 the last use of a token is recorded, but not for every request', async () => {
  await using server = await startServer()
  const { id, authorization } = await makeToken(server, '--bucket', 'default')
  expect(await lastUse(server.command, id)).toBe(null)
  const use = () => server.request('/api/media', { headers: { authorization } })
  await use()
  const first = await until('the use is recorded', () => lastUse(server.command, id))
  expect(Math.abs(Date.parse(first) - Date.now())).toBeLessThan(60_000)
  for (let i = 0; i < 5; i += 1) await use()
  expect(await lastUse(server.command, id)).toBe(first)
})
