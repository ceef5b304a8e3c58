import { expect } from 'vitest'
import type { TestIssuer } from '../harness/issuer.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { readToken } from '../harness/wire.ts'

/** A server of several processes, which create buckets for the users of the issuer. */
export const startUserServer = ({ settings }: TestIssuer): Promise<TestServer> =>
  startServer({
    ...settings,
    MEDIABUCKET_WORKERS: '2',
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_JWT_BUCKET_OPTIONS: 'max-bytes=1MB, private=on',
    MEDIABUCKET_ADDRESS_RATE: 'off',
    MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
  })

export const send = (server: TestServer, token: string, path = '/api/media', init: RequestInit = {}) =>
  server.request(path, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })

export async function describeToken(server: TestServer, token: string) {
  const response = await send(server, token, '/api/token')
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
  return readToken(await response.json())
}

/** The current time of the claims of a JWT. */
export const seconds = () => Math.floor(Date.now() / 1000)
