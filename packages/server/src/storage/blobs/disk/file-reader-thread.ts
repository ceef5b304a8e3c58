import { closeSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../../core/faults.ts'
import { lowerOwnPriority, type Outcome, serveBatches } from '../../batch-threads.ts'
import { BlobTruncatedError } from '../blobs.ts'
import { identityName } from './blobs-directory.ts'
import { entryTypeAt, nodeFiles } from './files.ts'
import {
  type FileDescriptor,
  type FileToRead,
  hideForeignEntry,
  isOwnDirectory,
  isStored,
  openRegularFile,
  type ReadFile,
} from './stored-files.ts'

// A thread of the server that opens and reads stored files. A call for one file through libuv's thread pool costs four
// times as much, and looking up a name that the system has not cached waits for the disk too.

function readStored({ root, shard, name, hasIdentity, wholeUpTo, required }: FileToRead): ReadFile {
  if (required !== null && !isStored(required)) return null
  const directory = join(root, shard)
  const file =
    isOwnDirectory(root) && isOwnDirectory(directory) ? openRegularFile(join(directory, name)) : null
  if (file === null) {
    // If the disk is not mounted, items must not appear unknown (docs/interface.md B9).
    if (hasIdentity && entryTypeAt(nodeFiles, join(root, identityName)) === 'nothing')
      throw new Fault('storage-unavailable', 'The directory of the bytes cannot be reached.')
    return null
  }
  return file.size > wholeUpTo ? file : readAndClose(file)
}

function readAndClose({ descriptor, size }: FileDescriptor): Uint8Array<ArrayBuffer> {
  try {
    const bytes = Buffer.allocUnsafeSlow(size)
    for (let done = 0; done < size; ) {
      const count = readSync(descriptor, bytes, done, size - done, done)
      if (count === 0) throw new BlobTruncatedError('a blob ended before its size')
      done += count
    }
    return bytes
  } finally {
    closeSync(descriptor)
  }
}

function readOne(file: FileToRead): Outcome<ReadFile> {
  try {
    return { output: readStored(file) }
  } catch (error) {
    return { error: hideForeignEntry(error) }
  }
}

lowerOwnPriority()

serveBatches<FileToRead, ReadFile, null>((batch, reply) => {
  const outcomes = batch.map(readOne)
  const buffers = outcomes.flatMap((outcome) =>
    'output' in outcome && outcome.output instanceof Uint8Array ? [outcome.output.buffer] : [],
  )
  reply(outcomes, null, buffers)
})
