import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { resolve } from 'node:path'

const file = resolve(import.meta.dirname, 'RESULTS.md')

/** The date and the machine of the figures. */
export const describeMachine = (): string =>
  `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node ${process.versions.node}.`

/**
 * Replaces the figures of a suite in RESULTS.md, between the suite's two marks. Returns false if the suite has no
 * marks.
 */
export function keepFigures(suite: string, figures: string): boolean {
  const text = readFileSync(file, 'utf8')
  const mark = `<!-- figures of ${suite} -->`
  const [before, , after, ...more] = text.split(mark)
  if (before === undefined || after === undefined || more.length > 0) return false
  writeFileSync(file, `${before}${mark}\n\n${figures.trim()}\n\n${mark}${after}`)
  return true
}
