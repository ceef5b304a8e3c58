import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { makeToken } from '../harness/token.ts'
import { blocksOf } from './blocks.ts'
import { openStage } from './run.ts'

test('the backend of docs/recipes.md signs a customer up, shows the usage and deletes the customer', async () => {
  await using stage = await openStage()
  const { server, directory } = stage
  const block = blocksOf('docs/recipes.md').find(({ code }) => code.startsWith('// backend.mjs'))
  const code = block?.code ?? ''
  expect(code.split('\n').length).toBeLessThan(50)
  await writeFile(join(directory, 'backend.mjs'), code)
  const { token } = await makeToken(server, '--service', '--scope', 'buckets:manage')
  const backend = spawn(process.execPath, ['backend.mjs'], {
    cwd: directory,
    env: { PATH: process.env['PATH'], MEDIABUCKET_URL: server.url, MEDIABUCKET_TOKEN: token, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void backend.kill())
  const [address] = await once(createInterface(backend.stdout), 'line')
  const call = async (method: string, id: number) => {
    const response = await fetch(`${address}/customers/${id}`, { method })
    return { status: response.status, body: response.ok ? Object(await response.json()) : null }
  }

  const signedUp = await call('POST', 42)
  expect(signedUp).toMatchObject({ status: 200, body: { url: server.url } })
  expect((await call('POST', 42)).body).toEqual(signedUp.body)
  const client = createClient(signedUp.body)
  const { url } = await client.upload(new Blob(['12345']))
  await (await client.get(url)).arrayBuffer()
  expect((await call('GET', 42)).body).toMatchObject({ items: 1, bytes: 5, limit: 1_000_000_000 })
  expect(await call('DELETE', 42)).toMatchObject({ status: 200 })
  await expect(client.whoami()).rejects.toMatchObject({ status: 401 })
  for (const method of ['GET', 'DELETE']) expect(await call(method, 42)).toMatchObject({ status: 404 })
})
