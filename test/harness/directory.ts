import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new directory, removed on disposal. */
export async function temporaryDirectory() {
  const path = await mkdtemp(join(tmpdir(), 'mediabucket-'))
  return {
    path,
    names: () => readdir(path),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}
