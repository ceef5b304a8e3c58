import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

// Loaded before the service (node --import), also in its threads: opening and reading a stored file takes 20 ms each.

const milliseconds = 20
const cell = new Int32Array(new SharedArrayBuffer(4))
const slow = () => Atomics.wait(cell, 0, 0, milliseconds)
const stored = new Set<number>()
const { openSync, readSync } = fs

fs.openSync = (path, ...rest) => {
  const isStored = /\/blobs\/\w\w\/\w+$/.test(String(path))
  if (isStored) slow()
  const descriptor = openSync(path, ...rest)
  if (isStored) stored.add(descriptor)
  else stored.delete(descriptor)
  return descriptor
}
const read: typeof readSync = (descriptor: number, ...rest: [NodeJS.ArrayBufferView]) => {
  if (stored.has(descriptor)) slow()
  return readSync(descriptor, ...rest)
}
fs.readSync = read
syncBuiltinESMExports()
