import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { Plugin } from 'vite'

/** Below this share of the plain size a compressed copy is worth its place. */
const worthwhile = 0.9

const codings = { br: promisify(brotliCompress), gz: promisify(gzip) }

/** Puts `.br` and `.gz` beside every built file that shrinks, so that no server compresses anything twice. */
export const precompress = (): Plugin => ({
  name: 'precompress',
  apply: 'build',
  async writeBundle({ dir = '' }, bundle) {
    const copies = Object.keys(bundle).flatMap((name) =>
      Object.entries(codings).map(async ([extension, compress]) => {
        const plain = await readFile(join(dir, name))
        const compressed = await compress(plain)
        if (compressed.length < plain.length * worthwhile) {
          await writeFile(join(dir, `${name}.${extension}`), compressed)
        }
      }),
    )
    await Promise.all(copies)
  },
})
