import { expect, test } from 'vitest'
import { loadEnvFile, loadSettingsFile, parseEnvFile } from './environment.ts'

// As systemd reads them: src/basic/env-file.c and its tests.
test.each([
  ['A=b', { A: 'b' }],
  ['A=', { A: '' }],
  ['  A = b c  \n\nB=2', { A: 'b c', B: '2' }],
  ['# a=1\n; b=2\nC=3 # not a comment', { C: '3 # not a comment' }],
  ['# a comment \\\nthat goes on\nA=1', { A: '1' }],
  ['A=p#ss;word$x', { A: 'p#ss;word$x' }],
  [`A='a \\ "b" $c'`, { A: 'a \\ "b" $c' }],
  ['A="a \\" \\\\ \\$c \\n"', { A: 'a " \\ $c \\n' }],
  [`A="a"'b' c`, { A: 'abc' }],
  [`A=it's "so"`, { A: `it's "so"` }],
  ['A=b\\ \\\\\\x', { A: 'b \\x' }],
  ['A=one \\\n  two\nB=3', { A: 'one   two', B: '3' }],
  ['A="one\ntwo"\r\nB=2\r\n', { A: 'one\ntwo', B: '2' }],
  ['A=1\nA=2', { A: '2' }],
])('%j is read as systemd reads it', (text, values) => {
  expect(parseEnvFile('f', text)).toEqual(values)
})

test.each([
  ['A=1\nB', 2],
  ['export A=1', 1],
  ['\n\nA="secret', 3],
  ["A='secret\n", 1],
])('%j is refused by its line, without its value', (text, line) => {
  expect(() => parseEnvFile('/etc/x.env', text)).toThrow(
    `Line ${line} of /etc/x.env is not NAME=value. A value with spaces may be in quotes.`,
  )
})

test('a file that cannot be read is named with the reason', () => {
  expect(() => loadEnvFile('/', {})).toThrow('The file of the settings cannot be read: / (EISDIR).')
})

test('O7 the file of the installation may be missing; one that cannot be read is an error, except with a data directory', () => {
  expect(() => loadSettingsFile({}, '/nowhere/env')).not.toThrow()
  expect(() => loadSettingsFile({}, '/')).toThrow('/ cannot be read (EISDIR). Run the command with sudo')
  expect(() => loadSettingsFile({ MEDIABUCKET_DATA: '/srv/other' }, '/')).not.toThrow()
})
