import { expect, test } from 'vitest'
import { Fault, storageCauseOf } from './faults.ts'

const system = (code: string) => Object.assign(new Error(code), { code })
const sqlite = (errcode: number) => Object.assign(new Error('SQLite'), { errcode })

test.each([
  [system('ENOSPC'), 'full'],
  [system('EDQUOT'), 'full'],
  [system('EIO'), 'io'],
  [system('EROFS'), 'read-only'],
  [system('EACCES'), 'permission'],
  [system('EMFILE'), 'open-files'],
  [sqlite(13), 'full'],
  [sqlite(10), 'io'],
  [sqlite(1034), 'io'],
  [sqlite(11), 'corrupt'],
  [sqlite(26), 'corrupt'],
  [sqlite(8), 'read-only'],
  [new Fault('bytes-missing', 'x'), 'bytes-missing'],
  [new Fault('storage-full', 'x'), 'full'],
  [new Fault('catalog-unavailable', 'x'), 'database-unreachable'],
  [new Fault('storage-unavailable', 'x'), 'bytes-unreachable'],
  [new Fault('overloaded', 'x', { cause: new Fault('catalog-unavailable', 'y') }), 'database-unreachable'],
  [new Fault('internal', 'x', { cause: new Error('y', { cause: system('EIO') }) }), 'io'],
  [new Fault('internal', 'x', { cause: system('ECONNRESET') }), null],
  [new Fault('catalog-busy', 'x', { cause: sqlite(5) }), null],
  [new Error('x'), null],
  ['EIO', null],
])('the storage cause of %s is %s', (error, cause) => {
  expect(storageCauseOf(error)).toBe(cause)
})
