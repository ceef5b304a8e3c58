import fs, { appendFileSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { DatabaseSync, StatementSync } from 'node:sqlite'

// Loaded into a command with node --import: counts the calls that change files and kills the process before the call
// number KILL_AT. With KILL_MATCH, a regular expression for their lines, only those count. CALLS names a file that receives a line for each
// call.

const killAt = Number(process.env['KILL_AT'])
const match = new RegExp(process.env['KILL_MATCH'] ?? '')
const list = process.env['CALLS']
let count = 0

function pass(name: string, subject: unknown): void {
  const line = `${name} ${String(subject).trim().split('\n', 1)[0]}`
  if (list) write(list, `${line}\n`)
  if (match.test(line)) count += 1
  if (count === killAt) process.kill(process.pid, 'SIGKILL')
}

const write = appendFileSync

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Copies symbols too: util.promisify uses them. */
function watch(owner: object, name: string, isChange: (args: unknown[]) => boolean = () => true): void {
  const original: unknown = Reflect.get(owner, name)
  if (typeof original !== 'function') throw new Error(`there is no ${name}`)
  const watched: Method = function (...args) {
    if (isChange(args)) pass(name, this instanceof StatementSync ? this.sourceSQL : args[0])
    return Reflect.apply(original, this, args)
  }
  for (const symbol of Object.getOwnPropertySymbols(original)) {
    const value: unknown = Reflect.get(original, symbol)
    Object.defineProperty(watched, symbol, { value })
  }
  Reflect.set(owner, name, watched)
}

/** Whether the flags of an open, as text or as a number, are read-only. */
const isToWrite = ([, flags]: unknown[]): boolean =>
  typeof flags === 'number'
    ? (flags & 3) !== fs.constants.O_RDONLY
    : typeof flags === 'string' && flags !== 'r'
const isStatement = ([sql]: unknown[]): boolean => !/^\s*(PRAGMA|SELECT)/.test(String(sql))

const handle = await promises.open('/dev/null')
const fileHandle: unknown = Object.getPrototypeOf(handle)
await handle.close()
if (typeof fileHandle !== 'object' || fileHandle === null) throw new Error('FileHandle has no prototype')

for (const owner of [fs, promises]) {
  watch(owner, 'open', isToWrite)
  for (const name of ['rename', 'unlink', 'mkdir', 'rm', 'rmdir', 'copyFile']) watch(owner, name)
}
watch(fs, 'openSync', isToWrite)
for (const name of ['fsync', 'write', 'mkdirSync', 'fsyncSync', 'renameSync', 'rmSync']) watch(fs, name)
for (const name of ['write', 'writeFile', 'sync']) watch(fileHandle, name)
watch(DatabaseSync.prototype, 'exec', isStatement)
watch(StatementSync.prototype, 'run')
syncBuiltinESMExports()
