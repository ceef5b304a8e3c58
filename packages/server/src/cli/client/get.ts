import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parse } from '../arguments.ts'
import { UsageError } from '../command.ts'
import { clientCommand } from './client-command.ts'
import { itemReference } from './item-reference.ts'

export const get = clientCommand({
  summary: 'Download the bytes of an item.',
  help: `Usage: mediabucket get ID|URL [-o FILE]

Writes the bytes to standard output, or to a file. The token is sent to the service only, never to a URL of another server.

Options:
  -o, --output FILE  Write to FILE, which is created or replaced when the download is complete.`,

  read(args) {
    const { values, positionals } = parse('get', {
      args: [...args],
      allowPositionals: true,
      options: { output: { type: 'string', short: 'o' } },
    })
    const [reference, ...more] = positionals
    if (reference === undefined || more.length > 0) throw new UsageError('get takes one ID or URL')
    if (values.output === '') throw new UsageError('-o takes the path of a file')
    return { reference: itemReference(reference), file: values.output ?? null }
  },

  target: ({ reference }) => (URL.canParse(reference) ? reference : null),

  async run({ reference, file }, { client, output, interrupted }) {
    const signal = AbortSignal.any([interrupted, output.closed])
    const { body } = await client.get(reference, { signal })
    const bytes = body ?? []
    if (file !== null) return await writeAtomically(file, bytes, signal)
    for await (const chunk of bytes) await output.write(chunk)
  },
})

/** Writes a temporary file and renames it, so that an incomplete file never has the final name. */
async function writeAtomically(
  file: string,
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const part = join(dirname(file), `.${basename(file).slice(0, 100)}.${randomUUID()}.part`)
  try {
    await pipeline(bytes, createWriteStream(part, { flags: 'wx', flush: true }), { signal })
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}
