import { appendFileSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { threadName } from 'node:worker_threads'
import { wrap } from './intercept-writes.ts'

// Loaded into a server with node --import, in all its threads: records every call of node:sqlite, and makes the call fail that a test names.

const data = process.env['MEDIABUCKET_DATA'] ?? ''
/** The name of the list of calls; a test writes another name to have every thread begin another list. */
const listPath = join(data, 'statements-list')
/** The call that fails once, and the result code of SQLite. */
const armedPath = join(data, 'statement-armed')

let list = ''
const seen = new Set<string>()

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function failIfArmed(method: string, sql: string): void {
  const call = `${threadName || 'main'} ${method} ${sql.replace(/\s+/g, ' ').trim()}`
  const current = textOf(listPath)
  if (current !== list) seen.clear()
  list = current
  // The list has a line for each different call of each thread: the thread, the method and the SQL.
  if (list !== '' && !seen.has(call)) {
    seen.add(call)
    appendFileSync(join(data, list), `${call}\n`)
  }
  const [armed, errcode] = textOf(armedPath).split('\n')
  if (armed !== call) return
  try {
    // Only one thread can remove it.
    unlinkSync(armedPath)
  } catch {
    return
  }
  const error = new Error('a failpoint')
  throw Object.assign(error, { code: 'ERR_SQLITE_ERROR', errcode: Number(errcode) })
}

for (const method of ['run', 'get', 'all'])
  wrap(StatementSync.prototype, method, function (original, args) {
    if (this instanceof StatementSync) failIfArmed(method, this.sourceSQL)
    return original.apply(this, args)
  })
for (const method of ['exec', 'prepare'])
  wrap(DatabaseSync.prototype, method, function (original, args) {
    failIfArmed(method, String(args[0]))
    return original.apply(this, args)
  })
