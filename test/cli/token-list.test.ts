import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe('tokens of every state', () => {
  let server: TestServer
  let made: Record<'active' | 'expired' | 'revoked', { id: string; token: string }>
  beforeAll(async () => {
    server = await startServer()
    made = {
      active: await makeToken(server, '--bucket', 'photos', '--name', 'phone', '--expires', '52w'),
      expired: await makeToken(server, '--bucket', 'photos', '--expires', '1ms', '--scope', 'media:read'),
      revoked: await makeToken(
        server,
        '--bucket',
        'films',
        '--name',
        'a\u202e\u2028',
        '--scope',
        'media:delete',
        '--scope',
        'media:read',
      ),
    }
    await server.command('token', 'revoke', made.revoked.id)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const list = async (...args: string[]) => (await server.command('token', 'list', ...args)).stdout
  const parsed = async (...args: string[]) =>
    (await list('--json', ...args))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))

  test('A8 token list shows the properties of each token, and never its secret', async () => {
    const text = await list()
    const lines = text.trim().split('\n')
    expect(lines.length).toBe(4)
    expect(lines[0]).toMatch(
      /^tok_\w+ +default +first +active +media:read,media:write,media:delete,tokens:manage,webhooks:manage +\d{4}-\d\d-\d\d +never +never +- +-$/,
    )
    expect(lines[1]).toMatch(
      new RegExp(
        `^${made.active.id} +photos +phone +active .* \\d{4}-\\d\\d-\\d\\d +\\d{4}-\\d\\d-\\d\\d +never +- +-$`,
      ),
    )
    expect(lines[2]).toMatch(new RegExp(`^${made.expired.id} +photos +- +expired +media:read `))
    expect(lines[3]).toMatch(
      new RegExp(`^${made.revoked.id} +films +a\ufffd\ufffd +revoked +media:read,media:delete `),
    )
    for (const { token } of Object.values(made)) expect(text).not.toContain(token.slice(5, 15))
    expect(text).not.toContain('mbkt_')
  })

  test('A8 token list --json prints one object per line, without secrets', async () => {
    expect(await list('--json')).not.toMatch(/[\u2028\u202e]/)
    const tokens = await parsed()
    expect(tokens[1]).toEqual({
      id: made.active.id,
      bucket: 'photos',
      name: 'phone',
      state: 'active',
      scopes: ['media:read', 'media:write', 'media:delete'],
      created_at: time,
      expires_at: time,
      last_used_at: null,
      revoked_at: null,
      note: null,
      limits: null,
      uploaded: null,
    })
    expect(tokens.map(({ state }) => state)).toEqual(['active', 'active', 'expired', 'revoked'])
    expect(tokens[3]).toMatchObject({ expires_at: null, revoked_at: time })
    expect(await list('--json')).not.toMatch(/mbkt_|hash/)
  })

  test('token list --bucket lists the tokens of one bucket', async () => {
    expect((await parsed('--bucket', 'films')).map(({ id }) => id)).toEqual([made.revoked.id])
  })

  test('A7 token revoke twice keeps the first time', async () => {
    const [before] = await parsed('--bucket', 'films')
    await server.command('token', 'revoke', made.revoked.id)
    expect(await parsed('--bucket', 'films')).toEqual([before])
  })

  test.each([
    [['tok_000000000000'], 4, /there is no token "tok_000000000000"\. See: mediabucket token list/],
    [[], 2, /takes one ID or NAME/],
    [['tok_1', 'tok_2'], 2, /takes one ID or NAME/],
    [['--all'], 2, /mediabucket token revoke --help/],
  ])('token revoke %j fails: exit %d', async (args, code, message) => {
    const failure = server.command('token', 'revoke', ...args)
    await expect(failure).rejects.toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) })
  })
})

test.each([
  ['token', 'list'],
  ['token', 'revoke', 'tok_000000000000'],
  ['bucket', 'list'],
  ['bucket', 'set', 'default', '--max-items', '1'],
])('%s %s in a directory without data fails, and creates none', async (...args) => {
  const data = join(tmpdir(), `mediabucket-none-${randomUUID()}`)
  await expect(runCommand(args, { MEDIABUCKET_DATA: data })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `${data} contains no data of Mediabucket. Run this command where the service runs`,
    ),
  })
  expect(existsSync(data)).toBe(false)
})
