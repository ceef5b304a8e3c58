import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { startServer } from '../harness/server.ts'
import { readMedia, readPage } from '../harness/wire.ts'

const fixture = join(import.meta.dirname, '../fixtures/data-version-1')
const good = { authorization: 'Bearer mbkt_5b1987y386a81a53c05fmckmpxmn0dqckpzk9y' }
const revoked = { authorization: 'Bearer mbkt_sydc0zry3m4xm2armb8syf33hd1scvkcc1zrqw' }

test('O8 data of the first version are opened, listed and served, and accept uploads', async () => {
  const data = await mkdtemp(join(tmpdir(), 'mediabucket-'))
  try {
    await cp(fixture, data, { recursive: true })
    await using server = await startServer({}, data)
    expect(server.token).toBe('')

    const page = await readPage(await server.request('/api/media', { headers: good }))
    expect(page.data.map((url) => new URL(url).pathname)).toEqual([
      '/media/djvp3gkx05q1rmx5sw51zx4rm0.txt',
      '/media/8ya9r8acybawhaaax96vz1vqne.png',
      '/media/pbezhxsqsbksbk3z896msv9mgm.txt',
    ])
    expect(await (await fetch(page.data[0] ?? '')).text()).toBe('one\n')
    const last = await server.request('/api/media/pbezhxsqsbksbk3z896msv9mgm', { headers: good })
    expect(await readMedia(last)).toMatchObject({
      filename: 'ünï "quoted".txt',
      created_at: '2026-11-21T10:35:52.093Z',
    })
    const deleted = await server.request('/api/media/qtezt5864n3k7cgc5e4yn7b9q3', { headers: good })
    await expectProblem(deleted, 404, 'media-unknown')
    await expectProblem(await server.request('/api/media', { headers: revoked }), 401, 'token-revoked')

    await server.request('/api/media', { method: 'POST', body: 'new', headers: good })
    expect(await readPage(await server.request('/api/media', { headers: good }))).toMatchObject({ total: 4 })
  } finally {
    await rm(data, { recursive: true, force: true })
  }
})
