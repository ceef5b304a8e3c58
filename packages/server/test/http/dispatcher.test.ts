import { expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { createSerializer, Dispatcher } from '../../src/http/dispatcher.ts'
import { emptyLine } from '../../src/http/request-log.ts'
import { route } from '../../src/http/route.ts'
import { exchange } from './exchange.ts'

test('P1 a source that ends early before the response has begun is reported, although the code is that of a client that left', async () => {
  const reported: unknown[] = []
  const error = Object.assign(new Error('a failpoint'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
  const failing = route('GET', '/', null, async () => {
    throw error
  })
  const dispatcher = new Dispatcher([failing], {
    baseUrl: 'http://h',
    logRequest: () => emptyLine(),
    corsHeaders: () => ({}),
    limits: { countAddress: () => null },
    mediaHost: null,
    reportFault(thrown) {
      reported.push(thrown)
      return new Fault('internal', 'The service met an unexpected error.')
    },
    stopping: new AbortController().signal,
    isReadOnly: () => false,
  })
  const received = await exchange(
    (request, response) => dispatcher.dispatch(request, response),
    ['GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'],
  )
  expect(received).toMatch(/^HTTP\/1\.1 500 /)
  expect(reported).toEqual([error])
})

test.each([
  ['equal', { id: 'a', size: 1 }, '{"id":"a","size":1}'],
  ['in another order', { size: 1, id: 'a' }, '{"id":"a","size":1}'],
  ['with a further member', { id: 'a', size: 1, secret: 'b' }, '{"id":"a","size":1}'],
  ['with another member', { id: 'a', secret: 'b' }, '{"id":"a"}'],
  ['with an object inside', { id: 'a', size: 1, at: { x: 1 } }, '{"id":"a","size":1,"at":{"x":1}}'],
  ['with one inside that is null', { id: 'a', size: 1, at: null }, '{"id":"a","size":1,"at":null}'],
  [
    'with one inside that has a further member',
    { id: 'a', size: 1, at: { x: 1, secret: 'b' } },
    '{"id":"a","size":1,"at":{"x":1}}',
  ],
  [
    'in a list',
    [
      { id: 'a', size: 1 },
      { id: 'b', size: 2, secret: 'c' },
    ],
    '[{"id":"a","size":1},{"id":"b","size":2}]',
  ],
  [
    'in a list inside',
    { id: 'a', all: [{ x: 1 }, { x: 2, secret: 'b' }] },
    '{"id":"a","all":[{"x":1},{"x":2}]}',
  ],
])('only the members of the schema are sent, in its order: objects %s', (_, value, text) => {
  const at = { properties: { x: { type: 'number' } } }
  const all = { type: 'array', items: at }
  const properties = { id: { type: 'string' }, size: { type: 'number' }, at, all }
  for (const required of [[], ['id'], ['id', 'size']]) {
    const object = { properties, required }
    const schema = Array.isArray(value) ? { type: 'array', items: object } : object
    expect(createSerializer({ schema })(value)).toBe(text)
  }
})

test('an object that has the members of its schema only is written as it is, with those inside it', () => {
  const at = { properties: { x: { type: 'number' } } }
  const list = {
    type: 'array',
    items: { properties: { id: { type: 'string' }, at }, required: ['id', 'at'] },
  }
  const serialize = createSerializer({ schema: { properties: { data: list }, required: ['data'] } })
  let written = 0
  const item = { id: 'a', at: { x: 1 } }
  Object.defineProperty(item, 'toJSON', {
    enumerable: false,
    // A copy does not have it.
    value() {
      written += 1
      return { id: 'a' }
    },
  })
  serialize({ data: [item, item] })
  expect(written).toBe(2)
})
