import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../architecture/sources.ts'

export interface Block {
  readonly line: number
  readonly language: string
  readonly code: string
  /** The reason that it is not run; null if it is run. */
  readonly reason: string | null
}

const fence = /^(?:<!-- not run: (.+) -->\n)?```(\w*)\n([\s\S]*?)^```$/gm

/** The fenced blocks of a document. `<!-- not run: reason -->` in the line before keeps one from being run. */
export function blocksOf(path: string): Block[] {
  const text = readFileSync(join(root, path), 'utf8')
  return [...text.matchAll(fence)].map(({ 1: reason = null, 2: language = '', 3: code = '', index }) => ({
    line: text.slice(0, index).split('\n').length,
    language,
    code,
    reason,
  }))
}

/** Languages that are not run. */
export const shown = ['json', 'text', 'console', 'html', 'yaml']
