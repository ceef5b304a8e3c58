import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { type Answer, commitBatch, type NumberedChange } from './batch.ts'
import { prepareChanges } from './changes.ts'
import { openConnection } from './connection.ts'
import { keepLogShort } from './log-space.ts'

/**
 * The thread that owns the server's writes, so that no sync to disk stalls the requests. Takes lists of changes,
 * or null to close; says `ready` once, then answers each batch with its list of answers.
 */
export type ToWriter = readonly NumberedChange[] | null

/** The answers to one batch, and how long its transaction took, its sync included. */
export interface FromWriter {
  readonly answers: readonly Answer[]
  readonly seconds: number
}

if (!parentPort) throw new Error('the writer runs as a worker thread only')
const port = parentPort
const { directory }: { directory: string } = workerData
const db = openConnection(directory)
// What a crashed process wrote but could not sync lies in the log, read back from memory and nowhere else:
// a checkpoint writes it anew, into the database, before anything is built on it.
db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
const functions = prepareChanges(db)

port.on('message', (first: ToWriter) => {
  const batch: NumberedChange[] = []
  let message: ToWriter | undefined = first
  while (message) {
    batch.push(...message)
    message = receiveMessageOnPort(port)?.message
  }
  if (batch.length > 0) {
    const begun = performance.now()
    const answers = commitBatch(db, functions, batch)
    port.postMessage({ answers, seconds: (performance.now() - begun) / 1000 } satisfies FromWriter)
    keepLogShort(db)
  }
  if (message === null) {
    db.close()
    port.close()
  }
})
port.postMessage('ready')
