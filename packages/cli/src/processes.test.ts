import { expect, test } from 'vitest'
import { programName, shellWord } from './processes.ts'

test.each([
  ['/clone/node_modules/.bin/mediabucket', '/clone', 'npx mediabucket'],
  ['/clone/node_modules/.bin/mediabucket', '/clone/docs', 'npx mediabucket'],
  ['/node_modules/.bin/mediabucket', '/', 'npx mediabucket'],
  ['/clone/node_modules/.bin/mediabucket', '/clone-2', '/clone/node_modules/.bin/mediabucket'],
  ['/my clone/node_modules/.bin/mediabucket', '/', "'/my clone/node_modules/.bin/mediabucket'"],
  ['/usr/local/bin/mediabucket', '/clone', 'mediabucket'],
  ['/usr/lib/mediabucket/lib/node_modules/mediabucket/bin/mediabucket.js', '/', 'mediabucket'],
])('A8 the program %s is called in %s as %s', (program, directory, name) => {
  expect(programName(program, directory)).toBe(name)
})

test.each([
  ['/srv/media', '/srv/media'],
  ["/srv/Anna's media", "'/srv/Anna'\\''s media'"],
  ['', "''"],
])('%j is the word %s of a shell', (text, word) => {
  expect(shellWord(text)).toBe(word)
})
