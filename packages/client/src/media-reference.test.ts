import { expect, test } from 'vitest'
import { mediaIdOf, mediaUrlOf } from './media-reference.ts'

const urlOfId = (id: string) => `https://h.example/media/${id}`

test.each([
  ['k92v8d0q3h5wkc9r1n6x7zjy4tam', 'k92v8d0q3h5wkc9r1n6x7zjy4tam'],
  ['AbC-_~09=', 'AbC-_~09='],
  ['https://h.example/media/abc', 'abc'],
  ['https://cdn.example/box/media/abc.jpg', 'abc'],
  ['https://cdn.example/media/abc.tar.gz?expires=1&signature=x#t', 'abc'],
  ['https://h.example/api/media/abc', 'abc'],
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
  'https://h.example/media/a/b',
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
