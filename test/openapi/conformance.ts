import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { expect } from 'vitest'
import type { TestServer } from '../harness/server.ts'

const Reference = Type.Object({ $ref: Type.String() })
const Header = Type.Object({ required: Type.Boolean(), schema: Type.Record(Type.String(), Type.Unknown()) })
const DescribedResponse = Type.Object({
  headers: Type.Optional(Type.Record(Type.String(), Reference)),
  content: Type.Optional(Type.Record(Type.String(), Type.Object({ schema: Type.Optional(Type.Unknown()) }))),
})
const Operation = Type.Object({
  operationId: Type.String(),
  parameters: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
  security: Type.Array(Type.Record(Type.String(), Type.Array(Type.String()))),
  responses: Type.Record(Type.String(), Type.Union([Reference, DescribedResponse])),
})
const Document = Type.Object({
  openapi: Type.Literal('3.1.0'),
  servers: Type.Array(Type.Object({ url: Type.String() })),
  paths: Type.Record(Type.String(), Type.Record(Type.String(), Operation)),
  components: Type.Object({
    headers: Type.Record(Type.String(), Header),
    responses: Type.Record(Type.String(), DescribedResponse),
  }),
})

interface OperationAt {
  readonly method: string
  readonly path: string
  readonly operationId: string
  readonly needsToken: boolean
  /** The names of its parameters. */
  readonly parameters: readonly string[]
  readonly statuses: readonly number[]
}

/** Checks responses of a server against its OpenAPI document. */
export async function readDescription(server: TestServer) {
  const text = await (await fetch(`${server.url}/openapi.json`)).text()
  const document = Value.Parse(Document, JSON.parse(text))
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema(JSON.parse(text), 'openapi.json')

  const operations: OperationAt[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, parameters = [], security, responses }]) => ({
      method: method.toUpperCase(),
      path,
      operationId,
      needsToken: security.length > 0 && security.every((one) => 'bearer' in one),
      parameters: parameters.map(({ name }) => name),
      statuses: Object.keys(responses).map(Number),
    })),
  )

  const named = <T>(table: Readonly<Record<string, T>>, { $ref }: { $ref: string }): T => {
    const found = table[$ref.split('/').at(-1) ?? '']
    if (found === undefined) throw new Error(`the document has no ${$ref}`)
    return found
  }

  /** Asserts that the document describes the response: its status, type, headers and body. */
  async function expectDescribed(method: string, path: string, response: Response): Promise<void> {
    const methods = document.paths[path] ?? {}
    const operation = methods[method.toLowerCase()] ?? (method === 'HEAD' ? methods['get'] : undefined)
    const found = operation?.responses[response.status]
    if (found === undefined)
      throw new Error(`${method} ${path} has no description of the response ${response.status}`)
    const described = '$ref' in found ? named(document.components.responses, found) : found
    expectHeaders(response, described.headers ?? {})
    // The description of a 403 cannot require it, because only some of its problems have it.
    if (response.status === 401) expect(response.headers.has('WWW-Authenticate')).toBe(true)
    const body = await response.text()
    if (described.content === undefined || method === 'HEAD') return expect(body).toBe('')
    const type = response.headers.get('content-type')?.split(';', 1)[0] ?? ''
    const range = type in described.content ? type : '*/*'
    const content = described.content[range]
    expect([type, content], `${method} ${path} has a description of the type ${type}`).toEqual([
      type,
      expect.anything(),
    ])
    if (content?.schema === undefined) return
    const where = [path, method.toLowerCase(), 'responses', `${response.status}`, 'content', range, 'schema']
    const pointer = '$ref' in found ? `${found.$ref}/${join(where.slice(4))}` : `#/paths/${join(where)}`
    const check = ajv.compile({ $ref: `openapi.json${pointer}` })
    check(/json$/.test(type) ? JSON.parse(body) : body)
    expect(check.errors, `${method} ${path} ${response.status}: ${body.slice(0, 200)}`).toBeNull()
  }

  /** Asserts that all described headers are present and valid, and that no other header of the document is present. */
  function expectHeaders(response: Response, described: Readonly<Record<string, { $ref: string }>>): void {
    for (const [name, reference] of Object.entries(described)) {
      const { required, schema } = named(document.components.headers, reference)
      const value = response.headers.get(name)
      if (value === null) expect([name, required]).toEqual([name, false])
      else expect([name, value, ajv.validate(schema, value)]).toEqual([name, value, true])
    }
    const strangers = Object.keys(document.components.headers).filter(
      (name) => response.headers.has(name) && !(name in described) && name !== 'X-Content-Type-Options',
    )
    expect(strangers, `${response.status} ${response.url}`).toEqual([])
  }

  return { document, operations, expectDescribed }
}

/** A JSON pointer inside a URI. */
const join = (steps: readonly string[]): string =>
  steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
