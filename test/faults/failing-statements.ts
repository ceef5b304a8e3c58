import { appendFileSync, existsSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { threadName } from 'node:worker_threads'
import { wrap } from './intercept-writes.ts'

// Loaded into a server with node --import, in all its threads: records every call of node:sqlite, and makes the call fail that a test names.

const data = process.env['MEDIABUCKET_DATA'] ?? ''
/** A line for each different call since the test removed the file: the thread, the method and the SQL. */
const seenPath = join(data, 'statements-seen')
/** The call that fails once, and the result code of SQLite. */
const armedPath = join(data, 'statement-armed')

const seen = new Set<string>()

function failIfArmed(method: string, sql: string): void {
  const call = `${threadName || 'main'} ${method} ${sql.replace(/\s+/g, ' ').trim()}`
  if (!existsSync(seenPath)) seen.clear()
  if (!seen.has(call)) {
    seen.add(call)
    appendFileSync(seenPath, `${call}\n`)
  }
  let errcode: string | undefined
  try {
    const [armed, code] = readFileSync(armedPath, 'utf8').split('\n')
    if (armed !== call) return
    // Only one thread can remove it.
    unlinkSync(armedPath)
    errcode = code
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
