import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { Plugin } from 'vite'

/** A compressed copy is written only if it is smaller than this share of the original. */
const maxShare = 0.9

const codings = { br: promisify(brotliCompress), gz: promisify(gzip) }

/** Writes `.br` and `.gz` copies of the built files, so that the server does not compress at run time. */
export const precompress = (): Plugin => ({
  name: 'precompress',
  apply: 'build',
  async writeBundle({ dir = '' }, bundle) {
    const copies = Object.keys(bundle).flatMap((name) =>
      Object.entries(codings).map(async ([extension, compress]) => {
        const plain = await readFile(join(dir, name))
        const compressed = await compress(plain)
        if (compressed.length < plain.length * maxShare) {
          await writeFile(join(dir, `${name}.${extension}`), compressed)
        }
      }),
    )
    await Promise.all(copies)
  },
})
