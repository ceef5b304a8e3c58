import { beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { openConnection } from '../harness/connection.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readPage } from '../harness/wire.ts'

let server: SharedServer
let id: string
let tokenId: string
beforeAll(async () => {
  server = await sharedServer()
  id = (await upload(server, 'an item')).id
  tokenId = (await makeToken(server, '--bucket', server.bucket)).id
})

const withId = (text: string) => text.replace('ITEM', id).replace('TOKEN', tokenId)

// The service sends `100 Continue` after it has verified the token, and then waits for the body.
test.each([
  ['POST', '/api/media/ITEM/links', '{"expires_in": 60}'],
  ['POST', '/api/links', '{"ids": ["ITEM"], "expires_in": 60}'],
  ['PATCH', '/api/media/ITEM', '{"filename": "other.txt"}'],
  ['DELETE', '/api/media', '{"ids": ["ITEM"]}'],
  ['POST', '/api/trash/restore', '{"ids": ["ITEM"]}'],
  ['DELETE', '/api/trash', '{"all": true}'],
  ['POST', '/api/tokens', '{"scopes": ["media:read"]}'],
  ['POST', '/api/tokens/TOKEN/rotate', '{"expires_at": null}'],
])('A7 a token that is revoked while the body of %s %s arrives is refused', async (method, path, sent) => {
  const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage']
  const token = await makeToken(
    server,
    '--bucket',
    server.bucket,
    ...scopes.flatMap((scope) => ['--scope', scope]),
  )
  using connection = await openConnection(server.url)
  const body = withId(sent)
  connection.send(
    `${method} ${withId(path)} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: ${token.authorization}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  await until('the token is verified', () => connection.received().startsWith('HTTP/1.1 100'))
  await runHere(server.data, 'token revoke', token.id)
  connection.send(body)
  await connection.closed
  expect(connection.received()).toMatch(
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 401 [\s\S]*"code":"token-revoked"/,
  )
  expect((await readPage(await server.request('/api/media'))).total).toBe(1)
})
