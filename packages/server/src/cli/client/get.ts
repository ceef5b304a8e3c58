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
  summary: 'Fetch the bytes of an item.',
  help: `Usage: mediabucket get ID|URL [-o FILE]

Writes the bytes to standard output, or to a file. The token goes to the service alone, never to a URL elsewhere.

Options:
  -o, --output FILE  Where to write. FILE appears when it is whole, in the place of what has its name.`,

  read(args) {
    const { values, positionals } = parse('get', {
      args: [...args],
      allowPositionals: true,
      options: { output: { type: 'string', short: 'o' } },
    })
    const [reference, ...more] = positionals
    if (reference === undefined || more.length > 0) throw new UsageError('get takes one ID or URL')
    if (values.output === '') throw new UsageError('-o takes the name of a file')
    return { reference: itemReference(reference), file: values.output ?? null }
  },

  target: ({ reference }) => (URL.canParse(reference) ? reference : null),

  async run({ reference, file }, { client, output, interrupted }) {
    const signal = AbortSignal.any([interrupted, output.closed])
    const { body } = await client.get(reference, { signal })
    const bytes = body ?? []
    if (file !== null) return await writeWhole(file, bytes, signal)
    for await (const chunk of bytes) await output.write(chunk)
  },
})

/** Writes beside the file and renames, so that nobody ever finds half of it under its name. */
async function writeWhole(
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
