import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  scopes as bucketScopes,
  defaultScopes,
  newServiceToken,
  type ServiceScope,
  serviceScopes,
} from '../../packages/server/src/core/token-rules.ts'
import { runHere } from '../harness/commands.ts'
import { usePostgres } from '../harness/database.ts'
import { fullBucket, stateOf } from '../harness/full-bucket.ts'
import { startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { catalogRows } from '../harness/rows.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { parseProblem } from '../harness/wire.ts'
import { type Need, nameOf, requests, routes } from './route-needs.ts'

type Kind = 'bucket' | 'user' | 'service' | 'refused'

/** A token, with the scopes that it has. */
interface Sender {
  readonly kind: Kind
  readonly scopes: readonly ServiceScope[]
  readonly authorization: string
}

/** What the header Mediabucket-Bucket names: nothing, the bucket of the table, another one, or one that does not exist. */
const headers = ['absent', 'own', 'other', 'unknown'] as const
type Header = (typeof headers)[number]

/** A refusal; or the request is made: in the bucket of the table, or in the other one. */
type Outcome = readonly [status: number, code: string] | 'made' | 'made elsewhere'

const scopeMissing: Outcome = [403, 'scope-missing']

const scopesOf = (need: Need): readonly ServiceScope[] =>
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
    const make = async (kind: Kind, scopes: readonly ServiceScope[], ...of: string[]) => ({
      ...{ kind, scopes },
      authorization: (await makeToken(server, ...of, '--scope', scopes.join(','))).authorization,
    })
    const user = async (scope: ServiceScope) => ({
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
      ...(await Promise.all(defaultScopes.map(user))),
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
