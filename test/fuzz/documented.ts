import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { makeToken } from '../harness/token.ts'
import { headerValue, hostileText, mutate } from './hostile.ts'
import type { Random } from './random.ts'
import type { Target } from './target.ts'

const Parameter = Type.Object({
  name: Type.String(),
  in: Type.String(),
  required: Type.Optional(Type.Boolean()),
  example: Type.Optional(Type.Unknown()),
})
const Content = Type.Object({
  examples: Type.Optional(Type.Record(Type.String(), Type.Object({ value: Type.Unknown() }))),
})
const Operation = Type.Object({
  parameters: Type.Optional(Type.Array(Parameter)),
  requestBody: Type.Optional(Type.Object({ content: Type.Record(Type.String(), Content) })),
  responses: Type.Record(Type.String(), Type.Unknown()),
})
const Document = Type.Object({
  paths: Type.Record(Type.String(), Type.Record(Type.String(), Operation)),
})

/** An operation of the OpenAPI document. */
interface Described extends Type.Static<typeof Operation> {
  readonly method: string
  readonly path: string
}

interface Scene {
  readonly operations: readonly [Described, ...Described[]]
  readonly authorization: string
}

const scenes = new WeakMap<Target['instance'], Promise<Scene>>()

/** Each creates a signing key, and the service reads all of them. */
const left = 'POST /api/keys'

async function openScene({ server }: Target['instance']): Promise<Scene> {
  const { paths } = Value.Parse(Document, await (await server.request('/openapi.json')).json())
  const [first, ...others] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([name, operation]) => {
      const method = name.toUpperCase()
      return `${method} ${path}` === left ? [] : [{ ...operation, method, path }]
    }),
  )
  if (first === undefined) throw new Error('the document has no operation')
  const scopes = [
    'media:read',
    'media:write',
    'media:delete',
    'tokens:manage',
    'buckets:manage',
    'webhooks:manage',
  ]
  const { authorization } = await makeToken(server, '--service', '--scope', scopes.join(','))
  return { operations: [first, ...others], authorization }
}

/** What a bucket has, by the segment of a path before its id. */
type Ids = ReadonlyMap<string, string>

/** A request in parts. */
interface Parts {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** The examples of the document, with ids of the bucket. */
function exampleOf(
  random: Random,
  { method, path, parameters = [], requestBody }: Described,
  ids: Ids,
): Parts {
  const given = (place: string) =>
    Object.fromEntries(
      parameters
        .filter(({ in: at, required = false }) => at === place && (required || random.oneIn(3)))
        .map(({ name, example }) => [name, `${example ?? ''}`]),
    )
  const [type, content] = random.pick([...Object.entries(requestBody?.content ?? {}), ['', {}]] as [
    [string, Type.Static<typeof Content>],
  ])
  const [value] = Object.values(content.examples ?? {})
    .map(({ value }) => value)
    .toSorted(() => random.below(2) - 0.5)
  return {
    method,
    path: path.replace(/([\w-]+)\/\{(\w+)\}/g, (_, before, name) => `${before}/${ids.get(before) ?? name}`),
    query: given('query'),
    headers: { ...given('header'), ...(type !== '' && { 'Content-Type': type }) },
    body: JSON.parse(
      JSON.stringify(value ?? 'hello').replace(/"[0-9a-z_]{20,}"/g, `"${ids.get('media') ?? ''}"`),
    ),
  }
}

const values = [null, true, 0, -1, 1.5, 1e300, 2 ** 53, [], {}, [[]], '\0', '\ud800', '2026-13-01T00:00:00Z']

const hostileValue = (random: Random): unknown =>
  random.pick([
    random.pick([...values, ''] as [unknown]),
    hostileText(random),
    Array.from({ length: 600 }, (_, index) => `${index}`),
    JSON.parse('['.repeat(200) + ']'.repeat(200)),
    JSON.parse(`{${JSON.stringify(hostileText(random))}:${JSON.stringify(hostileText(random))}}`),
  ])

/** The value with one member or element changed, added or left out, at any depth. */
function changedValue(random: Random, value: unknown): unknown {
  if (random.oneIn(4) || typeof value !== 'object' || value === null) return hostileValue(random)
  if (Array.isArray(value)) {
    const at = random.below(value.length + 1)
    return value.toSpliced(at, 1, changedValue(random, value[at]))
  }
  const members = Object.entries(value)
  const at = random.below(members.length + 1)
  const [name, member] = members[at] ?? [hostileText(random), null]
  const others = members.filter((_, index) => index !== at)
  return Object.fromEntries(random.oneIn(5) ? others : [...others, [name, changedValue(random, member)]])
}

/** The same request with one thing that no program would send. */
function changed(random: Random, parts: Parts): Parts {
  const { path, query, headers, body } = parts
  const other = (names: readonly string[]) => names[random.below(names.length)] ?? hostileText(random)
  return random.pick([
    { ...parts, query: { ...query, [other(Object.keys(query))]: hostileText(random) } },
    { ...parts, query: { ...query, [hostileText(random)]: '' } },
    { ...parts, headers: { ...headers, [other(Object.keys(headers))]: headerValue(random) } },
    { ...parts, body: changedValue(random, body) },
    { ...parts, body: changedValue(random, body) },
    { ...parts, body: mutate(random, Buffer.from(JSON.stringify(body))).toString('latin1') },
    { ...parts, path: path.replace(/[^/]+$/, encodeURIComponent(hostileText(random))) },
  ])
}

function bytesOf({ method, path, query, headers, body }: Parts, more: readonly string[]): Buffer {
  const search = new URLSearchParams(query).toString()
  const text = typeof body === 'string' ? Buffer.from(body, 'latin1') : Buffer.from(JSON.stringify(body))
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const lines = [
    `${method} ${path}${search === '' ? '' : `?${search}`} HTTP/1.1`,
    ...['Host: x', 'Connection: close', ...more],
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(hasBody ? [`Content-Length: ${text.byteLength}`] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), hasBody ? text : Buffer.of()])
}

/** A bucket with an item, an upload, a token and a webhook; the ids of these. */
async function fill({ instance }: Target, { authorization }: Scene, bucket: string): Promise<Ids> {
  const { server } = instance
  const post = async (path: string, body: string, headers: Readonly<Record<string, string>>) => {
    const response = await server.request(path, {
      ...{ method: 'POST', body },
      headers: { authorization, 'content-type': 'application/json', ...headers },
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
  const own = { 'mediabucket-bucket': bucket }
  const idOf = async (response: Response) => /"id":"(\w+)"/.exec(await response.text())?.[1] ?? ''
  await post('/api/buckets', JSON.stringify({ name: bucket, trash_days: 3 }), {})
  const upload = await post('/api/uploads', '', { ...own, 'tus-resumable': '1.0.0', 'upload-length': '9' })
  const url = 'https://receiver.invalid/hook'
  return new Map([
    ['media', await idOf(await post('/api/media', 'hello', { ...own, 'content-type': 'text/plain' }))],
    ['uploads', upload.headers.get('location')?.split('/').at(-1) ?? ''],
    [
      'tokens',
      await idOf(await post('/api/tokens', JSON.stringify({ name: 'a', scopes: ['media:read'] }), own)),
    ],
    ['webhooks', await idOf(await post('/api/webhooks', JSON.stringify({ url }), own))],
    ['buckets', bucket],
    ['deliveries', '1'],
    ['problems', 'internal'],
  ])
}

/** Requests of every operation of the OpenAPI document, with values that the document does not allow. */
export async function fuzzDocumented(target: Target): Promise<void> {
  const { random, instance, send } = target
  const opening = scenes.get(instance) ?? openScene(instance)
  scenes.set(instance, opening)
  const scene = await opening
  const bucket = `documented-${random.below(2 ** 31)}`
  const ids = await fill(target, scene, bucket)
  for (let time = 0; time < 10; time += 1) {
    const operation = random.pick(scene.operations)
    const example = exampleOf(random, operation, ids)
    const once = changed(random, example)
    const parts = random.oneIn(8) ? example : random.oneIn(4) ? changed(random, once) : once
    const isOfBucket = operation.parameters?.some(({ name }) => name === 'Mediabucket-Bucket')
    const { 'Mediabucket-Bucket': _example, ...headers } = parts.headers
    const bytes = bytesOf({ ...parts, headers }, [
      `Authorization: ${scene.authorization}`,
      ...(isOfBucket ? [`Mediabucket-Bucket: ${bucket}`] : []),
    ])
    const response = await send(bytes)
    if (response !== null && parts.path === example.path && !(response.status in operation.responses))
      throw new Error(`${response.status} is not described\nfor ${bytes.toString('latin1').slice(0, 2_000)}`)
  }
  const { authorization } = scene
  await instance.server.request(`/api/buckets/${bucket}?items=delete`, {
    method: 'DELETE',
    headers: { authorization },
  })
}
