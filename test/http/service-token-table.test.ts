import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newServiceToken } from '../../packages/server/src/core/token-rules.ts'
import { isOfService, readIfPrivate } from '../../packages/server/src/http/openapi/description.ts'
import { runHere } from '../harness/commands.ts'
import { usePostgres } from '../harness/database.ts'
import { fullBucket, type RouteRequest, requestsOf, stateOf } from '../harness/full-bucket.ts'
import { startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { catalogRows } from '../harness/rows.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { parseProblem } from '../harness/wire.ts'

const bucketScopes = [
  'media:read',
  'media:write',
  'media:delete',
  'tokens:manage',
  'webhooks:manage',
] as const
const serviceScopes = ['buckets:manage', ...bucketScopes] as const
type Scope = (typeof serviceScopes)[number]

/** What an operation needs: a scope in one bucket, any token, or a scope of the whole service. */
type Need = (typeof bucketScopes)[number] | 'any token' | `service ${Scope}` | `service ${Scope} ${Scope}`

/** Every route of the API. A new route fails this test until it has an entry here. */
const routes: Readonly<Record<string, Need>> = {
  'GET /api/media': 'media:read',
  'GET /api/media/': 'media:read',
  'GET /v1/media': 'media:read',
  'GET /v1/media/': 'media:read',
  'POST /api/media': 'media:write',
  'POST /api/media/': 'media:write',
  'POST /api/media/from-url': 'media:write',
  'POST /v1/media': 'media:write',
  'POST /v1/media/': 'media:write',
  'GET /api/items': 'media:read',
  'GET /api/labels': 'media:read',
  'GET /api/changes': 'media:read',
  'GET /api/bucket': 'media:read',
  'GET /api/media/:id': 'media:read',
  'PATCH /api/media/:id': 'media:write',
  'DELETE /api/media/:id': 'media:delete',
  'PATCH /api/media': 'media:write',
  'DELETE /api/media': 'media:delete',
  'POST /api/uploads': 'media:write',
  'POST /api/uploads/': 'media:write',
  'HEAD /api/uploads/:id': 'media:write',
  'PATCH /api/uploads/:id': 'media:write',
  'DELETE /api/uploads/:id': 'media:write',
  'POST /api/uploads/:id': 'media:write',
  'GET /api/trash': 'media:delete',
  'POST /api/trash/restore': 'media:delete',
  'DELETE /api/trash': 'media:delete',
  'POST /api/media/:id/links': 'media:read',
  'POST /api/links': 'media:read',
  'GET /media/:name': 'media:read',
  'GET /media/:name/:filename': 'media:read',
  'GET /api/token': 'any token',
  'GET /api/tokens': 'tokens:manage',
  'POST /api/tokens': 'tokens:manage',
  'DELETE /api/tokens/:id': 'tokens:manage',
  'POST /api/tokens/:id/rotate': 'tokens:manage',
  'GET /api/webhooks': 'webhooks:manage',
  'POST /api/webhooks': 'webhooks:manage',
  'GET /api/webhooks/:id': 'webhooks:manage',
  'PATCH /api/webhooks/:id': 'webhooks:manage',
  'DELETE /api/webhooks/:id': 'webhooks:manage',
  'POST /api/webhooks/:id/rotate': 'webhooks:manage',
  'POST /api/webhooks/:id/test': 'webhooks:manage',
  'GET /api/webhooks/:id/deliveries': 'webhooks:manage',
  'POST /api/webhooks/:id/deliveries/:number/redeliver': 'webhooks:manage',
  'GET /api/keys': 'service buckets:manage',
  'POST /api/keys': 'service buckets:manage',
  'DELETE /api/keys/:id': 'service buckets:manage',
  'GET /api/audit': 'service buckets:manage media:read',
  'GET /api/buckets': 'service buckets:manage',
  'POST /api/buckets': 'service buckets:manage',
  'GET /api/buckets/:name': 'service buckets:manage',
  'PATCH /api/buckets/:name': 'service buckets:manage',
  'DELETE /api/buckets/:name': 'service buckets:manage',
  'GET /api/buckets/:name/usage': 'service buckets:manage',
  'GET /api/usage': 'service buckets:manage',
  'POST /api/buckets/:name/tokens': 'service tokens:manage',
}

const nameOf = ({ method, pattern }: Pick<RouteRequest, 'method' | 'pattern'>) =>
  `${method === 'HEAD' && !pattern.startsWith('/api/uploads') ? 'GET' : method} ${pattern}`

const requests = requestsOf(({ needs }) => needs !== 'nothing')

test('ST2, ST5 every operation that takes a token has an entry in the table, with the scope of its description', () => {
  const described = requests.map(({ description, ...request }) => {
    const { needs } = description
    const need = isOfService(description)
      ? `service ${needs}`
      : needs === readIfPrivate
        ? 'media:read'
        : needs
    return [nameOf(request), need]
  })
  // The description of the audit log names its second scope in words.
  const expected = { ...routes, 'GET /api/audit': 'service buckets:manage' }
  expect(Object.fromEntries(described)).toEqual(expected)
})

type Kind = 'bucket' | 'user' | 'service' | 'refused'

/** A token, with the scopes that it has. */
interface Sender {
  readonly kind: Kind
  readonly scopes: readonly Scope[]
  readonly authorization: string
}

/** What the header Mediabucket-Bucket names: nothing, the bucket of the table, another one, or one that does not exist. */
const headers = ['absent', 'own', 'other', 'unknown'] as const
type Header = (typeof headers)[number]

/** A refusal; or the request is made: in the bucket of the table, or in the other one. */
type Outcome = readonly [status: number, code: string] | 'made' | 'made elsewhere'

const scopeMissing: Outcome = [403, 'scope-missing']

const scopesOf = (need: Need): readonly Scope[] =>
  serviceScopes.filter((scope) => need.split(' ').includes(scope))

/** The rule, once more (docs/interface.md A3, ST2, ST3, ST5, ST7). */
function outcomeOf(need: Need, { kind, scopes }: Sender, header: Header): Outcome {
  if (kind === 'refused') return [401, 'token-unknown']
  const needed = scopesOf(need)
  const hasScope = needed.every((scope) => scopes.includes(scope))
  if (need.startsWith('service ')) return kind === 'service' && hasScope ? 'made' : scopeMissing
  if (kind === 'service') {
    if (need === 'any token') return 'made'
    if (header === 'absent') return [400, 'bucket-required']
    if (header === 'unknown') return [404, 'bucket-unknown']
    if (!hasScope) return scopeMissing
    return header === 'own' ? 'made' : 'made elsewhere'
  }
  if (header === 'other' || header === 'unknown') return [403, 'bucket-forbidden']
  return hasScope ? 'made' : scopeMissing
}

/** Requests at once. */
const batchLength = 16

describe.each(['sqlite', 'postgres'] as const)('ST7 with %s', (engine) => {
  let issuer: TestIssuer
  let server: TestServer
  beforeAll(async () => {
    issuer = await startIssuer()
    const restore = engine === 'postgres' ? usePostgres() : () => undefined
    try {
      server = await startServer({
        ...issuer.settings,
        ...{ MEDIABUCKET_TOKEN_RATE: 'off', MEDIABUCKET_ADDRESS_RATE: 'off' },
        ...{ MEDIABUCKET_AUTH_FAILURE_RATE: 'off', MEDIABUCKET_URL_UPLOADS: 'public' },
      })
    } finally {
      restore()
    }
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await issuer[Symbol.asyncDispose]()
  })

  /** A token of each kind with each scope, with all and, of a user, with those that users can have. */
  async function sendersOf(bucket: string, subject: string): Promise<readonly Sender[]> {
    const make = async (kind: Kind, scopes: readonly Scope[], ...of: string[]) => ({
      ...{ kind, scopes },
      authorization: (await makeToken(server, ...of, '--scope', scopes.join(','))).authorization,
    })
    const user = async (scope: Scope) => ({
      ...{ kind: 'user' as const, scopes: [scope] },
      authorization: `Bearer ${await issuer.sign({ sub: subject, scope })}`,
    })
    const revoked = await makeToken(server, '--service', '--scope', 'media:read')
    await runHere(server.data, 'token revoke', revoked.id)
    return [
      ...(await Promise.all(bucketScopes.map((scope) => make('bucket', [scope], '--bucket', bucket)))),
      await make('bucket', bucketScopes, '--bucket', bucket),
      ...(await Promise.all(serviceScopes.map((scope) => make('service', [scope], '--service')))),
      await make('service', serviceScopes, '--service'),
      ...(await Promise.all(bucketScopes.slice(0, 3).map(user))),
      { kind: 'refused', scopes: serviceScopes, authorization: `Bearer ${newServiceToken()}` },
    ]
  }

  test('A3, ST2, ST3, ST5, ST7 every route, scope, kind of token and bucket header', async () => {
    const subject = uniqueName('anna')
    const full = await fullBucket(server, `user-${subject}`)
    const other = uniqueName('other')
    await makeToken(server, '--bucket', other)
    const named = { absent: null, own: full.bucket, other, unknown: uniqueName('unknown') }
    const senders = await sendersOf(full.bucket, subject)
    const cells = requests.flatMap((request) =>
      senders.flatMap((sender) =>
        headers.map((header) => {
          const need = routes[nameOf(request)] ?? expect.unreachable(nameOf(request))
          return { request, sender, header, outcome: outcomeOf(need, sender, header) }
        }),
      ),
    )
    const check = async ({ request, sender, header, outcome }: (typeof cells)[number]) => {
      // The removal of a finished upload is that of its item, which needs another scope (R9).
      const isRemoval = (request.override ?? request.method) === 'DELETE'
      const upload = isRemoval ? full.foreign : full.unfinished
      const response = await full.send(request, { ...sender, upload, named: named[header] })
      const text = await response.text()
      const { status } = response
      const code = status >= 400 && request.method !== 'HEAD' ? parseProblem(text).code : null
      const seen = outcome === 'made' || outcome === 'made elsewhere' ? made(status, code) : [status, code]
      const what = `${sender.kind} token, ${sender.scopes}, bucket ${header}: ${request.method} ${request.pattern} ${request.override}`
      const hidden = request.pattern.includes(':') ? 404 : status
      const wanted =
        outcome === 'made'
          ? 'made'
          : outcome === 'made elsewhere'
            ? ['made', hidden]
            : [outcome[0], request.method === 'HEAD' ? null : outcome[1]]
      expect([what, outcome === 'made elsewhere' ? [seen, status] : seen]).toEqual([what, wanted])
      // Not even a list shows what another bucket has.
      if (outcome === 'made elsewhere' && request.method === 'GET')
        for (const { id } of [full.item, full.token]) expect(text).not.toContain(id)
    }
    const checkAll = async (some: typeof cells) => {
      for (let at = 0; at < some.length; at += batchLength)
        await Promise.all(some.slice(at, at + batchLength).map(check))
    }
    const rows = await catalogRows(server.data)
    const [bucketRow] = await rows.read(`SELECT id FROM buckets WHERE name = '${full.bucket}'`)
    const state = () =>
      stateOf(
        server,
        (table, row) => `${row[table === 'buckets' ? 'id' : 'bucket_id']}` === `${bucketRow?.['id']}`,
      )
    // The first request of a user adds its row.
    await checkAll(cells.filter(({ sender, outcome }) => sender.kind === 'user' && outcome !== 'made'))
    const before = await state()
    await checkAll(cells.filter(({ outcome }) => outcome !== 'made'))
    expect(await state()).toBe(before)
    await checkAll(cells.filter(({ outcome }) => outcome === 'made'))
    expect(await state()).not.toBe(before)
  })
})

const refusals: readonly (string | null)[] = ['bucket-required', 'bucket-forbidden', 'bucket-unknown']

/** A request that is made may fail, but not because of its token, its bucket or its form. */
const made = (status: number, code: string | null) =>
  status === 400 || status === 401 || status === 403 || status >= 500 || refusals.includes(code)
    ? [status, code]
    : 'made'
