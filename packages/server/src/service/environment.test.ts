import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadEnvFile, loadSettingsFile, parseEnvFile, rereadVariables } from './environment.ts'

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

test('O13 a file of the installation that is created after the start is read again, and one that is removed is an error', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mediabucket-env-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'etc/env')
  const created = join(directory, 'env')
  const env = { MEDIABUCKET_PORT: '1' }
  loadSettingsFile(env, path)
  expect(rereadVariables(env)).toEqual(env)
  loadSettingsFile(env, created)
  writeFileSync(created, 'MEDIABUCKET_PORT=2\nMEDIABUCKET_READ_ONLY=on\n')
  // Variables that are set take precedence, and the process keeps its own.
  expect(rereadVariables(env)).toEqual({ MEDIABUCKET_PORT: '1', MEDIABUCKET_READ_ONLY: 'on' })
  expect(env).toEqual({ MEDIABUCKET_PORT: '1' })
  writeFileSync(created, 'MEDIABUCKET_READ_ONLY')
  expect(() => rereadVariables(env)).toThrow('Line 1 of')
  // Once it has been read, it must not be missing: its settings would be gone without a message.
  rmSync(created)
  expect(() => rereadVariables(env)).toThrow('(ENOENT)')
  writeFileSync(created, 'MEDIABUCKET_READ_ONLY=on\n')
  expect(rereadVariables(env)).toEqual({ MEDIABUCKET_PORT: '1', MEDIABUCKET_READ_ONLY: 'on' })
  loadSettingsFile(env, created)
  rmSync(created)
  expect(() => rereadVariables(env)).toThrow('(ENOENT)')
})
