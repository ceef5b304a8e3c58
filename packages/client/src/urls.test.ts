import { expect, test } from 'vitest'
import { endpointsOf, mediaIdOf, mediaUrlOf } from './urls.ts'

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

const urlOfId = (id: string) => `https://h.example/media/${id}`

test.each([
  ['k92v8d0q3h5wkc9r1n6x7zjy4tam', 'k92v8d0q3h5wkc9r1n6x7zjy4tam'],
  ['AbC-_~09=', 'AbC-_~09='],
  ['https://h.example/media/abc', 'abc'],
  ['https://cdn.example/box/media/abc.jpg', 'abc'],
  ['https://cdn.example/media/abc.tar.gz?expires=1&signature=x#t', 'abc'],
  ['https://h.example/api/media/abc', 'abc'],
  ['https://h.example/media/abc/holiday.jpg?expires=1', 'abc'],
  [new URL('http://h.example/media/abc.png'), 'abc'],
])('the id in %s is %s', (reference, id) => {
  expect(mediaIdOf(reference)).toBe(id)
})

test.each([
  '',
  '.',
  '..',
  '../tokens',
  'a/b',
  'a\\b',
  'a?b',
  'a#b',
  'a b',
  'a%2fb',
  'a\n',
  'ä',
  'https://h.example/media/',
  'https://h.example/media/.jpg',
  'https://h.example/media/a/b/c',
  'https://h.example/media/..%2ftokens',
  'https://h.example/elsewhere/abc',
  'https://me:pw@h.example/media/abc',
  'javascript:alert(1)',
  'file:///media/abc',
])('%j is not a reference to an item', (reference) => {
  expect(() => mediaIdOf(reference)).toThrow(TypeError)
})

test('an id resolves to its URL at the service, a URL to itself', () => {
  expect(mediaUrlOf('abc', urlOfId)).toBe('https://h.example/media/abc')
  expect(mediaUrlOf('abc.jpg', urlOfId)).toBe('https://h.example/media/abc.jpg')
  expect(mediaUrlOf('https://cdn.example/x?sig=1#part', urlOfId)).toBe('https://cdn.example/x?sig=1')
  expect(() => mediaUrlOf('data:text/plain,x', urlOfId)).toThrow(TypeError)
  expect(() => mediaUrlOf('https://a:b@cdn.example/x', urlOfId)).toThrow(TypeError)
})
