import { spawn } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { freePort } from '../harness/free-port.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { readCreatedWebhook, readDelivery } from '../harness/wire.ts'
import { blocksOf } from './blocks.ts'
import { interpreters } from './interpreters.ts'

let server: TestServer
let authorization: string
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1' })
  ;({ authorization } = await makeToken(server, '--bucket', 'b', '--scope', 'media:write,webhooks:manage'))
})
afterAll(() => server[Symbol.asyncDispose]())

const post = (path: string, body?: object) =>
  server.request(path, {
    method: 'POST',
    headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })

/** Of a message without a signature; null while nothing listens. */
const statusOf = (url: string): Promise<number | null> =>
  fetch(url, { method: 'POST', body: '' }).then(
    ({ status }) => status,
    () => null,
  )

test.each(['ts', 'python', 'php'])(
  'WH3 the receiver of docs/webhooks.md in %s verifies deliveries',
  async (language) => {
    const interpreter = interpreters[language]
    const block = blocksOf('docs/webhooks.md').find((one) => one.language === language)
    if (interpreter === undefined || block === undefined) throw new Error('there is no such example')
    needTools(...interpreter.needs)
    expect(block.code.trim().split('\n').length).toBeLessThan(20)
    const port = await freePort()
    const webhook = await post('/api/webhooks', { url: `http://127.0.0.1:${port}/` })
    const { id, secret } = readCreatedWebhook(await webhook.json())
    const directory = await temporaryDirectory()
    onTestFinished(() => directory[Symbol.asyncDispose]())
    await symlink(join(root, 'node_modules'), join(directory.path, 'node_modules'))
    const file = join(directory.path, `receiver.${interpreter.extension}`)
    await writeFile(file, block.code)
    const args = language === 'php' ? ['-S', `127.0.0.1:${port}`, file] : [...interpreter.arguments, file]
    const child = spawn(interpreter.command, args, {
      env: { PATH: process.env['PATH'], WEBHOOK_SECRET: secret, PORT: `${port}` },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk
      })
    onTestFinished(() => void child.kill('SIGKILL'))
    await until('the receiver listens', () =>
      statusOf(`http://127.0.0.1:${port}/`).then((status) => status === 401),
    )
    const tested = await post(`/api/webhooks/${id}/test`)
    expect(readDelivery(await tested.json())).toMatchObject({ status: 204, delivered: true })
    const uploaded = await server.request('/api/media', {
      method: 'POST',
      body: 'x',
      headers: { authorization },
    })
    expect(uploaded.status).toBe(201)
    await until('the change arrives', () => output.includes('item.added'))
    await server.request(`/api/webhooks/${id}`, { method: 'DELETE', headers: { authorization } })
  },
)
