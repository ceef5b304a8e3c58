import { expect, test } from 'vitest'
import { isOfService, readIfPrivate } from '../../packages/server/src/http/openapi/description.ts'
import { nameOf, requests, routes } from './route-needs.ts'

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
