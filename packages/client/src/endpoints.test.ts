import { expect, test } from 'vitest'
import { endpointsOf } from './endpoints.ts'

test.each([
  ['https://h.example', 'https://h.example/api/media', 'https://h.example'],
  ['https://h.example/', 'https://h.example/api/media', 'https://h.example'],
  ['https://h.example:8443/box', 'https://h.example:8443/box/api/media', 'https://h.example:8443/box'],
  ['https://h.example/box//', 'https://h.example/box/api/media', 'https://h.example/box'],
  ['https://h.example/api/media', 'https://h.example/api/media', 'https://h.example'],
  ['https://h.example/api/media/', 'https://h.example/api/media/', 'https://h.example'],
  ['https://h.example/v1/media', 'https://h.example/v1/media', 'https://h.example'],
  ['https://h.example/v1/media/?page=7#x', 'https://h.example/v1/media/', 'https://h.example'],
  ['https://h.example/a/b/v1/media', 'https://h.example/a/b/v1/media', 'https://h.example/a/b'],
  [
    'https://h.example/api/media/api/media',
    'https://h.example/api/media/api/media',
    'https://h.example/api/media',
  ],
  ['https://h.example/media', 'https://h.example/media/api/media', 'https://h.example/media'],
  ['HTTP://H.example:80/api/media', 'http://h.example/api/media', 'http://h.example'],
])('the listing of the base URL %s is at %s', (given, listing, base) => {
  for (const url of [given, new URL(given)]) {
    const endpoints = endpointsOf(url)
    expect(endpoints.listing).toBe(listing)
    expect(endpoints.page(3)).toBe(`${listing}?page=3`)
    expect(endpoints.uploads).toBe(`${base}/api/media`)
    expect(endpoints.resumableUploads).toBe(`${base}/api/uploads`)
    expect(endpoints.item('x')).toBe(`${base}/api/media/x`)
    expect(endpoints.bytes('x')).toBe(`${base}/media/x`)
    expect(endpoints.token).toBe(`${base}/api/token`)
    expect(endpoints.origin).toBe(new URL(base).origin)
  }
})

test.each([
  '',
  'h.example',
  '/api/media',
  'ftp://h.example',
  'file:///etc',
  'https://h.example?token=s3cret',
])('the base URL %s is refused', (given) => {
  expect(() => endpointsOf(given)).toThrow(TypeError)
})

test('a password in the URL is refused, and the error does not contain it', () => {
  expect(() => endpointsOf('https://me:s3cret@h.example')).toThrow(/^(?!.*s3cret).*user name or password/)
})
