import { expect, test } from 'vitest'
import { contentDisposition } from './upload.ts'

test.each([
  ['photo.jpg', 'filename="photo.jpg"'],
  ['two words.txt', 'filename="two words.txt"'],
  ["it's (1) *.txt", 'filename="it\'s (1) *.txt"'],
  ['semi;colon=x.txt', 'filename="semi;colon=x.txt"'],
  ['', 'filename=""'],
  ['quote".txt', "filename*=UTF-8''quote%22.txt"],
  ['back\\slash.txt', "filename*=UTF-8''back%5Cslash.txt"],
  ["%41 (1)'*.txt", "filename*=UTF-8''%2541%20%281%29%27%2A.txt"],
  ['Öl.pdf', "filename*=UTF-8''%C3%96l.pdf"],
  ['写真.jpg', "filename*=UTF-8''%E5%86%99%E7%9C%9F.jpg"],
  ['line\r\nbreak', "filename*=UTF-8''line%0D%0Abreak"],
  ['half \ud83d', "filename*=UTF-8''half%20%EF%BF%BD"],
])('RFC 6266, RFC 8187 the file name %j is encoded', (name, parameter) => {
  expect(contentDisposition(name)).toBe(`attachment; ${parameter}`)
})
