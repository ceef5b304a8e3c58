import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A new directory that is deleted when the test ends. */
export function tempDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mediabucket-catalog-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}
