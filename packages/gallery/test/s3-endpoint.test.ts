import { expect, test } from 'vitest'
import { endpointOf } from '../src/tokens/s3-endpoint.ts'

test.each([
  ['http://127.0.0.1:8080/', null, 'http://127.0.0.1:9000'],
  ['http://[::1]:8080/', null, 'http://[::1]:9000'],
  ['https://media.example.org/files/', null, 'https://media.example.org:9000'],
  ['http://media.example.org/', 's3.example.org', 'http://s3.example.org:9000'],
  ['https://media.example.org/', 's3.example.org', 'https://s3.example.org'],
])('G45 the endpoint on the page %s with the host %s is %s', (page, host, endpoint) => {
  expect(endpointOf(new URL(page), { host, port: 9000 })).toBe(endpoint)
})
